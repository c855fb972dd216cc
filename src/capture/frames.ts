import { decode, decodeLossy, invalidOffset } from '../framing/bytes.js'
import { BoundedBuffer, type LossyText } from './bounded-buffer.js'
import type { Direction } from './format.js'
import type { HttpExchange } from './http-exchange.js'

/*
 * Bytes of one direction → frames. Unlike `framing/`, which reads messages, nothing disappears: blank lines, byte order
 * marks, carriage returns and gaps have positions, and the spans of all frames add up to the bytes.
 */

/** A half-open range of byte positions within a direction. */
export interface Span {
  start: number
  end: number
}

type FrameFaultKind =
  | 'byte-order-mark'
  | 'carriage-return'
  | 'invalid-utf8'
  | 'content-length'
  | 'invalid-header'
  | 'partial-line'
  | 'oversized'
  | 'partial-event'
  | 'missing-bytes'

export interface FrameFault extends Span {
  kind: FrameFaultKind
}

export interface Frame extends Span {
  /**
   * `message`: a line, a body with Content-Length, or the data of an event; `gap`: bytes that the capture lacks. Over HTTP
   * also `comment`, lines of an event stream that are not an event, and `other`, a body or an event that is not a message.
   */
  kind: 'message' | 'blank' | 'header' | 'gap' | 'comment' | 'other'
  dir: Direction
  /** The text of a message, without byte order mark, carriage return and newline; undefined if it is not UTF-8 or too long. */
  text: string | undefined
  /** Of a message without a text. */
  lossy?: LossyText
  /** Where the text begins and ends. */
  body: Span
  /** When its first and its last byte were read. */
  firstNs: number
  lastNs: number
  faults: FrameFault[]
  /** The request and response that it belongs to. Positions are those in the body of one of them. */
  exchange?: HttpExchange
  /** The content coding of the body: positions are those after decoding. */
  coding?: string
  /** The fields of an event, except for its data. */
  fields?: EventFields
  /** Where each line of the text begins, if it has several `data` fields. */
  lines?: readonly number[]
}

/** The fields of a server-sent event. */
export interface EventFields {
  event?: string
  id?: string
  retry?: number
}

