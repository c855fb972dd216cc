/** Contents of files that were verified, by URI and digest, up to a number of bytes; the oldest are removed first. */
export class SkillCache {
  readonly #maxBytes: number
  readonly #contents = new Map<string, Uint8Array>()
  #bytes = 0

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes
  }

  /** A copy, which the caller may change. */
  get(key: string): Uint8Array<ArrayBuffer> | undefined {
    const found = this.#contents.get(key)
    return found && new Uint8Array(found)
  }

  set(key: string, bytes: Uint8Array): void {
    if (bytes.length > this.#maxBytes || this.#contents.has(key)) return
    this.#contents.set(key, new Uint8Array(bytes))
    this.#bytes += bytes.length
    for (const [oldest, { length }] of this.#contents) {
      if (this.#bytes <= this.#maxBytes) return
      this.#contents.delete(oldest)
      this.#bytes -= length
    }
  }
}
