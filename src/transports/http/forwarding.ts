import { toBase64Url } from '../../jsonrpc/base64.js'
import type { HttpContext } from './http-context.js'

/* Requests that one process passes on to another: what is sent of them, and by what the other recognizes them. */

/** The process that a request was passed on to, and proof that the sender knows the shared key. */
export const FORWARDED = 'ccmcp-forwarded'

/**
 * Headers that belong to one connection, and those that `fetch` writes.
 * https://datatracker.ietf.org/doc/html/rfc9110#section-7.6.1
 */
const PER_CONNECTION: ReadonlySet<string> = new Set([
  'connection',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
  'content-length',
  'expect',
])

/** Headers without those of the connection, and those that `Connection` names. */
export function endToEnd(
  headers: Iterable<readonly [name: string, value: string]>,
): [name: string, value: string][] {
  const all = Array.from(headers, ([name, value]): [string, string] => [name.toLowerCase(), value])
  const named = all
    .filter(([name]) => name === 'connection')
    .flatMap(([, value]) => value.toLowerCase().split(','))
  const dropped = new Set(named.map((name) => name.trim()))
  return all.filter(([name]) => !PER_CONNECTION.has(name) && !dropped.has(name))
}

/** Signs requests to other processes, and verifies theirs. */
export class ForwardSignature {
  readonly #key: ReturnType<typeof crypto.subtle.importKey>

  constructor(key: string) {
    const algorithm = { name: 'HMAC', hash: 'SHA-256' }
    const bytes = new TextEncoder().encode(key)
    this.#key = crypto.subtle.importKey('raw', bytes, algorithm, false, ['sign', 'verify'])
  }

  /** The value of the header for a request to the process `to`. It is of no use for another request or process. */
  async sign(context: HttpContext, to: string): Promise<string> {
    const signature = await crypto.subtle.sign('HMAC', await this.#key, signed(context, to))
    return `${to}.${toBase64Url(new Uint8Array(signature))}`
  }

  /** Whether a request was sent by a process that knows the key, to the process `to`. */
  async verify(context: HttpContext, to: string): Promise<boolean> {
    const given = context.header(FORWARDED) ?? ''
    if (!given.startsWith(`${to}.`)) return false
    const signature = fromBase64Url(given.slice(to.length + 1))
    if (signature === undefined) return false
    return crypto.subtle.verify('HMAC', await this.#key, signature, signed(context, to))
  }
}

function signed(context: HttpContext, to: string): Uint8Array<ArrayBuffer> {
  const { method, target } = context
  const parts = [to, method, target, context.header('mcp-session-id') ?? '']
  return new TextEncoder().encode(JSON.stringify(parts))
}

/** 32 bytes; undefined if the text is something else. */
function fromBase64Url(text: string): Uint8Array<ArrayBuffer> | undefined {
  if (!/^[\w-]{43}$/.test(text)) return undefined
  const binary = atob(text.replaceAll('-', '+').replaceAll('_', '/'))
  return Uint8Array.from(binary, (character) => character.charCodeAt(0))
}
