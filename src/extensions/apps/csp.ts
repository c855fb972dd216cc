import { isObject } from '../../jsonrpc/message.js'
import { truncateJson } from '../../jsonrpc/truncate.js'
import { namesOf, nearest } from '../../schema/names.js'
import { parseUrl } from '../../runtime.js'

/** The origins that a page may use; without them it can use none. */
export interface AppCsp {
  /** For `fetch`, XMLHttpRequest and WebSocket. */
  connectDomains?: readonly string[]
  /** For scripts, styles, images, fonts and media; `https://*.example.com` are all subdomains. */
  resourceDomains?: readonly string[]
  /** For frames within the page. */
  frameDomains?: readonly string[]
  /** For the `<base>` of the page. */
  baseUriDomains?: readonly string[]
}

export type AppPermission = 'camera' | 'microphone' | 'geolocation' | 'clipboardWrite'

const LISTS = namesOf<AppCsp>()('connectDomains resourceDomains frameDomains baseUriDomains')
const PERMISSIONS: readonly AppPermission[] = [
  'camera',
  'microphone',
  'geolocation',
  'clipboardWrite',
]
const SCHEMES = ['https:', 'http:']
const CONNECT_SCHEMES = [...SCHEMES, 'wss:', 'ws:']

/** What is wrong with a `csp`. Hosts put its origins into a header. */
export function cspProblem(csp: unknown): string | undefined {
  const names = LISTS.split(' ')
  if (!isObject(csp)) return `must be an object of ${names.join(', ')}`
  for (const [name, origins] of Object.entries(csp)) {
    if (!names.includes(name)) return `has ${unknownName(name, names)}`
    if (origins === undefined) continue
    if (!Array.isArray(origins)) return `has "${name}", which must be an array of origins`
    const schemes = name === 'connectDomains' ? CONNECT_SCHEMES : SCHEMES
    for (const origin of origins) {
      const problem = originProblem(origin, schemes)
      if (problem !== undefined) return `has ${truncateJson(origin)} in "${name}", which ${problem}`
    }
  }
  return undefined
}

/** What is wrong with an origin such as `https://api.example.com`, `https://*.example.com` or `http://localhost:3000`. */
function originProblem(origin: unknown, schemes: readonly string[]): string | undefined {
  const expected = `must be an origin such as ${schemes === SCHEMES ? '' : 'wss://live.example.com or '}https://api.example.com`
  if (typeof origin !== 'string') return expected
  const wildcard = origin.includes('://*.')
  const plain = wildcard ? origin.replace('://*.', '://any.') : origin
  const url = parseUrl(plain)
  // Everything that could end a directive or widen it: spaces, semicolons, quotes, other wildcards.
  if (url === undefined || !schemes.includes(url.protocol) || !/^[\w:/.[\]-]+$/.test(url.origin))
    return expected
  if (url.origin === plain) return undefined
  const meant = wildcard ? url.origin.replace('://any.', '://*.') : url.origin
  return `is not an origin: write ${JSON.stringify(meant)}`
}

/** What is wrong with `permissions`. */
export function permissionsProblem(permissions: unknown): string | undefined {
  if (!Array.isArray(permissions)) return `must be an array of ${PERMISSIONS.join(', ')}`
  for (const name of permissions as unknown[])
    if (!PERMISSIONS.some((known) => known === name))
      return `has ${unknownName(String(name), PERMISSIONS)}`
  return undefined
}

/** An unknown name, and what it should be. */
export function unknownName(name: string, known: readonly string[]): string {
  return `the unknown name ${truncateJson(name)}; use ${nearest(name, known) ?? known.join(', ')}`
}
