import { namesOf } from '../schema/names.js'
import type { TokenVerifier } from '../auth/authorization.js'
import type { TappedMessage } from '../jsonrpc/channel.js'
import type { ChangeBus } from '../stores/change-bus.js'
import type { EventStore } from '../stores/event-store.js'
import type { SessionStore } from '../stores/session-store.js'
import type { LogStream, Logger, ProcessLogLevel } from '../transports/stdio-log.js'

export interface HttpLimits {
  /** Maximum bytes of a request body; beyond it, 413 (default 4 MiB). */
  bodyBytes?: number
  /** Maximum total bytes of incomplete request bodies, of which one principal has at most half; beyond it, 503 (default 64 MiB). */
  incompleteBodyBytes?: number
  /** Maximum nesting depth of a message (default 512). */
  depth?: number
  /** Maximum handlers of one session running at a time; other calls are queued (default 256). */
  concurrency?: number
  /** Maximum number of open responses, which are calls in progress and streams; beyond it, 503 (default 20,000). */
  openResponses?: number
  /** Maximum unsent bytes of one stream; beyond it, its client is disconnected, or with `legacySse` they count as `pendingBytes` (default 1 MiB). */
  unsentBytesPerStream?: number
  /** Maximum unsent bytes of all responses and streams, with `listen` and `nodeHandler`; beyond it, the oldest are destroyed (default 256 MiB). */
  unsentBytes?: number
  /** Maximum memory of requests in progress, as text and parsed; beyond it, 503 (default 128 MiB). */
  pendingBytes?: number
  /** The same per principal, or without `auth` per session (default: half of `pendingBytes`). */
  pendingBytesPerClient?: number
  /** Maximum memory of sessions and subscriptions; beyond it, `initialize` gets 503 and subscriptions are refused (default 64 MiB). */
  retainedBytes?: number
  /** The same per principal (default: half of `retainedBytes`). */
  retainedBytesPerPrincipal?: number
  /** The same per session, or per `subscriptions/listen` (default 2 MiB). */
  retainedBytesPerSession?: number
  /** Maximum number of sessions; beyond it, idle ones of the principal that has most are evicted, or new ones get 503 (default 10,000). */
  sessions?: number
  /** Milliseconds without a request or an open stream after which a session ends (default 30 minutes). */
  sessionIdleTimeout?: number
}

export interface LegacySseOptions {
  /** The path of the event stream (default /sse). */
  path?: string
  /**
   * The path for POST requests (default /messages). Without a slash at the start it is relative to `path`: use this
   * behind a proxy that removes a prefix from the path.
   */
  messagesPath?: string
}

/** What several processes share. */
export interface HttpStores {
  readonly sessions?: SessionStore
  readonly events?: EventStore
  readonly changes?: ChangeBus
}

export interface HttpOptions {
  /** Allowed values of the Host header, such as `mcp.example.com`, beside `localhost`; `any` turns the check off. */
  hosts?: readonly string[] | 'any'
  /** Allowed origins of web pages, such as `https://app.example.com`; they also get CORS headers. */
  origins?: readonly string[]
  /** Also serves HTTP+SSE, the transport before Streamable HTTP, for old clients; `true` for its default paths (default false). */
  legacySse?: boolean | LegacySseOptions
  /** Authenticates callers: `tokens(…)`, `oauth(…)`, or an object of your own. */
  auth?: TokenVerifier
  /** Limits of sizes and counts: see below. */
  limits?: HttpLimits
  /** Milliseconds without output after which an open response sends a keep-alive (default 15 s, with `httpHandler` 4 s; 0 for never). */
  keepAlive?: number
  /** Milliseconds after which clients reconnect to a stream that the server has closed: the SSE field `retry` (default 1 s). */
  retryInterval?: number
  /** Prefix of session ids, followed by a dot, by which a load balancer can find this process: 1 to 32 letters, digits, `_` and `-`. */
  sessionIdPrefix?: string
  /** Stores the events of streams for clients that reconnect (default: in memory, 64 MiB). */
  eventStore?: EventStore
  /** Stores sessions, so that another process can restore them (default: none). */
  sessionStore?: SessionStore
  /** Tells other processes of changes, and this one of theirs (default: that of `createServer`). */
  changes?: ChangeBus
  /** Stores for servers of several processes: `redis(…)` of `ccmcp/redis`. `eventStore`, `sessionStore` and `changes` take precedence. */
  stores?: HttpStores
  /** Destination of log lines: a stream, or a logger such as that of pino (default: stderr with `listen` and `nodeHandler`, none with `httpHandler`). */
  log?: LogStream | Logger
  /** Lowest level that is logged (default `warning`; with a logger, its own level). */
  logLevel?: ProcessLogLevel
  /** Called with every message in both directions. */
  tap?: (tapped: TappedMessage) => void
}

export interface HttpHandlerOptions extends HttpOptions {
  /**
   * The path of the endpoint; by default every path is. Other paths get 404, except `/healthz`. `nodeHandler` passes
   * them, `/healthz` too, to `next` if there is one.
   */
  path?: string
}

export interface ListenOptions extends HttpOptions {
  /** The port (default 3000; 0 for any free port). */
  port?: number
  /** The address to bind to (default 127.0.0.1: this machine only). */
  host?: string
  /** The path of the endpoint (default /mcp). */
  path?: string
  /** Serves https with this certificate and key, as PEM. */
  tls?: { cert: string | Uint8Array; key: string | Uint8Array }
  /** Allows an address other than loopback without `auth`. */
  allowUnauthenticated?: boolean
  /** Milliseconds until the headers of a request must have arrived (default 10 s). */
  headersTimeout?: number
  /** Milliseconds until the whole request must have arrived (default 30 s). */
  requestTimeout?: number
  /** Milliseconds without traffic after which a connection is closed (default 45 s, at least three times `keepAlive`; 0 for never). */
  inactivityTimeout?: number
  /** Closes the server when it is aborted. */
  signal?: AbortSignal
}

export const LEGACY_SSE_NAMES = namesOf<LegacySseOptions>()('path messagesPath')
export const LIMIT_NAMES = namesOf<HttpLimits>()(
  'bodyBytes incompleteBodyBytes depth concurrency openResponses unsentBytesPerStream unsentBytes pendingBytes pendingBytesPerClient retainedBytes retainedBytesPerPrincipal retainedBytesPerSession sessions sessionIdleTimeout',
)
const COMMON_NAMES = namesOf<HttpOptions>()(
  'hosts origins legacySse auth limits keepAlive retryInterval sessionIdPrefix eventStore sessionStore changes stores log logLevel tap',
)
export const HANDLER_NAMES = namesOf<HttpHandlerOptions>()(`${COMMON_NAMES} path`)
export const LISTEN_NAMES = namesOf<ListenOptions>()(
  `${COMMON_NAMES} port host path tls allowUnauthenticated headersTimeout requestTimeout inactivityTimeout signal`,
)

/** Default of `keepAlive`. */
export const KEEP_ALIVE = 15_000
/** Default of `limits.unsentBytes`. */
export const UNSENT_BYTES = 256 * 1024 * 1024
/** Milliseconds that `close` gives requests in progress by default. */
export const DRAIN_TIMEOUT = 5000

export function checkPath(where: string, path: string): void {
  if (!path.startsWith('/'))
    throw new TypeError(`${where}: "path" must start with a slash, not be ${JSON.stringify(path)}`)
}
