import {
  ChunkBuffer,
  FrameQueue,
  HEAD_BYTES,
  Tail,
  decode,
  decodeLossy,
  invalidOffset,
} from './bytes.js'
import type { Encoder, Frame, FrameLimits, FrameReader } from './frame.js'

const NEWLINE = 0x0a
const BRACE = 0x7b
const BOM = '\ufeff'

export const encodeLine: Encoder = (message) => message + '\n'

/**
 * Reads one message per line, the framing of MCP's stdio transport. Only `\n` ends a line: a `\r` before it is white space
 * in JSON, and U+2028 is an ordinary character. Lines that begin and end within one chunk are decoded together.
 */
export class LineReader implements FrameReader {
  readonly #maxBytes: number
  readonly #ready = new FrameQueue()
  /** The beginning of a line that is not complete. */
  readonly #partial = new ChunkBuffer()
  /** The size so far of a line beyond the limit that is being skipped; its head is in `#partial`. */
  #skipped: number | undefined
  #tail: Tail | undefined
  #first = true
  #wrongFraming = false

  constructor({ maxBytes }: FrameLimits) {
    this.#maxBytes = maxBytes
  }

  next(): Frame | undefined {
    return this.#ready.next()
  }

  push(chunk: Uint8Array): void {
    let start = 0
    if (this.#partial.length > 0 || this.#skipped !== undefined) {
      const end = chunk.indexOf(NEWLINE)
      if (end === -1) {
        this.#buffer(chunk)
        return
      }
      this.#buffer(chunk.subarray(0, end))
      this.#endLine()
      start = end + 1
    }
    const last = chunk.lastIndexOf(NEWLINE)
    if (last >= start) this.#wholeLines(chunk.subarray(start, last))
    this.#buffer(chunk.subarray(Math.max(start, last + 1)))
  }

  end(): void {
    if (this.#partial.length > 0 || this.#skipped !== undefined) this.#endLine()
  }

  /** `bytes` has complete lines, without the last newline. */
  #wholeLines(bytes: Uint8Array): void {
    const text = bytes.length <= this.#maxBytes ? decode(bytes) : undefined
    if (text === undefined) {
      // A line is not UTF-8 or may be too long: decode them one by one.
      let start = 0
      while (start <= bytes.length) {
        const newline = bytes.indexOf(NEWLINE, start)
        const end = newline === -1 ? bytes.length : newline
        this.#line(bytes.subarray(start, end))
        start = end + 1
      }
      return
    }
    let start = 0
    for (let end = text.indexOf('\n'); end !== -1; end = text.indexOf('\n', start)) {
      this.#text(text.slice(start, end))
      start = end + 1
    }
    this.#text(start === 0 ? text : text.slice(start))
  }

  #buffer(bytes: Uint8Array): void {
    if (this.#skipped === undefined) {
      if (this.#partial.length + bytes.length <= this.#maxBytes) {
        if (bytes.length > 0) this.#partial.add(bytes)
        return
      }
      this.#skipped = this.#partial.length
      this.#tail = new Tail(HEAD_BYTES)
      this.#partial.keepHead(HEAD_BYTES, this.#tail)
    }
    this.#skipped += bytes.length
    this.#tail?.add(bytes)
    this.#partial.add(bytes.subarray(0, HEAD_BYTES - this.#partial.length))
  }

  #endLine(): void {
    const bytes = this.#partial.take()
    if (this.#skipped === undefined) this.#line(bytes)
    else
      this.#ready.push(this.#tooLong(this.#skipped, bytes, this.#tail?.take() ?? new Uint8Array(0)))
    this.#skipped = undefined
  }

  #line(bytes: Uint8Array): void {
    if (bytes.length > this.#maxBytes) {
      this.#ready.push(
        this.#tooLong(bytes.length, bytes.subarray(0, HEAD_BYTES), bytes.subarray(-HEAD_BYTES)),
      )
      return
    }
    const text = decode(bytes)
    if (text === undefined) this.#ready.push({ kind: 'not-utf8', offset: invalidOffset(bytes) })
    else this.#text(text)
  }

  #tooLong(size: number, head: Uint8Array, tail: Uint8Array): Frame {
    return {
      kind: 'too-long',
      size,
      limit: this.#maxBytes,
      head: decodeLossy(head),
      tail: decodeLossy(tail),
    }
  }

  #text(line: string): void {
    if (this.#first) {
      this.#first = false
      if (line.startsWith(BOM)) line = line.slice(1)
    }
    // Fast path: almost every line begins with a brace.
    if (line.charCodeAt(0) !== BRACE) {
      if (/^[ \t\r]*$/.test(line)) return
      if (/^content-(length|type)\s*:/i.test(line)) {
        if (!this.#wrongFraming)
          this.#ready.push({ kind: 'wrong-framing', head: line.slice(0, HEAD_BYTES).trim() })
        this.#wrongFraming = true
        return
      }
    }
    this.#ready.push(line)
  }
}
