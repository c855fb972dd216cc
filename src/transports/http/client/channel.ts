import { Secrets } from '../../../auth/secrets.js'
import type { Channel, ConnectionFacts, Receiver } from '../../../jsonrpc/channel.js'
import { RequestFailedError } from '../../../jsonrpc/errors.js'
import type { LogEntry } from '../../../jsonrpc/log-entry.js'
import { isArray } from '../../../jsonrpc/scan.js'
import { httpConnection } from './connection-facts.js'
import {
  type Id,
  type Message,
  type SentMessage,
  type SentRequest,
  isObject,
  parseMessage,
} from '../../../jsonrpc/message.js'
import { untilAborted, withTimeout } from './abort.js'
import { EventStreams } from './event-streams.js'
import { Gate } from './gate.js'
import type { HttpResponse, SendRequest } from './http-request.js'
import { PendingRequest } from './pending-request.js'
import { type Post, PostQueue } from './post-queue.js'
import { toRequestFailed, unexpectedBody, refusal, sessionExpired } from './request-errors.js'
import {
  EVENT_STREAM,
  JSON_TYPE,
  agreedVersion,
  hasBatches,
  isStateless,
  requestHeaders,
  sessionOf,
  versionHeader,
} from './request-headers.js'
import { mediaType, readErrorText, readText } from './response-body.js'
import { isBackground, isNotification, isResponse, sentMessage } from './sent-message.js'

export interface HttpClientChannelOptions {
  url: URL
  /** Sends one HTTP request, with redirects and authorization. */
  send: SendRequest
  /** Closes the connections of `send`. */
  disconnect?: () => void
  /** Headers of every request. */
  headers: Readonly<Record<string, string>>
  /** Maximum bytes of a received message. */
  maxMessage: number
  /** What no error and no report may repeat. */
  secrets?: Secrets
  /** The parameter of a method that `Mcp-Name` repeats. */
  nameParam(method: string): string | undefined
  report(report: LogEntry): void
}

/** Milliseconds for what is still to be sent or received at the end: of a request, of a session. */
const CLOSE_TIMEOUT = 2000
const LISTEN = 'subscriptions/listen'

/**
 * The client side of Streamable HTTP, for every revision: each message is a POST. With a handshake there may be a
 * session, a GET stream for messages that belong to no request, and resumption; stateless requests have none of these.
 * https://modelcontextprotocol.io/specification/2026-07-28/basic/transports/streamable-http
 * https://modelcontextprotocol.io/specification/2025-11-25/basic/transports#streamable-http
 */
export class HttpClientChannel implements Channel {
  readonly http = true
  /** Called when the server has ended the session and no request was refused because of it. */
  onExpired: (() => void) | undefined
  /** Whether no call waits for the handshake. */
  isUnattended: (() => boolean) | undefined
  readonly #options: HttpClientChannelOptions
  readonly secrets: Secrets
  readonly #pending = new Map<Id, PendingRequest>()
  readonly #streams: EventStreams
  readonly #posts: PostQueue
  /** Shut from `initialize` until the server has accepted `notifications/initialized`; so are the posts. */
  readonly #gate = new Gate()
  #receiver: Receiver | undefined
  #session: string | undefined
  /** Whether the server has ended the session; until the next handshake, requests fail. */
  #expired = false
  /** `MCP-Protocol-Version`: that of the last stateless request, or the one negotiated by `initialize`. */
  #version: string | undefined
  /** Ends the GET stream. */
  #listening: AbortController | undefined
  /** Whether the server has accepted to send notifications: the next such request may be one that nobody waits for. */
  #hasListened = false
  #closed = false

