/** `String.fromCharCode` takes its characters as arguments, whose number is limited. */
const CHUNK = 0x8000

/** Standard base64 with padding, in any runtime: Node, Bun, Deno and workers have `btoa` in common. */
export function toBase64(bytes: Uint8Array): string {
  let binary = ''
  for (let at = 0; at < bytes.length; at += CHUNK)
    binary += String.fromCharCode(...bytes.subarray(at, at + CHUNK))
  return btoa(binary)
}

/** The URL-safe alphabet without padding (RFC 4648, section 5). */
export function toBase64Url(bytes: Uint8Array): string {
  return toBase64(bytes).replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '')
}
