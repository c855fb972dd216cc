import { isObject } from '../../jsonrpc/message.js'
import type { ServerMetadata } from './discovery.js'

/** A private key as JSON (RFC 7517). */
export interface Jwk {
  kty?: string
  crv?: string
  x?: string
  y?: string
  d?: string
}

/** Keeps registrations and tokens. The values are secret: they contain tokens and client secrets. */
export interface TokenStore {
  get(key: string): Promise<string | undefined> | string | undefined
  set(key: string, value: string): Promise<void> | void
  delete(key: string): Promise<void> | void
  /** Runs one function at a time for a key, also between processes. Without it, each authorizer is on its own. */
  exclusively?<Result>(key: string, run: () => Promise<Result>): Promise<Result>
}

/** A store that ends with the process. */
export function memoryTokenStore(): TokenStore {
  const values = new Map<string, string>()
  const last = new Map<string, Promise<unknown>>()
  return {
    get: (key) => values.get(key),
    set: (key, value) => void values.set(key, value),
    delete: (key) => void values.delete(key),
    exclusively(key, run) {
      const running = (last.get(key) ?? Promise.resolve()).then(run, run)
      last.set(key, running)
      const end = () => last.get(key) === running && last.delete(key)
      running.then(end, end)
      return running
    },
  }
}

export type ClientAuthMethod =
  | 'none'
  | 'client_secret_basic'
  | 'client_secret_post'
  | 'private_key_jwt'

/** A client as an authorization server knows it. */
export interface RegisteredClient {
  readonly id: string
  readonly secret?: string
  readonly method: ClientAuthMethod
}

/** A client that was registered dynamically. */
export interface Registration extends RegisteredClient {
  readonly redirectUri: string
  /** When the secret expires, in milliseconds since 1970. */
  readonly secretExpires?: number
}

/** Tokens with what is needed to refresh, revoke and use them. */
export interface Authorization {
  readonly issuer: string
  readonly resource: string
  readonly client: RegisteredClient
  readonly metadata: ServerMetadata
  readonly accessToken: string
  readonly refreshToken?: string
  /** When the access token expires, in milliseconds since 1970. */
  readonly expires?: number
  /** When to renew it: some time before. */
  readonly renewal?: number
  /** The scopes that were requested, which may be more than were granted. */
  readonly requested: readonly string[]
  /** The scopes that the token has, as the authorization server says. */
  readonly granted: readonly string[]
  /** The private key that the token is bound to. */
  readonly dpopKey?: Jwk
}

/** An authorization that was begun: what `finish` needs, also in another process or after a page was reloaded. */
export interface PendingAuthorization {
  readonly server: string
  readonly state: string
  readonly verifier: string
  readonly redirectUri: string
  readonly resource: string
  readonly client: RegisteredClient
  readonly metadata: ServerMetadata
  readonly scopes: readonly string[]
  readonly dpopKey?: Jwk
  /** When it was begun, in milliseconds since 1970. */
  readonly begun: number
}

/** Which authorization an MCP server uses. */
interface Pointer {
  readonly issuer: string
  readonly resource: string
  readonly clientId: string
}

/** The records of a store. What another program has written may be anything: an invalid record does not exist. */
export class Records {
  readonly #store: TokenStore
  #taking: Promise<unknown> = Promise.resolve()

  constructor(store: TokenStore) {
    this.#store = store
  }

  async exclusively<Result>(key: string, run: () => Promise<Result>): Promise<Result> {
    return this.#store.exclusively === undefined
      ? await run()
      : await this.#store.exclusively(key, run)
  }

  async authorization(server: string): Promise<Authorization | undefined> {
    const pointer = await this.#pointer(server)
    if (pointer === undefined) return undefined
    const found = await this.#read(tokensKey(pointer))
    return isAuthorization(found) ? found : undefined
  }

  async saveAuthorization(server: string, authorization: Authorization): Promise<void> {
    const { issuer, resource, client } = authorization
    const pointer: Pointer = { issuer, resource, clientId: client.id }
    await this.#write(tokensKey(pointer), authorization)
    await this.#write(serverKey(server), pointer)
  }

  async deleteAuthorization(server: string): Promise<void> {
    await this.deleteTokens(server)
    await this.#store.delete(serverKey(server))
  }

