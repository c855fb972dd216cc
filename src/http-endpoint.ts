import { type Authorization, checkAuthorization } from './auth/authorization.js'
import { type Tapped, tap } from './jsonrpc/channel.js'
import { andThen } from './jsonrpc/hook.js'
import type { LogEntry } from './jsonrpc/log-entry.js'
import { readRequestMeta } from './protocol/revisions/request-meta.js'
import { checkNames, namesOf } from './schema/names.js'
import { isVisibleTo } from './server/features/definition.js'
import { checkServer } from './server/context.js'
import type { Server } from './server/server.js'
import { callerOf } from './server/caller-context.js'
import { ServerSession } from './server/session.js'
import { MemoryEventStore, type EventStore } from './stores/event-store.js'
import type { SessionStore } from './stores/session-store.js'
import { Budgets } from './transports/http/budgets.js'
import { BearerAuthenticator } from './transports/http/bearer-authenticator.js'
import { Endpoint } from './transports/http/endpoint.js'
import { type ProcessLogLevel, type LogStream, logTo } from './transports/stdio-log.js'

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
  replay?: EventStore
  /** Where sessions are kept, to be taken up by a process that does not have them (default: nowhere). */
  sessions?: SessionStore
  /** Where log lines go; `listen` and `nodeHandler` write them to stderr, `httpHandler` nowhere. */
  log?: LogStream
  /** The lowest level that is logged (default `warning`). */
  logLevel?: ProcessLogLevel
  /** Sees every message in both directions. */
  tap?: (tapped: Tapped) => void
}

const LIMITS = namesOf<HttpLimits>()(
  'body bodies depth open waiting unread pending pendingPerClient retained retainedPerPrincipal retainedPerSession sessions idle',
)
export const COMMON = namesOf<HttpOptions>()(
  'hosts origins auth limits keepAlive retry node replay sessions log logLevel tap',
)

/** How many bytes of answers may wait to be read. */
export const UNREAD = 256 * 1024 * 1024

/** The endpoint of a server, as its options say. */
export function endpointOf(
  defined: Server,
  options: HttpOptions,
  place: { path?: string; addresses?: boolean },
): Endpoint {
  const server = checkServer(defined)
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
  const numbers = {
    body,
    bodies,
    open,
    waiting,
    unread,
    ...budgets,
    sessions,
    idle,
    keepAlive,
    retry,
  }
  for (const [name, value] of Object.entries(numbers))
    if (!(Number.isFinite(value) && value >= 0))
      throw new TypeError(`"${name}" must be a number of 0 or more, not ${String(value)}`)
  if (node !== undefined && !/^[A-Za-z0-9_-]{1,32}$/.test(node))
    throw new TypeError('"node" must be 1 to 32 letters, digits, _ and -')
  const report: (report: LogEntry) => void = log === undefined ? () => {} : logTo(log, logLevel)
  const tapFailed = (error: unknown) => report({ level: 'error', message: 'tap failed', error })
  const settings = { report, remote: true, ...(depth === undefined ? {} : { maxDepth: depth }) }
  const release = server.extensions?.use(server)
  return new Endpoint({
    closed: () => release?.(report),
    ...place,
    hosts,
    origins,
    report,
    open: (channel) =>
      new ServerSession(
        server,
        watch === undefined ? channel : tap(channel, watch, tapFailed),
        settings,
      ),
    methodFacts: (method) => server.methods.get(method),
    headerParameters: (name, request, principal) => {
      const tool = server.tools.get(name)
      if (tool === undefined || tool.headers.length === 0) return []
      const description = readRequestMeta(request)
      if (description === undefined) return []
      // Of a tool that the caller cannot see, it is told nothing.
      return andThen(isVisibleTo(tool.definition, callerOf(description, principal)), (seen) =>
        seen ? tool.headers : [],
      )
    },
    gate: auth === undefined ? undefined : new BearerAuthenticator(auth, report),
    store: replay ?? new MemoryEventStore(),
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
