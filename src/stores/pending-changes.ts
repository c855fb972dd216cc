import type { ChangedList, Changes, SharedChange } from './change-bus.js'

/** Maximum bytes of changes, as JSON. */
const MAX_BYTES = 64 * 1024
/** What a list, or the members of the object, may need. */
const OVERHEAD = 100

const encoder = new TextEncoder()

/** Changes that wait to be published: each once, and bounded in bytes. Beyond that, everything has changed. */
export class PendingChanges {
  readonly #lists = new Set<ChangedList>()
  readonly #uris = new Set<string>()
  #bytes = OVERHEAD
  #everything = false

  get empty(): boolean {
    return !this.#everything && this.#lists.size === 0 && this.#uris.size === 0
  }

  add(change: SharedChange): void {
    if (this.#everything) return
    if ('list' in change) this.#lists.add(change.list)
    else this.#addUri(change.uri)
  }

  addAll(changes: Changes): void {
    if (changes === 'everything') return this.#overflow()
    for (const list of changes.lists) this.add({ list })
    for (const uri of changes.uris) this.add({ uri })
  }

  /** Removes and returns all. */
  take(): Changes {
    const changes = this.#everything
      ? 'everything'
      : { lists: [...this.#lists], uris: [...this.#uris] }
    this.#clear()
    this.#everything = false
    return changes
  }

  #addUri(uri: string): void {
    // It can be anything if the caller is written in JavaScript.
    if (typeof uri !== 'string' || this.#uris.has(uri)) return
    // First without encoding it: a URI may have megabytes.
    const bytes = uri.length > MAX_BYTES ? Infinity : encoder.encode(JSON.stringify(uri)).length + 1
    if (this.#bytes + bytes > MAX_BYTES) return this.#overflow()
    this.#bytes += bytes
    this.#uris.add(uri)
  }

  #overflow(): void {
    this.#clear()
    this.#everything = true
  }

  #clear(): void {
    this.#lists.clear()
    this.#uris.clear()
    this.#bytes = OVERHEAD
  }
}
