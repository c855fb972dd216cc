import type { HttpRequest } from '../../jsonrpc/channel.js'
import { truncate } from '../../jsonrpc/truncate.js'
import type { Budget } from '../../jsonrpc/budget.js'
import { bodyReadBefore } from './node-body.js'
import type { NodeRequest, NodeResponse } from './node-message.js'
import { VisibleRequest } from './request-headers.js'
import { type UnsentResponses, WORTH_COUNTING } from './unsent-responses.js'
import type { Body, HeaderList, Sink, HttpContext } from './http-context.js'

/** Headers that mean one thing: two of them would mean different things to different readers. */
const SINGLE =
  /^(?:host|origin|authorization|content-type|content-length|content-encoding|transfer-encoding|last-event-id|mcp-.+)$/
/** A target that names its host again, as those of proxies do: https://datatracker.ietf.org/doc/html/rfc9112#section-3.2.2 */
const ABSOLUTE = /^https?:\/\/([^/?#]*)/i
/** How many times too long a body may be before the rest of it is not waited for. */
const PATIENCE = 4

/** A request that an HTTP server of Node has received, without a detour over the web's Request and Response. */
export class NodeContext implements HttpContext {
  readonly #request: NodeRequest
  readonly #response: NodeResponse
  readonly #unread: UnsentResponses
  #http: HttpRequest | undefined
  #gone: (() => void) | undefined
  #watched = false
  /** Whether the head of the response was written here, and not by other code that has the response. */
  #begun = false
  /** Whether it was ended here as well. */
  #ended = false

  constructor(request: NodeRequest, response: NodeResponse, unread: UnsentResponses) {
    this.#request = request
    this.#response = response
    this.#unread = unread
  }

  get method(): string {
    return this.#request.method ?? 'GET'
  }

  get path(): string {
    return pathOf(this.#request)
  }

  header(name: string): string | undefined {
    const { headers } = this.#request
    const value = headers[name]
    if (typeof value === 'string') return value
    // In HTTP/2 the host has another name.
    const host = name === 'host' ? headers[':authority'] : undefined
    return typeof host === 'string' ? host : undefined
  }

  get http(): HttpRequest {
    const { headers } = this.#request
    this.#http ??= new VisibleRequest(() => Object.entries(headers))
    return this.#http
  }

  get ambiguity(): string | undefined {
    const { rawHeaders, headers, url = '' } = this.#request
    const authority = url.startsWith('/') ? headers[':authority'] : ABSOLUTE.exec(url)?.[1]
    if (
      typeof authority === 'string' &&
      authority.toLowerCase() !== this.header('host')?.toLowerCase()
    )
      return 'the target names another host than the header Host'
    // Counted and not listed: what each request leaves to the garbage collector decides how many there can be.
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

  read(limit: number, budget: Budget, done: (body: Body) => void): void {
    const request = this.#request
    // Attached listeners would hear nothing, or only the rest.
    if (request.readableDidRead || request.readableEnded)
      return done(bodyReadBefore(request, limit))
    let chunks: Uint8Array[] = []
    let size = 0
    let held = 0
    let refused = false
    const release = () => {
      budget.give(held)
      held = 0
      chunks = []
    }
    // What still comes is let go of, so that the client gets to read the answer.
    const refuse = (why: 'too long' | 'too much') => {
      refused = true
      release()
      done(why)
    }
    request.on('data', (chunk: Uint8Array) => {
      size += chunk.length
      if (refused) {
        if (size > PATIENCE * limit) request.destroy()
      } else if (size > limit) refuse('too long')
      else if (!budget.take(chunk.length)) refuse('too much')
      else {
        held += chunk.length
        chunks.push(chunk)
      }
    })
    request.on('end', () => {
      if (refused) return
      const [only] = chunks
      const body = chunks.length === 1 && only !== undefined ? only : Buffer.concat(chunks)
      release()
      done(body)
    })
    // A client that breaks off in the middle has asked for nothing.
    request.on('close', release)
    request.on('error', () => {})
  }

  answer(status: number, headers: HeaderList, body?: string): void {
    const response = this.#response
    if (this.#over) return
    if (response.headersSent) return void response.destroy()
    this.#begun = true
    this.#ended = true
    if (body === undefined) {
      this.writeHead(status, status === 204 ? [...headers] : [...headers, 'Content-Length', '0'])
      response.end()
    } else {
      this.writeHead(status, [...headers, 'Content-Length', String(Buffer.byteLength(body))])
      response.end(body)
      if (body.length >= WORTH_COUNTING) this.#unread.add(response)
    }
  }

  stream(status: number, headers: HeaderList): Sink {
    const response = this.#response
    response.on('error', () => {})
    if (this.#over) return NO_SINK
    this.#begun = true
    this.writeHead(status, [...headers])
    response.flushHeaders?.()
    return new NodeSink(response, this.#unread, () => (this.#ended = true))
  }

  onGone(gone: (() => void) | undefined): void {
    this.#gone = gone
    // It may have gone while its token was being verified.
    if (this.#over) return queueMicrotask(() => this.#gone?.())
    if (this.#watched) return
    this.#watched = true
    this.#response.on('close', () => {
      if (!this.#ended || !this.#response.writableFinished) this.#gone?.()
    })
  }

  /** One header at a time: code that stands around the response may read them only so. */
  protected writeHead(status: number, headers: string[]): void {
    const response = this.#response
    for (let i = 0; i + 1 < headers.length; i += 2)
      response.setHeader(headers[i] ?? '', headers[i + 1] ?? '')
    response.writeHead(status)
  }

  /** Whether nothing can be answered any more: the client is gone, or other code has answered. */
  get #over(): boolean {
    const response = this.#response
    return isDestroyed(response) || response.writableEnded || (response.headersSent && !this.#begun)
  }
}

/** The path of a request, without its query. */
export function pathOf({ url = '/' }: NodeRequest): string {
  const path = url.startsWith('/') ? url : url.replace(ABSOLUTE, '')
  const query = path.indexOf('?')
  return (query === -1 ? path : path.slice(0, query)) || '/'
}

function isDestroyed({ destroyed, closed, stream }: NodeResponse): boolean {
  return destroyed === true || closed === true || stream?.destroyed === true
}

const NO_SINK: Sink = { write() {}, end() {}, cut() {}, waiting: 0, taken: 0 }

class NodeSink implements Sink {
  readonly #response: NodeResponse
  readonly #unread: UnsentResponses
  readonly #ended: () => void

  constructor(response: NodeResponse, unread: UnsentResponses, ended: () => void) {
    this.#response = response
    this.#unread = unread
    this.#ended = ended
  }

  write(text: string): void {
    if (isDestroyed(this.#response) || this.#response.writableEnded) return
    this.#response.write(text)
    this.#unread.add(this.#response)
  }

  end(): void {
    this.#ended()
    this.#response.end()
    this.#unread.add(this.#response)
  }

  cut(): void {
    this.#response.destroy()
  }

  get waiting(): number {
    return this.#response.writableLength
  }

  get taken(): number {
    return (this.#response.socket?.bytesWritten ?? 0) - this.#response.writableLength
  }
}
