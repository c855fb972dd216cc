import { CaptureReader, type CaptureRecord, bytesOf } from '../../capture/format.js'
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
const CARRIAGE_RETURN = 0x0d
const BOM = '\uFEFF'

/** Reads the bytes of a row again from the file. */
export async function frameDetail(
  index: CaptureIndex,
  row: number,
  file: CaptureBytes,
): Promise<FrameDetail> {
  const { rows, findings } = index
  const summary = rows.summary(row)
  const { start, end } = rows.recordsOf(row)
  const records = await file.read(start, end)
  const isFrame = summary.dir !== undefined
  const bytes = isFrame ? frameBytes(records, summary) : withoutLineEnd(records)
  const peer = rows.peer(row)
  return {
    row: summary,
    peer: peer === undefined ? undefined : rows.summary(peer),
    bytes,
    offset: isFrame ? summary.start : start,
    tree: treeOfBytes(bytes),
    findings: findings.ofRow(row),
  }
}

/** The bytes of a frame, from the chunks of its direction. What the capture lacks is left out. */
function frameBytes(records: Uint8Array, { dir, start, end }: RowSummary): Uint8Array {
  const pieces: Uint8Array[] = []
  const add = (record: CaptureRecord) => {
    if (record.type !== 'chunk' || record.dir !== dir) return
    const content = bytesOf(record)
    const from = Math.max(0, start - record.offset)
    const to = Math.min(content.length, end - record.offset)
    if (from < to) pieces.push(content.subarray(from, to))
  }
  const reader = new CaptureReader()
  for (const record of [...reader.push(records), ...reader.end()]) add(record)
  const size = pieces.reduce((sum, piece) => sum + piece.length, 0)
  const bytes = new Uint8Array(size)
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

function treeOfBytes(bytes: Uint8Array): Tree | undefined {
  let end = bytes.length
  if (bytes[end - 1] === NEWLINE) end--
  if (bytes[end - 1] === CARRIAGE_RETURN) end--
  const text = decode(bytes.subarray(0, end))
  if (text === undefined) return undefined
  // A byte order mark has three bytes; headers (Content-Length) precede the body.
  const skipped = text.startsWith(BOM)
    ? BOM
    : (/^(?:[\w-]+[ \t]*:[^\n]*\r?\n)+\r?\n/.exec(text)?.[0] ?? '')
  return treeOf(text.slice(skipped.length), new TextEncoder().encode(skipped).length)
}

/** The JSON of a row's frame; undefined if it is not JSON. */
export async function frameJson(
  index: CaptureIndex,
  row: number,
  file: CaptureBytes,
): Promise<unknown> {
  const { start, end } = index.rows.recordsOf(row)
  const bytes = frameBytes(await file.read(start, end), index.rows.summary(row))
  try {
    return JSON.parse(decodeLossy(bytes))
  } catch {
    return undefined
  }
}
