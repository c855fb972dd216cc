import { Budget } from '../../jsonrpc/budget.js'
import type { LogEntry } from '../../jsonrpc/log-entry.js'

/** Maximum bytes of handlers that still run although they no longer have a task; further ones keep their slots. */
const MAX_DETACHED = 64 * 1024 * 1024
/** Minimum milliseconds between two reports that slots are kept. */
const REPORT_INTERVAL = 60_000

/** A run of a handler. */
interface Run {
  /** About how many bytes it keeps in memory. */
  readonly bytes: number
  /** Whether it no longer has its task because it has parked it. */
  readonly parked: boolean
}

/**
 * Counts the handlers that run. One whose task was cancelled, has expired, was parked or is run by another process is
 * detached: it frees its slot, even if it never returns. Detached handlers are limited by the bytes that they hold, and
 * those whose tasks were not parked also to the number of slots.
 */
export class TaskSlots {
  readonly #count: number
  readonly #report: (entry: LogEntry) => void
  /** Handlers that have a slot. */
  readonly #taken = new Set<Run>()
  /** Handlers without a task, and the bytes that they are charged. */
  readonly #detached = new Map<Run, number>()
  /** Those of them whose tasks were not parked. */
  readonly #aborted = new Set<Run>()
  readonly #budget: Budget
  /** Those that keep their slots until others have returned. */
  readonly #waiting = new Set<Run>()
  #reported = Number.NEGATIVE_INFINITY

  constructor(count: number, report: (entry: LogEntry) => void, maxDetached = MAX_DETACHED) {
    this.#count = count
    this.#report = report
    this.#budget = new Budget(maxDetached)
  }

  get free(): number {
    return this.#count - this.#taken.size
  }

  take(run: Run): void {
    this.#taken.add(run)
  }

  /** A handler runs on without a task. */
  detach(run: Run): void {
    if (!this.#taken.has(run) || this.#waiting.has(run)) return
    if (!this.#mayDetach(run)) return this.#keep(run)
    this.#taken.delete(run)
    this.#detached.set(run, run.bytes)
    this.#budget.charge(run.bytes)
    if (!run.parked) this.#aborted.add(run)
  }

  /** A handler has returned. */
  end(run: Run): void {
    this.#taken.delete(run)
    this.#waiting.delete(run)
    this.#budget.release(this.#detached.get(run) ?? 0)
    this.#detached.delete(run)
    this.#aborted.delete(run)
    for (const waiting of this.#waiting) {
      if (!this.#mayDetach(waiting)) continue
      this.#waiting.delete(waiting)
      this.detach(waiting)
    }
  }

  #mayDetach({ parked }: Run): boolean {
    return !this.#budget.full && (parked || this.#aborted.size < this.#count)
  }

  #keep(run: Run): void {
    this.#waiting.add(run)
    const now = performance.now()
    if (now - this.#reported < REPORT_INTERVAL) return
    this.#reported = now
    const message = `${this.#detached.size} handlers are still running although their tasks have ended, so fewer tasks run until they return (limit: ${this.#count} handlers or ${this.#budget.max} bytes); stop the work of a tool when call.signal is aborted`
    this.#report({ level: 'warning', message })
  }
}
