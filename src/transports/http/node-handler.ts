import type { Endpoint } from './endpoint.js'
import type { NodeRequest, NodeResponse } from './node-message.js'
import { inTurn } from './node-turns.js'
import { NodeContext, pathOf } from './node-context.js'
import type { UnsentResponses } from './unsent-responses.js'

/** A handler for HTTP servers of Node that other code has made: Express, Fastify, `node:http`. */
export interface NodeHandler {
  /** Answers a request. What is not for this handler is passed to `next`; without it, the answer is 404. */
  (request: NodeRequest, response: NodeResponse, next?: (error?: unknown) => void): void
  /** How many sessions there are. */
  readonly sessions: number
  /** How many responses are open: calls under way, and streams. */
  readonly open: number
  /** Takes no new work, and gives what is under way so many milliseconds (default 5000). Connections are left to their server. */
  close(deadline?: number): Promise<void>
}

export function nodeHandlerOf(
  endpoint: Endpoint,
  unread: UnsentResponses,
  drain: number,
): NodeHandler {
  const serve = inTurn((request: NodeRequest, response: NodeResponse) =>
    endpoint.handle(new NodeContext(request, response, unread)),
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
    // Other code has answered: there is nothing to serve.
    if (!response.headersSent) serve(request, response)
  }
  let closing: Promise<void> | undefined
  return Object.defineProperties(handle, {
    sessions: { get: () => endpoint.sessions },
    open: { get: () => endpoint.open },
    close: { value: (deadline = drain) => (closing ??= endpoint.close(deadline)) },
  }) as NodeHandler // with these members it is one
}
