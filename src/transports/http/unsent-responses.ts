/** An answer, as far as waiting has to do with it. */
interface Given {
  readonly writableLength: number
  once(event: 'close', closed: () => void): unknown
  destroy(): unknown
}

/** Less than this is not worth being counted. */
export const WORTH_COUNTING = 64 * 1024

/**
 * Answers that are not yet read, and streams. So many bytes of them may wait,
 * whoever does not read them; beyond that the oldest is cut off. The newest
 * never is: its client has had no time.
 */
export class UnsentResponses {
  readonly #max: number
  readonly #waiting = new Map<Given, number>()
  #size = 0

  constructor(max: number) {
    this.#max = max
  }

  /** To be called when something was written. */
  add(given: Given): void {
    if (given.writableLength < WORTH_COUNTING) return
    if (!this.#waiting.has(given)) given.once('close', () => this.#remove(given))
    this.#measure(given)
    if (this.#size <= this.#max) return
    // Some of it may have been read since.
    for (const each of this.#waiting.keys()) this.#measure(each)
    for (const [oldest, size] of this.#waiting) {
      if (this.#size <= this.#max) return
      if (oldest === given || size < WORTH_COUNTING) continue
      this.#remove(oldest)
      oldest.destroy()
    }
  }

  #measure(given: Given): void {
    const size = given.writableLength
    this.#size += size - (this.#waiting.get(given) ?? 0)
    this.#waiting.set(given, size)
  }

  #remove(given: Given): void {
    this.#size -= this.#waiting.get(given) ?? 0
    this.#waiting.delete(given)
  }
}
