import { toBase64Url } from '../jsonrpc/base64.js'

const encoder = new TextEncoder()
const decoder = new TextDecoder()

type Key = Parameters<typeof crypto.subtle.encrypt>[1]

/** Texts that pass through clients and come back: encrypted, and bound to what they are for. */
export class Seal {
  readonly #secrets: readonly string[]
  #keys: Promise<[Key, ...Key[]]> | undefined

  /** The first secret seals, all of them open; without any, one is made that nobody else has. */
  constructor(secrets: readonly string[] = []) {
    this.#secrets = secrets
  }

  async close(text: string, purpose: string): Promise<string> {
    const iv = crypto.getRandomValues(new Uint8Array(12))
    const [key] = await this.#load()
    const sealed = await crypto.subtle.encrypt(
      { name: 'AES-GCM', iv, additionalData: encoder.encode(purpose) },
      key,
      encoder.encode(text),
    )
    return toBase64Url(iv) + toBase64Url(new Uint8Array(sealed))
  }

  /** The text, or undefined where it was not sealed here and for this purpose. One of more than `maxLength` characters is not looked at. */
  async open(sealed: string, purpose: string, maxLength: number): Promise<string | undefined> {
    const parts = sealed.length > maxLength ? undefined : partsOf(sealed)
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
        // Perhaps with the next one.
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

/** The most characters that a sealed text can have, of a text of so many. */
export function maxSealedLength(length: number): number {
  const [iv, tag, bytesACharacter] = [12, 16, 3]
  return Math.ceil(((iv + length * bytesACharacter + tag) * 4) / 3) + 2
}

/** Undefined where it is not written as `close` does it. */
function partsOf(
  sealed: string,
): { iv: Uint8Array<ArrayBuffer>; data: Uint8Array<ArrayBuffer> } | undefined {
  try {
    return { iv: fromText(sealed.slice(0, 16)), data: fromText(sealed.slice(16)) }
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
  // The last character has bits that say nothing: there is one way to write them.
  if (toBase64Url(bytes) !== text) throw new TypeError('This is not how it was written')
  return bytes
}
