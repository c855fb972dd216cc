import { RpcError } from '../jsonrpc/errors.js'
import type { Params } from '../jsonrpc/message.js'
import { METHODS } from '../protocol/methods.js'
import { listOf } from './pages.js'
import { UriIndex } from './resource-uri.js'
import type { CallOptions, SessionCallOptions } from './call-options.js'

export interface CacheOptions {
  /** Maximum results (default 500). */
  maxEntries?: number
  /** Maximum bytes of all results (default 16 MiB). */
  maxBytes?: number
}

export interface CachedCallOptions extends CallOptions {
  /** Asks the server, even if there is a cached result. */
  fresh?: boolean
}

type Send = (
  method: string,
  params: Params | undefined,
  options: SessionCallOptions,
) => Promise<Params>

interface Entry {
  method: string
  /** The cursor of a page or what the request names, such as the URI of a resource; empty for the first page. */
  detail: string
  /** A copy: callers may change the result they got. */
  text: string
  bytes: number
  receivedAt: number
  ttl: number
}

const MAX_ENTRIES = 500
const MAX_BYTES = 16 * 1024 * 1024
/** The size of an entry in bytes, without its texts. */
const ENTRY = 600

const READ = 'resources/read'
/** The methods whose results may be cached. */
const CACHEABLE = [...METHODS].filter(([, { cache }]) => cache !== undefined)

/**
 * The results that a server has allowed this client to reuse. They are never shared with another client, so that a
 * private result stays with the caller it was made for.
 * https://modelcontextprotocol.io/specification/2026-07-28/server/utilities/caching
 */
export class ResultCache {
  readonly #maxEntries: number
  readonly #maxBytes: number
  /** Whether results are cached: the protocol revision must have caching hints. */
  enabled = false
  /** Least recently used first. */
  readonly #entries = new Map<string, Entry>()
  /** The keys of the entries, by method; and those of the resources by URI. */
  readonly #keys = new Map<string, Set<string>>()
  readonly #reads = new UriIndex<string>()
  #bytes = 0
  /** How often the results of a method have become stale: a response to an earlier request is not stored. */
  readonly #changes = new Map<string, number>()

  constructor({ maxEntries = MAX_ENTRIES, maxBytes = MAX_BYTES }: CacheOptions = {}) {
    this.#maxEntries = maxEntries
    this.#maxBytes = maxBytes
  }

  /** The cached result, or that of a new request. */
  async request(
    send: Send,
    method: string,
    params: Params | undefined,
    { fresh, ...options }: CachedCallOptions = {},
  ): Promise<{ result: Params; cached: boolean }> {
    if (!this.enabled) return { result: await send(method, params, options), cached: false }
    const detail = detailOf(method, params)
    const found = fresh === true ? undefined : this.#find(method, detail)
    if (found !== undefined) return { result: found, cached: true }
    const before = this.#changes.get(method)
    let cacheable = true
    const result = await send(method, params, { ...options, onRound: () => (cacheable = false) })
    // The response may be older than the notification.
    if (cacheable && this.#changes.get(method) === before) this.#store(method, detail, result)
    return { result, cached: false }
  }

  /** Drops what a notification makes stale. */
  notified(method: string, params: Params): void {
    for (const [stale, { capability }] of CACHEABLE)
      if (method === `notifications/${capability}/list_changed`) this.drop(stale)
    const { uri } = params
    if (method === 'notifications/resources/updated' && typeof uri === 'string')
      this.drop(READ, this.#reads.concernedBy(uri))
  }

  clear(): void {
    for (const [method] of CACHEABLE) this.drop(method)
  }

  drop(method: string, keys: Iterable<string> = this.#keys.get(method) ?? []): void {
    this.#changes.set(method, (this.#changes.get(method) ?? 0) + 1)
    for (const key of keys) this.#delete(key)
  }

  #find(method: string, detail: string): Params | undefined {
    const key = keyOf(method, detail)
    const entry = this.#entries.get(key)
    if (entry === undefined) return undefined
    const age = Date.now() - entry.receivedAt
    // Negative after the clock was set back.
    if (age < 0 || age >= entry.ttl) {
      this.#delete(key)
      return undefined
    }
    this.#entries.delete(key)
    this.#entries.set(key, entry)
    return JSON.parse(entry.text) as Params // was an object
  }

  #store(method: string, detail: string, result: Params): void {
    const key = keyOf(method, detail)
    this.#delete(key)
    const { ttlMs } = result
    if (typeof ttlMs !== 'number' || !(ttlMs > 0)) return
    const text = JSON.stringify(result)
    const bytes = ENTRY + 2 * (text.length + 3 * key.length)
    if (bytes > this.#maxBytes || this.#maxEntries < 1) return
    for (const oldest of this.#entries.keys()) {
      if (this.#bytes + bytes <= this.#maxBytes && this.#entries.size < this.#maxEntries) break
      this.#delete(oldest)
    }
    this.#bytes += bytes
    this.#entries.set(key, { method, detail, text, bytes, receivedAt: Date.now(), ttl: ttlMs })
    this.#keys.set(method, (this.#keys.get(method) ?? new Set()).add(key))
    if (method === READ) this.#reads.add(detail, key)
  }

  #delete(key: string): void {
    const entry = this.#entries.get(key)
    if (entry === undefined) return
    this.#entries.delete(key)
    this.#bytes -= entry.bytes
    this.#keys.get(entry.method)?.delete(key)
    if (entry.method === READ) this.#reads.delete(entry.detail, key)
  }
}

function detailOf(method: string, params: Params = {}): string {
  const detail = params[METHODS.get(method)?.nameParam ?? 'cursor']
  return typeof detail === 'string' ? detail : ''
}

function keyOf(method: string, detail: string): string {
  return `${method} ${detail}`
}

/** A cached page has led to a cursor that the server no longer accepts. */
class StaleCursor extends Error {}

/** Every item of a paginated list, with cached pages if there are any. */
export async function* cachedListOf<Item>(
  cache: ResultCache,
  send: Send,
  method: string,
  member: string,
  options: CachedCallOptions = {},
): AsyncIterableIterator<Item> {
  let onlyCached = true
  const pages = {
    async request(name: string, params: Params | undefined, given?: CachedCallOptions) {
      try {
        const { result, cached } = await cache.request(send, name, params, given)
        onlyCached &&= cached
        return result
      } catch (error) {
        const cursorIsCached = onlyCached && params !== undefined
        if (!cursorIsCached || !(error instanceof RpcError)) throw error
        throw new StaleCursor(error.message, { cause: error })
      }
    },
  }
  // Items of cached pages are held back until the first page after them is there.
  const held: Item[] = []
  try {
    for await (const item of listOf<Item, CachedCallOptions>(pages, method, member, options)) {
      if (onlyCached) held.push(item)
      else {
        yield* held.splice(0)
        yield item
      }
    }
    yield* held
  } catch (error) {
    if (!(error instanceof StaleCursor)) throw error
    cache.drop(method)
    yield* cachedListOf<Item>(cache, send, method, member, { ...options, fresh: true })
  }
}
