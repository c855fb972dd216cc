import type { Tapped } from '../jsonrpc/channel.js'
import type { Params } from '../jsonrpc/message.js'
import type { LogEntry } from '../jsonrpc/log-entry.js'
import type { Implementation } from '../protocol/model.js'
import { type Revision, revisions } from '../protocol/revisions/index.js'
import { checkNames, namesOf } from '../schema/names.js'
import { VERSION } from '../version.js'
import { type InputHandlers, capabilitiesOf } from './input-handlers.js'
import { Attempt } from './attempt.js'
import type { Opening } from './opening.js'
import { Client, type ClientSessionOptions } from './session.js'
import { ConnectionError, type Target } from './target.js'

export interface ConnectOptions extends InputHandlers {
  /** A protocol revision to insist on; by default the newest that the server knows. */
  revision?: string
  /** Who this client says it is. */
  info?: Implementation
  /** What the client declares, beside what follows from the answers it gives. */
  capabilities?: Params
  /** Milliseconds for the server's first answer (default 30 s). */
  timeout?: number
  /**
   * Milliseconds to wait for the answer to `server/discover` (default 2 s). After them the server is sent a `ping`; when that is
   * answered, or after five times as long, `initialize`. A later answer to `server/discover` still counts.
   */
  probeTimeout?: number
  /** Gives the attempt up. */
  signal?: AbortSignal
  /** Takes what the server does wrong: for a log. */
  report?: (report: LogEntry) => void
  /** Sees every message in both directions. */
  tap?: (tapped: Tapped) => void
}

const OPTIONS = namesOf<ConnectOptions>()(
  'revision info capabilities timeout probeTimeout signal report tap sample elicit roots',
)

/** How a target wanted to be opened last time. */
const verdicts = new WeakMap<Target, Opening>()

/** Connects to a server: finds out which revision it speaks, and opens the conversation accordingly. */
export async function connect(target: Target, options: ConnectOptions = {}): Promise<Client> {
  if (typeof (target as Partial<Target> | undefined)?.open !== 'function')
    throw new TypeError('connect: the target must be what stdio(…) or memory(…) has made')
  checkNames('connect', options, OPTIONS)
  const wanted = options.revision === undefined ? undefined : known(options.revision)
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
    signal,
  } = options
  const answers: InputHandlers = {
    ...(sample && { sample }),
    ...(elicit && { elicit }),
    ...(roots && { roots }),
  }
  const declared = { ...capabilitiesOf(answers), ...capabilities }
  const sessionOptions: ClientSessionOptions = {
    info,
    capabilities: declared,
    answers,
    report,
    ...(tap === undefined ? {} : { tap }),
  }
  const attempt = start(target, sessionOptions)
  try {
    const reached = await attempt.open(wanted, verdicts.get(target), {
      timeout,
      probeTimeout,
      signal,
    })
    verdicts.set(target, reached.revision.opening)
    return new Client(attempt.session, reached)
  } catch (error) {
    verdicts.delete(target)
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

function known(id: string): Revision {
  const revision = revisions.find((each) => each.id === id)
  if (revision !== undefined) return revision
  throw new TypeError(
    `Unknown protocol revision ${JSON.stringify(id)}; known are ${revisions.map((each) => each.id).join(', ')}`,
  )
}
