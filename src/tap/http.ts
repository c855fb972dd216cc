import { Agent, type IncomingMessage, type ServerResponse, createServer } from 'node:http'
import { Agent as SecureAgent } from 'node:https'
import type { AddressInfo, Socket } from 'node:net'
import type { TLSSocket } from 'node:tls'
import type { CaptureFile } from './capture-file.js'
import {
  MAX_HEADERS,
  type TapContext,
  type TappedConnection,
  TappedExchange,
} from './http-exchange.js'
import { RequestGuard } from './http-heads.js'

/** Milliseconds for requests in progress when the tap ends. */
const END_TIMEOUT = 5000
const HOST = '127.0.0.1'
/** Requests that a client may send on a connection before it has the response of the first. */
const MAX_PIPELINED = 100

export interface HttpTapOptions {
  server: URL
  /** The port to listen on, on this machine only; 0 for any free one. */
  port: number
  capture: CaptureFile
  /** Certificates of authorities to trust instead of Node's, in PEM. */
  ca?: string | undefined
  /** Prepares the agent of a connection, for proxies. */
  prepare?: ((agent: Agent) => void) | undefined
}

/** A client's connection, and the one to the server that belongs to it. */
interface Connection extends TappedConnection {
  /** Requests in progress. Not a Set: with many short-lived elements, its old tables keep them from being collected. */
  readonly exchanges: TappedExchange[]
  readonly closed: (exchange: TappedExchange) => void
}

/**
 * Listens in front of a server over HTTP and records what passes. Each connection of a client has one connection to the
 * server: if the server closes it, so does the tap.
 */
