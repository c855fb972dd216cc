import type { Authorization } from '../../auth/authorization.js'
import { type Principal, checkPrincipal } from '../../jsonrpc/channel.js'
import { RpcError } from '../../jsonrpc/errors.js'
import { isObject, isThenable } from '../../jsonrpc/message.js'
import type { LogEntry } from '../../jsonrpc/log-entry.js'
import { INSUFFICIENT_SCOPE, UNAUTHORIZED } from '../../protocol/errors.js'
import type { Authenticator } from './authenticator.js'
import { HttpError, unavailable } from './http-error.js'
import type { HeaderList, HttpContext } from './http-context.js'
import { within } from '../../jsonrpc/deadline.js'

const WELL_KNOWN = '/.well-known/oauth-protected-resource'
/** How long a client waits for its token to be verified. */
const PATIENCE = 10_000
const LATE = `"verify" did not decide within ${PATIENCE} ms`

/**
 * Lets requests in that carry a good bearer token, and tells others where to
 * get one. Tokens are neither logged nor handed on.
 * https://datatracker.ietf.org/doc/html/rfc6750, https://datatracker.ietf.org/doc/html/rfc9728
 */
export class BearerAuthenticator implements Authenticator {
  readonly #authorization: Authorization
  readonly #report: (report: LogEntry) => void
  readonly #documentPath: string | undefined
  readonly #document: string | undefined
  readonly #metadataUrl: string | undefined

  constructor(authorization: Authorization, report: (report: LogEntry) => void) {
    this.#authorization = authorization
    this.#report = report
    const { resource, authorizationServers, scopesSupported, scopes } = authorization
    if (resource === undefined) return
    const { origin, pathname } = new URL(resource)
    this.#documentPath = WELL_KNOWN + (pathname === '/' ? '' : pathname)
    this.#metadataUrl = origin + this.#documentPath
    this.#document = JSON.stringify({
      resource,
      authorization_servers: authorizationServers,
      scopes_supported: listed(scopesSupported) ?? listed(scopes),
      bearer_methods_supported: ['header'],
    })
  }

  /** At the place that belongs to the endpoint's path, and at the root, where some clients look. */
  document(path: string): string | undefined {
    return path === this.#documentPath || path === WELL_KNOWN ? this.#document : undefined
  }

  admit(visit: HttpContext): Principal | HttpError | Promise<Principal | HttpError> {
    const header = visit.header('authorization')
    const [, token] = /^bearer +([A-Za-z0-9._~+/=-]+) *$/i.exec(header ?? '') ?? []
    if (token === undefined)
      return this.#unauthorized(
        header === undefined
          ? undefined
          : 'the header Authorization must be the word Bearer and a token',
      )
    try {
      const found = this.#authorization.verify(token, visit.http)
      if (!isThenable(found)) return this.#judge(found)
      return within(PATIENCE, Promise.resolve(found))
        .then((principal) =>
          principal === 'late' ? this.#unknown(new Error(LATE)) : this.#judge(principal),
        )
        .catch((error: unknown) => this.#unknown(error))
    } catch (error) {
      return this.#unknown(error)
    }
  }

  /** https://modelcontextprotocol.io/specification/2026-07-28/basic/authorization#runtime-insufficient-scope-errors */
  challenge({ code, data }: RpcError): HeaderList {
    if (code !== INSUFFICIENT_SCOPE) return []
    const required: unknown = isObject(data) ? data['requiredScopes'] : undefined
    // A handler may have thrown it, with anything: a header takes only what a scope can be.
    const scopes = Array.isArray(required) && required.every(isScope) ? required : []
    if (scopes.length === 0) return this.#challenge({ error: 'insufficient_scope' })
    // Also those that every request needs: a client may ask for what is named here, and for nothing else.
    const all = new Set([...(this.#authorization.scopes ?? []), ...scopes])
    return this.#challenge({ error: 'insufficient_scope', scope: [...all].join(' ') })
  }

  #judge(principal: Principal | undefined): Principal | HttpError {
    // Also null, or false: not every `verify` is checked by a compiler, and whoever is nobody must not come in.
    if (!principal)
      return this.#unauthorized('the token is not good, not for this server, or expired')
    checkPrincipal('"verify" must give', principal)
    const { scopes = [] } = this.#authorization
    if (scopes.every((scope) => principal.scopes.includes(scope))) return principal
    const error = new RpcError(
      INSUFFICIENT_SCOPE,
      `Insufficient scope: this server needs a token with ${scopes.join(' ')}`,
      {
        requiredScopes: scopes,
      },
    )
    return new HttpError(403, error, this.challenge(error))
  }

  #unauthorized(problem: string | undefined): HttpError {
    const { scopes } = this.#authorization
    const challenge = this.#challenge({
      ...(problem === undefined ? {} : { error: 'invalid_token', error_description: problem }),
      ...(listed(scopes) === undefined ? {} : { scope: (scopes ?? []).join(' ') }),
    })
    return new HttpError(
      401,
      new RpcError(UNAUTHORIZED, `Unauthorized: ${problem ?? 'send a bearer token'}`),
      challenge,
    )
  }

  #unknown(error: unknown): HttpError {
    this.#report({ level: 'error', message: 'A token could not be verified', error })
    return unavailable('tokens cannot be verified just now', [])
  }

  #challenge(parameters: Readonly<Record<string, string>>): HeaderList {
    const all =
      this.#metadataUrl === undefined
        ? parameters
        : { ...parameters, resource_metadata: this.#metadataUrl }
    const written = Object.entries(all).map(([name, value]) => `${name}="${value}"`)
    return ['WWW-Authenticate', written.length === 0 ? 'Bearer' : `Bearer ${written.join(', ')}`]
  }
}

/** https://datatracker.ietf.org/doc/html/rfc6749#section-3.3 */
function isScope(value: unknown): value is string {
  return typeof value === 'string' && /^[\x21\x23-\x5b\x5d-\x7e]+$/.test(value)
}

function listed(scopes: readonly string[] | undefined): readonly string[] | undefined {
  return scopes === undefined || scopes.length === 0 ? undefined : scopes
}
