import type { Channel, Receiver } from '../../../jsonrpc/channel.js'
import { RequestFailed } from '../../../jsonrpc/errors.js'
import {
  type Id,
  type SentMessage,
  type SentRequest,
  isObject,
  read,
} from '../../../jsonrpc/message.js'
import type { LogEntry } from '../../../jsonrpc/log-entry.js'
import type { HttpResponse, SendRequest } from './http-request.js'
import { PendingRequest } from './pending-request.js'
import { type Cursor, isTemporary, retryDelay, waitFor } from './reconnecting.js'
import {
  errorOf,
  failure,
  isInconclusive,
  isMissing,
  refused,
  sessionExpired,
} from './request-errors.js'
import {
  EVENT_STREAM,
  JSON_TYPE,
  agreedVersion,
  isStateless,
  requestHeaders,
  sessionOf,
} from './request-headers.js'
import { mediaType, readEvents, readText } from './response-body.js'

export interface HttpChannelOptions {
  url: URL
  /** Sends one HTTP request, with redirects and authorization. */
  send: SendRequest
  /** Headers of every request. */
  headers: Readonly<Record<string, string>>
  /** Maximum bytes of a received message. */
  maxMessage: number
  /** The parameter of a method that `Mcp-Name` repeats. */
  nameParam(method: string): string | undefined
  report(report: LogEntry): void
}

