import { type Authorization, checkAuthorization } from './auth/authorization.js'
import { isLoopback } from './auth/loopback.js'
import { type Tapped, tap } from './jsonrpc/channel.js'
import { andThen } from './jsonrpc/hook.js'
import type { Report } from './jsonrpc/report.js'
import { identify } from './protocol/revisions/identify.js'
import { checkNames } from './schema/names.js'
import { seenBy } from './server/features/definition.js'
import { type Server, checkServer } from './server/server.js'
import { callerOf } from './server/connection.js'
import { Session } from './server/session.js'
import { MemoryReplay, type ReplayStore } from './stores/replay.js'
import type { SessionStore } from './stores/sessions.js'
import { Budgets } from './transports/http/budgets.js'
import { BearerGate } from './transports/http/bearer-gate.js'
import { Endpoint } from './transports/http/endpoint.js'
import type { Listening } from './transports/http/node.js'
import { type NodeHandler, nodeHandlerOf } from './transports/http/node-handler.js'
import { Unread } from './transports/http/unread.js'
import { type HttpHandler, webVisit } from './transports/http/web.js'
import { type LogLevel, type LogStream, logTo, standardError } from './transports/stdio-log.js'

export interface HttpLimits {
  /** The longest body of a request, in bytes (default 4 MiB). */
  body?: number
  /** How many bytes of requests may be held that have not come to their end (default 64 MiB); more are told 503. */
  bodies?: number
  /** The deepest nesting of a message (default 512). */
  depth?: number
  /** How many answers may be open at once: calls under way, and streams (default 20,000). */
  open?: number
  /** How many bytes may wait for a client that does not read (default 1 MiB). */
  waiting?: number
  /** How many bytes of answers and streams may wait to be read, of all clients, with `listen` and `nodeHandler` (default 256 MiB); the oldest are cut off. */
  unread?: number
  /** How much memory requests in progress may hold, in bytes (default 128 MiB); more requests get 503. Counted is the text of each, and what was parsed from it. */
  pending?: number
  /** The same of one principal, or without `auth` of one session (default: half of `pending`). */
  pendingPerClient?: number
  /** How much memory sessions and subscriptions may hold, in bytes (default 64 MiB). Then `initialize` gets 503, and subscriptions are refused. */
  retained?: number
  /** The same of one principal (default: half of `retained`). */
  retainedPerPrincipal?: number
  /** The same of one session, or of one `subscriptions/listen` (default 2 MiB). */
  retainedPerSession?: number
  /** How many sessions there may be (default 10,000). */
  sessions?: number
  /** Milliseconds after which a session ends that nobody uses (default 30 minutes). */
  idle?: number
}

export interface HttpOptions {
  /** Names by which the server may be called, such as `mcp.example.com`, beside `localhost`; `any` turns the check off. */
  hosts?: readonly string[] | 'any'
  /** Web pages that may call, as origins such as `https://app.example.com`. They are also told so (CORS). */
  origins?: readonly string[]
  /** Who may call: `tokens(…)`, `oauth(…)`, or one of your own. */
  auth?: Authorization
  /** How much of everything there may be: see below. */
  limits?: HttpLimits
  /** Milliseconds of silence after which an open answer shows that it lives (default 15 s, with `httpHandler` 4 s; 0 for never). */
  keepAlive?: number
  /** Milliseconds after which clients come back for a stream that was let go (default 1 s). */
  retry?: number
  /** The name of this process among others behind a load balancer: what the ids of its sessions begin with, and a dot. */
  node?: string
  /** Where the events of sessions are kept for clients whose connection broke (default: in memory, 64 MiB). */
  replay?: ReplayStore
  /** Where sessions are kept, to be taken up by a process that does not have them (default: nowhere). */
  sessions?: SessionStore
  /** Where log lines go; `listen` and `nodeHandler` write them to stderr, `httpHandler` nowhere. */
  log?: LogStream
  /** The lowest level that is logged (default `warning`). */
  logLevel?: LogLevel
  /** Sees every message in both directions. */
  tap?: (tapped: Tapped) => void
}

const LIMITS = {
  body: true,
  bodies: true,
  depth: true,
  open: true,
  waiting: true,
  unread: true,
  pending: true,
  pendingPerClient: true,
  retained: true,
  retainedPerPrincipal: true,
  retainedPerSession: true,
  sessions: true,
  idle: true,
} as const satisfies Record<keyof HttpLimits, true>
const COMMON = {
  hosts: true,
  origins: true,
  auth: true,
  limits: true,
  keepAlive: true,
  retry: true,
  node: true,
  replay: true,
  sessions: true,
  log: true,
  logLevel: true,
  tap: true,
} as const satisfies Record<keyof HttpOptions, true>
const HANDLER = { ...COMMON, path: true } as const satisfies Record<keyof HttpHandlerOptions, true>
const LISTEN = {
  ...COMMON,
  port: true,
  host: true,
  path: true,
  tls: true,
  unauthenticated: true,
  headTimeout: true,
  requestTimeout: true,
  stillTimeout: true,
  signal: true,
} as const satisfies Record<keyof ListenOptions, true>

