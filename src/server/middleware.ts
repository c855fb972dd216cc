import { markHandled } from '../jsonrpc/hook.js'
import { type Params, isThenable } from '../jsonrpc/message.js'
import type { Call } from './call.js'

/** A request, as a middleware sees it. */
export interface MethodCall extends Call {
  readonly method: string
  readonly params: Params
}

/** A result in the shape of the newest revision; it is projected for older ones. */
export type Result = Readonly<Record<string, unknown>>

/**
 * Wraps every method. `next()` serves the request, and may return a promise.
 * The return value is the result; what is thrown becomes an error. A middleware
 * that does not call `next` answers by itself.
 */
export type Middleware = (
  call: MethodCall,
  next: () => Result | Promise<Result>,
) => Result | Promise<Result>

/** Serves a request through all middleware, the first one outermost. Synchronous if all of them are. */
export function runMiddleware(
  chain: readonly Middleware[],
  call: MethodCall,
  serve: () => object | Promise<object>,
): object | Promise<object> {
  const [first, ...rest] = chain
  if (first === undefined) return serve()
  let used = false
  const given: unknown = first(call, () => {
    if (used) throw new TypeError(`next() was called twice for one ${call.method}`)
    used = true
    const served = runMiddleware(rest, call, serve) as Result | Promise<Result> // every result is an object of JSON
    // A middleware that does not wait for it must not make its failure an unhandled rejection.
    return served instanceof Promise ? markHandled(served) : served
  })
  return isThenable(given)
    ? Promise.resolve(given).then((result) => resultOf(result, call))
    : resultOf(given, call)
}

function resultOf(result: unknown, { method }: MethodCall): object {
  if (typeof result === 'object' && result !== null) return result
  throw new TypeError(`A middleware returned no result for ${method}; return the result of next()`)
}
