import { checkAuthorization } from '../auth/authorization.js'
import { tap } from '../jsonrpc/channel.js'
import type { LogEntry } from '../jsonrpc/log-entry.js'
import { checkNames } from '../schema/names.js'
import { headerParametersFor } from '../server/features/tools.js'
import { acquire, checkBus } from '../server/acquire.js'
import { checkServer } from '../server/context.js'
import type { Server } from '../server/server.js'
import { ServerSession } from '../server/session.js'
import { MemoryEventStore } from '../stores/event-store.js'
import { BearerAuthenticator } from '../transports/http/bearer-authenticator.js'
import { Budgets } from '../transports/http/budgets.js'
import { Endpoint } from '../transports/http/endpoint.js'
import { checkLog, logTo } from '../transports/stdio-log.js'
import { legacySsePaths } from './legacy-sse.js'
import {
  type HttpLimits,
  type HttpOptions,
  KEEP_ALIVE,
  LIMIT_NAMES,
  UNSENT_BYTES,
} from './options.js'

const MIB = 1024 * 1024
const STORE_METHODS = { Event: ['append', 'read', 'delete'], Session: ['get', 'set', 'delete'] }

/** Creates the endpoint of a server. `addresses` allows any IP address as the Host header. */
export function createEndpoint(
  defined: Server,
  options: HttpOptions,
  { path, addresses }: { path?: string | undefined; addresses?: boolean },
): Endpoint {
  const server = checkServer(defined)
  const { auth, keepAlive = KEEP_ALIVE, retryInterval = 1000, sessionIdPrefix, log } = options
  const limits = withDefaults(options.limits ?? {})
  const legacySse = legacySsePaths(options.legacySse, path)
  const bus = options.changes ?? options.stores?.changes ?? server.bus
  checkAuthorization(auth)
  if (bus !== undefined) checkBus(bus)
  checkLog(log, options.logLevel)
  checkStores(options)
  checkNumbers({ ...limits, keepAlive, retryInterval })
  if (sessionIdPrefix !== undefined && !/^[A-Za-z0-9_-]{1,32}$/.test(sessionIdPrefix))
    throw new TypeError('"sessionIdPrefix" must be 1 to 32 letters, digits, _ and -')
  const report: (entry: LogEntry) => void =
    log === undefined ? () => {} : logTo(log, options.logLevel)
  const tapFailed = (error: unknown) => report({ level: 'error', message: 'tap failed', error })
  const depth = options.limits?.depth
  const settings = {
    report,
    remote: true,
    newId,
    concurrency: limits.concurrency,
    ...(depth === undefined ? {} : { maxDepth: depth }),
  }
  const { tap: onMessage } = options
  const endpoint = new Endpoint({
    closed: () => release?.(),
    methods: server.methods,
    path,
    legacySse,
    addresses,
    hosts: options.hosts,
    origins: options.origins,
    report,
    openSession: (channel) =>
      new ServerSession(
        server,
        onMessage === undefined ? channel : tap(channel, onMessage, tapFailed),
        settings,
      ),
    headerParameters: (tool, request, principal) =>
      headerParametersFor(server, tool, request, principal),
    authenticator: auth === undefined ? undefined : new BearerAuthenticator(auth, report),
    eventStore: options.eventStore ?? options.stores?.events ?? new MemoryEventStore(),
    maxDepth: depth,
    maxBodyBytes: limits.bodyBytes,
    maxOpenResponses: limits.openResponses,
    maxUnsentBytes: limits.unsentBytesPerStream,
    sessions: {
      max: limits.sessions,
      idleTimeout: limits.sessionIdleTimeout,
      store: options.sessionStore ?? options.stores?.sessions,
    },
    budgets: new Budgets({
      pending: limits.pendingBytes,
      pendingPerClient: limits.pendingBytesPerClient,
      retained: limits.retainedBytes,
      retainedPerPrincipal: limits.retainedBytesPerPrincipal,
      retainedPerSession: limits.retainedBytesPerSession,
      incomplete: limits.incompleteBodyBytes,
      body: limits.bodyBytes,
    }),
    keepAlive,
    retryInterval,
    sessionIdPrefix,
  })
  // Last: if an option is invalid, nothing is started.
  const release = acquire(server, report, { remote: true }, bus)
  return endpoint
}

/** All limits but `depth`, whose default is that of the JSON-RPC layer. */
type WithDefaults = Required<Omit<HttpLimits, 'depth'>>

function withDefaults(limits: HttpLimits): WithDefaults {
  checkNames('limits', limits, LIMIT_NAMES)
  const { bodyBytes = 4 * MIB, pendingBytes = 128 * MIB, retainedBytes = 64 * MIB } = limits
  const {
    incompleteBodyBytes = Math.max(16 * bodyBytes, 64 * MIB),
    concurrency = 256,
    openResponses = 20_000,
    unsentBytesPerStream = MIB,
    unsentBytes = UNSENT_BYTES,
    pendingBytesPerClient = pendingBytes / 2,
    retainedBytesPerPrincipal = retainedBytes / 2,
    retainedBytesPerSession = 2 * MIB,
    sessions = 10_000,
    sessionIdleTimeout = 30 * 60_000,
  } = limits
  return {
    bodyBytes,
    incompleteBodyBytes,
    concurrency,
    openResponses,
    unsentBytesPerStream,
    unsentBytes,
    pendingBytes,
    pendingBytesPerClient,
    retainedBytes,
    retainedBytesPerPrincipal,
    retainedBytesPerSession,
    sessions,
    sessionIdleTimeout,
  }
}

/** Options may be written in JavaScript. */
function checkStores({ eventStore, sessionStore, stores }: HttpOptions): void {
  const given: [option: string, store: unknown, kind: 'Event' | 'Session'][] = [
    ['eventStore', eventStore, 'Event'],
    ['stores.events', stores?.events, 'Event'],
    ['sessionStore', sessionStore, 'Session'],
    ['stores.sessions', stores?.sessions, 'Session'],
  ]
  for (const [option, store, kind] of given) {
    if (store === undefined || store === null) continue
    const members = Object(store) as Record<string, unknown> // to be checked
    const methods = STORE_METHODS[kind]
    const missing = methods.find((name) => typeof members[name] !== 'function')
    // A Map has methods of these names, but deletes nothing by itself.
    if (missing === undefined && Object.getPrototypeOf(store) !== Map.prototype) continue
    throw new TypeError(
      `"${option}" must have the methods ${methods.join(', ')} of ${kind}Store, such as new Memory${kind}Store() of ccmcp/http; it ${missing === undefined ? 'is a Map' : `has no "${missing}"`}`,
    )
  }
}

/**
 * The id of a request to a client. Random, because another process may take the session over: a late answer to this one
 * answers no request of that one. With a letter, because some clients read a string of digits as a number.
 */
function newId(): string {
  return `r-${crypto.randomUUID()}`
}

function checkNumbers(numbers: Readonly<Record<string, number>>): void {
  for (const [name, value] of Object.entries(numbers))
    if (!(Number.isFinite(value) && value >= 0))
      throw new TypeError(`"${name}" must be a number of 0 or more, not ${String(value)}`)
}
