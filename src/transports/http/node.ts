import {
  type IncomingMessage,
  type Server,
  type ServerResponse,
  createServer as createHttpServer,
} from 'node:http'
import { type ServerOptions, createServer as createHttpsServer } from 'node:https'
import type { AddressInfo, Socket } from 'node:net'
import { withCode } from '../../jsonrpc/errors.js'
import { inTurn } from './node-turns.js'
import { NodeContext } from './node-context.js'
import { UnsentResponses } from './unsent-responses.js'
import type { HttpContext } from './http-context.js'

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
  handle(visit: HttpContext): void
}

/** A server that listens. */
export interface Listening extends AsyncDisposable {
  /** The endpoint, as this machine calls it. */
  readonly url: string
  readonly port: number
  /** How many sessions there are, and how many answers are open. */
  readonly sessions: number
  readonly open: number
  /** Takes no new work, gives what is under way so many milliseconds (default 5000), and closes. */
  close(deadline?: number): Promise<void>
}

/** An HTTP server that takes connections. */
export class NodeServer {
  readonly #server: Server
  /** Also those of https that have not agreed on a secret: Node's HTTP knows nothing of them then. */
  readonly #connections = new Set<Socket>()

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
    headTimeout,
    requestTimeout,
    stillTimeout,
    maxUnread,
    handle,
  }: NodeOptions): Promise<NodeServer> {
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
    const unread = new UnsentResponses(maxUnread)
    const visit = inTurn((request: IncomingMessage, response: ServerResponse) =>
      handle(new ListenedVisit(request, response, unread)),
    )
    const server =
      tls === undefined
        ? createHttpServer(settings, visit)
        : createSecure({ ...settings, cert: text(tls.cert), key: text(tls.key) }, visit)
    // How many there are is bounded by their size. By default Node leaves out those behind the two thousandth, and who comes twice may be one of them.
    server.maxHeadersCount = 0
    server.setTimeout(stillTimeout)
    const made = new NodeServer(server)
    return new Promise((resolve, reject) => {
      server.once('error', (error: NodeJS.ErrnoException) =>
        reject(error.code === 'EADDRINUSE' ? inUse(port, error) : error),
      )
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
      const idle = setInterval(() => {
        this.#server.closeIdleConnections()
        this.#closeSilentConnections()
      }, 20)
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

  /** Those on which nothing was ever said are not idle to Node. (Bun does not count what was said.) */
  #closeSilentConnections(): void {
    if ('bun' in process.versions) return
    for (const socket of this.#connections) if (socket.bytesRead === 0) socket.destroy()
  }
}

/** A request to a server of our own, where no other code has set headers: Node takes them all at once, which is faster. */
class ListenedVisit extends NodeContext {
  readonly #response: ServerResponse

  constructor(request: IncomingMessage, response: ServerResponse, unread: UnsentResponses) {
    super(request, response, unread)
    this.#response = response
  }

  protected override writeHead(status: number, headers: string[]): void {
    this.#response.writeHead(status, headers)
  }
}

type Listener = (request: IncomingMessage, response: ServerResponse) => void

function createSecure(
  options: ServerOptions & { cert: string; key: string },
  visit: Listener,
): Server {
  try {
    return createHttpsServer(options, visit)
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause)
    throw new Error(
      `The certificate and its key cannot be used: ${reason}. Both must be PEM, and belong together`,
      { cause },
    )
  }
}

function inUse(port: number, cause: Error): Error {
  const message = `Port ${port} is in use; choose another one, or 0 for any that is free`
  return withCode('EADDRINUSE', new Error(message, { cause }))
}

function text(pem: string | Uint8Array): string {
  return typeof pem === 'string' ? pem : new TextDecoder().decode(pem)
}
