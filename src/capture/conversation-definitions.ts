import { isObject } from '../schema/issue.js'
import {
  type Definitions,
  KINDS,
  KIND_NAMES,
  type Kind,
  type Listing,
  MAX_DEFINITIONS,
} from './definitions.js'
import type { JsonNode } from './json.js'
import { memberOf, valueAt } from './lazy-json.js'
import type { Message } from './messages.js'
import type { Link, Operation } from './operations.js'
import { AgreedTools, type Definition, Pages } from './pages.js'
import { ToolSchemas } from './tool-schemas.js'

const BY_METHOD: ReadonlyMap<string, Kind> = new Map(
  KIND_NAMES.map((kind) => [KINDS[kind].method, kind]),
)
/** The kinds that a notification says to have changed. */
const CHANGED: ReadonlyMap<string | undefined, readonly Kind[]> = new Map([
  ['notifications/tools/list_changed', ['tools']],
  ['notifications/prompts/list_changed', ['prompts']],
  ['notifications/resources/list_changed', ['resources', 'resourceTemplates']],
])

/** What a method lists, if anything. */
export const kindListedBy = (method: string | undefined) => BY_METHOD.get(method ?? '')

/** Lists of a conversation, and of all exchanges without a session, whose next page may follow. */
const MAX_OPEN = 8
const MAX_OPEN_ELSEWHERE = 100
/** The pages of a list that are followed. */
const MAX_PAGES = 500
/** The characters of a cursor. */
const MAX_CURSOR = 2048

/** A list that a message has. */
export interface AddedList {
  kind: Kind
  /** The array in the message. */
  list: JsonNode
  /** With the earlier pages; undefined if it is not certain which they are. */
  listing: Listing | undefined
  /** Definitions whose name, URI or template was there before. */
  repeated: readonly JsonNode[]
}

/** A list whose next page has this cursor. */
interface Open {
  kind: Kind
  cursor: string
  listing: Listing
}

/** Lists whose next page may follow. */
class OpenLists {
  readonly #max: number
  #lists: Open[] = []

  constructor(max: number) {
    this.#max = max
  }

  add(open: Open): void {
    this.#lists = [...this.#lists.slice(1 - this.#max), open]
  }

  /**
   * Removes and returns the last list that ended with this cursor. Unless `isOneClient`, all lists that ended with it must
   * have the same pages.
   */
  take(kind: Kind, cursor: string | undefined, isOneClient: boolean): Listing | undefined {
    const found = this.#lists.filter((each) => each.kind === kind && each.cursor === cursor)
    const last = found.at(-1)
    const isCertain =
      isOneClient || found.every(({ listing }) => isEqual(listing, last?.listing ?? listing))
    if (last === undefined || !isCertain) return undefined
    this.#lists = this.#lists.filter((each) => each !== last)
    return last.listing
  }

  forget(kinds: readonly Kind[] = KIND_NAMES): void {
    this.#lists = this.#lists.filter(({ kind }) => !kinds.includes(kind))
  }
}

/** `Pages` keeps equal pages as one object. */
function isEqual(one: Listing, other: Listing): boolean {
  return (
    one.pages.length === other.pages.length &&
    one.pages.every((page, index) => page === other.pages[index])
  )
}

/** What all conversations of a capture share. */
export class SharedDefinitions {
  readonly pages = new Pages()
  readonly agreed = new AgreedTools()
  readonly schemas = new ToolSchemas()
  /** Those of exchanges without a session. */
  readonly open = new OpenLists(MAX_OPEN_ELSEWHERE)
  readonly view: Definitions

  constructor(view: Definitions) {
    this.view = view
  }

  /** Lists of these kinds may not be recorded, or cannot be read. */
  noteLoss(kinds: readonly Kind[] = KIND_NAMES): void {
    if (kinds.includes('tools')) this.agreed.noteLoss()
    this.open.forget(kinds)
  }
}

/** What the server has listed in one conversation. Servers may list something else for another client. */
export class ConversationDefinitions {
  readonly #shared: SharedDefinitions
  /** The cursors of requests for a later page; undefined if the cursor is not a string or is too long. */
  readonly #cursors = new WeakMap<Operation, string | undefined>()
  readonly #ownOpen = new OpenLists(MAX_OPEN)
  #tools: Listing | undefined
  /** Whether tools may have changed since they were listed. */
  #isStale = false
  /** Whether all messages are those of one client. */
  isOneClient: boolean

