import { ChannelClosed, RpcError } from '../jsonrpc/errors.js'
import { callHook, ignore } from '../jsonrpc/hook.js'
import { isThenable } from '../jsonrpc/message.js'
import { type Revision, newest } from '../protocol/revisions/index.js'
import {
  type ProbeOutcome,
  type Opening,
  initialize,
  isModern,
  probe,
  refusalOf,
} from './opening.js'
import {
  type CallOptions,
  ClientSession,
  type ServerDetails,
  type ClientSessionOptions,
} from './session.js'
import { ConnectionError, type Target, type TargetChannel } from './target.js'

interface Times {
  timeout: number
  probeTimeout: number
  signal?: AbortSignal | undefined
}

/** A process that is silent for so many times `probeTimeout` is not only slow to start. */
const STARTING = 5

/** One attempt to connect to a target. */
export class Attempt {
  readonly #target: Target
  readonly #options: ClientSessionOptions
  #channel: TargetChannel
  session: ClientSession

  constructor(target: Target, options: ClientSessionOptions) {
    this.#target = target
    this.#options = options
    this.#channel = openChannel(target)
    this.session = new ClientSession(this.#channel, options)
  }

  async open(
    wanted: Revision | undefined,
    verdict: Opening | undefined,
    times: Times,
  ): Promise<ServerDetails> {
    if ((wanted?.opening ?? verdict) === 'handshake') return await this.#initialize(wanted, times)
    const reached =
      wanted === undefined
        ? await this.#negotiate(verdict, times)
        : await this.#insist(wanted, times)
    if (reached.revision.opening === 'stateless') this.session.describes = reached.revision
    return reached
  }

  /** Ends what was begun and says why it did not work. */
  async fail(error: unknown): Promise<Error> {
    const message = error instanceof Error ? error.message : String(error)
    const reason = error instanceof RpcError ? refusalOf('initialize', error) : message
    // What the process does now counts, not what it does when it is ended.
    const diagnosis = this.#channel.diagnose?.() ?? ''
    await this.session.peer.close()
    const said = diagnosis === '' || reason.includes(diagnosis)
    return new ConnectionError(said ? reason : `${reason}\n${diagnosis}`, { cause: error })
  }

  async #insist(wanted: Revision, { timeout, signal }: Times): Promise<ServerDetails> {
    const probed = await probe(this.session, wanted, withSignal(timeout, signal))
    if (probed.kind === 'failed') throw probed.error
    if (probed.kind === 'modern' && probed.reached.revision === wanted) return probed.reached
    const because =
      probed.kind === 'modern'
        ? `it chose ${probed.reached.revision.id}`
        : probed.answer instanceof RpcError
          ? refusalOf('server/discover', probed.answer)
          : probed.answer.message
    throw new ConnectionError(`The server does not serve ${wanted.id}: ${because}`)
  }

  /**
   * Finds out whether the server is modern or legacy. A process that is still
   * starting is silent too, and must not be sent `initialize` for that: a modern
   * server would refuse it, or take it as the choice of a legacy revision. It is
   * legacy if it answers a `ping` but not `server/discover`.
   */
  async #negotiate(verdict: Opening | undefined, times: Times): Promise<ServerDetails> {
    const { timeout, signal } = times
    // A server that is known to be modern gets all the time it needs.
    const probeTimeout = verdict === undefined ? Math.min(times.probeTimeout, timeout) : timeout
    const opened = new AbortController()
    const pending: CallOptions = {
      timeout: Infinity,
      maxTimeout: Infinity,
      signal: signal === undefined ? opened.signal : AbortSignal.any([opened.signal, signal]),
    }
    try {
      const probing = probe(this.session, newest, pending)
      let probed = await within(probeTimeout, probing)
      if (probed === undefined) {
        const alive = this.session.request('ping', undefined, pending).then(nothing, nothing)
        probed = await within(
          Math.min(STARTING * probeTimeout, timeout),
          Promise.race([probing, alive]),
        )
      }
      if (probed === undefined)
        return await this.#initializeBesideProbe(probing, {
          ...times,
          probeTimeout,
          signal: pending.signal,
        })
      if (probed.kind === 'modern') return probed.reached
      if (probed.kind === 'failed') {
        if (!(probed.error instanceof ChannelClosed)) throw probed.error
        await this.#reopen()
      }
      return await this.#initialize(undefined, times)
    } finally {
      opened.abort(new Error('The answer is not needed any more'))
    }
  }

  /** Falls back to `initialize`; the answer to `server/discover` may still come, and then the server is modern. */
  async #initializeBesideProbe(
    probing: Promise<ProbeOutcome>,
    times: Times,
  ): Promise<ServerDetails> {
    const { timeout, probeTimeout } = times
    const initializing = this.#initialize(undefined, times)
    // A server that accepts `initialize` speaks a legacy revision from then on, even if it is modern as well.
    const accepted = probing.then((probed) =>
      probed.kind === 'modern' ? within(probeTimeout, initializing) : initializing,
    )
    let problem: unknown
    try {
      const reached = await Promise.race([initializing, accepted])
      if (reached !== undefined) return reached
    } catch (error) {
      if (!(error instanceof RpcError || error instanceof ChannelClosed)) throw error
      problem = error
    }
    const probed = await within(isModern(problem) ? timeout : probeTimeout, probing)
    if (problem instanceof ChannelClosed) {
      // It has ended because of what it was sent.
      await this.#reopen()
      return probed?.kind === 'modern'
        ? await this.#insist(probed.reached.revision, times)
        : await this.#initialize(undefined, times)
    }
    if (probed?.kind === 'modern') return probed.reached
    throw probed?.kind === 'failed' ? probed.error : problem
  }

  #initialize(wanted: Revision | undefined, { timeout, signal }: Times): Promise<ServerDetails> {
    return initialize(this.session, wanted, this.#options, withSignal(timeout, signal))
  }

  /** Opens the target again, once the first process has ended: two of them might get in each other's way. */
  async #reopen(): Promise<void> {
    await this.session.peer.close()
    this.#channel = openChannel(this.#target)
    this.session = new ClientSession(this.#channel, this.#options)
  }
}

function nothing(): undefined {
  return undefined
}

/** What the promise becomes, or undefined where that takes longer. */
async function within<Value>(
  milliseconds: number,
  promise: Promise<Value>,
): Promise<Value | undefined> {
  // A timer would take it for none.
  if (milliseconds >= 2 ** 31) return await promise
  let timer: ReturnType<typeof setTimeout> | undefined
  const late = new Promise<undefined>(
    (resolve) => (timer = setTimeout(resolve, milliseconds, undefined)),
  )
  return await Promise.race([promise, late]).finally(() => clearTimeout(timer))
}

function withSignal(timeout: number, signal: AbortSignal | undefined): CallOptions {
  return signal === undefined ? { timeout } : { timeout, signal }
}

function openChannel(target: Target): TargetChannel {
  const channel: TargetChannel | PromiseLike<unknown> = target.open()
  if (!isThenable(channel)) return channel
  callHook(() => channel, ignore)
  throw new TypeError('"open" of a target must return a channel, not a promise of one')
}
