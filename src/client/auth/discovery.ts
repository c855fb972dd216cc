import { isObject } from '../../jsonrpc/message.js'
import type { ParsedChallenge } from './challenge.js'
import { AuthorizationError, shown } from './errors.js'
import { type OAuthHttp, checkUrl, urlOf } from './http.js'

/** The members of authorization server metadata that are used (RFC 8414, OpenID Connect Discovery). */
export interface ServerMetadata {
  readonly issuer: string
  readonly authorization_endpoint?: string
  readonly token_endpoint: string
  readonly registration_endpoint?: string
  readonly revocation_endpoint?: string
  readonly scopes_supported?: readonly string[]
  readonly code_challenge_methods_supported?: readonly string[]
  readonly token_endpoint_auth_methods_supported?: readonly string[]
  readonly authorization_response_iss_parameter_supported?: boolean
  readonly client_id_metadata_document_supported?: boolean
}

export interface Discovered {
  /** The `resource` parameter, as the server writes it. */
  readonly resource: string
  readonly scopesSupported: readonly string[] | undefined
  /** Whether the server requires tokens that are bound to a key. */
  readonly dpop: boolean
  readonly metadata: ServerMetadata
}

export interface DiscoveryOptions {
  /** The issuer to choose if the server lists several. */
  readonly issuer?: string | undefined
  /** Whether one trailing slash may make the difference between two issuers. */
  readonly issuerTrailingSlash: boolean
}

const RESOURCE = '/.well-known/oauth-protected-resource'
const OAUTH = '/.well-known/oauth-authorization-server'
const OPENID = '/.well-known/openid-configuration'
/** Maximum number of strings of a list in a document. */
const MAX_LIST = 100

/**
 * Finds the authorization server of an MCP server.
 * https://modelcontextprotocol.io/specification/2026-07-28/basic/authorization/authorization-server-discovery
 */
export async function discover(
  http: OAuthHttp,
  server: URL,
  challenge: ParsedChallenge,
  options: DiscoveryOptions,
): Promise<Discovered> {
  checkUrl(server, 'The MCP server')
  const document = await resourceMetadata(http, server, challenge)
  if (document === undefined) return await withoutResourceMetadata(http, server)
  const resource = checkResource(document['resource'], server)
  const issuer = chooseIssuer(strings(document, 'authorization_servers'), options.issuer)
  const { metadata, reasons } = await serverMetadata(http, issuer, (found) =>
    isIssuer(found, issuer, options.issuerTrailingSlash),
  )
  if (metadata === undefined)
    throw new AuthorizationError(
      'DISCOVERY_FAILED',
      `The authorization server ${shown(issuer)} has no metadata: ${reasons.join('; ')}`,
    )
  return {
    resource,
    scopesSupported: strings(document, 'scopes_supported'),
    dpop: challenge.scheme === 'dpop' || document['dpop_bound_access_tokens_required'] === true,
    metadata,
  }
}

/** RFC 9728: from the challenge, else by path, else at the root. Undefined if there is none. */
async function resourceMetadata(
  http: OAuthHttp,
  server: URL,
  { resourceMetadata: given }: ParsedChallenge,
): Promise<Readonly<Record<string, unknown>> | undefined> {
  const urls = [
    given === undefined ? undefined : urlOf(given, 'The resource_metadata of the challenge'),
    server.pathname === '/' ? undefined : new URL(`${RESOURCE}${server.pathname}`, server.origin),
    new URL(RESOURCE, server.origin),
  ]
  const tried = new Set<string>()
  for (const url of urls) {
    if (url === undefined || tried.has(url.href)) continue
    tried.add(url.href)
    const fetched = await http.json(url, 'The protected resource metadata')
    if (fetched.kind === 'json') return objectOf(fetched.value, url)
  }
  return undefined
}

function objectOf(value: unknown, url: URL): Readonly<Record<string, unknown>> {
  if (isObject(value)) return value
  throw new AuthorizationError('DISCOVERY_FAILED', `${shown(url.href)} is not a JSON object`)
}

/** The resource must be the MCP server, or what contains it: otherwise the token would be for somebody else. */
function checkResource(resource: unknown, server: URL): string {
  const url = urlOf(resource, 'The "resource" of the protected resource metadata')
  const base = url.pathname.replace(/\/$/, '')
  const contains =
    server.pathname === url.pathname ||
    server.pathname === base ||
    server.pathname.startsWith(`${base}/`)
  const sameQuery = url.search === '' || url.search === server.search
  if (
    url.origin === server.origin &&
    contains &&
    sameQuery &&
    url.hash === '' &&
    url.username === ''
  )
    return String(resource)
  throw new AuthorizationError(
    'DISCOVERY_FAILED',
    `The protected resource metadata is for ${shown(resource)}, not for ${server.origin}${server.pathname}: a token for another resource is not requested`,
  )
}

function chooseIssuer(
  issuers: readonly string[] | undefined,
  preferred: string | undefined,
): string {
  const [first] = issuers ?? []
  if (first === undefined)
    throw new AuthorizationError(
      'DISCOVERY_FAILED',
      'The protected resource metadata has no "authorization_servers"',
    )
  return preferred !== undefined && issuers?.includes(preferred) === true ? preferred : first
}

