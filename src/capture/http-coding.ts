import { brotliDecoder } from '../runtime.js'
import { ChunkBuffer } from '../framing/bytes.js'
import { Inflate } from './inflate.js'

/* Content codings. Captures have bodies as they were sent; readers decode them. */

/** All bodies of a capture together may expand to this many bytes, and by this factor. */
const MIN_EXPANDED = 64 * 1024 * 1024
const MAX_FACTOR = 50
/** Compressed bytes of a body that is decoded as a whole. */
const MAX_WHOLE = 32 * 1024 * 1024

/** Bounds what compressed bodies expand to, so that a small capture cannot take hours to read. */
export class ExpansionLimit {
  #compressed = 0
  #expanded = 0

  add(compressed: number): void {
    this.#compressed += compressed
  }

  take(expanded: number): void {
    this.#expanded += expanded
  }

  get room(): number {
    return Math.max(0, MIN_EXPANDED + MAX_FACTOR * this.#compressed - this.#expanded)
  }
}

/** Decodes a body in pieces. It never throws: at the first error the rest is undecodable. */
export interface Decoder {
  push(bytes: Uint8Array): Uint8Array[]
  end(): Uint8Array[]
  /** Whether the data is damaged, expands too much, or cannot be decoded here. */
  readonly failed: boolean
}

/** The decoder of a `Content-Encoding`; undefined for a body that is not encoded. */
export function decoderOf(coding: string, limit: ExpansionLimit): Decoder | undefined {
  if (coding === '' || coding === 'identity') return undefined
  if (coding === 'gzip' || coding === 'x-gzip') return new InflateDecoder('gzip', limit)
  if (coding === 'deflate') return new InflateDecoder('deflate', limit)
  return coding === 'br' ? new WholeDecoder(brotliDecoder(), limit) : UNDECODABLE
}

const UNDECODABLE: Decoder = { push: () => [], end: () => [], failed: true }

class InflateDecoder implements Decoder {
  readonly #inflate: Inflate
  readonly #limit: ExpansionLimit
  failed = false

  constructor(format: 'gzip' | 'deflate', limit: ExpansionLimit) {
    this.#inflate = new Inflate(format)
    this.#limit = limit
  }

  push(bytes: Uint8Array): Uint8Array[] {
    if (this.failed) return []
    this.#limit.add(bytes.length)
    let pieces: Uint8Array[]
    try {
      pieces = this.#inflate.push(bytes, this.#limit.room)
    } catch {
      this.failed = true
      pieces = this.#inflate.rest()
    }
    for (const { length } of pieces) this.#limit.take(length)
    return pieces
  }

  end(): Uint8Array[] {
    this.failed ||= !this.#inflate.isComplete
    return []
  }
}

/** For codings that this runtime decodes only as a whole, or not at all. */
class WholeDecoder implements Decoder {
  readonly #decode: ((bytes: Uint8Array, maxBytes: number) => Uint8Array) | undefined
  readonly #limit: ExpansionLimit
  readonly #input = new ChunkBuffer()
  failed: boolean

  constructor(
    decode: ((bytes: Uint8Array, maxBytes: number) => Uint8Array) | undefined,
    limit: ExpansionLimit,
  ) {
    this.#decode = decode
    this.#limit = limit
    this.failed = decode === undefined
  }

  push(bytes: Uint8Array): Uint8Array[] {
    if (this.failed) return []
    this.#limit.add(bytes.length)
    this.#input.add(bytes)
    if (this.#input.length <= MAX_WHOLE) return []
    this.failed = true
    this.#input.take()
    return []
  }

  end(): Uint8Array[] {
    if (this.failed || this.#input.length === 0) return []
    try {
      const decoded = this.#decode?.(this.#input.take(), this.#limit.room) ?? new Uint8Array(0)
      this.#limit.take(decoded.length)
      return [decoded]
    } catch {
      this.failed = true
      return []
    }
  }
}
