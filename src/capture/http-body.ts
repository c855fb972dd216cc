import { decode, decodeLossy, invalidOffset } from '../framing/bytes.js'
import { BoundedBuffer, HEAD, type LossyText } from './bounded-buffer.js'
import type { Direction } from './format.js'
import type { EventFields, Frame, FrameFault, Span } from './frames.js'

/*
 * The bytes of an HTTP body → frames. As on stdio nothing disappears: comments of event streams, unfinished events and
 * gaps are frames, and the spans of all frames add up to the bytes.
 */

const NEWLINE = 0x0a
const CARRIAGE_RETURN = 0x0d
const COLON = 0x3a
const SPACE = 0x20
const BOM = [0xef, 0xbb, 0xbf] as const
/** Maximum bytes of a message that is decoded. */
const MAX_MESSAGE = 64 * 1024 * 1024

/** What the frames of one body have in common. */
abstract class BodyParser {
  readonly #dir: Direction
  protected readonly maxBytes: number
  #frames: Frame[] = []
  /** The position after the last byte, and where the current frame began. */
  protected position = 0
  protected start = 0
  #firstNs: number | undefined
  #ns = 0
  #afterGap = false

  constructor(dir: Direction, maxBytes = MAX_MESSAGE) {
    this.#dir = dir
    this.maxBytes = maxBytes
  }

  /** Adds bytes at a position. Bytes that were added before are ignored; missing ones become a gap. */
  push(bytes: Uint8Array, offset: number, ns: number): Frame[] {
    if (offset > this.position) this.#gap(offset, ns)
    const rest = bytes.subarray(this.position - offset)
    if (rest.length > 0) this.read(rest, ns)
    return this.#take()
  }

  /** The end of the body; `isWhole` if it was not cut off. */
  end(isWhole: boolean): Frame[] {
    this.finish(isWhole ? undefined : 'missing-bytes')
    return this.#take()
  }

  /** How many bytes were read. */
  get length(): number {
    return this.position
  }

  /** Reads bytes at the current position. */
  protected abstract read(bytes: Uint8Array, ns: number): void
  /** Ends the frame that has begun, if any, before a gap or at the end. */
  protected abstract finish(missing: 'missing-bytes' | undefined): void

  protected at(ns: number): void {
    this.#ns = ns
    this.#firstNs ??= ns
  }

  protected emit(
    kind: Frame['kind'],
    text: string | undefined,
    body: Span,
    faults: FrameFault[],
    more: Pick<Frame, 'fields' | 'lines' | 'lossy'> = {},
  ): void {
    const { start, position: end } = this
    if (this.#afterGap && kind !== 'gap') {
      this.#afterGap = false
      faults.push({ kind: 'missing-bytes', start, end: start })
    }
    const firstNs = this.#firstNs ?? this.#ns
    const frame = {
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
    this.#frames.push({ ...frame, ...more })
    this.start = end
    this.#firstNs = undefined
  }

  #gap(offset: number, ns: number): void {
    this.finish('missing-bytes')
    this.at(ns)
    this.position = offset
    this.emit('gap', undefined, { start: this.start, end: offset }, [])
    this.#afterGap = true
  }

  #take(): Frame[] {
    const frames = this.#frames
    this.#frames = []
    return frames
  }
}

/** A body that is one message, or none: `isMessage` decides by its text. */
export class WholeBody extends BodyParser {
  readonly #kept = new BoundedBuffer()
  readonly #isMessage: (text: string) => boolean

  constructor(dir: Direction, isMessage: (text: string) => boolean, maxBytes?: number) {
    super(dir, maxBytes)
    this.#isMessage = isMessage
  }

  protected override read(bytes: Uint8Array, ns: number): void {
    this.at(ns)
    const size = this.position - this.start + bytes.length
    this.#kept.add(bytes, size > this.maxBytes)
    this.position += bytes.length
  }

