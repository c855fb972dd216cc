import { isObject } from '../schema/issue.js'
import type { JsonNode } from './json.js'
import { memberOf, valueAt } from './lazy-json.js'
import type { Message } from './messages.js'
import type { Link, Operation } from './operations.js'

/** The kinds of definitions: the method that lists them, the member of its result, and the member that identifies one. */
export const KINDS = {
  tools: { method: 'tools/list', key: 'name' },
  prompts: { method: 'prompts/list', key: 'name' },
  resources: { method: 'resources/list', key: 'uri' },
  resourceTemplates: { method: 'resources/templates/list', key: 'uriTemplate' },
} as const
export type Kind = keyof typeof KINDS
export const KIND_NAMES = Object.keys(KINDS) as readonly Kind[] // the keys of the line above
const BY_METHOD: ReadonlyMap<string, Kind> = new Map(
  KIND_NAMES.map((kind) => [KINDS[kind].method, kind]),
)

/** Definitions that are kept of each kind. */
const MAX_DEFINITIONS = 10_000

interface Listing {
  /** By name, URI or template. */
  items: Map<string, Record<string, unknown>>
  /** Bytes of the lists. */
  bytes: number
  /** The revision in which they were listed. */
  revision: string | undefined
}

/** A list that a message has. */
export interface AddedList {
  kind: Kind
  /** The array in the message. */
  list: JsonNode
  /** With the earlier pages. */
  listing: Listing
  /** Definitions whose name, URI or template was there before. */
  repeated: readonly JsonNode[]
}

/** What a server has listed, as far as the messages of a connection show it. */
export class Definitions {
  readonly #listings = new Map<Kind, Listing>()
  /** Requests for a page that is not the first. */
  readonly #continued = new WeakSet<Operation>()
  /** Whether tools were changed since they were listed. */
  #isStale = false

  listing(kind: Kind): Readonly<Listing> | undefined {
    return this.#listings.get(kind)
  }

  /** The tool as it was listed; undefined if that is not certain. */
  tool(name: string): Readonly<Record<string, unknown>> | undefined {
    return this.#isStale ? undefined : this.#listings.get('tools')?.items.get(name)
  }

  /** A message that may be a list, or announce a new one. */
  add(message: Message, { operation, revision }: Link): AddedList | undefined {
    if (message.method === 'notifications/tools/list_changed') this.#isStale = true
    if (operation === undefined) return undefined
    const kind = BY_METHOD.get(operation.method)
    if (kind === undefined) return undefined
    if (message.kind === 'request' && valueAt(message.params, 'cursor') !== undefined)
      this.#continued.add(operation)
    const list = memberOf(message.result, kind)
    if (message.kind !== 'response' || list?.items === undefined) return undefined
    const before = this.#continued.has(operation) ? this.#listings.get(kind) : undefined
    const listing = before ?? { items: new Map(), bytes: 0, revision: revision?.id }
    this.#listings.set(kind, listing)
    if (kind === 'tools' && before === undefined) this.#isStale = false
    const repeated: JsonNode[] = []
    for (const item of list.items) {
      if (!isObject(item.value) || listing.items.size >= MAX_DEFINITIONS) continue
      const key = item.value[KINDS[kind].key]
      if (typeof key !== 'string') continue
      if (listing.items.has(key)) repeated.push(item)
      listing.items.set(key, item.value)
    }
    return { kind, list, listing, repeated }
  }
}
