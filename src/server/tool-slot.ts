import type { Semaphore } from './semaphore.js'

/** The time and the place that one call of a tool takes. Waiting for an answer of the client, it takes neither. */
export class ToolSlot {
  readonly #semaphore: Semaphore | undefined
  #inside = false
  #over = false
  /** How many questions it waits for. */
  #pauses = 0
  #entering: Promise<void> | undefined
  #timer: ReturnType<typeof setTimeout> | undefined
  #begun = 0
  #left = 0
  #expired: () => void = () => {}

  constructor(semaphore: Semaphore | undefined) {
    this.#semaphore = semaphore
  }

  /** Calls when the time is over, less what was spent waiting. */
  limit(milliseconds: number, expired: () => void): void {
    this.#left = milliseconds
    this.#expired = expired
    this.#startClock()
  }

  /** Enters at once where there is room. */
  tryEnter(): boolean {
    this.#inside = this.#semaphore?.tryEnter() ?? true
    return this.#inside
  }

  async enter(signal: AbortSignal): Promise<void> {
    await this.#semaphore?.enter(signal)
    this.#inside = true
  }

  /** Several questions may be waited for at once: it goes on behind the last one. */
  pause(): void {
    this.#pauses++
    this.#stopClock()
    this.#leave()
  }

  async resume(signal: AbortSignal): Promise<void> {
    this.#pauses--
    if (!this.#takesPart()) return
    this.#startClock()
    if (!this.#inside && (this.#entering !== undefined || !this.tryEnter())) {
      this.#entering ??= this.enter(signal).finally(() => (this.#entering = undefined))
      await this.#entering
    }
    // It may have come to its end meanwhile, or wait again.
    if (!this.#takesPart()) this.#leave()
  }

  end(): void {
    this.#over = true
    this.#stopClock()
    this.#leave()
  }

  #takesPart(): boolean {
    return !this.#over && this.#pauses === 0
  }

  #startClock(): void {
    if (this.#left <= 0 || this.#timer !== undefined) return
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
    this.#semaphore?.leave()
  }
}