/** Where the metadata of an issuer may be, in the order of the specification. */
function metadataUrls(issuer: string): URL[] {
  const { origin, pathname } = urlOf(issuer, 'The issuer')
  const path = pathname.replace(/\/$/, '')
  if (path === '') return [new URL(OAUTH, origin), new URL(OPENID, origin)]
  return [
    new URL(`${OAUTH}${path}`, origin),
    new URL(`${OPENID}${path}`, origin),
    new URL(`${path}${OPENID}`, origin),
  ]
}

/** The metadata of an issuer; if there is none, the reason for each URL. */
async function serverMetadata(
  http: OAuthHttp,
  issuer: string,
  isExpected: (issuer: string) => boolean,
): Promise<{ metadata?: ServerMetadata; reasons: string[] }> {
  const url = urlOf(issuer, 'The issuer')
  checkUrl(url, 'The authorization server')
  const { search, hash } = url
  if (search !== '' || hash !== '')
    throw new AuthorizationError(
      'DISCOVERY_FAILED',
      `The issuer ${shown(issuer)} must not have a query or a fragment`,
    )
  const reasons: string[] = []
  for (const each of metadataUrls(issuer)) {
    const fetched = await http.json(each, 'The authorization server metadata')
    if (fetched.kind === 'missing') {
      reasons.push(fetched.why)
      continue
    }
    const document = objectOf(fetched.value, each)
    const found = document['issuer']
    if (typeof found !== 'string' || !isExpected(found)) throw wrongIssuer(found, issuer)
    return { metadata: await checkMetadata(http, found, document), reasons }
  }
  return { reasons }
}

function isIssuer(found: string, expected: string, allowSlash: boolean): boolean {
  if (found === expected) return true
  return allowSlash && (found === `${expected}/` || `${found}/` === expected)
}

function wrongIssuer(found: unknown, expected: string): AuthorizationError {
  const hint =
    typeof found === 'string' && isIssuer(found, expected, true)
      ? '. If this authorization server is right, set "issuerTrailingSlash: true"'
      : ''
  return new AuthorizationError(
    'DISCOVERY_FAILED',
    `The metadata of the authorization server ${shown(expected)} has another issuer, ${shown(found)}, and is not used${hint}`,
  )
}

const ENDPOINTS = [
  'authorization_endpoint',
  'token_endpoint',
  'registration_endpoint',
  'revocation_endpoint',
] as const

async function checkMetadata(
  http: OAuthHttp,
  issuer: string,
  document: Readonly<Record<string, unknown>>,
): Promise<ServerMetadata> {
  const endpoints: Partial<Record<(typeof ENDPOINTS)[number], string>> = {}
  for (const name of ENDPOINTS) {
    const value = document[name]
    if (value === undefined || value === null) continue
    const what = `The ${name} of ${shown(issuer)}`
    const url = urlOf(value, what)
    await http.check(url, what)
    endpoints[name] = url.href
  }
  const { token_endpoint: tokenEndpoint, ...others } = endpoints
  if (tokenEndpoint === undefined)
    throw new AuthorizationError(
      'DISCOVERY_FAILED',
      `The metadata of ${shown(issuer)} has no token_endpoint`,
    )
  const lists = [
    'scopes_supported',
    'code_challenge_methods_supported',
    'token_endpoint_auth_methods_supported',
  ].flatMap((name) => {
    const list = strings(document, name)
    return list === undefined ? [] : [[name, list] as const]
  })
  const flags = [
    'authorization_response_iss_parameter_supported',
    'client_id_metadata_document_supported',
  ].map((name) => [name, document[name] === true] as const)
  return {
    issuer,
    ...others,
    token_endpoint: tokenEndpoint,
    ...Object.fromEntries<readonly string[] | boolean>([...lists, ...flags]),
  }
}

function strings(
  document: Readonly<Record<string, unknown>>,
  name: string,
): readonly string[] | undefined {
  const value = document[name]
  if (!Array.isArray(value)) return undefined
  return value.filter((item) => typeof item === 'string').slice(0, MAX_LIST)
}

/**
 * In the first revision with authorization, a server is its own authorization server, with metadata at its root or with
 * the default endpoints.
 * https://modelcontextprotocol.io/specification/2025-03-26/basic/authorization#server-metadata-discovery
 */
async function withoutResourceMetadata(http: OAuthHttp, server: URL): Promise<Discovered> {
  const { origin } = server
  // That revision does not say how an issuer is written.
  const { metadata } = await serverMetadata(http, origin, (found) => isIssuer(found, origin, true))
  const defaults: ServerMetadata = {
    issuer: origin,
    authorization_endpoint: `${origin}/authorize`,
    token_endpoint: `${origin}/token`,
    registration_endpoint: `${origin}/register`,
    // PKCE is required of every server of that revision.
    code_challenge_methods_supported: ['S256'],
  }
  const resource = `${origin}${server.pathname === '/' ? '' : server.pathname}`
  return { resource, scopesSupported: undefined, dpop: false, metadata: metadata ?? defaults }
}
