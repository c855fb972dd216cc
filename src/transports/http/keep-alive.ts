/** An answer that stays open. */
export interface KeptAlive {
  /** A moment of silence has passed: gives a sign of life, or ends it where nobody reads. */
  beat(): void
}

/** One timer for all answers that stay open; none while there are none. */
export class KeepAlive {
  readonly #interval: number
  readonly #all = new Set<KeptAlive>()
  #timer: ReturnType<typeof setInterval> | undefined

  /** `interval` in milliseconds; 0 for none. */
  constructor(interval: number) {
    this.#interval = interval
  }

  get size(): number {
    return this.#all.size
  }

  add(beating: KeptAlive): void {
    this.#all.add(beating)
    if (this.#timer !== undefined || this.#interval === 0) return
    this.#timer = setInterval(() => {
      for (const each of this.#all) each.beat()
    }, this.#interval)
    // Not every runtime has timers that let a process end.
    ;(this.#timer as { unref?: () => void }).unref?.()
  }

  remove(beating: KeptAlive): void {
    this.#all.delete(beating)
    if (this.#all.size > 0) return
    clearInterval(this.#timer)
    this.#timer = undefined
  }
}
