import { atCallOf } from '../runtime.js'
import { checkNames } from '../schema/names.js'
import type { Server } from '../server/server.js'
import type { Endpoint } from '../transports/http/endpoint.js'
import { type NodeHandler, nodeHandlerOf } from '../transports/http/node-handler.js'
import { UnsentResponses } from '../transports/http/node-context.js'
import { type HttpHandler, webContext } from '../transports/http/web-context.js'
import { standardError } from '../transports/stdio-log.js'
import { createEndpoint } from './create-endpoint.js'
import {
  DRAIN_TIMEOUT,
  HANDLER_NAMES,
  type HttpHandlerOptions,
  UNSENT_BYTES,
  checkPath,
} from './options.js'

/** Bun closes a response after ten seconds without output; up to two of these intervals may pass between two keep-alives. */
const FETCH_KEEP_ALIVE = 4000

/** A fetch handler that serves MCP: for Node, Bun, Deno and workers. */
export function httpHandler(server: Server, options: HttpHandlerOptions = {}): HttpHandler {
  const endpoint = atCallOf(httpHandler, () => {
    checkNames('httpHandler', options, HANDLER_NAMES)
    return createStarted(server, { ...options, keepAlive: options.keepAlive ?? FETCH_KEEP_ALIVE })
  })
  const handle = (request: Request) => {
    const { context, response } = webContext(request)
    endpoint.handle(context)
    return response
  }
  return Object.assign(handle, { close: (deadline = DRAIN_TIMEOUT) => endpoint.close(deadline) })
}

/** A request handler for an existing Node HTTP server: `(req, res)` of `node:http`, an Express middleware, or with `request.raw` and `reply.raw` a Fastify handler. */
export function nodeHandler(server: Server, options: HttpHandlerOptions = {}): NodeHandler {
  const endpoint = atCallOf(nodeHandler, () => {
    checkNames('nodeHandler', options, HANDLER_NAMES)
    const { path, log = standardError } = options
    if (path !== undefined) checkPath('nodeHandler', path)
    return createStarted(server, { ...options, log })
  })
  const unsentResponses = new UnsentResponses(options.limits?.unsentBytes ?? UNSENT_BYTES)
  return nodeHandlerOf(endpoint, unsentResponses, DRAIN_TIMEOUT)
}

function createStarted(server: Server, options: HttpHandlerOptions): Endpoint {
  const endpoint = createEndpoint(server, options, { path: options.path })
  try {
    endpoint.start(undefined)
  } catch (error) {
    // Stops the extensions.
    void endpoint.close(0)
    throw error
  }
  return endpoint
}
