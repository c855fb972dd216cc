import { decode } from '../framing/bytes.js'
import { toBase64 } from '../jsonrpc/base64.js'

/*
 * A capture is an append-only file of JSON lines: first a header, then a record for each chunk of bytes that was read and
 * for each event. Frames, messages and findings are derived from it. The format is described in docs/tap.md.
 */

/** Readers accept this version only. New members, events and types of records do not change it. */
const VERSION = 1

/** `in`: from the client to the server (its stdin); `out`: from the server to the client (its stdout). */
export type Direction = 'in' | 'out'

export type Transport = 'stdio' | 'http'

export interface CaptureHeader {
  type: 'capture'
  version: number
  transport: Transport
  /** The wall-clock time of `ns: 0`, in ISO 8601. */
  startedAt: string
  /** The program that wrote it. */
  by: string
}

/** Bytes as they were read: `text` if they are UTF-8, else `base64`. */
interface Content {
  text?: string
  base64?: string
}

export interface ChunkRecord extends Content {
  type: 'chunk'
  dir: Direction
  /** Nanoseconds since the start of the capture, by a monotonic clock. */
  ns: number
  /** The position of the first byte within its direction; over HTTP, within the body of its exchange. */
  offset: number
  /** The HTTP request and response that the bytes belong to. */
  exchange?: number
}

/** Anything else that happened. Other members depend on `event`. */
export interface EventRecord extends Content {
  type: 'event'
  event: string
  ns: number
  readonly [member: string]: unknown
}

/** A line that readers could not read: something was recorded, and is lost. */
interface UnreadableRecord {
  type: 'unreadable'
}

export type CaptureRecord = CaptureHeader | ChunkRecord | EventRecord | UnreadableRecord

export function captureHeader(
  startedAt: Date,
  by: string,
  transport: Transport = 'stdio',
): CaptureHeader {
  return {
    type: 'capture',
    version: VERSION,
    transport,
    startedAt: startedAt.toISOString(),
    by,
  }
}

export function chunkRecord(
  dir: Direction,
  ns: number,
  offset: number,
  bytes: Uint8Array,
): ChunkRecord {
  return { type: 'chunk', dir, ns, offset, ...contentOf(bytes) }
}

export function contentOf(bytes: Uint8Array): Content {
  const text = decode(bytes)
  return text === undefined ? { base64: toBase64(bytes) } : { text }
}

export function encodeRecord(record: CaptureRecord): string {
  return `${JSON.stringify(record)}\n`
}

const encoder = new TextEncoder()

/** The bytes of a record. */
export function bytesOf({ text, base64 }: Content): Uint8Array {
  if (text !== undefined) return encoder.encode(text)
  return Uint8Array.from(atob(base64 ?? ''), (character) => character.charCodeAt(0))
}

/** Why a file that begins with this record cannot be read as a capture. */
export function headerProblem(first: CaptureRecord | undefined): string | undefined {
  if (first?.type !== 'capture')
    return 'it is not a capture: its first line must be {"type":"capture",…}; record one with "ccmcp tap"'
  if (first.version !== VERSION)
    return `it has version ${first.version} of the capture format; this program reads version ${VERSION}`
  return undefined
}

const NEWLINE = 0x0a
/** Maximum bytes of a record. Writers read at most a few hundred kilobytes at once. */
const MAX_RECORD = 32 * 1024 * 1024
/** Bytes of a chunk that is analyzed at once. */
const MAX_CHUNK = 64 * 1024

/**
 * Reads a capture in pieces. A line that is not a record is counted, and is an `unreadable` record unless it is the first:
 * after a crash the last line may be incomplete, and a writer that continues the file begins a new one.
 */
export class CaptureReader {
  #partial: Uint8Array[] = []
  #size = 0
  /** Lines that are not records, and incomplete ones. */
  unreadable = 0

  /** The position in the file after the last line that was read. */
  #position = 0
  /** The bytes of the last line, without the newline. */
  #lineSize = 0
  #hasRecord = false

  push(bytes: Uint8Array): CaptureRecord[] {
    const records: CaptureRecord[] = []
    this.read(bytes, (record) => records.push(record))
    return records
  }

