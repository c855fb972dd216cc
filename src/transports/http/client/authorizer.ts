import { Secrets } from '../../../auth/secrets.js'
import { RequestFailedError } from '../../../jsonrpc/errors.js'
import { untilAborted } from './abort.js'
import type { HttpResponse, SendRequest } from './http-request.js'

/** A 401 response, or a 403 response with a challenge. */
interface Challenge {
  readonly status: number
  /** The URL of the request. */
  readonly url: URL
  /** The value of `WWW-Authenticate`. */
  readonly header: string | undefined
  /** The value of `DPoP-Nonce`. */
  readonly nonce: string | undefined
  /** The headers that the authorizer gave the request. */
  readonly sent: Readonly<Record<string, string>>
  /** Whether nobody waits for the request, such as for a stream of notifications: the user must not be asked. */
  readonly background?: boolean
  /** The address of the server that has responded, if it is known. */
  readonly peer?: string | undefined
}

/** Gets and renews the authorization of requests. */
export interface Authorizer {
  /** Returns headers for a request, such as `Authorization`; called before each one. */
  headers(request: {
    readonly method: string
    readonly url: URL
  }): Promise<Readonly<Record<string, string>>>
  /** Resolves to true if the request should be sent again with new headers. Rejects if it cannot be authorized. */
  challenged(challenge: Challenge, signal: AbortSignal): Promise<boolean>
}

/** Maximum challenges of one request: a new token, then more scopes. */
const MAX_CHALLENGES = 3

/**
 * Adds the authorizer's headers; a challenged request is sent again if the authorizer says so. `secrets` learns what was
 * sent.
 */
export function withAuthorization(
  send: SendRequest,
  authorizer: Authorizer,
  secrets = new Secrets(),
): SendRequest {
  return async (request) => {
    const { method, url, signal } = request
    const ask = async <Answer>(question: () => Promise<Answer>): Promise<Answer> => {
      try {
        return await untilAborted(Promise.resolve(question()), signal)
      } catch (error) {
        throw unauthorized(error)
      }
    }
    for (let challenges = 0; ; challenges++) {
      const authorization = await ask(() => authorizer.headers({ method, url }))
      secrets.add(authorization)
      const response = await send({ ...request, headers: { ...request.headers, ...authorization } })
      const { status } = response
      const header = response.header('www-authenticate')
      const challenged = status === 401 || (status === 403 && header !== undefined)
      if (!challenged || challenges >= MAX_CHALLENGES) return withoutSecrets(response, secrets)
      const nonce = response.header('dpop-nonce')
      const { background } = request
      const { peer } = response
      const challenge = { status, url, header, nonce, sent: authorization, background, peer }
      try {
        if (!(await ask(() => authorizer.challenged(challenge, signal))))
          return withoutSecrets(response, secrets)
      } catch (error) {
        response.cancel()
        throw error
      }
      response.cancel()
    }
  }
}

/** The request was not sent, or was refused. */
function unauthorized(error: unknown): RequestFailedError {
  if (error instanceof RequestFailedError) return error
  const reason = error instanceof Error ? error.message : String(error)
  return new RequestFailedError(
    'AUTHORIZATION_FAILED',
    `The request could not be authorized: ${reason}`,
    { executed: 'no', cause: error },
  )
}

/** Maximum bytes of an error body that are read: more than the transport uses. */
const MAX_ERROR_BODY = 128 * 1024

/** A server may repeat a token in its error, whose text ends up in an error of ours. */
function withoutSecrets(response: HttpResponse, secrets: Secrets): HttpResponse {
  if (response.status < 400) return response
  return {
    status: response.status,
    header: (name) => response.header(name),
    body: replaced(response.body, secrets),
    cancel: () => response.cancel(),
  }
}

async function* replaced(
  body: AsyncIterable<Uint8Array>,
  secrets: Secrets,
): AsyncGenerator<Uint8Array> {
  const decoder = new TextDecoder()
  let text = ''
  let length = 0
  for await (const chunk of body) {
    text += decoder.decode(chunk, { stream: true })
    length += chunk.length
    if (length > MAX_ERROR_BODY) break
  }
  yield new TextEncoder().encode(secrets.redactJson(text))
}
