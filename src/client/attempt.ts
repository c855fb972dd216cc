import { withTimeout } from '../jsonrpc/deadline.js'
import { ChannelClosedError, RequestFailedError, RpcError } from '../jsonrpc/errors.js'
import { callHook, ignore } from '../jsonrpc/hook.js'
import type { LogEntry } from '../jsonrpc/log-entry.js'
import { isThenable } from '../jsonrpc/message.js'
import { type Revision, newest } from '../protocol/revisions/index.js'
import {
  type ProbeOutcome,
  initialize,
  isInconclusive,
  isModern,
  lacksStreamableHttp,
  probe,
  describeRpcError,
} from './opening.js'
import type { Known } from './prior.js'
import type { CallOptions } from './call-options.js'
import { ClientSession, type ServerDetails, type ClientSessionOptions } from './session.js'
import { ConnectionError, type Target, type TargetChannel } from './target.js'

interface Timeouts {
  timeout: number
  probeTimeout: number
  signal?: AbortSignal | undefined
}

/** A process may take this many times `probeTimeout` to start. */
const START_FACTOR = 5

/** One attempt to connect to a target. */
export class ConnectionAttempt {
  readonly #target: Target
  readonly #options: ClientSessionOptions
  #channel: TargetChannel
  readonly #report = (entry: LogEntry) => callHook(() => this.#options.report(entry), ignore)
  session: ClientSession
  /** Whether the transport is HTTP+SSE. */
  httpSse = false

  constructor(target: Target, options: ClientSessionOptions) {
    this.#target = target
    this.#options = options
    this.#channel = openChannel(() => target.open(this.#report))
    this.session = new ClientSession(this.#channel, options)
  }

  /** Opens the session the way that worked last time, if known; otherwise, or if that fails, negotiates. */
  async open(
    requested: Revision | undefined,
    known: Known | undefined,
    times: Timeouts,
  ): Promise<ServerDetails> {
    if (known?.opening === 'handshake' && requested?.lifecycle !== 'stateless') {
      try {
        return await this.#openAsKnown(requested, known, times)
      } catch (error) {
        if (times.signal?.aborted === true || isInconclusiveFailure(error)) throw error
        await this.#reopen()
      }
    }
    if (requested?.lifecycle === 'handshake') return await this.#initialize(requested, times)
    const details =
      requested === undefined
        ? await this.#negotiate(known?.opening === 'stateless', times)
        : await this.#discover(requested, times)
    this.session.revision = details.revision
    this.session.capabilities = details.capabilities
    return details
  }

  async #openAsKnown(
    requested: Revision | undefined,
    { httpSse }: Known,
    times: Timeouts,
  ): Promise<ServerDetails> {
    const open = this.#target.openHttpSse?.bind(this.#target)
    if (httpSse && open !== undefined) {
      await this.#reopen(open)
      this.httpSse = true
    }
    const timeout = Math.min(START_FACTOR * times.probeTimeout, times.timeout)
    return await this.#handshake(requested, { ...times, timeout })
  }

  /** Opens the session from a cached `server/discover` result, without a request. False if the transport is not HTTP. */
  reuse(details: ServerDetails): boolean {
    if (this.#channel.http !== true) return false
    this.session.revision = details.revision
    this.session.capabilities = details.capabilities
    return true
  }

  /** Closes the connection, and returns the error for the caller. */
  async fail(error: unknown): Promise<Error> {
    const message = error instanceof Error ? error.message : String(error)
    const reason = error instanceof RpcError ? describeRpcError('initialize', error) : message
    // Before closing: the end of the process must not be taken for the cause.
    const diagnosis = this.#channel.diagnose?.() ?? ''
    await this.session.peer.close()
    // The connection works; a user is needed.
    if (error instanceof RequestFailedError && error.code === 'AUTHORIZATION_REQUIRED') return error
    const diagnosed = diagnosis === '' || isServerExit(error)
    const text = diagnosed ? reason : `${reason}\n${diagnosis}`
    const failure = new ConnectionError(text, { cause: error })
    this.#channel.secrets?.redactError(failure)
    return failure
  }

  async #discover(requested: Revision, { timeout, signal }: Timeouts): Promise<ServerDetails> {
    const probed = await probe(
      this.session,
      requested,
      withSignal(timeout, signal),
      this.#channel.http,
    )
    if (probed.kind === 'failed') throw probed.error
    if (probed.kind === 'modern' && probed.details.revision === requested) return probed.details
    const because =
      probed.kind === 'modern'
        ? `it chose ${probed.details.revision.id}`
        : probed.answer instanceof RpcError
          ? describeRpcError('server/discover', probed.answer)
          : probed.answer.message
    throw new ConnectionError(`The server does not serve ${requested.id}: ${because}`)
  }

