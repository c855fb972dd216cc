import {
  type Client,
  allowInsecureRequests,
  customFetch,
  genericTokenEndpointRequest,
  isDPoPNonceError,
  processGenericTokenEndpointResponse,
  processRevocationResponse,
  revocationRequest,
} from 'oauth4webapi'
import { isObject } from '../../jsonrpc/message.js'
import { scopesOf } from './challenge.js'
import {
  type ClientKey,
  authenticationOf,
  basicCredentials,
  formEncoded,
} from './client-authentication.js'
import type { ServerMetadata } from './discovery.js'
import type { DpopKey } from './dpop.js'
import { AuthorizationError, describeError } from './errors.js'
import { type OAuthHttp, UNREACHABLE } from './http.js'
import type { Authorization, RegisteredClient } from './store.js'

/** What a request to a token endpoint needs. */
export interface TokenContext {
  readonly http: OAuthHttp
  readonly metadata: Pick<ServerMetadata, 'issuer' | 'token_endpoint' | 'revocation_endpoint'>
  readonly client: RegisteredClient
  readonly key?: ClientKey | undefined
  readonly dpop?: DpopKey | undefined
}

export interface Tokens {
  readonly accessToken: string
  readonly refreshToken?: string
  readonly expires?: number
  readonly renewal?: number
  /** Undefined if the response has none: those that were requested. */
  readonly scopes: readonly string[] | undefined
  readonly bound: boolean
}

/** Maximum characters of a token, which is sent in a header. */
const MAX_TOKEN = 65_536
/** Maximum milliseconds before its end that a token is renewed. */
const EARLY = 30_000
/** Maximum seconds that are believed of `expires_in`: a year. */
const MAX_LIFETIME = 366 * 24 * 3600

/** Requests tokens with a grant. The errors of the library are replaced: they contain the response, with its tokens. */
export async function requestTokens(
  context: TokenContext,
  grantType: string,
  parameters: Readonly<Record<string, string>>,
  { exchange = false }: { exchange?: boolean } = {},
): Promise<Tokens> {
  const { metadata, client, dpop } = context
  const server = { issuer: metadata.issuer, token_endpoint: metadata.token_endpoint }
  const oauthClient: Client = { client_id: client.id }
  const authentication = await authenticationOf(client, context.key)
  const options = {
    [allowInsecureRequests]: true, // checked by OAuthHttp: only on localhost
    [customFetch]: tokenFetch(context),
    ...(dpop === undefined ? {} : { DPoP: dpop.handle }),
  }
  for (let attempts = 1; ; attempts++) {
    try {
      const response = await genericTokenEndpointRequest(
        server,
        oauthClient,
        authentication,
        grantType,
        { ...parameters },
        options,
      )
      const answer = await processGenericTokenEndpointResponse(
        server,
        oauthClient,
        response,
        // The "token" of an exchange may be an assertion, which has no type.
        exchange ? { recognizedTokenTypes: { n_a: () => {} } } : {},
      )
      return tokensOf(answer, dpop)
    } catch (error) {
      // The library has remembered the nonce.
      if (dpop !== undefined && attempts === 1 && isDPoPNonceError(error)) continue
      throw converted(error)
    }
  }
}

type TokenAnswer = Awaited<ReturnType<typeof processGenericTokenEndpointResponse>>

function tokensOf(answer: TokenAnswer, dpop: DpopKey | undefined): Tokens {
  const { access_token: accessToken, refresh_token: refreshToken, expires_in: lifetime } = answer
  if (accessToken.length > MAX_TOKEN || !/^[!-~]+$/.test(accessToken))
    throw invalid('an access token that cannot be sent in a header')
  const bound = answer.token_type === 'dpop'
  if (bound && dpop === undefined) throw invalid('a DPoP token, which was not requested')
  return {
    accessToken,
    ...(refreshToken === undefined || refreshToken === '' ? {} : { refreshToken }),
    ...timesOf(lifetime),
    scopes: answer.scope === undefined ? undefined : scopesOf(answer.scope),
    bound,
  }
}

/** A tenth of its lifetime before its end, but at most half a minute, a token is renewed. */
function timesOf(lifetime: number | undefined): { expires?: number; renewal?: number } {
  if (lifetime === undefined) return {}
  const milliseconds = Math.min(lifetime, MAX_LIFETIME) * 1000
  const expires = Date.now() + milliseconds
  return { expires, renewal: expires - Math.min(EARLY, milliseconds / 10) }
}