  protected override finish(missing: 'missing-bytes' | undefined): void {
    const { start, position: end } = this
    if (end === start) return
    const body = { start, end }
    const faults: FrameFault[] = missing === undefined ? [] : [{ kind: missing, start: end, end }]
    if (end - start > this.maxBytes) {
      const lossy = this.#kept.takeEnds()
      const isMessage = this.#isMessage(lossy.text)
      if (isMessage) faults.push({ kind: 'oversized', ...body })
      this.emit(isMessage ? 'message' : 'other', undefined, body, faults, { lossy })
      return
    }
    let bytes = this.#kept.take()
    if (BOM.every((byte, i) => bytes[i] === byte)) {
      bytes = bytes.subarray(BOM.length)
      body.start += BOM.length
      faults.push({ kind: 'byte-order-mark', start, end: body.start })
    }
    const text = decode(bytes)
    const isMessage = this.#isMessage(text ?? decodeLossy(bytes))
    if (!isMessage) {
      this.emit('other', text ?? decodeLossy(bytes), body, withoutMark(faults))
      return
    }
    if (text === undefined) faults.push(invalidByte(bytes, body.start))
    const lossy = text === undefined ? { lossy: { text: decodeLossy(bytes) } } : {}
    this.emit('message', text, body, faults, lossy)
  }
}

/** A byte order mark is a fault of messages only. */
function withoutMark(faults: readonly FrameFault[]): FrameFault[] {
  return faults.filter(({ kind }) => kind !== 'byte-order-mark')
}

function invalidByte(bytes: Uint8Array, start: number): FrameFault {
  const at = start + invalidOffset(bytes)
  return { kind: 'invalid-utf8', start: at, end: at + 1 }
}

interface DataLine {
  bytes: Uint8Array
  start: number
}

/** A body of server-sent events: a frame ends with the empty line that ends an event. */
export class EventStreamBody extends BodyParser {
  readonly #line = new BoundedBuffer()
  #lineStart = 0
  #lineLength = 0
  /** The last byte was a carriage return; a newline after it belongs to it. */
  #afterReturn = false
  /** The empty line was read; only that newline may follow. */
  #isComplete = false
  #data: DataLine[] = []
  /** The data of an event beyond the limit. */
  #ends: LossyText = { text: '', end: '' }
  #fields: EventFields = {}
  #hasFields = false

  protected override read(bytes: Uint8Array, ns: number): void {
    const endOfLine = lineEnds(bytes)
    let at = 0
    while (at < bytes.length) {
      if (this.#afterReturn) {
        this.#afterReturn = false
        const isNewline = bytes[at] === NEWLINE
        if (isNewline) {
          this.at(ns)
          this.position++
          at++
        }
        if (this.#isComplete) this.#event()
        else this.#lineStart = this.position
        continue
      }
      this.at(ns)
      const end = endOfLine(at)
      this.#keep(bytes.subarray(at, end))
      at = end
      if (end === bytes.length) return
      at++
      this.position++
      this.#afterReturn = bytes[end] === CARRIAGE_RETURN
      const isEmpty = this.#endLine()
      this.#isComplete = isEmpty
      if (isEmpty && !this.#afterReturn) this.#event()
    }
  }

  #keep(bytes: Uint8Array): void {
    this.position += bytes.length
    this.#lineLength += bytes.length
    const size = this.position - this.start
    this.#line.add(bytes, size > this.maxBytes)
  }

  /** Ends a line; returns whether it was empty. */
  #endLine(): boolean {
    const end = this.#line.takeEnd()
    const bytes = this.#line.take()
    const start = this.#lineStart
    const length = this.#lineLength
    this.#lineStart = this.position
    this.#lineLength = 0
    if (start === 0 && BOM.every((byte, i) => bytes[i] === byte)) {
      if (length === BOM.length) return true
      this.#field(bytes.subarray(BOM.length), BOM.length, end)
      return false
    }
    if (length > 0) this.#field(bytes, start, end)
    return length === 0
  }

