import { DpopKey } from './dpop.js'
import { AuthorizationError } from './errors.js'
import type { Secrets } from '../../auth/secrets.js'
import { isNode } from '../../runtime.js'
import { type Fetch, OAuthHttp, UNREACHABLE } from './http.js'
import type { OAuthOptions } from './options.js'
import type { Authorization, Jwk, Records } from './store.js'
import { type TokenContext, type Tokens, requestTokens } from './token-endpoint.js'

/** How tokens were got. */
type Source = 'authorization' | 'refresh'

/** What is known of an authorization besides its tokens. */
export type AuthorizationDetails = Pick<
  Authorization,
  'issuer' | 'resource' | 'client' | 'metadata' | 'requested' | 'dpopKey'
>

/** Milliseconds during which a token counts as new: if it is refused, another one will be too. */
const NEW = 60_000

/** The tokens for one MCP server: those of the store, and how to refresh them. */
export class HeldTokens {
  readonly server: URL
  readonly records: Records
  readonly http: OAuthHttp
  readonly #options: OAuthOptions
  readonly #secrets: Secrets
  #current: Authorization | undefined
  #loading: Promise<void> | undefined
  /** Where the current token came from, and when. */
  #source: { readonly kind: Source; readonly at: number } | undefined
  #dpopKey: DpopKey | undefined

  /** `secrets` learns the tokens. */
  constructor(server: URL, records: Records, options: OAuthOptions, secrets: Secrets) {
    this.server = new URL(server)
    this.server.hash = ''
    this.records = records
    this.#options = options
    this.#secrets = secrets
    const { fetch = runtimeFetch, timeout = 30_000, privateAddresses = false, signal } = options
    this.http = new OAuthHttp({ fetch, timeout, privateAddresses, signal }, this.server)
  }

  /** The name of the server in the store. */
  get key(): string {
    return this.server.href
  }

  get current(): Authorization | undefined {
    return this.#current
  }

  /** Where the current token came from, if it is new. */
  get newSource(): Source | undefined {
    const source = this.#source
    return source !== undefined && performance.now() - source.at < NEW ? source.kind : undefined
  }

