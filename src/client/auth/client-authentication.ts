import { ClientSecretPost, None, PrivateKeyJwt } from 'oauth4webapi'
import { AuthorizationError, shown } from './errors.js'
import type { ClientAuthMethod, RegisteredClient } from './store.js'

/** As the library has it, so that the declarations of this package do not need those of the library. */
type ClientAuthentication = (
  server: { issuer: string },
  client: { client_id: string },
  body: URLSearchParams,
  headers: Headers,
) => void | Promise<void>

/** A key of Web Crypto. */
type CryptoKey = Awaited<ReturnType<typeof crypto.subtle.importKey>>

/** A private key for `private_key_jwt`. */
export interface ClientKey {
  /** The key: a CryptoKey that may sign, or the text of a PKCS #8 PEM file, which begins with BEGIN PRIVATE KEY. */
  readonly key: CryptoKey | string
  /** The signature algorithm of a PEM file (default ES256). */
  readonly algorithm?: keyof typeof ALGORITHMS
  /** The key id, if the authorization server needs one. */
  readonly id?: string
}

const ALGORITHMS = {
  ES256: { name: 'ECDSA', namedCurve: 'P-256' },
  ES384: { name: 'ECDSA', namedCurve: 'P-384' },
  RS256: { name: 'RSASSA-PKCS1-v1_5', hash: 'SHA-256' },
  PS256: { name: 'RSA-PSS', hash: 'SHA-256' },
  Ed25519: { name: 'Ed25519' },
} as const

/** How a client authenticates at the token endpoint. */
export async function authenticationOf(
  { secret, method }: RegisteredClient,
  key: ClientKey | undefined,
): Promise<ClientAuthentication> {
  switch (method) {
    case 'none':
      return None()
    case 'client_secret_basic':
      return basic(required(secret, method, 'client.secret'))
    case 'client_secret_post':
      return ClientSecretPost(required(secret, method, 'client.secret'))
    case 'private_key_jwt': {
      const { id } = required(key, method, 'client.key')
      const signing = await signingKey(required(key, method, 'client.key'))
      return PrivateKeyJwt(id === undefined ? signing : { key: signing, kid: id })
    }
    default:
      throw new AuthorizationError(
        'AUTHORIZATION_FAILED',
        `The client authentication method ${shown(method)} is not supported`,
      )
  }
}

/**
 * RFC 6749, section 2.3.1. The library also encodes what the form encoding leaves alone, such as a hyphen, which servers
 * do not understand that compare the credentials without decoding them.
 */
function basic(secret: string): ClientAuthentication {
  return (_server, { client_id: id }, _body, headers) => {
    headers.set('authorization', `Basic ${basicCredentials(id, secret)}`)
  }
}

export function basicCredentials(id: string, secret: string): string {
  return btoa(`${formEncoded(id)}:${formEncoded(secret)}`)
}

export function formEncoded(text: string): string {
  return new URLSearchParams([['', text]]).toString().slice(1)
}

function required<Value>(value: Value | undefined, method: string, option: string): Value {
  if (value !== undefined) return value
  throw new AuthorizationError('AUTHORIZATION_FAILED', `${method} needs "${option}"`)
}

async function signingKey({ key, algorithm = 'ES256' }: ClientKey): Promise<CryptoKey> {
  if (typeof key !== 'string') return key
  const base64 = /-----BEGIN PRIVATE KEY-----([\w+/=\s]+)-----END PRIVATE KEY-----/.exec(key)?.[1]
  try {
    const bytes = Uint8Array.from(atob(base64 ?? ''), (character) => character.charCodeAt(0))
    return await crypto.subtle.importKey('pkcs8', bytes, ALGORITHMS[algorithm], false, ['sign'])
  } catch {
    // Not the error of the runtime, which might repeat the key.
    throw new AuthorizationError(
      'AUTHORIZATION_FAILED',
      `"client.key" is not a PKCS #8 private key (BEGIN PRIVATE KEY) for ${algorithm}`,
    )
  }
}

/** The authentication method of a client that the user has configured, or that has a secret. */
export function chooseMethod(
  supported: readonly string[] | undefined,
  { secret, key }: { readonly secret?: string | undefined; readonly key?: ClientKey | undefined },
): ClientAuthMethod {
  if (key !== undefined) return 'private_key_jwt'
  if (secret === undefined) return 'none'
  // RFC 8414: Basic is the default.
  const secretMethods = ['client_secret_basic', 'client_secret_post'] as const
  const fitting = secretMethods.find((method) => supported?.includes(method) !== false)
  if (fitting !== undefined) return fitting
  return supported?.includes('none') === true ? 'none' : 'client_secret_basic'
}
