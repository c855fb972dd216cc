import { Secrets } from '../../auth/secrets.js'
import type { Authorizer } from '../../transports/http/client/authorizer.js'
import { callbackOf } from './authorization-code.js'
import { type ParsedChallenge, parseChallenge } from './challenge.js'
import { type Discovered, discover } from './discovery.js'
import { AuthorizationError, shown } from './errors.js'
import { HeldTokens, isDue, isExpired, isTemporary } from './held-tokens.js'
import { checkUrl } from './http.js'
import { begin, finish, login, requestByGrant } from './login.js'
import { LoginLimit } from './login-limit.js'
import { type OAuthOptions, checkOptions } from './options.js'
import { initialScopes, union } from './scopes.js'
import { SingleFlight } from './single-flight.js'
import { type Authorization, Records, memoryTokenStore } from './store.js'
import { revoke } from './token-endpoint.js'

/** The authorization of requests to one MCP server: for `http(url, { authorizer })`. */
export interface OAuth extends Authorizer {
  /** Begins an authorization without a request: returns the URL for the user. */
  begin(server: string | URL): Promise<string>
  /** Finishes an authorization with the URL that the browser was redirected to, also after a page was reloaded. */
  finish(callback: string | URL): Promise<void>
  /** Forgets the tokens and the registration, and revokes the tokens if the authorization server can. */
  logout(server: string | URL): Promise<void>
}

/** Gets and renews tokens by OAuth, as MCP specifies it. */
export function oauth(options: OAuthOptions = {}): OAuth {
  checkOptions(options)
  return new OAuthAuthorizer(options)
}

class OAuthAuthorizer implements OAuth {
  readonly #options: OAuthOptions
  readonly #records: Records
  readonly #flight = new SingleFlight<void>()
  readonly #limit = new LoginLimit()
  /** What no error may repeat. */
  readonly #secrets = new Secrets()
  /** By the name of the server in the store. */
  readonly #servers = new Map<string, HeldTokens>()
  /** The server whose requests are authorized. */
  #bound: HeldTokens | undefined

  constructor(options: OAuthOptions) {
    this.#options = options
    this.#secrets.keep(options.client?.secret)
    this.#records = new Records(options.store ?? memoryTokenStore())
  }

  async headers({
    method,
    url,
  }: Parameters<Authorizer['headers']>[0]): Promise<Record<string, string>> {
    const held = this.#tokensFor(url)
    await held.load()
    const before = held.current
    if (before !== undefined && isDue(before))
      await this.#withoutSecrets(() => this.#renew(held, before))
    const { current } = held
    if (current === undefined) return {}
    checkUrl(url, 'The MCP server')
    const { accessToken, dpopKey } = current
    if (dpopKey === undefined) return { authorization: `Bearer ${accessToken}` }
    return await (await held.dpop(dpopKey)).headers(method, url, accessToken)
  }

  async challenged(
    asked: Parameters<Authorizer['challenged']>[0],
    signal: AbortSignal,
  ): Promise<boolean> {
    return await this.#withoutSecrets(() => this.#challenged(asked, signal))
  }

