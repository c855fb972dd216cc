/** A response that asks for authorization: 401, or 403 with a challenge. */
export interface Challenge {
  readonly status: number
  /** The endpoint that was asked. */
  readonly url: URL
  /** The value of `WWW-Authenticate`. */
  readonly header: string | undefined
  /** The value of `DPoP-Nonce`. */
  readonly nonce: string | undefined
}

/** Gets and renews what requests are authorized with. */
export interface Authorizer {
  /** Headers for a request, such as `Authorization`; asked before each one. */
  headers(request: { readonly method: string; readonly url: URL }): Promise<Readonly<Record<string, string>>>
  /** True where the request should be sent again, with new headers. Rejects where it cannot be authorized. */
  challenged(challenge: Challenge, signal: AbortSignal): Promise<boolean>
}

/** How often one request may be challenged: a new token, then more scopes for it. */
export const MAX_CHALLENGES = 3
