import { isLoopback } from '../auth/loopback.js'
import { parseUrl } from '../runtime.js'

/* The heads of HTTP messages. They are forwarded with order and case; each change is recorded. */

/** A header that is forwarded differently; undefined: it is added or removed. */
interface HeaderChange {
  name: string
  from: string | undefined
  to: string | undefined
}

/** Methods of requests that have no body unless their headers say so, for Node. */
const BODILESS = new Set(['GET', 'HEAD', 'DELETE', 'OPTIONS', 'TRACE', 'CONNECT'])

export interface EditedHeaders {
  /** Names and values in turn, as Node has them. */
  list: string[]
  /** Undefined: none. */
  changes: HeaderChange[] | undefined
}

/** Headers as pairs in a record. They are made when it is encoded, not while the request waits. */
export class RecordedHeaders {
  readonly #list: readonly string[]

  constructor(list: readonly string[]) {
    this.#list = list
  }

  /** Characters of all names and values. */
  get size(): number {
    let size = 0
    for (const text of this.#list) size += text.length
    return size
  }

  toJSON(): [string, string][] {
    return pairsOf(this.#list)
  }
}

/** Names and values in turn as pairs. */
export function pairsOf(list: readonly string[]): [string, string][] {
  const pairs: [string, string][] = []
  for (let i = 0; i + 1 < list.length; i += 2) pairs.push([list[i] ?? '', list[i + 1] ?? ''])
  return pairs
}

/** Replaces, removes or keeps each header, as `edit` returns its value. */
export function edited(
  headers: readonly string[],
  edit: (name: string, value: string) => string | undefined,
): EditedHeaders {
  const result: EditedHeaders = { list: [], changes: undefined }
  for (let i = 0; i + 1 < headers.length; i += 2) {
    const name = headers[i] ?? ''
    const value = headers[i + 1] ?? ''
    const to = edit(name.toLowerCase(), value)
    if (to !== undefined) result.list.push(name, to)
    if (to !== value) change(result, name, value, to)
  }
  return result
}

function change(
  edits: EditedHeaders,
  name: string,
  from: string | undefined,
  to: string | undefined,
): void {
  edits.changes ??= []
  edits.changes.push({ name, from, to })
}

/**
 * The headers of a request for the server: with its own Host, with what the client's version of HTTP implies for the
 * connection, the length of a missing body where a method may have one, and without an upgrade to HTTP/2, which
 * clients may offer.
 */
export function forwardedRequest(
  headers: readonly string[],
  host: string,
  { isOld, hasBody, method }: { isOld: boolean; hasBody: boolean; method: string | undefined },
): EditedHeaders {
  let hasHost = false
  let hasConnection = false
  const result = edited(headers, (name, value) => {
    if (name === 'upgrade' || name === 'http2-settings') return undefined
    if (name === 'trailer' && !isChunked(headers)) return undefined
    if (name === 'connection') {
      const kept = withoutUpgrade(value)
      hasConnection ||= kept !== undefined
      return kept
    }
    if (name !== 'host') return value
    hasHost = true
    return host
  })
  const add = (name: string, value: string) => {
    result.list.push(name, value)
    change(result, name, undefined, value)
  }
  if (!hasHost) add('Host', host)
  if (!hasConnection) add('Connection', isOld ? 'close' : 'keep-alive')
  // Otherwise Node would make an empty body of chunks.
  if (!hasBody && !BODILESS.has(method ?? '')) add('Content-Length', '0')
  return result
}

/** Trailers need chunks: Node refuses to send the header without them. */
function isChunked(headers: readonly string[]): boolean {
  return headers.some(
    (text, i) =>
      i % 2 === 0 &&
      text.toLowerCase() === 'transfer-encoding' &&
      /\bchunked\b/i.test(headers[i + 1] ?? ''),
  )
}

function withoutUpgrade(value: string): string | undefined {
  if (!/upgrade|http2-settings/i.test(value)) return value
  const options = value.split(',').map((each) => each.trim())
  const kept = options.filter((each) => !/^(?:upgrade|http2-settings)$/i.test(each))
  if (kept.length === options.length) return value
  return kept.length === 0 ? undefined : kept.join(', ')
}

export interface EditedResponse extends EditedHeaders {
  /** Whether the head says where the body ends. */
  isDelimited: boolean
}

/**
 * The headers of a response for the client: a redirect within the server leads back to the tap, and HTTP/1.0 has no
 * transfer codings.
 */
export function forwardedResponse(
  headers: readonly string[],
  { origin, local }: { readonly origin: string; readonly local: string },
  { isOld, hasTrailers }: { isOld: boolean; hasTrailers: boolean },
): EditedResponse {
  let isDelimited = false
  const { list, changes } = edited(headers, (name, value) => {
    if (name === 'trailer' && !(hasTrailers && isChunked(headers))) return undefined
    if (name === 'content-length') isDelimited = true
    if (name === 'transfer-encoding') {
      isDelimited = true
      return isOld ? undefined : value
    }
    const isOurs = name === 'location' && parseUrl(value)?.origin === origin
    return isOurs ? withOrigin(value, local) : value
  })
  return { list, changes, isDelimited }
}

/** An absolute URL with another origin; everything after it is unchanged. */
export function withOrigin(url: string, origin: string): string {
  return origin + url.replace(/^(?:[a-z][a-z\d+.-]*:)?\/\/[^/?#]*/i, '')
}

/** Rejects requests from web pages of other machines: checks Origin, and Host against DNS rebinding. */
export class RequestGuard {
  readonly #server: string
  /** The last allowed Host and Origin: most requests repeat them. */
  #host: string | undefined
  #origin: string | undefined

  /** The origin of the server. */
  constructor(server: string) {
    this.#server = server
  }

  /** Why a request must not be forwarded. */
  refusalOf(host: string | undefined, origin: string | undefined): string | undefined {
    if (host === this.#host && origin === this.#origin) return undefined
    const refusal = refusalOf(host, origin, this.#server)
    if (refusal === undefined) {
      this.#host = host
      this.#origin = origin
    }
    return refusal
  }
}

function refusalOf(
  host: string | undefined,
  origin: string | undefined,
  server: string,
): string | undefined {
  const name = (host ?? '').replace(/:\d+$/, '')
  if (host !== undefined && !isLoopback(name))
    return `the Host ${JSON.stringify(host.slice(0, 100))} is not this machine; use 127.0.0.1 or localhost`
  if (origin === undefined || origin === server) return undefined
  const url = parseUrl(origin)
  const isWeb = url === undefined || /^https?:$/.test(url.protocol)
  if (!isWeb || isLoopback(url?.hostname ?? '')) return undefined
  return `the Origin ${JSON.stringify(origin.slice(0, 100))} is a web page of another machine`
}
