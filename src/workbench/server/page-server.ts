import { createHash, randomBytes, timingSafeEqual } from 'node:crypto'
import { readSync } from 'node:fs'
import { type IncomingMessage, type Server, type ServerResponse, createServer } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import type { ServedCapture } from './served-capture.js'

/*
 * Serves the page and the capture on loopback. Everything is read-only: the page can ask for the state and the bytes of
 * the one capture, and nothing else. Other pages and other users do not know the token, which is in the fragment of the
 * URL: browsers do not send it, neither to servers nor to other pages.
 */

/** A page has a few connections. Beyond this number, the oldest one that has not shown the token is closed. */
const MAX_CONNECTIONS = 32
const MAX_HEADER_BYTES = 8 * 1024
/** Milliseconds for the head of a request, and between checks of that. */
const HEAD_TIMEOUT = 10_000
const TIMEOUT_CHECK = 1000
/** Maximum milliseconds that a request waits for news, and the milliseconds between checks of the file. */
const LONG_POLL_TIMEOUT = 20_000
const POLL = 100
const READ_BYTES = 256 * 1024

export interface PageServerOptions {
  /** The built page. */
  html: string
  capture: ServedCapture
  /** Whether the capture may grow, or be replaced by a newer one. */
  follow: boolean
}

/** What `/api/capture` answers. */
interface CaptureAnswer {
  id: number
  name: string
  size: number
  follow: boolean
}

export class PageServer {
  readonly #html: Uint8Array
  readonly #policy: string
  readonly #capture: ServedCapture
  readonly #follow: boolean
  readonly #token = randomBytes(32).toString('base64url')
  readonly #server: Server
  readonly #closed = new AbortController()
  /** Connections that have not shown the token, the oldest first, and those that have. Any local user can connect. */
  readonly #unauthenticated = new Set<Socket>()
  readonly #authenticated = new Set<Socket>()

