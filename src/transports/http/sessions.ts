import type { Principal } from '../../jsonrpc/channel.js'
import { handled } from '../../jsonrpc/hook.js'
import type { LogEntry } from '../../jsonrpc/log-entry.js'
import type { SessionStore } from '../../stores/session-store.js'
import type { Budgets } from './budgets.js'
import { SessionPersistence, type StoredSession } from './session-persistence.js'
import { newGeneration } from './session-id.js'
import { type HttpSession, type SessionFacts, openingBytes } from './session.js'
import { within } from '../../jsonrpc/deadline.js'

export interface SessionsOptions {
  /** How many there may be. */
  max: number
  /** After so many milliseconds without a request or an open stream a session is ended. */
  idle: number
  /** Where they are kept, to be made anew where they are not. */
  store: SessionStore | undefined
  /** The bytes that they may hold. */
  budgets: Budgets
  report(report: LogEntry): void
  make(facts: SessionFacts): HttpSession
}

/** The session, or that it is not known whether there is one. */
type Found = HttpSession | 'unavailable' | undefined

/** A session that was used within this time is not given up for a new one. */
const SETTLED = 60_000
/** So long nothing is looked for where nothing was found. */
const LOOK_AGAIN = 100
/** How long a client waits until a session is made anew, or dropped. */
const PATIENCE = 10_000
/** How long the answer to `initialize` waits until the session is kept. */
const KEPT_WITHIN = 2000

/** Every session of an endpoint. Most clients never say that they are done, so it ends those that nobody uses. */
export class Sessions {
  readonly #options: SessionsOptions
  readonly #keeping: SessionPersistence
  readonly #all = new Map<string, HttpSession>()
  /** By id and caller, those that are being made anew. */
  readonly #restoring = new Map<string, Promise<Found>>()
  #timer: ReturnType<typeof setInterval> | undefined
  /** Before this moment none of them makes way. */
  #fullUntil = 0
  #closed = false

  constructor(options: SessionsOptions) {
    this.#options = options
    this.#keeping = new SessionPersistence(options.store, options.idle, options.report)
  }

  get size(): number {
    return this.#all.size
  }

  values(): Iterable<HttpSession> {
    return this.#all.values()
  }

