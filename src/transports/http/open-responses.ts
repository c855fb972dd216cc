import { unref } from '../../runtime.js'

/** An open response that must not stay silent. */
export interface KeptAlive {
  /** Called once per interval: sends a sign of life, or disconnects a client that does not read. */
  onKeepAlive(): void
}

export interface OpenResponsesOptions {
  maxOpenResponses: number
  /** Milliseconds without output after which an open response sends a keep-alive; 0 turns it off. */
  keepAlive: number
}

/**
 * The responses that are not complete: calls in progress, and streams. Requests beyond the limit get 503. One timer keeps
 * all of them alive; none runs while there are none.
 */
export class OpenResponses {
  readonly #options: OpenResponsesOptions
  readonly #failed: (error: unknown) => void
  /** By what identifies a response: its `HttpContext`, or an exchange that has none of its own. */
  readonly #open = new Map<object, KeptAlive | undefined>()
  #timer: ReturnType<typeof setInterval> | undefined

  constructor(options: OpenResponsesOptions, failed: (error: unknown) => void) {
    this.#options = options
    this.#failed = failed
  }

  get count(): number {
    return this.#open.size
  }

  get full(): boolean {
    return this.#open.size >= this.#options.maxOpenResponses
  }

  /** A response that is there already gets the new `kept`. */
  add(response: object, kept?: KeptAlive): void {
    this.#open.set(response, kept)
    const { keepAlive } = this.#options
    if (this.#timer !== undefined || keepAlive === 0) return
    this.#timer = unref(setInterval(() => this.#keepAlive(), keepAlive))
  }

  remove(response: object): void {
    this.#open.delete(response)
    if (this.#open.size > 0) return
    clearInterval(this.#timer)
    this.#timer = undefined
  }

  #keepAlive(): void {
    // A copy: a response that becomes a stream is replaced, and its stream must not be visited in the same interval.
    for (const [response, kept] of Array.from(this.#open)) {
      if (this.#open.get(response) !== kept) continue
      try {
        kept?.onKeepAlive()
      } catch (error) {
        this.#failed(error)
      }
    }
  }
}
