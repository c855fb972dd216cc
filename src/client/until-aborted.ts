import { abortError } from '../jsonrpc/errors.js'

/** What the promise becomes; rejects as soon as the signal fires, also where the promise never settles. */
export async function untilAborted<Value>(
  promise: Value | PromiseLike<Value>,
  signal: AbortSignal,
): Promise<Value> {
  const settled = new AbortController()
  const aborted = new Promise<never>((_, reject) => {
    const abort = () => reject(abortError(signal.reason))
    if (signal.aborted) abort()
    else signal.addEventListener('abort', abort, { signal: settled.signal })
  })
  try {
    return await Promise.race([promise, aborted])
  } finally {
    settled.abort()
  }
}
