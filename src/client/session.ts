import { type TappedMessage, tap } from '../jsonrpc/channel.js'
import { type Deadline, TimeoutError } from '../jsonrpc/deadline.js'
import { RequestFailedError, RpcError } from '../jsonrpc/errors.js'
import { callHook } from '../jsonrpc/hook.js'
import type { IncomingRequest } from '../jsonrpc/incoming.js'
import { type Id, type Notification, type Params, isObject } from '../jsonrpc/message.js'
import { Peer } from '../jsonrpc/peer.js'
import type { LogEntry } from '../jsonrpc/log-entry.js'
import { truncate, truncateJson } from '../jsonrpc/truncate.js'
import { parseCancellation } from '../protocol/cancellation.js'
import { HEADER_MISMATCH } from '../protocol/errors.js'
import { CLIENT_CAPABILITIES, CLIENT_INFO, LOG_LEVEL, PROTOCOL_VERSION } from '../protocol/meta.js'
import type { Implementation, LogLevel } from '../protocol/model.js'
import type { Revision } from '../protocol/revisions/index.js'
import type { Observer } from '../protocol/telemetry.js'
import {
  type CallOptions,
  type Progress,
  type SessionCallOptions,
  deadlineOf,
} from './call-options.js'
import {
  type ClientExtensions,
  type ExtensionConnection,
  type ExtensionContext,
  type ResultContext,
  settingsOf,
} from './extension.js'
import {
  type InputHandlers,
  handleServerRequest,
  resolveInputRequests,
  unknownMethod,
} from './input-handlers.js'
import { listOf } from './pages.js'
import { SessionRenewal } from './session-renewal.js'
import { SessionTelemetry } from './session-telemetry.js'
import type { TargetChannel } from './target.js'
import { ToolHeaders } from './tool-headers.js'
import { untilAborted, untilDeadline } from './until-aborted.js'

/** Receives the events of a session. */
export interface SessionObserver {
  /** Whether no call waits for the session that is being opened. */
  isUnattended(): boolean
  /** What an extension uses: it outlives the session. */
  connectionOf(id: string): ExtensionConnection
  notified(session: ClientSession, method: string, params: Params): void
  /** The connection has ended, with an error if it broke. */
  closed(session: ClientSession, error: Error | undefined): void
  /** The server has ended the HTTP session, and there is a new one. */
  renewed(session: ClientSession, details: ServerDetails): void
}

export interface ClientSessionOptions {
  observer: SessionObserver
  info: Implementation
  capabilities: Params
  inputHandlers: InputHandlers
  extensions: ClientExtensions
  report(entry: LogEntry): void
  tap?: (tapped: TappedMessage) => void
  telemetry?: Observer | undefined
}

/** What the server has said about itself. */
export interface ServerDetails {
  revision: Revision
  server: Implementation | undefined
  capabilities: Params
  instructions: string | undefined
  /** The result of `server/discover`, if there was one. */
  discoverResult?: Params
}

/** The options of a request with the timeouts of its call. */
type LimitedOptions = CallOptions & { readonly deadline: Deadline }

/** Maximum results of one request that need input or an extension. */
const MAX_ROUNDS = 20

/** A client's session with one server: requests, notifications, and the answers to requests of the server. */
export class ClientSession {
  readonly peer: Peer
  readonly #options: ClientSessionOptions
  readonly #progress = new Map<unknown, (params: Params) => void>()
  /** Signals of the server's requests in progress. */
  readonly #serverRequests = new Set<AbortSignal>()
  /** The negotiated revision; undefined until there is one. */
  revision: Revision | undefined
  /** The capabilities that the server has declared. */
  capabilities: Params = {}
  /** The level of log messages that each request asks for, in revisions where requests have one. */
  logLevel: LogLevel | undefined
  /** Whether the connection has ended. */
  closed = false
  /** Whether messages arrive in the order in which they were sent. Over HTTP each request has a stream of its own. */
  readonly ordered: boolean
  /** Repeats the handshake, in the same revision, after the server has ended an HTTP session. */
  reinitialize: (() => Promise<ServerDetails>) | undefined
  readonly #renewal: SessionRenewal
  /** Over HTTP, the arguments that are repeated in headers. */
  readonly #toolHeaders: ToolHeaders | undefined
  readonly telemetry: SessionTelemetry | undefined
  readonly secrets: TargetChannel['secrets']