  async #challenged(
    { status, url, header, nonce, sent, background, peer }: Parameters<Authorizer['challenged']>[0],
    signal: AbortSignal,
  ): Promise<boolean> {
    const held = this.#tokensFor(url)
    held.http.connectedTo(peer)
    await held.load()
    const challenge = parseChallenge(header)
    const { current } = held
    const key = current?.dpopKey
    if (nonce !== undefined && challenge.error === 'use_dpop_nonce' && key !== undefined) {
      await (await held.dpop(key)).learn(url, nonce)
      return true
    }
    if (status !== 401 && challenge.error !== 'insufficient_scope') return false
    // Another request has got a new token in the meantime.
    if (current !== undefined && !isToken(sent, current)) return true
    if (background && this.#options.grant === undefined)
      return status === 401 && (await this.#refreshed(held, current, signal))
    const authorize = status === 401 ? this.#authorizeAgain : this.#stepUp
    await this.#flight.run(() => authorize.call(this, held, challenge, current), signal)
    return true
  }

  async begin(server: string | URL): Promise<string> {
    return await this.#withoutSecrets(() => this.#begin(new URL(server)))
  }

  async #begin(server: URL): Promise<string> {
    const held = this.#heldFor(server)
    await held.load()
    const discovered = await this.#discover(held, parseChallenge(undefined))
    await this.#checkIssuer(held, discovered)
    const scopes = this.#initialScopes(discovered)
    const { url, pending } = await begin(held, this.#options, discovered, scopes)
    await this.#records.savePending(pending)
    return url
  }

  async finish(callback: string | URL): Promise<void> {
    const url = callbackOf(callback)
    const pending = await this.#records.takePending(url.searchParams.get('state') ?? '')
    if (pending === undefined)
      throw new AuthorizationError(
        'AUTHORIZATION_FAILED',
        'No pending authorization matches this callback: its "state" is unknown or was already used. Begin again',
      )
    // The requests may be those of another server of the same origin.
    const held = this.#heldFor(new URL(pending.server))
    await this.#withoutSecrets(() => finish(held, pending, url))
  }

  async logout(server: string | URL): Promise<void> {
    const held = this.#heldFor(new URL(server))
    await this.#withoutSecrets(async () => {
      const authorization = await held.forget()
      if (authorization !== undefined)
        await revoke(await held.tokenContext(authorization), authorization)
    })
  }

  /** The tokens for a request: those of the first server, as a redirect leads to another URL of its origin. */
  #tokensFor(url: URL): HeldTokens {
    this.#bound ??= this.#heldFor(url)
    this.#checkOrigin(url)
    return this.#bound
  }

  #heldFor(server: URL): HeldTokens {
    this.#checkOrigin(server)
    const held = new HeldTokens(server, this.#records, this.#options, this.#secrets)
    const known = this.#servers.get(held.key) ?? held
    this.#servers.set(held.key, known)
    return known
  }

  /** An authorizer is for one server: its tokens never go to another origin. */
  #checkOrigin(url: URL): void {
    const origin = this.#bound?.server.origin ?? url.origin
    if (url.origin === origin) return
    throw new AuthorizationError(
      'UNSAFE_URL',
      `This authorizer is for ${origin}; ${url.origin} needs another one`,
    )
  }

  /** A server may repeat a token in what an error shows. */
  async #withoutSecrets<Result>(run: () => Promise<Result>): Promise<Result> {
    try {
      return await run()
    } catch (error) {
      this.#secrets.redactError(error)
      throw error
    }
  }

  /** Whether there is another token now. Nobody waits for the request, so the user is not asked. */
  async #refreshed(
    held: HeldTokens,
    refused: Authorization | undefined,
    signal: AbortSignal,
  ): Promise<boolean> {
    const isRefreshable = refused?.refreshToken !== undefined && held.newSource === undefined
    await this.#flight.run(async () => {
      if (isRefreshable) await held.refresh(refused)
    }, signal)
    const { current } = held
    return current !== undefined && current.accessToken !== refused?.accessToken
  }

  /** Before the token expires. */
  async #renew(held: HeldTokens, current: Authorization): Promise<void> {
    const { grant } = this.#options
    if (grant === undefined && current.refreshToken === undefined) return
    try {
      await this.#flight.run(async () => {
        if (grant === undefined) await held.refresh(current)
        else await requestByGrant(held, this.#options, current)
      })
    } catch (error) {
      // The token still works.
      if (!isTemporary(error) || isExpired(current)) throw error
    }
  }

  /** After 401: a refreshed token, else a new authorization. */
  async #authorizeAgain(
    held: HeldTokens,
    challenge: ParsedChallenge,
    refused: Authorization | undefined,
  ): Promise<void> {
    const discovered = await this.#discover(held, challenge)
    const migrated = await this.#checkIssuer(held, discovered)
    if (!migrated && refused !== undefined) {
      const source = held.newSource
      if (source === 'authorization') throw refusedNewToken(refused)
      const refreshable = refused.refreshToken !== undefined && source === undefined
      if (refreshable && (await held.refresh(refused))) return
    }
    const scopes = this.#initialScopes(discovered, challenge)
    const limit = this.#limit
    await login(held, this.#options, { discovered, scopes, needed: [], refused, limit })
  }

  /** After 403: an authorization with more scopes. */
  async #stepUp(
    held: HeldTokens,
    challenge: ParsedChallenge,
    refused: Authorization | undefined,
  ): Promise<void> {
    const discovered = await this.#discover(held, challenge)
    await this.#checkIssuer(held, discovered)
    const before = refused?.requested ?? []
    const scopes = union(before, challenge.scopes ?? [])
    if (refused !== undefined && scopes.length === before.length)
      throw new AuthorizationError(
        'AUTHORIZATION_FAILED',
        `The server requires the scopes ${shown(challenge.scopes?.join(' ') ?? '')}, which were already requested; the token has ${shown(refused.granted.join(' '))}`,
        'insufficient_scope',
      )
    const limit = this.#limit
    await login(held, this.#options, { discovered, scopes, needed: scopes, refused, limit })
  }

  async #discover(held: HeldTokens, challenge: ParsedChallenge): Promise<Discovered> {
    const { client, issuerTrailingSlash = false } = this.#options
    return await discover(held.http, held.server, challenge, {
      issuer: client?.issuer ?? (await held.issuer()),
      issuerTrailingSlash,
    })
  }

  #initialScopes(discovered: Discovered, challenge?: ParsedChallenge): string[] {
    const { scopes, grant } = this.#options
    return initialScopes(discovered, scopes ?? challenge?.scopes, grant === undefined)
  }

  /** Whether the server has moved to another authorization server: credentials of the old one are not sent there. */
  async #checkIssuer(held: HeldTokens, { metadata }: Discovered): Promise<boolean> {
    const old = await held.issuer()
    if (old === undefined || old === metadata.issuer) return false
    const { client } = this.#options
    if (client?.id !== undefined && client.issuer === undefined)
      throw new AuthorizationError(
        'REGISTRATION_FAILED',
        `The server has moved from the authorization server ${shown(old)} to ${shown(metadata.issuer)}. Register the client there, change "client" and log in again`,
      )
    await held.forget()
    return true
  }
}

function isToken(
  { authorization = '' }: Readonly<Record<string, string>>,
  { accessToken }: Authorization,
): boolean {
  return authorization.slice(authorization.indexOf(' ') + 1) === accessToken
}

function refusedNewToken({ resource, issuer }: Authorization): AuthorizationError {
  return new AuthorizationError(
    'AUTHORIZATION_FAILED',
    `The server refuses the token that ${shown(issuer)} has just issued for ${shown(resource)}. The server and its authorization server do not agree`,
    'invalid_token',
  )
}
