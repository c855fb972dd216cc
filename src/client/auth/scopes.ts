import type { Discovered } from './discovery.js'

const OFFLINE = 'offline_access'

/** The scopes of a first authorization: those of the challenge, else those that the server lists. */
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
