import { ignore } from '../../../jsonrpc/hook.js'
import { onAbort } from '../../../jsonrpc/on-abort.js'

/** What the promise becomes; rejects when the signal fires, even if the promise never settles. */
export function untilAborted<Value>(
  promise: PromiseLike<Value>,
  signal: AbortSignal,
): Promise<Value> {
  return new Promise((resolve, reject) => {
    const abort = () => reject(new Error('The request was aborted'))
    let settled: () => void = ignore
    promise.then(
      (value) => (settled(), resolve(value)),
      (error: unknown) => (settled(), reject(error)),
    )
    if (signal.aborted) abort()
    else settled = onAbort(signal, abort)
  })
}

/** Resolves after a time; rejects when the signal fires. */
export function waitFor(milliseconds: number, signal: AbortSignal): Promise<void> {
  let timer: ReturnType<typeof setTimeout>
  const waited = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, milliseconds)
  })
  return untilAborted(waited, signal).finally(() => clearTimeout(timer))
}

/** Runs something with a signal that fires after a time. */
export async function withTimeout<Value>(
  milliseconds: number,
  run: (signal: AbortSignal) => Promise<Value>,
): Promise<Value> {
  const controller = new AbortController()
  const timer = setTimeout(() => controller.abort(), milliseconds)
  try {
    return await run(controller.signal)
  } finally {
    clearTimeout(timer)
  }
}
