import {
  beginAuthorization,
  callbackOf,
  checkPkce,
  checkRedirectUri,
  finishAuthorization,
} from './authorization-code.js'
import type { Discovered } from './discovery.js'
import { AuthorizationError, AuthorizationRequiredError, shown } from './errors.js'
import { type AuthorizationDetails, type HeldTokens, isClientError } from './held-tokens.js'
import type { LoginLimit } from './login-limit.js'
import type { OAuthOptions } from './options.js'
import { clientFor, configuredClient } from './registration.js'
import type { Authorization, PendingAuthorization } from './store.js'

export interface LoginRequest {
  readonly discovered: Discovered
  /** The scopes to request. */
  readonly scopes: readonly string[]
  /** The scopes that tokens of another process must have to be used instead. */
  readonly needed: readonly string[]
  /** What the server has refused. */
  readonly refused: Authorization | undefined
  readonly limit: LoginLimit
}

/** Gets new tokens. Of several processes with one store, one asks the user; the others use its tokens. */
export async function login(
  held: HeldTokens,
  options: OAuthOptions,
  request: LoginRequest,
): Promise<void> {
  const { discovered, needed, refused } = request
  if (options.grant !== undefined) {
    await requestByGrant(held, options, await detailsFor(held, options, discovered, request.scopes))
    return
  }
  await held.records.exclusively(`login ${held.key}`, async () => {
    const stored = await held.records.authorization(held.key)
    const usable =
      stored !== undefined &&
      stored.accessToken !== refused?.accessToken &&
      stored.issuer === discovered.metadata.issuer &&
      needed.every((scope) => stored.requested.includes(scope))
    if (usable) held.adopt(stored)
    else await askUser(held, options, request)
  })
}

/** Requests tokens without a user. */
export async function requestByGrant(
  held: HeldTokens,
  { grant }: OAuthOptions,
  details: AuthorizationDetails,
): Promise<void> {
  if (grant === undefined) return
  const { metadata, resource, requested: scopes } = details
  const context = { ...(await held.tokenContext(details)), metadata, resource, scopes }
  await held.save(await grant.request(context), details, 'authorization')
}

async function detailsFor(
  held: HeldTokens,
  options: OAuthOptions,
  { metadata, resource, dpop }: Discovered,
  requested: readonly string[],
): Promise<AuthorizationDetails> {
  const client = configuredClient({ metadata, options: options.client ?? {} })
  if (client === undefined) throw new TypeError('oauth: "grant" needs "client.id"')
  const key = await held.newKey(dpop)
  const { issuer } = metadata
  const details = { issuer, resource, metadata, client, requested }
  return key === undefined ? details : { ...details, dpopKey: key.jwk }
}

async function askUser(
  held: HeldTokens,
  options: OAuthOptions,
  { discovered, scopes, limit }: LoginRequest,
): Promise<void> {
  const { authorize, redirectUri, signal } = options
  if (redirectUri === undefined)
    throw new AuthorizationRequiredError(
      `The server requires authorization at ${shown(discovered.metadata.issuer)}. Set "redirectUri" and "authorize", or "grant"`,
    )
  if (authorize !== undefined) limit.check()
  const { url, pending } = await begin(held, options, discovered, scopes)
  if (authorize === undefined) {
    await held.records.savePending(pending)
    throw new AuthorizationRequiredError(
      'The server requires authorization. Send the user to the `url` of this error, and pass the callback URL to finish()',
      url,
    )
  }
  let callback: string | URL
  limit.asked()
  try {
    callback = await authorize(url, signal)
  } catch (error) {
    if (error instanceof AuthorizationError) throw error
    const why = error instanceof Error ? error.message : String(error)
    throw new AuthorizationError(
      'AUTHORIZATION_FAILED',
      `The authorization was not completed: ${why}`,
    )
  }
  await finish(held, pending, callbackOf(callback))
}

/** The URL for the user, and what `finish` needs. */
export async function begin(
  held: HeldTokens,
  options: OAuthOptions,
  discovered: Discovered,
  scopes: readonly string[],
): Promise<{ url: string; pending: PendingAuthorization }> {
  const { redirectUri: given, client: clientOptions = {}, assumePkce = false } = options
  const { metadata } = discovered
  const { http, records, key: server } = held
  checkPkce(metadata, assumePkce)
  const registered = await records.registration(metadata.issuer)
  const chosen = typeof given === 'function' ? await given(registered?.redirectUri) : given
  if (chosen === undefined) throw new TypeError('oauth: "redirectUri" is missing')
  const redirectUri = checkRedirectUri(chosen)
  const context = { http, records, metadata, options: clientOptions }
  const client = await clientFor(context, redirectUri)
  const dpop = await held.newKey(discovered.dpop)
  return await beginAuthorization({ server, discovered, client, redirectUri, scopes, dpop })
}

/** Exchanges the code of a callback, and stores the tokens. */
export async function finish(
  held: HeldTokens,
  pending: PendingAuthorization,
  callback: URL,
): Promise<void> {
  const { metadata, resource, client, scopes: requested, dpopKey } = pending
  const { issuer } = metadata
  const common = { issuer, resource, metadata, client, requested }
  const details: AuthorizationDetails = dpopKey === undefined ? common : { ...common, dpopKey }
  try {
    const tokens = await finishAuthorization(pending, callback, await held.tokenContext(details))
    await held.save(tokens, details, 'authorization')
  } catch (error) {
    // The authorization server has forgotten the registration.
    if (isClientError(error)) await held.records.deleteRegistration(issuer)
    throw error
  }
}
