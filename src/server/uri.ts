/*
 * Which URIs name the same resource.
 *
 * Two URIs are the same where their normal forms are (RFC 3986, section 6.2.2):
 * the case of the scheme and of the host does not matter, nor whether an
 * unreserved character is percent-encoded. Characters that a URI cannot have
 * are the same as their percent-encoding in UTF-8 (RFC 3987, section 3.1).
 * A reserved character is not the same as its encoding: `a%2Fb` is not `a/b`.
 *
 * Dot segments are not removed: a path that has them is served by nobody.
 * They are meant for relative references, and URI libraries of clients have
 * resolved them before a request is sent.
 */

export interface NormalizedUri {
  /** What URIs are compared by. */
  readonly text: string
  /** The same, of the same length, with the host in the case in which it was sent: many servers have an id there. */
  readonly cased: string
  /** Whether the path has a segment `.` or `..`. */
  readonly dotted: boolean
}

export function normalizeUri(uri: string): NormalizedUri {
  const written = normalizePercent(uri)
  const parts = split(written)
  if (parts === undefined) return { text: written, cased: written, dotted: false }
  const { scheme, authority, path, rest } = parts
  const begin = `${scheme.toLowerCase()}:`
  const end = `${path}${rest}`
  const dotted = /^\/(?:.*\/)?\.\.?(?:\/|$)/s.test(path)
  if (authority === undefined) return { text: begin + end, cased: begin + end, dotted }
  return {
    text: `${begin}//${lowerHost(authority)}${end}`,
    cased: `${begin}//${authority}${end}`,
    dotted,
  }
}

/**
 * What a handler might take for the same resource although the URI is another one: what is left when everything is
 * decoded and everything superfluous is gone. Nothing is served by this form; but whoever may not use a resource may not
 * use another definition either to get at what has the same form.
 */
export function foldUri({ text }: NormalizedUri): string {
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
  const host = authority === undefined ? '' : `//${withoutEnd(lowerHost(authority))}`
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

/** Without the dot of a fully qualified name, and the colon of an empty port. */
function withoutEnd(authority: string): string {
  let end = authority.length
  while (authority[end - 1] === '.' || authority[end - 1] === ':') end--
  return authority.slice(0, end)
}

/** Where the platform knows the scheme: without the default port, userinfo and fragment, and with addresses in one form. */
function asUrl(text: string): string {
  if (!/^(?:https?|wss?|ftp|file):/.test(text) || !URL.canParse(text)) return text
  const url = new URL(text)
  url.username = ''
  url.password = ''
  url.hash = ''
  return url.href
}

/** Decodes what is percent-encoded, once; what is no UTF-8 stays. */
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
