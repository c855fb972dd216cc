import type { Agent, IncomingMessage } from 'node:http'
import type { LookupFunction, Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { onAbort } from '../../../jsonrpc/on-abort.js'
import { type HttpResponse, type SendRequest, UnexpectedResponseError } from './http-request.js'
import { type Proxy, type TunnelledRequestOptions, proxyOf, tunnel } from './node-proxy.js'
import { InvalidBodyError } from './response-body.js'

/*
 * HTTP by Node's own modules instead of its fetch, which times out after five minutes without data: a tool may take
 * longer, and a stream may be idle for hours. TCP keep-alive detects half-open connections.
 *
 * Node's modules are neither imported nor read at load: bundles for a browser have this file too.
 */

/** Milliseconds of idle time before TCP keep-alive probes. */
const TCP_KEEP_ALIVE = 30_000

/**
 * Milliseconds after which an idle connection is not used again. Many servers close it after five seconds, and a request
 * that is sent at that moment is lost.
 */
const MAX_IDLE = 4000

const AGENT_OPTIONS = {
  keepAliveInitialDelay: TCP_KEEP_ALIVE,
  noDelay: true,
} as const

export interface NodeRequestOptions {
  /** Whether connections are used for more than one request (default true). */
  readonly keepAlive?: boolean
}

/** Sends requests by Node's HTTP modules, through the proxies of `env`. `close` closes its connections. */
export function nodeRequest(
  env: Readonly<Record<string, string | undefined>> = process.env,
  { keepAlive = true }: NodeRequestOptions = {},
): SendRequest & { close(): void } {
  const http = process.getBuiltinModule('node:http')
  const https = process.getBuiltinModule('node:https')
  const agents = new Map<string, Agent>()
  const idleSince = new WeakMap<Duplex, number>()
  const agentFor = (secure: boolean, proxy: Proxy | undefined): Agent => {
    const key = `${secure} ${proxy?.url.href ?? ''}`
    let agent = agents.get(key)
    if (agent === undefined) {
      const agentOptions = { ...AGENT_OPTIONS, keepAlive }
      agent = secure ? new https.Agent(agentOptions) : new http.Agent(agentOptions)
      if (secure && proxy !== undefined) tunnel(agent, proxy)
      agent.on('free', (socket: Duplex) => idleSince.set(socket, performance.now()))
      agents.set(key, agent)
    }
    // Not by a timer: a busy process would run it too late.
    const oldest = performance.now() - MAX_IDLE
    for (const sockets of Object.values(agent.freeSockets))
      for (const socket of sockets ?? [])
        if ((idleSince.get(socket) ?? oldest) < oldest) socket.destroy()
    return agent
  }
  const send: SendRequest = ({ method, url, headers, body, signal, addresses, onSend }) =>
    new Promise<HttpResponse>((resolve, reject) => {
      const secure = url.protocol === 'https:'
      const proxy = proxyOf(url, env)
      const agent = agentFor(secure, proxy)
      const all: Record<string, string> = { 'accept-encoding': 'gzip, deflate, br', ...headers }
      if (body !== undefined) all['content-length'] = String(Buffer.byteLength(body))
      const options: TunnelledRequestOptions = { agent, method, headers: all, aborting: signal }
      if (addresses !== undefined) options.lookup = lookupIn(addresses)
      let response: IncomingMessage | undefined
      const respond = (message: IncomingMessage) => {
        response = message
        resolve(responseOf(message, proxy === undefined))
      }
      const request =
        proxy !== undefined && !secure
          ? http.request(
              {
                ...proxy.target,
                agent,
                method,
                path: url.href,
                headers: { ...all, host: url.host, ...proxy.headers },
              },
              respond,
            )
          : (secure ? https : http).request(url, options, respond)
      // Not the `signal` option: it could destroy a connection that is already used by another request.
      const abort = () => (response ?? request).destroy(new Error('The request was aborted'))
      request.on('close', onAbort(signal, abort))
      request.on('error', reject)
      // Without a listener, Node would neither respond nor fail.
      request.on('upgrade', (_message, socket) => {
        socket.destroy()
        reject(
          new UnexpectedResponseError(101, 'The server switched to another protocol (HTTP 101)'),
        )
      })
      request.on('socket', (socket: Socket & { secureConnecting?: boolean }) => {
        socket.setKeepAlive(true, TCP_KEEP_ALIVE)
        if (onSend === undefined) return
        // Nothing is written before the connection is established.
        if (socket.secureConnecting === true) socket.once('secureConnect', onSend)
        else if (socket.connecting) socket.once('connect', onSend)
        else onSend()
      })
      if (signal.aborted) abort()
      else request.end(body)
    })
  const close = () => {
    for (const agent of agents.values()) agent.destroy()
  }
  return Object.assign(send, { close })
}

/** Finds these addresses, or fails with the error, whatever the host is. Node looks up the host only if it is a name. */
function lookupIn(addresses: readonly string[] | Error): LookupFunction {
  if (addresses instanceof Error) return (_host, _options, done) => done(addresses, '', 0)
  const { isIP } = process.getBuiltinModule('node:net')
  const found = addresses.map((address) => ({ address, family: isIP(address) }))
  return (host, { all }, done) => {
    const [first] = found
    if (first === undefined) return done(new Error(`${host} has no address`), '', 0)
    if (all === true) done(null, found)
    else done(null, first.address, first.family)
  }
}

function responseOf(message: IncomingMessage, isDirect: boolean): HttpResponse {
  // The reader of the body gets the error; without a reader it must not be unhandled.
  message.on('error', () => {})
  return {
    status: message.statusCode ?? 0,
    header: (name) => {
      const value = message.headers[name]
      return Array.isArray(value) ? value.join(', ') : value
    },
    rawHeaders: message.rawHeaders,
    peer: isDirect ? message.socket.remoteAddress : undefined,
    body: decoded(message),
    // A connection whose response is complete can be used again.
    cancel: () => void (message.complete ? message.resume() : message.destroy()),
  }
}

function decoded(message: IncomingMessage): AsyncIterable<Uint8Array> {
  const encoding = message.headers['content-encoding']?.trim().toLowerCase() ?? ''
  return encoding === '' || encoding === 'identity' ? message : decompressed(message, encoding)
}

async function* decompressed(
  message: IncomingMessage,
  encoding: string,
): AsyncGenerator<Uint8Array> {
  const decoder = decoderOf(encoding)
  if (decoder === undefined) {
    message.destroy()
    throw new InvalidBodyError(`The response has an unknown Content-Encoding, "${encoding}"`)
  }
  // Errors reach the reader through the decoder.
  process.getBuiltinModule('node:stream').pipeline(message, decoder, () => {})
  try {
    yield* decoder as AsyncIterable<Uint8Array> // decoders emit buffers
  } catch (cause) {
    if (message.errored !== null || !message.complete) throw cause
    throw new InvalidBodyError(`The body of the response is not valid ${encoding}`, { cause })
  }
}

function decoderOf(encoding: string): Duplex | undefined {
  const zlib = process.getBuiltinModule('node:zlib')
  switch (encoding) {
    case 'gzip':
    case 'x-gzip':
      return zlib.createGunzip()
    case 'deflate':
      return zlib.createInflate()
    case 'br':
      return zlib.createBrotliDecompress()
    default:
      return undefined
  }
}
