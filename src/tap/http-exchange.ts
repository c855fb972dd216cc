import {
  type Agent,
  type ClientRequest,
  type IncomingMessage,
  type InformationEvent,
  type ServerResponse,
  request as httpRequest,
} from 'node:http'
import { request as httpsRequest } from 'node:https'
import type { Socket } from 'node:net'
import type { Direction } from '../capture/format.js'
import type { CaptureFile } from './capture-file.js'
import { EndpointRewriter } from './endpoint-rewriter.js'
import { BodyForwarder } from './http-body.js'
import { describeFailure, failureOf } from './http-failures.js'
import {
  type EditedHeaders,
  type RequestGuard,
  RecordedHeaders,
  forwardedRequest,
  forwardedResponse,
} from './http-heads.js'
import { forwardInterim } from './http-interim.js'

/** Bytes of the headers of a message. */
export const MAX_HEADERS = 128 * 1024
/** The origin of a request target in absolute form. */
const ABSOLUTE = /^https?:\/\/([^/?#]*)/i

/** What the exchanges of a tap have in common. */
export interface TapContext {
  /** The server: its origin, and how it is reached. */
  readonly origin: string
  readonly host: string
  readonly address: { readonly host: string; readonly port: number }
  readonly isSecure: boolean
  /** The origin that the tap listens on. */
  readonly local: string
  readonly guard: RequestGuard
  readonly capture: CaptureFile
}

/** A client's connection: its number, and how its requests reach the server. */
export interface TappedConnection {
  readonly id: number
  readonly agent: Agent
  /** Gets the connection to the server of each request. */
  readonly reached: (socket: Socket) => void
  /** Called when a request has been read completely. */
  readonly sent: () => void
}

const LEFT = 'the client has disconnected'
const ignore = () => {}

/** One HTTP request, forwarded to the server, and its response. Bytes are forwarded first and recorded second. */
export class TappedExchange {
  readonly #id: number
  readonly #context: TapContext
  readonly #request: IncomingMessage
  readonly #response: ServerResponse
  #connection: TappedConnection | undefined
  #upstream: ClientRequest | undefined
  #isAborted = false
  #hasRequestEnded = false
  #hasResponseEnded = false
  readonly #ended = (dir: Direction) => this.#end(dir)

  /** `closed` is called when the response is closed. */
  constructor(
    id: number,
    context: TapContext,
    request: IncomingMessage,
    response: ServerResponse,
    closed: (exchange: TappedExchange) => void,
  ) {
    this.#id = id
    this.#context = context
    this.#request = request
    this.#response = response
    response.sendDate = false
    response.on('close', () => {
      if (!this.#hasResponseEnded) this.#disconnected()
      closed(this)
    })
    request.on('close', () => {
      if (!request.complete) this.#disconnected()
    })
    request.on('error', ignore)
    response.on('error', ignore)
  }

  /** Whether it is a stream of the server, which lasts until one side ends it. */
  get isStream(): boolean {
    return this.#request.method === 'GET' && this.#response.headersSent
  }

  /** Whether the request has been read completely. */
  get isSent(): boolean {
    return this.#hasRequestEnded
  }

  /** Forwards the request. */
  start(connection: TappedConnection): void {
    this.#connection = connection
    const { host, guard } = this.#context
    const { rawHeaders, httpVersion, headers, method, url = '/' } = this.#request
    const absolute = url.startsWith('/') ? null : ABSOLUTE.exec(url)
    const refusal = guard.refusalOf(absolute?.[1] ?? headers.host, headers.origin)
    const { upgrade } = headers
    const isUpgrade = upgrade !== undefined && upgrade.toLowerCase() !== 'h2c'
    if (refusal !== undefined || isUpgrade) {
      this.#recordRequest(connection.id, undefined)
      this.#discardBody()
      if (refusal !== undefined) this.#refuse(403, 'Forbidden', refusal)
      else this.#refuse(501, 'Not Implemented', `the tap cannot upgrade to ${upgrade ?? ''}`)
      return
    }
    const hasBody =
      headers['content-length'] !== undefined || headers['transfer-encoding'] !== undefined
    const isOld = httpVersion === '1.0'
    const { list, changes } = forwardedRequest(rawHeaders, host, { isOld, hasBody, method })
    const path = absolute === null ? url : url.slice(absolute[0].length) || '/'
    this.#recordRequest(connection.id, changes)
    try {
      const upstream = this.#send(connection, path, list)
      this.#forward(this.#request, upstream, 'in')
    } catch (error) {
      // Node parses some heads that it refuses to send.
      this.#discardBody()
      const message = error instanceof Error ? error.message : String(error)
      this.#event('error', { phase: 'request', message })
      this.#refuse(502, 'Bad Gateway', `cannot forward this request: ${message}`)
    }
  }

  /** Reads the body of a request that is not forwarded. */
  #discardBody(): void {
    this.#request.on('data', ignore).on('end', () => this.#end('in'))
  }

  /** Ends it because the tap ends. */
  stop(): void {
    if (!this.#hasResponseEnded) this.#abort('tap', 'the tap has ended')
  }

  #send({ agent, reached }: TappedConnection, path: string, list: string[]): ClientRequest {
    const { isSecure, address } = this.#context
    const { method, headers } = this.#request
    const upstream = (isSecure ? httpsRequest : httpRequest)({
      host: address.host,
      port: address.port,
      method,
      path,
      // An array keeps order, case and repetitions.
      headers: list,
      agent,
      maxHeaderSize: MAX_HEADERS,
    })
    this.#upstream = upstream
    // By default Node drops headers after the 2000th.
    upstream.maxHeadersCount = 0
    upstream.on('socket', reached)
    upstream.on('error', (error) => this.#failed(error))
    upstream.on('response', (received) => this.#respond(received))
    upstream.on('information', (information) => this.#inform(information))
    upstream.on('upgrade', (received, socket) => {
      socket.destroy()
      this.#failed(new Error(`it responds with ${received.statusCode ?? 101}, without an Upgrade`))
    })
    if (headers.expect !== undefined) upstream.flushHeaders()
    return upstream
  }

  #respond(received: IncomingMessage): void {
    const { statusCode: status = 502, statusMessage: reason = '', rawHeaders } = received
    const { method, httpVersion } = this.#request
    const response = this.#response
    if (this.#isAborted) return
    // The client's connection is closed: nothing can be sent any more.
    if (!this.#request.socket.writable) return this.#disconnected()
    const isOld = httpVersion === '1.0'
    const hasTrailers = !isOld && status !== 204 && status !== 304
    const forwarded = forwardedResponse(rawHeaders, this.#context, { isOld, hasTrailers })
    // Node adds nothing of its own.
    response.removeHeader('connection')
    const hasNoBody = status === 204 || status === 304 || method === 'HEAD'
    if (!forwarded.isDelimited && !hasNoBody) {
      // The body ends with the connection.
      response.useChunkedEncodingByDefault = false
      response.shouldKeepAlive = false
    }
    received.on('error', ({ message }) => {
      if (!this.#hasResponseEnded) this.#abort('server', message)
    })
    try {
      response.writeHead(status, reason, forwarded.list)
    } catch (error) {
      // Node parses some headers that it refuses to send.
      this.#failed(error instanceof Error ? error : new Error(String(error)))
      this.#upstream?.destroy()
      return
    }
    this.#recordResponse(received, forwarded.changes)
    this.#forward(
      received,
      response,
      'out',
      method === 'GET' ? this.#rewriter(received) : undefined,
    )
  }

  /** An interim response, such as 103 Early Hints. */
  #inform(information: InformationEvent): void {
    const { statusCode: status, statusMessage: reason, rawHeaders } = information
    let forwarded: EditedHeaders | undefined
    try {
      if (!this.#isAborted && this.#request.httpVersion !== '1.0')
        forwarded = forwardInterim(this.#response, status, rawHeaders)
    } catch {
      // Node refuses to send it.
    }
    this.#event('information', {
      status,
      reason,
      headers: new RecordedHeaders(rawHeaders),
      isForwarded: forwarded !== undefined,
      changes: forwarded?.changes,
    })
  }

  /** Rewrites the `endpoint` event of HTTP+SSE; undefined if the response is not an unencoded event stream. */
  #rewriter({ headers }: IncomingMessage): EndpointRewriter | undefined {
    const { origin, local } = this.#context
    const isStream = /^text\/event-stream\b/i.test(headers['content-type'] ?? '')
    const isPlain =
      headers['content-encoding'] === undefined && headers['content-length'] === undefined
    return isStream && isPlain ? new EndpointRewriter(origin, local) : undefined
  }

  #forward(
    from: IncomingMessage,
    to: ClientRequest | ServerResponse,
    dir: Direction,
    rewriter?: EndpointRewriter,
  ): void {
    const { capture } = this.#context
    new BodyForwarder(from, to, this.#id, dir, capture, rewriter).start(this.#ended)
  }

  #end(dir: Direction): void {
    if (this.#isAborted) return
    if (dir === 'in') this.#hasRequestEnded = true
    else this.#hasResponseEnded = true
    const { capture } = this.#context
    capture.httpRecord({ type: 'event', event: 'end', ns: capture.now, exchange: this.#id, dir })
    if (dir === 'in') this.#connection?.sent()
  }

  #failed(error: Error): void {
    if (this.#isAborted || this.#hasResponseEnded) return
    const failure = failureOf(error)
    this.#event('error', { ...failure })
    // The server has closed the connection without a response: so does the tap, and the client decides whether to repeat.
    const isClosed = failure.code === 'ECONNRESET' || failure.code === 'EPIPE'
    if (isClosed || this.#response.headersSent) return this.#abort('server', failure.message)
    this.#request.resume()
    this.#refuse(502, 'Bad Gateway', describeFailure(failure, this.#context.origin))
  }

  /** The tap itself responds. */
  #refuse(status: number, reason: string, message: string): void {
    const body = Buffer.from(`ccmcp tap: ${message}\n`)
    const headers = [
      ['Content-Type', 'text/plain; charset=utf-8'],
      ['Content-Length', String(body.length)],
      ['Connection', 'close'],
    ]
    this.#response.writeHead(status, reason, headers.flat())
    this.#response.end(body)
    this.#event('response', { status, reason, version: '1.1', headers, by: 'tap' })
    this.#context.capture.body(this.#id, 'out', 0, body)
    this.#end('out')
  }

  #disconnected(): void {
    this.#abort('client', LEFT)
  }

  #abort(by: 'client' | 'server' | 'tap', message: string): void {
    if (this.#isAborted) return
    this.#isAborted = true
    // Whatever ends it then: the client was the first to end its connection.
    const isLeft = by !== 'client' && this.#request.socket.readableEnded
    this.#upstream?.destroy()
    this.#response.destroy()
    // Both bodies have ended: closing the connection aborts nothing.
    if (this.#hasRequestEnded && this.#hasResponseEnded) return
    this.#event('aborted', isLeft ? { by: 'client', message: LEFT } : { by, message })
  }

  #event(event: string, members: Readonly<Record<string, unknown>>): void {
    this.#context.capture.httpEvent(event, { exchange: this.#id, ...members })
  }

  // The records of every call are made as they are written: to copy their members takes longer than to encode them.

  #recordRequest(connection: number, changes: EditedHeaders['changes']): void {
    const { capture } = this.#context
    const { method, url: target, httpVersion: version, rawHeaders } = this.#request
    const headers = new RecordedHeaders(rawHeaders)
    const [type, event, ns, exchange] = ['event', 'request', capture.now, this.#id] as const
    capture.httpRecord(
      { type, event, ns, exchange, connection, method, target, version, headers, changes },
      headers.size,
    )
  }

  #recordResponse(received: IncomingMessage, changes: EditedHeaders['changes']): void {
    const { capture } = this.#context
    const { statusCode: status, statusMessage: reason, httpVersion: version, rawHeaders } = received
    const headers = new RecordedHeaders(rawHeaders)
    const [type, event, ns, exchange] = ['event', 'response', capture.now, this.#id] as const
    capture.httpRecord(
      { type, event, ns, exchange, status, reason, version, headers, changes },
      headers.size,
    )
  }
}