  /** Deletes the tokens, but not where they were from. */
  async deleteTokens(server: string): Promise<void> {
    const pointer = await this.#pointer(server)
    if (pointer !== undefined) await this.#store.delete(tokensKey(pointer))
  }

  /** The issuer that a client was used at, also if its tokens are not valid any more. */
  async issuer(server: string, clientId: string): Promise<string | undefined> {
    const pointer = await this.#pointer(server)
    return pointer?.clientId === clientId ? pointer.issuer : undefined
  }

  async registration(issuer: string): Promise<Registration | undefined> {
    const found = await this.#read(`client ${issuer}`)
    return isRegistration(found) ? found : undefined
  }

  async saveRegistration(issuer: string, registration: Registration): Promise<void> {
    await this.#write(`client ${issuer}`, registration)
  }

  async deleteRegistration(issuer: string): Promise<void> {
    await this.#store.delete(`client ${issuer}`)
  }

  /** Saves what was begun; it replaces what was begun before for the same server. */
  async savePending(pending: PendingAuthorization): Promise<void> {
    const key = `pending ${pending.server}`
    const previous = await this.#read(key)
    if (typeof previous === 'string') await this.#store.delete(pendingKey(previous))
    await this.#write(pendingKey(pending.state), pending)
    await this.#write(key, pending.state)
  }

  /** Returns what was begun with a state, once: a page may be loaded twice at the same time. */
  takePending(state: string): Promise<PendingAuthorization | undefined> {
    const take = () => this.exclusively(pendingKey(state), () => this.#takePending(state))
    const taken = this.#taking.then(take, take)
    this.#taking = taken
    return taken
  }

  async #takePending(state: string): Promise<PendingAuthorization | undefined> {
    const found = await this.#read(pendingKey(state))
    if (!isPending(found)) return undefined
    await this.#store.delete(pendingKey(state))
    await this.#store.delete(`pending ${found.server}`)
    return found
  }

  async #pointer(server: string): Promise<Pointer | undefined> {
    const found = await this.#read(serverKey(server))
    return hasStrings<Pointer>(found, ['issuer', 'resource', 'clientId']) ? found : undefined
  }

  async #read(key: string): Promise<unknown> {
    const text = await this.#store.get(key)
    if (typeof text !== 'string') return undefined
    try {
      return JSON.parse(text) as unknown
    } catch {
      return undefined
    }
  }

  async #write(key: string, value: unknown): Promise<void> {
    await this.#store.set(key, JSON.stringify(value))
  }
}

const serverKey = (server: string) => `server ${server}`
const pendingKey = (state: string) => `pending state ${state}`
const tokensKey = ({ issuer, resource, clientId }: Pointer) =>
  `tokens ${issuer} ${resource} ${clientId}`

function hasStrings<Value>(
  value: unknown,
  names: readonly (keyof Value & string)[],
): value is Value {
  return isObject(value) && names.every((name) => typeof value[name] === 'string')
}

function isClient(value: unknown): value is RegisteredClient {
  return hasStrings<RegisteredClient>(value, ['id', 'method'])
}

function isMetadata(value: unknown): boolean {
  return hasStrings<ServerMetadata>(value, ['issuer', 'token_endpoint'])
}

function isStrings(value: unknown): boolean {
  return Array.isArray(value) && value.every((item) => typeof item === 'string')
}

function isAuthorization(value: unknown): value is Authorization {
  return (
    hasStrings<Authorization>(value, ['issuer', 'resource', 'accessToken']) &&
    isClient(value.client) &&
    isMetadata(value.metadata) &&
    isStrings(value.requested) &&
    isStrings(value.granted)
  )
}

function isRegistration(value: unknown): value is Registration {
  return isClient(value) && hasStrings<Registration>(value, ['redirectUri'])
}

function isPending(value: unknown): value is PendingAuthorization {
  return (
    hasStrings<PendingAuthorization>(value, [
      'server',
      'state',
      'verifier',
      'redirectUri',
      'resource',
    ]) &&
    isClient(value.client) &&
    isMetadata(value.metadata) &&
    isStrings(value.scopes) &&
    typeof value.begun === 'number'
  )
}
