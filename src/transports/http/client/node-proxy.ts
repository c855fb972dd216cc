import type { Agent, RequestOptions } from 'node:http'
import type { Socket } from 'node:net'
import { parseUrl } from '../../../runtime.js'

/** A proxy of `HTTP_PROXY` or `HTTPS_PROXY`. */
export interface Proxy {
  readonly url: URL
  readonly target: Pick<RequestOptions, 'host' | 'port'>
  readonly headers: Readonly<Record<string, string>>
}

/** The proxy for a URL, by the usual environment variables; lower case takes precedence. */
export function proxyOf(
  url: URL,
  env: Readonly<Record<string, string | undefined>>,
): Proxy | undefined {
  const variable = (name: string) => env[name.toLowerCase()] ?? env[name]
  const given =
    variable(url.protocol === 'https:' ? 'HTTPS_PROXY' : 'HTTP_PROXY') ?? variable('ALL_PROXY')
  if (given === undefined || given === '' || isExcluded(url, variable('NO_PROXY') ?? ''))
    return undefined
  const href = given.includes('://') ? given : `http://${given}`
  const proxy = parseUrl(href)
  if (proxy === undefined)
    throw new TypeError(`The proxy ${JSON.stringify(given)} is not a valid URL`)
  if (proxy.protocol !== 'http:')
    throw new TypeError(
      `The proxy ${proxy.origin} must be reached over http:, not ${proxy.protocol}`,
    )
  const credentials = `${decodeURIComponent(proxy.username)}:${decodeURIComponent(proxy.password)}`
  return {
    url: proxy,
    target: {
      host: unbracketed(proxy.hostname),
      port: proxy.port === '' ? 80 : Number(proxy.port),
    },
    headers:
      credentials === ':'
        ? {}
        : { 'proxy-authorization': `Basic ${Buffer.from(credentials).toString('base64')}` },
  }
}

function isExcluded({ hostname, port }: URL, list: string): boolean {
  return list.split(/[\s,]+/).some((entry) => {
    if (entry === '*') return true
    const [, name = '', only] = /^(\[.*\]|[^:]*)(?::(\d+))?$/.exec(entry.toLowerCase()) ?? []
    if (name === '' || (only !== undefined && only !== port)) return false
    const suffix = name.replace(/^\*?\./, '')
    return hostname === suffix || hostname.endsWith(`.${suffix}`)
  })
}

/** Milliseconds for the response of a proxy to CONNECT. */
const CONNECT_TIMEOUT = 30_000

/** The options of a request through a tunnel. */
export interface TunnelledRequestOptions extends RequestOptions {
  /** Aborts the connection to the proxy: Node's `destroy` does not while a request has no connection. */
  aborting: AbortSignal
}

/** Makes an https agent connect through the proxy. */
export function tunnel(agent: Agent, proxy: Proxy): void {
  const { request } = process.getBuiltinModule('node:http')
  const { connect } = process.getBuiltinModule('node:tls')
  const createConnection = (
    { aborting, ...options }: TunnelOptions,
    done: (error: Error | null, socket?: Socket) => void,
  ) => {
    const host = options.host ?? ''
    const authority = `${host.includes(':') ? `[${host}]` : host}:${options.port ?? 443}`
    const connecting = request({
      ...proxy.target,
      method: 'CONNECT',
      path: authority,
      headers: { host: authority, ...proxy.headers },
    })
    const responded = `The proxy ${proxy.url.host} responded to CONNECT ${authority}`
    const abort = () => connecting.destroy(new Error('The request was aborted'))
    const timer = setTimeout(() => {
      connecting.destroy(
        new Error(
          `The proxy ${proxy.url.host} did not respond to CONNECT ${authority} within ${CONNECT_TIMEOUT} ms`,
        ),
      )
    }, CONNECT_TIMEOUT)
    const settled = () => {
      clearTimeout(timer)
      aborting?.removeEventListener('abort', abort)
    }
    connecting.on('error', (error) => {
      settled()
      done(error)
    })
    connecting.on('connect', (response, socket) => {
      settled()
      if (response.statusCode === 200)
        return done(null, connect({ ...options, socket, servername: options.servername ?? host }))
      socket.destroy()
      done(new Error(`${responded} with HTTP ${response.statusCode}`))
    })
    connecting.end()
    if (aborting?.aborted === true) abort()
    else aborting?.addEventListener('abort', abort)
  }
  Object.assign(agent, { createConnection })
}

interface TunnelOptions {
  host?: string
  port?: number
  servername?: string
  aborting?: AbortSignal
}

function unbracketed(hostname: string): string {
  return hostname.replace(/^\[|\]$/g, '')
}
