import type { ErrorCode } from './errors.js'

/** Rejects a request that got no response in time. */
export class TimeoutError extends Error {
  override readonly name = 'TimeoutError'
  readonly code: ErrorCode = 'TIMEOUT'
  /** Whether the other side may have executed the request: `no` if it was not sent. */
  readonly executed: 'no' | 'maybe'

  constructor(message: string, { executed = 'maybe' }: { executed?: 'no' | 'maybe' } = {}) {
    super(message)
    this.executed = executed
  }
}

export interface DeadlineOptions {
  /** Milliseconds without progress. */
  idle: number
  /** Milliseconds in total, regardless of progress. */
  total?: number
  /** Whether this side is still handling a request of the other side, which then cannot make progress. */
  busy?: () => boolean
}

/** `setTimeout` fires immediately for 2^31 ms and more, and for Infinity: these mean no limit here. */
function isTime(milliseconds: number | undefined): milliseconds is number {
  return milliseconds !== undefined && milliseconds < 2 ** 31
}

/** The value of a promise, or `late` if it takes longer than so many milliseconds. */
export async function withTimeout<Value>(
  milliseconds: number,
  promise: Promise<Value>,
): Promise<Value | 'late'> {
  if (!isTime(milliseconds)) return promise
  let timer: ReturnType<typeof setTimeout> | undefined
  const late = new Promise<'late'>((resolve) => {
    timer = setTimeout(resolve, milliseconds, 'late')
  })
  return Promise.race([promise, late]).finally(() => clearTimeout(timer))
}

/**
 * The timeouts of a request. An idle timeout, which progress notifications restart, and one for the total (specification:
 * basic/lifecycle, Timeouts). It may be started again for the next thing that the same call waits for; the time between
 * does not count.
 */
export class Deadline {
  readonly #options: DeadlineOptions
  #idle: ReturnType<typeof setTimeout> | undefined
  #total: ReturnType<typeof setTimeout> | undefined
  #expired: ((when: string) => void) | undefined
  #extended = false
  #startedAt = 0
  /** The milliseconds of earlier waits. */
  #waited = 0

  constructor(options: DeadlineOptions) {
    this.#options = options
  }

  /** `expired` is told which time has passed, such as `within 500 ms`. */
  start(expired: (when: string) => void): void {
    const { total } = this.#options
    this.#expired = expired
    this.#extended = false
    this.#startedAt = performance.now()
    this.#wait()
    if (!isTime(total)) return
    this.#total = setTimeout(
      () => this.#expire(`within ${total} ms in total`),
      Math.max(0, total - this.#waited),
    )
  }

  /** Restarts the idle timeout: the other side has made progress. */
  extend(): void {
    if (this.#expired === undefined) return
    this.#extended = true
    clearTimeout(this.#idle)
    this.#wait()
  }

  stop(): void {
    if (this.#expired === undefined) return
    this.#expired = undefined
    clearTimeout(this.#idle)
    clearTimeout(this.#total)
    this.#waited += performance.now() - this.#startedAt
  }

  #wait(): void {
    const { idle, busy } = this.#options
    if (!isTime(idle)) return
    this.#idle = setTimeout(() => {
      if (busy?.() === true) this.#wait()
      else
        this.#expire(
          this.#extended ? `within ${idle} ms of its last progress` : `within ${idle} ms`,
        )
    }, idle)
  }

  #expire(when: string): void {
    const expired = this.#expired
    this.stop()
    expired?.(when)
  }
}
