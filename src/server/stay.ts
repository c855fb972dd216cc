import type { Turnstile } from './turnstile.js'

/** The time and the place that one call of a tool takes. Waiting for an answer of the client, it takes neither. */
export class Stay {
  readonly #turnstile: Turnstile | undefined
  #inside = false
  #over = false
  #timer: ReturnType<typeof setTimeout> | undefined
  #begun = 0
  #left = 0
  #expired: () => void = () => {}

  constructor(turnstile: Turnstile | undefined) {
    this.#turnstile = turnstile
  }

  /** Calls when the time is over, less what was spent waiting. */
  limit(milliseconds: number, expired: () => void): void {
    this.#left = milliseconds
    this.#expired = expired
    this.#startClock()
  }

  /** Enters at once where there is room. */
  tryEnter(): boolean {
    this.#inside = this.#turnstile?.tryEnter() ?? true
    return this.#inside
  }

  async enter(signal: AbortSignal): Promise<void> {
    await this.#turnstile?.enter(signal)
    this.#inside = true
  }

  pause(): void {
    this.#stopClock()
    this.#leave()
  }

  async resume(signal: AbortSignal): Promise<void> {
    if (this.#over) return
    this.#startClock()
    if (!this.tryEnter()) await this.enter(signal)
    // It may have come to its end meanwhile.
    if (this.#isOver()) this.#leave()
  }

  end(): void {
    this.#over = true
    this.#stopClock()
    this.#leave()
  }

  #isOver(): boolean {
    return this.#over
  }

  #startClock(): void {
    if (this.#left <= 0) return
    this.#begun = Date.now()
    this.#timer = setTimeout(this.#expired, this.#left)
  }

  #stopClock(): void {
    if (this.#timer === undefined) return
    clearTimeout(this.#timer)
    this.#timer = undefined
    this.#left = Math.max(1, this.#left - (Date.now() - this.#begun))
  }

  #leave(): void {
    if (!this.#inside) return
    this.#inside = false
    this.#turnstile?.leave()
  }
}
