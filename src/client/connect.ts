import type { TappedMessage } from '../jsonrpc/channel.js'
import { callHook, ignore } from '../jsonrpc/hook.js'
import type { Params } from '../jsonrpc/message.js'
import type { LogEntry } from '../jsonrpc/log-entry.js'
import type { Implementation } from '../protocol/model.js'
import { type Revision, revisions } from '../protocol/revisions/index.js'
import { type Telemetry, observerOf } from '../protocol/telemetry.js'
import { checkNames, namesOf } from '../schema/names.js'
import { VERSION } from '../version.js'
import { type InputHandlers, capabilitiesOf, declaredHandlers } from './input-handlers.js'
import { ConnectionAttempt } from './attempt.js'
import type { CacheOptions } from './cache.js'
import { Client } from './client.js'
import { Connection, type ConnectionOptions } from './connection.js'
import { type ClientExtension, ClientExtensions, type ExtensionMembers } from './extension.js'
import { type Known, readPrior } from './prior.js'
import { type ReconnectOptions, checkReconnect } from './reconnect.js'
import type { ClientSessionOptions } from './session.js'
import { ConnectionError, type Target } from './target.js'

export interface ConnectOptions<
  Extensions extends readonly ClientExtension[] = readonly ClientExtension[],
> extends InputHandlers {
  /** The only protocol revision to accept; by default the newest that both sides have. */
  revision?: string
  /** The client's name and version. */
  info?: Implementation
  /** Client capabilities, in addition to those of `sample`, `elicit` and `roots`. */
  capabilities?: Params
  /** Extensions of the protocol that the client supports. */
  extensions?: Extensions
  /** Milliseconds for the server's first response (default 30 s). */
  timeout?: number
  /**
   * Milliseconds to wait for the response to `server/discover` (default 2 s). Then a `ping` is sent, and after its response,
   * or after five times as long, `initialize`. A later response to `server/discover` still counts. Not used over HTTP.
   */
  probeTimeout?: number
  /** Aborts the attempt. */
  signal?: AbortSignal
  /** Receives log entries about what the server does wrong. */
  report?: (report: LogEntry) => void
  /** Called with every message in both directions. */
  tap?: (tapped: TappedMessage) => void
  /** Connects again when the connection is lost (default false). */
  reconnect?: boolean | ReconnectOptions
  /** Limits of the cache for results that the server allows to reuse; `false` for no cache. */
  cache?: boolean | CacheOptions
  /** Validates the results of tools by the output schemas that the server lists, and reports schemas that cannot be used (default false). */
  validateResults?: boolean
  /** The `prior` of an earlier client of the same server, which saves a request. One that is wrong is ignored. */
  prior?: unknown
  /** Spans and metrics: `otel()` of `ccmcp/telemetry`, `prometheus()` of `ccmcp/prometheus`, or both in an array (default: none). */
  telemetry?: Telemetry | readonly Telemetry[]
}

const OPTIONS = namesOf<ConnectOptions>()(
  'revision info capabilities extensions timeout probeTimeout signal report tap reconnect cache validateResults prior telemetry sample elicit roots',
)

const RECONNECT = namesOf<ReconnectOptions>()('attempts delay maxDelay')
const CACHE = namesOf<CacheOptions>()('maxEntries maxBytes')

/** How each target was opened last time. */
const openings = new WeakMap<Target, Known>()

/** Connects to a server: negotiates the protocol revision and opens the session. The client has the members of its extensions. */
export async function connect<
  const Extensions extends readonly ClientExtension[] = readonly ClientExtension[],
>(
  target: Target,
  options: ConnectOptions<Extensions> = {},
): Promise<Client & ExtensionMembers<Extensions>> {
  if (typeof (target as Partial<Target> | undefined)?.open !== 'function')
    throw new TypeError(
      'connect: the target must have an "open" method, as those of stdio(…), http(…) and memory(…) do',
    )
  checkNames('connect', options, OPTIONS)
  const { reconnect, cache = {}, report = () => {}, validateResults = false } = options
  const restoring = reconnect === true ? {} : reconnect || undefined
  if (restoring !== undefined) {
    checkNames('connect: reconnect', restoring, RECONNECT)
    checkReconnect(restoring)
  }
  const caching = cache === true ? {} : cache || undefined
  if (caching !== undefined) checkNames('connect: cache', caching, CACHE)
  const extensions = new ClientExtensions(options.extensions)
  const connection = new Connection({
    open: opener(target, options, extensions),
    reconnect: restoring,
    cache: caching,
    report,
  })
  await connection.connect(options.signal)
  const client = new Client(connection, validateResults)
  try {
    extensions.connected(client, connection.connectionOf)
  } catch (error) {
    await connection.close()
    throw error
  }
  return client as Client & ExtensionMembers<Extensions> // the members were added
}

/** Returns a function that opens a session: the first one may use a prior. */
function opener(
  target: Target,
  options: ConnectOptions,
  extensions: ClientExtensions,
): ConnectionOptions['open'] {
  const {
    info = { name: 'ccmcp', version: VERSION },
    capabilities,
    sample,
    elicit,
    roots,
    timeout = 30_000,
    probeTimeout = 2000,
    report = () => {},
    tap,
  } = options
  const revision = options.revision === undefined ? undefined : revisionOf(options.revision)
  const inputHandlers: InputHandlers = {
    ...(sample && { sample }),
    ...(elicit && { elicit }),
    ...(roots && { roots }),
  }
  const declared = { ...capabilitiesOf(inputHandlers), ...capabilities }
  const shared = {
    info,
    capabilities: declared,
    inputHandlers: declaredHandlers(inputHandlers, declared),
    extensions,
    report,
    ...(tap === undefined ? {} : { tap }),
    telemetry: observerOf('connect', options.telemetry),
  }
  let prior = options.prior === undefined ? undefined : readPrior(options.prior)
  if (options.prior !== undefined && prior === undefined)
    callHook(
      () =>
        report({
          level: 'info',
          message: '"prior" was ignored: it is invalid, or older than 7 days',
        }),
      ignore,
    )
  return async (observer, signal) => {
    const attempt = start(target, { ...shared, observer })
    const given = prior
    prior = undefined
    try {
      const reused = revision === undefined ? given?.details : undefined
      if (reused !== undefined && attempt.reuse(reused))
        return { session: attempt.session, details: reused, httpSse: false, verified: false }
      const known = openings.get(target) ?? (given?.opening === 'handshake' ? given : undefined)
      const details = await attempt.open(revision, known, { timeout, probeTimeout, signal })
      const { session, httpSse } = attempt
      openings.set(target, { opening: details.revision.lifecycle, httpSse })
      return { session, details, httpSse, verified: true }
    } catch (error) {
      openings.delete(target)
      throw await attempt.fail(error)
    }
  }
}

function start(target: Target, options: ClientSessionOptions): ConnectionAttempt {
  try {
    return new ConnectionAttempt(target, options)
  } catch (error) {
    throw new ConnectionError(
      `The target could not be opened: ${error instanceof Error ? error.message : String(error)}`,
      {
        cause: error,
      },
    )
  }
}

function revisionOf(id: string): Revision {
  const revision = revisions.find((each) => each.id === id)
  if (revision !== undefined) return revision
  throw new TypeError(
    `Unknown protocol revision ${JSON.stringify(id)}; expected one of ${revisions.map((each) => each.id).join(', ')}`,
  )
}
