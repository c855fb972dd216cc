import { signal } from '@preact/signals'

/** Items of one request. */
const PAGE = 100
/** Pages that are kept. */
const MAX_PAGES = 60

/** Parts of a long list that the worker has. What is shown is asked for; the rest is forgotten. */
export class ListCache<Item> {
  readonly #fetch: (from: number, to: number) => Promise<Item[]>
  #pages = new Map<number, Item[]>()
  #asked = new Set<number>()
  /** Changes when items have arrived. */
  readonly version = signal(0)

  constructor(fetch: (from: number, to: number) => Promise<Item[]>) {
    this.#fetch = fetch
  }

  at(position: number): Item | undefined {
    return this.#pages.get(Math.floor(position / PAGE))?.[position % PAGE]
  }

  /** The list has other items now. */
  clear(): void {
    this.#pages = new Map()
    this.#asked = new Set()
    this.#changed()
  }

  /** Asks for the items of a window; with `again`, also for those that are known. */
  request(first: number, last: number, again: boolean): void {
    for (let page = Math.floor(first / PAGE); page * PAGE < last; page++) {
      // The last page of a list that grows has only its first items.
      const needed = Math.min(PAGE, last - page * PAGE)
      const isKnown = (this.#pages.get(page)?.length ?? 0) >= needed && !again
      if (!isKnown && !this.#asked.has(page)) void this.#ask(page)
    }
  }

  /** An effect that calls this must not depend on the version. */
  #changed(): void {
    this.version.value = this.version.peek() + 1
  }

  async #ask(page: number): Promise<void> {
    const pages = this.#pages
    this.#asked.add(page)
    try {
      const items = await this.#fetch(page * PAGE, (page + 1) * PAGE)
      // The list has changed meanwhile.
      if (pages !== this.#pages) return
      pages.delete(page)
      pages.set(page, items)
      const [oldest] = pages.keys()
      if (pages.size > MAX_PAGES && oldest !== undefined) pages.delete(oldest)
      this.#changed()
    } finally {
      if (pages === this.#pages) this.#asked.delete(page)
    }
  }
}
