import type { Definition, Page } from './pages.js'

/** The kinds of definitions: the method that lists them, the member of its result, and the member that identifies one. */
export const KINDS = {
  tools: { method: 'tools/list', key: 'name' },
  prompts: { method: 'prompts/list', key: 'name' },
  resources: { method: 'resources/list', key: 'uri' },
  resourceTemplates: { method: 'resources/templates/list', key: 'uriTemplate' },
} as const
export type Kind = keyof typeof KINDS
export const KIND_NAMES = Object.keys(KINDS) as readonly Kind[] // the keys of the line above

/** Definitions that are kept of each kind. */
export const MAX_DEFINITIONS = 10_000

/** A list, page by page. */
export interface Listing {
  pages: Page[]
  /** How many definitions it has. */
  count: number
  /** Bytes of the lists of tools. */
  bytes: number
  /** The revision in which they were listed. */
  revision: string | undefined
  /** Whether the last page was listed. */
  isComplete: boolean
}

interface View {
  listing: Listing
  /** By name, URI or template. */
  items: Map<string, Definition>
}

/**
 * What a server has listed, as far as a capture shows it, in whatever conversation: of each kind the last complete list,
 * or the last one if none is complete.
 */
export class Definitions {
  readonly #newest = new Map<Kind, View>()
  readonly #complete = new Map<Kind, View>()

  listing(kind: Kind):
    | {
        items: ReadonlyMap<string, Definition>
        bytes: number
        revision: string | undefined
      }
    | undefined {
    const view = this.#complete.get(kind) ?? this.#newest.get(kind)
    if (view === undefined) return undefined
    const { bytes, revision } = view.listing
    return { items: view.items, bytes, revision }
  }

  /** Whether all pages of a list were seen, so that what it lacks does not exist. */
  isComplete(kind: Kind): boolean {
    return this.#complete.has(kind)
  }

  /** The last page of `listing` was added just now. */
  listed(kind: Kind, listing: Listing): void {
    if (listing.pages.length === 1) this.#newest.set(kind, { listing, items: new Map() })
    const newest = this.#newest.get(kind)
    const isNewest = newest?.listing === listing
    if (isNewest) addItems(newest.items, listing.pages.at(-1))
    if (!listing.isComplete) return
    const view = isNewest ? newest : viewOf(listing)
    if (view !== undefined) this.#complete.set(kind, view)
  }
}

/** Undefined if one of its pages was forgotten. */
function viewOf(listing: Listing): View | undefined {
  const items = new Map<string, Definition>()
  for (const page of listing.pages) {
    if (page.items === undefined) return undefined
    addItems(items, page)
  }
  return { listing, items }
}

function addItems(items: Map<string, Definition>, page: Page | undefined): void {
  for (const [key, definition] of page?.items ?? [])
    if (items.size < MAX_DEFINITIONS) items.set(key, definition)
}
