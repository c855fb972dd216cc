/** What is known of a session. */
interface Listed {
  readonly id: string
  readonly owner: string | undefined
  /** By the clock of `performance.now`. */
  readonly lastUsed: number
  /** Whether its client has a connection open. */
  readonly busy: boolean
}

/** Milliseconds until sessions are searched again for one to evict for the same principal. */
const SEARCH_INTERVAL = 100

/** The sessions of this process, by id and by the principal that owns them. */
export class SessionTable<Session extends Listed> {
  readonly #byId = new Map<string, Session>()
  readonly #byOwner = new Map<string | undefined, Set<Session>>()
  /** The principals for which no session was found to evict; undefined for all that have no session. */
  readonly #refused = new Set<string | undefined>()
  #refusedUntil = 0

  get size(): number {
    return this.#byId.size
  }

  values(): Iterable<Session> {
    return this.#byId.values()
  }

  get(id: string): Session | undefined {
    return this.#byId.get(id)
  }

  has(session: Session): boolean {
    return this.#byId.get(session.id) === session
  }

  /** Number of sessions of a principal. */
  count(owner: string | undefined): number {
    return this.#byOwner.get(owner)?.size ?? 0
  }

  add(session: Session): void {
    const { id, owner } = session
    this.#byId.set(id, session)
    const own = this.#byOwner.get(owner)
    if (own === undefined) this.#byOwner.set(owner, new Set([session]))
    else own.add(session)
  }

  delete(session: Session): void {
    const { id, owner } = session
    // Another one may have the same id: restored at the same time.
    if (!this.has(session)) return
    this.#byId.delete(id)
    const own = this.#byOwner.get(owner)
    own?.delete(session)
    if (own?.size === 0) this.#byOwner.delete(owner)
  }

  /**
   * The session to evict for a new one of `owner`, of those that were not used for `idle` milliseconds: of the principal
   * that has most, or if `ownOnly` of `owner`, the one that was not used for longest.
   */
  evictable(owner: string | undefined, idle: number, ownOnly: boolean): Session | undefined {
    const count = this.count(owner)
    if (ownOnly && count === 0) return undefined
    const now = performance.now()
    if (now >= this.#refusedUntil) {
      this.#refused.clear()
      this.#refusedUntil = now + SEARCH_INTERVAL
    }
    const refused = count === 0 ? undefined : owner
    if (this.#refused.has(refused)) return undefined
    let found: Session | undefined
    let most = 0
    for (const [each, sessions] of this.#byOwner) {
      if (sessions.size < most || (ownOnly && each !== owner)) continue
      for (const session of sessions) {
        const isBetter =
          found === undefined || sessions.size > most || session.lastUsed < found.lastUsed
        // `busy` last: it visits all requests and streams of the session.
        if (!isBetter || session.lastUsed > now - idle || session.busy) continue
        found = session
        most = sessions.size
      }
    }
    if (found === undefined) this.#refused.add(refused)
    return found
  }
}