  constructor(shared: SharedDefinitions, isOneClient: boolean) {
    this.#shared = shared
    this.isOneClient = isOneClient
  }

  /** Applies schemas of tools. */
  get schemas(): ToolSchemas {
    return this.#shared.schemas
  }

  /** The tool as it was listed; undefined if that is not certain. */
  tool(name: string): Definition | undefined {
    if (!this.isOneClient) return this.#shared.agreed.get(name)
    if (this.#isStale) return undefined
    let found: Definition | undefined
    for (const { items } of this.#tools?.pages ?? []) {
      if (items === undefined) return undefined
      found = items.get(name) ?? found
    }
    return found
  }

  /** Something was not recorded: lists may have changed, or been requested again. */
  noteLoss(): void {
    this.#open.forget()
    this.#isStale = true
  }

  /** A list cannot be read. */
  noteUnreadableList(kind: Kind): void {
    this.#shared.noteLoss([kind])
    this.#open.forget([kind])
    if (kind === 'tools') this.#isStale = true
  }

  /** Without a session, the pages of a list are in several exchanges. */
  get #open(): OpenLists {
    return this.isOneClient ? this.#ownOpen : this.#shared.open
  }

  /** A message that may be a list, or announce a new one. */
  add(message: Message, { operation, revision }: Link): AddedList | undefined {
    if (message.kind === 'notification') this.#change(CHANGED.get(message.method) ?? [])
    const kind = kindListedBy(operation?.method)
    if (operation === undefined || kind === undefined) return undefined
    if (message.kind === 'request') this.#request(operation, valueAt(message.params, 'cursor'))
    const list = memberOf(message.result, kind)
    if (message.kind !== 'response' || list?.items === undefined) return undefined
    const page = this.#shared.pages.add(KINDS[kind].key, list)
    if (kind === 'tools') this.#shared.agreed.add(page)
    const listing = this.#listing(operation, kind, revision?.id)
    const repeated = repeatedOf(kind, list, listing)
    if (listing === undefined) return { kind, list, listing, repeated }
    listing.pages.push(page)
    listing.count += list.items.length
    this.#follow(kind, listing, valueAt(message.result, 'nextCursor') ?? undefined)
    this.#shared.view.listed(kind, listing)
    return { kind, list, listing, repeated }
  }

  #change(kinds: readonly Kind[]): void {
    if (kinds.length === 0) return
    // The pages after a change do not continue those before it.
    this.#open.forget(kinds)
    if (!kinds.includes('tools')) return
    this.#isStale = true
    this.#shared.agreed.change()
  }

  #request(operation: Operation, cursor: unknown): void {
    if (cursor === undefined || cursor === null) return
    const isCursor = typeof cursor === 'string' && cursor.length <= MAX_CURSOR
    this.#cursors.set(operation, isCursor ? cursor : undefined)
  }

  /** The list that a page belongs to: a new one, or the one that has returned its cursor and was not continued yet. */
  #listing(operation: Operation, kind: Kind, revision: string | undefined): Listing | undefined {
    if (this.#cursors.has(operation))
      return this.#open.take(kind, this.#cursors.get(operation), this.isOneClient)
    const listing: Listing = { pages: [], count: 0, bytes: 0, revision, isComplete: false }
    if (kind === 'tools') {
      this.#tools = listing
      this.#isStale = false
    }
    return listing
  }

  /** What follows the last page of a list. */
  #follow(kind: Kind, listing: Listing, next: unknown): void {
    listing.isComplete = next === undefined && listing.count <= MAX_DEFINITIONS
    const isCursor = typeof next === 'string' && next.length <= MAX_CURSOR
    if (isCursor && listing.pages.length < MAX_PAGES)
      this.#open.add({ kind, cursor: next, listing })
  }
}

function repeatedOf(kind: Kind, list: JsonNode, listing: Listing | undefined): JsonNode[] {
  const names = new Set<string>()
  return (list.items ?? []).filter(({ value }) => {
    const name = isObject(value) ? value[KINDS[kind].key] : undefined
    if (typeof name !== 'string') return false
    const isListed = listing?.pages.some(({ items }) => items?.has(name) === true) ?? false
    const isRepeated = isListed || names.has(name)
    names.add(name)
    return isRepeated
  })
}
