import { STEPS } from '../../jsonrpc/small-steps.js'
import { goOnLater } from '../../jsonrpc/turns.js'
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
  /** Whether some are still to be kept alive in this interval. */
  #visiting = false

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
    if (this.#visiting) return
    // A copy: a response that becomes a stream is replaced, and its stream must not be visited in the same interval.
    this.#visit(Array.from(this.#open).values())
  }

  /** In as many turns of the event loop as it takes. */
  #visit(left: IterableIterator<[object, KeptAlive | undefined]>): void {
    let steps = 0
    for (const [response, kept] of left) {
      if (this.#open.get(response) !== kept) continue
      try {
        kept?.onKeepAlive()
      } catch (error) {
        this.#failed(error)
      }
      this.#visiting = ++steps >= STEPS
      if (this.#visiting) return goOnLater(() => this.#visit(left))
    }
    this.#visiting = false
  }
}
