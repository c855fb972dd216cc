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
  checkNames('httpHandler', options, HANDLER_NAMES)
  const { path, keepAlive = FETCH_KEEP_ALIVE } = options
  const endpoint = createStarted(server, { ...options, keepAlive }, path)
  const handle = (request: Request) => {
    const { context, response } = webContext(request)
    endpoint.handle(context)
    return response
  }
  return Object.assign(handle, { close: (deadline = DRAIN_TIMEOUT) => endpoint.close(deadline) })
}

/** A request handler for an existing Node HTTP server: `(req, res)` of `node:http`, an Express middleware, or with `request.raw` and `reply.raw` a Fastify handler. */
export function nodeHandler(server: Server, options: HttpHandlerOptions = {}): NodeHandler {
  checkNames('nodeHandler', options, HANDLER_NAMES)
  const { path, limits, log = standardError } = options
  if (path !== undefined) checkPath('nodeHandler', path)
  const endpoint = createStarted(server, { ...options, log }, path)
  const unsentResponses = new UnsentResponses(limits?.unsentBytes ?? UNSENT_BYTES)
  return nodeHandlerOf(endpoint, unsentResponses, DRAIN_TIMEOUT)
}

function createStarted(
  server: Server,
  options: HttpHandlerOptions,
  path: string | undefined,
): Endpoint {
  const endpoint = createEndpoint(server, options, { path })
  try {
    endpoint.start(undefined)
  } catch (error) {
    // Stops the extensions.
    void endpoint.close(0)
    throw error
  }
  return endpoint
}
