import type { CryptoKey, JWTPayload, JWTVerifyGetKey, JWTVerifyOptions } from 'jose'
import type { Principal } from '../jsonrpc/channel.js'
import { truncateJson } from '../jsonrpc/truncate.js'
import type { TokenVerifier } from './authorization.js'
import { Backoff } from './backoff.js'
import { isLoopback } from './loopback.js'
import { parseUrl } from '../runtime.js'

export interface OAuthOptions {
  /** The URL of the endpoint for its clients. Tokens must have it as their audience. */
  resource: string
  /** The issuer identifier of the authorization server, as in its metadata. */
  issuer: string
  /** The URL of its keys (default: `jwks_uri` of its metadata). */
  jwksUri?: string
  /** The scopes that every request requires. */
  scopes?: readonly string[]
  /** The scopes in the protected resource metadata (default: `scopes`). */
  scopesSupported?: readonly string[]
  /** Scopes that a scope includes. */
  impliedScopes?: Readonly<Record<string, readonly string[]>>
  /** Allowed clock difference in seconds (default 5). */
  clockTolerance?: number
}

/** Asymmetric algorithms only. */
const ALGORITHMS = [
  'RS256',
  'RS384',
  'RS512',
  'PS256',
  'PS384',
  'PS512',
  'ES256',
  'ES384',
  'ES512',
  'EdDSA',
  'Ed25519',
]
/** Longer tokens are invalid. */
const MAX_TOKEN = 16 * 1024
const METADATA_TIMEOUT = 5000
/** Maximum number of keys that are tried for a token without `kid`. */
const MAX_KEYS_TRIED = 16

/**
 * Verifies the tokens of an OAuth 2.1 authorization server: signature, issuer, audience and expiry. Needs the package
 * `jose`.
 * https://modelcontextprotocol.io/specification/2026-07-28/basic/authorization#token-handling
 */
export function oauth(options: OAuthOptions): TokenVerifier {
  const { resource, issuer, scopes = [], scopesSupported = scopes, clockTolerance = 5 } = options
  for (const [name, url] of Object.entries({ resource, issuer })) {
    if (typeof url !== 'string' || parseUrl(url) === undefined)
      throw new TypeError(`oauth: "${name}" must be a URL, not ${JSON.stringify(url)}`)
  }
  checkHttps('issuer', issuer)
  if (options.jwksUri !== undefined) checkHttps('jwksUri', options.jwksUri)
  let keys: Promise<JWTVerifyGetKey> | undefined
  const backoff = new Backoff()
  const getKeys = () => {
    keys ??= keysOf(options, backoff).catch((error: unknown) => {
      keys = undefined
      throw error
    })
    return keys
  }
  return {
    resource,
    authorizationServers: [issuer],
    scopes,
    scopesSupported,
    async prepare() {
      await jose()
    },
    async verify(token) {
      if (token.length > MAX_TOKEN || token.split('.').length !== 3) return undefined
      const { errors } = await jose()
      const key = await getKeys()
      try {
        const checks = {
          issuer,
          audience: resource,
          algorithms: ALGORITHMS,
          requiredClaims: ['exp'],
          clockTolerance,
        }
        const claims = await claimsOf(token, key, checks)
        return principalOf(claims, options, clockTolerance)
      } catch (error) {
        // An invalid token is undefined; keys that could not be fetched are an error.
        const notFetched = [errors.JWKSTimeout.code, errors.JWKSInvalid.code, errors.JOSEError.code]
        if (error instanceof errors.JOSEError && !notFetched.includes(error.code)) return undefined
        throw error
      }
    },
  }
}

/** https://modelcontextprotocol.io/specification/2026-07-28/basic/authorization/security-considerations#communication-security */
function checkHttps(name: string, url: string): void {
  const { protocol, hostname } = parseUrl(url) ?? { protocol: '', hostname: '' }
  if (protocol !== 'https:' && !(protocol === 'http:' && isLoopback(hostname)))
    throw new TypeError(
      `oauth: "${name}" must be an https URL (http only for localhost), not ${JSON.stringify(url)}`,
    )
}

async function jose(): Promise<typeof import('jose')> {
  try {
    return await import('jose')
  } catch (error) {
    throw new Error('oauth() needs the package "jose": run "npm install jose"', { cause: error })
  }
}

async function keysOf(
  { issuer, jwksUri }: OAuthOptions,
  backoff: Backoff,
): Promise<JWTVerifyGetKey> {
  const { createRemoteJWKSet, customFetch } = await jose()
  const uri = jwksUri ?? (await backoff.run(() => jwksUriOf(issuer)))
  const fetchKeys = async (url: string, options: RequestInit) => {
    const response = await fetch(url, options)
    if (response.status !== 200)
      throw new Error(
        `The keys of ${issuer} cannot be fetched: ${url} responds with ${response.status}`,
      )
    // Parsed here, so that invalid JSON counts as a failure.
    return Response.json(await response.json())
  }
  return createRemoteJWKSet(new URL(uri), {
    [customFetch]: (url: string, options: RequestInit) =>
      backoff.run(() => fetchKeys(url, options)),
  })
}