  /**
   * Finds out whether the server is modern or legacy. A process that is still
   * starting does not respond either, and must not be sent `initialize` because
   * of that: a modern server would refuse it, or take it as the choice of a legacy
   * revision. A server is legacy if it responds to `ping` but not to `server/discover`.
   */
  async #negotiate(isKnown: boolean, times: Timeouts): Promise<ServerDetails> {
    if (this.#channel.http === true) return await this.#negotiateOverHttp(times)
    const { timeout, signal } = times
    // A server that is known to be modern has the whole timeout.
    const probeTimeout = isKnown ? timeout : Math.min(times.probeTimeout, timeout)
    const opened = new AbortController()
    const pending: CallOptions = {
      timeout: Infinity,
      maxTimeout: Infinity,
      signal: signal === undefined ? opened.signal : AbortSignal.any([opened.signal, signal]),
    }
    try {
      const probing = probe(this.session, newest, pending)
      let probed = await withTimeout(probeTimeout, probing)
      if (probed === 'late') {
        const alive = this.session.request('ping', undefined, pending).then(late, late)
        probed = await withTimeout(
          Math.min(START_FACTOR * probeTimeout, timeout),
          Promise.race([probing, alive]),
        )
      }
      if (probed === 'late')
        return await this.#initializeDuringProbe(probing, {
          ...times,
          probeTimeout,
          signal: pending.signal,
        })
      if (probed.kind === 'modern') return probed.details
      if (probed.kind === 'failed') {
        if (!(probed.error instanceof ChannelClosedError)) throw probed.error
        await this.#reopen()
      }
      return await this.#initialize(undefined, times)
    } finally {
      opened.abort(new Error('The response is no longer needed'))
    }
  }

  /** Over HTTP every request gets a response, so a timeout is an error, not the sign of a legacy server. */
  async #negotiateOverHttp(times: Timeouts): Promise<ServerDetails> {
    const { timeout, signal } = times
    const probed = await probe(this.session, newest, withSignal(timeout, signal), true)
    if (probed.kind === 'failed') throw probed.error
    return probed.kind === 'modern' ? probed.details : await this.#initialize(undefined, times)
  }

  /** Sends `initialize`; a late response to `server/discover` still means a modern server. */
  async #initializeDuringProbe(
    probing: Promise<ProbeOutcome>,
    times: Timeouts,
  ): Promise<ServerDetails> {
    const { timeout, probeTimeout } = times
    const initializing = this.#initialize(undefined, times)
    // A server that accepts `initialize` has chosen a handshake revision, even if it also has stateless ones.
    const accepted = probing.then((probed) =>
      probed.kind === 'modern' ? withTimeout(probeTimeout, initializing) : initializing,
    )
    let problem: unknown
    try {
      const details = await Promise.race([initializing, accepted])
      if (details !== 'late') return details
    } catch (error) {
      if (!(error instanceof RpcError || error instanceof ChannelClosedError)) throw error
      problem = error
    }
    const probed = await withTimeout(isModern(problem) ? timeout : probeTimeout, probing)
    if (problem instanceof ChannelClosedError) {
      // The process has exited because of what it was sent.
      await this.#reopen()
      return probed !== 'late' && probed.kind === 'modern'
        ? await this.#discover(probed.details.revision, times)
        : await this.#initialize(undefined, times)
    }
    if (probed === 'late') throw problem
    if (probed.kind === 'modern') return probed.details
    throw probed.kind === 'failed' ? probed.error : problem
  }

  async #initialize(requested: Revision | undefined, times: Timeouts): Promise<ServerDetails> {
    try {
      return await this.#handshake(requested, times)
    } catch (error) {
      const open = this.#target.openHttpSse?.bind(this.#target)
      if (open === undefined || !lacksStreamableHttp(error)) throw error
      await this.#reopen(open)
      this.httpSse = true
      try {
        return await this.#handshake(requested, times)
      } catch (second) {
        const failed = second instanceof ChannelClosedError || second instanceof RequestFailedError
        if (!failed || !(error instanceof Error)) throw second
        throw new ConnectionError(`${error.message}; HTTP+SSE failed too: ${second.message}`, {
          cause: error,
        })
      }
    }
  }

  async #handshake(
    requested: Revision | undefined,
    { timeout, signal }: Timeouts,
  ): Promise<ServerDetails> {
    const { session } = this
    const details = await initialize(session, requested, this.#options, withSignal(timeout, signal))
    session.reinitialize = () => initialize(session, details.revision, this.#options, { timeout })
    return details
  }

  /** Opens the target again, after the first process has exited: two at a time could conflict. */
  async #reopen(open = this.#target.open.bind(this.#target)): Promise<void> {
    await this.session.peer.close()
    this.httpSse = false
    this.#channel = openChannel(() => open(this.#report))
    this.session = new ClientSession(this.#channel, this.#options)
  }
}

/** Whether the failure to open as before does not mean that the server has changed: it is not there, or refuses everyone. */
function isInconclusiveFailure(error: unknown): boolean {
  return error instanceof RequestFailedError && (error.code === 'NETWORK' || isInconclusive(error))
}

/** Whether the error is that the server's process ended: its message has the diagnosis. */
function isServerExit(error: unknown): boolean {
  const cause: unknown = error instanceof ChannelClosedError ? error.cause : undefined
  return cause instanceof Error && 'code' in cause && cause.code === 'SERVER_EXITED'
}

/** The server responds, but not to `server/discover` in time. */
function late(): 'late' {
  return 'late'
}

function withSignal(timeout: number, signal: AbortSignal | undefined): CallOptions {
  return signal === undefined ? { timeout } : { timeout, signal }
}

function openChannel(open: () => TargetChannel): TargetChannel {
  const channel: TargetChannel | PromiseLike<unknown> = open()
  if (!isThenable(channel)) return channel
  callHook(() => channel, ignore)
  throw new TypeError('"open" of a target must return a channel, not a promise of one')
}
