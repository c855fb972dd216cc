import type { Row } from '../../capture/analysis.js'
import type { FilterRow } from '../../capture/filter.js'
import type { Finding } from '../../capture/findings.js'
import type { Direction } from '../../capture/format.js'
import type { RuleId, Severity } from '../../capture/rules.js'
import { Column } from './columns.js'
import { LANES, laneOf } from './lanes.js'
import { Strings } from './strings.js'

/** What a list shows of a row. */
export interface RowSummary {
  index: number
  kind: Row['kind']
  dir: Direction | undefined
  ns: number
  /** The byte range of the frame. */
  start: number
  end: number
  revision: string | undefined
  method: string | undefined
  target: string | undefined
  id: string | undefined
  status: Row['status']
  duration: number | undefined
  progress: number
  text: string
  /** The most severe finding. */
  severity: Severity | undefined
  /** Of a request: its response; of a response or notification: its request. */
  peer: number | undefined
  /** Over HTTP: the number of the request and response, and how the body is encoded. */
  exchange: number | undefined
  coding: string | undefined
}

type RuleFound = Pick<Finding, 'rule' | 'severity'>

const DIRECTIONS = [undefined, 'in', 'out'] as const
const NO_ROW = 0xffffffff

/** The rows of a capture as numbers: about 80 bytes a row, besides its texts. */
export class RowStore {
  readonly strings = new Strings()
  readonly ns = Column.f64()
  readonly #start = Column.f64()
  readonly #size = Column.f64()
  readonly #duration = Column.f64()
  readonly #kind = Column.u16()
  readonly #status = Column.u16()
  readonly #dir = Column.u8()
  readonly #lane = Column.u8()
  readonly #revision = Column.u16()
  readonly #method = Column.u32()
  readonly #target = Column.u32()
  readonly #id = Column.u32()
  readonly #text = Column.u32()
  readonly #progress = Column.u16()
  readonly #found = Column.u32()
  readonly #peer = Column.u32()
  /** One more than the number of the exchange; 0 if there is none. */
  readonly #exchange = Column.u32()
  readonly #coding = Column.u16()
  /** Where its records are in the file. */
  readonly #recordStart = Column.f64()
  readonly #recordSize = Column.f64()
  /** The findings of a row by the number of their text. */
  readonly #foundRules = new Map<number, readonly RuleFound[]>([[0, []]])

  get length(): number {
    return this.ns.length
  }

  /** Adds a row whose records are at a place in the file; returns its index. */
  add(row: Row, recordStart: number, recordEnd: number): number {
    const { strings } = this
    const index = this.length
    this.ns.push(row.ns)
    this.#start.push(row.start)
    this.#size.push(row.end - row.start)
    this.#duration.push(row.duration ?? Number.NaN)
    this.#kind.push(strings.intern(row.kind))
    this.#status.push(strings.intern(row.status ?? ''))
    this.#dir.push(DIRECTIONS.indexOf(row.dir))
    const lane = laneOf(row)
    this.#lane.push(lane === undefined ? LANES.length : LANES.indexOf(lane))
    this.#revision.push(strings.intern(row.revision ?? ''))
    this.#method.push(strings.intern(row.method ?? ''))
    this.#target.push(strings.intern(row.target ?? ''))
    this.#id.push(strings.add(row.id ?? ''))
    this.#text.push(strings.add(row.text))
    this.#progress.push(Math.min(row.progress, 0xffff))
    this.#found.push(this.#rulesOf(row.findings))
    this.#peer.push(NO_ROW)
    this.#exchange.push(row.exchange === undefined ? 0 : row.exchange + 1)
    this.#coding.push(strings.intern(row.coding ?? ''))
    this.#recordStart.push(recordStart)
    this.#recordSize.push(recordEnd - recordStart)
    return index
  }

