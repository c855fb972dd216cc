import type { HttpContext } from './http-context.js'

/** Counts responses that are not complete: calls in progress, and streams. Requests beyond the limit get 503. */
export class OpenResponses {
  readonly #max: number
  readonly #open = new Set<HttpContext>()

  constructor(max: number) {
    this.#max = max
  }

  get count(): number {
    return this.#open.size
  }

  get full(): boolean {
    return this.#open.size >= this.#max
  }

  /** Has no effect on a response that is counted already. */
  add(context: HttpContext): void {
    this.#open.add(context)
  }

  remove(context: HttpContext): void {
    this.#open.delete(context)
  }
}
