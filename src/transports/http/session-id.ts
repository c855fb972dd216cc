import { toBase64, toBase64Url } from '../../jsonrpc/base64.js'

/* A session id consists of a name, which stores and logs may contain, and a secret. */
const ID = /^((?:[A-Za-z0-9_-]{1,32}\.)?[A-Za-z0-9_-]{12})([A-Za-z0-9_-]{20})$/

/** A random session id: an optional prefix, 72 bits for the name and 120 bits for the secret. */
export function newSessionId(prefix: string | undefined): string {
  const id = toBase64Url(crypto.getRandomValues(new Uint8Array(24)))
  return prefix === undefined ? id : `${prefix}.${id}`
}

/** The name of a session; empty if the id is not one of ours. */
export function sessionNameOf(id: string): string {
  return ID.exec(id)?.[1] ?? ''
}

export function secretOf(id: string): string {
  return ID.exec(id)?.[2] ?? ''
}

export async function secretDigest(id: string): Promise<string> {
  const bytes = await crypto.subtle.digest('SHA-256', new TextEncoder().encode(secretOf(id)))
  return toBase64(new Uint8Array(bytes))
}

/**
 * The generation of a session that is restored: higher than that of the process that had it, and different from that of
 * any other process that restores it at the same time.
 */
export function nextGeneration(generation: number): number {
  return generation + 1 + (crypto.getRandomValues(new Uint32Array(1))[0] ?? 0)
}