  /** Calls `visit` with each record and its place in the file. */
  read(
    bytes: Uint8Array,
    visit: (record: CaptureRecord, start: number, end: number) => void,
  ): void {
    let rest = bytes
    if (this.#size > 0) {
      const end = bytes.indexOf(NEWLINE)
      this.#add(end === -1 ? bytes : bytes.subarray(0, end))
      if (end === -1) return
      this.#visit(this.#take(), visit)
      rest = bytes.subarray(end + 1)
    }
    // Lines are decoded together: one call for each would take as long as parsing them.
    const whole = rest.subarray(0, rest.lastIndexOf(NEWLINE) + 1)
    const lines = decode(whole)?.split('\n')
    for (let line = 0, start = 0; start < whole.length; line++) {
      const end = whole.indexOf(NEWLINE, start)
      const text = lines === undefined ? decode(whole.subarray(start, end)) : lines[line]
      this.#visit(this.#parse(text ?? '', end - start), visit)
      start = end + 1
    }
    this.#add(rest.subarray(whole.length))
  }

  #visit(
    record: CaptureRecord | undefined,
    visit: (record: CaptureRecord, start: number, end: number) => void,
  ): void {
    const start = this.#position
    this.#position += this.#lineSize + 1
    if (record !== undefined) visit(record, start, this.#position)
  }

  /** The end of the file: what follows the last newline is a record only if it is complete. */
  end(): CaptureRecord[] {
    const record = this.#take()
    return record === undefined ? [] : [record]
  }

  #add(bytes: Uint8Array): void {
    this.#size += bytes.length
    if (bytes.length > 0 && this.#size <= MAX_RECORD) this.#partial.push(bytes.slice())
  }

  #take(): CaptureRecord | undefined {
    const pieces = this.#partial
    const size = this.#size
    this.#size = 0
    this.#partial = []
    const line = new Uint8Array(size > MAX_RECORD ? 0 : size)
    let at = 0
    for (const piece of size > MAX_RECORD ? [] : pieces) {
      line.set(piece, at)
      at += piece.length
    }
    return this.#parse(decode(line) ?? '', size)
  }

  #parse(line: string, size: number): CaptureRecord | undefined {
    this.#lineSize = size
    if (size === 0) return undefined
    const record = size > MAX_RECORD ? undefined : parseRecord(line)
    if (record === undefined) this.unreadable++
    if (record === undefined && this.#hasRecord) return { type: 'unreadable' }
    this.#hasRecord ||= record !== undefined
    return record === 'unknown' ? undefined : record
  }
}

/** A record, or the parts of a large chunk, so that its rows are never all in memory. */
export function* piecesOf(record: CaptureRecord): Generator<CaptureRecord> {
  const isSmall =
    record.type !== 'chunk' || (record.text ?? record.base64 ?? '').length <= MAX_CHUNK
  if (isSmall) return yield record
  const { dir, ns, offset, exchange } = record
  const bytes = bytesOf(record)
  for (let at = 0; at < bytes.length; at += MAX_CHUNK) {
    const piece = chunkRecord(dir, ns, offset + at, bytes.subarray(at, at + MAX_CHUNK))
    yield exchange === undefined ? piece : { ...piece, exchange }
  }
}

/** A record; `unknown` for a type of a later writer; undefined for anything else. */
function parseRecord(line: string): CaptureRecord | 'unknown' | undefined {
  let value: unknown
  try {
    value = JSON.parse(line)
  } catch {
    return undefined
  }
  if (typeof value !== 'object' || value === null || !('type' in value)) return undefined
  const record = value as Record<string, unknown> // checked just now
  const { type, dir, ns, offset, event, exchange } = record
  if (type === 'capture')
    return typeof record['version'] === 'number' && typeof record['startedAt'] === 'string'
      ? (value as CaptureHeader) // its other members are not used to read it
      : undefined
  if (type !== 'chunk' && type !== 'event') return typeof type === 'string' ? 'unknown' : undefined
  if (typeof ns !== 'number' || !isContent(record)) return undefined
  if (exchange !== undefined && !isPosition(exchange)) return undefined
  if (type === 'event') return typeof event === 'string' ? (value as EventRecord) : undefined // checked
  const hasContent = record['text'] !== undefined || record['base64'] !== undefined
  if ((dir !== 'in' && dir !== 'out') || !isPosition(offset) || !hasContent) return undefined
  return value as ChunkRecord // checked
}

function isPosition(value: unknown): boolean {
  return Number.isSafeInteger(value) && Number(value) >= 0
}

function isContent({ text, base64 }: Record<string, unknown>): boolean {
  if (text !== undefined) return typeof text === 'string'
  if (base64 === undefined) return true
  try {
    return typeof base64 === 'string' && atob(base64).length >= 0
  } catch {
    return false
  }
}
