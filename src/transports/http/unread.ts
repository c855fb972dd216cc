import type { ServerResponse } from 'node:http'

/** Less than this is not worth being counted. */
const SMALL = 64 * 1024

/**
 * Answers that have been given and not yet read. So many bytes of them may wait,
 * whoever does not read them; beyond that the oldest is cut off. The newest
 * never is: its client has had no time.
 */
export class Unread {
  readonly #max: number
  readonly #waiting = new Map<ServerResponse, number>()
  #size = 0

  constructor(max: number) {
    this.#max = max
  }

  /** To be called when all of an answer was written. */
  add(response: ServerResponse): void {
    const size = response.writableLength
    if (size < SMALL) return
    this.#waiting.set(response, size)
    this.#size += size
    response.once('close', () => this.#remove(response))
    for (const oldest of this.#waiting.keys()) {
      if (this.#size <= this.#max || oldest === response) break
      this.#remove(oldest)
      oldest.destroy()
    }
  }

  #remove(response: ServerResponse): void {
    this.#size -= this.#waiting.get(response) ?? 0
    this.#waiting.delete(response)
  }
}
