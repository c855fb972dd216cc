import type { Resource } from '../define.js'
import type { Entry, EntryIndex } from '../registry.js'
import type { Ends } from '../uri-template.js'
import { looseKey, normalizeUri } from '../uri.js'
import type { ServedResource } from './served-resource.js'

export type ResourceEntry = Entry<Resource, ServedResource>

/** Whether not every caller may use a resource. */
export function isRestricted({ definition, enabled }: ResourceEntry): boolean {
  return !enabled || definition.visible !== undefined || definition.scopes !== undefined
}

/** The resources that may match a URI, found without trying all of them. */
export class ResourceIndex implements EntryIndex<Resource, ServedResource> {
  readonly #shapes = new Map<string, ResourceEntry>()
  readonly #templates = new EndsIndex()
  /** Of those that are restricted. */
  readonly #restrictedTemplates = new EndsIndex()
  readonly #restricted = new EntriesByText()

  replace(before: ResourceEntry | undefined, after: ResourceEntry | undefined): void {
    const shape = after?.served.template?.shape
    const same = shape === undefined ? undefined : this.#shapes.get(shape)
    if (same !== undefined && same !== before)
      throw new TypeError(
        `Resource ${JSON.stringify(after?.definition.uri)}: it matches the same URIs as ${same.definition.uri}; leave one of them out`,
      )
    if (before !== undefined) this.#update(before, 'delete')
    if (after !== undefined) this.#update(after, 'add')
  }

  #update(entry: ResourceEntry, action: 'add' | 'delete'): void {
    const { template } = entry.served
    if (template !== undefined) {
      if (action === 'add') this.#shapes.set(template.shape, entry)
      else this.#shapes.delete(template.shape)
      this.#templates[action](template.ends.normal, entry)
    }
    if (!isRestricted(entry)) return
    if (template === undefined)
      this.#restricted[action](looseKey(normalizeUri(entry.definition.uri)), entry)
    else this.#restrictedTemplates[action](template.ends.folded, entry)
  }

  /**
   * In order of definition: the templates that may match a URI in normal form; of those that are restricted, also the
   * templates that may match one of its loose keys, and the fixed resources that do.
   */
  candidates(text: string, looseKeys: () => readonly string[]): ResourceEntry[] {
    const found = new Set(this.#templates.candidates(text))
    if (this.#restricted.size + this.#restrictedTemplates.size > 0)
      for (const key of looseKeys()) {
        for (const entry of this.#restricted.get(key)) found.add(entry)
        for (const entry of this.#restrictedTemplates.candidates(key)) found.add(entry)
      }
    return [...found].toSorted((one, other) => one.position - other.position)
  }
}

class EntriesByText {
  readonly #entries = new Map<string, Set<ResourceEntry>>()

  get size(): number {
    return this.#entries.size
  }

  get(text: string): Iterable<ResourceEntry> {
    return this.#entries.get(text) ?? []
  }

  add(text: string, entry: ResourceEntry): void {
    const entries = this.#entries.get(text)
    if (entries === undefined) this.#entries.set(text, new Set([entry]))
    else entries.add(entry)
  }

  delete(text: string, entry: ResourceEntry): void {
    const entries = this.#entries.get(text)
    if (entries?.delete(entry) === true && entries.size === 0) this.#entries.delete(text)
  }
}

/** Templates by the text at both of their ends. A lookup tries each pair of lengths once: there are few. */
class EndsIndex {
  readonly #byLengths = new Map<string, { ends: Ends; entries: EntriesByText }>()

  get size(): number {
    return this.#byLengths.size
  }

  add(ends: Ends, entry: ResourceEntry): void {
    const lengths = lengthsOf(ends)
    const known = this.#byLengths.get(lengths) ?? { ends, entries: new EntriesByText() }
    known.entries.add(ends.join('{'), entry)
    this.#byLengths.set(lengths, known)
  }

  delete(ends: Ends, entry: ResourceEntry): void {
    const lengths = lengthsOf(ends)
    const entries = this.#byLengths.get(lengths)?.entries
    entries?.delete(ends.join('{'), entry)
    if (entries?.size === 0) this.#byLengths.delete(lengths)
  }

  *candidates(uri: string): Generator<ResourceEntry> {
    for (const {
      ends: [first, last],
      entries,
    } of this.#byLengths.values()) {
      const end = uri.length - last.length
      // No URI has a brace: it separates the ends.
      if (first.length <= end) yield* entries.get(`${uri.slice(0, first.length)}{${uri.slice(end)}`)
    }
  }
}

function lengthsOf([first, last]: Ends): string {
  return `${first.length} ${last.length}`
}
