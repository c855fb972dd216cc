import type { HttpRequest, Principal } from '../jsonrpc/channel.js'
import { isObject } from '../jsonrpc/message.js'

/** How a server knows its callers: by bearer tokens, which it verifies and never makes. */
export interface Authorization {
  /**
   * Whose token it is, or undefined where it is not good. Throws where that cannot be found out now. `request` has the
   * headers of the HTTP request, without credentials.
   */
  verify(
    token: string,
    request: HttpRequest,
  ): Principal | undefined | Promise<Principal | undefined>
  /** Throws where it cannot work at all; called before the server listens. */
  prepare?(): Promise<void>
  /** The scopes that every request needs. */
  readonly scopes?: readonly string[]
  /** The URL of the endpoint, as its clients know it: what tokens are made for. */
  readonly resource?: string
  /** Where clients get tokens. */
  readonly authorizationServers?: readonly string[]
  /** The scopes that clients are told of; by default those that every request needs. */
  readonly scopesSupported?: readonly string[]
}

/** Throws where something else was given in place of an authorization. */
export function checkAuthorization(auth: unknown): asserts auth is Authorization | undefined {
  if (auth === undefined) return
  const expected =
    '"auth" must be what tokens(…) or oauth(…) makes, or an object of your own with a function "verify"'
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
      '"auth.scopes" must be an array of strings: the scopes that every request needs',
    )
}