  constructor(channel: TargetChannel, options: ClientSessionOptions) {
    const { secrets } = channel
    const report = (entry: LogEntry) => options.report(secrets?.redactEntry(entry) ?? entry)
    this.secrets = secrets
    this.#options = options
    this.ordered = channel.http !== true
    this.#renewal = new SessionRenewal(() => this.#renew(channel))
    if (channel.http === true) {
      this.#toolHeaders = new ToolHeaders((entry) => this.peer.log(entry))
      channel.onExpired = () => this.#expired()
      channel.isUnattended = () => this.#renewal.isUnattended || options.observer.isUnattended()
    }
    const { telemetry: observer } = options
    this.telemetry =
      observer === undefined
        ? undefined
        : new SessionTelemetry({
            observer,
            channel,
            revision: () => this.revision,
            isExtension: (method) =>
              this.revision !== undefined &&
              options.extensions.methodOf(this.revision, method) !== undefined,
            report,
          })
    const { telemetry } = this
    const tapFailed = (error: unknown) => report({ level: 'error', message: 'tap failed', error })
    this.peer = new Peer(
      options.tap === undefined ? channel : tap(channel, options.tap, tapFailed),
      {
        onRequest: (call) =>
          telemetry === undefined
            ? this.#onRequest(call)
            : telemetry.serve(call, () => this.#onRequest(call)),
        onNotification: (notification) =>
          telemetry === undefined
            ? this.#onNotification(notification)
            : telemetry.notified(notification, () => this.#onNotification(notification)),
        ...(telemetry && { sending: telemetry.sending }),
        respondsToMalformed: false,
        batchLimit: () => (this.revision?.batches === true ? Infinity : 0),
        cancelled: (requestId, reason, method) =>
          method !== 'initialize' &&
          this.peer.notify('notifications/cancelled', { requestId, reason }),
        report,
        onClosed: (error) => {
          this.closed = true
          this.#renewal.close()
          telemetry?.closed(error)
          options.observer.closed(this, error)
        },
      },
    )
  }

  /** Whether a request of the server is being answered: meanwhile it may keep us waiting. */
  readonly isAnswering = (): boolean => [...this.#serverRequests].some(({ aborted }) => !aborted)

  #onRequest(call: IncomingRequest): unknown {
    const { request, signal } = call
    const { method, params = {} } = request
    const { revision } = this
    if (revision !== undefined && isStateless(revision)) return this.#ignoreRequest(call)
    if (method === 'ping') return {}
    if (revision?.methods.serverRequests.includes(method) === false) throw unknownMethod(method)
    const { inputHandlers } = this.#options
    this.#serverRequests.add(signal)
    return handleServerRequest(inputHandlers, revision, method, params, signal).finally(() =>
      this.#serverRequests.delete(signal),
    )
  }

  /**
   * Sends a request. If the result needs input, that is gathered and the request is sent again; a result type of an
   * extension is left to the extension.
   */
  async request(
    method: string,
    params: Params | undefined,
    given: SessionCallOptions = {},
    revision: Revision | undefined = this.revision,
  ): Promise<Params> {
    const { inputHandlers, extensions } = this.#options
    const { onRound, deadline = deadlineOf(given, this.isAnswering), ...others } = given
    const { signal = new AbortController().signal } = others
    const options = { ...others, deadline }
    if (revision !== undefined) extensions.checkMethod(revision, method)
    let result = await this.#requestWithRetry(method, params, options, revision)
    if (revision === undefined) return result
    for (let round = 0; ; round++) {
      const { resultType } = result
      const found = extensions.resultHandler(revision, resultType)
      if (found === undefined && !(isStateless(revision) && resultType === 'input_required'))
        return result
      onRound?.()
      if (round === MAX_ROUNDS)
        throw new TypeError(`${method} does not complete: it has needed input ${MAX_ROUNDS} times`)
      if (found === undefined) {
        const input = await resolveInputRequests(inputHandlers, revision, method, result, signal)
        result = await this.#requestWithRetry(method, { ...params, ...input }, options, revision)
      } else {
        const context = this.#resultContext(found.id, method, params, { ...others, signal })
        const handled = await untilAborted(found.entry(result, context), signal)
        result = this.#checkResult(method, handled, revision)
        if (result['resultType'] === resultType)
          throw new TypeError(
            `Extension ${found.id}: the handler of the resultType ${truncateJson(resultType)} must not return that type again; return the result for the caller`,
          )
      }
    }
  }

  /** Answers the input requests of an extension's result. */
  async answer(inputRequests: unknown, signal: AbortSignal): Promise<Params> {
    const { inputHandlers } = this.#options
    const { revision } = this
    if (revision === undefined) throw new TypeError('There is no protocol revision yet')
    const requests = { inputRequests }
    const input = await resolveInputRequests(
      inputHandlers,
      revision,
      'an extension',
      requests,
      signal,
    )
    const { inputResponses } = input
    return isObject(inputResponses) ? inputResponses : {}
  }

  #resultContext(
    id: string,
    method: string,
    params: Params | undefined,
    given: CallOptions & { signal: AbortSignal },
  ): ResultContext {
    const { onProgress: _, ...options } = given
    const context = this.#contextOf(id)
    const { request, answer } = context.connection
    return {
      ...context,
      method,
      params,
      signal: options.signal,
      request: (other, its, own) => request(other, its, { ...options, ...own }),
      answer,
    }
  }

  #contextOf(id: string): ExtensionContext {
    const connection = this.#options.observer.connectionOf(id)
    return { settings: settingsOf(id, this.capabilities), connection }
  }

