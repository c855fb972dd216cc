import type { Encoder, Frame, FrameLimits, FrameReader } from './frame.js'
import { HeaderReader, encodeWithHeader } from './headers.js'
import { LineReader, encodeLine } from './lines.js'

export type Framing = 'auto' | 'lines' | 'content-length'

const HEADER_STARTS = ['content-length', 'content-type']
const MAX_DETECTION_BYTES = 64
const BRACE = 0x7b
const WHITE_SPACE = new Set([0x20, 0x09, 0x0a, 0x0d])

/**
 * Reads and writes frames in the configured framing. With `auto`, the first bytes received decide, and until then lines
 * are written. MCP has one JSON message per line; some clients send Content-Length headers, as in the Language Server
 * Protocol.
 */
export class Framer implements FrameReader {
  readonly #limits: FrameLimits
  #reader: FrameReader | undefined
  #seen = ''
  #buffered: Uint8Array[] = []
  encode: Encoder = encodeLine

  constructor(framing: Framing, limits: FrameLimits) {
    this.#limits = limits
    if (framing === 'lines') this.#reader = new LineReader(limits)
    if (framing === 'content-length') this.#useHeaders()
  }

  push(chunk: Uint8Array): void {
    if (this.#reader !== undefined) {
      this.#reader.push(chunk)
      return
    }
    // Fast path: almost every client begins with a brace.
    if (chunk[0] === BRACE && this.#buffered.length === 0) {
      this.#buffered.push(chunk)
      this.#useFraming('lines')
      return
    }
    // Both framings ignore white space at the start.
    const start = this.#buffered.length > 0 ? 0 : chunk.findIndex((byte) => !WHITE_SPACE.has(byte))
    if (start === -1) return
    this.#buffered.push(chunk.subarray(start))
    // One character per byte: only ASCII matters here.
    for (const byte of chunk.subarray(start, start + MAX_DETECTION_BYTES - this.#seen.length))
      this.#seen += String.fromCharCode(byte)
    const framing = detectFraming(this.#seen)
    if (framing !== undefined) this.#useFraming(framing)
  }

  end(): void {
    if (this.#reader === undefined) this.#useFraming('lines')
    this.#reader?.end()
  }

  next(): Frame | undefined {
    return this.#reader?.next()
  }

  #useFraming(framing: 'lines' | 'content-length'): void {
    if (framing === 'lines') this.#reader = new LineReader(this.#limits)
    else this.#useHeaders()
    for (const chunk of this.#buffered) this.#reader?.push(chunk)
    this.#buffered = []
  }

  #useHeaders(): void {
    this.#reader = new HeaderReader(this.#limits)
    this.encode = encodeWithHeader
  }
}

/** The framing of a stream that begins with these bytes; undefined while it could be either. */
function detectFraming(bytes: string): 'lines' | 'content-length' | undefined {
  // Skips a byte order mark (one character per byte) and the white space after it.
  const start = bytes.replace(/^\xef\xbb\xbf[ \t\r\n]*/, '').toLowerCase()
  if (HEADER_STARTS.some((header) => start.startsWith(header))) return 'content-length'
  const open =
    HEADER_STARTS.some((header) => header.startsWith(start)) || '\xef\xbb\xbf'.startsWith(start)
  return open && bytes.length < MAX_DETECTION_BYTES ? undefined : 'lines'
}
