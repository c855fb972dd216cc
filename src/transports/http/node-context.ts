import type { Address, HttpRequest } from '../../jsonrpc/channel.js'
import { callHook } from '../../jsonrpc/hook.js'
import { truncate } from '../../jsonrpc/truncate.js'
import type { Budget } from '../../jsonrpc/budget.js'
import { IncomingBody } from './incoming-body.js'
import { bodyReadBefore } from './node-body.js'
import type { NodeRequest, NodeResponse } from './node-message.js'
import { HandlerRequest } from './request-headers.js'
import type { HeaderList, HttpContext, Sink, UnreadBody } from './http-context.js'

/** Logged if writing a response throws. */
export const UNWRITTEN = 'A response could not be written, and its client was disconnected'
/** Headers that must occur once: a proxy might read another value than this server. */
const SINGLE =
  /^(?:host|origin|authorization|content-type|content-length|content-encoding|transfer-encoding|last-event-id|mcp-.+)$/
/** A request target in absolute form: https://datatracker.ietf.org/doc/html/rfc9112#section-3.2.2 */
const ABSOLUTE = /^https?:\/\/([^/?#]*)/i
/** A refused body is discarded up to this multiple of the limit; then the connection is closed. */
const DISCARD_FACTOR = 4

/** A request of a Node HTTP server. */
export class NodeContext implements HttpContext {
  readonly #request: NodeRequest
  readonly #response: NodeResponse
  readonly #unsentResponses: UnsentResponses
  readonly #wrapped: boolean
  readonly #failed: (error: unknown) => void
  #http: HttpRequest | undefined
  #onDisconnect: (() => void) | undefined
  #listening = false
  /** Whether the head of the response was written here, and not by other code. */
  #started = false
  /** Whether the response was ended here. */
  #ended = false

  /**
   * `wrapped`: other code may have wrapped the response, and sees headers only if each is set on its own. `failed` gets
   * what writing the response throws; the client is then disconnected.
   */
  constructor(
    request: NodeRequest,
    response: NodeResponse,
    unsentResponses: UnsentResponses,
    wrapped: boolean,
    failed: (error: unknown) => void,
  ) {
    this.#request = request
    this.#response = response
    this.#unsentResponses = unsentResponses
    this.#wrapped = wrapped
    this.#failed = failed
  }

  get method(): string {
    return this.#request.method ?? 'GET'
  }

  get path(): string {
    return pathOf(this.#request)
  }

  get target(): string {
    const { url = '/', originalUrl = url } = this.#request
    return relative(originalUrl)
  }

  header(name: string): string | undefined {
    const { headers } = this.#request
    const value = headers[name]
    if (typeof value === 'string') return value
    // HTTP/2.
    const host = name === 'host' ? headers[':authority'] : undefined
    return typeof host === 'string' ? host : undefined
  }

  *headers(): Iterable<readonly [name: string, value: string]> {
    for (const [name, value] of Object.entries(this.#request.headers))
      if (value !== undefined && !name.startsWith(':'))
        yield [name, typeof value === 'string' ? value : value.join(', ')]
  }

  get http(): HttpRequest {
    const request = this.#request
    this.#http ??= new HandlerRequest(
      () => Object.entries(request.headers),
      () => addressOf(request),
    )
    return this.#http
  }

  get ambiguity(): string | undefined {
    const { rawHeaders, headers, url = '' } = this.#request
    const authority = url.startsWith('/') ? headers[':authority'] : ABSOLUTE.exec(url)?.[1]
    if (
      typeof authority === 'string' &&
      authority.toLowerCase() !== this.header('host')?.toLowerCase()
    )
      return 'the request target and the header Host name different hosts'
    // Counted without an array: this runs for each request.
    let names = 0
    for (const _ in headers) names++
    if (rawHeaders.length === 2 * names) return undefined
    const seen = new Set<string>()
    for (let i = 0; i < rawHeaders.length; i += 2) {
      const name = rawHeaders[i]?.toLowerCase() ?? ''
      if (seen.has(name) && SINGLE.test(name))
        return `the header ${truncate(name)} was sent more than once`
      seen.add(name)
    }
    return undefined
  }

  read(limit: number, budget: Budget, done: (body: Uint8Array | UnreadBody) => void): void {
    const request = this.#request
    // Other code has read it: listeners would get nothing, or only the rest.
    if (request.readableDidRead || request.readableEnded)
      return done(bodyReadBefore(request, limit))
    const incoming = new IncomingBody(limit, this.header('content-length'), budget)
    let discarded = 0
    request.on('data', (data) => {
      // A string if other code has called `setEncoding`.
      const chunk =
        typeof data === 'string' ? Buffer.from(data, request.readableEncoding ?? 'utf8') : data
      if (discarded > 0) {
        discarded += chunk.length
        if (discarded > DISCARD_FACTOR * limit) request.destroy()
        return
      }
      const problem = incoming.add(chunk)
      if (problem === undefined) return
      // The rest is discarded, so that the client can read the response.
      discarded = incoming.bytes.length + chunk.length
      incoming.release()
      done({ problem })
    })
    request.on('end', () => {
      if (discarded > 0) return
      const body = incoming.bytes
      incoming.release()
      done(body)
    })
    // The client has disconnected before the body was complete.
    request.on('close', () => incoming.release())
    request.on('error', () => {})
  }

  respond(status: number, headers: HeaderList, body?: string): void {
    const response = this.#response
    if (this.#finished) return
    if (response.headersSent) return void response.destroy()
    this.#started = true
    this.#ended = true
    try {
      this.#respond(status, headers, body)
    } catch (error) {
      this.#abandon(error)
    }
  }

  /** Other code has wrapped the response, and throws. Nothing more can be sent. */
  #abandon(error: unknown): void {
    this.#failed(error)
    callHook(() => this.#response.destroy(), this.#failed)
    // If `destroy` has thrown too.
    if (!isDestroyed(this.#response)) this.#request.socket.destroy()
  }

  #respond(status: number, headers: HeaderList, body: string | undefined): void {
    const response = this.#response
    if (body === undefined) {
      this.#writeHead(status, status === 204 ? [...headers] : [...headers, 'Content-Length', '0'])
      response.end()
    } else {
      this.#writeHead(status, [...headers, 'Content-Length', String(Buffer.byteLength(body))])
      response.end(body)
      if (body.length >= MIN_COUNTED_BYTES) this.#unsentResponses.add(response)
    }
  }

  stream(status: number, headers: HeaderList): Sink {
    const response = this.#response
    response.on('error', () => {})
    if (this.#finished) return NO_SINK
    this.#started = true
    try {
      this.#writeHead(status, [...headers])
      response.flushHeaders?.()
    } catch (error) {
      this.#abandon(error)
      return NO_SINK
    }
    const ended = () => (this.#ended = true)
    const failed = (error: unknown) => this.#abandon(error)
    return new NodeSink(response, this.#unsentResponses, ended, failed)
  }

  onDisconnect(listener: (() => void) | undefined): void {
    this.#onDisconnect = listener
    // It may have disconnected while its token was verified.
    if (this.#finished) return queueMicrotask(() => this.#onDisconnect?.())
    if (this.#listening) return
    this.#listening = true
    this.#response.on('close', () => {
      if (!this.#ended || !this.#response.writableFinished) this.#onDisconnect?.()
    })
  }

  #writeHead(status: number, headers: string[]): void {
    const response = this.#response
    if (!this.#wrapped) {
      // In one call it is faster. Without a wrapper it is the response of node:http, which takes an array.
      const plain = response as { writeHead(status: number, headers: string[]): unknown }
      return void plain.writeHead(status, headers)
    }
    for (let i = 0; i + 1 < headers.length; i += 2)
      response.setHeader(headers[i] ?? '', headers[i + 1] ?? '')
    response.writeHead(status)
  }

  /** Whether no response can be sent: the client has disconnected, or other code has responded. */
  get #finished(): boolean {
    const response = this.#response
    return (
      isDestroyed(response) || response.writableEnded || (response.headersSent && !this.#started)
    )
  }
}

/** The path of a request, without its query. */
export function pathOf({ url = '/' }: NodeRequest): string {
  const path = relative(url)
  const query = path.indexOf('?')
  return (query === -1 ? path : path.slice(0, query)) || '/'
}

/** A request target without its origin. */
function relative(url: string): string {
  return url.startsWith('/') ? url : url.replace(ABSOLUTE, '')
}

function isDestroyed({ destroyed, closed, stream }: NodeResponse): boolean {
  return destroyed === true || closed === true || stream?.destroyed === true
}

const NO_SINK: Sink = {
  write() {},
  end() {},
  destroy() {},
  onDrain() {},
  unsentBytes: 0,
  sentBytes: 0,
}

class NodeSink implements Sink {
  readonly #response: NodeResponse
  readonly #unsentResponses: UnsentResponses
  readonly #ended: () => void
  readonly #failed: (error: unknown) => void

  constructor(
    response: NodeResponse,
    unsentResponses: UnsentResponses,
    ended: () => void,
    failed: (error: unknown) => void,
  ) {
    this.#response = response
    this.#unsentResponses = unsentResponses
    this.#ended = ended
    this.#failed = failed
  }

  write(text: string): void {
    if (isDestroyed(this.#response) || this.#response.writableEnded) return
    try {
      this.#response.write(text)
      this.#unsentResponses.add(this.#response)
    } catch (error) {
      this.#failed(error)
    }
  }

  end(): void {
    this.#ended()
    try {
      this.#response.end()
      this.#unsentResponses.add(this.#response)
    } catch (error) {
      this.#failed(error)
    }
  }

  destroy(): void {
    this.#response.destroy()
  }

  onDrain(listener: () => void): void {
    this.#response.on('drain', listener)
  }

  get unsentBytes(): number {
    return this.#response.writableLength
  }

  get sentBytes(): number {
    return (this.#response.socket?.bytesWritten ?? 0) - this.#response.writableLength
  }
}

/** What is needed of a Node response. */
interface WrittenResponse {
  readonly writableLength: number
  once(event: 'close', closed: () => void): unknown
  destroy(): unknown
}

/** Responses with fewer unsent bytes are not counted. */
const MIN_COUNTED_BYTES = 64 * 1024

/**
 * Bounds the unsent bytes of all responses and streams: beyond the limit the oldest responses are destroyed. Never the
 * newest: its client has had no time to read.
 */
export class UnsentResponses {
  readonly #max: number
  readonly #responses = new Map<WrittenResponse, number>()
  #size = 0

  constructor(max: number) {
    this.#max = max
  }

  /** Called after each write. */
  add(response: WrittenResponse): void {
    if (response.writableLength < MIN_COUNTED_BYTES) return
    if (!this.#responses.has(response)) response.once('close', () => this.#remove(response))
    this.#measure(response)
    if (this.#size <= this.#max) return
    // Some may have been sent since.
    for (const each of this.#responses.keys()) this.#measure(each)
    for (const [oldest, size] of this.#responses) {
      if (this.#size <= this.#max) return
      if (oldest === response || size < MIN_COUNTED_BYTES) continue
      this.#remove(oldest)
      oldest.destroy()
    }
  }

  #measure(response: WrittenResponse): void {
    const size = response.writableLength
    this.#size += size - (this.#responses.get(response) ?? 0)
    this.#responses.set(response, size)
  }

  #remove(response: WrittenResponse): void {
    this.#size -= this.#responses.get(response) ?? 0
    this.#responses.delete(response)
  }
}

/** Maximum number of pipelined requests that wait on one connection; beyond it, the connection is closed. */
const MAX_PIPELINED = 100

/**
 * Serves pipelined requests of one connection one after the other: otherwise all responses would wait in memory until
 * the first one was read.
 * https://datatracker.ietf.org/doc/html/rfc9112#section-9.3.2
 */
export function inTurn<Request extends NodeRequest, Response extends NodeResponse>(
  serve: (request: Request, response: Response) => void,
): (request: Request, response: Response) => void {
  const waiting = new WeakMap<object, number>()
  return (request, response) => {
    if (response.socket !== null) return serve(request, response)
    const { socket } = request
    const count = (waiting.get(socket) ?? 0) + 1
    if (count > MAX_PIPELINED) return void socket.destroy()
    waiting.set(socket, count)
    response.once('socket', () => {
      waiting.set(socket, (waiting.get(socket) ?? 1) - 1)
      serve(request, response)
    })
  }
}

/** In HTTP/2, a request whose stream has ended has no socket. */
function addressOf({ socket }: { socket?: NodeRequest['socket'] | null }): Address | undefined {
  const { remoteAddress, remotePort } = socket ?? {}
  return remoteAddress === undefined ? undefined : { address: remoteAddress, port: remotePort }
}
