import type { HttpRequest, Principal } from '../jsonrpc/channel.js'

/** How a server knows its callers: by bearer tokens, which it verifies and never makes. */
export interface Authorization {
  /**
   * Whose token it is, or undefined where it is not good. Throws where that cannot be found out now. `request` has the
   * headers of the HTTP request, without credentials.
   */
  verify(token: string, request: HttpRequest): Principal | undefined | Promise<Principal | undefined>
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
