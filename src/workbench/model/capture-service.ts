import { parseFilter } from '../../capture/filter.js'
import type { Severity } from '../../capture/rules.js'
import { type SchemaCheck, loadSchemaChecks } from '../../capture/schema-check.js'
import { CaptureIndex } from './capture-index.js'
import { FilteredRows } from './filtered-rows.js'
import type { FindingSummary } from './finding-store.js'
import { type CaptureBytes, type FrameDetail, frameDetail } from './frame-detail.js'
import { type LatencyPoints, type LatencyRow, latencyPoints, latencyTable } from './latency.js'
import type { RowSummary } from './row-store.js'
import { type SessionFacts, sessionFacts } from './session-facts.js'
import { type Timeline, timeRange, timelineOf } from './timeline.js'

/** A capture to be shown. */
export interface CaptureFile extends CaptureBytes {
  name: string
  size: number
  /** Its bytes from the start. An empty piece says that there are no more for now; the end, that none will follow. */
  pieces(): AsyncIterable<Uint8Array>
}

/** How far the capture is read, and what was found. */
export interface CaptureState {
  phase: 'empty' | 'loading' | 'following' | 'ready' | 'failed'
  name: string
  /** Milliseconds since 1970. */
  startedAt: number
  by: string
  bytesRead: number
  bytesTotal: number
  rows: number
  /** Rows that match the filter. */
  shown: number
  isFiltering: boolean
  findings: Record<Severity, number>
  /** Findings that can be listed. */
  findingsKept: number
  handshakes: number
  /** The time of the first and of the last row. */
  from: number
  to: number
  hasExited: boolean
  /** Damaged lines, and texts that exceed the limit. */
  unreadable: number
  textsLost: number
  /** Why the capture cannot be read (further). */
  problem: string
}

/** What the page can ask. */
export interface CaptureApi {
  rows(from: number, to: number): RowSummary[]
  /** Applies a filter; returns what is wrong with it, or an empty text. */
  filter(text: string): string
  /** The position of a row in the filtered list, or of the next one. */
  positionOf(row: number): number
  frame(row: number): Promise<FrameDetail | undefined>
  timeline(from: number, to: number, parts: number): Timeline
  latency(): LatencyRow[]
  points(method: string, target: string | undefined): LatencyPoints
  findings(from: number, to: number): FindingSummary[]
  nearFinding(row: number, step: 1 | -1): FindingSummary | undefined
  session(): Promise<SessionFacts[]>
}

/** Rows or findings of one answer. */
const MAX_ROWS = 1000
/** Bytes that are read, and rows that are filtered, before the time is looked at. */
const PIECE = 128 * 1024
const FILTER_PART = 10_000
/** Milliseconds between reports while a file is read, and of reading before other questions are answered. */
const REPORT = 100
const BUSY = 16

const NOTHING: CaptureBytes = { read: () => Promise.resolve(new Uint8Array(0)) }

/** Reads one capture after another and answers questions about the last one. */
export class CaptureService implements CaptureApi {
  readonly #report: (state: CaptureState) => void
  readonly #pause: () => Promise<void>
  #schemas: ReadonlyMap<string, SchemaCheck> = new Map()
  #index = new CaptureIndex(this.#schemas)
  #shown = new FilteredRows(this.#index.rows, undefined)
  #matches: ReturnType<typeof parseFilter> | undefined
  #bytes: CaptureBytes = NOTHING
  #loads = 0
  #reported = 0
  #isFiltering = false
  #state = { phase: 'empty' as CaptureState['phase'], name: '', read: 0, total: 0, problem: '' }

  /** `pause` resolves when other events were handled. */
  constructor(report: (state: CaptureState) => void, pause: () => Promise<void>) {
    this.#report = report
    this.#pause = pause
  }

  /** Reads a capture, instead of the one before. Resolves when it is read, or replaced by another one. */
  async load(file: CaptureFile): Promise<void> {
    const load = ++this.#loads
    const isCurrent = () => load === this.#loads
    this.#schemas = this.#schemas.size > 0 ? this.#schemas : await loadSchemaChecks()
    if (!isCurrent()) return
    this.#bytes = file
    this.#index = new CaptureIndex(this.#schemas)
    this.#shown = new FilteredRows(this.#index.rows, this.#matches)
    this.#state = { phase: 'loading', name: file.name, read: 0, total: file.size, problem: '' }
    this.report()
    try {
      await this.#read(file, isCurrent)
      if (!isCurrent()) return
      this.#index.end()
      await this.#finishFilter()
      this.#state.phase = 'ready'
    } catch (error) {
      if (!isCurrent()) return
      this.fail(error)
    }
    this.report()
  }

