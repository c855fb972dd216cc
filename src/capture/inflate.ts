/*
 * Decompresses gzip, zlib and raw deflate data in pieces, synchronously and in any runtime (RFC 1950, 1951, 1952).
 * Whatever was received is decoded at once, so that the messages of a compressed event stream have their times.
 */

const WINDOW = 32 * 1024
const END_OF_BLOCK = 256
const MAX_CODE = 15
/** Bytes of a gzip header with a name and a comment. */
const MAX_HEADER = 128 * 1024

/** Lengths and distances: the first value of each symbol, and how many extra bits follow. */
const LENGTH_BASE = [
  3, 4, 5, 6, 7, 8, 9, 10, 11, 13, 15, 17, 19, 23, 27, 31, 35, 43, 51, 59, 67, 83, 99, 115, 131,
  163, 195, 227, 258,
]
const LENGTH_EXTRA = [
  0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 0,
]
const DISTANCE_BASE = [
  1, 2, 3, 4, 5, 7, 9, 13, 17, 25, 33, 49, 65, 97, 129, 193, 257, 385, 513, 769, 1025, 1537, 2049,
  3073, 4097, 6145, 8193, 12_289, 16_385, 24_577,
]
const DISTANCE_EXTRA = [
  0, 0, 0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7, 8, 8, 9, 9, 10, 10, 11, 11, 12, 12, 13, 13,
]
const CODE_LENGTH_ORDER = [16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15]

/** A Huffman code as a table: the next bits give `symbol << 4 | length`; 0 for no code. */
interface Code {
  bits: number
  table: Uint16Array
}

/** The input does not suffice; what was read is read again when there is more. */
const NEEDS_MORE = Symbol('needs more')

export class InflateError extends Error {
  override readonly name = 'InflateError'
}

function codeOf(lengths: readonly number[]): Code {
  const bits = Math.max(1, ...lengths)
  const table = new Uint16Array(1 << bits)
  let code = 0
  for (let length = 1; length <= bits; length++) {
    for (let symbol = 0; symbol < lengths.length; symbol++) {
      if (lengths[symbol] !== length) continue
      if (code >= 1 << length) throw new InflateError('the code has too many symbols')
      // Codes are sent with their first bit first, so that the table is indexed by the reverse.
      for (let i = reversed(code, length); i < table.length; i += 1 << length)
        table[i] = (symbol << 4) | length
      code++
    }
    code <<= 1
  }
  return { bits, table }
}

function reversed(code: number, length: number): number {
  let result = 0
  for (let i = 0; i < length; i++) result |= ((code >> i) & 1) << (length - 1 - i)
  return result
}

let fixedCodes: { literals: Code; distances: Code } | undefined
function fixed(): { literals: Code; distances: Code } {
  fixedCodes ??= {
    literals: codeOf([
      ...Array<number>(144).fill(8),
      ...Array<number>(112).fill(9),
      ...Array<number>(24).fill(7),
      ...Array<number>(8).fill(8),
    ]),
    distances: codeOf(Array<number>(30).fill(5)),
  }
  return fixedCodes
}

type State = 'header' | 'block' | 'stored' | 'codes' | 'end'

export class Inflate {
  readonly #format: 'gzip' | 'deflate'
  #state: State = 'header'
  #input: Uint8Array = new Uint8Array(0)
  #at = 0
  #bits = 0
  #bitCount = 0
  #isLast = false
  #stored = 0
  #codes = fixed()
  /** The last 32 KiB and what follows them; `#taken` of it was returned. */
  readonly #output = new Uint8Array(2 * WINDOW)
  #size = 0
  #taken = 0
  #pieces: Uint8Array[] = []
  #room = 0

  constructor(format: 'gzip' | 'deflate') {
    this.#format = format
  }

  /** Whether the compressed data is complete. */
  get isComplete(): boolean {
    return this.#state === 'end'
  }

