import { parseUrl } from '../runtime.js'

/**
 * What belongs to resources, found by the URI of an update: it concerns the resource of that URI, and those of which that is
 * a sub-resource.
 * https://modelcontextprotocol.io/specification/2026-07-28/schema#resourceupdatednotificationparams
 */
export class UriIndex<Item> {
  readonly #items = new Map<string, Set<Item>>()
  /** How many of the URIs have each length: an update is compared once per length. */
  readonly #lengths = new Map<number, number>()

  add(uri: string, item: Item): void {
    const key = normal(uri)
    const items = this.#items.get(key)
    if (items !== undefined) return void items.add(item)
    this.#items.set(key, new Set([item]))
    this.#lengths.set(key.length, (this.#lengths.get(key.length) ?? 0) + 1)
  }

  delete(uri: string, item: Item): void {
    const key = normal(uri)
    const items = this.#items.get(key)
    if (items?.delete(item) !== true || items.size > 0) return
    this.#items.delete(key)
    const left = (this.#lengths.get(key.length) ?? 0) - 1
    if (left > 0) this.#lengths.set(key.length, left)
    else this.#lengths.delete(key.length)
  }

  /** The items that an update concerns. */
  concernedBy(updated: string): readonly Item[] {
    if (this.#items.size === 0) return []
    const uri = normal(updated)
    const found: Item[] = []
    for (const length of this.#lengths.keys())
      if (isPartEnd(uri, length))
        for (const item of this.#items.get(uri.slice(0, length)) ?? []) found.push(item)
    return found
  }
}

/** Whether a URI may be a sub-resource of its first characters, or is no longer than they are. */
function isPartEnd(uri: string, length: number): boolean {
  if (length >= uri.length) return length === uri.length
  return uri.charAt(length - 1) === '/' || '/?#'.includes(uri.charAt(length))
}

/** Scheme and host in lower case and the like, so that spellings of one URI compare as equal. */
function normal(uri: string): string {
  return parseUrl(uri)?.href ?? uri
}
