/** Entries of a block. A column grows by blocks, so that nothing is copied and at most one block is unused. */
const SHIFT = 16
const BLOCK = 1 << SHIFT
const MASK = BLOCK - 1

type Numbers = Uint8Array | Uint16Array | Uint32Array | Float64Array

/** A growing list of numbers in typed arrays. */
export class Column {
  readonly #make: (length: number) => Numbers
  readonly #blocks: Numbers[] = []
  #length = 0

  private constructor(make: (length: number) => Numbers) {
    this.#make = make
  }

  static u8 = (): Column => new Column((length) => new Uint8Array(length))
  static u16 = (): Column => new Column((length) => new Uint16Array(length))
  static u32 = (): Column => new Column((length) => new Uint32Array(length))
  static f64 = (): Column => new Column((length) => new Float64Array(length))

  get length(): number {
    return this.#length
  }

  push(value: number): void {
    const block = (this.#blocks[this.#length >>> SHIFT] ??= this.#make(BLOCK))
    block[this.#length & MASK] = value
    this.#length++
  }

  /** The number at an index; 0 beyond the end. */
  at(index: number): number {
    return this.#blocks[index >>> SHIFT]?.[index & MASK] ?? 0
  }

  set(index: number, value: number): void {
    const block = this.#blocks[index >>> SHIFT]
    if (block !== undefined && index < this.#length) block[index & MASK] = value
  }

  /** In a column whose numbers ascend: the index of the first one that is not below `value`. */
  lowerBound(value: number): number {
    let low = 0
    let high = this.#length
    while (low < high) {
      const middle = (low + high) >>> 1
      if (this.at(middle) < value) low = middle + 1
      else high = middle
    }
    return low
  }
}
