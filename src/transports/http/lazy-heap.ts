interface Entry<Item> {
  readonly item: Item
  /** Its rank when it was last looked at. */
  rank: number
  place: number
}

/**
 * Finds the item with the lowest rank. Ranks may rise at any time without a call: an item is put in its new place when it
 * is found with a rank that has risen. So what raises ranks often costs nothing.
 */
export class LazyHeap<Item> {
  readonly #rankOf: (item: Item) => number
  /** A binary heap: the children of entry i are 2i + 1 and 2i + 2, and none has a lower rank. */
  readonly #heap: Entry<Item>[] = []
  readonly #entries = new Map<Item, Entry<Item>>()

  constructor(rankOf: (item: Item) => number) {
    this.#rankOf = rankOf
  }

  get size(): number {
    return this.#heap.length
  }

  /** The item with the lowest rank. */
  get first(): Item | undefined {
    for (;;) {
      const [first] = this.#heap
      if (first === undefined) return undefined
      const rank = this.#rankOf(first.item)
      if (rank <= first.rank) return first.item
      first.rank = rank
      this.#sink(first)
    }
  }

  add(item: Item): void {
    const entry = { item, rank: this.#rankOf(item), place: this.#heap.length }
    this.#entries.set(item, entry)
    this.#heap.push(entry)
    this.#rise(entry)
  }

  delete(item: Item): void {
    const entry = this.#entries.get(item)
    const last = this.#heap.at(-1)
    if (entry === undefined || last === undefined) return
    this.#entries.delete(item)
    this.#heap.pop()
    if (last === entry) return
    this.#put(last, entry.place)
    this.#rise(last)
    this.#sink(last)
  }

  #rise(entry: Entry<Item>): void {
    for (;;) {
      const parent = this.#heap[(entry.place - 1) >> 1]
      if (parent === undefined || parent.rank <= entry.rank) return
      this.#swap(parent, entry)
    }
  }

  #sink(entry: Entry<Item>): void {
    for (;;) {
      const left = this.#heap[2 * entry.place + 1]
      const right = this.#heap[2 * entry.place + 2]
      const lower =
        right !== undefined && left !== undefined && right.rank < left.rank ? right : left
      if (lower === undefined || lower.rank >= entry.rank) return
      this.#swap(entry, lower)
    }
  }

  /** Exchanges an entry and one of its children. */
  #swap(parent: Entry<Item>, child: Entry<Item>): void {
    const { place } = parent
    this.#put(parent, child.place)
    this.#put(child, place)
  }

  #put(entry: Entry<Item>, place: number): void {
    entry.place = place
    this.#heap[place] = entry
  }
}
