import { isObject } from '../../jsonrpc/message.js'
import type { CacheHint } from '../../protocol/model.js'
import type { Caller } from '../call.js'

/* What tools, resources and prompts have in common. */

interface Facts {
  title?: unknown
  description?: unknown
  annotations?: unknown
  icons?: unknown
  meta?: unknown
  cache?: unknown
}

/** Throws where a member that clients are shown is not of its kind. */
export function checkFacts({ title, description, annotations, icons, meta, cache }: Facts, fail: (problem: string) => Error): void {
  if (cache !== undefined) hintOf(cache, fail)
  for (const [field, value] of Object.entries({ title, description })) {
    if (value !== undefined && typeof value !== 'string') throw fail(`"${field}" must be a string`)
  }
  for (const [field, value] of Object.entries({ annotations, meta })) {
    if (value !== undefined && !isObject(value)) throw fail(`"${field}" must be an object`)
  }
  if (icons !== undefined && !(Array.isArray(icons) && icons.every((icon) => isObject(icon) && typeof icon['src'] === 'string'))) {
    throw fail('"icons" must be an array of objects with a "src"')
  }
}

/** Nothing is kept, and by nobody else. */
export const UNCACHED: CacheHint = { ttlMs: 0, cacheScope: 'private' }

/** A caching hint in full; throws where it is none. */
export function hintOf(hint: unknown, fail: (problem: string) => Error): CacheHint {
  if (!isObject(hint)) throw fail('"cache" must be an object with "ttlMs" and "cacheScope"')
  const { ttlMs = 0, cacheScope = 'private' } = hint
  if (typeof ttlMs !== 'number' || !Number.isSafeInteger(ttlMs) || ttlMs < 0)
    throw fail('"cache.ttlMs" must be a whole number of milliseconds')
  if (cacheScope !== 'public' && cacheScope !== 'private') throw fail('"cache.cacheScope" must be "public" or "private"')
  return { ttlMs, cacheScope }
}

/** The members that have a value. */
export function present<Members extends object>(members: Members): { [Key in keyof Members]?: NonNullable<Members[Key]> } {
  return Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined)) as {
    [Key in keyof Members]?: NonNullable<Members[Key]>
  } // the same, less what is missing
}

/** Throws where a listing could not be sent: one bad definition would spoil the whole list. */
export function listable<Listing>(listing: Listing, fail: (problem: string) => Error): Listing {
  try {
    JSON.stringify(listing)
  } catch (error) {
    throw fail(`it cannot be listed, since not all of it is JSON: ${error instanceof Error ? error.message : String(error)}`)
  }
  return listing
}

/** Whether a caller may see it. A promise is not true: what cannot be decided now is not shown. */
export function seenBy({ visible }: { visible?: (caller: Caller) => boolean }, caller: Caller): boolean {
  const shown: unknown = visible === undefined ? true : visible(caller)
  return shown === true
}