  /** Sends a request, and once more if the server has refused it for a reason that the client can remove. */
  async #requestWithRetry(
    method: string,
    params: Params | undefined,
    options: LimitedOptions,
    revision: Revision | undefined,
  ): Promise<Params> {
    if (this.#renewal.isRunning && method !== 'initialize')
      await this.#untilRenewed(this.#renewal.start(), method, options)
    try {
      return await this.#requestOnce(method, params, options, revision)
    } catch (error) {
      if (isExpired(error) && this.reinitialize !== undefined)
        await this.#untilRenewed(this.#renewal.start(), method, options)
      else if (isHeaderMismatch(error) && method === 'tools/call' && this.#toolHeaders)
        await this.#listTools(options)
      else throw error
      return await this.#requestOnce(method, params, options, revision)
    }
  }

  #untilRenewed(renewed: Promise<void>, method: string, options: LimitedOptions): Promise<void> {
    return untilDeadline(renewed, options, (when) => {
      const message = `The server ended the session, and there was no new one ${when}; ${method} was not executed`
      return new TimeoutError(message, { executed: 'no' })
    })
  }

  /** The server has ended the session while no request was sent: what it should send needs a new one. */
  #expired(): void {
    if (this.reinitialize === undefined || this.closed) return
    this.#renewal
      .start(true)
      .catch((error: unknown) =>
        this.peer.log({ level: 'warning', message: 'The session could not be renewed', error }),
      )
  }

  async #renew(channel: TargetChannel): Promise<void> {
    try {
      const details = await this.reinitialize?.()
      if (details !== undefined) this.#options.observer.renewed(this, details)
    } catch (error) {
      channel.handshakeFailed?.()
      throw error
    }
  }

  /** Lists the tools for the `x-mcp-header` annotations of their schemas. */
  async #listTools(options: LimitedOptions): Promise<void> {
    const { onProgress: _, ...others } = options
    for await (const _tool of listOf(this, 'tools/list', 'tools', others));
  }

  async #requestOnce(
    method: string,
    params: Params | undefined,
    options: LimitedOptions,
    revision: Revision | undefined,
  ): Promise<Params> {
    const { signal, deadline, onProgress } = options
    const token = onProgress === undefined ? undefined : this.peer.nextId
    if (onProgress !== undefined) {
      this.#progress.set(token, (progress) => {
        deadline.extend()
        this.#call('onProgress', () => onProgress(progress as unknown as Progress)) // its number was checked when it was received
      })
    }
    try {
      const stateless = revision !== undefined && isStateless(revision)
      const sent = this.#withMeta(params, token, stateless ? revision : undefined)
      const { extensions } = this.#options
      const result = await this.peer.request(method, sent, {
        deadline,
        ...(signal === undefined ? {} : { signal }),
        ...(stateless
          ? {
              protocolVersion: revision.id,
              nameParam: extensions.methodOf(revision, method)?.nameParam,
            }
          : {}),
        ...(stateless && method === 'tools/call'
          ? { headerParams: this.#toolHeaders?.headerParamsFor(params) }
          : {}),
      })
      if (method !== 'initialize') this.#renewal.succeeded()
      const checked = this.#checkResult(method, result, revision)
      return stateless && method === 'tools/list' && this.#toolHeaders
        ? this.#toolHeaders.rememberPage(checked)
        : checked
    } finally {
      if (token !== undefined) this.#progress.delete(token)
    }
  }

  /**
   * Opens a stream of notifications. They carry the id of its request; `ended` settles when the stream ends.
   * https://modelcontextprotocol.io/specification/2026-07-28/basic/patterns/subscriptions
   */
  listen(notifications: Params, signal: AbortSignal): { id: Id; ended: Promise<Params> } {
    const id = this.peer.nextId
    const deadline = deadlineOf({ timeout: Infinity, maxTimeout: Infinity })
    const params = { notifications }
    return {
      id,
      ended: this.#requestOnce('subscriptions/listen', params, { signal, deadline }, this.revision),
    }
  }

  /** Adds the progress token, and for a stateless revision the protocol's own members of `_meta`. */
  #withMeta(
    params: Params | undefined,
    progressToken: unknown,
    stateless: Revision | undefined,
  ): Params | undefined {
    if (stateless === undefined && progressToken === undefined) return params
    const { info, capabilities, extensions } = this.#options
    const given = isObject(params?.['_meta']) ? params['_meta'] : {}
    const meta: Record<string, unknown> = { ...given }
    if (progressToken !== undefined) meta['progressToken'] = progressToken
    if (stateless !== undefined) {
      meta[PROTOCOL_VERSION] = stateless.id
      meta[CLIENT_INFO] = info
      meta[CLIENT_CAPABILITIES] = extensions.declare(stateless, capabilities)
      if (this.logLevel !== undefined) meta[LOG_LEVEL] ??= this.logLevel
    }
    return { ...params, _meta: meta }
  }

  /** https://modelcontextprotocol.io/specification/2026-07-28/basic#resulttype */
  #checkResult(method: string, result: unknown, revision: Revision | undefined): Params {
    if (!isObject(result)) throw new TypeError(`The response to ${method} is not an object`)
    const { resultType = 'complete' } = result
    // Earlier revisions give `resultType` no meaning.
    if (revision === undefined || !isStateless(revision) || resultType === 'complete') return result
    const { extensions } = this.#options
    if (extensions.resultHandler(revision, resultType) !== undefined) return result
    if (resultType !== 'input_required')
      throw new TypeError(
        `The response to ${method} has the unknown resultType ${truncateJson(resultType)}; ${extensions.describe(revision)}`,
      )
    const hasInput = result['inputRequests'] !== undefined || result['requestState'] !== undefined
    const known = extensions.methodOf(revision, method)
    if (known?.mayRequireInput === true && hasInput) return result
    throw new TypeError(
      hasInput
        ? `The response to ${method} has the resultType "input_required", which this method does not allow; for a method of an extension, set "mayRequireInput" in its "methods"`
        : `The response to ${method} needs input, but has neither "inputRequests" nor "requestState"`,
    )
  }

  /** Clients send no responses: https://modelcontextprotocol.io/specification/2026-07-28/basic/transports/stdio#sending-messages */
  #ignoreRequest(call: IncomingRequest): undefined {
    const message = `The server sent the request ${truncate(call.request.method)}, which this protocol revision does not allow`
    this.peer.log({ level: 'warning', message })
    call.cancel(new Error(message))
  }

  #onNotification(notification: Notification): void {
    const { method, params = {} } = notification
    if (method === 'notifications/cancelled') {
      const target = parseCancellation(notification)
      if (target !== undefined) this.peer.cancel(target.id, target.reason)
    }
    if (method === 'notifications/progress' && typeof params['progress'] === 'number') {
      const { progressToken, ...progress } = params
      this.#progress.get(progressToken)?.(progress)
    }
    const found = this.#options.extensions.notificationHandler(this.revision, method)
    if (found !== undefined)
      this.#call(`The extension's handler for ${truncate(method)}`, () =>
        found.entry(params, this.#contextOf(found.id)),
      )
    this.#options.observer.notified(this, method, params)
  }

  /** Calls user code; its failure is reported, and affects nothing else. */
  #call(name: string, listener: () => unknown): void {
    callHook(listener, (error) =>
      this.peer.log({ level: 'error', message: `${name} failed`, error }),
    )
  }
}

/** Whether each request says its protocol version, instead of one handshake. */
function isStateless({ lifecycle }: Revision): boolean {
  return lifecycle !== 'handshake'
}

/** Whether the server has refused the request because the session has ended. */
function isExpired(error: unknown): boolean {
  return (
    error instanceof RequestFailedError &&
    error.code === 'SESSION_EXPIRED' &&
    error.executed === 'no'
  )
}

function isHeaderMismatch(error: unknown): boolean {
  return error instanceof RpcError && error.code === HEADER_MISMATCH
}
