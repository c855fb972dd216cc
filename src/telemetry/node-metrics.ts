import { once } from 'node:events'
import { type IncomingMessage, type ServerResponse, createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { isAddress, isLoopback } from '../auth/loopback.js'
import { withCode } from '../jsonrpc/errors.js'
import { checkNames, namesOf } from '../schema/names.js'
import type { Prometheus } from './prometheus.js'

export interface MetricsOptions {
  /** The port (default 9464; 0 for any free port). */
  port?: number
  /** The address to bind to (default 127.0.0.1: this machine only). */
  host?: string
  /** Allowed values of the Host header, such as `metrics.example.com`, beside `localhost`. */
  hosts?: readonly string[]
  /** Allows an address other than loopback: everybody who can connect reads the metrics. */
  allowUnauthenticated?: boolean
}

const OPTIONS = namesOf<MetricsOptions>()('port host hosts allowUnauthenticated')

/** Metrics that are served over HTTP. */
export interface MetricsListening {
  readonly url: string
  readonly port: number
  close(): Promise<void>
  [Symbol.asyncDispose](): Promise<void>
}

/** Few, since each may hold a copy of the text. */
const MAX_CONNECTIONS = 8
/** Milliseconds for a request to arrive, and for its response to be read. */
const TIMEOUT = 10_000

/** Serves metrics at `/metrics`, on a port of their own. */
export async function listenMetrics(
  metrics: Prometheus,
  options: MetricsOptions = {},
): Promise<MetricsListening> {
  checkNames('listenMetrics', options, OPTIONS)
  const { port = 9464, host = '127.0.0.1', hosts = [], allowUnauthenticated = false } = options
  const local = isLoopback(host)
  if (!local && !allowUnauthenticated)
    throw withCode(
      'UNAUTHENTICATED_BIND',
      new TypeError(
        `listenMetrics: ${host} can be reached from other machines. Set "allowUnauthenticated: true" to allow that`,
      ),
    )
  const names = new Set(hosts.map((each) => each.toLowerCase()))
  const isAllowed = (name: string) =>
    isLoopback(name) || names.has(name) || (!local && isAddress(name))
  const server = createServer(
    { requestTimeout: TIMEOUT, headersTimeout: TIMEOUT, connectionsCheckingInterval: TIMEOUT },
    (request, response) => respond(metrics, isAllowed, request, response),
  )
  server.maxConnections = MAX_CONNECTIONS
  server.setTimeout(TIMEOUT)
  server.listen(port, host)
  await once(server, 'listening')
  // A late error, such as too many open files, must not end the process.
  server.on('error', () => {})
  const { port: bound } = server.address() as AddressInfo // it listens on a port
  const close = async () => {
    if (!server.listening) return
    const closed = once(server, 'close')
    server.close()
    server.closeAllConnections()
    await closed
  }
  return {
    url: `http://${host.includes(':') ? `[${host}]` : host}:${bound}/metrics`,
    port: bound,
    close,
    [Symbol.asyncDispose]: close,
  }
}

function respond(
  metrics: Prometheus,
  isAllowed: (name: string) => boolean,
  { method, url = '', headers }: IncomingMessage,
  response: ServerResponse,
): void {
  const { host = '', origin } = headers
  const refuse = (status: number, text: string) =>
    void response
      .writeHead(status, { 'content-type': 'text/plain; charset=utf-8' })
      .end(`${text}\n`)
  // DNS rebinding changes Host; a page of another site has an Origin.
  if (!isAllowed(host.toLowerCase().replace(/:\d+$/, '')))
    return refuse(403, 'Forbidden: the Host header names a host that is not allowed')
  if (origin !== undefined) return refuse(403, 'Forbidden: web pages may not read metrics')
  if (url.split('?', 1)[0] !== '/metrics') return refuse(404, 'Not Found: metrics are at /metrics')
  if (method !== 'GET' && method !== 'HEAD') {
    response.setHeader('allow', 'GET, HEAD')
    return refuse(405, 'Method Not Allowed: use GET')
  }
  response.writeHead(200, { 'content-type': metrics.contentType, 'cache-control': 'no-store' })
  response.end(method === 'HEAD' ? undefined : metrics.text())
}
