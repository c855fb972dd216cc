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
import { NodeContext, UnsentResponses, inTurn } from './node-context.js'
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

/** Milliseconds in which the first request of a connection arrives: a busy load balancer may connect some time before it sends. */
const SILENCE = 500

/** Milliseconds, at most, in which the connections that wait are accepted. */
const LAST_ACCEPT = 5000

/** A listening Node HTTP server. */
export class NodeServer {
  readonly #server: Server
  /** With the time of each, and TLS connections before the end of their handshake, which Node's HTTP server does not track. */
  readonly #connections = new Map<Socket, number>()
  #accepted = 0
  #retiring = false

  private constructor(server: Server) {
    this.#server = server
    server.on('connection', (socket: Socket) => {
      this.#accepted++
      this.#connections.set(socket, performance.now())
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
    let isRetiring = () => false
    const listener = inTurn((request: IncomingMessage, response: ServerResponse) => {
      if (isRetiring()) response.shouldKeepAlive = false
      endpoint.handle(new NodeContext(request, response, unsentResponses, false))
    })
    const server =
      tls === undefined
        ? createHttpServer(settings, listener)
        : createSecure({ ...settings, cert: text(tls.cert), key: text(tls.key) }, listener)
    // The size is limited already. By default Node drops headers after the 2000th, and a repeated one could be among them.
    server.maxHeadersCount = 0
    server.setTimeout(inactivityTimeout)
    const made = new NodeServer(server)
    isRetiring = () => made.#retiring
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

  /** Ends each connection with its next response, so that a load balancer does not use it again. */
  retire(): void {
    this.#retiring = true
  }

  /** Accepts no new connections, and closes idle ones. */
  async stop(): Promise<void> {
    this.retire()
    await this.#acceptAll()
    this.#server.close()
    this.#server.closeIdleConnections()
  }

  /** The system resets connections that were not accepted when it stops listening. Node accepts one per turn of the event loop. */
  async #acceptAll(): Promise<void> {
    const end = performance.now() + LAST_ACCEPT
    for (let idle = 0; idle < 2 && performance.now() < end; idle++) {
      const before = this.#accepted
      await received()
      if (this.#accepted > before) idle = -1
    }
  }

  /** Resolves when the last connection is closed; after `deadline` milliseconds the rest are destroyed. */
  closed(deadline: number): Promise<void> {
    this.retire()
    return new Promise((resolve) => {
      const idle = setInterval(() => {
        setImmediate(() => {
          this.#server.closeIdleConnections()
          this.#closeSilentConnections()
        })
      }, 20)
      const timer = setTimeout(() => {
        this.#server.closeAllConnections()
        for (const socket of this.#connections.keys()) socket.destroy()
      }, deadline)
      const done = () => {
        clearInterval(idle)
        clearTimeout(timer)
        resolve()
      }
      this.#server.close(done)
      this.#server.closeIdleConnections()
    })
  }

  /** Node does not treat a connection without any request as idle. (Bun has no `bytesRead`.) */
  #closeSilentConnections(): void {
    if ('bun' in process.versions) return
    const before = performance.now() - SILENCE
    for (const [socket, since] of this.#connections)
      if (socket.bytesRead === 0 && since < before) socket.destroy()
  }
}

/** After what has arrived was read: a connection that is closed with unread bytes is reset. */
function received(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
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