  constructor({ html, capture, follow }: PageServerOptions) {
    this.#html = new TextEncoder().encode(html)
    this.#policy = contentSecurityPolicy(html)
    this.#capture = capture
    this.#follow = follow
    const options = {
      maxHeaderSize: MAX_HEADER_BYTES,
      connectionsCheckingInterval: TIMEOUT_CHECK,
    }
    this.#server = createServer(options, (request, response) => {
      this.#serve(request, response).catch(() => response.destroy())
    })
    this.#server.on('connection', (socket: Socket) => this.#connected(socket))
    this.#server.headersTimeout = HEAD_TIMEOUT
    this.#server.requestTimeout = HEAD_TIMEOUT
  }

  /** Starts to listen on a free port of loopback; resolves to the URL of the page, with the token. */
  async listen(): Promise<string> {
    await new Promise<void>((resolve, reject) => {
      this.#server.once('error', reject)
      this.#server.listen(0, '127.0.0.1', resolve)
    })
    return `http://127.0.0.1:${this.#port}/#token=${this.#token}`
  }

  async close(): Promise<void> {
    this.#closed.abort()
    await new Promise((resolve) => {
      this.#server.close(resolve)
      this.#server.closeAllConnections()
    })
    this.#capture.close()
  }

  get #port(): number {
    return (this.#server.address() as AddressInfo).port // it listens on a port
  }

  #connected(socket: Socket): void {
    this.#unauthenticated.add(socket)
    socket.once('close', () => {
      this.#unauthenticated.delete(socket)
      this.#authenticated.delete(socket)
    })
    if (this.#unauthenticated.size + this.#authenticated.size <= MAX_CONNECTIONS) return
    const [oldest = socket] = this.#unauthenticated
    this.#unauthenticated.delete(oldest)
    oldest.destroy()
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    for (const [name, value] of Object.entries(HEADERS)) response.setHeader(name, value)
    response.setHeader('Content-Security-Policy', this.#policy)
    if (request.method !== 'GET' && request.method !== 'HEAD')
      return refuse(response, 405, 'Only GET is allowed', { Allow: 'GET, HEAD' })
    if (!this.#isLocal(request)) return refuse(response, 403, 'Host or Origin is not allowed')
    const [pathname, query] = (request.url ?? '/').split('?', 2)
    const searchParams = new URLSearchParams(query)
    const isPage = pathname === '/'
    const isAllowed = isFromOwnSite(request) || (isPage && isTopLevelNavigation(request))
    if (!isAllowed) return refuse(response, 403, 'Requests from other sites are not allowed')
    if (isPage) return this.#page(response)
    const isApi = pathname === '/api/capture' || pathname === '/api/bytes'
    if (!isApi) return refuse(response, 404, 'There is no such page')
    if (!this.#hasToken(request)) return refuse(response, 401, 'The token is missing or wrong')
    if (this.#unauthenticated.delete(request.socket)) this.#authenticated.add(request.socket)
    if (pathname === '/api/bytes') return await this.#bytes(request, response, searchParams)
    return await this.#state(response, searchParams)
  }

  /** DNS rebinding changes Host; other pages have another Origin. */
  #isLocal({ headers }: IncomingMessage): boolean {
    const hosts = [`127.0.0.1:${this.#port}`, `localhost:${this.#port}`]
    const { host = '', origin } = headers
    return hosts.includes(host) && (origin === undefined || origin === `http://${host}`)
  }

  #hasToken({ headers: { authorization = '' } }: IncomingMessage): boolean {
    const hash = (text: string) => createHash('sha256').update(text).digest()
    return timingSafeEqual(hash(authorization), hash(`Bearer ${this.#token}`))
  }

  #page(response: ServerResponse): void {
    response.setHeader('Content-Type', 'text/html; charset=utf-8')
    response.end(this.#html)
  }

  /** The state of the capture. With `id` and `after`, waits until there is something new. */
  async #state(response: ServerResponse, query: URLSearchParams): Promise<void> {
    const seen = { id: Number(query.get('id') ?? -1), size: Number(query.get('after') ?? -1) }
    const capture = this.#capture
    const gone = new AbortController()
    response.once('close', () => gone.abort())
    const signal = AbortSignal.any([this.#closed.signal, gone.signal])
    const until = performance.now() + (this.#follow ? LONG_POLL_TIMEOUT : 0)
    for (;;) {
      if (this.#follow) capture.refresh()
      const isNew = capture.id !== seen.id || capture.size !== seen.size
      if (isNew || performance.now() >= until) break
      await delay(POLL, undefined, { signal })
    }
    const { id, name, size } = capture
    const answer: CaptureAnswer = { id, name, size, follow: this.#follow }
    response.setHeader('Content-Type', 'application/json')
    response.end(JSON.stringify(answer))
  }

  /** A range of the bytes of the capture `id`. */
  async #bytes(
    request: IncomingMessage,
    response: ServerResponse,
    query: URLSearchParams,
  ): Promise<void> {
    const { descriptor, id, size } = this.#capture
    if (descriptor === undefined || Number(query.get('id')) !== id)
      return refuse(response, 410, 'A newer capture has replaced this one')
    const [, from, to] = /^bytes=(\d{1,15})-(\d{1,15})?$/.exec(request.headers.range ?? '') ?? []
    const start = Number(from ?? 0)
    const end = Math.min(size, to === undefined ? size : Number(to) + 1)
    if (start >= end)
      return refuse(response, 416, 'There are no such bytes', {
        'Content-Range': `bytes */${size}`,
      })
    response.writeHead(206, {
      'Content-Type': 'application/octet-stream',
      'Content-Range': `bytes ${start}-${end - 1}/${size}`,
      'Content-Length': end - start,
    })
    if (request.method === 'HEAD') return void response.end()
    await this.#send(response, start, end)
  }

  async #send(response: ServerResponse, start: number, end: number): Promise<void> {
    const { id } = this.#capture
    for (let at = start; at < end;) {
      const buffer = new Uint8Array(Math.min(READ_BYTES, end - at))
      const { descriptor } = this.#capture
      // The descriptor of a capture that was replaced is closed; its number may belong to another file soon.
      if (descriptor === undefined || this.#capture.id !== id) return void response.destroy()
      const bytesRead = readSync(descriptor, buffer, 0, buffer.length, at)
      // The file was truncated: the length that was promised cannot be sent.
      if (bytesRead === 0 || response.destroyed) return void response.destroy()
      at += bytesRead
      if (!response.write(buffer.subarray(0, bytesRead))) await drained(response)
    }
    response.end()
  }
}

/** Browsers do not send Origin with every request of another page, but they send its site. */
function isFromOwnSite({ headers }: IncomingMessage): boolean {
  const site = headers['sec-fetch-site']
  return site === undefined || site === 'same-origin' || site === 'none'
}

/** A link, or the file that `--open` gives to the browser: another site opens the page, and cannot read it. */
function isTopLevelNavigation({ headers }: IncomingMessage): boolean {
  return headers['sec-fetch-mode'] === 'navigate' && headers['sec-fetch-dest'] === 'document'
}

/** Resolves when more can be written, or when the connection is closed. */
function drained(response: ServerResponse): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      response.off('drain', done)
      response.off('close', done)
      resolve()
    }
    response.on('drain', done)
    response.on('close', done)
  })
}

/** For every response. */
const HEADERS = {
  'Cache-Control': 'no-store',
  'X-Content-Type-Options': 'nosniff',
  'X-Frame-Options': 'DENY',
  'Referrer-Policy': 'no-referrer',
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Cross-Origin-Embedder-Policy': 'require-corp',
  'Cross-Origin-Resource-Policy': 'same-origin',
  'Permissions-Policy': 'camera=(), geolocation=(), microphone=(), payment=(), usb=()',
} as const

/** The policy in the page, and what only a header can say. */
export function contentSecurityPolicy(html: string): string {
  const [, policy] = /http-equiv="Content-Security-Policy"\s+content="([^"]+)"/.exec(html) ?? []
  if (policy === undefined)
    throw new Error('The page has no Content-Security-Policy; build it again')
  return `${policy}; frame-ancestors 'none'`
}

function refuse(
  response: ServerResponse,
  status: number,
  why: string,
  headers: Readonly<Record<string, string>> = {},
): void {
  response.writeHead(status, { 'Content-Type': 'text/plain; charset=utf-8', ...headers })
  response.end(`${why}\n`)
}
