/** A Lua script. Redis runs it as a whole, or not at all. */
export interface Script {
  readonly source: string
}

const digests = new WeakMap<Script, Promise<string>>()

/** The name by which Redis knows a script. */
export function digestOf(script: Script): Promise<string> {
  let digest = digests.get(script)
  if (digest === undefined) {
    digest = sha1(script.source)
    digests.set(script, digest)
  }
  return digest
}

async function sha1(text: string): Promise<string> {
  const bytes = await crypto.subtle.digest('SHA-1', new TextEncoder().encode(text))
  return Array.from(new Uint8Array(bytes), (byte) => byte.toString(16).padStart(2, '0')).join('')
}

/** Milliseconds as Redis takes them. */
export function whole(milliseconds: number): string {
  return String(Math.max(1, Math.round(milliseconds)))
}
