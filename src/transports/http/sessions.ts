import type { Principal } from '../../jsonrpc/channel.js'
import { markHandled } from '../../jsonrpc/hook.js'
import type { LogEntry } from '../../jsonrpc/log-entry.js'
import type { SessionLocation } from '../../stores/session-ownership.js'
import type { SessionStore } from '../../stores/session-store.js'
import type { Budgets } from './budgets.js'
import { Ownership, type SessionClaim } from './ownership.js'
import { nextGeneration, sessionNameOf } from './session-id.js'
import { SessionPersistence, type StoredSession } from './session-persistence.js'
import { type HttpSession, type Restored, type SessionFacts, sessionBytes } from './session.js'
import { SessionTable } from './session-table.js'
import { inSmallSteps } from '../../jsonrpc/small-steps.js'
import { withTimeout } from '../../jsonrpc/deadline.js'
import { inTime } from './in-time.js'
import { unref } from '../../runtime.js'

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

/** Another process that serves a session. */
export type OtherProcess = Extract<SessionLocation, { at: 'process' }>
/** The session, or the process that has it; `unavailable` if the store cannot tell whether there is one. */
export type Found = HttpSession | OtherProcess | 'unavailable' | undefined

/** Milliseconds for which a session that was used is not evicted for a new one. */
const MIN_IDLE = 60_000
/** Milliseconds that a client waits for the store to read or delete a session. */
const STORE_TIMEOUT = 10_000
/** Milliseconds that the response to `initialize` waits for the store. */
const INITIALIZE_TIMEOUT = 2000
/** Milliseconds to release the sessions of this process, at least: others wait for them until its lease ends. */
const RELEASE_TIMEOUT = 1000
/** How often a session is claimed that other processes claim at the same time. */
const CLAIM_ATTEMPTS = 5

/** The sessions of an endpoint. Ends idle ones: most clients never send DELETE. */
export class Sessions {
  readonly #options: SessionsOptions
  /** Undefined without a store. */
  readonly #persistence: SessionPersistence | undefined
  /** Undefined if no other process serves the same sessions at the same time. */
  readonly #ownership: Ownership | undefined
  readonly #all = new SessionTable<HttpSession>()
  /** Sessions that other processes have taken over, with calls in progress here. */
  readonly #retired = new Set<HttpSession>()
  /** By id and principal, the sessions that are being restored. */
  readonly #restoring = new Map<string, Promise<Found>>()
  #timer: ReturnType<typeof setInterval> | undefined
  /** Fires when `close` is called: requests that wait for their sessions are refused. */
  readonly #closing = new AbortController()
  /** Fires when nothing waits for the store any more. */
  readonly #closed = new AbortController()

  constructor(options: SessionsOptions) {
    this.#options = options
    const { store, idleTimeout, report } = options
    if (store === undefined) return
    this.#persistence = new SessionPersistence(store, idleTimeout, report)
    if (store.ownership !== undefined)
      this.#ownership = new Ownership(store.ownership, this.#persistence, report)
  }

  /** Begins to own sessions, if other processes serve some of them. `listening` is where this process can be reached. */
  start(listening: { scheme: string; port: number } | undefined): void {
    this.#ownership?.start(listening, () => void this.#confirmAll())
  }

  /** Whether responses that have changed the state of a session wait until it is stored. */
  get durable(): boolean {
    return this.#ownership !== undefined
  }

  /** Fires when `close` is called. */
  get closing(): AbortSignal {
    return this.#closing.signal
  }

  get size(): number {
    return this.#all.size
  }

  values(): Iterable<HttpSession> {
    return this.#all.values()
  }

