/** An answer, as far as waiting has to do with it. */
interface Given {
  readonly writableLength: number
  once(event: 'close', closed: () => void): unknown
  destroy(): unknown
}

/** Less than this is not worth being counted. */
export const WORTH_COUNTING = 64 * 1024

/**
 * Answers that have been given and not yet read. So many bytes of them may wait,
 * whoever does not read them; beyond that the oldest is cut off. The newest
 * never is: its client has had no time.
 */
export class Unread {
  readonly #max: number
  readonly #waiting = new Map<Given, number>()
  #size = 0

  constructor(max: number) {
    this.#max = max
  }

  /** To be called when all of an answer was written. */
  add(given: Given): void {
    const size = given.writableLength
    if (size < WORTH_COUNTING) return
    this.#waiting.set(given, size)
    this.#size += size
    given.once('close', () => this.#remove(given))
    for (const oldest of this.#waiting.keys()) {
      if (this.#size <= this.#max || oldest === given) break
      this.#remove(oldest)
      oldest.destroy()
    }
  }

  #remove(given: Given): void {
    this.#size -= this.#waiting.get(given) ?? 0
    this.#waiting.delete(given)
  }
}
