import { parseUrl } from '../runtime.js'

/**
 * Whether an update of a resource concerns another one: they are the same, or the first is a sub-resource of the second.
 * https://modelcontextprotocol.io/specification/2026-07-28/schema#resourceupdatednotificationparams
 */
export function concerns(updated: string, watched: string): boolean {
  return updated === watched || isWithin(normal(updated), normal(watched))
}

function isWithin(uri: string, parent: string): boolean {
  if (uri === parent) return true
  if (!uri.startsWith(parent)) return false
  return parent.endsWith('/') || '/?#'.includes(uri.charAt(parent.length))
}

/** Scheme and host in lower case and the like, so that spellings of one URI compare as equal. */
function normal(uri: string): string {
  return parseUrl(uri)?.href ?? uri
}
