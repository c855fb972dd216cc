/** What is needed of a Node response. */
interface Response {
  readonly writableLength: number
  once(event: 'close', closed: () => void): unknown
  destroy(): unknown
}

/** Responses with fewer unsent bytes are not counted. */
export const MIN_COUNTED_BYTES = 64 * 1024

/**
 * Bounds the unsent bytes of all responses and streams: beyond the limit the oldest responses are destroyed. Never the
 * newest: its client has had no time to read.
 */
export class UnsentResponses {
  readonly #max: number
  readonly #responses = new Map<Response, number>()
  #size = 0

  constructor(max: number) {
    this.#max = max
  }

  /** Called after each write. */
  add(response: Response): void {
    if (response.writableLength < MIN_COUNTED_BYTES) return
    if (!this.#responses.has(response)) response.once('close', () => this.#remove(response))
    this.#measure(response)
    if (this.#size <= this.#max) return
    // Some may have been sent since.
    for (const each of this.#responses.keys()) this.#measure(each)
    for (const [oldest, size] of this.#responses) {
      if (this.#size <= this.#max) return
      if (oldest === response || size < MIN_COUNTED_BYTES) continue
      this.#remove(oldest)
      oldest.destroy()
    }
  }

  #measure(response: Response): void {
    const size = response.writableLength
    this.#size += size - (this.#responses.get(response) ?? 0)
    this.#responses.set(response, size)
  }

  #remove(response: Response): void {
    this.#size -= this.#responses.get(response) ?? 0
    this.#responses.delete(response)
  }
}
