import type { Principal } from '../jsonrpc/channel.js'

/** A positive time below this is in seconds: in milliseconds it is in 1973. */
const MIN_MILLISECONDS = 1e11

/** Throws if a value is not a principal: verifiers may be written in JavaScript. */
export function checkPrincipal(source: string, principal: Principal): void {
  const { id, scopes, expires, expiresAt } = Object(principal) as Partial<
    Principal & { expiresAt: unknown }
  > // to be checked
  if (
    typeof id !== 'string' ||
    id === '' ||
    !Array.isArray(scopes) ||
    !scopes.every((scope) => typeof scope === 'string')
  )
    throw new TypeError(`${source} a principal: an object with an "id" and an array of "scopes"`)
  const isTime = typeof expires === 'number' && (expires <= 0 || expires >= MIN_MILLISECONDS)
  if (expires === undefined ? expiresAt !== undefined : !isTime)
    throw new TypeError(
      `${source} a principal whose "expires", if it has one, is a number of milliseconds since 1970: not seconds, and not "expiresAt"`,
    )
}

export function isExpired({ expires }: Principal): boolean {
  return expires !== undefined && Date.now() >= expires
}