const NEWLINE = 0x0a
const CARRIAGE_RETURN = 0x0d
const BRACE = 0x7b
const BOM = [0xef, 0xbb, 0xbf] as const
const HEADER_START = /^content-(?:length|type)/i
const HEADER = /^[\w!#$%&'*+.^`|~-]+[ \t]*:/
const HEADER_LINE = /^content-(?:length|type)\s*:/i
/** Maximum bytes of a message that is decoded. */
const MAX_MESSAGE = 64 * 1024 * 1024

export class FrameParser {
  readonly #dir: Direction
  readonly #maxBytes: number
  readonly #partial = new BoundedBuffer()
  #frames: Frame[] = []
  /** `unknown` until the first line that is not blank. */
  #framing: 'unknown' | 'lines' | 'content-length' = 'unknown'
  /** The position after the last byte. */
  #position = 0
  /** Where the current frame began, and when. */
  #start = 0
  #firstNs: number | undefined
  #ns = 0
  #seenBom = false
  /** The current frame follows a gap. */
  #afterGap = false
  /** Bytes after the position may be lost. */
  #isCut = false
  /** With Content-Length: the length of the header lines so far, the announced length, and the missing bytes of a body. */
  #headerBytes = 0
  #length: number | undefined
  #missing: number | undefined

  constructor(dir: Direction, maxBytes = MAX_MESSAGE) {
    this.#dir = dir
    this.#maxBytes = maxBytes
  }

  /** Adds bytes at a position. Bytes that were added before are ignored; missing ones become a gap. */
  push(bytes: Uint8Array, offset: number, ns: number): Frame[] {
    if (offset > this.#position) this.#gap(offset, ns)
    this.#isCut = false
    let rest = bytes.subarray(this.#position - offset)
    while (rest.length > 0) {
      this.#ns = ns
      this.#firstNs ??= ns
      rest = rest.subarray(this.#missing === undefined ? this.#readLine(rest) : this.#body(rest))
    }
    return this.#take()
  }

  /**
   * The same for bytes that are the UTF-8 of a text. Almost every chunk is one line, which needs no decoding; returns
   * undefined for anything else, and has not read it.
   */
  pushLine(text: string, offset: number, ns: number): Frame | undefined {
    const isNext = offset === this.#position && this.#position === this.#start
    if (!isNext || this.#framing !== 'lines' || this.#afterGap) return undefined
    const length = lineLength(text)
    if (length === undefined) return undefined
    const start = this.#start
    const end = start + length
    this.#start = end
    this.#position = end
    this.#ns = ns
    this.#isCut = false
    const body = { start, end: end - 1 }
    const content = text.slice(0, -1)
    return {
      kind: 'message',
      dir: this.#dir,
      start,
      end,
      text: content,
      body,
      firstNs: ns,
      lastNs: ns,
      faults: [],
    }
  }

  /** Something was not recorded. The offset of the next bytes tells whether they follow a gap. */
  noteLoss(): void {
    this.#isCut = true
  }

  /** The end of the stream. */
  end(): Frame[] {
    if (this.#position > this.#start)
      this.#incomplete(this.#isCut ? 'missing-bytes' : 'partial-line')
    return this.#take()
  }

  #take(): Frame[] {
    const frames = this.#frames
    this.#frames = []
    return frames
  }

  /** Ends the frame that has begun, if any, and skips to `offset`. */
  #gap(offset: number, ns: number): void {
    if (this.#position > this.#start) this.#incomplete('missing-bytes')
    this.#ns = ns
    this.#firstNs = ns
    this.#position = offset
    this.#emit('gap', undefined, { start: this.#start, end: offset }, [])
    this.#afterGap = true
  }

  #incomplete(kind: 'partial-line' | 'missing-bytes'): void {
    const isBody = this.#missing !== undefined
    if (!isBody && this.#partial.length > 0 && kind === 'partial-line') this.#line(0)
    if (this.#position === this.#start) {
      const last = this.#frames.at(-1)
      if (last?.kind === 'message') last.faults.push({ kind, start: last.end, end: last.end })
      return
    }
    const body = { start: this.#start + this.#headerBytes, end: this.#position }
    const isHeader = !isBody && this.#headerBytes > 0 && this.#partial.length === 0
    const text = isHeader ? undefined : decode(this.#partial.take())
    this.#partial.take()
    const fault: FrameFault = { kind, start: this.#position, end: this.#position }
    this.#emit(isHeader ? 'header' : 'message', text, body, [fault])
  }

  /** Reads up to the end of the line; returns how many bytes. */
  #readLine(bytes: Uint8Array): number {
    const newline = bytes.indexOf(NEWLINE)
    const length = newline === -1 ? bytes.length : newline
    const kept = bytes.subarray(0, length)
    const lineBytes = this.#position - this.#start - this.#headerBytes
    this.#partial.add(kept, lineBytes + length > this.#maxBytes)
    this.#position += length
    if (newline === -1) return length
    this.#position++
    this.#line(1)
    return length + 1
  }

  /** A complete line, which ends at the current position; `terminator` is 1 if a newline ended it. */
  #line(terminator: 0 | 1): void {
    const start = this.#start + this.#headerBytes
    const end = this.#position - terminator
    const body = { start, end }
    const faults: FrameFault[] = []
    if (end - start > this.#maxBytes) {
      faults.push({ kind: 'oversized', start, end })
      this.#framing = this.#framing === 'unknown' ? 'lines' : this.#framing
      return this.#emit('message', undefined, body, faults, this.#partial.takeEnds())
    }
    let content = this.#partial.take()
    if (terminator === 1 && content.at(-1) === CARRIAGE_RETURN) {
      content = content.subarray(0, -1)
      body.end--
      faults.push({ kind: 'carriage-return', start: body.end, end })
    }
    if (this.#framing === 'unknown') content = this.#skipBom(content, body, faults)
    const text = decode(content)
    const shown = text ?? decodeLossy(content)
    if (this.#framing === 'unknown') this.#detect(shown)
    if (this.#framing === 'content-length') return this.#headerLine(shown, text, body, faults)
    if (isBlank(shown)) return this.#emit('blank', text, body, faults)
    if (text === undefined) faults.push(this.#invalidByte(content, body.start))
    if (HEADER_LINE.test(shown)) {
      faults.push({ kind: 'content-length', ...body })
      return this.#emit('header', text, body, faults)
    }
    this.#emit('message', text, body, faults, { text: shown })
  }

  /** A byte order mark is possible once, before the first message. */
  #skipBom(bytes: Uint8Array, body: Span, faults: FrameFault[]): Uint8Array {
    const at = bytes.findIndex((byte) => byte !== 0x20 && byte !== 0x09 && byte !== CARRIAGE_RETURN)
    if (this.#seenBom || at === -1 || !BOM.every((byte, i) => bytes[at + i] === byte)) return bytes
    this.#seenBom = true
    body.start += at + BOM.length
    faults.push({ kind: 'byte-order-mark', start: body.start - BOM.length, end: body.start })
    return bytes.subarray(at + BOM.length)
  }

  #detect(line: string): void {
    if (isBlank(line)) return
    this.#framing = HEADER_START.test(line.trimStart()) ? 'content-length' : 'lines'
  }

  /** A line between bodies: a header, the empty line that ends the headers, or something else. */
  #headerLine(
    line: string,
    text: string | undefined,
    body: Span,
    faults: readonly FrameFault[],
  ): void {
    // Carriage returns belong to headers.
    const others = faults.filter(({ kind }) => kind !== 'carriage-return')
    const size = this.#position - this.#start
    if (line.trim() === '') {
      if (this.#headerBytes === 0) return this.#emit('blank', text, body, others)
      this.#headerBytes = size
      if (this.#length !== undefined && this.#length > 0) this.#missing = this.#length
      else this.#invalidHeader()
      return
    }
    if (HEADER.test(line.trim())) {
      const [, value] = /^content-length[ \t]*:[ \t]*(\d{1,15})[ \t]*$/i.exec(line.trim()) ?? []
      if (value !== undefined) this.#length = Number(value)
      this.#headerBytes = size
      return
    }
    if (this.#headerBytes > 0) {
      const { start } = this.#splitHeader()
      body.start = Math.max(body.start, start)
    }
    this.#emit('message', text, body, [...others, { kind: 'invalid-header', ...body }])
  }

  /** The headers so far become a frame of their own. */
  #splitHeader(): Span {
    const position = this.#position
    this.#position = this.#start + this.#headerBytes
    this.#invalidHeader()
    const start = this.#position
    this.#position = position
    this.#firstNs = this.#ns
    return { start, end: position }
  }

  #invalidHeader(): void {
    const span = { start: this.#start, end: this.#position }
    this.#emit('header', undefined, span, [{ kind: 'invalid-header', ...span }])
  }

  /** Reads a body with Content-Length; returns how many bytes. */
  #body(bytes: Uint8Array): number {
    const missing = this.#missing ?? 0
    const piece = bytes.subarray(0, missing)
    const length = this.#length ?? 0
    const isOversized = length > this.#maxBytes
    this.#partial.add(piece, isOversized)
    this.#position += piece.length
    this.#missing = missing - piece.length
    if (this.#missing > 0) return piece.length
    const body = { start: this.#start + this.#headerBytes, end: this.#position }
    const faults: FrameFault[] = [
      { kind: 'content-length', start: this.#start, end: this.#start + this.#headerBytes },
    ]
    if (isOversized) {
      faults.push({ kind: 'oversized', ...body })
      this.#emit('message', undefined, body, faults, this.#partial.takeEnds())
      return piece.length
    }
    const content = this.#partial.take()
    const text = decode(content)
    if (text === undefined) faults.push(this.#invalidByte(content, body.start))
    this.#emit('message', text, body, faults, { text: text ?? decodeLossy(content) })
    return piece.length
  }

  #invalidByte(bytes: Uint8Array, start: number): FrameFault {
    const at = start + invalidOffset(bytes)
    return { kind: 'invalid-utf8', start: at, end: at + 1 }
  }

  #emit(
    kind: Frame['kind'],
    text: string | undefined,
    body: Span,
    faults: FrameFault[],
    lossy?: LossyText,
  ): void {
    const start = this.#start
    const end = this.#position
    if (this.#afterGap && kind !== 'gap') {
      this.#afterGap = false
      // The beginning may be missing, unless the gap ended at a line.
      faults.push({ kind: 'missing-bytes', start, end: start })
    }
    const firstNs = this.#firstNs ?? this.#ns
    const frame: Frame = {
      kind,
      dir: this.#dir,
      start,
      end,
      text,
      body,
      firstNs,
      lastNs: this.#ns,
      faults,
    }
    if (text === undefined && lossy !== undefined) frame.lossy = lossy
    this.#frames.push(frame)
    this.#start = end
    this.#firstNs = undefined
    this.#headerBytes = 0
    this.#length = undefined
    this.#missing = undefined
  }
}

function isBlank(line: string): boolean {
  return /^[ \t\r]*$/.test(line)
}

/** The bytes in UTF-8 of a line that begins like a message; undefined for any other text, which has to be looked at. */
function lineLength(text: string): number | undefined {
  const last = text.length - 1
  if (text.charCodeAt(0) !== BRACE || text.charCodeAt(last) !== NEWLINE) return undefined
  let length = text.length
  for (let i = 1; i < last; i++) {
    const code = text.charCodeAt(i)
    if (code < 0x20) return undefined
    if (code < 0x80) continue
    if (code < 0x8_00) length++
    else if (code < 0xd8_00 || code > 0xdf_ff) length += 2
    else {
      // Half of a surrogate pair is not UTF-8.
      const next = text.charCodeAt(i + 1)
      if (code > 0xdb_ff || !(next >= 0xdc_00 && next <= 0xdf_ff)) return undefined
      // Two code units are four bytes.
      length += 2
      i++
    }
  }
  return length
}