  /** The session of that id, if it belongs to whoever asks: to others it does not exist. */
  find(id: string, principal: Principal | undefined): Found | Promise<Found> {
    const session = this.#all.get(id)
    if (session === undefined) return this.#elsewhere(id, principal)
    if (session.owner !== principal?.id) return undefined
    // The store does not see that it is used.
    if (Date.now() - session.kept > this.#options.idle / 4) void this.#keeping.keep(session)
    return session
  }

  /** Whether there is room for one more; one that has been idle for a while makes way for it. */
  makeRoom(owner: string | undefined, opening: string): boolean {
    const { retained } = this.#options.budgets.of(owner)
    const bytes = openingBytes(opening)
    if (this.#all.size < this.#options.max && retained.fits(bytes)) return true
    // Who asks all the time must not have all of them looked at each time.
    if (Date.now() < this.#fullUntil) return false
    // Where one principal has taken all that it may, its own sessions make way.
    const own = retained !== this.#options.budgets.of(undefined).retained && !retained.fits(bytes)
    let oldest: HttpSession | undefined
    for (const session of this.#all.values())
      if (
        !session.busy &&
        (!own || session.owner === owner) &&
        (oldest === undefined || session.used < oldest.used)
      )
        oldest = session
    const free =
      oldest === undefined
        ? Date.now() + LOOK_AGAIN
        : oldest.used + Math.min(SETTLED, this.#options.idle)
    if (oldest === undefined || Date.now() < free) {
      this.#fullUntil = Math.min(free, Date.now() + LOOK_AGAIN)
      return false
    }
    void this.end(oldest)
    return retained.fits(bytes)
  }

  add(session: HttpSession): void {
    this.#all.set(session.id, session)
    if (this.#timer !== undefined) return
    this.#timer = setInterval(
      () => this.#sweep(),
      Math.max(10, Math.min(this.#options.idle / 2, SETTLED)),
    )
    // Not every runtime has timers that let a process end.
    ;(this.#timer as { unref?: () => void }).unref?.()
  }

  /** Keeps a session that begins: its client must find it, also in another process. A store that does not answer holds nobody up for long. */
  begin(session: HttpSession): Promise<unknown> | undefined {
    const kept = this.#keeping.keep(session)
    return kept === undefined ? undefined : within(KEPT_WITHIN, kept)
  }

  /** Its client has told it something that is to be remembered. */
  keep(session: HttpSession): void {
    if (this.#all.get(session.id) === session) void this.#keeping.keep(session)
  }

  /** Ends it for good; resolves with whether no other process can have it any more. */
  end(session: HttpSession): Promise<boolean> {
    this.#remove(session)
    session.end()
    return this.#keeping.drop(session)
  }

  /** The same for its client, who does not wait for ever: the store may never say that it has done it. */
  async endInTime(session: HttpSession): Promise<boolean> {
    const ended = await within(PATIENCE, this.end(session))
    if (ended === 'late')
      this.#options.report({
        level: 'error',
        message: 'A session could not be dropped from its store in time',
      })
    return ended === true
  }

  /** Lets go of all. What is kept of them stays, for whoever comes after. */
  async close(deadline: number): Promise<void> {
    this.#closed = true
    for (const session of this.#all.values()) {
      this.#remove(session)
      session.leave()
    }
    await within(deadline, this.#keeping.settled())
  }

  #remove(session: HttpSession): void {
    this.#all.delete(session.id)
    if (this.#all.size > 0) return
    clearInterval(this.#timer)
    this.#timer = undefined
  }

  #sweep(): void {
    const since = Date.now() - this.#options.idle
    for (const session of this.#all.values())
      if (session.used < since && !session.busy) void this.end(session)
  }

  /** One that this process does not have: another one may have kept it. */
  #elsewhere(id: string, principal: Principal | undefined): Found | Promise<Found> {
    // What is told to one caller is nothing for another, whatever the two have in their names.
    const asked = JSON.stringify([id, principal?.id])
    const restoring = this.#restoring.get(asked)
    if (restoring !== undefined) return restoring
    const kept = this.#keeping.fetch(id)
    if (kept === undefined) return undefined
    if (this.#restoring.size >= this.#options.max) {
      if (kept instanceof Promise) void handled(kept)
      return 'unavailable'
    }
    const restored = this.#restore(id, kept, principal).finally(() => this.#restoring.delete(asked))
    // As long as it lasts, nobody begins it a second time.
    const found = this.#inTime(restored)
    this.#restoring.set(asked, found)
    return found
  }

  async #inTime(restored: Promise<Found>): Promise<Found> {
    const { report } = this.#options
    try {
      const found = await within(PATIENCE, restored)
      if (found === 'late')
        report({ level: 'error', message: 'A session could not be fetched from its store in time' })
      return found === 'late' ? 'unavailable' : found
    } catch (error) {
      report({ level: 'error', message: 'A session could not be fetched from its store', error })
      return 'unavailable'
    }
  }

  async #restore(
    id: string,
    fetched: StoredSession | Promise<StoredSession | undefined>,
    principal: Principal | undefined,
  ): Promise<Found> {
    // What comes later is not used: by then the session may have been taken up, and ended.
    const kept = fetched instanceof Promise ? await within(PATIENCE, fetched) : fetched
    if (kept === 'late') throw new Error('The store has not answered in time')
    if (
      kept === undefined ||
      kept.owner !== principal?.id ||
      !(await this.#keeping.opens(id, kept))
    )
      return undefined
    if (!this.makeRoom(kept.owner, kept.opening)) return 'unavailable'
    const session = this.#options.make({
      id,
      owner: kept.owner,
      opening: kept.opening,
      generation: newGeneration(),
    })
    if (!(await session.restore(kept, principal))) {
      // What the server offers is not what this client was told: it must shake hands again.
      session.end()
      await this.#keeping.drop(session)
      return undefined
    }
    const other = this.#all.get(id)
    if (other !== undefined || this.#closed) {
      session.leave()
      return other ?? 'unavailable'
    }
    // Others may have taken the place while this one was being made.
    if (!this.makeRoom(kept.owner, '')) {
      session.leave()
      return 'unavailable'
    }
    this.add(session)
    this.keep(session)
    this.#options.report({ level: 'info', message: 'A session of an earlier process was taken up' })
    return session
  }
}