  /** `end`: the last bytes of the line, if the event is beyond the limit. */
  #field(line: Uint8Array, start: number, end: string): void {
    const colon = line.indexOf(COLON)
    if (colon === 0) return
    const nameEnd = colon === -1 ? line.length : colon
    const valueStart = colon === -1 ? line.length : colon + (line[colon + 1] === SPACE ? 2 : 1)
    const bytes = line.subarray(valueStart)
    switch (decodeLossy(line.subarray(0, Math.min(nameEnd, HEAD)))) {
      case 'data':
        if (this.position - this.start <= this.maxBytes)
          this.#data.push({ bytes, start: start + valueStart })
        else this.#beyond(bytes, end)
        break
      case 'event':
        this.#fields.event = decodeLossy(bytes)
        break
      case 'id':
        if (!bytes.includes(0)) this.#fields.id = decodeLossy(bytes)
        break
      case 'retry':
        if (/^\d+$/.test(decodeLossy(bytes))) this.#fields.retry = Number(decodeLossy(bytes))
        break
      default:
        return
    }
    this.#hasFields = true
  }

  /** Of an event beyond the limit, only the beginning and the end of its data are kept. */
  #beyond(bytes: Uint8Array, end: string): void {
    const first = this.#data[0]?.bytes ?? bytes
    const text = this.#ends.text === '' ? decodeLossy(first.subarray(0, HEAD)) : this.#ends.text
    this.#ends = { text, end }
    this.#data = []
  }

  #event(): void {
    const { start, position: end } = this
    const data = this.#data
    const isBeyond = end - start > this.maxBytes
    const lastLine = data.at(-1)?.bytes
    // It was not the data that exceeded the limit.
    if (isBeyond && lastLine !== undefined)
      this.#beyond(lastLine, decodeLossy(lastLine.subarray(-HEAD)))
    const ends = this.#ends
    const fields = this.#fields
    const hasFields = this.#hasFields
    this.#reset()
    if (isBeyond) {
      const span = { start, end }
      this.emit('message', undefined, span, [{ kind: 'oversized', ...span }], {
        fields,
        lossy: ends,
      })
      return
    }
    if (!hasFields) {
      this.emit('comment', undefined, { start, end }, [])
      return
    }
    const { event = '' } = fields
    const hasData = data.some(({ bytes }) => bytes.length > 0) || data.length > 1
    const isMessage = hasData && (event === '' || event === 'message')
    const texts = data.map(({ bytes }) => decode(bytes))
    const isText = texts.every((text) => text !== undefined)
    const lossy = data.map(({ bytes }) => decodeLossy(bytes)).join('\n')
    const faults: FrameFault[] = []
    const broken = data[texts.indexOf(undefined)]
    if (broken !== undefined) faults.push(invalidByte(broken.bytes, broken.start))
    const last = data.at(-1)
    const body = {
      start: data[0]?.start ?? start,
      end: last === undefined ? start : last.start + last.bytes.length,
    }
    const lines = data.length > 1 ? { lines: data.map((line) => line.start) } : {}
    const text = isText || !isMessage ? lossy : undefined
    this.emit(isMessage ? 'message' : 'other', text, body, isMessage ? faults : [], {
      fields,
      ...lines,
      ...(text === undefined ? { lossy: { text: lossy } } : {}),
    })
  }

  #reset(): void {
    this.#data = []
    this.#ends = { text: '', end: '' }
    this.#fields = {}
    this.#hasFields = false
    this.#isComplete = false
    this.#lineStart = this.position
    this.#lineLength = 0
  }

  /** Readers discard an event without the empty line that ends it. */
  protected override finish(missing: 'missing-bytes' | undefined): void {
    const { start, position: end } = this
    if (end === start) {
      this.#afterReturn = false
      return
    }
    if (this.#isComplete) {
      this.#afterReturn = false
      this.#event()
      return
    }
    const rest = this.#line.take()
    const hasContent = this.#hasFields || (this.#lineLength > 0 && rest[0] !== COLON)
    const fields = this.#fields
    const texts = [...this.#data.map(({ bytes }) => bytes), rest].map(decodeLossy)
    this.#reset()
    this.#afterReturn = false
    const faults: FrameFault[] =
      missing === undefined
        ? [{ kind: 'partial-event', start: end, end }]
        : [{ kind: missing, start: end, end }]
    if (hasContent)
      this.emit('other', texts.join('\n').slice(0, HEAD), { start, end }, faults, { fields })
    else this.emit('comment', undefined, { start, end }, [])
  }
}

/** A function that finds the end of the line at a position. Each byte is searched once. */
function lineEnds(bytes: Uint8Array): (from: number) => number {
  const find = (byte: number, from: number) => {
    const found = bytes.indexOf(byte, from)
    return found === -1 ? bytes.length : found
  }
  let newline = -1
  let carriageReturn = -1
  return (from) => {
    if (newline < from) newline = find(NEWLINE, from)
    if (carriageReturn < from) carriageReturn = find(CARRIAGE_RETURN, from)
    return Math.min(newline, carriageReturn)
  }
}
