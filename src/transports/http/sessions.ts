import type { Principal } from '../../jsonrpc/channel.js'
import { markHandled } from '../../jsonrpc/hook.js'
import type { LogEntry } from '../../jsonrpc/log-entry.js'
import type { SessionStore } from '../../stores/session-store.js'
import type { Budgets } from './budgets.js'
import { nextGeneration } from './session-id.js'
import { SessionPersistence, type StoredSession } from './session-persistence.js'
import { type HttpSession, type SessionFacts, initializeBytes } from './session.js'
import { withTimeout } from '../../jsonrpc/deadline.js'

export interface SessionsOptions {
  /** Maximum number of sessions. */
  max: number
  /** Number of sessions of another transport, which count too. */
  others(): number
  /** Milliseconds without a request or an open stream after which a session ends. */
  idleTimeout: number
  store: SessionStore | undefined
  budgets: Budgets
  report(entry: LogEntry): void
  make(facts: SessionFacts): HttpSession
}

/** The session; `unavailable` where the store cannot tell whether there is one. */
type Found = HttpSession | 'unavailable' | undefined

/** Milliseconds for which a session that was used is not evicted for a new one. */
const MIN_IDLE = 60_000
/** Milliseconds until sessions are searched again for one to evict. */
const EVICTION_INTERVAL = 100
/** Milliseconds that a client waits for the store to read or delete a session. */
const STORE_TIMEOUT = 10_000
/** Milliseconds that the response to `initialize` waits for the store. */
const INITIALIZE_TIMEOUT = 2000

/** The sessions of an endpoint. Ends idle ones: most clients never send DELETE. */
export class Sessions {
  readonly #options: SessionsOptions
  /** Undefined without a store. */
  readonly #persistence: SessionPersistence | undefined
  readonly #all = new Map<string, HttpSession>()
  /** By id and principal, the sessions that are being restored. */
  readonly #restoring = new Map<string, Promise<Found>>()
  #timer: ReturnType<typeof setInterval> | undefined
  /** Until then no session can be evicted. */
  #fullUntil = 0
  #closed = false

  constructor(options: SessionsOptions) {
    this.#options = options
    const { store, idleTimeout, report } = options
    if (store !== undefined) this.#persistence = new SessionPersistence(store, idleTimeout, report)
  }

  get size(): number {
    return this.#all.size
  }

  values(): Iterable<HttpSession> {
    return this.#all.values()
  }

  /** The session with this id, where it belongs to the principal. */
  find(id: string, principal: Principal | undefined): Found | Promise<Found> {
    const session = this.#all.get(id)
    if (session === undefined) return this.#findStored(id, principal)
    if (session.owner !== principal?.id) return undefined
    if (session.superseded && !session.busy) {
      this.#leave(session)
      return this.#findStored(id, principal)
    }
    // Renews its time to live in the store.
    if (this.#persistence !== undefined && this.#isDue(session)) void this.#persistence.set(session)
    return session
  }

  #isDue({ storedAt }: HttpSession): boolean {
    return Date.now() - storedAt > this.#options.idleTimeout / 4
  }

