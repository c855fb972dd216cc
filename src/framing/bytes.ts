// `ignoreBOM` keeps a byte order mark in the text: only the start of a stream may have one.
const strict = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })
const lenient = new TextDecoder('utf-8', { ignoreBOM: true })

/** The text of the bytes, or undefined where they are not UTF-8. */
export function decode(bytes: Uint8Array): string | undefined {
  try {
    return strict.decode(bytes)
  } catch {
    return undefined
  }
}

/** The readable part of the beginning of a message; only for diagnosis. */
export function decodeHead(bytes: Uint8Array): string {
  return lenient.decode(bytes)
}

/**
 * Where the first byte stands that is not UTF-8 (the decoder does not tell).
 * Runs only after `decode` has failed. Table 3-7 of the Unicode standard.
 */
export function invalidOffset(bytes: Uint8Array): number {
  let at = 0
  while (at < bytes.length) {
    const size = characterSize(bytes, at)
    if (size === 0) return at
    at += size
  }
  return at
}

function characterSize(bytes: Uint8Array, at: number): number {
  const lead = bytes[at] ?? 0
  if (lead < 0x80) return 1
  if (lead < 0xc2 || lead > 0xf4) return 0
  const size = lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4
  for (let i = 1; i < size; i++) {
    // Past the end the byte is missing: just as wrong as a bad one.
    const byte = bytes[at + i] ?? 0
    let low = 0x80
    let high = 0xbf
    if (i === 1) {
      if (lead === 0xe0) low = 0xa0 // overlong
      if (lead === 0xed) high = 0x9f // surrogates
      if (lead === 0xf0) low = 0x90 // overlong
      if (lead === 0xf4) high = 0x8f // beyond U+10FFFF
    }
    if (byte < low || byte > high) return 0
  }
  return size
}

/** Pieces of at least this size are kept as they are; smaller ones are copied together. */
const LARGE = 4096
const SMALL = 16 * 1024

/**
 * Bytes of one message that come in pieces. They are joined once, when all are
 * there, so that a message costs linear time and little more than its size,
 * however small the pieces are.
 */
export class ChunkBuffer {
  #parts: Uint8Array[] = []
  #small = new Uint8Array(0)
  #used = 0
  length = 0

  add(piece: Uint8Array): void {
    this.length += piece.length
    if (piece.length >= LARGE) {
      this.#flush()
      this.#parts.push(piece)
      return
    }
    if (this.#used + piece.length > this.#small.length) {
      this.#flush()
      this.#small = new Uint8Array(SMALL)
    }
    this.#small.set(piece, this.#used)
    this.#used += piece.length
  }

  take(): Uint8Array {
    this.#flush()
    const [only] = this.#parts
    const whole = only !== undefined && this.#parts.length === 1 ? only : this.#join()
    this.#parts = []
    this.length = 0
    return whole
  }

  /** Lets go of everything but the beginning; `tail` is shown what goes by. */
  keepHead(size: number, tail: Tail): void {
    this.#flush()
    const parts = this.#parts
    this.#parts = []
    this.length = 0
    for (const part of parts) {
      tail.add(part)
      if (this.length < size) this.add(part.slice(0, size - this.length))
    }
  }

  #flush(): void {
    if (this.#used === 0) return
    this.#parts.push(this.#small.subarray(0, this.#used))
    this.#small = this.#small.subarray(this.#used)
    this.#used = 0
  }

  #join(): Uint8Array {
    const whole = new Uint8Array(this.length)
    let at = 0
    for (const part of this.#parts) {
      whole.set(part, at)
      at += part.length
    }
    return whole
  }
}

/** The last bytes of a message, whatever the size of its pieces. */
export class Tail {
  readonly #bytes: Uint8Array
  #length = 0

  constructor(size: number) {
    this.#bytes = new Uint8Array(size)
  }

  add(piece: Uint8Array): void {
    const size = this.#bytes.length
    const added = piece.subarray(Math.max(0, piece.length - size))
    const kept = Math.min(this.#length, size - added.length)
    this.#bytes.copyWithin(0, this.#length - kept, this.#length)
    this.#bytes.set(added, kept)
    this.#length = kept + added.length
  }

  /** A view of them, good until the next `add`. */
  take(): Uint8Array {
    const bytes = this.#bytes.subarray(0, this.#length)
    this.#length = 0
    return bytes
  }
}