  /** The session with this id, if it belongs to the principal. */
  find(id: string, principal: Principal | undefined): Found | Promise<Found> {
    const session = this.#all.get(id)
    if (this.closing.aborted) {
      // One with calls in progress is still here.
      if (session === undefined || session.owner !== principal?.id) return 'unavailable'
      return this.#ownership?.has(session) === false ? 'unavailable' : session
    }
    if (session === undefined) return this.#findStored(id, principal)
    if (session.owner !== principal?.id) return undefined
    if (this.#ownership !== undefined && !this.#ownership.has(session))
      return this.#once(id, principal, () => this.#confirm(session, principal))
    if (session.superseded && !session.busy) {
      this.#leave(session)
      return this.#findStored(id, principal)
    }
    if (!session.restored)
      return this.#once(id, principal, () => this.#continueRestoring(session, principal))
    // Renews its time to live in the store.
    if (this.#persistence !== undefined && this.#isDue(session)) void this.#persistence.set(session)
    return session
  }

  #isDue({ storedAt }: HttpSession): boolean {
    return performance.now() - storedAt > this.#options.idleTimeout / 4
  }

  /** Whether one more session with this memory fits, after evicting an idle one if necessary. */
  makeRoom(owner: string | undefined, bytes: number): boolean {
    const { budgets, max, others } = this.#options
    if (this.closing.aborted) return false
    const { retained } = budgets.of(owner)
    if (this.#all.size + others() < max && retained.fits(bytes)) return true
    // A principal with half of all sessions, or at the limit of its memory, evicts its own ones only.
    const hasShare = this.#all.count(owner) >= max / 2 || retained.used + bytes > retained.max
    const ownOnly = owner !== undefined && hasShare
    const idle = Math.min(MIN_IDLE, this.#options.idleTimeout)
    const evicted = this.#all.evictable(owner, idle, ownOnly)
    if (evicted === undefined) return false
    void this.end(evicted)
    return retained.fits(bytes)
  }

  add(session: HttpSession): void {
    this.#all.add(session)
    if (this.#timer !== undefined) return
    const interval = Math.max(10, Math.min(this.#options.idleTimeout / 2, MIN_IDLE))
    this.#timer = unref(setInterval(() => inSmallSteps(this.#sweep()), interval))
  }

  /**
   * Stores a new session, so that any process can serve its client. Resolves in time even if the store does not; with
   * false if no client may use the session, because another process could not find it.
   */
  begin(session: HttpSession): Promise<boolean> | undefined {
    if (this.#ownership !== undefined) return this.#ownership.begin(session)
    const stored = this.#persistence?.set(session)
    return stored === undefined
      ? undefined
      : withTimeout(INITIALIZE_TIMEOUT, stored).then(() => true)
  }

  /** Stores a session whose state has changed; resolves with whether it is stored. */
  store(session: HttpSession): Promise<boolean> {
    if (!this.#all.has(session)) return Promise.resolve(false)
    return this.#persistence?.set(session) ?? Promise.resolve(!session.superseded)
  }

  /** Ends a session; resolves with whether it was deleted from the store. */
  end(session: HttpSession): Promise<boolean> {
    this.#remove(session)
    session.end()
    return this.#persistence?.delete(session) ?? Promise.resolve(true)
  }

  /** Ends a session; resolves in time even if the store does not. */
  async endInTime(session: HttpSession): Promise<boolean> {
    const ended = await inTime(STORE_TIMEOUT, this.#closed.signal, this.end(session))
    if (ended === 'late')
      this.#options.report({
        level: 'error',
        message: `The session store did not delete a session within ${STORE_TIMEOUT} ms`,
      })
    return ended === true
  }

  /** Waits for the calls of each session, then ends it in this process; it stays in the store, for other processes. */
  async close(deadline: number): Promise<void> {
    this.#closing.abort()
    const end = performance.now() + deadline
    const left = () => Math.max(0, end - performance.now())
    await Promise.all([
      ...Array.from(this.#all.values(), (session) => this.#handOver(session, left)),
      ...Array.from(this.#retired, (session) => session.drain(left())),
    ])
    for (const session of [...this.#all.values(), ...this.#retired]) this.#leave(session)
    if (this.#persistence !== undefined) await withTimeout(left(), this.#persistence.settled())
    this.#closed.abort()
    if (this.#ownership !== undefined)
      await withTimeout(Math.max(left(), RELEASE_TIMEOUT), this.#ownership.close())
  }

  async #handOver(session: HttpSession, left: () => number): Promise<void> {
    // One that is being restored has no calls.
    if (session.restored) await session.drain(left())
    this.#leave(session)
    await this.#ownership?.release(session, left())
  }

  #leave(session: HttpSession): void {
    this.#remove(session)
    session.leave()
  }

  #remove(session: HttpSession): void {
    this.#all.delete(session)
    if (this.#all.size + this.#retired.size > 0) return
    clearInterval(this.#timer)
    this.#timer = undefined
  }

  /** In small steps: many sessions may end at the same time. */
  *#sweep(): Generator<undefined> {
    const since = performance.now() - this.#options.idleTimeout
    void this.#confirmAll()
    for (const session of this.#all.values()) {
      if (session.busy) {
        if (this.#persistence !== undefined && this.#isDue(session))
          void this.#persistence.set(session)
      } else if (session.superseded) this.#leave(session)
      else if (session.lastUsed < since) void this.end(session)
      yield
    }
    for (const session of this.#retired)
      if (!session.busy && session.lastUsed < since) this.#leave(session)
  }

  /** Looks for a session of another process in the store. */
  #findStored(id: string, principal: Principal | undefined): Found | Promise<Found> {
    const persistence = this.#persistence
    if (persistence === undefined) return undefined
    const ownership = this.#ownership
    if (ownership !== undefined)
      return sessionNameOf(id) === ''
        ? undefined
        : this.#once(id, principal, () => this.#findShared(ownership, persistence, id, principal))
    if (this.#restoring.has(keyOf(id, principal)))
      return this.#once(id, principal, () => Promise.resolve(undefined))
    const stored = persistence.get(id)
    if (stored === undefined) return undefined
    const found = this.#once(id, principal, () => this.#restore(persistence, id, stored, principal))
    if (found === 'unavailable' && stored instanceof Promise) void markHandled(stored)
    return found
  }

  /** Finds a session once for all requests that look for it at the same time. */
  #once(
    id: string,
    principal: Principal | undefined,
    find: () => Promise<Found>,
  ): Found | Promise<Found> {
    const key = keyOf(id, principal)
    const restoring = this.#restoring.get(key)
    if (restoring !== undefined) return restoring
    if (this.#restoring.size >= this.#options.max) return 'unavailable'
    // Until then, no other request restores it as well.
    const found = this.#inTime(find().finally(() => this.#restoring.delete(key)))
    this.#restoring.set(key, found)
    return found
  }

  /** Serves a session of this process that another one may have taken over. */
  async #confirm(session: HttpSession, principal: Principal | undefined): Promise<Found> {
    const ownership = this.#ownership
    const persistence = this.#persistence
    if (ownership === undefined || persistence === undefined) return session
    const confirmed = await ownership.confirm(session)
    if (confirmed === 'unavailable') return 'unavailable'
    if (confirmed === 'owned' && !session.closed)
      return session.restored ? session : this.#continueRestoring(session, principal)
    this.#retire(session)
    return this.#findShared(ownership, persistence, session.id, principal)
  }

  /** Looks for sessions that other processes have taken over while this one had no lease. */
  async #confirmAll(): Promise<void> {
    for (const session of this.#all.values()) {
      const isInitialized = session.protocolVersion !== undefined
      if (!isInitialized || this.#ownership?.has(session) !== false) continue
      const confirmed = await this.#ownership?.confirm(session).catch(() => 'unavailable')
      if (confirmed === 'lost') this.#retire(session)
    }
  }

  /** Another process has the session: its calls here are completed, its client reconnects there. */
  #retire(session: HttpSession): void {
    if (!session.closed) this.#retired.add(session)
    this.#remove(session)
    session.retire(() => {
      this.#retired.delete(session)
      this.#remove(session)
    })
  }

  /** Finds the process of a session, or takes over one that has none. */
  async #findShared(
    ownership: Ownership,
    persistence: SessionPersistence,
    id: string,
    principal: Principal | undefined,
  ): Promise<Found> {
    for (let attempt = 0; attempt < CLAIM_ATTEMPTS; attempt++) {
      const location = await ownership.locate(sessionNameOf(id))
      if (location.at === 'process') return location
      if (location.at === 'nowhere') return undefined
      const claim = ownership.claimOf(sessionNameOf(id), location.owner)
      const found = await this.#restore(persistence, id, persistence.get(id), principal, claim)
      if (found !== 'claimed') return found
    }
    return 'unavailable'
  }

  async #inTime(restored: Promise<Found>): Promise<Found> {
    const { report } = this.#options
    try {
      const found = await inTime(STORE_TIMEOUT, this.closing, restored)
      if (found === 'aborted') return 'unavailable'
      if (found !== 'late') return found
      const message = `A session was not restored within ${STORE_TIMEOUT} ms`
      report({ level: 'error', message })
    } catch (error) {
      report({ level: 'error', message: 'A session could not be restored from its store', error })
    }
    return 'unavailable'
  }

  #restore(
    persistence: SessionPersistence,
    id: string,
    reading: StoredSession | Promise<StoredSession | undefined>,
    principal: Principal | undefined,
  ): Promise<Found>
  /** `claimed`: another process was faster. */
  #restore(
    persistence: SessionPersistence,
    id: string,
    reading: StoredSession | undefined | Promise<StoredSession | undefined>,
    principal: Principal | undefined,
    claim: SessionClaim,
  ): Promise<Found | 'claimed'>
  async #restore(
    persistence: SessionPersistence,
    id: string,
    reading: StoredSession | undefined | Promise<StoredSession | undefined>,
    principal: Principal | undefined,
    claim?: SessionClaim,
  ): Promise<Found | 'claimed'> {
    // A late result is not used: by then the session may have been restored and ended.
    const stored =
      reading instanceof Promise ? await inTime(STORE_TIMEOUT, this.closing, reading) : reading
    if (stored === 'aborted') return 'unavailable'
    if (stored === 'late') throw new Error(`"get" did not resolve within ${STORE_TIMEOUT} ms`)
    if (stored === undefined || stored.owner !== principal?.id) return undefined
    if (!(await persistence.matches(id, stored))) return undefined
    const { owner, initialize } = stored
    if (!this.makeRoom(owner, sessionBytes(initialize))) return 'unavailable'
    const generation = nextGeneration(stored.generation)
    // From here on, the process that had it can store nothing.
    if (claim !== undefined && !(await claim.take(stored.generation, generation))) return 'claimed'
    const session = this.#options.make({ id, owner, initialize, generation })
    claim?.mark(session)
    return this.#addRestored(session, session.restore(stored, principal))
  }

  #continueRestoring(session: HttpSession, principal: Principal | undefined): Promise<Found> {
    return this.#addRestored(session, session.continueRestoring(principal))
  }

  /** Adds a restored session. One that is only partly restored is kept too: the next request continues at the message that failed. */
  async #addRestored(session: HttpSession, restoring: Promise<Restored>): Promise<Found> {
    const restored = await inTime(STORE_TIMEOUT, this.closing, restoring)
    if (restored === 'late') {
      await this.#abandon(session)
      throw new Error(`"initialize" or a message after it got no response in ${STORE_TIMEOUT} ms`)
    }
    if (restored === 'refused') {
      // The client was told of another server than this one: it must initialize again.
      await this.endInTime(session)
      return undefined
    }
    const added = this.#all.get(session.id)
    const isUnserved = restored === 'failed' || restored === 'aborted'
    if (isUnserved || session.closed || this.#mayNotAdd(session, added)) {
      await this.#abandon(session)
      return added !== session && added?.restored === true ? added : 'unavailable'
    }
    if (added === undefined) this.add(session)
    if (restored === 'incomplete') return 'unavailable'
    void this.store(session)
    this.#options.report({ level: 'info', message: 'A session of another process was restored' })
    return session
  }

  /** Checked again after restoring: meanwhile a session with this id, or too many others, may have been added. */
  #mayNotAdd(session: HttpSession, added: HttpSession | undefined): boolean {
    if (added !== undefined) return added !== session
    return !this.makeRoom(session.owner, 0)
  }

  /** Lets any process restore a session again. */
  async #abandon(session: HttpSession): Promise<void> {
    this.#leave(session)
    if (!this.#closed.signal.aborted) await this.#ownership?.release(session, RELEASE_TIMEOUT)
  }
}

/** By principal too: one caller must not get the result of another. */
function keyOf(id: string, principal: Principal | undefined): string {
  return JSON.stringify([id, principal?.id])
}
