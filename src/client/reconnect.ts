import { abortError } from '../jsonrpc/errors.js'
import { callHook, ignore } from '../jsonrpc/hook.js'
import { onAbort } from '../jsonrpc/on-abort.js'

export interface ReconnectOptions {
  /** Maximum attempts in a row (default 5). */
  attempts?: number
  /**
   * Milliseconds before the first attempt (default 500), doubled with each one and shortened at random by up to a half; or a
   * function of the number of the attempt, which begins with 1.
   */
  delay?: number | ((attempt: number) => number)
  /** Maximum milliseconds before an attempt (default 30 s). A connection that lasts longer starts a new count. */
  maxDelay?: number
}

const ATTEMPTS = 5
const DELAY = 500
const MAX_DELAY = 30_000
/** Longer timers fire immediately. */
const LONGEST_TIMER = 2 ** 31 - 1

/** Throws for values that are not numbers of the right kind. */
export function checkReconnect({ attempts, delay, maxDelay }: ReconnectOptions): void {
  if (attempts !== undefined && !(attempts > 0))
    throw new TypeError('connect: "attempts" of "reconnect" must be a positive number')
  if (delay !== undefined && typeof delay !== 'function' && !(delay >= 0))
    throw new TypeError('connect: "delay" of "reconnect" must be a number or a function')
  if (maxDelay !== undefined && !(maxDelay >= 0))
    throw new TypeError('connect: "maxDelay" of "reconnect" must be a number')
}

/** Counts attempts in a row, and says how long to wait before the next. */
export class Backoff {
  readonly #options: ReconnectOptions
  #attempts = 0
  #openedAt: number | undefined

  constructor(options: ReconnectOptions = {}) {
    this.#options = options
  }

  /** The connection is open. It counts as a success only if it lasts longer than `maxDelay`. */
  opened(): void {
    this.#openedAt = Date.now()
  }

  /** The next attempt: its number, from 1, and the milliseconds before it. Undefined after the last one. */
  next(): { attempt: number; delay: number } | undefined {
    const { attempts = ATTEMPTS, delay = DELAY, maxDelay = MAX_DELAY } = this.#options
    const lasted = this.#openedAt === undefined ? 0 : Date.now() - this.#openedAt
    this.#openedAt = undefined
    if (lasted > maxDelay) this.#attempts = 0
    if (this.#attempts >= attempts) return undefined
    const attempt = ++this.#attempts
    const given =
      typeof delay === 'function'
        ? (delayBy(delay, attempt) ?? jittered(DELAY, attempt, maxDelay))
        : jittered(delay, attempt, maxDelay)
    const valid = given > 0 ? Math.min(given, LONGEST_TIMER) : 0
    return { attempt, delay: valid }
  }
}

/** The number that the function of the user returns; undefined if it throws or returns something else. */
function delayBy(delay: (attempt: number) => unknown, attempt: number): number | undefined {
  let given: unknown
  callHook(() => (given = delay(attempt)), ignore)
  return typeof given === 'number' ? given : undefined
}

function jittered(first: number, attempt: number, maxDelay: number): number {
  const whole = Math.min(maxDelay, first * 2 ** (attempt - 1))
  return whole * (1 - Math.random() / 2)
}

/** Resolves after so many milliseconds; rejects when the signal fires. */
export function wait(milliseconds: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const abort = () => {
      clearTimeout(timer)
      reject(abortError(signal.reason))
    }
    let unlisten: () => void = ignore
    const timer = setTimeout(() => {
      unlisten()
      resolve()
    }, milliseconds)
    if (signal.aborted) abort()
    else unlisten = onAbort(signal, abort)
  })
}
