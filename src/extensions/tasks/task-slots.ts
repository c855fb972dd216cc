import { Budget } from '../../jsonrpc/budget.js'
import type { LogEntry } from '../../jsonrpc/log-entry.js'

/** Maximum bytes of handlers that still run although they no longer have a task; further ones keep their slots. */
const MAX_LEFT = 64 * 1024 * 1024

/** A run of a handler. */
interface Run {
  /** About how many bytes it keeps in memory. */
  readonly bytes: number
}

/**
 * Counts the handlers that run. One whose task was cancelled, has expired, was parked or is run by another process gives
 * its slot to others, also if it never returns: such handlers are limited by the bytes that they hold.
 */
export class TaskSlots {
  readonly #count: number
  readonly #report: (entry: LogEntry) => void
  /** Handlers that have a slot. */
  readonly #taken = new Set<Run>()
  /** Handlers without a task, and the bytes that they are charged. */
  readonly #left = new Map<Run, number>()
  readonly #budget: Budget
  /** Those that keep their slots until others have returned. */
  readonly #waiting = new Set<Run>()

  constructor(count: number, report: (entry: LogEntry) => void, maxLeft = MAX_LEFT) {
    this.#count = count
    this.#report = report
    this.#budget = new Budget(maxLeft)
  }

  get free(): number {
    return this.#count - this.#taken.size
  }

  take(run: Run): void {
    this.#taken.add(run)
  }

  /** A handler runs on without a task. */
  leave(run: Run): void {
    if (!this.#taken.has(run) || this.#waiting.has(run)) return
    if (this.#budget.full) return this.#keep(run)
    this.#taken.delete(run)
    this.#left.set(run, run.bytes)
    this.#budget.charge(run.bytes)
  }

  /** A handler has returned. */
  end(run: Run): void {
    this.#taken.delete(run)
    this.#waiting.delete(run)
    this.#budget.release(this.#left.get(run) ?? 0)
    this.#left.delete(run)
    for (const waiting of this.#waiting) {
      if (this.#budget.full) return
      this.#waiting.delete(waiting)
      this.leave(waiting)
    }
  }

  #keep(run: Run): void {
    this.#waiting.add(run)
    if (this.#waiting.size > 1) return
    const message = `${this.#left.size} handlers run although their tasks have ended, and hold ${this.#budget.max} bytes or more: until some of them return, fewer tasks are run; let tools stop when call.signal fires`
    this.#report({ level: 'error', message })
  }
}
