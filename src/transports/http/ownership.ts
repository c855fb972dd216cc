import type { LogEntry } from '../../jsonrpc/log-entry.js'
import { withTimeout } from '../../jsonrpc/deadline.js'
import type { SessionLocation, SessionOwnership } from '../../stores/session-ownership.js'
import type { SessionPersistence } from './session-persistence.js'
import type { HttpSession } from './session.js'

/** The right of this process to a session that no other process serves, once it is taken. */
export interface SessionClaim {
  take(from: number, to: number): Promise<boolean>
  mark(session: HttpSession): void
}

/** The sessions that belong to this process, if several serve the sessions of one store. */
export class Ownership {
  readonly #ownership: SessionOwnership
  readonly #persistence: SessionPersistence
  readonly #report: (entry: LogEntry) => void
  #started = false

  constructor(
    ownership: SessionOwnership,
    persistence: SessionPersistence,
    report: (entry: LogEntry) => void,
  ) {
    this.#ownership = ownership
    this.#persistence = persistence
    this.#report = report
  }

  start(listening: { scheme: string; port: number } | undefined, lapsed: () => void): void {
    this.#ownership.start({ listening, report: this.#report, lapsed })
    this.#started = true
  }

  /** Whether a session certainly belongs to this process; if not, it must be confirmed. */
  has({ superseded, term }: HttpSession): boolean {
    const current = this.#ownership.term
    return !superseded && current !== undefined && term === current
  }

  /** Stores a new session as one of this process; false if that has failed: then no client may use it. */
  async begin(session: HttpSession): Promise<boolean> {
    if (!(await this.#hasLease())) return false
    session.term = this.#ownership.term
    return (await this.#persistence.set(session)) === true
  }

  async confirm(session: HttpSession): Promise<'owned' | 'lost' | 'unavailable'> {
    if (session.superseded) return 'lost'
    if (!(await this.#hasLease())) return 'unavailable'
    const { term } = this.#ownership
    const found = await this.#ownership.confirm(session.name, session.generation)
    // If the store has lost its data, the session is stored again.
    const stored = found === 'missing' ? await this.#persistence.set(session) : found === 'owned'
    if (found === 'lost') session.superseded = true
    if (session.superseded) return 'lost'
    if (stored !== true) return 'unavailable'
    session.term = term
    return 'owned'
  }

  locate(name: string): Promise<SessionLocation> {
    return this.#ownership.locate(name)
  }

  claimOf(name: string, owner: string): SessionClaim {
    let term: number | undefined
    return {
      take: async (from, to) => {
        if (!(await this.#hasLease())) throw new Error('This process has no lease on sessions')
        term = this.#ownership.term
        return this.#ownership.claim(name, from, to, owner)
      },
      mark: (session) => (session.term = term),
    }
  }

  /** Lets other processes take over a session that has ended here. */
  async release({ name, generation }: HttpSession, timeout: number): Promise<void> {
    const released = this.#persistence
      .settled(name)
      .then(() => this.#ownership.release(name, generation))
      .catch((error: unknown) => {
        const message =
          'A session could not be released; it will be when the lease of this process ends'
        this.#report({ level: 'warning', message, error })
      })
    await withTimeout(timeout, released)
  }

  /** Closes what this endpoint has started: another one may use the same stores. Never rejects. */
  async close(): Promise<void> {
    if (!this.#started) return
    try {
      await this.#ownership.close()
    } catch (error) {
      const message = 'The lease of this process could not be ended; it ends by itself'
      this.#report({ level: 'warning', message, error })
    }
  }

  /** A process that others cannot reach has no lease: it owns a session only while it serves a request. */
  async #hasLease(): Promise<boolean> {
    const { process, term } = this.#ownership
    return process === '' || term !== undefined || this.#ownership.renew()
  }
}
