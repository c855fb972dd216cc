/** Where and when to resume a stream. */
export interface Cursor {
  id?: string
  /** Milliseconds, from the server's `retry`. */
  retry?: number
}

const DEFAULT_RETRY = 1000
const MAX_RETRY = 60_000
/** Longer timers fire immediately. */
const LONGEST_TIMER = 2 ** 31 - 1

/** Milliseconds until the next attempt, growing with each failure. Jitter only lengthens the server's `retry`. */
export function retryDelay({ retry = DEFAULT_RETRY }: Cursor, failures: number): number {
  const delay =
    failures === 0
      ? retry
      : Math.max(retry, Math.min(MAX_RETRY, DEFAULT_RETRY * 2 ** (failures - 1)))
  return Math.min(delay * (1 + Math.random() / 4), LONGEST_TIMER)
}

/** Whether a later attempt may succeed. */
export function isTemporary(status: number): boolean {
  return status === 408 || status === 429 || status >= 500
}

/** Resolves after a time; rejects when the signal fires. */
export function waitFor(milliseconds: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const abort = () => {
      clearTimeout(timer)
      reject(signal.reason instanceof Error ? signal.reason : new Error('aborted'))
    }
    const timer = setTimeout(() => {
      signal.removeEventListener('abort', abort)
      resolve()
    }, milliseconds)
    if (signal.aborted) abort()
    else signal.addEventListener('abort', abort, { once: true })
  })
}
