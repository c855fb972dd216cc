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

const KEEP = 64 * 1024

/**
 * Bytes of one message that come in pieces. It grows by doubling, so that a
 * message costs linear time and at most twice its size, however small the
 * pieces are.
 */
export class Gathering {
  #buffer = new Uint8Array(1024)
  length = 0

  add(piece: Uint8Array): void {
    const needed = this.length + piece.length
    if (needed > this.#buffer.length) {
      const larger = new Uint8Array(Math.max(needed, this.#buffer.length * 2))
      larger.set(this.#buffer.subarray(0, this.length))
      this.#buffer = larger
    }
    this.#buffer.set(piece, this.length)
    this.length = needed
  }

  /** A view of what was gathered, good until the next `add`. */
  take(): Uint8Array {
    const bytes = this.#buffer.subarray(0, this.length)
    this.length = 0
    if (this.#buffer.length > KEEP) this.#buffer = new Uint8Array(1024)
    return bytes
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
