import { normalizeUri } from './uri.js'

/** Resources by their normalized URI, each with the spellings that the client has used: notifications repeat these. */
export class SubscribedUris {
  readonly #spellings = new Map<string, Set<string>>()
  #size = 0

  get size(): number {
    return this.#size
  }

  has(key: string): boolean {
    return this.#spellings.has(key)
  }

  keys(): Iterable<string> {
    return this.#spellings.keys()
  }

  spellings(key: string): Iterable<string> {
    return this.#spellings.get(key) ?? []
  }

  hasSpelling(uri: string): boolean {
    return this.#spellings.get(normalizeUri(uri).text)?.has(uri) ?? false
  }

  add(uri: string): void {
    const { text } = normalizeUri(uri)
    const known = this.#spellings.get(text)
    if (known?.has(uri) === true) return
    if (known === undefined) this.#spellings.set(text, new Set([uri]))
    else known.add(uri)
    this.#size++
  }

  /** Whether it was there. */
  delete(uri: string): boolean {
    const { text } = normalizeUri(uri)
    const known = this.#spellings.get(text)
    if (known?.delete(uri) !== true) return false
    this.#size--
    if (known.size === 0) this.#spellings.delete(text)
    return true
  }
}
