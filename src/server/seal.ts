const encoder = new TextEncoder()
const decoder = new TextDecoder()

type Key = Parameters<typeof crypto.subtle.encrypt>[1]

/** Texts that pass through clients and come back: encrypted, and bound to what they are for. */
export class Seal {
  #key: Promise<Key> | undefined

  async close(text: string, purpose: string): Promise<string> {
    const iv = crypto.getRandomValues(new Uint8Array(12))
    const sealed = await crypto.subtle.encrypt(
      { name: 'AES-GCM', iv, additionalData: encoder.encode(purpose) },
      await this.#secret(),
      encoder.encode(text),
    )
    return toText(iv) + toText(new Uint8Array(sealed))
  }

  /** The text, or undefined where it was not sealed here and for this purpose. */
  async open(sealed: string, purpose: string): Promise<string | undefined> {
    try {
      const iv = fromText(sealed.slice(0, 16))
      const text = await crypto.subtle.decrypt(
        { name: 'AES-GCM', iv, additionalData: encoder.encode(purpose) },
        await this.#secret(),
        fromText(sealed.slice(16)),
      )
      return decoder.decode(text)
    } catch {
      return undefined
    }
  }

  #secret(): Promise<Key> {
    this.#key ??= crypto.subtle.generateKey({ name: 'AES-GCM', length: 256 }, false, ['encrypt', 'decrypt'])
    return this.#key
  }
}

function toText(bytes: Uint8Array): string {
  return btoa(String.fromCharCode(...bytes))
    .replaceAll('+', '-')
    .replaceAll('/', '_')
    .replaceAll('=', '')
}

function fromText(text: string): Uint8Array<ArrayBuffer> {
  const binary = atob(text.replaceAll('-', '+').replaceAll('_', '/'))
  return Uint8Array.from(binary, (character) => character.charCodeAt(0))
}
