import type { Endpoint } from './endpoint.js'
import type { NodeRequest, NodeResponse } from './node-message.js'
import { NodeContext, UNWRITTEN, type UnsentResponses, inTurn, pathOf } from './node-context.js'

/** A request handler for `node:http`, Express and Fastify. */
export interface NodeHandler {
  /** Serves a request. Requests for other paths are passed to `next`; without it, the response is 404. */
  (request: NodeRequest, response: NodeResponse, next?: (error?: unknown) => void): void
  /** Number of sessions. */
  readonly sessions: number
  /** Number of open responses: calls in progress, and streams. */
  readonly openResponses: number
  /** Refuses new requests, and gives those in progress `deadline` milliseconds (default 5000). Does not close connections. */
  close(deadline?: number): Promise<void>
}

export function nodeHandlerOf(
  endpoint: Endpoint,
  unsentResponses: UnsentResponses,
  drain: number,
): NodeHandler {
  const failed = (error: unknown) => endpoint.report({ level: 'error', message: UNWRITTEN, error })
  const serve = inTurn((request: NodeRequest, response: NodeResponse) =>
    endpoint.handle(new NodeContext(request, response, unsentResponses, true, failed)),
  )
  const handle = (
    request: NodeRequest,
    response: NodeResponse,
    next?: (error?: unknown) => void,
  ) => {
    if (!Array.isArray(request.rawHeaders) || typeof response.writeHead !== 'function')
      throw new TypeError(
        'nodeHandler: expected the request and response of Node; with Fastify, pass request.raw and reply.raw',
      )
    if (next !== undefined && !endpoint.serves(pathOf(request))) return next()
    // Other code has responded.
    if (!response.headersSent) serve(request, response)
  }
  let closing: Promise<void> | undefined
  return Object.defineProperties(handle, {
    sessions: { get: () => endpoint.sessions },
    openResponses: { get: () => endpoint.openResponses },
    close: { value: (deadline = drain) => (closing ??= endpoint.close(deadline)) },
  }) as NodeHandler // it has these members now
}
