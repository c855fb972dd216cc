import { isThenable } from './message.js'

/**
 * Calls user code whose result is not awaited: a tap, a listener, a log. What it throws or rejects with goes to `failed`;
 * it never reaches the caller and never becomes an unhandled rejection, which would end the process.
 */
export function callHook(hook: () => unknown, failed: (error: unknown) => void): void {
  try {
    const returned = hook()
    if (isThenable(returned)) Promise.resolve(returned).catch(failed).catch(ignore)
  } catch (error) {
    try {
      failed(error)
    } catch {
      // The error handler fails too: nothing is left to report to.
    }
  }
}

/** The same promise, marked as handled: if it rejects and nobody awaits it, the process lives. */
export function markHandled<Value>(promise: Promise<Value>): Promise<Value> {
  promise.catch(ignore)
  return promise
}

/** Continues with a value: immediately if it is there, otherwise when its promise resolves. Saves a microtask on the hot path. */
export function andThen<Value, Next>(
  value: Value | Promise<Value>,
  use: (value: Value) => Next | Promise<Next>,
): Next | Promise<Next> {
  return value instanceof Promise ? value.then(use) : use(value)
}

export function ignore(): void {}
