/*
 * Paths and URIs of skills. A path is that of a file or folder in the namespace of the server's skills, decoded, such as
 * `acme/billing/refunds/SKILL.md`; its URI is `skill://` and the path, with each segment percent-encoded.
 */

const SCHEME = 'skill://'
/** Maximum characters of a URI. */
const MAX_URI = 2048
/** What the first segment may have, since it is the host of the URI. */
const HOST = /^[A-Za-z0-9._~-]+$/

export function uriOf(path: string): string {
  return SCHEME + path.split('/').map(encodeSegment).join('/')
}

/** Percent-encodes everything except the `pchar` of RFC 3986. */
function encodeSegment(segment: string): string {
  return encodeURIComponent(segment).replaceAll(/%(?:24|26|2B|2C|3A|3B|3D|40)/g, decodeURIComponent)
}

/** What is wrong with a path as a URI. */
export function pathProblem(path: string): string | undefined {
  const [first = ''] = path.split('/')
  if (!HOST.test(first))
    return `the folder "${first}" is the first segment of a URI; use letters, digits, "-", ".", "_" and "~" only`
  if (path.includes('\uFFFD') || /\p{Surrogate}/u.test(path)) return 'its name is not valid UTF-8'
  if (path.includes('\\')) return 'its name has a backslash; rename it'
  if (uriOf(path).length > MAX_URI) return `its URI has more than ${MAX_URI} characters`
  return undefined
}

/** The key by which paths are compared: the first segment is the host of the URI, which is case-insensitive. */
export function pathKey(path: string): string {
  const end = path.indexOf('/')
  return end === -1 ? path.toLowerCase() : path.slice(0, end).toLowerCase() + path.slice(end)
}

/** The key of the path that a URI has; undefined if it is not the URI of a file or folder of a skill. */
export function keyOfUri(uri: unknown): string | undefined {
  if (typeof uri !== 'string' || uri.length > 3 * MAX_URI) return undefined
  const [, encoded] = /^skill:\/\/([^?#]+)$/i.exec(uri) ?? []
  if (encoded === undefined) return undefined
  try {
    return pathKey(encoded.split('/').map(decodeSegment).join('/'))
  } catch {
    return undefined
  }
}

function decodeSegment(segment: string): string {
  const decoded = decodeURIComponent(segment)
  if (decoded.includes('/')) throw new URIError('An encoded slash')
  return decoded
}
