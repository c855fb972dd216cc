/** Counts responses that are not complete: calls in progress, and streams. Requests beyond the limit get 503. */
export class OpenResponses {
  readonly #max: number
  readonly #open = new Set<object>()

  constructor(max: number) {
    this.#max = max
  }

  get count(): number {
    return this.#open.size
  }

  get full(): boolean {
    return this.#open.size >= this.#max
  }

  /** `response` identifies it. Has no effect where it is counted already. */
  add(response: object): void {
    this.#open.add(response)
  }

  remove(response: object): void {
    this.#open.delete(response)
  }
}
