import type { Encoder, Frame, FrameLimits, FrameReader } from './frame.js'
import { HeaderReader, encodeWithHeader } from './headers.js'
import { LineReader, encodeLine } from './lines.js'

export type Framing = 'auto' | 'lines' | 'content-length'

const HEADER_STARTS = ['content-length', 'content-type']
const ENOUGH = 64
const BRACE = 0x7b
const WHITE_SPACE = new Set([0x20, 0x09, 0x0a, 0x0d])

/**
 * Reads in the framing that was asked for, or in the one that the first bytes
 * show, and encodes in kind. Until they have shown it, lines are spoken.
 */
export class Framer implements FrameReader {
  readonly #limits: FrameLimits
  #reader: FrameReader | undefined
  #seen = ''
  #held: Uint8Array[] = []
  encode: Encoder = encodeLine

  constructor(framing: Framing, limits: FrameLimits) {
    this.#limits = limits
    if (framing === 'lines') this.#reader = new LineReader(limits)
    if (framing === 'content-length') this.#speakHeaders()
  }

  push(chunk: Uint8Array): void {
    if (this.#reader !== undefined) {
      this.#reader.push(chunk)
      return
    }
    // Almost every client begins with a brace.
    if (chunk[0] === BRACE && this.#held.length === 0) {
      this.#held.push(chunk)
      this.#settle('lines')
      return
    }
    // White space at the beginning is nothing to either reader.
    const start = this.#held.length > 0 ? 0 : chunk.findIndex((byte) => !WHITE_SPACE.has(byte))
    if (start === -1) return
    this.#held.push(chunk.subarray(start))
    // One byte is one character here: only ASCII is of interest.
    for (const byte of chunk.subarray(start, start + ENOUGH - this.#seen.length))
      this.#seen += String.fromCharCode(byte)
    const framing = recognise(this.#seen)
    if (framing !== undefined) this.#settle(framing)
  }

  end(): void {
    if (this.#reader === undefined) this.#settle('lines')
    this.#reader?.end()
  }

  next(): Frame | undefined {
    return this.#reader?.next()
  }

  #settle(framing: 'lines' | 'content-length'): void {
    if (framing === 'lines') this.#reader = new LineReader(this.#limits)
    else this.#speakHeaders()
    for (const chunk of this.#held) this.#reader?.push(chunk)
    this.#held = []
  }

  #speakHeaders(): void {
    this.#reader = new HeaderReader(this.#limits)
    this.encode = encodeWithHeader
  }
}

/** Which framing a stream speaks that begins so; undefined while it could be either. */
function recognise(bytes: string): 'lines' | 'content-length' | undefined {
  // A byte order mark, as single bytes, and white space behind it.
  const start = bytes.replace(/^\xef\xbb\xbf[ \t\r\n]*/, '').toLowerCase()
  if (HEADER_STARTS.some((header) => start.startsWith(header))) return 'content-length'
  const open =
    HEADER_STARTS.some((header) => header.startsWith(start)) || '\xef\xbb\xbf'.startsWith(start)
  return open && bytes.length < ENOUGH ? undefined : 'lines'
}
