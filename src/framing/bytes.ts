import type { Frame } from './frame.js'

// `ignoreBOM: true` keeps a byte order mark in the text: it is dropped only at the start of the stream, by the reader.
const strict = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })
const lenient = new TextDecoder('utf-8', { ignoreBOM: true })

/** The text of the bytes, or undefined if they are not UTF-8. */
export function decode(bytes: Uint8Array): string | undefined {
  try {
    return strict.decode(bytes)
  } catch {
    return undefined
  }
}

/** Decodes leniently, for diagnosis and ASCII headers: invalid bytes become U+FFFD. */
export function decodeLossy(bytes: Uint8Array): string {
  return lenient.decode(bytes)
}

/** The offset of the first byte that is not UTF-8 (Unicode standard, table 3-7). TextDecoder does not report it; called only after `decode` failed. */
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
  let size = 4
  if (lead < 0xe0) size = 2
  else if (lead < 0xf0) size = 3
  for (let i = 1; i < size; i++) {
    // A missing byte at the end counts as invalid.
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

/** Chunks of at least LARGE bytes are stored as they are; smaller ones are copied into blocks of SMALL bytes. */
const LARGE = 4096
const SMALL = 16 * 1024

/**
 * Collects the chunks of one message and joins them once, when it is complete: time is linear, and memory little more
 * than the size of the message, however small the chunks are.
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

  /** Drops everything but the first `size` bytes; `tail` gets all of it first. */
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

/** Keeps the last bytes of a message, whatever the size of its chunks. */
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

  /** A view of these bytes, valid until the next `add`. */
  take(): Uint8Array {
    const bytes = this.#bytes.subarray(0, this.#length)
    this.#length = 0
    return bytes
  }
}

/** Bytes kept of the start and of the end of a message beyond the limit: the request id is probably among them. */
export const HEAD_BYTES = 4096

/** Frames that were read and not yet returned. */
export class FrameQueue {
  #frames: Frame[] = []
  #taken = 0

  push(frame: Frame): void {
    this.#frames.push(frame)
  }

  next(): Frame | undefined {
    const frame = this.#frames[this.#taken]
    if (frame === undefined) {
      if (this.#taken > 0) this.#frames = []
      this.#taken = 0
    } else {
      this.#taken++
    }
    return frame
  }
}
