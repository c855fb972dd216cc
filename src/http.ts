import { type Authorization, checkAuthorization } from './auth/authorization.js'
import { isLoopback } from './auth/loopback.js'
import { COMMON, type HttpLimits, type HttpOptions, UNREAD, endpointOf } from './http-endpoint.js'
import type { Tapped } from './jsonrpc/channel.js'
import { withCode } from './jsonrpc/errors.js'
import { checkNames, namesOf } from './schema/names.js'
import type { Server } from './server/server.js'
import type { EventStore } from './stores/event-store.js'
import type { SessionStore } from './stores/session-store.js'
import type { Listening } from './transports/http/node.js'
import { type NodeHandler, nodeHandlerOf } from './transports/http/node-handler.js'
import { UnsentResponses } from './transports/http/unsent-responses.js'
import { type HttpHandler, webContext } from './transports/http/web-context.js'
import { type ProcessLogLevel, type LogStream, standardError } from './transports/stdio-log.js'

const HANDLER = namesOf<HttpHandlerOptions>()(`${COMMON} path`)
const LISTEN = namesOf<ListenOptions>()(
  `${COMMON} port host path tls unauthenticated headTimeout requestTimeout stillTimeout signal`,
)

/** What a client in flight has, after the server was told to close. */
const DRAIN = 5000
/** Bun ends an answer on which nothing moves for ten seconds; between two signs of life there may be two of these. */
const FOREIGN_KEEP_ALIVE = 4000

export interface HttpHandlerOptions extends HttpOptions {
  /**
   * Serves only this path, and `/healthz`; by default every path is the endpoint. `nodeHandler` leaves all others,
   * `/healthz` too, to `next` where there is one.
   */
  path?: string
}

/** Serves clients by whatever brings the requests: Node, Bun, Deno, a worker. */
export function httpHandler(server: Server, options: HttpHandlerOptions = {}): HttpHandler {
  checkNames('httpHandler', options, HANDLER)
  const { path, keepAlive = FOREIGN_KEEP_ALIVE } = options
  const endpoint = endpointOf(server, { ...options, keepAlive }, path === undefined ? {} : { path })
  const handle = (request: Request) => {
    const { visit, response } = webContext(request)
    endpoint.handle(visit)
    return response
  }
  return Object.assign(handle, { close: (deadline = DRAIN) => endpoint.close(deadline) })
}

/**
 * Serves clients within an HTTP server of Node that other code has made: `(req, res)` of `node:http`, a middleware of
 * Express, and with `request.raw` and `reply.raw` a handler of Fastify.
 */
export function nodeHandler(server: Server, options: HttpHandlerOptions = {}): NodeHandler {
  checkNames('nodeHandler', options, HANDLER)
  const { path, limits, log = standardError } = options
  if (path !== undefined) checkPath('nodeHandler', path)
  const endpoint = endpointOf(server, { ...options, log }, path === undefined ? {} : { path })
  return nodeHandlerOf(endpoint, new UnsentResponses(limits?.unread ?? UNREAD), DRAIN)
}

export interface ListenOptions extends HttpOptions {
  /** Default 3000; 0 for any that is free. */
  port?: number
  /** The address to bind to (default 127.0.0.1: only this machine). */
  host?: string
  /** The path of the endpoint (default /mcp). */
  path?: string
  /** Serves https by this certificate and key, as PEM. */
  tls?: { cert: string | Uint8Array; key: string | Uint8Array }
  /** Serves other machines without knowing who calls. Without it, and without `auth`, only this machine is served. */
  unauthenticated?: boolean
  /** Milliseconds within which the head of a request must have come (default 10 s), and all of it (default 30 s). */
  headTimeout?: number
  requestTimeout?: number
  /** Milliseconds after which a connection is cut on which nothing moves (default 45 s, and three times `keepAlive` at least; 0 for never). */
  stillTimeout?: number
  /** Ends serving, as `close` does. */
  signal?: AbortSignal
}

/** Serves clients over HTTP on a port of this machine. */
export async function listen(server: Server, options: ListenOptions = {}): Promise<Listening> {
  checkNames('listen', options, LISTEN)
  const {
    port = 3000,
    host = '127.0.0.1',
    path = '/mcp',
    tls,
    auth,
    unauthenticated = false,
    signal,
    keepAlive = 15_000,
  } = options
  checkAuthorization(auth)
  const local = isLoopback(host)
  if (!local && auth === undefined && !unauthenticated) {
    throw withCode(
      'UNAUTHENTICATED_BIND',
      new TypeError(
        `listen: on ${host}, anyone who can reach this machine could call the server. Set "auth", or "unauthenticated: true" to allow that`,
      ),
    )
  }
  checkPath('listen', path)
  await auth?.prepare?.()
  const log = options.log ?? standardError
  const endpoint = endpointOf(server, { ...options, log }, { path, addresses: !local })
  const { NodeServer } = await import('./transports/http/node.js')
  const {
    requestTimeout = 30_000,
    headTimeout = requestTimeout === 0 ? 10_000 : Math.min(10_000, requestTimeout),
  } = options
  const { stillTimeout = keepAlive === 0 ? 0 : Math.max(45_000, 3 * keepAlive) } = options
  const node = await NodeServer.start({
    port,
    host,
    tls,
    headTimeout,
    requestTimeout,
    stillTimeout,
    maxUnread: options.limits?.unread ?? UNREAD,
    handle: (visit) => endpoint.handle(visit),
  })
  let closing: Promise<void> | undefined
  const close = (deadline = DRAIN) => {
    closing ??= (async () => {
      node.stop()
      await endpoint.close(deadline)
      await node.closed(deadline)
    })()
    return closing
  }
  signal?.addEventListener('abort', () => void close())
  if (signal?.aborted === true) void close()
  return {
    url: `${tls === undefined ? 'http' : 'https'}://${urlHost(host)}:${node.port}${path}`,
    port: node.port,
    get sessions() {
      return endpoint.sessions
    },
    get open() {
      return endpoint.open
    },
    close,
    [Symbol.asyncDispose]: () => close(),
  }
}

function checkPath(where: string, path: string): void {
  if (!path.startsWith('/'))
    throw new TypeError(`${where}: "path" must begin with a slash, not be ${JSON.stringify(path)}`)
}

function urlHost(host: string): string {
  if (host === '0.0.0.0' || host === '::') return 'localhost'
  return host.includes(':') ? `[${host}]` : host
}

export type {
  Authorization,
  HttpHandler,
  HttpLimits,
  HttpOptions,
  Listening,
  ProcessLogLevel,
  LogStream,
  NodeHandler,
  EventStore,
  SessionStore,
  Tapped,
}
export type { StoredEvent } from './stores/event-store.js'
export { MemoryEventStore, type MemoryEventStoreOptions } from './stores/event-store.js'
export { MemorySessionStore, type MemorySessionStoreOptions } from './stores/session-store.js'
export { type KnownToken, tokens } from './auth/tokens.js'
export { type OAuthOptions, oauth } from './auth/oauth.js'
export type { HttpHeaders, HttpRequest, Principal } from './jsonrpc/channel.js'
