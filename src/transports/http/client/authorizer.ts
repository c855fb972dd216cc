import type { SendRequest } from './http-request.js'

/** A response that asks for authorization: 401, or 403 with a challenge. */
interface Challenge {
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
  headers(request: {
    readonly method: string
    readonly url: URL
  }): Promise<Readonly<Record<string, string>>>
  /** True where the request should be sent again, with new headers. Rejects where it cannot be authorized. */
  challenged(challenge: Challenge, signal: AbortSignal): Promise<boolean>
}

/** How often one request may be challenged: a new token, then more scopes for it. */
const MAX_CHALLENGES = 3

/** Adds what requests are authorized with; one that is challenged is sent again if the authorizer says so. */
export function withAuthorization(send: SendRequest, authorizer: Authorizer): SendRequest {
  return async (request) => {
    const { method, url, signal } = request
    for (let challenges = 0; ; challenges++) {
      const authorization = await authorizer.headers({ method, url })
      const response = await send({ ...request, headers: { ...request.headers, ...authorization } })
      const { status } = response
      const header = response.header('www-authenticate')
      const challenged = status === 401 || (status === 403 && header !== undefined)
      if (!challenged || challenges >= MAX_CHALLENGES) return response
      const challenge = { status, url, header, nonce: response.header('dpop-nonce') }
      if (!(await authorizer.challenged(challenge, signal))) return response
      response.cancel()
    }
  }
}
