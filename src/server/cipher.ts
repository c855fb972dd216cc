import { toBase64Url } from '../jsonrpc/base64.js'

const encoder = new TextEncoder()
const decoder = new TextDecoder()

type Key = Parameters<typeof crypto.subtle.encrypt>[1]

/** Encrypts strings that clients store and send back, each bound to a purpose. */
export class Cipher {
  readonly #secrets: readonly string[]
  #keys: Promise<[Key, ...Key[]]> | undefined

  /** The first secret encrypts, all of them decrypt; without any, a random one is made. */
  constructor(secrets: readonly string[] = []) {
    this.#secrets = secrets
  }

  /** Whether its keys outlive this process. */
  get isLasting(): boolean {
    return this.#secrets.length > 0
  }

  async encrypt(text: string, purpose: string): Promise<string> {
    const iv = crypto.getRandomValues(new Uint8Array(12))
    const [key] = await this.#load()
    const encrypted = await crypto.subtle.encrypt(
      { name: 'AES-GCM', iv, additionalData: encoder.encode(purpose) },
      key,
      encoder.encode(text),
    )
    return toBase64Url(iv) + toBase64Url(new Uint8Array(encrypted))
  }

  /** The string, or undefined if it was not encrypted here for this purpose. One of more than `maxLength` characters is refused unread. */
  async decrypt(
    encrypted: string,
    purpose: string,
    maxLength: number,
  ): Promise<string | undefined> {
    const parts = encrypted.length > maxLength ? undefined : partsOf(encrypted)
    if (parts === undefined) return undefined
    for (const key of await this.#load()) {
      try {
        const text = await crypto.subtle.decrypt(
          { name: 'AES-GCM', iv: parts.iv, additionalData: encoder.encode(purpose) },
          key,
          parts.data,
        )
        return decoder.decode(text)
      } catch {
        // Tries the next key.
      }
    }
    return undefined
  }

  #load(): Promise<[Key, ...Key[]]> {
    this.#keys ??= Promise.all(this.#secrets.map(keyOf)).then(async ([first, ...others]) => [
      first ??
        (await crypto.subtle.generateKey({ name: 'AES-GCM', length: 256 }, false, [
          'encrypt',
          'decrypt',
        ])),
      ...others,
    ])
    return this.#keys
  }
}

/** Maximum length of the encrypted form of a string. */
export function maxEncryptedLength(length: number): number {
  const [iv, tag, bytesACharacter] = [12, 16, 3]
  return Math.ceil(((iv + length * bytesACharacter + tag) * 4) / 3) + 2
}

/** Undefined if the text is not in the encoding that `encrypt` writes. */
function partsOf(
  encrypted: string,
): { iv: Uint8Array<ArrayBuffer>; data: Uint8Array<ArrayBuffer> } | undefined {
  try {
    return { iv: fromText(encrypted.slice(0, 16)), data: fromText(encrypted.slice(16)) }
  } catch {
    return undefined
  }
}

async function keyOf(secret: string): Promise<Key> {
  const bits = await crypto.subtle.digest('SHA-256', encoder.encode(`ccmcp ${secret}`))
  return await crypto.subtle.importKey('raw', bits, 'AES-GCM', false, ['encrypt', 'decrypt'])
}

function fromText(text: string): Uint8Array<ArrayBuffer> {
  const binary = atob(text.replaceAll('-', '+').replaceAll('_', '/'))
  const bytes = Uint8Array.from(binary, (character) => character.charCodeAt(0))
  // The last character has unused bits, which must be zero.
  if (toBase64Url(bytes) !== text) throw new TypeError('Not canonical Base64')
  return bytes
}
