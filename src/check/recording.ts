import { Analysis, type Row } from '../capture/analysis.js'
import type { Definitions } from '../capture/definitions.js'
import { type Finding, FrameFindings } from '../capture/findings.js'
import { type Direction, contentOf } from '../capture/format.js'
import type { Span } from '../capture/frames.js'
import type { RuleId } from '../capture/rules.js'
import type { SchemaCheck } from '../capture/schema-check.js'
import type { Revision } from '../protocol/revisions/index.js'
import type { CaptureFile } from '../tap/capture-file.js'
import type { BodyPlace } from './http-capture.js'

/** A finding with the message that it is about. */
export interface Found {
  finding: Finding
  row: Pick<Row, 'method' | 'target' | 'id' | 'revision' | 'text'>
}

/** Findings of a connection that are kept, and after which it is ended. */
const MAX_FOUND = 1000
const MAX_COUNT = 5000
/** Requests whose durations are kept. */
const MAX_DURATIONS = 100_000

/** Durations of requests in milliseconds, by method and target. */
export class Durations {
  readonly groups = new Map<string, number[]>()
  #count = 0

  add({ kind, dir, method = '', target = '', duration }: Row): void {
    if (kind !== 'response' || dir !== 'out' || duration === undefined || method === '') return
    if (++this.#count > MAX_DURATIONS) return
    const name = `${method} ${target}`.trim()
    const group = this.groups.get(name) ?? []
    group.push(duration / 1e6)
    this.groups.set(name, group)
  }
}

/** What every probe of a target adds to. */
export interface RecordingOptions {
  schemas: ReadonlyMap<string, SchemaCheck>
  durations: Durations
  /** Where the bytes are written to, if they are to be kept. */
  file?: CaptureFile | undefined
}

/** The bytes of one connection of the check, in the same form as a capture, and what the rules find in them. */
export class Recording {
  readonly found: Found[] = []
  readonly #analysis: Analysis
  readonly #options: RecordingOptions
  readonly #origin = performance.now()
  readonly #offsets = { in: 0, out: 0 }
  /** Rules that are not reported: the probe breaks them on purpose, or checks them itself. */
  readonly #ignored = new Set<RuleId>(['unused-tools'])
  /** Over HTTP: where the bytes from a position on are in the capture. */
  readonly #places: Record<Direction, { start: number; body: BodyPlace }[]> = { in: [], out: [] }
  #count = 0
  #isEnded = false

  constructor(options: RecordingOptions) {
    this.#options = options
    this.#analysis = new Analysis(options.schemas)
  }

  /** Whether there are too many findings to continue. */
  get hasTooManyFindings(): boolean {
    return this.#count > MAX_COUNT
  }

  get definitions(): Definitions {
    return this.#analysis.definitions
  }

  ignore(...rules: readonly RuleId[]): void {
    for (const rule of rules) this.#ignored.add(rule)
  }

  /** Records bytes; returns where they are within their direction. */
  bytes(dir: Direction, bytes: Uint8Array): Span {
    const offset = this.#offsets[dir]
    this.#offsets[dir] += bytes.length
    this.#options.file?.bytes(dir, bytes)
    this.#take(
      this.#analysis.add({ type: 'chunk', dir, ns: this.#ns(), offset, ...contentOf(bytes) }),
    )
    return { start: offset, end: offset + bytes.length }
  }

  /** The position of the next byte. */
  position(dir: Direction): number {
    return this.#offsets[dir]
  }

  /** The bytes at `start` and those that follow are in the body of an HTTP message. */
  place(dir: Direction, start: number, body: BodyPlace): void {
    this.#places[dir].push({ start, body })
  }

  event(event: string, members: Readonly<Record<string, unknown>> = {}): void {
    this.#options.file?.event(event, members)
    this.#take(this.#analysis.add({ type: 'event', event, ns: this.#ns(), ...members }))
  }

  stderr(bytes: Uint8Array): void {
    this.#options.file?.bytes('stderr', bytes)
  }

  /** A finding of the probe itself, at bytes of one direction. */
  report(
    rule: RuleId,
    detail: string,
    { span = { start: 0, end: 0 }, dir = 'out', revision, method }: ReportPlace = {},
  ): void {
    const findings = new FrameFindings({ dir, text: undefined, body: span })
    findings.revision = revision
    findings.bytes(rule, span, detail)
    const row = { method, target: undefined, id: undefined, revision: revision?.id, text: '' }
    for (const finding of findings.list)
      this.found.push({ finding: this.#located(finding, span), row })
  }

  /** Nothing follows. */
  end(): void {
    if (this.#isEnded) return
    this.#isEnded = true
    this.#take(this.#analysis.end())
  }

  /** Over HTTP, positions become those within a body of the capture. */
  #located(finding: Finding, { start, end }: Span): Finding {
    // A finding about what was sent is about a whole message.
    const place = this.#places[finding.dir].findLast((each) =>
      finding.dir === 'in' ? each.start === start : each.start <= start,
    )
    if (place === undefined || start === end) return finding
    const { exchange, offset } = place.body
    const moved = offset - place.start
    return { ...finding, exchange, start: start + moved, end: end + moved }
  }

  #ns(): number {
    return Math.round((performance.now() - this.#origin) * 1e6)
  }

  #take(rows: readonly Row[]): void {
    for (const row of rows) {
      this.#options.durations.add(row)
      for (const finding of row.findings) {
        // What the check itself sends is not a fault of the server.
        if (finding.dir === 'in' || this.#ignored.has(finding.rule)) continue
        this.#count++
        if (this.found.length < MAX_FOUND)
          this.found.push({ finding: this.#located(finding, finding), row })
      }
    }
  }
}

export interface ReportPlace {
  span?: Span
  dir?: Direction
  revision?: Revision | undefined
  method?: string
}
