import { isLoopback } from '../auth/loopback.js'
import type { HeaderPairs } from '../capture/http-exchange.js'

/* The heads of HTTP messages. They are forwarded with order and case; each change is recorded. */

/** A header that is forwarded differently; undefined: it is added or removed. */
interface HeaderChange {
  name: string
  from: string | undefined
  to: string | undefined
}

export interface EditedHeaders {
  pairs: [name: string, value: string][]
  changes: HeaderChange[]
}

/** The headers of Node's `rawHeaders`, as pairs. */
export function pairsOf(rawHeaders: readonly string[]): [string, string][] {
  const pairs: [string, string][] = []
  for (let i = 0; i + 1 < rawHeaders.length; i += 2)
    pairs.push([rawHeaders[i] ?? '', rawHeaders[i + 1] ?? ''])
  return pairs
}

/** Replaces, removes or keeps each header, as `edit` returns its value. */
function edited(
  pairs: HeaderPairs,
  edit: (name: string, value: string) => string | undefined,
): EditedHeaders {
  const result: EditedHeaders = { pairs: [], changes: [] }
  for (const [name, value] of pairs) {
    const to = edit(name.toLowerCase(), value)
    if (to !== undefined) result.pairs.push([name, to])
    if (to !== value) result.changes.push({ name, from: value, to })
  }
  return result
}

/**
 * The headers of a request for the server: with its own Host, with what the client's version of HTTP implies for the
 * connection, and without an upgrade to HTTP/2, which clients may offer.
 */
export function forwardedRequest(pairs: HeaderPairs, host: string, isOld: boolean): EditedHeaders {
  let hasHost = false
  const result = edited(pairs, (name, value) => {
    if (name === 'upgrade' || name === 'http2-settings') return undefined
    if (name === 'connection') return withoutUpgrade(value)
    if (name !== 'host') return value
    hasHost = true
    return host
  })
  const add = (name: string, value: string) => {
    result.pairs.push([name, value])
    result.changes.push({ name, from: undefined, to: value })
  }
  if (!hasHost) add('Host', host)
  if (!result.pairs.some(([name]) => name.toLowerCase() === 'connection'))
    add('Connection', isOld ? 'close' : 'keep-alive')
  return result
}

function withoutUpgrade(value: string): string | undefined {
  const options = value.split(',').map((each) => each.trim())
  const kept = options.filter((each) => !/^(?:upgrade|http2-settings)$/i.test(each))
  if (kept.length === options.length) return value
  return kept.length === 0 ? undefined : kept.join(', ')
}

/**
 * The headers of a response for the client: a redirect within the server leads back to the tap, and HTTP/1.0 has no
 * transfer codings.
 */
export function forwardedResponse(
  pairs: HeaderPairs,
  { server, local, isOld }: { server: string; local: string; isOld: boolean },
): EditedHeaders {
  return edited(pairs, (name, value) => {
    if (name === 'transfer-encoding' && isOld) return undefined
    if (name !== 'location' || !URL.canParse(value)) return value
    return new URL(value).origin === server ? withOrigin(value, local) : value
  })
}

/** An absolute URL with another origin; everything after it is unchanged. */
export function withOrigin(url: string, origin: string): string {
  return origin + url.replace(/^(?:[a-z][a-z\d+.-]*:)?\/\/[^/?#]*/i, '')
}

/** Why a request must not be forwarded: a web page that points its own name at this port sends that name as Host. */
export function refusalOf(
  host: string | undefined,
  origin: string | undefined,
  server: string,
): string | undefined {
  const name = (host ?? '').replace(/:\d+$/, '')
  if (host !== undefined && !isLoopback(name))
    return `the Host ${JSON.stringify(host.slice(0, 100))} is not this machine; use 127.0.0.1 or localhost`
  if (origin === undefined || origin === server) return undefined
  const url = URL.canParse(origin) ? new URL(origin) : undefined
  const isWeb = url === undefined || /^https?:$/.test(url.protocol)
  if (!isWeb || isLoopback(url?.hostname ?? '')) return undefined
  return `the Origin ${JSON.stringify(origin.slice(0, 100))} is a web page of another machine`
}