/** Maximum bytes of an error body. */
const MAX_ERROR_BODY = 64 * 1024
/** Maximum consecutive failures to re-open a stream. */
const MAX_FAILURES = 5
/** Milliseconds for the end of a stream after the response, and for the DELETE of a session. */
const LINGER = 2000

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
  readonly #options: HttpChannelOptions
  readonly #pending = new Map<Id, PendingRequest>()
  #receiver: Receiver | undefined
  #session: string | undefined
  /** Whether the server has ended the session; until the next handshake, requests fail. */
  #expired = false
  /** `MCP-Protocol-Version`: that of the last stateless request, or the one negotiated by `initialize`. */
  #version: string | undefined
  /** Settles after `initialize` and `notifications/initialized`; other messages wait for it. */
  #opening: Promise<void> | undefined
  /** Ends the GET stream. */
  #listening: AbortController | undefined
  #closed = false

  constructor(options: HttpChannelOptions) {
    this.#options = options
  }

  receive(receiver: Receiver): void {
    this.#receiver = receiver
  }

  diagnose(): string {
    const { origin, pathname } = this.#options.url
    return `The URL is ${origin}${pathname}`
  }

  send(frame: string, message: SentMessage | undefined = sentMessage(frame)): void {
    if (this.#closed) return
    if (message?.kind === 'request') this.#sendRequest(frame, message)
    else void this.#sendOther(frame, message)
  }

  /** In a stateless revision, closing the stream cancels; `initialize` is never cancelled by a notification. */
  cancel(id: Id): boolean {
    const pending = this.#pending.get(id)
    if (pending === undefined) return true
    const { method, protocolVersion } = pending.request
    if (method !== 'initialize' && !isStateless(protocolVersion)) return false
    pending.controller.abort()
    return true
  }

  async close(): Promise<void> {
    if (this.#closed) return
    this.#closed = true
    this.#listening?.abort()
    for (const { controller } of this.#pending.values()) controller.abort()
    if (this.#session === undefined) return
    try {
      const response = await this.#exchange('DELETE', {}, undefined, AbortSignal.timeout(LINGER))
      response.cancel()
    } catch {
      // The server will expire the session.
    }
  }

  #sendRequest(frame: string, request: SentRequest): void {
    const pending = new PendingRequest(request)
    this.#pending.set(request.id, pending)
    void this.#request(frame, pending)
    if (request.method === 'initialize') this.#opening = pending.settled
  }

  async #request(frame: string, pending: PendingRequest): Promise<void> {
    const { request, controller } = pending
    try {
      if (request.method === 'initialize') {
        this.#forgetSession()
        this.#version = undefined
      } else if (this.#opening !== undefined) await this.#opening
      if (isStateless(request.protocolVersion)) this.#version = request.protocolVersion
      else if (this.#expired && request.method !== 'initialize') throw sessionExpired()
      pending.session = this.#session
      const response = await this.#exchange(
        'POST',
        requestHeaders(request, this.#version, this.#options.nameParam),
        frame,
        controller.signal,
      )
      await this.#receiveResponse(response, pending)
    } catch (error) {
      this.#fail(pending, failure(error))
    } finally {
      if (this.#pending.get(request.id) === pending) this.#pending.delete(request.id)
    }
  }

  #fail(pending: PendingRequest, error: Error): void {
    if (pending.settle() && !this.#closed) this.#receiver?.failed?.(pending.id, error)
  }

  /** A notification, or the response to a request of the server. */
  async #sendOther(frame: string, message: SentMessage | undefined): Promise<void> {
    const initialized =
      message?.kind === 'notification' && message.method === 'notifications/initialized'
    const posted = this.#post(frame, message, this.#opening)
    if (initialized) this.#opening = posted
    await posted
    if (initialized) void this.#listen()
  }

  async #post(
    frame: string,
    message: SentMessage | undefined,
    opening: Promise<void> | undefined,
  ): Promise<void> {
    const session = this.#session
    try {
      await opening
      const response = await this.#exchange(
        'POST',
        requestHeaders(message, this.#version, this.#options.nameParam),
        frame,
        new AbortController().signal,
      )
      response.cancel()
      if (response.status >= 300) this.#refusedOther(response.status, session)
    } catch (error) {
      if (!this.#closed)
        this.#options.report({ level: 'warning', message: 'A message could not be sent', error })
    }
    // The server knows of the cancellation; close the stream of the request.
    if (
      message?.kind === 'notification' &&
      message.method === 'notifications/cancelled' &&
      isObject(message.params)
    )
      this.#pending.get(message.params['requestId'] as Id)?.controller.abort() // an id of ours
  }

  #refusedOther(status: number, session: string | undefined): void {
    this.#options.report({
      level: 'warning',
      message: `The server refused a message with HTTP ${status}`,
    })
    if (status === 404 && session !== undefined) this.#expire(session)
  }

  #exchange(
    method: 'POST' | 'GET' | 'DELETE',
    own: Readonly<Record<string, string>>,
    body: string | undefined,
    signal: AbortSignal,
  ): Promise<HttpResponse> {
    const { url, send, headers: common } = this.#options
    const headers: Record<string, string> = { ...common, ...own }
    if (this.#version !== undefined) headers['mcp-protocol-version'] = this.#version
    if (this.#session !== undefined && !isStateless(this.#version))
      headers['mcp-session-id'] = this.#session
    return send({ method, url, headers, signal, ...(body === undefined ? {} : { body }) })
  }

  async #receiveResponse(response: HttpResponse, pending: PendingRequest): Promise<void> {
    const { status } = response
    const type = mediaType(response)
    if (status < 200 || status >= 300) return await this.#refused(response, pending)
    if (pending.request.method === 'initialize') {
      this.#session = sessionOf(response)
      this.#expired = false
    }
    if (type === EVENT_STREAM) return await this.#receiveStream(response, pending)
    if (type === JSON_TYPE) this.#deliver(await readText(response, this.#options.maxMessage))
    else response.cancel()
    if (pending.answered) return
    const what =
      type === JSON_TYPE
        ? 'a body that is not its response'
        : `HTTP ${status} and Content-Type "${type}"`
    throw new RequestFailed('INVALID_RESPONSE', `The server answered the request with ${what}`, {
      status,
      executed: 'maybe',
    })
  }

  async #refused(response: HttpResponse, pending: PendingRequest): Promise<void> {
    const { status } = response
    if (status === 404 && pending.session !== undefined) {
      response.cancel()
      this.#expire(pending.session, pending)
      return
    }
    const text = await readText(response, MAX_ERROR_BODY).catch(() => '')
    const error = errorOf(text)
    if (error === undefined) throw refused(status, text)
    // These say something of the connection, of the caller or of the endpoint, not of the request itself.
    if (isInconclusive(status) || (pending.request.method === 'initialize' && isMissing(status)))
      throw new RequestFailed(
        'HTTP_STATUS',
        `The server answered HTTP ${status}: ${error.message}`,
        {
          status,
          executed: status >= 500 ? 'maybe' : 'no',
          cause: error,
        },
      )
    this.#fail(pending, error)
  }

  /** Reads the stream of a request, and resumes it where it breaks. */
  async #receiveStream(response: HttpResponse, pending: PendingRequest): Promise<void> {
    const { request, controller } = pending
    const cursor: Cursor = {}
    const broken = await this.#readStream(response, cursor, pending)
    let failures = 0
    while (
      !isStateless(request.protocolVersion) &&
      cursor.id !== undefined &&
      !this.#isDone(pending) &&
      failures < MAX_FAILURES
    ) {
      await waitFor(retryDelay(cursor, failures), controller.signal)
      const status = await this.#resume(cursor, pending)
      if (status === 'read') failures = 0
      else if (status === 'temporary') failures++
      else break
    }
    if (!pending.answered)
      throw new RequestFailed(
        'STREAM_ENDED',
        'The stream of the request ended without its response',
        { executed: 'maybe', cause: broken },
      )
  }

  /** Requests the events after the last one. */
  async #resume(
    cursor: Cursor,
    pending: PendingRequest | undefined,
    signal = pending?.controller.signal,
  ): Promise<'read' | 'temporary' | 'refused' | 'missing'> {
    const headers: Record<string, string> = { accept: EVENT_STREAM }
    if (cursor.id !== undefined) headers['last-event-id'] = cursor.id
    let response: HttpResponse
    try {
      response = await this.#exchange(
        'GET',
        headers,
        undefined,
        signal ?? new AbortController().signal,
      )
    } catch {
      return 'temporary'
    }
    if (response.status === 200 && mediaType(response) === EVENT_STREAM) {
      await this.#readStream(response, cursor, pending)
      return 'read'
    }
    response.cancel()
    if (response.status === 404) return 'missing'
    return isTemporary(response.status) ? 'temporary' : 'refused'
  }

  /** Delivers every message of a stream; returns the error if it broke. */
  async #readStream(
    response: HttpResponse,
    cursor: Cursor,
    pending: PendingRequest | undefined,
  ): Promise<unknown> {
    let linger: ReturnType<typeof setTimeout> | undefined
    try {
      for await (const { id, retry, event = 'message', data = '' } of readEvents(
        response,
        this.#options.maxMessage,
      )) {
        if (id !== undefined) cursor.id = id
        if (retry !== undefined) cursor.retry = retry
        if (event === 'message' && data !== '') this.#deliver(data)
        // After the response the stream should end; otherwise it is closed.
        if (pending?.answered === true) linger ??= setTimeout(() => response.cancel(), LINGER)
      }
      return undefined
    } catch (error) {
      if (error instanceof Error && error.name === 'EventTooLong' && pending !== undefined)
        throw error
      return error
    } finally {
      clearTimeout(linger)
    }
  }

  #isDone(pending: PendingRequest): boolean {
    return pending.answered || pending.aborted || this.#closed
  }

  #deliver(text: string): void {
    if (this.#closed) return
    const message = read(text)
    if (message.kind === 'response') {
      const pending = this.#pending.get(message.id)
      if (pending?.request.method === 'initialize') this.#version = agreedVersion(message)
      pending?.settle()
    }
    this.#receiver?.frame(text, undefined, message)
  }

  /** Opens the GET stream. It is optional: its failure affects nothing else. */
  async #listen(): Promise<void> {
    this.#listening?.abort()
    const controller = new AbortController()
    this.#listening = controller
    const { signal } = controller
    const cursor: Cursor = {}
    const session = this.#session
    let opened = false
    try {
      for (let failures = 0; failures < MAX_FAILURES && !signal.aborted && !this.#closed;) {
        const status = await this.#resume(cursor, undefined, signal)
        // A server without this stream may respond with 404; one that had it has ended the session.
        if (status === 'missing' && opened && session !== undefined) this.#expire(session)
        if (status === 'refused' || status === 'missing') return
        opened ||= status === 'read'
        failures = status === 'read' ? 0 : failures + 1
        await waitFor(retryDelay(cursor, failures), signal)
      }
    } catch {
      // The channel was closed, or the session has ended.
    }
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
        new RequestFailed(
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

/** For text that is sent without its message. */
function sentMessage(frame: string): SentMessage | undefined {
  const message = read(frame)
  if (message.kind === 'request' || message.kind === 'notification') return message
  return message.kind === 'response' ? { kind: 'response', id: message.id } : undefined
}
