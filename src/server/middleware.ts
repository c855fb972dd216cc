import type { Params } from '../jsonrpc/message.js'
import type { Call } from './call.js'

/** Any request being served, before its method looks at it. */
export interface MethodCall extends Call {
  readonly method: string
  readonly params: Params
}

/** A result in the newest shape; older revisions are served what they know of it. */
export type Result = Readonly<Record<string, unknown>>

/**
 * Stands around every method. `next()` serves the request; what is returned is
 * the answer, what is thrown is an error. Whoever does not call `next` answers alone.
 */
export type Middleware = (call: MethodCall, next: () => Promise<Result>) => Result | Promise<Result>

/** Serves a request through all of them, the first one outermost. */
export async function through(chain: readonly Middleware[], call: MethodCall, serve: () => object | Promise<object>): Promise<object> {
  const [first, ...rest] = chain
  if (first === undefined) return await serve()
  let used = false
  const result: unknown = await first(call, async () => {
    if (used) throw new TypeError(`next() was called twice for one ${call.method}`)
    used = true
    return (await through(rest, call, serve)) as Result // every result is an object of JSON
  })
  if (typeof result === 'object' && result !== null) return result
  throw new TypeError(`A middleware returned no result for ${call.method}; return what next() gives`)
}
