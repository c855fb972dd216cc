import type { Budget } from '../../jsonrpc/budget.js'
import type { UnreadBody } from './http-context.js'

/** Bytes of the first buffer for several chunks. */
const MIN_CAPACITY = 4096
const EMPTY = new Uint8Array()

/**
 * A body that arrives in chunks. They are copied into one buffer: a chunk takes some 200 bytes beside its content, and
 * the client decides how many there are. The only chunk of a body is not copied.
 */
export class IncomingBody {
  readonly #limit: number
  readonly #expected: number
  readonly #budget: Budget
  #buffer: Uint8Array = EMPTY
  #size = 0

  /** `expected` is the header Content-Length; the buffer counts against `budget` until `release`. */
  constructor(limit: number, expected: string | undefined, budget: Budget) {
    this.#limit = limit
    this.#expected = Number(expected)
    this.#budget = budget
  }

  /** The bytes so far. */
  get bytes(): Uint8Array {
    return this.#size === this.#buffer.length ? this.#buffer : this.#buffer.subarray(0, this.#size)
  }

  /** Adds a chunk, or returns why the body is refused. */
  add(chunk: Uint8Array): UnreadBody['problem'] | undefined {
    const size = this.#size + chunk.length
    if (size > this.#limit) return 'too long'
    if (size > this.#buffer.length) {
      // In HTTP/2, a chunk may be a small part of its buffer.
      const isOnly = this.#size === 0 && 2 * chunk.length >= chunk.buffer.byteLength
      const capacity = isOnly ? size : this.#capacity(size)
      if (!this.#budget.take(capacity - this.#buffer.length)) return 'too much'
      const buffer = isOnly ? chunk : new Uint8Array(capacity)
      if (!isOnly) buffer.set(this.bytes)
      this.#buffer = buffer
    }
    if (this.#buffer !== chunk) this.#buffer.set(chunk, this.#size)
    this.#size = size
    return undefined
  }

  /** Twice the size, so that bytes are copied once or twice on average; not more than will come. */
  #capacity(size: number): number {
    const most = size <= this.#expected ? this.#expected : this.#limit
    return Math.min(most, Math.max(MIN_CAPACITY, 2 * size))
  }

  release(): void {
    this.#budget.release(this.#buffer.length)
    this.#buffer = EMPTY
    this.#size = 0
  }
}