  /** What was read stays. */
  fail(error: unknown): void {
    const message = error instanceof Error ? error.message : String(error)
    const isCapture = this.#index.header !== undefined
    this.#state.phase = isCapture ? 'ready' : 'failed'
    this.#state.problem =
      error instanceof SyntaxError ? `This file cannot be shown: ${message}` : message
    this.report()
  }

  async #read(file: CaptureFile, isCurrent: () => boolean): Promise<void> {
    let paused = Date.now()
    for await (const bytes of file.pieces()) {
      if (!isCurrent()) return
      this.#state.phase = bytes.length === 0 ? 'following' : this.#state.phase
      for (let at = 0; at < bytes.length; at += PIECE) {
        const piece = bytes.subarray(at, at + PIECE)
        this.#index.push(piece)
        this.#state.read += piece.length
        this.#state.total = Math.max(file.size, this.#state.read)
        this.#shown.check(Infinity)
        this.#reportSometimes()
        if (Date.now() - paused < BUSY) continue
        await this.#pause()
        if (!isCurrent()) return
        paused = Date.now()
      }
      if (bytes.length === 0) this.report()
    }
  }

  #reportSometimes(): void {
    const now = Date.now()
    if (now - this.#reported >= REPORT) this.report()
  }

  report(): void {
    const { phase, name, read, total, problem } = this.#state
    const { rows, findings, header, handshakes, unreadable, hasExited } = this.#index
    this.#reported = Date.now()
    this.#report({
      phase,
      name,
      startedAt: Date.parse(header?.startedAt ?? ''),
      by: String(header?.by ?? ''),
      bytesRead: read,
      bytesTotal: total,
      rows: rows.length,
      shown: this.#shown.length,
      isFiltering: this.#isFiltering,
      findings: { ...findings.counts },
      findingsKept: findings.length,
      handshakes: handshakes.length,
      ...timeRange(rows),
      hasExited,
      unreadable,
      textsLost: rows.strings.lost,
      problem,
    })
  }

  rows(from: number, to: number): RowSummary[] {
    const last = Math.min(to, from + MAX_ROWS, this.#shown.length)
    const found: RowSummary[] = []
    for (let at = Math.max(0, from); at < last; at++)
      found.push(this.#index.rows.summary(this.#shown.at(at)))
    return found
  }

  filter(text: string): string {
    try {
      this.#matches = text.trim() === '' ? undefined : parseFilter(text)
    } catch (error) {
      if (error instanceof SyntaxError) return error.message
      throw error
    }
    this.#shown = new FilteredRows(this.#index.rows, this.#matches)
    void this.#finishFilter()
    return ''
  }

  /** Checks the rows so far in parts. */
  async #finishFilter(): Promise<void> {
    const shown = this.#shown
    this.#isFiltering = true
    while (shown === this.#shown && !shown.isComplete) {
      shown.check(FILTER_PART)
      this.#reportSometimes()
      await this.#pause()
    }
    if (shown !== this.#shown) return
    this.#isFiltering = false
    this.report()
  }

  positionOf(row: number): number {
    return this.#shown.positionOf(row)
  }

  async frame(row: number): Promise<FrameDetail | undefined> {
    if (row < 0 || row >= this.#index.rows.length) return undefined
    return await frameDetail(this.#index, row, this.#bytes)
  }

  timeline(from: number, to: number, parts: number): Timeline {
    return timelineOf(this.#index.rows, from, to, Math.max(1, Math.min(parts, 10_000)))
  }

  latency(): LatencyRow[] {
    return latencyTable(this.#index.rows)
  }

  points(method: string, target: string | undefined): LatencyPoints {
    return latencyPoints(this.#index.rows, method, target)
  }

  findings(from: number, to: number): FindingSummary[] {
    const { findings } = this.#index
    const last = Math.min(to, from + MAX_ROWS, findings.length)
    const found: FindingSummary[] = []
    for (let at = Math.max(0, from); at < last; at++) found.push(findings.at(at))
    return found
  }

  nearFinding(row: number, step: 1 | -1): FindingSummary | undefined {
    return this.#index.findings.near(row, step)
  }

  session(): Promise<SessionFacts[]> {
    return sessionFacts(this.#index, this.#bytes)
  }
}
