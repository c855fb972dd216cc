import type { Tapped } from '../jsonrpc/channel.js'
import type { Params } from '../jsonrpc/message.js'
import type { LogEntry } from '../jsonrpc/log-entry.js'
import type { Implementation } from '../protocol/model.js'
import { type Revision, revisions } from '../protocol/revisions/index.js'
import { checkNames, namesOf } from '../schema/names.js'
import { VERSION } from '../version.js'
import { type InputHandlers, capabilitiesOf, declaredHandlers } from './input-handlers.js'
import { Attempt } from './attempt.js'
import { Client } from './client.js'
import { type ClientExtension, ClientExtensions } from './extension.js'
import type { Opening } from './opening.js'
import type { ClientSessionOptions } from './session.js'
import { ConnectionError, type Target } from './target.js'

export interface ConnectOptions extends InputHandlers {
  /** The only protocol revision to accept; by default the newest that both sides have. */
  revision?: string
  /** The client's name and version. */
  info?: Implementation
  /** Client capabilities, in addition to those of `sample`, `elicit` and `roots`. */
  capabilities?: Params
  /** Extensions of the protocol that the client supports. */
  extensions?: readonly ClientExtension[]
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
  tap?: (tapped: Tapped) => void
}

const OPTIONS = namesOf<ConnectOptions>()(
  'revision info capabilities extensions timeout probeTimeout signal report tap sample elicit roots',
)

/** How each target was opened last time. */
const openings = new WeakMap<Target, Opening>()

/** Connects to a server: negotiates the protocol revision and opens the session. */
export async function connect(target: Target, options: ConnectOptions = {}): Promise<Client> {
  if (typeof (target as Partial<Target> | undefined)?.open !== 'function')
    throw new TypeError('connect: the target must come from stdio(…), http(…) or memory(…)')
  checkNames('connect', options, OPTIONS)
  const revision = options.revision === undefined ? undefined : revisionOf(options.revision)
  const {
    info = { name: 'ccmcp', version: VERSION },
    capabilities,
    extensions,
    sample,
    elicit,
    roots,
    timeout = 30_000,
    probeTimeout = 2000,
    report = () => {},
    tap,
    signal,
  } = options
  const inputHandlers: InputHandlers = {
    ...(sample && { sample }),
    ...(elicit && { elicit }),
    ...(roots && { roots }),
  }
  const declared = { ...capabilitiesOf(inputHandlers), ...capabilities }
  const sessionOptions: ClientSessionOptions = {
    info,
    capabilities: declared,
    inputHandlers: declaredHandlers(inputHandlers, declared),
    extensions: new ClientExtensions(extensions),
    report,
    ...(tap === undefined ? {} : { tap }),
  }
  const attempt = start(target, sessionOptions)
  try {
    const details = await attempt.open(revision, openings.get(target), {
      timeout,
      probeTimeout,
      signal,
    })
    openings.set(target, details.revision.opening)
    return new Client(attempt.session, details)
  } catch (error) {
    openings.delete(target)
    throw await attempt.fail(error)
  }
}

function start(target: Target, options: ClientSessionOptions): Attempt {
  try {
    return new Attempt(target, options)
  } catch (error) {
    throw new ConnectionError(
      `The server could not be started: ${error instanceof Error ? error.message : String(error)}`,
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
    `Unknown protocol revision ${JSON.stringify(id)}; known are ${revisions.map((each) => each.id).join(', ')}`,
  )
}
