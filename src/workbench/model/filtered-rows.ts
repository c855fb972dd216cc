import type { FilterRow } from '../../capture/filter.js'
import { Column } from './columns.js'
import { type RowStore, StoredRow } from './row-store.js'

/** The rows that match a filter, in order; all of them without one. Rows are checked in parts. */
export class FilteredRows {
  readonly #rows: RowStore
  readonly #matches: ((row: FilterRow) => boolean) | undefined
  readonly #row: StoredRow
  readonly #found = Column.u32()
  #checked = 0

  constructor(rows: RowStore, matches: ((row: FilterRow) => boolean) | undefined) {
    this.#rows = rows
    this.#matches = matches
    this.#row = new StoredRow(rows)
  }

  /** How many match so far. */
  get length(): number {
    return this.#matches === undefined ? this.#rows.length : this.#found.length
  }

  /** Whether all rows so far are checked. */
  get isComplete(): boolean {
    return this.#matches === undefined || this.#checked >= this.#rows.length
  }

  /** Checks at most `count` rows. */
  check(count: number): void {
    if (this.#matches === undefined) return
    const end = Math.min(this.#rows.length, this.#checked + count)
    for (; this.#checked < end; this.#checked++) {
      this.#row.index = this.#checked
      if (this.#matches(this.#row)) this.#found.push(this.#checked)
    }
  }

  /** The row at a position. */
  at(position: number): number {
    return this.#matches === undefined ? position : this.#found.at(position)
  }

  /** The position of a row, or of the next one that matches. */
  positionOf(row: number): number {
    return this.#matches === undefined ? row : this.#found.lowerBound(row)
  }
}
