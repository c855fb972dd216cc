import { toBase64, toBase64Url } from '../../jsonrpc/base64.js'

/*
 * An id has a name, by which stores and logs may know its session, and a secret
 * that makes it worth something.
 */
const ID = /^((?:[A-Za-z0-9_-]{1,32}\.)?[A-Za-z0-9_-]{12})([A-Za-z0-9_-]{20})$/

/** An id that nobody guesses, in characters that a header may have: a name of 72 bits, and a secret of 120. */
export function newId(node: string | undefined): string {
  const id = toBase64Url(crypto.getRandomValues(new Uint8Array(24)))
  return node === undefined ? id : `${node}.${id}`
}

/** Empty where it is no id of ours. */
export function nameOf(id: string): string {
  return ID.exec(id)?.[1] ?? ''
}

export function secretOf(id: string): string {
  return ID.exec(id)?.[2] ?? ''
}

export async function secretDigest(id: string): Promise<string> {
  const bytes = await crypto.subtle.digest('SHA-256', new TextEncoder().encode(secretOf(id)))
  return toBase64(new Uint8Array(bytes))
}

/** What tells the streams of a process that takes a session up from those of all others that have had it, or still have it. */
export function newGeneration(): number {
  return 1 + (crypto.getRandomValues(new Uint32Array(1))[0] ?? 0)
}
