import type { JWTPayload, JWTVerifyGetKey } from 'jose'
import type { Principal } from '../jsonrpc/channel.js'
import { truncateJson } from '../jsonrpc/truncate.js'
import type { Authorization } from './authorization.js'

export interface OAuthOptions {
  /** The URL of the endpoint, as its clients know it. Tokens must have been made for it. */
  resource: string
  /** The authorization server, as it names itself in its metadata. */
  issuer: string
  /** Where its keys are; by default its metadata says so. */
  jwksUri?: string
  /** The scopes that every request needs. */
  scopes?: readonly string[]
  /** The scopes that clients are told of; by default those that every request needs. */
  scopesSupported?: readonly string[]
  /** What a scope grants besides itself. */
  implied?: Readonly<Record<string, readonly string[]>>
  /** Seconds by which clocks may differ (default 5). */
  clockTolerance?: number
}

/** Only algorithms whose keys can be published. */
const ALGORITHMS = ['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512', 'ES256', 'ES384', 'ES512', 'EdDSA', 'Ed25519']
/** No honest token is longer. */
const MAX_TOKEN = 16 * 1024
const METADATA_TIMEOUT = 5000

/**
 * Tokens of an OAuth 2.1 authorization server: signed, of this issuer, made for
 * this resource, and not expired. Needs the package `jose`.
 * https://modelcontextprotocol.io/specification/2026-07-28/basic/authorization#token-handling
 */
export function oauth(options: OAuthOptions): Authorization {
  const { resource, issuer, scopes = [], scopesSupported = scopes, clockTolerance = 5 } = options
  for (const [name, url] of Object.entries({ resource, issuer })) {
    if (typeof url !== 'string' || !URL.canParse(url)) throw new TypeError(`oauth: "${name}" must be a URL, not ${JSON.stringify(url)}`)
  }
  checkSafe('issuer', issuer)
  if (options.jwksUri !== undefined) checkSafe('jwksUri', options.jwksUri)
  let keys: Promise<JWTVerifyGetKey> | undefined
  const getKeys = () => {
    keys ??= keysOf(options).catch((error: unknown) => {
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
      const { jwtVerify, errors } = await jose()
      const key = await getKeys()
      try {
        const checks = { issuer, audience: resource, algorithms: ALGORITHMS, requiredClaims: ['exp'], clockTolerance }
        const { payload } = await jwtVerify(token, key, checks)
        return principalOf(payload, issuer, options.implied ?? {})
      } catch (error) {
        // Whether the keys could not be fetched, or the token is not good: only the latter is the caller's fault.
        const notFetched = [errors.JWKSTimeout.code, errors.JWKSInvalid.code, errors.JOSEError.code]
        if (error instanceof errors.JOSEError && !notFetched.includes(error.code)) return undefined
        throw error
      }
    },
  }
}

/** https://modelcontextprotocol.io/specification/2026-07-28/basic/authorization/security-considerations#communication-security */
function checkSafe(name: string, url: string): void {
  const { protocol, hostname } = URL.canParse(url) ? new URL(url) : { protocol: '', hostname: '' }
  const local = hostname === 'localhost' || hostname === '[::1]' || /^127(?:\.\d+){3}$/.test(hostname)
  if (protocol !== 'https:' && !(protocol === 'http:' && local))
    throw new TypeError(`oauth: "${name}" must be an https URL (http only on this machine), not ${JSON.stringify(url)}`)
}

async function jose(): Promise<typeof import('jose')> {
  try {
    return await import('jose')
  } catch (error) {
    throw new Error('oauth() needs the package "jose": run "npm install jose"', { cause: error })
  }
}

async function keysOf({ issuer, jwksUri }: OAuthOptions): Promise<JWTVerifyGetKey> {
  const { createRemoteJWKSet } = await jose()
  return createRemoteJWKSet(new URL(jwksUri ?? (await jwksUriOf(issuer))))
}

/** https://modelcontextprotocol.io/specification/2026-07-28/basic/authorization/authorization-server-discovery */
async function jwksUriOf(issuer: string): Promise<string> {
  const { origin, pathname } = new URL(issuer)
  const path = pathname === '/' ? '' : pathname.replace(/\/$/, '')
  const places = [
    `${origin}/.well-known/oauth-authorization-server${path}`,
    `${origin}/.well-known/openid-configuration${path}`,
    `${origin}${path}/.well-known/openid-configuration`,
  ]
  let cause: unknown
  for (const place of new Set(places)) {
    const metadata = await metadataAt(place).catch((error: unknown) => void (cause ??= error))
    if (metadata === undefined) continue
    const { issuer: named, jwks_uri: found } = metadata
    if (named !== issuer) throw new Error(`The metadata at ${place} is that of the issuer ${truncateJson(named)}, not of ${issuer}`)
    if (typeof found !== 'string') continue
    checkSafe('jwks_uri', found)
    return found
  }
  const message = `No metadata of the authorization server ${issuer} with a "jwks_uri" can be read; name it in the option "jwksUri"`
  throw cause === undefined ? new Error(message) : new Error(message, { cause })
}

/** What is there, if anything; some servers have a page for people, or lead to one, wherever they have nothing else. */
async function metadataAt(place: string): Promise<{ issuer?: unknown; jwks_uri?: unknown } | undefined> {
  const response = await fetch(place, { redirect: 'error', signal: AbortSignal.timeout(METADATA_TIMEOUT) })
  if (!response.ok) {
    await response.body?.cancel()
    return undefined
  }
  const metadata: unknown = await response.json()
  return typeof metadata === 'object' && metadata !== null ? metadata : undefined
}

function principalOf(claims: JWTPayload, issuer: string, implied: Readonly<Record<string, readonly string[]>>): Principal | undefined {
  const { sub, client_id: client, scope, scp, exp } = claims
  const subject = sub ?? client
  if (typeof subject !== 'string' || subject === '') return undefined
  // The standard is one text in `scope`; several authorization servers have `scp`, or a list.
  const granted = new Set([scope, scp].flatMap(words))
  for (const each of granted) for (const more of (Object.hasOwn(implied, each) ? implied[each] : undefined) ?? []) granted.add(more)
  // A subject is unique for its issuer only.
  return { id: `${issuer} ${subject}`, scopes: [...granted], claims, ...(exp === undefined ? {} : { expires: exp * 1000 }) }
}

function words(scope: unknown): string[] {
  if (Array.isArray(scope)) return scope.filter((each) => typeof each === 'string')
  return typeof scope === 'string' ? scope.split(' ').filter(Boolean) : []
}
