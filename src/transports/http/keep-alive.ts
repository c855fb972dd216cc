/** An open response that must not stay silent. */
export interface KeptAlive {
  /** Called once per interval: sends a sign of life, or disconnects a client that does not read. */
  onKeepAlive(): void
}

/** One timer for all open responses; none runs while there are none. */
export class KeepAlive {
  readonly #interval: number
  readonly #responses = new Set<KeptAlive>()
  #timer: ReturnType<typeof setInterval> | undefined

  /** `interval` in milliseconds; 0 turns it off. */
  constructor(interval: number) {
    this.#interval = interval
  }

  add(response: KeptAlive): void {
    if (this.#interval === 0) return
    this.#responses.add(response)
    if (this.#timer !== undefined) return
    this.#timer = setInterval(() => {
      // A copy: a response may add its stream, which is new and must not be visited in the same interval.
      for (const each of [...this.#responses]) if (this.#responses.has(each)) each.onKeepAlive()
    }, this.#interval)
    // Not in every runtime: lets the process exit.
    ;(this.#timer as { unref?: () => void }).unref?.()
  }

  remove(response: KeptAlive): void {
    this.#responses.delete(response)
    if (this.#responses.size > 0) return
    clearInterval(this.#timer)
    this.#timer = undefined
  }
}