  /** Whether one more session with this memory fits, after evicting an idle one where necessary. */
  makeRoom(owner: string | undefined, bytes: number): boolean {
    const { budgets, max, others } = this.#options
    if (this.#closed) return false
    const { retained } = budgets.of(owner)
    if (this.#all.size + others() < max && retained.fits(bytes)) return true
    // Not for each request: the search visits every session.
    if (Date.now() < this.#fullUntil) return false
    // A principal at its own limit evicts its own sessions only.
    const own = retained !== budgets.of(undefined).retained && !retained.fits(bytes)
    const oldest = this.#oldestIdle(own ? (session) => session.owner === owner : undefined)
    const evictable =
      oldest === undefined
        ? Date.now() + EVICTION_INTERVAL
        : oldest.lastUsed + Math.min(MIN_IDLE, this.#options.idleTimeout)
    if (oldest === undefined || Date.now() < evictable) {
      this.#fullUntil = Math.min(evictable, Date.now() + EVICTION_INTERVAL)
      return false
    }
    void this.end(oldest)
    return retained.fits(bytes)
  }

  #oldestIdle(filter: ((session: HttpSession) => boolean) | undefined): HttpSession | undefined {
    let oldest: HttpSession | undefined
    for (const session of this.#all.values()) {
      if (session.busy || filter?.(session) === false) continue
      if (oldest === undefined || session.lastUsed < oldest.lastUsed) oldest = session
    }
    return oldest
  }

  add(session: HttpSession): void {
    this.#all.set(session.id, session)
    if (this.#timer !== undefined) return
    const interval = Math.max(10, Math.min(this.#options.idleTimeout / 2, MIN_IDLE))
    this.#timer = setInterval(() => this.#sweep(), interval)
    // Not in every runtime: lets the process exit.
    ;(this.#timer as { unref?: () => void }).unref?.()
  }

  /** Stores a new session, so that any process can serve its client. Resolves in time also where the store does not. */
  begin(session: HttpSession): Promise<unknown> | undefined {
    const stored = this.#persistence?.set(session)
    return stored === undefined ? undefined : withTimeout(INITIALIZE_TIMEOUT, stored)
  }

  /** Stores a session whose state has changed. */
  store(session: HttpSession): void {
    if (this.#all.get(session.id) === session) void this.#persistence?.set(session)
  }

  /** Ends a session; resolves with whether it was deleted from the store. */
  end(session: HttpSession): Promise<boolean> {
    this.#remove(session)
    session.end()
    return this.#persistence?.delete(session) ?? Promise.resolve(true)
  }

  /** Ends a session; resolves in time also where the store does not. */
  async endInTime(session: HttpSession): Promise<boolean> {
    const ended = await withTimeout(STORE_TIMEOUT, this.end(session))
    if (ended === 'late')
      this.#options.report({
        level: 'error',
        message: `The session store did not delete a session within ${STORE_TIMEOUT} ms`,
      })
    return ended === true
  }

  /** Ends all sessions in this process; they stay in the store. */
  async close(deadline: number): Promise<void> {
    this.#closed = true
    for (const session of this.#all.values()) this.#leave(session)
    if (this.#persistence !== undefined) await withTimeout(deadline, this.#persistence.settled())
  }

  #leave(session: HttpSession): void {
    this.#remove(session)
    session.leave()
  }

  #remove(session: HttpSession): void {
    // Another one may have the same id: restored at the same time.
    if (this.#all.get(session.id) === session) this.#all.delete(session.id)
    if (this.#all.size > 0) return
    clearInterval(this.#timer)
    this.#timer = undefined
  }

  #sweep(): void {
    const since = Date.now() - this.#options.idleTimeout
    for (const session of this.#all.values()) {
      if (session.busy) continue
      if (session.superseded) this.#leave(session)
      else if (session.lastUsed < since) void this.end(session)
    }
  }

  /** Looks for a session of another process in the store. */
  #findStored(id: string, principal: Principal | undefined): Found | Promise<Found> {
    const persistence = this.#persistence
    if (persistence === undefined) return undefined
    // By principal too: one caller must not get the result of another.
    const key = JSON.stringify([id, principal?.id])
    const restoring = this.#restoring.get(key)
    if (restoring !== undefined) return restoring
    const stored = persistence.get(id)
    if (stored === undefined) return undefined
    if (this.#restoring.size >= this.#options.max) {
      if (stored instanceof Promise) void markHandled(stored)
      return 'unavailable'
    }
    const restored = this.#restore(persistence, id, stored, principal).finally(() =>
      this.#restoring.delete(key),
    )
    // Until then, no other request restores it as well.
    const found = this.#inTime(restored)
    this.#restoring.set(key, found)
    return found
  }

  async #inTime(restored: Promise<Found>): Promise<Found> {
    const { report } = this.#options
    try {
      const found = await withTimeout(STORE_TIMEOUT, restored)
      if (found !== 'late') return found
      const message = `A session was not restored within ${STORE_TIMEOUT} ms`
      report({ level: 'error', message })
    } catch (error) {
      report({ level: 'error', message: 'A session could not be restored from its store', error })
    }
    return 'unavailable'
  }

  async #restore(
    persistence: SessionPersistence,
    id: string,
    reading: StoredSession | Promise<StoredSession | undefined>,
    principal: Principal | undefined,
  ): Promise<Found> {
    // A late result is not used: by then the session may have been restored and ended.
    const stored = reading instanceof Promise ? await withTimeout(STORE_TIMEOUT, reading) : reading
    if (stored === 'late') throw new Error(`"get" did not resolve within ${STORE_TIMEOUT} ms`)
    if (stored === undefined || stored.owner !== principal?.id) return undefined
    if (!(await persistence.matches(id, stored))) return undefined
    const { owner, initialize } = stored
    if (!this.makeRoom(owner, initializeBytes(initialize))) return 'unavailable'
    const generation = nextGeneration(stored.generation)
    const session = this.#options.make({ id, owner, initialize, generation })
    const restored = await withTimeout(STORE_TIMEOUT, session.restore(stored, principal))
    if (restored === 'late') {
      session.leave()
      throw new Error(`"initialize" or a message after it got no response in ${STORE_TIMEOUT} ms`)
    }
    if (!restored) {
      // The server has other capabilities than this client was told: it must initialize again.
      await this.endInTime(session)
      return undefined
    }
    const other = this.#all.get(id)
    if (other !== undefined || this.#closed) {
      session.leave()
      return other ?? 'unavailable'
    }
    // Again: other sessions may have been added in the meantime.
    if (!this.makeRoom(owner, 0)) {
      session.leave()
      return 'unavailable'
    }
    this.add(session)
    this.store(session)
    this.#options.report({ level: 'info', message: 'A session of another process was restored' })
    return session
  }
}
