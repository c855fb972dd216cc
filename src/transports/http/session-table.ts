import { LazyHeap } from './lazy-heap.js'

/** What is known of a session. */
interface Listed {
  readonly id: string
  readonly owner: string | undefined
  /** By the clock of `performance.now`. */
  readonly lastUsed: number
  /** Whether its client has a connection open. */
  readonly busy: boolean
  /** It is in use now. */
  used(): void
}

/** The sessions of one principal; the one that was not used for longest comes first. */
class Own<Session extends Listed> extends LazyHeap<Session> {
  constructor() {
    super(({ lastUsed }) => lastUsed)
  }

  get lastUsed(): number {
    return this.first?.lastUsed ?? Infinity
  }
}

/** The sessions of this process, by id and by the principal that owns them. */
export class SessionTable<Session extends Listed> {
  readonly #byId = new Map<string, Session>()
  readonly #byOwner = new Map<string | undefined, Own<Session>>()
  /** Those of principals with the same number of sessions, by that number. */
  readonly #byCount = new Map<number, LazyHeap<Own<Session>>>()

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
    const own = this.#byOwner.get(owner) ?? new Own<Session>()
    this.#byOwner.set(owner, own)
    this.#resize(own, () => own.add(session))
  }

  delete(session: Session): void {
    const { id, owner } = session
    // Another one may have the same id: restored at the same time.
    if (!this.has(session)) return
    this.#byId.delete(id)
    const own = this.#byOwner.get(owner)
    if (own === undefined) return
    this.#resize(own, () => own.delete(session))
    if (own.size === 0) this.#byOwner.delete(owner)
  }

  #resize(own: Own<Session>, change: () => void): void {
    const before = this.#byCount.get(own.size)
    before?.delete(own)
    if (before?.size === 0) this.#byCount.delete(own.size)
    change()
    if (own.size === 0) return
    const after =
      this.#byCount.get(own.size) ?? new LazyHeap<Own<Session>>(({ lastUsed }) => lastUsed)
    this.#byCount.set(own.size, after)
    after.add(own)
  }

  /**
   * The session to evict for a new one of `owner`, of those that were not used for `idle` milliseconds: of the principal
   * that has most, or if `ownOnly` of `owner`, the one that was not used for longest.
   */
  evictable(owner: string | undefined, idle: number, ownOnly: boolean): Session | undefined {
    const since = performance.now() - idle
    if (ownOnly) return idleOf(() => this.#byOwner.get(owner)?.first, since)
    let found: Session | undefined
    let most = 0
    for (const [count, principals] of this.#byCount) {
      if (count < most) continue
      const session = idleOf(() => principals.first?.first, since)
      if (session === undefined) continue
      found = session
      most = count
    }
    return found
  }
}

/** The first session that is not busy, if it was last used before then. */
function idleOf<Session extends Listed>(
  first: () => Session | undefined,
  since: number,
): Session | undefined {
  for (;;) {
    const session = first()
    if (session === undefined || session.lastUsed >= since) return undefined
    if (!session.busy) return session
    // It comes last from now on: otherwise each search would visit it again.
    session.used()
  }
}
