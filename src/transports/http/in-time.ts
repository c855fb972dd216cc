import { withTimeout } from '../../jsonrpc/deadline.js'
import { ignore } from '../../jsonrpc/hook.js'
import { onAbort } from '../../jsonrpc/on-abort.js'

/** The value of a promise; `late` if it takes longer than so many milliseconds, `aborted` as soon as the signal fires. */
export function inTime<Value>(
  milliseconds: number,
  signal: AbortSignal,
  promise: Promise<Value>,
): Promise<Value | 'late' | 'aborted'> {
  let unlisten: () => void = ignore
  const aborted = new Promise<'aborted'>((resolve) => {
    if (signal.aborted) resolve('aborted')
    else unlisten = onAbort(signal, () => resolve('aborted'))
  })
  return withTimeout(milliseconds, Promise.race([promise, aborted])).finally(() => unlisten())
}
