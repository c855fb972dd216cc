import { nextTurn } from '../runtime.js'
import { ToolError } from './tool-error.js'

/** Lets `max` callers run at the same time; others wait in order, in a bounded queue. */
export class Semaphore {
  readonly #max: number
  readonly #queue: number
  #inside = 0
  readonly #waiting = new Set<() => void>()

  constructor(max: number, queue: number) {
    this.#max = max
    this.#queue = queue
  }

  /** Enters if there is room; does not wait. */
  tryEnter(): boolean {
    if (this.#inside >= this.#max) return false
    this.#inside++
    return true
  }

  /** Throws if the queue is full. */
  checkQueue(name: string): void {
    if (this.#waiting.size < this.#queue) return
    throw new ToolError(
      `${name} is busy: ${this.#inside} calls are running and ${this.#waiting.size} are waiting. Try again later`,
    )
  }

  /** Resolves when there is room; rejects when the signal fires first. */
  enter(signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const admit = () => {
        signal.removeEventListener('abort', giveUp)
        resolve()
      }
      const giveUp = () => {
        // Its turn may have come already.
        if (!this.#waiting.delete(admit)) this.leave()
        reject(signal.reason as Error)
      }
      this.#waiting.add(admit)
      if (signal.aborted) return giveUp()
      signal.addEventListener('abort', giveUp, { once: true })
    })
  }

  leave(): void {
    const [next] = this.#waiting
    if (next === undefined) {
      this.#inside--
      return
    }
    this.#waiting.delete(next)
    // Not at once: calls that end synchronously would keep the process from everybody else.
    nextTurn(next)
  }
}
