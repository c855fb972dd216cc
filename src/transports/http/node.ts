import { withCode } from '../../jsonrpc/errors.js'
import type { LogEntry } from '../../jsonrpc/log-entry.js'
import {
  type IncomingMessage,
  type Server,
  type ServerResponse,
  createServer as createHttpServer,
} from 'node:http'
import { type ServerOptions, createServer as createHttpsServer } from 'node:https'
import type { AddressInfo, Socket } from 'node:net'
import { NodeContext, UNWRITTEN, UnsentResponses, inTurn } from './node-context.js'
import type { HttpContext } from './http-context.js'

export interface NodeOptions {
  port: number
  host: string
  tls?: { cert: string | Uint8Array; key: string | Uint8Array } | undefined
  /** Milliseconds until the headers, and the whole, of a request must have arrived. */
  headersTimeout: number
  requestTimeout: number
  /** Milliseconds without traffic after which a connection is closed; 0 for never. */
  inactivityTimeout: number
  /** Maximum unsent bytes of all responses. */
  maxUnsentBytes: number
  endpoint: { handle(context: HttpContext): void }
  report(entry: LogEntry): void
}

/** A server that listens. */
export interface Listening extends AsyncDisposable {
  /** The URL of the endpoint on this machine. */
  readonly url: string
  readonly port: number
  /** Number of sessions. */
  readonly sessions: number
  /** Number of open responses: calls in progress, and streams. */
  readonly openResponses: number
  /** Refuses new requests, gives those in progress `deadline` milliseconds (default 5000), then closes all connections. */
  close(deadline?: number): Promise<void>
}

/** A listening Node HTTP server. */
export class NodeServer {
  readonly #server: Server
  /** With TLS connections before the end of their handshake, which Node's HTTP server does not track. */
  readonly #connections = new Set<Socket>()
  #isClosing = false

  private constructor(server: Server) {
    this.#server = server
    server.on('connection', (socket: Socket) => {
      this.#connections.add(socket)
      socket.once('close', () => this.#connections.delete(socket))
    })
  }

  static start({
    port,
    host,
    tls,
    headersTimeout,
    requestTimeout,
    inactivityTimeout,
    maxUnsentBytes,
    endpoint,
    report,
  }: NodeOptions): Promise<NodeServer> {
    const settings = {
      headersTimeout,
      requestTimeout,
      // Node's default is 30 seconds: a slow client would keep its connection for that long.
      connectionsCheckingInterval: Math.min(1000, headersTimeout),
      // Longer than the 60 seconds for which load balancers reuse connections.
      keepAliveTimeout: 65_000,
      insecureHTTPParser: false,
      // The same limit for the TLS handshake.
      handshakeTimeout: headersTimeout,
    }
    const unsentResponses = new UnsentResponses(maxUnsentBytes)
    const failed = (error: unknown) => report({ level: 'error', message: UNWRITTEN, error })
    const handle: Listener = (request, response) =>
      endpoint.handle(new NodeContext(request, response, unsentResponses, false, failed))
    const listener = inTurn((request: IncomingMessage, response: ServerResponse) => {
      if (!made.#isClosing) return handle(request, response)
      // Its body is read first: a connection that is closed before that is reset, and the response lost.
      request.once('end', () => (response.shouldKeepAlive = false))
      if (request.method === 'POST') return handle(request, response)
      request.resume().once('end', () => handle(request, response))
    })
    const server =
      tls === undefined
        ? createHttpServer(settings, listener)
        : createSecure({ ...settings, cert: text(tls.cert), key: text(tls.key) }, listener)
    // The size is limited already. By default Node drops headers after the 2000th, and a repeated one could be among them.
    server.maxHeadersCount = 0
    server.setTimeout(inactivityTimeout)
    const made = new NodeServer(server)
    return new Promise((resolve, reject) => {
      // While it listens, an error is one of a connection that was not accepted. Without a listener it would be thrown.
      server.on('error', (error: NodeJS.ErrnoException) => {
        if (server.listening) report({ level: 'error', message: 'The HTTP server failed', error })
        else reject(error.code === 'EADDRINUSE' ? inUse(port, error) : error)
      })
      server.listen(port, host, () => resolve(made))
    })
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port // not a string: it listens on a port
  }

  /** From now on each response ends its connection, so that a load balancer does not use it again. */
  beginClosing(): void {
    this.#isClosing = true
  }

  /**
   * Accepts no new connections, and closes idle ones. Resolves when the last connection is closed; after `deadline`
   * milliseconds the rest are destroyed.
   */
  async closed(deadline: number): Promise<void> {
    this.beginClosing()
    // Two turns, in which requests that have arrived are read: otherwise their connections would count as idle, and be reset.
    for (let turns = 0; turns < 2; turns++) await new Promise(setImmediate)
    await new Promise<void>((resolve) => {
      const closeUnused = () => {
        this.#server.closeIdleConnections()
        this.#closeSilentConnections()
      }
      const interval = setInterval(() => setImmediate(closeUnused), 20)
      const timer = setTimeout(() => {
        this.#server.closeAllConnections()
        for (const socket of this.#connections) socket.destroy()
      }, deadline)
      this.#server.close(() => {
        clearInterval(interval)
        clearTimeout(timer)
        resolve()
      })
      this.#server.closeIdleConnections()
    })
  }

  /** Node does not treat a connection without any request as idle. (Bun has no `bytesRead`.) */
  #closeSilentConnections(): void {
    if ('bun' in process.versions) return
    for (const socket of this.#connections) if (socket.bytesRead === 0) socket.destroy()
  }
}

type Listener = (request: IncomingMessage, response: ServerResponse) => void

function createSecure(
  options: ServerOptions & { cert: string; key: string },
  listener: Listener,
): Server {
  try {
    return createHttpsServer(options, listener)
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause)
    throw new Error(
      `The TLS certificate and key cannot be used: ${reason}. Both must be PEM, and match`,
      { cause },
    )
  }
}

function inUse(port: number, cause: Error): Error {
  const message = `Port ${port} is in use; choose another one, or 0 for any free port`
  return withCode('EADDRINUSE', new Error(message, { cause }))
}

function text(pem: string | Uint8Array): string {
  return typeof pem === 'string' ? pem : new TextDecoder().decode(pem)
}
