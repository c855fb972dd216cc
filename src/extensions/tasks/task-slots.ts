import { Budget } from '../../jsonrpc/budget.js'
import type { LogEntry } from '../../jsonrpc/log-entry.js'
import type { ClaimShares } from '../../stores/task-store.js'
import { ANYBODY } from './task-id.js'

/** Maximum bytes of handlers that still run although they no longer have a task; further ones keep their slots. */
const MAX_DETACHED = 64 * 1024 * 1024
/** Maximum bytes of handlers that have a slot: while they hold more, no further one starts. */
const MAX_RUNNING = 256 * 1024 * 1024
/** Minimum milliseconds between two reports that slots are kept. */
const REPORT_INTERVAL = 60_000

/** A run of a handler. */
interface Run {
  /** On whose behalf it runs. */
  readonly owner: string
  /** About how many bytes it keeps in memory. */
  readonly bytes: number
  /** Whether it no longer has its task because it has parked it. */
  readonly parked: boolean
}

/** What the runs of one owner take. */
interface Share {
  /** The most that it may take of slots, and of handlers without a task. */
  readonly most: number
  slots: number
  /** The bytes of handlers that have a slot. */
  readonly running: Budget
  /** Handlers without a task that was parked. */
  aborted: number
  /** The bytes of all handlers without a task. */
  readonly detached: Budget
}

/**
 * Counts the handlers that run, and what they hold. One whose task was cancelled, has expired, was parked or is run by another process is
 * detached: it frees its slot, even if it never returns. Detached handlers are limited by the bytes that they hold, and
 * those whose tasks were not parked also to the number of slots. One principal never has more than half of all that, but always one slot.
 */
export class TaskSlots {
  readonly #count: number
  readonly #report: (entry: LogEntry) => void
  readonly #shares = new Map<string, Share>()
  /** Slots that are taken or reserved. */
  #slots = 0
  /** Handlers that have a slot, and the bytes that they are charged. */
  readonly #taken = new Map<Run, number>()
  readonly #running: Budget
  /** Handlers without a task, and the bytes that they are charged. */
  readonly #detached = new Map<Run, number>()
  /** Those of them whose tasks were not parked. */
  readonly #aborted = new Set<Run>()
  readonly #budget: Budget
  /** Those that keep their slots until others have returned. */
  readonly #waiting = new Set<Run>()
  #reported = Number.NEGATIVE_INFINITY

  constructor(
    count: number,
    report: (entry: LogEntry) => void,
    { running = MAX_RUNNING, detached = MAX_DETACHED } = {},
  ) {
    this.#count = count
    this.#report = report
    this.#running = new Budget(running)
    this.#budget = new Budget(detached)
  }

  get free(): number {
    return this.#running.full ? 0 : this.#count - this.#slots
  }

  /** How many more tasks of an owner may run. */
  freeFor(owner: string): number {
    const { most, slots, running } = this.#shareOf(owner)
    return running.full ? 0 : Math.min(this.free, most - slots)
  }

  /** What is left of each principal's slots. */
  get shares(): ClaimShares {
    const taken = [...this.#shares].map(
      ([owner, { most, slots, running }]) => [owner, running.full ? most : slots] as const,
    )
    return { anybody: ANYBODY, most: this.#half, taken: new Map(taken) }
  }

  /** Keeps a slot for a run that will hold some bytes; returns a function that ends this. */
  reserve(owner: string, bytes: number): () => void {
    this.#add(owner, 1, bytes)
    let isReserved = true
    return () => {
      if (isReserved) this.#add(owner, -1, -bytes)
      isReserved = false
    }
  }

  take(run: Run): void {
    this.#taken.set(run, run.bytes)
    this.#add(run.owner, 1, run.bytes)
  }

  /** A handler holds more than before. */
  update(run: Run): void {
    const charged = this.#taken.get(run)
    if (charged === undefined) return
    this.#taken.set(run, run.bytes)
    this.#add(run.owner, 0, run.bytes - charged)
  }

  /** A handler runs on without a task. */
  detach(run: Run): void {
    if (!this.#taken.has(run) || this.#waiting.has(run)) return
    const share = this.#shareOf(run.owner)
    if (!this.#mayDetach(run, share)) return this.#keep(run)
    this.#detached.set(run, run.bytes)
    share.detached.charge(run.bytes)
    if (!run.parked) {
      this.#aborted.add(run)
      share.aborted++
    }
    this.#free(run)
  }

  /** A handler has returned. */
  end(run: Run): void {
    const share = this.#shareOf(run.owner)
    this.#waiting.delete(run)
    share.detached.release(this.#detached.get(run) ?? 0)
    this.#detached.delete(run)
    if (this.#aborted.delete(run)) share.aborted--
    this.#free(run)
    for (const waiting of this.#waiting) {
      if (!this.#mayDetach(waiting, this.#shareOf(waiting.owner))) continue
      this.#waiting.delete(waiting)
      this.detach(waiting)
    }
  }

  get #half(): number {
    return Math.max(1, Math.floor(this.#count / 2))
  }

  #shareOf(owner: string): Share {
    const known = this.#shares.get(owner)
    if (known !== undefined) return known
    const [most, part] = owner === ANYBODY ? [this.#count, 1] : [this.#half, 1 / 2]
    const running = new Budget(part * this.#running.max, this.#running)
    const detached = new Budget(part * this.#budget.max, this.#budget)
    return { most, slots: 0, running, aborted: 0, detached }
  }

  /** A handler that had a slot, if any, has none any more. */
  #free(run: Run): void {
    const bytes = this.#taken.get(run)
    if (this.#taken.delete(run)) this.#add(run.owner, -1, -(bytes ?? 0))
    else this.#add(run.owner, 0, 0)
  }

  /** Changes the share of an owner, which is remembered as long as there is one. */
  #add(owner: string, slots: number, bytes: number): void {
    const share = this.#shareOf(owner)
    this.#slots += slots
    share.slots += slots
    share.running.charge(bytes)
    if (share.slots + share.aborted + share.detached.used > 0) this.#shares.set(owner, share)
    else this.#shares.delete(owner)
  }

  #mayDetach({ parked }: Run, { aborted, most, detached }: Share): boolean {
    return !detached.full && (parked || (aborted < most && this.#aborted.size < this.#count))
  }

  #keep(run: Run): void {
    this.#waiting.add(run)
    const now = performance.now()
    if (now - this.#reported < REPORT_INTERVAL) return
    this.#reported = now
    const message = `${this.#detached.size} handlers are still running although their tasks have ended, so fewer tasks run until they return (limit: ${this.#count} handlers or ${this.#budget.max} bytes, half of that for one principal); stop the work of a tool when call.signal is aborted`
    this.#report({ level: 'warning', message })
  }
}
