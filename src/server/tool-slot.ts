import type { Semaphore } from './semaphore.js'

/** The share of one call in its tool's timeout and concurrency. While the call waits for its client, it takes neither. */
export class ToolSlot {
  readonly #semaphore: Semaphore | undefined
  #inside = false
  #ended = false
  /** How many questions are pending. */
  #pauses = 0
  #entering: Promise<void> | undefined
  #timer: ReturnType<typeof setTimeout> | undefined
  #begun = 0
  #left = 0
  #expired: () => void = () => {}

  constructor(semaphore: Semaphore | undefined) {
    this.#semaphore = semaphore
  }

  /** Calls `expired` after the timeout; pauses do not count. */
  limit(milliseconds: number, expired: () => void): void {
    this.#left = milliseconds
    this.#expired = expired
    this.#startClock()
  }

  /** Enters if there is room; does not wait. */
  tryEnter(): boolean {
    this.#inside = this.#semaphore?.tryEnter() ?? true
    return this.#inside
  }

  async enter(signal: AbortSignal): Promise<void> {
    await this.#semaphore?.enter(signal)
    this.#inside = true
  }

  /** Several questions may be pending; the call resumes after the last one. */
  pause(): void {
    this.#pauses++
    this.#stopClock()
    this.#leave()
  }

  async resume(signal: AbortSignal): Promise<void> {
    this.#pauses--
    if (!this.#isActive()) return
    this.#startClock()
    if (!this.#inside && (this.#entering !== undefined || !this.tryEnter())) {
      this.#entering ??= this.enter(signal).finally(() => (this.#entering = undefined))
      await this.#entering
    }
    // The call may have ended or paused meanwhile.
    if (!this.#isActive()) this.#leave()
  }

  end(): void {
    this.#ended = true
    this.#stopClock()
    this.#leave()
  }

  #isActive(): boolean {
    return !this.#ended && this.#pauses === 0
  }

  #startClock(): void {
    if (this.#left <= 0 || this.#timer !== undefined) return
    this.#begun = performance.now()
    this.#timer = setTimeout(this.#expired, this.#left)
  }

  #stopClock(): void {
    if (this.#timer === undefined) return
    clearTimeout(this.#timer)
    this.#timer = undefined
    this.#left = Math.max(1, this.#left - (performance.now() - this.#begun))
  }

  #leave(): void {
    if (!this.#inside) return
    this.#inside = false
    this.#semaphore?.leave()
  }
}