  #rulesOf(findings: readonly Finding[]): number {
    if (findings.length === 0) return 0
    const rules = new Map(findings.map(({ rule, severity }) => [rule as string, severity]))
    const reference = this.strings.intern(JSON.stringify([...rules]))
    if (!this.#foundRules.has(reference))
      this.#foundRules.set(
        reference,
        [...rules].map(([rule, severity]) => ({ rule: rule as RuleId, severity })), // as they came
      )
    return reference
  }

  peer(index: number): number | undefined {
    const peer = this.#peer.at(index)
    return peer === NO_ROW ? undefined : peer
  }

  setPeer(index: number, peer: number): void {
    this.#peer.set(index, peer)
  }

  recordsOf(index: number): { start: number; end: number } {
    const start = this.#recordStart.at(index)
    return { start, end: start + this.#recordSize.at(index) }
  }

  /** The number of the lane; `LANES.length` if it has none. */
  lane(index: number): number {
    return this.#lane.at(index)
  }

  /** Nanoseconds; NaN if the row has none. */
  duration(index: number): number {
    return this.#duration.at(index)
  }

  dir(index: number): Direction | undefined {
    return DIRECTIONS[this.#dir.at(index)]
  }

  kind(index: number): Row['kind'] {
    return this.strings.get(this.#kind.at(index)) as Row['kind'] // as it was added
  }

  status(index: number): Row['status'] {
    return optional(this.strings.get(this.#status.at(index))) as Row['status'] // as it was added
  }

  method(index: number): string | undefined {
    return optional(this.strings.get(this.#method.at(index)))
  }

  target(index: number): string | undefined {
    return optional(this.strings.get(this.#target.at(index)))
  }

  /** Numbers that are the same for the same text. */
  numberOf(text: string): number {
    return this.strings.intern(text)
  }

  kindNumber(index: number): number {
    return this.#kind.at(index)
  }

  statusNumber(index: number): number {
    return this.#status.at(index)
  }

  methodNumber(index: number): number {
    return this.#method.at(index)
  }

  targetNumber(index: number): number {
    return this.#target.at(index)
  }

  start(index: number): number {
    return this.#start.at(index)
  }

  end(index: number): number {
    return this.#start.at(index) + this.#size.at(index)
  }

  revision(index: number): string | undefined {
    return optional(this.strings.get(this.#revision.at(index)))
  }

  id(index: number): string | undefined {
    return optional(this.strings.get(this.#id.at(index)))
  }

  text(index: number): string {
    return this.strings.get(this.#text.at(index))
  }

  rules(index: number): readonly RuleFound[] {
    return this.#foundRules.get(this.#found.at(index)) ?? []
  }

  summary(index: number): RowSummary {
    const duration = this.duration(index)
    return {
      index,
      kind: this.kind(index),
      dir: this.dir(index),
      ns: this.ns.at(index),
      start: this.start(index),
      end: this.end(index),
      revision: this.revision(index),
      method: this.method(index),
      target: this.target(index),
      id: this.id(index),
      status: this.status(index),
      duration: Number.isNaN(duration) ? undefined : duration,
      progress: this.#progress.at(index),
      text: this.text(index),
      severity: worst(this.rules(index)),
      peer: this.peer(index),
      exchange: this.#exchange.at(index) === 0 ? undefined : this.#exchange.at(index) - 1,
      coding: optional(this.strings.get(this.#coding.at(index))),
    }
  }
}

const optional = (text: string): string | undefined => (text === '' ? undefined : text)

function worst(found: readonly RuleFound[]): Severity | undefined {
  const has = (wanted: Severity) => found.some(({ severity }) => severity === wanted)
  if (has('error')) return 'error'
  if (has('warning')) return 'warning'
  return has('info') ? 'info' : undefined
}

/** A row as filters read it. There is one for all rows; texts are decoded when they are read. */
export class StoredRow implements FilterRow {
  readonly #store: RowStore
  index = 0

  constructor(store: RowStore) {
    this.#store = store
  }

  get kind() {
    return this.#store.kind(this.index)
  }
  get dir() {
    return this.#store.dir(this.index)
  }
  get start() {
    return this.#store.start(this.index)
  }
  get end() {
    return this.#store.end(this.index)
  }
  get revision() {
    return this.#store.revision(this.index)
  }
  get method() {
    return this.#store.method(this.index)
  }
  get target() {
    return this.#store.target(this.index)
  }
  get id() {
    return this.#store.id(this.index)
  }
  get status() {
    return this.#store.status(this.index)
  }
  get duration() {
    const duration = this.#store.duration(this.index)
    return Number.isNaN(duration) ? undefined : duration
  }
  get text() {
    return this.#store.text(this.index)
  }
  get findings() {
    return this.#store.rules(this.index)
  }
}
