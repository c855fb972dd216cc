import { andThen } from '../../jsonrpc/hook.js'
import { isObject, isThenable } from '../../jsonrpc/message.js'
import type { LogEntry } from '../../jsonrpc/log-entry.js'
import type { SessionStore } from '../../stores/session-store.js'
import type { HttpSession, StoredState } from './session.js'
import { nameOf, secretDigest, secretOf } from './session-id.js'

/** What a session can be made anew from. */
export interface StoredSession extends StoredState {
  readonly owner?: string | undefined
  /** What its id has beside its name; where others may read it, its digest: who reads the store has no session. */
  readonly secret: string
}

/** Keeps sessions in a store, where there is one. Of one session nothing overtakes what was asked before. */
export class SessionPersistence {
  readonly #store: SessionStore | undefined
  readonly #ttl: number
  readonly #report: (report: LogEntry) => void
  /** By name, the end of what is under way. */
  readonly #tails = new Map<string, Promise<void>>()
  readonly #queued = new Set<HttpSession>()
  readonly #dropped = new WeakSet<HttpSession>()

  constructor(store: SessionStore | undefined, ttl: number, report: (report: LogEntry) => void) {
    this.#store = store
    this.#ttl = ttl
    this.#report = report
  }

  /** Keeps what a session is. Resolves when that is done, or has failed; undefined where there is nothing to wait for. */
  keep(session: HttpSession): Promise<void> | undefined {
    session.kept = Date.now()
    const store = this.#store
    if (store === undefined || this.#queued.has(session)) return undefined
    this.#queued.add(session)
    return this.#then(session.name, async () => {
      // First: what it is told from here on is for the next time.
      this.#queued.delete(session)
      const kept = describe(session, await this.#secret(session.id))
      if (this.#dropped.has(session)) return
      await (kept === undefined
        ? store.drop(session.name)
        : store.keep(session.name, JSON.stringify(kept), this.#ttl))
    })
  }

  /** Whether an id is the one that a kept session was opened with. */
  async opens(id: string, { secret }: StoredSession): Promise<boolean> {
    return secret === (await this.#secret(id))
  }

  /** Looks for what was kept. Rejects where the store cannot say. */
  fetch(id: string): StoredSession | undefined | Promise<StoredSession | undefined> {
    const name = nameOf(id)
    if (name === '' || this.#store === undefined) return undefined
    const tail = this.#tails.get(name)
    if (tail !== undefined) return tail.then(() => this.fetch(id))
    return andThen(this.#fetch(name), parse)
  }

  #secret(id: string): string | Promise<string> {
    return this.#store?.inProcess === true ? secretOf(id) : secretDigest(id)
  }

  #fetch(name: string): string | undefined | Promise<string | undefined> {
    try {
      const text = this.#store?.fetch(name)
      // Clients of databases have promises of their own.
      return isThenable(text) ? Promise.resolve(text) : text
    } catch (error) {
      return Promise.reject(error)
    }
  }

  /** Whether it could be dropped. */
  async drop(session: HttpSession): Promise<boolean> {
    const store = this.#store
    if (store === undefined) return true
    this.#dropped.add(session)
    let dropped = false
    await this.#then(session.name, async () => {
      await store.drop(session.name)
      dropped = true
    })
    return dropped
  }

  /** Resolves when nothing is under way. */
  async settled(): Promise<void> {
    await Promise.all(this.#tails.values())
  }

  #then(name: string, work: () => Promise<void>): Promise<void> {
    const tail = (this.#tails.get(name) ?? Promise.resolve())
      .then(work)
      .catch((error: unknown) =>
        this.#report({
          level: 'error',
          message: 'A session could not be kept, or dropped, in its store',
          error,
        }),
      )
      .finally(() => {
        if (this.#tails.get(name) === tail) this.#tails.delete(name)
      })
    this.#tails.set(name, tail)
    return tail
  }
}

function describe(session: HttpSession, secret: string): StoredSession | undefined {
  const { owner, agreed, offers, told } = session
  return agreed === undefined || !told.complete
    ? undefined
    : { owner, secret, opening: told.opening, agreed, offers, told: told.frames }
}

function parse(text: string | undefined): StoredSession | undefined {
  try {
    const kept: unknown = text === undefined ? undefined : JSON.parse(text)
    return isObject(kept) ? (kept as unknown as StoredSession) : undefined // only we write there
  } catch {
    // Whatever it was, it is no session any more.
    return undefined
  }
}