/** What a client in flight has, after the server was told to close. */
const DRAIN = 5000
/** Bun ends an answer on which nothing moves for ten seconds; between two signs of life there may be two of these. */
const FOREIGN_KEEP_ALIVE = 4000
/** How many bytes of answers may wait to be read. */
const UNREAD = 256 * 1024 * 1024

function endpointOf(server: Server, options: HttpOptions, place: { path?: string; addresses?: boolean }): Endpoint {
  checkServer(server)
  const {
    hosts,
    origins,
    auth,
    limits = {},
    keepAlive = 15_000,
    retry = 1000,
    node,
    replay,
    sessions: store,
    log,
    logLevel = 'warning',
    tap: watch,
  } = options
  const {
    body = 4 * 1024 * 1024,
    bodies = Math.max(16 * body, 64 * 1024 * 1024),
    depth,
    open = 20_000,
    waiting = 1024 * 1024,
    unread = UNREAD,
    pending = 128 * 1024 * 1024,
    pendingPerClient = pending / 2,
    retained = 64 * 1024 * 1024,
    retainedPerPrincipal = retained / 2,
    retainedPerSession = 2 * 1024 * 1024,
    sessions = 10_000,
    idle = 30 * 60_000,
  } = limits
  checkNames('limits', limits, LIMITS)
  checkAuthorization(auth)
  const budgets = { pending, pendingPerClient, retained, retainedPerPrincipal, retainedPerSession }
  const numbers = { body, bodies, open, waiting, unread, ...budgets, sessions, idle, keepAlive, retry }
  for (const [name, value] of Object.entries(numbers))
    if (!(Number.isFinite(value) && value >= 0)) throw new TypeError(`"${name}" must be a number of 0 or more, not ${String(value)}`)
  if (node !== undefined && !/^[A-Za-z0-9_-]{1,32}$/.test(node)) throw new TypeError('"node" must be 1 to 32 letters, digits, _ and -')
  const report: (report: Report) => void = log === undefined ? () => {} : logTo(log, logLevel)
  const tapFailed = (error: unknown) => report({ level: 'error', message: 'tap failed', error })
  const settings = { report, remote: true, ...(depth === undefined ? {} : { maxDepth: depth }) }
  return new Endpoint({
    ...place,
    hosts,
    origins,
    report,
    open: (channel) => new Session(server, watch === undefined ? channel : tap(channel, watch, tapFailed), settings),
    headerParameters: (name, { params }, principal) => {
      const tool = server.tools.get(name)
      if (tool === undefined || tool.headers.length === 0) return []
      const description = identify(params)
      if (description === undefined) return []
      // Of a tool that the caller cannot see, it is told nothing.
      return andThen(seenBy(tool.definition, callerOf(description, principal)), (seen) => (seen ? tool.headers : []))
    },
    gate: auth === undefined ? undefined : new BearerGate(auth, report),
    store: replay ?? new MemoryReplay(),
    maxDepth: depth,
    maxBody: body,
    maxBodies: bodies,
    maxOpen: open,
    maxWaiting: waiting,
    sessions: { max: sessions, idle, store },
    budgets: new Budgets(budgets),
    keepAlive,
    retry,
    node,
  })
}

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
    const { visit, response } = webVisit(request)
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
  const { path, limits, log = globalThis.process?.stderr } = options
  if (path !== undefined) checkPath('nodeHandler', path)
  const endpoint = endpointOf(server, { ...options, log }, path === undefined ? {} : { path })
  return nodeHandlerOf(endpoint, new Unread(limits?.unread ?? UNREAD), DRAIN)
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
  const { port = 3000, host = '127.0.0.1', path = '/mcp', tls, auth, unauthenticated = false, signal, keepAlive = 15_000 } = options
  checkAuthorization(auth)
  const local = isLoopback(host)
  if (!local && auth === undefined && !unauthenticated) {
    throw new TypeError(
      `listen: on ${host} anybody who reaches this machine could call. Set "auth", or say "unauthenticated: true" if that is meant`,
    )
  }
  checkPath('listen', path)
  await auth?.prepare?.()
  const log = options.log ?? standardError
  const endpoint = endpointOf(server, { ...options, log }, { path, addresses: !local })
  const { NodeServer } = await import('./transports/http/node.js')
  const { requestTimeout = 30_000, headTimeout = requestTimeout === 0 ? 10_000 : Math.min(10_000, requestTimeout) } = options
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
  if (!path.startsWith('/')) throw new TypeError(`${where}: "path" must begin with a slash, not be ${JSON.stringify(path)}`)
}

function urlHost(host: string): string {
  if (host === '0.0.0.0' || host === '::') return 'localhost'
  return host.includes(':') ? `[${host}]` : host
}

export type { Authorization, HttpHandler, Listening, LogLevel, LogStream, NodeHandler, ReplayStore, SessionStore, Tapped }
export type { KeptEvent } from './stores/replay.js'
export { MemoryReplay, type MemoryReplayOptions } from './stores/replay.js'
export { MemorySessions, type MemorySessionsOptions } from './stores/sessions.js'
export { type KnownToken, tokens } from './auth/tokens.js'
export { type OAuthOptions, oauth } from './auth/oauth.js'
export type { HttpHeaders, HttpRequest, Principal } from './jsonrpc/channel.js'
