import { Secrets } from '../../../auth/secrets.js'
import { isNode, parseUrl } from '../../../runtime.js'
import type { LogEntry } from '../../../jsonrpc/log-entry.js'
import { ignore } from '../../../jsonrpc/hook.js'
import { type Authorizer, withAuthorization } from './authorizer.js'
import { HttpClientChannel } from './channel.js'
import { type SendRequest, followRedirects, webRequest } from './http-request.js'
import { HttpSseChannel } from './http-sse-channel.js'

export interface HttpClientOptions {
  /** Sends the requests, instead of Node's HTTP modules or the runtime's `fetch`. */
  fetch?: typeof globalThis.fetch
  /** Headers of every request, such as `Authorization`. They are sent to the origin of the URL only. */
  headers?: Readonly<Record<string, string>>
  /** Gives requests their authorization, and handles 401 and 403. */
  authorizer?: Authorizer
  /** Maximum bytes of one message from the server: of a JSON response, or of the data of an event (default 64 MiB). */
  maxMessage?: number
}

const MAX_MESSAGE = 64 * 1024 * 1024
/** Headers that the transport sets itself. */
const OWN_HEADERS = /^(?:accept|content-type|content-length|host|connection|last-event-id|mcp-.*)$/

/** Opens channels to the MCP endpoint at a URL. */
export class HttpTarget {
  readonly #url: URL
  readonly #fetch: typeof globalThis.fetch | undefined
  readonly #authorizer: Authorizer | undefined
  readonly #headers: Readonly<Record<string, string>>
  readonly #secrets: Secrets
  readonly #maxMessage: number
  readonly #nameParam: (method: string) => string | undefined

  constructor(
    url: string | URL,
    { fetch, headers = {}, authorizer, maxMessage = MAX_MESSAGE }: HttpClientOptions,
    nameParam: (method: string) => string | undefined,
  ) {
    this.#url = checkedUrl(url)
    this.#headers = checkedHeaders(headers)
    this.#secrets = new Secrets(this.#headers)
    if (!(maxMessage > 0)) throw new TypeError('http: "maxMessage" must be a positive number')
    this.#maxMessage = maxMessage
    this.#nameParam = nameParam
    this.#fetch = fetch
    this.#authorizer = authorizer
  }

  open(report: (entry: LogEntry) => void = ignore): HttpClientChannel {
    return new HttpClientChannel({ ...this.#options(report), nameParam: this.#nameParam })
  }

  openHttpSse(report: (entry: LogEntry) => void = ignore): HttpSseChannel {
    return new HttpSseChannel(this.#options(report))
  }

  #options(report: (entry: LogEntry) => void) {
    const authorizer = this.#authorizer
    const secrets = this.#secrets
    // Each channel has connections of its own, which end with it.
    const { send, disconnect } = runtimeRequest(this.#fetch)
    return {
      url: this.#url,
      // Each redirect is authorized as well: a proof of possession is for one URL.
      send: followRedirects(
        authorizer === undefined ? send : withAuthorization(send, authorizer, secrets),
      ),
      disconnect,
      headers: this.#headers,
      maxMessage: this.#maxMessage,
      secrets,
      report,
    }
  }
}

/** Node's own modules in Node; elsewhere the web's `fetch`, which keeps its connections for itself. */
function runtimeRequest(fetch: typeof globalThis.fetch | undefined): {
  send: SendRequest
  disconnect(): void
} {
  if (fetch !== undefined || !isNode())
    return {
      send: webRequest(fetch ?? ((input, init) => globalThis.fetch(input, init))),
      disconnect: ignore,
    }
  let loading: Promise<SendRequest & { close(): void }> | undefined
  return {
    async send(request) {
      loading ??= import('./node-request.js').then(({ nodeRequest }) => nodeRequest())
      return await (
        await loading
      )(request)
    },
    disconnect: () => void loading?.then(({ close }) => close(), ignore),
  }
}

function checkedUrl(given: string | URL): URL {
  const href = String(given)
  const url = parseUrl(href)
  if (url === undefined) throw new TypeError(`http: ${JSON.stringify(href)} is not a URL`)
  if (url.protocol !== 'http:' && url.protocol !== 'https:')
    throw new TypeError(`http: the URL must begin with http: or https:, not ${url.protocol}`)
  if (url.username !== '' || url.password !== '')
    throw new TypeError('http: the URL must not contain credentials; use "headers" instead')
  url.hash = ''
  return url
}

function checkedHeaders(given: Readonly<Record<string, string>>): Record<string, string> {
  const headers = Object.fromEntries(new Headers(given))
  const own = Object.keys(headers).find((name) => OWN_HEADERS.test(name))
  if (own !== undefined)
    throw new TypeError(`http: the header "${own}" is set by the transport; leave it out`)
  return headers
}