  constructor(options: HttpClientChannelOptions) {
    this.#options = options
    this.secrets = options.secrets ?? new Secrets()
    const report = (entry: LogEntry) => this.#report(entry)
    this.#posts = new PostQueue((post, signal) => this.#post(post, signal), report)
    this.#streams = new EventStreams({
      maxMessage: options.maxMessage,
      open: (headers, signal, background) =>
        this.#exchange('GET', headers, undefined, signal, background),
      deliver: (text, own) => this.#deliver(text, own),
      ready: () => this.#posts.ready() ?? this.#receiver?.ready?.(),
      report,
    })
  }

  get connection(): ConnectionFacts {
    return httpConnection(this.#options.url, this.#session)
  }

  receive(receiver: Receiver): void {
    this.#receiver = receiver
  }

  #report(entry: LogEntry): void {
    this.#options.report(this.secrets.redactEntry(entry))
  }

  diagnose(): string {
    const { origin, pathname } = this.#options.url
    return `The URL is ${origin}${pathname}`
  }

  send(frame: string, message: SentMessage | undefined = sentMessage(frame)): void {
    if (this.#closed) return
    if (message?.kind === 'request') this.#sendRequest(frame, message)
    else if (isNotification(message, 'notifications/initialized'))
      void this.#open({ frame, message })
    else this.#posts.add({ frame, message })
  }

  /**
   * In a stateless revision, closing the stream cancels; in others, closing it is no cancellation. `initialize` is never
   * cancelled by a notification, nor is a request that was not sent.
   */
  cancel(id: Id): boolean {
    const pending = this.#pending.get(id)
    if (pending === undefined) return true
    const { method, protocolVersion } = pending.request
    if (pending.sent && method !== 'initialize' && !isStateless(protocolVersion)) return false
    pending.controller.abort()
    return true
  }

  hasSent(id: Id): boolean {
    return this.#pending.get(id)?.sent !== false
  }

  async close(): Promise<void> {
    if (this.#closed) return
    this.#closed = true
    this.#listening?.abort()
    for (const { controller } of this.#pending.values()) controller.abort()
    this.#gate.open()
    await this.#posts.close()
    await this.#endSession()
    this.#options.disconnect?.()
  }

  /** The client has not accepted what the server responded to `initialize`: the next request needs another handshake. */
  handshakeFailed(): void {
    if (this.#closed) return
    void this.#endSession()
    this.#forgetSession()
    this.#expired = true
    this.#endHandshake()
  }

  async #endSession(): Promise<void> {
    if (this.#session === undefined) return
    try {
      const response = await withTimeout(CLOSE_TIMEOUT, (signal) =>
        this.#exchange('DELETE', {}, undefined, signal, true),
      )
      response.cancel()
    } catch {
      // The server will expire the session.
    }
  }

  #sendRequest(frame: string, request: SentRequest): void {
    const pending = new PendingRequest(request)
    this.#pending.set(request.id, pending)
    if (request.method !== 'initialize') return void this.#request(frame, pending)
    this.#forgetSession()
    this.#version = undefined
    this.#gate.shut()
    this.#posts.pause()
    void this.#request(frame, pending)
  }

  async #request(frame: string, pending: PendingRequest): Promise<void> {
    const { request, controller } = pending
    try {
      if (request.method !== 'initialize') {
        if (this.#gate.isShut) await untilAborted(this.#gate.opened(), controller.signal)
        if (isStateless(request.protocolVersion)) this.#version = request.protocolVersion
        else if (this.#expired) throw sessionExpired()
      }
      pending.session = this.#session
      const response = await this.#exchange(
        'POST',
        requestHeaders(request, this.#version, this.#options.nameParam),
        frame,
        controller.signal,
        request.method === LISTEN ? this.#hasListened : isBackground(request, this.isUnattended),
        () => (pending.sent = true),
      )
      if (request.method === LISTEN && response.status === 200) this.#hasListened = true
      await this.#receiveResponse(response, pending)
    } catch (error) {
      this.#fail(pending, toRequestFailed(error, pending.sent))
    } finally {
      pending.finish()
      if (this.#pending.get(request.id) === pending) this.#pending.delete(request.id)
    }
  }

  #fail(pending: PendingRequest, error: Error): void {
    if (!pending.settle()) return
    if (pending.request.method === 'initialize') this.#endHandshake()
    this.secrets.redactError(error)
    if (!this.#closed) this.#receiver?.failed?.(pending.id, error)
  }

  /** `notifications/initialized`; then messages of both sides may be sent. */
  async #open(post: Post): Promise<void> {
    await this.#posts.sendNow(post)
    this.#endHandshake()
    if (this.#closed) return
    void this.#listen()
  }

  /** Keeps the GET stream open until the session ends. It is optional: its failure affects nothing else. */
  async #listen(): Promise<void> {
    this.#listening?.abort()
    this.#listening = new AbortController()
    const session = this.#session
    try {
      const refused = await this.#streams.listen(this.#listening.signal)
      if (refused === 'not found' && session !== undefined) this.#expire(session)
      else if (refused !== undefined)
        this.#report({
          level: 'warning',
          message:
            'The server refused to open its GET stream again: its notifications are no longer received',
        })
    } catch {
      // It was aborted.
    }
  }

  #endHandshake(): void {
    this.#gate.open()
    this.#posts.resume()
  }

  async #post({ frame, message }: Post, signal: AbortSignal): Promise<void> {
    const cancelled = this.#cancelledBy(message)
    // The server may be slow to accept the cancellation.
    cancelled?.abortAfter(CLOSE_TIMEOUT)
    const session = this.#session
    try {
      const headers = requestHeaders(message, this.#version, this.#options.nameParam)
      const background = isBackground(message, this.isUnattended)
      const response = await this.#exchange('POST', headers, frame, signal, background)
      response.cancel()
      if (response.status >= 300) this.#refusedOther(response.status, message, session)
    } catch (error) {
      if (!this.#closed)
        this.#report({ level: 'warning', message: 'A message could not be sent', error })
    }
    cancelled?.controller.abort()
  }

  #cancelledBy(message: SentMessage | undefined): PendingRequest | undefined {
    return isNotification(message, 'notifications/cancelled') && isObject(message.params)
      ? this.#pending.get(message.params['requestId'] as Id) // an id of ours
      : undefined
  }

  #refusedOther(
    status: number,
    message: SentMessage | undefined,
    session: string | undefined,
  ): void {
    this.#report({
      level: 'warning',
      message: `The server refused a message with HTTP ${status}`,
    })
    if (status !== 404 || session === undefined) return
    // The next request shows whether the server knows the session: another handshake could end like this one.
    if (!isNotification(message, 'notifications/initialized')) this.#expire(session)
  }

  #exchange(
    method: 'POST' | 'GET' | 'DELETE',
    own: Readonly<Record<string, string>>,
    body: string | undefined,
    signal: AbortSignal,
    background: boolean,
    onSend?: () => void,
  ): Promise<HttpResponse> {
    const { url, send, headers: common } = this.#options
    const headers: Record<string, string> = { ...common, ...own, ...versionHeader(this.#version) }
    if (this.#session !== undefined && !isStateless(this.#version))
      headers['mcp-session-id'] = this.#session
    return send({
      method,
      url,
      headers,
      signal,
      background,
      ...(body === undefined ? {} : { body }),
      ...(onSend === undefined ? {} : { onSend }),
    })
  }

  async #receiveResponse(response: HttpResponse, pending: PendingRequest): Promise<void> {
    const { status } = response
    const { method, protocolVersion } = pending.request
    if (status < 200 || status >= 300) return await this.#refused(response, pending)
    if (method === 'initialize') {
      this.#session = sessionOf(response)
      this.#expired = false
    }
    const type = mediaType(response)
    if (type === EVENT_STREAM)
      return await this.#streams.readResponse(response, pending, !isStateless(protocolVersion))
    if (type === JSON_TYPE)
      this.#deliver(await readText(response, this.#options.maxMessage), pending)
    else response.cancel()
    if (!pending.settled) throw unexpectedBody(status, type)
  }

  async #refused(response: HttpResponse, pending: PendingRequest): Promise<void> {
    const { status } = response
    if (status === 404 && pending.session !== undefined) {
      response.cancel()
      return this.#expire(pending.session, pending)
    }
    const error = refusal(status, await readErrorText(response), pending.request.method)
    this.#fail(pending, error)
  }

  #deliver(text: string, own: PendingRequest | undefined): void {
    if (this.#closed) return
    const message = parseMessage(text)
    if (message.kind === 'batch' && hasBatches(this.#version)) {
      // A batch in a batch is invalid.
      for (const frame of message.frames) if (!isArray(frame)) this.#deliver(frame, own)
      return
    }
    if (message.kind === 'request' && isStateless(this.#version))
      return this.#report({
        level: 'warning',
        message: 'A request of the server was ignored: its protocol revision has none over HTTP',
      })
    if (message.kind === 'response' && 'error' in message.outcome)
      this.secrets.redactError(message.outcome.error)
    if ('id' in message && message.id !== undefined && isResponse(message))
      this.#settle(this.#pending.get(message.id), message, own)
    this.#receiver?.frame(text, undefined, message)
  }

  #settle(
    pending: PendingRequest | undefined,
    message: Message,
    own: PendingRequest | undefined,
  ): void {
    if (pending === undefined) return
    pending.settle()
    // It came on another stream; its own has nothing more.
    if (pending !== own) pending.abortAfter(CLOSE_TIMEOUT)
    if (pending.request.method !== 'initialize') return
    this.#version = agreedVersion(message)
    // Otherwise the handshake goes on with `notifications/initialized`.
    if (this.#version === undefined) this.#endHandshake()
  }

  /** Handles an expired session. The refused request was not executed; the other requests may have been. */
  #expire(session: string, refusedOne?: PendingRequest): void {
    const current = this.#session === session
    if (current) {
      this.#forgetSession()
      this.#expired = true
    }
    if (refusedOne !== undefined) this.#fail(refusedOne, sessionExpired())
    for (const pending of this.#pending.values()) {
      if (pending.session !== session || pending === refusedOne) continue
      this.#fail(
        pending,
        new RequestFailedError(
          'SESSION_EXPIRED',
          'The server has ended the session while the request was executed',
          { executed: 'maybe' },
        ),
      )
      pending.controller.abort()
    }
    if (current && refusedOne === undefined) this.onExpired?.()
  }

  #forgetSession(): void {
    this.#session = undefined
    this.#listening?.abort()
    this.#listening = undefined
  }
}
