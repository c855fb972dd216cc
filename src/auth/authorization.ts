import type { HttpRequest, Principal } from '../jsonrpc/channel.js'
import { isObject } from '../jsonrpc/message.js'

/** Authenticates callers by bearer tokens, which it verifies and never issues. */
export interface TokenVerifier {
  /**
   * The principal of a token; undefined if the token is invalid. Throws if it cannot be verified at the moment, or an
   * error with the code `invalid_token`.
   * `request` has the headers of the HTTP request, without credentials.
   */
  verify(
    token: string,
    request: HttpRequest,
  ): Principal | undefined | Promise<Principal | undefined>
  /** Called before the server listens; throws if tokens cannot be verified at all. */
  prepare?(): Promise<void>
  /** The scopes that every request requires. */
  readonly scopes?: readonly string[]
  /** The URL of the endpoint for its clients, which is the audience of tokens. */
  readonly resource?: string
  /** The URLs of authorization servers that issue tokens. */
  readonly authorizationServers?: readonly string[]
  /** The scopes in the protected resource metadata (default: `scopes`). */
  readonly scopesSupported?: readonly string[]
}

/** Throws if the option `auth` is not a `TokenVerifier`. */
export function checkAuthorization(auth: unknown): asserts auth is TokenVerifier | undefined {
  if (auth === undefined) return
  const expected =
    '"auth" must be the result of tokens(…) or oauth(…), or an object with a function "verify"'
  if (typeof auth === 'function')
    throw new TypeError(`${expected}, not a function: write auth: { verify: (token) => … }`)
  if (!isObject(auth))
    throw new TypeError(
      `${expected}, not ${auth === null ? 'null' : Array.isArray(auth) ? 'an array' : typeof auth}`,
    )
  const { verify, scopes } = auth
  if (typeof verify !== 'function') throw new TypeError(`${expected}; it has no "verify"`)
  if (
    scopes !== undefined &&
    !(Array.isArray(scopes) && scopes.every((scope) => typeof scope === 'string'))
  )
    throw new TypeError(
      '"auth.scopes" must be an array of strings: the scopes that every request requires',
    )
}
