import {
  AuthorizationResponseError,
  calculatePKCECodeChallenge,
  generateRandomCodeVerifier,
  generateRandomState,
  validateAuthResponse,
} from 'oauth4webapi'
import { isSecure } from './addresses.js'
import type { Discovered, ServerMetadata } from './discovery.js'
import type { DpopKey } from './dpop.js'
import { AuthorizationError, describeError, shown } from './errors.js'
import type { PendingAuthorization, RegisteredClient } from './store.js'
import { type TokenContext, type Tokens, requestTokens } from './token-endpoint.js'
import { parseUrl } from '../../runtime.js'

/** Milliseconds after which an authorization that was begun cannot be finished. */
const MAX_AGE = 3_600_000

export interface CodeRequest {
  readonly server: string
  readonly discovered: Discovered
  readonly client: RegisteredClient
  readonly redirectUri: string
  readonly scopes: readonly string[]
  readonly dpop: DpopKey | undefined
}

/** Begins an authorization: the URL for the user, and what is needed to finish it. */
export async function beginAuthorization(
  request: CodeRequest,
): Promise<{ url: string; pending: PendingAuthorization }> {
  const { discovered, client, redirectUri, scopes, dpop } = request
  const { metadata, resource } = discovered
  const endpoint = metadata.authorization_endpoint
  if (endpoint === undefined)
    throw new AuthorizationError(
      'DISCOVERY_FAILED',
      `The metadata of ${shown(metadata.issuer)} has no authorization_endpoint`,
    )
  const [state, verifier] = [generateRandomState(), generateRandomCodeVerifier()]
  const url = new URL(endpoint)
  const parameters: Record<string, string> = {
    response_type: 'code',
    client_id: client.id,
    redirect_uri: redirectUri,
    state,
    code_challenge: await calculatePKCECodeChallenge(verifier),
    code_challenge_method: 'S256',
    resource,
  }
  if (scopes.length > 0) parameters['scope'] = scopes.join(' ')
  // OpenID Connect Core, section 11: without consent, there is no refresh token.
  if (scopes.includes('offline_access')) parameters['prompt'] = 'consent'
  if (dpop !== undefined) parameters['dpop_jkt'] = await dpop.handle.calculateThumbprint()
  for (const [name, value] of Object.entries(parameters)) url.searchParams.set(name, value)
  const pending: PendingAuthorization = {
    server: request.server,
    state,
    verifier,
    redirectUri,
    resource,
    client,
    metadata,
    scopes,
    ...(dpop === undefined ? {} : { dpopKey: dpop.jwk }),
    begun: Date.now(),
  }
  return { url: url.href, pending }
}

/** Checks PKCE before anything is registered. */
export function checkPkce(metadata: ServerMetadata, assumed: boolean): void {
  const methods = metadata.code_challenge_methods_supported
  if (methods === undefined && assumed) return
  if (methods?.includes('S256') === true) return
  const what =
    methods === undefined
      ? 'does not say that it supports PKCE (code_challenge_methods_supported is absent). If it does, set "assumePkce: true"'
      : 'does not support PKCE with S256, which is required'
  throw new AuthorizationError('DISCOVERY_FAILED', `${shown(metadata.issuer)} ${what}`)
}

/** Refuses redirect URIs that the specification does not allow. */
export function checkRedirectUri(redirectUri: string): string {
  const url = parseUrl(redirectUri)
  if (url !== undefined && isSecure(url) && !redirectUri.includes('#')) return redirectUri
  throw new TypeError(
    `oauth: "redirectUri" must be an https URL, or an http URL on localhost, without a fragment, not ${JSON.stringify(redirectUri)}`,
  )
}

/** The parameters of a callback; the fragment is not used. */
export function callbackOf(callback: string | URL): URL {
  const href = String(callback)
  const url = parseUrl(href)
  if (url !== undefined) return url
  throw new AuthorizationError('AUTHORIZATION_FAILED', 'The callback is not a URL')
}

/** Exchanges the code of a callback. Nothing of the callback is shown or sent before its state and issuer are checked. */
export async function finishAuthorization(
  pending: PendingAuthorization,
  callback: URL,
  context: TokenContext,
): Promise<Tokens> {
  const expected = new URL(pending.redirectUri)
  if (callback.origin !== expected.origin || callback.pathname !== expected.pathname)
    throw new AuthorizationError(
      'AUTHORIZATION_FAILED',
      `The callback is not at the redirect URI ${pending.redirectUri}`,
    )
  if (Date.now() - pending.begun > MAX_AGE)
    throw new AuthorizationError(
      'AUTHORIZATION_FAILED',
      'The authorization was begun more than an hour ago; begin again',
    )
  const code = codeOf(pending, callback)
  return await requestTokens(context, 'authorization_code', {
    code,
    redirect_uri: pending.redirectUri,
    code_verifier: pending.verifier,
    resource: pending.resource,
  })
}

function codeOf({ metadata, client, state }: PendingAuthorization, callback: URL): string {
  const { issuer, authorization_response_iss_parameter_supported: issSupported = false } = metadata
  let parameters: URLSearchParams
  try {
    parameters = validateAuthResponse(
      { issuer, authorization_response_iss_parameter_supported: issSupported },
      { client_id: client.id },
      callback.searchParams,
      state,
    )
  } catch (error) {
    throw invalidCallback(error, callback.searchParams, issuer)
  }
  const [code = '', ...others] = parameters.getAll('code')
  if (others.length > 0)
    throw new AuthorizationError('AUTHORIZATION_FAILED', 'The callback has more than one code')
  if (code !== '') return code
  throw new AuthorizationError(
    'AUTHORIZATION_FAILED',
    'The callback has neither a code nor an error',
  )
}

function invalidCallback(
  error: unknown,
  parameters: URLSearchParams,
  issuer: string,
): AuthorizationError {
  // The library throws this after it has checked the state and the issuer.
  if (error instanceof AuthorizationResponseError) {
    const description = describeError(error.error, parameters.get('error_description') ?? undefined)
    return error.error === 'access_denied'
      ? new AuthorizationError(
          'AUTHORIZATION_DENIED',
          `The user denied access (${description})`,
          error.error,
        )
      : new AuthorizationError(
          'AUTHORIZATION_FAILED',
          `The authorization server ${shown(issuer)} returned ${description}`,
          error.error,
        )
  }
  const why = error instanceof Error ? error.message : 'invalid'
  return new AuthorizationError(
    'AUTHORIZATION_FAILED',
    `The callback is not a response of ${shown(issuer)} to this authorization: ${why}`,
  )
}
