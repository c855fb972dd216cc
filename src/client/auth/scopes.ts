import type { Discovered } from './discovery.js'

const OFFLINE = 'offline_access'

/**
 * The scopes of a first authorization: `wanted` (configured, or from the challenge), else those in the resource metadata.
 * If the authorization server lists `offline_access`, it is added for a user; if not, it is removed.
 */
export function initialScopes(
  { metadata, scopesSupported }: Discovered,
  wanted: readonly string[] | undefined,
  forUser: boolean,
): string[] {
  const scopes = [...(wanted ?? scopesSupported ?? [])]
  const listed = metadata.scopes_supported?.includes(OFFLINE) === true
  // Without other scopes it would replace the defaults of the authorization server.
  if (forUser && listed && scopes.length > 0) return union(scopes, [OFFLINE])
  return listed ? scopes : scopes.filter((scope) => scope !== OFFLINE)
}

export function union(some: readonly string[], others: readonly string[]): string[] {
  return [...new Set([...some, ...others])]
}
