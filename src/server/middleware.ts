import { handled } from '../jsonrpc/hook.js'
import { type Params, isThenable } from '../jsonrpc/message.js'
import type { Call } from './call.js'

/** Any request being served, before its method looks at it. */
export interface MethodCall extends Call {
  readonly method: string
  readonly params: Params
}

/** A result in the newest shape; older revisions are served what they know of it. */
export type Result = Readonly<Record<string, unknown>>

/**
 * Stands around every method. `next()` serves the request: await it, since it
 * may take its time. What is returned is the answer, what is thrown is an
 * error. Whoever does not call `next` answers alone.
 */
export type Middleware = (
  call: MethodCall,
  next: () => Result | Promise<Result>,
) => Result | Promise<Result>

/** Serves a request through all of them, the first one outermost. Where none of them waits, the answer does not either. */
export function through(
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
    const served = through(rest, call, serve) as Result | Promise<Result> // every result is an object of JSON
    // A middleware that does not wait for it must not make its failure an unhandled rejection.
    return served instanceof Promise ? handled(served) : served
  })
  return isThenable(given)
    ? Promise.resolve(given).then((result) => resultOf(result, call))
    : resultOf(given, call)
}

function resultOf(result: unknown, { method }: MethodCall): object {
  if (typeof result === 'object' && result !== null) return result
  throw new TypeError(`A middleware returned no result for ${method}; return what next() gives`)
}
