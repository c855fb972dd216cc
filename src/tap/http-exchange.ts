import {
  type Agent,
  type ClientRequest,
  type IncomingMessage,
  type ServerResponse,
  request as httpRequest,
} from 'node:http'
import { request as httpsRequest } from 'node:https'
import type { Socket } from 'node:net'
import type { Direction } from '../capture/format.js'
import type { CaptureFile } from './capture-file.js'
import { EndpointRewriter, type Rewritten } from './endpoint-rewriter.js'
import { describeFailure, failureOf } from './http-failures.js'
import {
  type EditedHeaders,
  forwardedRequest,
  forwardedResponse,
  RecordedHeaders,
  pairsOf,
  refusalOf,
} from './http-heads.js'

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
  readonly capture: CaptureFile
}

/** One HTTP request, forwarded to the server, and its response. Bytes are forwarded first and recorded second. */
export class TappedExchange {
  readonly #id: number
  readonly #context: TapContext
  readonly #request: IncomingMessage
  readonly #response: ServerResponse
  #upstream: ClientRequest | undefined
  #isAborted = false
  readonly #ended = { in: false, out: false }

  constructor(id: number, context: TapContext, request: IncomingMessage, response: ServerResponse) {
    this.#id = id
    this.#context = context
    this.#request = request
    this.#response = response
    response.sendDate = false
    const disconnected = () => this.#abort('client', 'the client has disconnected')
    response.on('close', () => {
      if (!this.#ended.out) disconnected()
    })
    request.on('close', () => {
      if (!request.complete) disconnected()
    })
    for (const stream of [request, response]) stream.on('error', () => {})
  }

  /** Whether it is a stream of the server, which lasts until one side ends it. */
  get isStream(): boolean {
    return this.#request.method === 'GET' && this.#response.headersSent
  }

  /** Forwards the request; `connected` gets each new connection to the server. */
  start(agent: Agent, connection: number, connected: (socket: Socket) => void): void {
    const { origin, host } = this.#context
    const { rawHeaders, httpVersion, headers, method = 'GET', url = '/' } = this.#request
    const forwarded = forwardedRequest(rawHeaders, host, httpVersion === '1.0')
    const received = new RecordedHeaders(rawHeaders)
    const head = { connection, method, target: url, version: httpVersion, headers: received }
    const [, authority = headers.host] = ABSOLUTE.exec(url) ?? []
    const refusal = refusalOf(authority, headers.origin, origin)
    const { upgrade } = headers
    const isUpgrade = upgrade !== undefined && upgrade.toLowerCase() !== 'h2c'
    if (refusal !== undefined || isUpgrade) {
      this.#event('request', head)
      this.#request.on('data', () => {}).on('end', () => this.#end('in'))
      if (refusal !== undefined) this.#refuse(403, 'Forbidden', refusal)
      else this.#refuse(501, 'Not Implemented', `the tap cannot upgrade to ${upgrade ?? ''}`)
      return
    }
    const upstream = this.#send(agent, method, url.replace(ABSOLUTE, '') || '/', forwarded)
    upstream.once('socket', (socket) => {
      if (!upstream.reusedSocket) connected(socket)
    })
    this.#event('request', { ...head, ...changesOf(forwarded) })
    this.#forward(this.#request, upstream, 'in')
  }

  /** Ends it because the tap ends. */
  stop(): void {
    if (!this.#ended.out) this.#abort('tap', 'the tap has ended')
  }

  #send(agent: Agent, method: string, path: string, { list }: EditedHeaders): ClientRequest {
    const { isSecure, address } = this.#context
    const { headers } = this.#request
    const upstream = (isSecure ? httpsRequest : httpRequest)({
      ...address,
      method,
      path,
      // An array keeps order, case and repetitions.
      headers: list,
      agent,
      setHost: false,
      maxHeaderSize: MAX_HEADERS,
    })
    this.#upstream = upstream
    const hasBody =
      headers['content-length'] !== undefined || headers['transfer-encoding'] !== undefined
    // Otherwise Node adds a transfer coding.
    if (!hasBody) upstream.useChunkedEncodingByDefault = false
    upstream.on('error', (error) => this.#failed(error))
    upstream.on('continue', () => this.#response.writeContinue())
    upstream.on('response', (response) => this.#respond(response))
    if (headers.expect !== undefined) upstream.flushHeaders()
    return upstream
  }

  #respond(received: IncomingMessage): void {
    const { origin: server, local } = this.#context
    const { statusCode: status = 502, statusMessage: reason = '', httpVersion, headers } = received
    const response = this.#response
    if (this.#isAborted) return
    const isOld = this.#request.httpVersion === '1.0'
    const { rawHeaders } = received
    const forwarded = forwardedResponse(rawHeaders, { server, local, isOld })
    // Node adds nothing of its own.
    response.removeHeader('connection')
    const isDelimited =
      headers['content-length'] !== undefined || headers['transfer-encoding'] !== undefined
    const hasNoBody = status === 204 || status === 304 || this.#request.method === 'HEAD'
    if (!isDelimited && !hasNoBody) {
      // The body ends with the connection.
      response.useChunkedEncodingByDefault = false
      response.shouldKeepAlive = false
    }
    received.on('error', ({ message }) => {
      if (!this.#ended.out) this.#abort('server', message)
    })
    try {
      response.writeHead(status, reason, forwarded.list)
    } catch (error) {
      // Node accepts more from a server than it sends.
      this.#failed(error instanceof Error ? error : new Error(String(error)))
      this.#upstream?.destroy()
      return
    }
    const head = { status, reason, version: httpVersion, headers: new RecordedHeaders(rawHeaders) }
    this.#event('response', { ...head, ...changesOf(forwarded) })
    this.#forward(received, response, 'out', this.#rewriter(received))
  }

  /** Of the first event of a stream, for HTTP+SSE. */
  #rewriter({ headers }: IncomingMessage): EndpointRewriter | undefined {
    const { origin, local } = this.#context
    const isStream = /^text\/event-stream\b/i.test(headers['content-type'] ?? '')
    const isPlain =
      headers['content-encoding'] === undefined && headers['content-length'] === undefined
    return this.#request.method === 'GET' && isStream && isPlain
      ? new EndpointRewriter(origin, local)
      : undefined
  }

  #forward(
    from: IncomingMessage,
    to: ClientRequest | ServerResponse,
    dir: Direction,
    rewriter?: EndpointRewriter,
  ): void {
    const { capture } = this.#context
    let offset = 0
    let hasWritten = false
    const write = (bytes: Uint8Array): boolean => {
      if (bytes.length === 0 || to.destroyed) return true
      hasWritten = true
      return to.write(bytes)
    }
    from.on('data', (bytes: Buffer) => {
      const changes: Rewritten[] = []
      const hasRoom = write(rewriter?.push(bytes, (change) => changes.push(change)) ?? bytes)
      capture.body(this.#id, dir, offset, bytes)
      for (const change of changes) this.#event('rewritten', { dir, ...change })
      offset += bytes.length
      if (!hasRoom) from.pause()
    })
    to.on('drain', () => from.resume())
    from.on('end', () => {
      hasWritten = true
      if (rewriter !== undefined) write(rewriter.end())
      if (from.rawTrailers.length > 0) to.addTrailers(pairsOf(from.rawTrailers))
      to.end()
      this.#end(dir)
    })
    // A head is sent with the first bytes of the body, if they are there; otherwise on its own.
    process.nextTick(() => {
      if (!hasWritten && !to.destroyed) to.flushHeaders()
    })
  }

  #end(dir: Direction): void {
    if (this.#isAborted) return
    this.#ended[dir] = true
    this.#event('end', { dir })
  }

  #failed(error: Error): void {
    if (this.#isAborted || this.#ended.out) return
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

  #abort(by: 'client' | 'server' | 'tap', message: string): void {
    if (this.#isAborted) return
    this.#isAborted = true
    this.#upstream?.destroy()
    this.#response.destroy()
    // Both sides are done; only the connection was closed before it was seen.
    if (this.#ended.in && this.#ended.out) return
    this.#event('aborted', { by, message })
  }

  #event(event: string, members: Readonly<Record<string, unknown>>): void {
    this.#context.capture.httpEvent(event, { exchange: this.#id, ...members })
  }
}

/** What was changed in a head, if anything. */
function changesOf({ changes }: EditedHeaders): { changes?: EditedHeaders['changes'] } {
  return changes.length === 0 ? {} : { changes }
}