function invalid(what: string): AuthorizationError {
  return new AuthorizationError('TOKEN_REQUEST_FAILED', `The token endpoint returned ${what}`)
}

function converted(error: unknown): AuthorizationError {
  if (error instanceof AuthorizationError) return error
  // Messages of the library name members, never values.
  const message = error instanceof Error ? error.message : 'unknown error'
  return new AuthorizationError(
    'TOKEN_REQUEST_FAILED',
    `The response of the token endpoint cannot be used: ${message}`,
  )
}

/** Reports errors of the token endpoint; a DPoP nonce error is left to the library, which remembers the nonce. */
function tokenFetch({ http, dpop, client }: TokenContext) {
  return async (
    url: string,
    {
      body,
      headers,
      method,
    }: { body: URLSearchParams; headers: Record<string, string>; method: string },
  ): Promise<Response> => {
    const response = await http.fetch(url, { body, headers, method }, 'The token endpoint')
    const answer = await objectOf(response)
    if (response.status !== 200) {
      const nonce = dpop !== undefined && answer?.['error'] === 'use_dpop_nonce'
      if (!nonce) throw refused(response.status, answer, secretsOf(body, client))
      return new Response(JSON.stringify(answer), response)
    }
    if (answer === undefined) throw invalid('a response that is not a JSON object')
    // ID tokens are not used; they are removed so that the library does not validate them.
    const { id_token: _, ...used } = answer
    const json = new Headers(response.headers)
    json.set('content-type', 'application/json')
    return new Response(JSON.stringify(withoutNulls(used)), { status: 200, headers: json })
  }
}

/** Some servers write members without a value as null. */
function withoutNulls(answer: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(answer).filter(([, value]) => value !== null))
}

async function objectOf(
  response: Response,
): Promise<Readonly<Record<string, unknown>> | undefined> {
  try {
    const value: unknown = await response.json()
    return isObject(value) ? value : undefined
  } catch {
    return undefined
  }
}

function refused(
  status: number,
  answer: Readonly<Record<string, unknown>> | undefined,
  secrets: readonly string[],
): AuthorizationError {
  const { error: given, error_description: description } = answer ?? {}
  const error = typeof given === 'string' ? withoutSecrets(given, secrets) : undefined
  const why = typeof description === 'string' ? withoutSecrets(description, secrets) : undefined
  const said = error === undefined ? '' : `: ${describeError(error, why)}`
  return new AuthorizationError(
    'TOKEN_REQUEST_FAILED',
    `The token endpoint responded with HTTP ${status}${said}`,
    // Whatever the body says, a failure of the server does not mean that a token is invalid.
    status >= 500 || status === 429 ? UNREACHABLE : error,
  )
}

const SECRETS = [
  'code',
  'code_verifier',
  'refresh_token',
  'client_secret',
  'client_assertion',
  'assertion',
  'subject_token',
] as const

/** What was sent, in the body or by Basic authentication. */
function secretsOf(sent: URLSearchParams, { id, secret }: RegisteredClient): string[] {
  const inBody = SECRETS.flatMap((name) => sent.get(name) ?? [])
  const values = secret === undefined ? inBody : [...inBody, basicCredentials(id, secret), secret]
  return values.flatMap((value) => (value === '' ? [] : [value, formEncoded(value)]))
}

/** A server may repeat what it was sent. */
function withoutSecrets(text: string, secrets: readonly string[]): string {
  return secrets.reduce((left, secret) => left.replaceAll(secret, '[secret]'), text)
}

/** Revokes a token (RFC 7009). */
export async function revoke(
  context: TokenContext,
  { refreshToken, accessToken }: Authorization,
): Promise<void> {
  const { http, metadata, client, key } = context
  const { issuer, revocation_endpoint: endpoint } = metadata
  if (endpoint === undefined) return
  try {
    const response = await revocationRequest(
      { issuer, revocation_endpoint: endpoint },
      { client_id: client.id },
      await authenticationOf(client, key),
      refreshToken ?? accessToken,
      {
        [allowInsecureRequests]: true, // checked by OAuthHttp: only on localhost
        [customFetch]: (url, { body, headers, method }) =>
          http.fetch(url, { body, headers, method }, 'The revocation endpoint'),
      },
    )
    await processRevocationResponse(response)
  } catch (error) {
    if (error instanceof AuthorizationError) throw error
    throw new AuthorizationError('TOKEN_REQUEST_FAILED', 'The token could not be revoked')
  }
}
