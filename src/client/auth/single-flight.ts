import { onAbort } from '../../jsonrpc/on-abort.js'

/** Runs one function at a time; calls made while it runs share its outcome. */
export class SingleFlight<Result> {
  #running: Promise<Result> | undefined

  /** The signal only ends the waiting: the others still need the outcome. */
  async run(start: () => Promise<Result>, signal?: AbortSignal): Promise<Result> {
    this.#running ??= start().finally(() => {
      this.#running = undefined
    })
    const running = this.#running
    // If all callers have stopped waiting, the rejection must not be unhandled.
    running.catch(() => {})
    if (signal === undefined) return await running
    return await new Promise<Result>((resolve, reject) => {
      const abort = () => reject(signal.reason as Error) // what was given to abort()
      if (signal.aborted) return abort()
      running.then(resolve, reject).finally(onAbort(signal, abort))
    })
  }
}
