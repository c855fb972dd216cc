import type { TokenVerifier } from '../../auth/authorization.js'
import { checkPrincipal, isExpired } from '../../auth/principal.js'
import type { Principal } from '../../jsonrpc/channel.js'
import { RpcError } from '../../jsonrpc/errors.js'
import { isObject, isThenable } from '../../jsonrpc/message.js'
import type { LogEntry } from '../../jsonrpc/log-entry.js'
import { INSUFFICIENT_SCOPE, UNAUTHORIZED } from '../../protocol/errors.js'
import type { Authenticator } from './authenticator.js'
import { HttpErrorResponse, unavailable } from './http-error-response.js'
import type { HeaderList, HttpContext } from './http-context.js'
import { withTimeout } from '../../jsonrpc/deadline.js'

const WELL_KNOWN = '/.well-known/oauth-protected-resource'
/** Milliseconds until a token must be verified. */
const VERIFY_TIMEOUT = 10_000
const INVALID = 'the token is invalid, expired or not for this server'
const LATE = `"verify" did not resolve within ${VERIFY_TIMEOUT} ms`

/**
 * Verifies bearer tokens, and tells clients without one where to get it. Tokens are neither logged nor passed on.
 * https://datatracker.ietf.org/doc/html/rfc6750, https://datatracker.ietf.org/doc/html/rfc9728
 */
export class BearerAuthenticator implements Authenticator {
  readonly #authorization: TokenVerifier
  readonly #report: (report: LogEntry) => void
  readonly #metadataPath: string | undefined
  readonly #metadata: string | undefined
  readonly #metadataUrl: string | undefined

  constructor(authorization: TokenVerifier, report: (report: LogEntry) => void) {
    this.#authorization = authorization
    this.#report = report
    const { resource, authorizationServers, scopesSupported, scopes } = authorization
    if (resource === undefined) return
    const { origin, pathname } = new URL(resource)
    this.#metadataPath = WELL_KNOWN + (pathname === '/' ? '' : pathname)
    this.#metadataUrl = origin + this.#metadataPath
    this.#metadata = JSON.stringify({
      resource,
      authorization_servers: authorizationServers,
      scopes_supported: nonEmpty(scopesSupported) ?? nonEmpty(scopes),
      bearer_methods_supported: ['header'],
    })
  }

  /** Served at the path that belongs to the endpoint, and at the root, where some clients look. */
  metadata(path: string): string | undefined {
    return path === this.#metadataPath || path === WELL_KNOWN ? this.#metadata : undefined
  }

  authenticate(
    context: HttpContext,
  ): Principal | HttpErrorResponse | Promise<Principal | HttpErrorResponse> {
    const header = context.header('authorization')
    const [, token] = /^bearer +([A-Za-z0-9._~+/=-]+) *$/i.exec(header ?? '') ?? []
    if (token === undefined)
      return this.#unauthorized(
        header === undefined
          ? undefined
          : 'the header Authorization must have the form Bearer <token>',
      )
    try {
      const found = this.#authorization.verify(token, context.http)
      if (!isThenable(found)) return this.#check(found)
      return withTimeout(VERIFY_TIMEOUT, Promise.resolve(found))
        .then((principal) =>
          principal === 'late' ? this.#failed(new Error(LATE)) : this.#check(principal),
        )
        .catch((error: unknown) => this.#failed(error))
    } catch (error) {
      return this.#failed(error)
    }
  }

  /** https://modelcontextprotocol.io/specification/2026-07-28/basic/authorization#runtime-insufficient-scope-errors */
  challenge({ code, data }: RpcError): HeaderList {
    if (code !== INSUFFICIENT_SCOPE) return []
    const required: unknown = isObject(data) ? data['requiredScopes'] : undefined
    // A handler may have thrown the error with any data: only valid scopes go into the header.
    const scopes = Array.isArray(required) && required.every(isScope) ? required : []
    if (scopes.length === 0) return this.#challenge({ error: 'insufficient_scope' })
    // With those that every request needs: a client may request exactly the scopes in the challenge.
    const all = new Set([...(this.#authorization.scopes ?? []), ...scopes])
    return this.#challenge({ error: 'insufficient_scope', scope: [...all].join(' ') })
  }

  #check(principal: Principal | undefined): Principal | HttpErrorResponse {
    // Also null or false: `verify` may be written in JavaScript.
    if (!principal) return this.#unauthorized(INVALID)
    checkPrincipal('"verify" must return', principal)
    if (isExpired(principal)) return this.#unauthorized(INVALID)
    const { scopes = [] } = this.#authorization
    if (scopes.every((scope) => principal.scopes.includes(scope))) return principal
    const error = new RpcError(
      INSUFFICIENT_SCOPE,
      `Insufficient scope: this server requires a token with ${scopes.join(' ')}`,
      {
        requiredScopes: scopes,
      },
    )
    return new HttpErrorResponse(403, error, this.challenge(error))
  }

  #unauthorized(problem: string | undefined): HttpErrorResponse {
    const { scopes } = this.#authorization
    const challenge = this.#challenge({
      ...(problem === undefined ? {} : { error: 'invalid_token', error_description: problem }),
      ...(nonEmpty(scopes) === undefined ? {} : { scope: (scopes ?? []).join(' ') }),
    })
    return new HttpErrorResponse(
      401,
      new RpcError(UNAUTHORIZED, `Unauthorized: ${problem ?? 'send a bearer token'}`),
      challenge,
    )
  }

  #failed(error: unknown): HttpErrorResponse {
    if (saysInvalidToken(error)) return this.#unauthorized(INVALID)
    this.#report({ level: 'error', message: 'A token could not be verified', error })
    return unavailable('tokens cannot be verified at the moment', [])
  }

  #challenge(parameters: Readonly<Record<string, string>>): HeaderList {
    const all =
      this.#metadataUrl === undefined
        ? parameters
        : { ...parameters, resource_metadata: this.#metadataUrl }
    const attributes = Object.entries(all).map(([name, value]) => `${name}="${value}"`)
    return [
      'WWW-Authenticate',
      attributes.length === 0 ? 'Bearer' : `Bearer ${attributes.join(', ')}`,
    ]
  }
}

/** Whether a verifier has thrown an OAuth error that says so, such as those of the official SDK. */
function saysInvalidToken(error: unknown): boolean {
  try {
    return isObject(error) && [error['errorCode'], error['code']].includes('invalid_token')
  } catch {
    return false // a getter has thrown
  }
}

/** https://datatracker.ietf.org/doc/html/rfc6749#section-3.3 */
function isScope(value: unknown): value is string {
  return typeof value === 'string' && /^[\x21\x23-\x5b\x5d-\x7e]+$/.test(value)
}

function nonEmpty(scopes: readonly string[] | undefined): readonly string[] | undefined {
  return scopes === undefined || scopes.length === 0 ? undefined : scopes
}
