import { Analysis, type Row } from '../../capture/analysis.js'
import {
  type CaptureHeader,
  CaptureReader,
  type CaptureRecord,
  type ChunkRecord,
  type Direction,
  headerProblem,
  piecesOf,
} from '../../capture/format.js'
import type { Operation } from '../../capture/operations.js'
import type { SchemaCheck } from '../../capture/schema-check.js'
import { FindingStore } from './finding-store.js'
import { RowStore } from './row-store.js'

/** Handshakes that are shown. */
const MAX_HANDSHAKES = 50

interface Place {
  start: number
  end: number
}

/** Places that are removed together. */
const FORGOTTEN = 1000

/** Where the bytes of one direction, or of the body of one HTTP message, are in the file. */
class ChunkPlaces {
  #offsets: number[] = []
  #records: number[] = []
  /** What precedes this index is not needed any more. */
  #begin = 0
  /** The place of the first record. */
  first: number | undefined

  add(offset: number, record: number): void {
    this.first ??= record
    this.#offsets.push(offset)
    this.#records.push(record)
  }

  /** The place of the record that has the first byte of a frame. Forgets what precedes it. */
  take(start: number): number | undefined {
    while ((this.#offsets[this.#begin + 1] ?? Infinity) <= start) this.#begin++
    if (this.#begin >= FORGOTTEN) {
      this.#offsets = this.#offsets.slice(this.#begin)
      this.#records = this.#records.slice(this.#begin)
      this.#begin = 0
    }
    return this.#records[this.#begin]
  }
}

/** Bodies of HTTP messages, and requests, that are remembered. */
const MAX_OPEN = 10_000

/** Adds to a map; if it has too many entries, the oldest one is forgotten. */
function remember<Key, Value>(map: Map<Key, Value>, key: Key, value: Value): void {
  map.set(key, value)
  const [oldest] = map.keys()
  if (map.size > MAX_OPEN && oldest !== undefined) map.delete(oldest)
}

/** Reads a capture into rows and findings. The bytes are not kept: a row knows where its records are in the file. */
export class CaptureIndex {
  readonly rows = new RowStore()
  readonly findings = new FindingStore(this.rows.strings)
  /** The requests that negotiate a revision, or the first one that names its own. */
  readonly handshakes: number[] = []
  readonly #reader = new CaptureReader()
  readonly #analysis: Analysis
  /** By direction, and by exchange over HTTP. */
  readonly #places = new Map<string, ChunkPlaces>()
  /** The rows of HTTP requests whose response has not begun. */
  readonly #heads = new Map<number, number>()
  /** The rows of requests that have no response yet. */
  readonly #requests = new Map<Operation, number>()
  #header: CaptureHeader | undefined
  #lastRecord: Place = { start: 0, end: 0 }

  constructor(schemas: ReadonlyMap<string, SchemaCheck>) {
    this.#analysis = new Analysis(schemas)
  }

  get header(): CaptureHeader | undefined {
    return this.#header
  }

  get hasExited(): boolean {
    return this.#analysis.hasExited
  }

  /** Damaged lines of the file. */
  get unreadable(): number {
    return this.#reader.unreadable
  }

  /** Adds bytes of the file. Throws a SyntaxError if it is not a capture. */
  push(bytes: Uint8Array): void {
    this.#reader.read(bytes, (record, start, end) => this.#record(record, { start, end }))
  }

  /** The end of the file. */
  end(): void {
    for (const record of this.#reader.end()) this.#record(record, this.#lastRecord)
    this.#check(undefined)
    for (const row of this.#analysis.end()) this.#row(row, this.#lastRecord)
  }

  #check(record: CaptureRecord | undefined): void {
    if (this.#header !== undefined) return
    const problem = headerProblem(record)
    if (problem !== undefined) throw new SyntaxError(problem)
    if (record?.type === 'capture') this.#header = record
  }

  #record(record: CaptureRecord, place: Place): void {
    this.#check(record)
    this.#lastRecord = place
    if (record.type === 'chunk') this.#chunk(record, place.start)
    for (const piece of piecesOf(record))
      for (const row of this.#analysis.add(piece)) this.#row(row, place)
  }

  #chunk({ dir, exchange, offset }: ChunkRecord, record: number): void {
    const key = keyOf(dir, exchange)
    let places = this.#places.get(key)
    if (places === undefined) {
      places = new ChunkPlaces()
      remember(this.#places, key, places)
    }
    places.add(offset, record)
  }

  #row(row: Row, place: Place): void {
    const { operation, kind } = row
    const request = operation === undefined ? undefined : this.#requests.get(operation)
    const records = this.#recordsOf(row, place, request)
    const index = this.rows.add(row, records.start, records.end)
    for (const finding of row.findings) this.findings.add(index, finding)
    if (kind === 'http') this.#head(row, index)
    if (operation === undefined) return
    if (kind === 'request') {
      this.#requests.set(operation, index)
      this.#handshake(operation, index)
    }
    if (request === undefined) return
    this.rows.setPeer(index, request)
    if (kind !== 'response') return
    this.rows.setPeer(request, index)
    this.#requests.delete(operation)
  }

  #recordsOf(row: Row, place: Place, request: number | undefined): Place {
    const { dir, start, kind, exchange, coding } = row
    if (kind === 'unanswered' && request !== undefined) return this.rows.recordsOf(request)
    if (dir === undefined || kind === 'http') return place
    const places = this.#places.get(keyOf(dir, exchange))
    // A compressed body can be decoded from its beginning only.
    const first = coding === undefined ? places?.take(start) : places?.first
    return { start: first ?? place.start, end: place.end }
  }

  /** Links the heads of an HTTP request and its response. */
  #head({ exchange, dir }: Row, index: number): void {
    if (exchange === undefined) return
    if (dir === 'in') return remember(this.#heads, exchange, index)
    const request = this.#heads.get(exchange)
    if (request === undefined) return
    this.#heads.delete(exchange)
    this.rows.setPeer(index, request)
    this.rows.setPeer(request, index)
  }

  #handshake({ method, revision }: Operation, index: number): void {
    const isHandshake = method === 'initialize' || method === 'server/discover'
    const isFirst = this.handshakes.length === 0 && revision?.lifecycle === 'stateless'
    if ((isHandshake || isFirst) && this.handshakes.length < MAX_HANDSHAKES)
      this.handshakes.push(index)
  }
}

function keyOf(dir: Direction, exchange: number | undefined): string {
  return exchange === undefined ? dir : `${dir} ${exchange}`
}
