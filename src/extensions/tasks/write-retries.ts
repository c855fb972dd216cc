import type { LogEntry } from '../../jsonrpc/log-entry.js'
import { onAbort } from '../../jsonrpc/on-abort.js'
import { StoreError, lossOf } from './task-records.js'

/** Milliseconds between two attempts to write; they double up to the slowest. */
const FIRST = 250
const SLOWEST = 10_000

/** Repeats writes to a store that fails, for example because the disk is full: the outcome of a task must not be lost. */
export class WriteRetries {
  readonly #stopping: AbortSignal
  readonly #report: (entry: LogEntry) => void

  /** Without a signal of its own, a write is tried again until the server stops. */
  constructor(stopping: AbortSignal, report: (entry: LogEntry) => void) {
    this.#stopping = stopping
    this.#report = report
  }

  /** Writes; while the store fails, tries again, and once more when the signal fires. Throws at once what `lossOf` finds. */
  async until<Value>(write: () => Promise<Value>, signal?: AbortSignal): Promise<Value> {
    try {
      return await write()
    } catch (error) {
      if (!(error instanceof StoreError)) throw error
      return await this.after(error, write, signal)
    }
  }

  /** The same after an attempt that has failed. */
  async after<Value>(
    error: StoreError,
    write: () => Promise<Value>,
    signal: AbortSignal = this.#stopping,
  ): Promise<Value> {
    throwLoss(error)
    const message = 'A task could not be stored; the write is retried'
    this.#report({ level: 'error', message, error: error.cause ?? error })
    for (let wait = FIRST; ; wait = Math.min(2 * wait, SLOWEST)) {
      const last = signal.aborted || this.#stopping.aborted
      if (!last) await pause(wait, [signal, this.#stopping])
      try {
        return await write()
      } catch (again) {
        throwLoss(again)
        if (last || !(again instanceof StoreError)) throw again
      }
    }
  }
}

/** Nothing is tried again if another process has taken the store over. */
function throwLoss(error: unknown): void {
  const loss = lossOf(error)
  if (loss !== undefined) throw loss
}

/** Waits, but not beyond the moment when one of the signals fires. */
function pause(milliseconds: number, signals: readonly AbortSignal[]): Promise<void> {
  return new Promise((resolve) => {
    const end = () => {
      clearTimeout(timer)
      for (const unlisten of listening) unlisten()
      resolve()
    }
    const timer = setTimeout(end, milliseconds)
    const listening = signals.map((signal) => onAbort(signal, end))
  })
}