  /** Reads the store, once. */
  load(): Promise<void> {
    return (this.#loading ??= this.#load().catch((error: unknown) => {
      this.#loading = undefined
      throw error
    }))
  }

  async #load(): Promise<void> {
    const stored = await this.records.authorization(this.key)
    const id = this.#options.client?.id
    // Otherwise another client was configured since.
    if (id === undefined || stored?.client.id === id) this.adopt(stored)
  }

  /** Takes what another process has stored; undefined: there is none. */
  adopt(authorization: Authorization | undefined): void {
    if (authorization?.accessToken !== this.#current?.accessToken) this.#source = undefined
    this.#hold(authorization)
  }

  #hold(authorization: Authorization | undefined): void {
    this.#current = authorization
    this.#secrets.hide(authorization?.accessToken)
    this.#secrets.hide(authorization?.refreshToken)
  }

  async save(tokens: Tokens, details: AuthorizationDetails, kind: Source): Promise<void> {
    const { issuer, resource, client, metadata, requested, dpopKey } = details
    const { accessToken, refreshToken, expires, renewal, scopes = requested, bound } = tokens
    const authorization: Authorization = {
      issuer,
      resource,
      client,
      metadata,
      requested,
      granted: scopes,
      accessToken,
      ...(refreshToken === undefined ? {} : { refreshToken }),
      ...(expires === undefined ? {} : { expires }),
      ...(renewal === undefined ? {} : { renewal }),
      ...(bound && dpopKey !== undefined ? { dpopKey } : {}),
    }
    // First, so that they are not lost if they cannot be stored: the old refresh token may be invalid now.
    this.#hold(authorization)
    this.#source = { kind, at: performance.now() }
    await this.records.saveAuthorization(this.key, authorization)
  }

  /** Resolves to false if the refresh token does not work any more. Runs once at a time, also between processes. */
  async refresh(before: Authorization): Promise<boolean> {
    const { resource } = before
    return await this.records.exclusively(lockOf(before), async () => {
      const latest = await this.records.authorization(this.key)
      if (isOther(latest, before) && !isDue(latest)) {
        this.adopt(latest)
        return true
      }
      const { refreshToken } = latest ?? {}
      if (latest === undefined || refreshToken === undefined) {
        this.adopt(undefined)
        return false
      }
      try {
        const context = await this.tokenContext(latest)
        const parameters = { refresh_token: refreshToken, resource }
        const tokens = await requestTokens(context, 'refresh_token', parameters)
        // Without a new refresh token, the old one stays valid.
        await this.save({ refreshToken, ...tokens }, latest, 'refresh')
        return true
      } catch (error) {
        return await this.#refreshFailed(error, latest)
      }
    })
  }

  async #refreshFailed(error: unknown, before: Authorization): Promise<boolean> {
    // Only an OAuth error says something of the refresh token.
    if (!(error instanceof AuthorizationError) || error.error === undefined || isTemporary(error))
      throw error
    // A process without the lock, or of another version, may have used the refresh token.
    const latest = await this.records.authorization(this.key)
    const replaced = isOther(latest, before)
    if (!replaced) {
      await this.records.deleteTokens(this.key)
      if (isClientError(error)) await this.records.deleteRegistration(before.issuer)
    }
    this.adopt(replaced ? latest : undefined)
    return replaced
  }

  /** Forgets the tokens, and the registration at their issuer. */
  async forget(): Promise<Authorization | undefined> {
    const found = await this.records.authorization(this.key)
    if (found === undefined) return await this.#forget()
    // Otherwise a refresh that is under way would store its tokens afterwards.
    return await this.records.exclusively(lockOf(found), () => this.#forget())
  }

  async #forget(): Promise<Authorization | undefined> {
    const authorization = await this.records.authorization(this.key)
    await this.records.deleteAuthorization(this.key)
    if (authorization !== undefined) await this.records.deleteRegistration(authorization.issuer)
    this.adopt(undefined)
    return authorization
  }

  /** The issuer of the tokens, or the one that the configured client was used at before. */
  async issuer(): Promise<string | undefined> {
    const id = this.#options.client?.id
    if (this.#current !== undefined || id === undefined) return this.#current?.issuer
    return await this.records.issuer(this.key, id)
  }

  async tokenContext({
    metadata,
    client,
    dpopKey,
  }: Pick<AuthorizationDetails, 'metadata' | 'client' | 'dpopKey'>): Promise<TokenContext> {
    const key = this.#options.client?.key
    const dpop = dpopKey === undefined ? undefined : await this.dpop(dpopKey)
    return { http: this.http, metadata, client, key, dpop }
  }

  /** The key for new tokens, if they are to be bound to one. */
  async newKey(required: boolean): Promise<DpopKey | undefined> {
    if (!(this.#options.dpop ?? required)) return undefined
    return (this.#dpopKey ??= await DpopKey.create())
  }

  /** A stored key; it remembers nonces as long as it stays the same. */
  async dpop(jwk: Jwk): Promise<DpopKey> {
    const held = this.#dpopKey
    if (held?.jwk.d === jwk.d && held !== undefined) return held
    return (this.#dpopKey = await DpopKey.import(jwk))
  }
}

/** Node's own modules in Node, whose `fetch` cannot be told the addresses of a host. */
const runtimeFetch: Fetch = async (input, init, addresses) => {
  if (!isNode()) return await globalThis.fetch(input, init)
  const { nodeFetch } = await import('../../transports/http/client/node-fetch.js')
  return await nodeFetch()(input, init, addresses)
}

function lockOf({ issuer, resource, client }: Authorization): string {
  return `refresh ${issuer} ${resource} ${client.id}`
}

/** Whether a token should be renewed. */
export function isDue({ renewal = Infinity }: Authorization): boolean {
  return renewal <= Date.now()
}

export function isExpired({ expires = Infinity }: Authorization): boolean {
  return expires <= Date.now()
}

export function isTemporary(error: unknown): boolean {
  return error instanceof AuthorizationError && error.error === UNREACHABLE
}

/** Whether the authorization server does not know the client, or not any more. */
export function isClientError(error: unknown): boolean {
  return (
    error instanceof AuthorizationError &&
    (error.error === 'invalid_client' || error.error === 'unauthorized_client')
  )
}

function isOther(
  latest: Authorization | undefined,
  before: Authorization,
): latest is Authorization {
  return latest !== undefined && latest.accessToken !== before.accessToken
}
