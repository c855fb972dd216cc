import { parseUrl } from '../runtime.js'

/*
 * Which URIs name the same resource.
 *
 * Two URIs are the same if their normal forms are (RFC 3986, section 6.2.2):
 * the case of the scheme and of the host does not matter, nor whether an
 * unreserved character is percent-encoded. Characters that a URI cannot have
 * are the same as their percent-encoding in UTF-8 (RFC 3987, section 3.1).
 * A reserved character is not the same as its encoding: `a%2Fb` is not `a/b`.
 *
 * Dot segments are not removed: a path that has them is not served. They are
 * meant for relative references, which clients resolve before they send a URI.
 */

export interface NormalizedUri {
  /** The normal form by which URIs are compared. */
  readonly text: string
  /** The same, of the same length, with the host in its original case: many servers have an id there. */
  readonly withOriginalHost: string
  /** Whether the path has a segment `.` or `..`. */
  readonly hasDotSegments: boolean
}

export function normalizeUri(uri: string): NormalizedUri {
  const written = normalizePercent(uri)
  const parts = split(written)
  if (parts === undefined)
    return { text: written, withOriginalHost: written, hasDotSegments: false }
  const { scheme, authority, path, rest } = parts
  const begin = `${scheme.toLowerCase()}:`
  const end = `${path}${rest}`
  const dotted = /^\/(?:.*\/)?\.\.?(?:\/|$)/s.test(path)
  if (authority === undefined)
    return { text: begin + end, withOriginalHost: begin + end, hasDotSegments: dotted }
  return {
    text: `${begin}//${lowerHost(authority)}${end}`,
    withOriginalHost: `${begin}//${authority}${end}`,
    hasDotSegments: dotted,
  }
}

/**
 * A wider form, equal for all URIs that a handler might take for the same resource: decoded, without anything redundant.
 * Nothing is served by this form; but a caller that may not use a resource may not read a URI of the same form through
 * another definition either.
 */
export function looseKey({ text }: NormalizedUri): string {
  const { scheme, authority, path, rest } = split(decodeAll(asUrl(text)).replaceAll('\\', '/')) ?? {
    scheme: '',
    path: text,
    rest: '',
  }
  const segments: string[] = []
  for (const segment of path.split('/')) {
    if (segment === '..') segments.pop()
    else if (segment !== '.' && segment !== '') segments.push(segment)
  }
  const host = authority === undefined ? '' : `//${trimAuthority(lowerHost(authority))}`
  const root = segments.length > 0 && (authority !== undefined || path.startsWith('/')) ? '/' : ''
  return encodeURI(
    `${scheme}:${host}${root}${segments.join('/')}${rest.startsWith('?') ? foldQuery(rest) : rest}`,
  )
}

/** The order of parameters does not matter, nor whether an empty one has a `=`. */
function foldQuery(query: string): string {
  const parameters = query.slice(1).split('&')
  return `?${parameters
    .map((each) => (each.endsWith('=') ? each.slice(0, -1) : each))
    .toSorted()
    .join('&')}`
}

function split(
  uri: string,
): { scheme: string; authority: string | undefined; path: string; rest: string } | undefined {
  const [, scheme, authority, path = '', rest = ''] =
    /^([A-Za-z][A-Za-z0-9+.-]*):(?:\/\/([^/?#]*))?([^?#]*)(.*)$/s.exec(uri) ?? []
  return scheme === undefined ? undefined : { scheme, authority, path, rest }
}

function normalizePercent(text: string): string {
  return text.toWellFormed().replaceAll(/%[0-9A-Fa-f]{2}|[^!-~]+|["<>\\^`{|}]/g, (found) => {
    if (!found.startsWith('%')) return encodeURIComponent(found)
    const character = String.fromCharCode(Number.parseInt(found.slice(1), 16))
    return /[A-Za-z0-9._~-]/.test(character) ? character : found.toUpperCase()
  })
}

function lowerHost(authority: string): string {
  const host = authority.lastIndexOf('@') + 1
  const lower = (found: string) => (found.startsWith('%') ? found : found.toLowerCase())
  return authority.slice(0, host) + authority.slice(host).replaceAll(/%[0-9A-F]{2}|[A-Z]+/g, lower)
}

/** Without the final dot of a host name, and without the colon of an empty port. */
function trimAuthority(authority: string): string {
  let end = authority.length
  while (authority[end - 1] === '.' || authority[end - 1] === ':') end--
  return authority.slice(0, end)
}

/** Where the platform knows the scheme: without the default port, userinfo and fragment, and with addresses in one form. */
function asUrl(text: string): string {
  const url = /^(?:https?|wss?|ftp|file):/.test(text) ? parseUrl(text) : undefined
  if (url === undefined) return text
  url.username = ''
  url.password = ''
  url.hash = ''
  return url.href
}

/** Decodes percent-encoding once; what is not UTF-8 stays. */
function decodeAll(text: string): string {
  const decoded = text.replaceAll(/(?:%[0-9A-Fa-f]{2})+/g, (run) => {
    try {
      return decodeURIComponent(run)
    } catch {
      return run
    }
  })
  return decoded.toWellFormed().normalize('NFC')
}
