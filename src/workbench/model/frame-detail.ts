import { CaptureReader, type CaptureRecord, bytesOf } from '../../capture/format.js'
import { ExpansionLimit, decoderOf } from '../../capture/http-coding.js'
import { decode, decodeLossy } from '../../framing/bytes.js'
import type { CaptureIndex } from './capture-index.js'
import type { FindingSummary } from './finding-store.js'
import type { RowSummary } from './row-store.js'
import { type Tree, treeOf } from './tree.js'

/** A capture file, read in parts. */
export interface CaptureBytes {
  /** The bytes of a range; fewer at the end of the file. */
  read(start: number, end: number): Promise<Uint8Array>
}

/** Everything about one row. */
export interface FrameDetail {
  row: RowSummary
  /** The row that it belongs to, if any. */
  peer: RowSummary | undefined
  bytes: Uint8Array
  /** The position of the first byte: within its direction, or of an event within the file. */
  offset: number
  /** Undefined if the bytes are not JSON. */
  tree: Tree | undefined
  findings: FindingSummary[]
}

const NEWLINE = 0x0a

/** Reads the bytes of a row again from the file. */
export async function frameDetail(
  index: CaptureIndex,
  row: number,
  file: CaptureBytes,
): Promise<FrameDetail> {
  const { rows, findings } = index
  const summary = rows.summary(row)
  const { start, end } = rows.recordsOf(row)
  const isFrame = summary.dir !== undefined && summary.kind !== 'http'
  const bytes = isFrame
    ? await frameBytes(index, row, file)
    : withoutLineEnd(await file.read(start, end))
  const peer = rows.peer(row)
  return {
    row: summary,
    peer: peer === undefined ? undefined : rows.summary(peer),
    bytes,
    offset: isFrame ? summary.start : start,
    tree: treeOfBytes(bytes, summary),
    findings: findings.ofRow(row),
  }
}

/** Bytes of the file that are read at once. */
const PIECE = 4 * 1024 * 1024

/** The bytes of a frame, from the chunks of its direction or body. What the capture lacks is left out. */
async function frameBytes(
  index: CaptureIndex,
  row: number,
  file: CaptureBytes,
): Promise<Uint8Array> {
  const { dir, start, end, exchange, coding } = index.rows.summary(row)
  const place = index.rows.recordsOf(row)
  const chunks: Uint8Array[] = []
  const reader = new CaptureReader()
  const visit = (record: CaptureRecord) => {
    if (record.type !== 'chunk' || record.dir !== dir || record.exchange !== exchange) return
    const content = bytesOf(record)
    const from = Math.max(0, start - record.offset)
    const to = Math.max(from, end - record.offset)
    chunks.push(coding === undefined ? content.slice(from, to) : content)
  }
  // There may be many records of others in between: only what belongs to the frame is kept.
  for (let at = place.start; at < place.end; at += PIECE)
    reader.read(await file.read(at, Math.min(at + PIECE, place.end)), visit)
  reader.end().forEach(visit)
  return coding === undefined ? joined(chunks) : decoded(chunks, coding).slice(start, end)
}

/** A compressed body, as far as it can be decoded. */
function decoded(chunks: readonly Uint8Array[], coding: string): Uint8Array {
  const decoder = decoderOf(coding, new ExpansionLimit())
  if (decoder === undefined) return joined(chunks)
  return joined([...chunks.flatMap((chunk) => decoder.push(chunk)), ...decoder.end()])
}

function joined(pieces: readonly Uint8Array[]): Uint8Array {
  const bytes = new Uint8Array(pieces.reduce((sum, piece) => sum + piece.length, 0))
  let at = 0
  for (const piece of pieces) {
    bytes.set(piece, at)
    at += piece.length
  }
  return bytes
}

function withoutLineEnd(bytes: Uint8Array): Uint8Array {
  return bytes.at(-1) === NEWLINE ? bytes.slice(0, -1) : bytes.slice()
}

function treeOfBytes(bytes: Uint8Array, row: RowSummary): Tree | undefined {
  const text = jsonText(bytes, row)
  if (text === undefined) return undefined
  // A byte order mark has three bytes; headers (Content-Length) precede the body.
  const [skipped] = /^(?:\uFEFF|(?:[\w-]+[ \t]*:[^\n]*\n)+\r?\n)/.exec(text) ?? ['']
  return treeOf(text.slice(skipped.length), new TextEncoder().encode(skipped).length)
}

/** The text of a frame, at its place: what is not data of a server-sent event is blank. */
function jsonText(bytes: Uint8Array, { exchange, kind }: RowSummary): string | undefined {
  const isBody = exchange !== undefined && kind !== 'http'
  const isEvent =
    isBody && /^\s*(?:\uFEFF|event|data|id|retry|:)/.test(decodeLossy(bytes.slice(0, 20)))
  return decode(isEvent ? eventData(bytes) : bytes)
}

const SPACE = 0x20
const COLON = 0x3a
const DATA = new TextEncoder().encode('data:')

/** A copy of an event in which everything but its data is blank. A line break is space in JSON too. */
function eventData(event: Uint8Array): Uint8Array {
  const bytes = event.slice()
  for (let start = 0; start < bytes.length;) {
    const newline = bytes.indexOf(NEWLINE, start)
    const end = newline === -1 ? bytes.length : newline
    const isData = DATA.every((byte, at) => bytes[start + at] === byte)
    bytes.fill(SPACE, start, isData ? bytes.indexOf(COLON, start) + 1 : end)
    start = end + 1
  }
  return bytes
}

/** The JSON of a row's frame; undefined if it is not JSON. */
export async function frameJson(
  index: CaptureIndex,
  row: number,
  file: CaptureBytes,
): Promise<unknown> {
  const bytes = await frameBytes(index, row, file)
  try {
    return JSON.parse(jsonText(bytes, index.rows.summary(row)) ?? '')
  } catch {
    return undefined
  }
}