/** The claims of a valid token. Without `kid`, every matching key is tried. */
async function claimsOf(
  token: string,
  key: JWTVerifyGetKey,
  checks: JWTVerifyOptions,
): Promise<JWTPayload> {
  const { jwtVerify, errors } = await jose()
  try {
    return (await jwtVerify(token, key, checks)).payload
  } catch (error) {
    if (!(error instanceof errors.JWKSMultipleMatchingKeys)) throw error
    let tried = 0
    for await (const each of error as AsyncIterable<CryptoKey>) {
      const verified = await jwtVerify(token, each, checks).catch((reason: unknown) => {
        if (!(reason instanceof errors.JWSSignatureVerificationFailed)) throw reason
      })
      if (verified !== undefined) return verified.payload
      if (++tried === MAX_KEYS_TRIED) break
    }
    throw error
  }
}

/** https://modelcontextprotocol.io/specification/2026-07-28/basic/authorization/authorization-server-discovery */
async function jwksUriOf(issuer: string): Promise<string> {
  const { origin, pathname } = new URL(issuer)
  const path = pathname === '/' ? '' : pathname.replace(/\/$/, '')
  const urls = [
    `${origin}/.well-known/oauth-authorization-server${path}`,
    `${origin}/.well-known/openid-configuration${path}`,
    `${origin}${path}/.well-known/openid-configuration`,
  ]
  let cause: unknown
  for (const url of new Set(urls)) {
    const metadata = await metadataAt(url).catch((error: unknown) => void (cause ??= error))
    if (metadata === undefined) continue
    const { issuer: statedIssuer, jwks_uri: found } = metadata
    if (statedIssuer !== issuer)
      throw new Error(
        `The metadata at ${url} has the issuer ${truncateJson(statedIssuer)}, not ${issuer}`,
      )
    if (typeof found !== 'string') continue
    checkHttps('jwks_uri', found)
    return found
  }
  const message = `No metadata of the authorization server ${issuer} with a "jwks_uri" was found; set the option "jwksUri"`
  throw cause === undefined ? new Error(message) : new Error(message, { cause })
}

/** The metadata at a URL; undefined if there is none. Some servers respond to every path with an HTML page or a redirect. */
async function metadataAt(
  url: string,
): Promise<{ issuer?: unknown; jwks_uri?: unknown } | undefined> {
  const response = await fetch(url, {
    redirect: 'error',
    signal: AbortSignal.timeout(METADATA_TIMEOUT),
  })
  if (!response.ok) {
    await response.body?.cancel()
    return undefined
  }
  const metadata: unknown = await response.json()
  return typeof metadata === 'object' && metadata !== null ? metadata : undefined
}

function principalOf(
  claims: JWTPayload,
  { issuer, impliedScopes = {} }: OAuthOptions,
  clockTolerance: number,
): Principal | undefined {
  const { scope, scp, exp } = claims
  const id = identityOf(claims, issuer)
  if (id === undefined) return undefined
  // The standard is a string in `scope`; several authorization servers send `scp`, or an array.
  const granted = new Set([scope, scp].flatMap(scopesOf))
  for (const each of granted)
    for (const more of (Object.hasOwn(impliedScopes, each) ? impliedScopes[each] : undefined) ?? [])
      granted.add(more)
  if (exp === undefined) return { id, scopes: [...granted], claims }
  // By our clock it may have expired within the tolerance.
  const late = exp * 1000 <= Date.now() ? clockTolerance : 0
  return { id, scopes: [...granted], claims, expires: (exp + late) * 1000 }
}

/**
 * A user, or a client that acts on its own behalf: then there is no `sub`, or it is the client's id
 * (https://datatracker.ietf.org/doc/html/rfc9068#section-2.2). Clients may choose their ids, so the two are distinct.
 */
function identityOf({ sub, client_id: client }: JWTPayload, issuer: string): string | undefined {
  const isClient = sub === undefined || sub === client
  const subject = isClient ? client : sub
  if (typeof subject !== 'string' || subject === '') return undefined
  // Unique per issuer, whose URL has no fragment.
  return `${issuer}${isClient ? '#client' : ''} ${subject}`
}

function scopesOf(scope: unknown): string[] {
  if (Array.isArray(scope)) return scope.filter((each) => typeof each === 'string')
  return typeof scope === 'string' ? scope.split(' ').filter(Boolean) : []
}
