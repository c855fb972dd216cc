/** References below this number are entries of the table; others are positions in the arena. */
const MAX_TABLE = 65_536
/** Longer texts are rarely repeated: they are not entries of the table. */
const MAX_ENTRY = 200
const BLOCK = 1024 * 1024
/** Bytes of all texts in the arena. */
const MAX_ARENA = 192 * 1024 * 1024
/** A text is preceded by its length, in two bytes. */
const HEADER = 2
const MAX_LENGTH = 0xffff
/** Characters that are written one by one. */
const MAX_SHORT = 100

/** Writes a short text of ASCII; returns its bytes, or undefined for any other. A call of the encoder takes longer. */
function writeAscii(text: string, block: Uint8Array, at: number): number | undefined {
  const { length } = text
  if (length > MAX_SHORT) return undefined
  for (let i = 0; i < length; i++) {
    const code = text.charCodeAt(i)
    if (code >= 0x80) return undefined
    block[at + i] = code
  }
  return length
}

/**
 * Texts by number. Repeated ones (methods, tools) are kept once; others (ids, messages) are kept as UTF-8 outside of the
 * heap of objects. The bytes are limited: what exceeds the limit becomes the empty text, and is counted.
 */
export class Strings {
  readonly #table: string[] = ['']
  readonly #numbers = new Map<string, number>([['', 0]])
  readonly #blocks: Uint8Array[] = []
  readonly #encoder = new TextEncoder()
  readonly #decoder = new TextDecoder('utf-8', { ignoreBOM: true })
  readonly #maxArena: number
  #used = 0
  /** How many texts were not kept. */
  lost = 0

  constructor(maxArena = MAX_ARENA) {
    this.#maxArena = maxArena
  }

  /** The number of a text that is likely to be repeated. */
  intern(text: string): number {
    const known = this.#numbers.get(text)
    if (known !== undefined) return known
    if (this.#table.length >= MAX_TABLE || text.length > MAX_ENTRY) return this.add(text)
    this.#numbers.set(text, this.#table.length)
    return this.#table.push(text) - 1
  }

  /** The number of a text that is not likely to be repeated. */
  add(text: string): number {
    if (text === '') return 0
    // A UTF-16 code unit takes at most three bytes.
    const kept = text.slice(0, Math.floor(MAX_LENGTH / 3))
    const room = HEADER + kept.length * 3
    // A text does not cross blocks.
    if ((this.#used % BLOCK) + room > BLOCK) this.#used = this.#blocks.length * BLOCK
    if (this.#used + room > this.#maxArena) {
      this.lost++
      return 0
    }
    const block = (this.#blocks[Math.floor(this.#used / BLOCK)] ??= new Uint8Array(BLOCK))
    const at = this.#used % BLOCK
    const written = writeAscii(kept, block, at + HEADER) ?? this.#encode(kept, block, at + HEADER)
    block[at] = written >>> 8
    block[at + 1] = written & 0xff
    const reference = MAX_TABLE + this.#used
    this.#used += HEADER + written
    return reference
  }

  #encode(text: string, block: Uint8Array, at: number): number {
    return this.#encoder.encodeInto(text, block.subarray(at)).written
  }

  get(reference: number): string {
    if (reference < MAX_TABLE) return this.#table[reference] ?? ''
    const position = reference - MAX_TABLE
    const block = this.#blocks[Math.floor(position / BLOCK)]
    if (block === undefined) return ''
    const at = position % BLOCK
    const length = ((block[at] ?? 0) << 8) | (block[at + 1] ?? 0)
    return this.#decoder.decode(block.subarray(at + HEADER, at + HEADER + length))
  }
}
