import type { Tapped } from '../jsonrpc/channel.js'
import { ChannelClosed } from '../jsonrpc/errors.js'
import { callHook, ignore } from '../jsonrpc/hook.js'
import { type Params, isThenable } from '../jsonrpc/message.js'
import type { Report } from '../jsonrpc/report.js'
import type { Implementation } from '../protocol/model.js'
import { type Revision, newest, revisions } from '../protocol/revisions/index.js'
import { checkNames } from '../schema/names.js'
import { VERSION } from '../version.js'
import { type Answers, capabilitiesOf } from './answering.js'
import { type Verdict, probe, shakeHands } from './opening.js'
import { type CallOptions, Client, ClientSession, type Reached, type SessionOptions } from './session.js'
import { ConnectionError, type Target, type TargetChannel } from './target.js'

export interface ConnectOptions extends Answers {
  /** A protocol revision to insist on; by default the newest that the server knows. */
  revision?: string
  /** Who this client says it is. */
  info?: Implementation
  /** What the client declares, beside what follows from the answers it gives. */
  capabilities?: Params
  /** Milliseconds for the server's first answer (default 30 s). */
  timeout?: number
  /** Milliseconds for the question whether requests may describe themselves (default 2 s). */
  probeTimeout?: number
  /** Gives the attempt up. */
  signal?: AbortSignal
  /** Takes what the server does wrong: for a log. */
  report?: (report: Report) => void
  /** Sees every message in both directions. */
  tap?: (tapped: Tapped) => void
}

const OPTIONS = {
  revision: true,
  info: true,
  capabilities: true,
  timeout: true,
  probeTimeout: true,
  signal: true,
  report: true,
  tap: true,
  sample: true,
  elicit: true,
  roots: true,
} as const satisfies Record<keyof ConnectOptions, true>

/** How a target wanted to be opened last time. */
const verdicts = new WeakMap<Target, Verdict>()

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
  const answers: Answers = { ...(sample && { sample }), ...(elicit && { elicit }), ...(roots && { roots }) }
  const declared = { ...capabilitiesOf(answers), ...capabilities }
  const sessionOptions: SessionOptions = { info, capabilities: declared, answers, report, ...(tap === undefined ? {} : { tap }) }
  const attempt = start(target, sessionOptions)
  try {
    const reached = await attempt.open(wanted, verdicts.get(target), { timeout, probeTimeout, signal })
    verdicts.set(target, reached.revision.opening)
    return new Client(attempt.session, reached)
  } catch (error) {
    throw await attempt.fail(error)
  }
}

function start(target: Target, options: SessionOptions): Attempt {
  try {
    return new Attempt(target, options)
  } catch (error) {
    throw new ConnectionError(`The server could not be started: ${error instanceof Error ? error.message : String(error)}`, {
      cause: error,
    })
  }
}

interface Times {
  timeout: number
  probeTimeout: number
  signal: AbortSignal | undefined
}

class Attempt {
  readonly #target: Target
  readonly #options: SessionOptions
  #channel: TargetChannel
  session: ClientSession

  constructor(target: Target, options: SessionOptions) {
    this.#target = target
    this.#options = options
    this.#channel = openChannel(target)
    this.session = new ClientSession(this.#channel, options)
  }

  async open(wanted: Revision | undefined, verdict: Verdict | undefined, times: Times): Promise<Reached> {
    const { timeout, probeTimeout, signal } = times
    if ((wanted?.opening ?? verdict) === 'handshake') return await this.#shakeHands(wanted, times)
    // A server that is known to answer gets all the time it needs.
    const patience = wanted === undefined && verdict === undefined ? Math.min(probeTimeout, timeout) : timeout
    const found = await probe(this.session, wanted ?? newest, withSignal(patience, signal))
    if (typeof found === 'object' && (wanted === undefined || found.revision === wanted)) return found
    if (wanted !== undefined)
      throw new ConnectionError(
        `The server ${found === 'ended' ? 'has ended when asked for' : found === 'silent' ? 'does not answer in' : 'does not serve'} ${wanted.id}`,
      )
    if (found === 'ended') this.#reopen()
    try {
      return await this.#shakeHands(undefined, times)
    } catch (error) {
      // It may have read the probe only now, and ended of it.
      if (!(found === 'silent' && error instanceof ChannelClosed)) throw error
      this.#reopen()
      return await this.#shakeHands(undefined, times)
    }
  }

  #shakeHands(wanted: Revision | undefined, { timeout, signal }: Times): Promise<Reached> {
    return shakeHands(this.session, wanted, this.#options, withSignal(timeout, signal))
  }

  #reopen(): void {
    this.#channel = openChannel(this.#target)
    this.session = new ClientSession(this.#channel, this.#options)
  }

  /** Ends what was begun and says why it did not work. */
  async fail(error: unknown): Promise<Error> {
    const reason = error instanceof Error ? error.message : String(error)
    // What the process does now counts, not what it does when it is ended.
    const diagnosis = this.#channel.diagnose?.() ?? ''
    await this.session.peer.close()
    const said = diagnosis === '' || reason.includes(diagnosis)
    return new ConnectionError(said ? reason : `${reason}\n${diagnosis}`, { cause: error })
  }
}

function openChannel(target: Target): TargetChannel {
  const channel: TargetChannel | PromiseLike<unknown> = target.open()
  if (!isThenable(channel)) return channel
  callHook(() => channel, ignore)
  throw new TypeError('"open" of a target must return a channel, not a promise of one')
}

function withSignal(timeout: number, signal: AbortSignal | undefined): CallOptions {
  return signal === undefined ? { timeout } : { timeout, signal }
}

function known(id: string): Revision {
  const revision = revisions.find((each) => each.id === id)
  if (revision !== undefined) return revision
  throw new TypeError(`Unknown protocol revision ${JSON.stringify(id)}; known are ${revisions.map((each) => each.id).join(', ')}`)
}
