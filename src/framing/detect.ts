import type { Encoder, Frame, FrameLimits, FrameReader } from './frame.js'
import { HeaderReader, encodeWithHeader } from './headers.js'
import { LineReader, encodeLine } from './lines.js'

export type Framing = 'auto' | 'lines' | 'content-length'

const HEADER_STARTS = ['content-length', 'content-type']

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
    this.#held.push(chunk)
    // One byte is one character here: only ASCII is of interest.
    for (let i = 0; i < chunk.length && this.#seen.length < 64; i++) {
      this.#seen += String.fromCharCode(chunk[i] ?? 0)
    }
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
  // A byte order mark (as single bytes) and white space may come first.
  const start = bytes.replace(/^(\xef\xbb\xbf)?\s*/, '').toLowerCase()
  if (start === '' || '\xef\xbb\xbf'.startsWith(start)) return bytes.length >= 64 ? 'lines' : undefined
  if (HEADER_STARTS.some((header) => start.startsWith(header))) return 'content-length'
  return HEADER_STARTS.some((header) => header.startsWith(start)) ? undefined : 'lines'
}
