import { isObject } from '../schema/issue.js'
import type { JsonNode } from './json.js'

/** A tool, prompt, resource or template. */
export type Definition = Readonly<Record<string, unknown>>

/** One page of a list. */
export interface Page {
  /** By name, URI or template; undefined if they were forgotten. */
  items: ReadonlyMap<string, Definition> | undefined
}

/** Characters of pages that are kept, and those of tools that are compared. */
const MAX_PAGES = 16 * 1024 * 1024
const MAX_TOOLS = 4 * 1024 * 1024

/**
 * The pages of all conversations. Equal ones are kept once, since most clients of a server list the same; of the others,
 * those that were listed last.
 */
export class Pages {
  readonly #byText = new Map<string, Page>()
  #size = 0

  /** `key`: the member that identifies a definition. */
  add(key: string, list: JsonNode): Page {
    const text = `${key} ${JSON.stringify(list.value)}`
    const page = this.#byText.get(text) ?? { items: itemsOf(key, list) }
    const isNew = !this.#byText.delete(text)
    this.#byText.set(text, page)
    if (isNew) this.#size += text.length
    for (const [oldest, forgotten] of this.#byText) {
      if (this.#size <= MAX_PAGES || oldest === text) break
      this.#byText.delete(oldest)
      this.#size -= oldest.length
      forgotten.items = undefined
    }
    return page
  }
}

function itemsOf(key: string, list: JsonNode): Map<string, Definition> {
  const items = new Map<string, Definition>()
  for (const { value } of list.items ?? []) {
    const name = isObject(value) ? value[key] : undefined
    if (isObject(value) && typeof name === 'string') items.set(name, value)
  }
  return items
}

interface Tool {
  text: string
  /** Undefined if two lists have different ones. */
  definition: Definition | undefined
  /** The number of changes before it was listed last. */
  changes: number
}

/** The tools of which all lists have the same definition, for messages that do not say to which client they belong. */
export class AgreedTools {
  readonly #byName = new Map<string, Tool>()
  /** The number of changes when a page was added. */
  readonly #added = new WeakMap<Page, number>()
  #size = 0
  #changes = 0
  #hasLoss = false
  /** Whether some clients have a session. */
  hasSessions = false

  get(name: string): Definition | undefined {
    // A list that was lost may be that of a session, which may have other tools.
    const tool = this.#hasLoss && this.hasSessions ? undefined : this.#byName.get(name)
    return tool?.changes === this.#changes ? tool.definition : undefined
  }

  add(page: Page): void {
    if (this.#added.get(page) === this.#changes) return
    this.#added.set(page, this.#changes)
    for (const [name, definition] of page.items ?? []) this.#add(name, definition)
  }

  /** Tools have changed: nothing is certain until they are listed again. */
  change(): void {
    this.#changes++
  }

  /** A list may be lost: nothing is certain until tools are listed again. */
  noteLoss(): void {
    this.#hasLoss = true
    this.#changes++
  }

  #add(name: string, definition: Definition): void {
    const text = JSON.stringify(definition)
    const before = this.#byName.get(name)
    if (before !== undefined) {
      before.changes = this.#changes
      if (before.text === text) return
      this.#size -= before.text.length
      before.text = ''
      before.definition = undefined
      return
    }
    if (this.#size + text.length > MAX_TOOLS) return
    this.#size += text.length
    this.#byName.set(name, { text, definition, changes: this.#changes })
  }
}