export class HttpTap {
  readonly #options: HttpTapOptions
  readonly #server = createServer({
    maxHeaderSize: MAX_HEADERS,
    // The server's timeouts apply, and a call may take any time.
    requestTimeout: 0,
    keepAliveTimeout: 0,
  })
  readonly #connections = new Map<Socket, Connection>()
  #context: TapContext | undefined
  #connectionCount = 0
  #exchangeCount = 0
  #idle: (() => void) | undefined

  private constructor(options: HttpTapOptions) {
    this.#options = options
  }

  /** Rejects if the port is in use. */
  static async listen(options: HttpTapOptions): Promise<HttpTap> {
    const tap = new HttpTap(options)
    await tap.#listen()
    return tap
  }

  /** The URL for clients: that of the server, at this machine. */
  get url(): string {
    const { pathname, search } = this.#options.server
    return `${this.#local}${pathname}${search}`
  }

  get #local(): string {
    return `http://${HOST}:${(this.#server.address() as AddressInfo).port}` // not a string: it listens on a port
  }

  /** Refuses new connections, gives requests in progress a moment, and ends the rest. */
  async close(): Promise<void> {
    this.#server.close()
    this.#server.closeIdleConnections()
    for (const exchange of this.#active()) if (exchange.isStream) exchange.stop()
    let timer: ReturnType<typeof setTimeout> | undefined
    await new Promise<void>((resolve) => {
      timer = setTimeout(resolve, END_TIMEOUT)
      this.#idle = resolve
      if (this.#active().length === 0) resolve()
    })
    clearTimeout(timer)
    for (const exchange of this.#active()) exchange.stop()
    this.#server.closeAllConnections()
    for (const [socket, { agent }] of this.#connections) {
      agent.destroy()
      socket.destroy()
    }
    while (this.#connections.size > 0) await new Promise(setImmediate)
  }

  /** The requests in progress of all connections. */
  #active(): TappedExchange[] {
    return [...this.#connections.values()].flatMap(({ exchanges }) => exchanges)
  }

  #listen(): Promise<void> {
    const server = this.#server
    // By default Node drops headers after the 2000th.
    server.maxHeadersCount = 0
    // By default it ends a connection as soon as the client does, without the response.
    Object.assign(server, { httpAllowHalfOpen: true })
    const { capture, port } = this.#options
    server.on('connection', (socket: Socket) => this.#connected(socket))
    for (const event of ['request', 'checkContinue', 'checkExpectation'])
      server.on(event, (request: IncomingMessage, response: ServerResponse) =>
        this.#exchange(request, response),
      )
    server.on('clientError', (error: NodeJS.ErrnoException, socket: Socket) => {
      const { message, code = '' } = error
      const connection = this.#connections.get(socket)?.id
      // What follows an error is reported as well.
      if (code !== 'ECONNRESET' && socket.writable)
        capture.httpEvent('error', { phase: 'request', connection, code, message })
      const status =
        code === 'HPE_HEADER_OVERFLOW' ? '431 Request Header Fields Too Large' : '400 Bad Request'
      if (socket.writable) socket.end(`HTTP/1.1 ${status}\r\nConnection: close\r\n\r\n`)
      else socket.destroy()
    })
    return new Promise((resolve, reject) => {
      server.once('error', reject)
      server.listen(port, HOST, () => {
        server.off('error', reject)
        // A connection that cannot be accepted, for lack of descriptors.
        server.on('error', ({ message }) => capture.event('error', { phase: 'accept', message }))
        this.#context = contextOf(this.#options, this.#local)
        capture.event('listen', { url: this.url, target: this.#options.server.href })
        resolve()
      })
    })
  }

  #connected(socket: Socket): void {
    const { capture } = this.#options
    const agent = agentOf(this.#options)
    const id = ++this.#connectionCount
    const exchanges: TappedExchange[] = []
    let known: Socket | undefined
    // Half-closes the connection to the server when the client has half-closed its own: the server decides what follows.
    const forwardEnd = () => {
      const [last, ...others] = exchanges
      if (socket.readableEnded && others.length === 0 && last?.isSent === true) known?.end()
    }
    const connection: Connection = {
      id,
      agent,
      exchanges,
      sent: forwardEnd,
      reached: (upstream) => {
        // After the request is written.
        if (socket.readableEnded) setImmediate(forwardEnd)
        if (upstream === known) return
        known = upstream
        this.#follow(upstream, socket, connection)
      },
      closed: (exchange) => {
        exchanges.splice(exchanges.indexOf(exchange), 1)
        if (this.#idle !== undefined && this.#active().length === 0) this.#idle()
      },
    }
    this.#connections.set(socket, connection)
    socket.setNoDelay(true)
    socket.on('end', forwardEnd)
    socket.once('close', () => {
      this.#connections.delete(socket)
      agent.destroy()
      capture.httpEvent('disconnect', { connection: id })
    })
  }

  #exchange(request: IncomingMessage, response: ServerResponse): void {
    const { socket } = request
    const connection = this.#connections.get(socket)
    if (connection === undefined || this.#context === undefined) return void socket.destroy()
    const { exchanges } = connection
    if (exchanges.length >= MAX_PIPELINED) return void socket.destroy()
    const id = ++this.#exchangeCount
    const exchange = new TappedExchange(id, this.#context, request, response, connection.closed)
    exchanges.push(exchange)
    exchange.start(connection)
  }

  /** Records a new connection to the server. When it is closed while nothing is in progress, the client's is closed as well. */
  #follow(upstream: Socket, client: Socket, connection: Connection): void {
    const { capture } = this.#options
    upstream.once('close', () => {
      if (connection.exchanges.length === 0) client.end()
    })
    const established = () =>
      capture.httpEvent('connect', { connection: connection.id, ...peerOf(upstream) })
    if (!upstream.connecting) established()
    else upstream.once('encrypted' in upstream ? 'secureConnect' : 'connect', established)
  }
}

/** Node makes a name of the options of each request, to find connections for it. Here all are to the same server. */
const nameOfAll = () => 'server'
/** Node closes a connection when the server's Keep-Alive header says so. The client may know better. */
const always = () => true

/** Keeps one connection to the server until one side closes it. */
function agentOf({ server, ca, prepare }: HttpTapOptions): Agent {
  const settings = { keepAlive: true, maxSockets: 1, ...(ca === undefined ? {} : { ca }) }
  const agent = server.protocol === 'https:' ? new SecureAgent(settings) : new Agent(settings)
  agent.getName = nameOfAll
  agent.keepSocketAlive = always
  prepare?.(agent)
  return agent
}

function contextOf({ server, capture }: HttpTapOptions, local: string): TapContext {
  const { origin, host, hostname, port, protocol } = server
  const isSecure = protocol === 'https:'
  const address = {
    host: hostname.replace(/^\[|\]$/g, ''),
    port: Number(port || (isSecure ? 443 : 80)),
  }
  return { origin, host, address, isSecure, local, guard: new RequestGuard(origin), capture }
}

/** Who is at the other end of a connection. */
function peerOf(socket: Socket): object {
  const { remoteAddress: address, remotePort: port } = socket
  if (!('encrypted' in socket)) return { address, port }
  const secure = socket as TLSSocket // it is encrypted
  return { address, port, tls: secure.getProtocol(), cipher: secure.getCipher().name }
}
