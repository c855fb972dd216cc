import { type IncomingMessage, type Server, type ServerResponse, createServer as createHttpServer } from 'node:http'
import { type ServerOptions, createServer as createHttpsServer } from 'node:https'
import type { AddressInfo, Socket } from 'node:net'
import type { Budget } from './budget.js'
import { Unread } from './unread.js'
import type { Body, HeaderList, Sink, Visit } from './visit.js'

/* Node's own HTTP server, without a detour over the web's Request and Response. */

/** Headers that mean one thing: two of them would mean different things to different readers. */
const SINGLE = /^(?:host|origin|authorization|content-type|content-length|content-encoding|transfer-encoding|last-event-id|mcp-.+)$/

/** How many times too long a body may be before the rest of it is not waited for. */
const PATIENCE = 4
/** How many requests may wait behind another one on their connection. Hardly any client has even one do so. */
const MAX_WAITING = 100

class NodeVisit implements Visit {
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
    const query = url.indexOf('?')
    return query === -1 ? url : url.slice(0, query)
  }

  header(name: string): string | undefined {
    const value = this.#request.headers[name]
    return typeof value === 'string' ? value : undefined
  }

  get repeated(): string | undefined {
    const { rawHeaders, headers } = this.#request
    if (rawHeaders.length === 2 * Object.keys(headers).length) return undefined
    const seen = new Set<string>()
    for (let i = 0; i < rawHeaders.length; i += 2) {
      const name = rawHeaders[i]?.toLowerCase() ?? ''
      if (seen.has(name) && SINGLE.test(name)) return name
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
      this.#unread.add(response)
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
    if (!this.#response.destroyed) this.#response.write(text)
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

export interface NodeOptions {
  port: number
  host: string
  tls?: { cert: string | Uint8Array; key: string | Uint8Array } | undefined
  /** Milliseconds within which the head, and the whole, of a request must have come. */
  headTimeout: number
  requestTimeout: number
  /** Milliseconds after which a connection is closed on which nothing moves; 0 for never. */
  stillTimeout: number
  /** How many bytes of answers may wait to be read. */
  maxUnread: number
  handle(visit: Visit): void
}

/** An HTTP server that takes connections. */
export class NodeServer {
  readonly #server: Server
  /** Those of https, also before they have agreed on a secret: Node's HTTP knows nothing of them then. */
  readonly #connections = new Set<Socket>()

  private constructor(server: Server, secure: boolean) {
    this.#server = server
    if (!secure) return
    server.on('connection', (socket: Socket) => {
      this.#connections.add(socket)
      socket.once('close', () => this.#connections.delete(socket))
    })
  }

  static start({ port, host, tls, headTimeout, requestTimeout, stillTimeout, maxUnread, handle }: NodeOptions): Promise<NodeServer> {
    const settings = {
      headersTimeout: headTimeout,
      requestTimeout,
      // By default Node looks every half minute only: so long a slow client would keep its place.
      connectionsCheckingInterval: Math.min(1000, headTimeout),
      // Load balancers keep connections for 60 seconds, and must not find them closed.
      keepAliveTimeout: 65_000,
      insecureHTTPParser: false,
      // A client that says nothing must not keep its place by saying it in secret.
      handshakeTimeout: headTimeout,
    }
    const unread = new Unread(maxUnread)
    const visit = inTurn((request, response) => handle(new NodeVisit(request, response, unread)))
    const server =
      tls === undefined ? createHttpServer(settings, visit) : createSecure({ ...settings, cert: text(tls.cert), key: text(tls.key) }, visit)
    // How many there are is bounded by their size. By default Node leaves out those behind the two thousandth, and who comes twice may be one of them.
    server.maxHeadersCount = 0
    server.setTimeout(stillTimeout)
    const made = new NodeServer(server, tls !== undefined)
    return new Promise((resolve, reject) => {
      server.once('error', (error: NodeJS.ErrnoException) => reject(error.code === 'EADDRINUSE' ? inUse(port, error) : error))
      server.listen(port, host, () => {
        server.removeAllListeners('error')
        resolve(made)
      })
    })
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port // it listens on a port, not on a pipe
  }

  /** Takes no new connections, and ends those on which nothing is under way. */
  stop(): void {
    this.#server.close()
    this.#server.closeIdleConnections()
  }

  /** Resolves when the last connection is closed; after the deadline the rest is cut. */
  closed(deadline: number): Promise<void> {
    return new Promise((resolve) => {
      const idle = setInterval(() => this.#server.closeIdleConnections(), 20)
      const cut = setTimeout(() => {
        this.#server.closeAllConnections()
        for (const socket of this.#connections) socket.destroy()
      }, deadline)
      const done = () => {
        clearInterval(idle)
        clearTimeout(cut)
        resolve()
      }
      this.#server.close(done)
      this.#server.closeIdleConnections()
    })
  }
}

type Listener = (request: IncomingMessage, response: ServerResponse) => void

/**
 * Requests that were sent over one connection without waiting for answers are served one after the other:
 * otherwise all answers would wait in memory for the first one to be read.
 * https://datatracker.ietf.org/doc/html/rfc9112#section-9.3.2
 */
function inTurn(serve: Listener): Listener {
  const waiting = new WeakMap<Socket, number>()
  return (request, response) => {
    if (response.socket !== null) return serve(request, response)
    const { socket } = request
    const count = (waiting.get(socket) ?? 0) + 1
    if (count > MAX_WAITING) return void socket.destroy()
    waiting.set(socket, count)
    response.once('socket', () => {
      waiting.set(socket, (waiting.get(socket) ?? 1) - 1)
      serve(request, response)
    })
  }
}

function createSecure(options: ServerOptions & { cert: string; key: string }, visit: Listener): Server {
  try {
    return createHttpsServer(options, visit)
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause)
    throw new Error(`The certificate and its key cannot be used: ${reason}. Both must be PEM, and belong together`, { cause })
  }
}

function inUse(port: number, cause: Error): Error {
  return new Error(`Port ${port} is in use; choose another one, or 0 for any that is free`, { cause })
}

function text(pem: string | Uint8Array): string {
  return typeof pem === 'string' ? pem : new TextDecoder().decode(pem)
}
