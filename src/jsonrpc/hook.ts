import { isThenable } from './message.js'

/**
 * Calls user code whose result is not waited for. What it throws, now or later, goes to `failed`;
 * it never reaches the caller, and never ends the process as an unhandled rejection.
 */
export function callHook(hook: () => unknown, failed: (error: unknown) => void): void {
  try {
    const returned = hook()
    if (isThenable(returned)) Promise.resolve(returned).catch(failed).catch(ignore)
  } catch (error) {
    try {
      failed(error)
    } catch {
      // There is nobody left to tell.
    }
  }
}

/** The same promise; a rejection that nobody handles does not end the process. */
export function handled<Value>(promise: Promise<Value>): Promise<Value> {
  promise.catch(ignore)
  return promise
}

/** Goes on with a value: at once where it is there, otherwise when it comes. */
export function andThen<Value, Next>(
  value: Value | Promise<Value>,
  use: (value: Value) => Next | Promise<Next>,
): Next | Promise<Next> {
  return value instanceof Promise ? value.then(use) : use(value)
}

export function ignore(): void {}
