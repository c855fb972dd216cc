import { DPoP, allowInsecureRequests, customFetch, protectedResourceRequest } from 'oauth4webapi'
import type { Jwk } from './store.js'

/** The only algorithm of every runtime that servers commonly accept. */
const ALGORITHM = { name: 'ECDSA', namedCurve: 'P-256' } as const

/** As the library has it, so that the declarations of this package do not need those of the library. */
interface DpopHandle {
  calculateThumbprint(): Promise<string>
}

/** Proves the possession of a key (RFC 9449), and remembers the nonces of servers. */
export class DpopKey {
  readonly handle: DpopHandle
  /** The private key, to be stored with the tokens that are bound to it. */
  readonly jwk: Jwk

  private constructor(jwk: Jwk, handle: DpopHandle) {
    this.jwk = jwk
    this.handle = handle
  }

  static async create(): Promise<DpopKey> {
    const { privateKey } = await crypto.subtle.generateKey(ALGORITHM, true, ['sign', 'verify'])
    return await DpopKey.import(await crypto.subtle.exportKey('jwk', privateKey))
  }

  static async import(jwk: Jwk): Promise<DpopKey> {
    const { kty, crv, x, y } = jwk
    // Importing a key without these fails.
    const publicJwk = { kty, crv, x, y } as Required<Jwk>
    const privateKey = await crypto.subtle.importKey('jwk', jwk, ALGORITHM, false, ['sign'])
    const publicKey = await crypto.subtle.importKey('jwk', publicJwk, ALGORITHM, true, ['verify'])
    return new DpopKey(jwk, DPoP({}, { privateKey, publicKey }))
  }

  /** The headers of a request with a bound token. */
  async headers(method: string, url: URL, accessToken: string): Promise<Record<string, string>> {
    const sent = await this.#simulate(method, url, accessToken, {})
    const { authorization = '', dpop = '' } = sent
    return { authorization, dpop }
  }

  /** Remembers the nonce for the next requests to an origin. */
  async learn(url: URL, nonce: string): Promise<void> {
    await this.#simulate('GET', url, 'unused', { 'dpop-nonce': nonce })
  }

  /** The library only signs what it sends: this takes the headers from it, and hands it those of a response. */
  async #simulate(
    method: string,
    url: URL,
    accessToken: string,
    response: Record<string, string>,
  ): Promise<Readonly<Record<string, string>>> {
    let sent: Readonly<Record<string, string>> = {}
    // Where a token may be sent was checked before: http only on localhost.
    await protectedResourceRequest(accessToken, method, url, new Headers(), null, {
      DPoP: this.handle,
      [allowInsecureRequests]: true,
      [customFetch]: (_input, { headers }) => {
        sent = headers
        return Promise.resolve(new Response(null, { headers: response }))
      },
    })
    return sent
  }
}
