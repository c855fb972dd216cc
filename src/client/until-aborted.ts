import type { Deadline } from '../jsonrpc/deadline.js'
import { abortError } from '../jsonrpc/errors.js'
import { ignore } from '../jsonrpc/hook.js'
import { onAbort } from '../jsonrpc/on-abort.js'

/** What the promise becomes; rejects as soon as the signal fires, even if the promise never settles. */
export async function untilAborted<Value>(
  promise: Value | PromiseLike<Value>,
  signal: AbortSignal,
): Promise<Value> {
  let settled: () => void = ignore
  const aborted = new Promise<never>((_, reject) => {
    const abort = () => reject(abortError(signal.reason))
    if (signal.aborted) abort()
    else settled = onAbort(signal, abort)
  })
  try {
    return await Promise.race([promise, aborted])
  } finally {
    settled()
  }
}

/** What the promise becomes; rejects when the signal fires, or with the error of `late` when the time is over. */
export async function untilDeadline<Value>(
  promise: Promise<Value>,
  { deadline, signal }: { deadline: Deadline; signal?: AbortSignal | undefined },
  late: (when: string) => Error,
): Promise<Value> {
  const over = new AbortController()
  deadline.start((when) => over.abort(late(when)))
  try {
    const value = signal === undefined ? promise : untilAborted(promise, signal)
    return await untilAborted(value, over.signal)
  } finally {
    deadline.stop()
  }
}