  /** Decompresses what can be; at most `maxBytes`, beyond which it throws an InflateError, as it does for invalid data. */
  push(bytes: Uint8Array, maxBytes: number): Uint8Array[] {
    const rest = this.#input.subarray(this.#at)
    if (rest.length === 0) this.#input = bytes
    else {
      this.#input = new Uint8Array(rest.length + bytes.length)
      this.#input.set(rest)
      this.#input.set(bytes, rest.length)
    }
    this.#at = 0
    this.#room = maxBytes
    this.#run()
    // The bytes belong to the caller.
    this.#input = this.#input.slice(this.#at)
    this.#at = 0
    this.#take()
    const pieces = this.#pieces
    this.#pieces = []
    return pieces
  }

  /** What was decompressed before an error. */
  rest(): Uint8Array[] {
    this.#take()
    const pieces = this.#pieces
    this.#pieces = []
    return pieces
  }

  #run(): void {
    while (this.#state !== 'end') {
      const [at, bits, bitCount] = [this.#at, this.#bits, this.#bitCount]
      try {
        this.#step()
      } catch (error) {
        if (error !== NEEDS_MORE) throw error
        // A step that was not complete is repeated. Steps that decode many symbols set this themselves.
        if (this.#state !== 'codes' && this.#state !== 'stored')
          [this.#at, this.#bits, this.#bitCount] = [at, bits, bitCount]
        return
      }
    }
  }

  #step(): void {
    if (this.#state === 'header') this.#header()
    else if (this.#state === 'block') this.#block()
    else if (this.#state === 'stored') this.#copyStored()
    else this.#decode()
  }

  #header(): void {
    if (this.#format === 'gzip') this.#gzipHeader()
    else {
      // "deflate" is zlib, but some send the raw data.
      const [first, second] = [this.#input[this.#at], this.#input[this.#at + 1]]
      if (first === undefined || second === undefined) throw NEEDS_MORE
      if ((first & 15) === 8 && ((first << 8) | second) % 31 === 0) this.#at += 2
    }
    this.#state = 'block'
  }

  #gzipHeader(): void {
    const byte = () => {
      if (this.#at > MAX_HEADER) throw new InflateError('its header is too long')
      return this.#take8()
    }
    if (byte() !== 0x1f || byte() !== 0x8b || byte() !== 8)
      throw new InflateError('it is not gzip data')
    const flags = byte()
    for (let i = 0; i < 6; i++) byte()
    if ((flags & 4) !== 0) {
      const length = byte() | (byte() << 8)
      for (let i = 0; i < length; i++) byte()
    }
    for (const flag of [8, 16]) if ((flags & flag) !== 0) while (byte() !== 0);
    if ((flags & 2) !== 0) for (let i = 0; i < 2; i++) byte()
  }

  #take8(): number {
    const byte = this.#input[this.#at]
    if (byte === undefined) throw NEEDS_MORE
    this.#at++
    return byte
  }

  #need(count: number): void {
    while (this.#bitCount < count) {
      this.#bits |= this.#take8() << this.#bitCount
      this.#bitCount += 8
    }
  }

  #take(): void {
    if (this.#size === this.#taken) return
    this.#pieces.push(this.#output.slice(this.#taken, this.#size))
    this.#taken = this.#size
  }

  #read(count: number): number {
    this.#need(count)
    const value = this.#bits & ((1 << count) - 1)
    this.#bits >>>= count
    this.#bitCount -= count
    return value
  }

  /** The next symbol of a code. At the end of the input it may be shorter than the longest. */
  #symbol({ bits, table }: Code): number {
    for (;;) {
      const entry = table[this.#bits & ((1 << bits) - 1)] ?? 0
      const length = entry & 15
      if (length > 0 && length <= this.#bitCount) {
        this.#bits >>>= length
        this.#bitCount -= length
        return entry >> 4
      }
      if (this.#bitCount >= MAX_CODE) throw new InflateError('there is no such symbol')
      this.#need(this.#bitCount + 1)
    }
  }

  #block(): void {
    if (this.#isLast) {
      this.#state = 'end'
      return
    }
    const isLast = this.#read(1) === 1
    const type = this.#read(2)
    if (type === 3) throw new InflateError('there is no such type of block')
    if (type === 0) {
      // Stored blocks begin at a byte.
      this.#read(this.#bitCount & 7)
      const length = this.#read(16)
      if ((this.#read(16) ^ 0xffff) !== length) throw new InflateError('a length is wrong')
      this.#stored = length
      this.#state = 'stored'
    } else {
      this.#codes = type === 1 ? fixed() : this.#dynamicCodes()
      this.#state = 'codes'
    }
    this.#isLast = isLast
  }

  #dynamicCodes(): { literals: Code; distances: Code } {
    const literalCount = this.#read(5) + 257
    const distanceCount = this.#read(5) + 1
    const count = this.#read(4) + 4
    const lengths = Array<number>(19).fill(0)
    for (const symbol of CODE_LENGTH_ORDER.slice(0, count)) lengths[symbol] = this.#read(3)
    const code = codeOf(lengths)
    const all: number[] = []
    while (all.length < literalCount + distanceCount) {
      const symbol = this.#symbol(code)
      if (symbol < 16) all.push(symbol)
      else if (symbol === 16) repeat(all, all.at(-1), this.#read(2) + 3)
      else repeat(all, 0, symbol === 17 ? this.#read(3) + 3 : this.#read(7) + 11)
    }
    return {
      literals: codeOf(all.slice(0, literalCount)),
      distances: codeOf(all.slice(literalCount, literalCount + distanceCount)),
    }
  }

  #copyStored(): void {
    // Bytes that were read ahead as bits.
    while (this.#stored > 0 && this.#bitCount >= 8) {
      this.#put(this.#read(8))
      this.#stored--
    }
    for (; this.#stored > 0; this.#stored--) this.#put(this.#take8())
    this.#state = 'block'
  }

  #decode(): void {
    let [at, bits, bitCount] = [this.#at, this.#bits, this.#bitCount]
    try {
      for (
        let symbol = this.#symbol(this.#codes.literals);
        symbol !== END_OF_BLOCK;
        symbol = this.#symbol(this.#codes.literals)
      ) {
        if (symbol < END_OF_BLOCK) this.#put(symbol)
        else this.#copy(symbol - END_OF_BLOCK - 1)
        at = this.#at
        bits = this.#bits
        bitCount = this.#bitCount
      }
    } catch (error) {
      if (error === NEEDS_MORE) [this.#at, this.#bits, this.#bitCount] = [at, bits, bitCount]
      throw error
    }
    this.#state = 'block'
  }

  /** Repeats earlier bytes. */
  #copy(lengthSymbol: number): void {
    const base = LENGTH_BASE[lengthSymbol]
    if (base === undefined) throw new InflateError('there is no such length')
    const length = base + this.#read(LENGTH_EXTRA[lengthSymbol] ?? 0)
    const distanceSymbol = this.#symbol(this.#codes.distances)
    const distanceBase = DISTANCE_BASE[distanceSymbol]
    if (distanceBase === undefined) throw new InflateError('there is no such distance')
    const distance = distanceBase + this.#read(DISTANCE_EXTRA[distanceSymbol] ?? 0)
    if (distance > this.#size) throw new InflateError('a distance is too far back')
    for (let i = 0; i < length; i++) this.#put(this.#output[this.#size - distance] ?? 0)
  }

  #put(byte: number): void {
    if (this.#room-- <= 0) throw new InflateError('it expands too much')
    if (this.#size === this.#output.length) {
      this.#take()
      this.#output.copyWithin(0, WINDOW)
      this.#size = WINDOW
      this.#taken = WINDOW
    }
    this.#output[this.#size++] = byte
  }
}

function repeat(list: number[], value: number | undefined, count: number): void {
  if (value === undefined) throw new InflateError('there is nothing to repeat')
  for (let i = 0; i < count; i++) list.push(value)
}
