import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Budget } from '../../jsonrpc/budget.js'
import { type Unread, WORTH_COUNTING } from './unread.js'
import type { Body, HeaderList, Sink, Visit } from './visit.js'

/** Headers that mean one thing: two of them would mean different things to different readers. */
const SINGLE = /^(?:host|origin|authorization|content-type|content-length|content-encoding|transfer-encoding|last-event-id|mcp-.+)$/
/** A target that names its host again, as those of proxies do: https://datatracker.ietf.org/doc/html/rfc9112#section-3.2.2 */
const ABSOLUTE = /^https?:\/\/([^/?#]*)/i
/** How many times too long a body may be before the rest of it is not waited for. */
const PATIENCE = 4

/** A request of Node's own HTTP server, without a detour over the web's Request and Response. */
export class NodeVisit implements Visit {
  readonly #request: IncomingMessage
  readonly #response: ServerResponse
  readonly #unread: Unread
  #gone: (() => void) | undefined
  #watched = false

  constructor(request: IncomingMessage, response: ServerResponse, unread: Unread) {
    this.#request = request
    this.#response = response
    this.#unread = unread
  }

  get method(): string {
    return this.#request.method ?? 'GET'
  }

  get path(): string {
    const { url = '/' } = this.#request
    const path = url.startsWith('/') ? url : url.replace(ABSOLUTE, '')
    const query = path.indexOf('?')
    return (query === -1 ? path : path.slice(0, query)) || '/'
  }

  header(name: string): string | undefined {
    const value = this.#request.headers[name]
    return typeof value === 'string' ? value : undefined
  }

  get ambiguity(): string | undefined {
    const { rawHeaders, headers, url = '' } = this.#request
    if (!url.startsWith('/')) {
      const authority = ABSOLUTE.exec(url)?.[1]
      if (authority !== undefined && authority.toLowerCase() !== headers.host?.toLowerCase())
        return 'the target names another host than the header Host'
    }
    // Counted and not listed: what each request leaves to the garbage collector decides how many there can be.
    let names = 0
    for (const _ in headers) names++
    if (rawHeaders.length === 2 * names) return undefined
    const seen = new Set<string>()
    for (let i = 0; i < rawHeaders.length; i += 2) {
      const name = rawHeaders[i]?.toLowerCase() ?? ''
      if (seen.has(name) && SINGLE.test(name)) return `the header ${name} was sent more than once`
      seen.add(name)
    }
    return undefined
  }

  read(limit: number, budget: Budget, done: (body: Body) => void): void {
    const request = this.#request
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
    // Nobody is there any more; writing to them would be an error that nobody hears.
    if (response.destroyed) return
    if (response.headersSent) return void response.destroy()
    if (body === undefined) response.writeHead(status, status === 204 ? [...headers] : [...headers, 'Content-Length', '0']).end()
    else {
      response.writeHead(status, [...headers, 'Content-Length', String(Buffer.byteLength(body))]).end(body)
      if (body.length >= WORTH_COUNTING) this.#unread.add(response)
    }
  }

  stream(status: number, headers: HeaderList): Sink {
    const response = this.#response
    response.on('error', () => {})
    response.writeHead(status, [...headers])
    response.flushHeaders()
    return new NodeSink(response, this.#unread)
  }

  onGone(gone: (() => void) | undefined): void {
    this.#gone = gone
    // It may have gone while its token was being verified.
    if (this.#response.closed) return queueMicrotask(() => this.#gone?.())
    if (this.#watched) return
    this.#watched = true
    this.#response.on('close', () => {
      if (!this.#response.writableFinished) this.#gone?.()
    })
  }
}

class NodeSink implements Sink {
  readonly #response: ServerResponse
  readonly #unread: Unread

  constructor(response: ServerResponse, unread: Unread) {
    this.#response = response
    this.#unread = unread
  }

  write(text: string): void {
    if (this.#response.destroyed) return
    this.#response.write(text)
    this.#unread.add(this.#response)
  }

  end(): void {
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
