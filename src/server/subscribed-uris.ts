/** Notifies subscribers of changes to a resource, by its normalized URI. */
export interface ResourceChanges {
  subscribe(key: string, changed: (key: string) => void): void
  unsubscribe(key: string, changed: (key: string) => void): void
}

/** Resources by their normalized URI, each with the spellings that the client has used: notifications repeat these. */
export class SubscribedUris {
  readonly #spellings = new Map<string, Set<string>>()
  /** Of this object only: others may have subscribed to the same. */
  readonly #changed: (key: string) => void
  #changes: ResourceChanges | undefined
  #size = 0

  constructor(changes: ResourceChanges, changed: (key: string) => void) {
    this.#changes = changes
    this.#changed = changed
  }

  get size(): number {
    return this.#size
  }

  keys(): Iterable<string> {
    return this.#spellings.keys()
  }

  spellings(key: string): Iterable<string> {
    return this.#spellings.get(key) ?? []
  }

  hasSpelling(uri: string, key: string): boolean {
    return this.#spellings.get(key)?.has(uri) ?? false
  }

  add(uri: string, key: string): void {
    const known = this.#spellings.get(key)
    if (known?.has(uri) === true) return
    if (known === undefined) {
      this.#spellings.set(key, new Set([uri]))
      this.#changes?.subscribe(key, this.#changed)
    } else known.add(uri)
    this.#size++
  }

  /** Whether it was there. */
  delete(uri: string, key: string): boolean {
    const known = this.#spellings.get(key)
    if (known?.delete(uri) !== true) return false
    this.#size--
    if (known.size > 0) return true
    this.#spellings.delete(key)
    this.#changes?.unsubscribe(key, this.#changed)
    return true
  }

  /** From now on, nothing is told. */
  stop(): void {
    for (const key of this.#spellings.keys()) this.#changes?.unsubscribe(key, this.#changed)
    this.#changes = undefined
  }
}
