import type { Finding } from '../../capture/findings.js'
import { RULES, SEVERITIES, type RuleId, type Severity } from '../../capture/rules.js'
import { Column } from './columns.js'
import type { Strings } from './strings.js'

/** Findings that are kept; all are counted. */
const MAX_KEPT = 200_000

/** A finding as the page shows it. */
export interface FindingSummary {
  index: number
  row: number
  rule: RuleId
  severity: Severity
  clause: string
  start: number
  end: number
  detail: string
  why: string
  fix: string
}

/** The findings of a capture, in the order of their rows. */
export class FindingStore {
  readonly #strings: Strings
  readonly #row = Column.u32()
  readonly #rule = Column.u32()
  readonly #severity = Column.u8()
  readonly #clause = Column.u32()
  readonly #start = Column.f64()
  readonly #size = Column.f64()
  readonly #detail = Column.u32()
  readonly counts: Record<Severity, number> = { info: 0, warning: 0, error: 0 }

  constructor(strings: Strings) {
    this.#strings = strings
  }

  /** How many are kept. */
  get length(): number {
    return this.#row.length
  }

  add(row: number, { rule, severity, clause, start, end, detail }: Finding): void {
    this.counts[severity]++
    if (this.length >= MAX_KEPT) return
    this.#row.push(row)
    this.#rule.push(this.#strings.intern(rule))
    this.#severity.push(SEVERITIES.indexOf(severity))
    this.#clause.push(this.#strings.intern(clause))
    this.#start.push(start)
    this.#size.push(end - start)
    this.#detail.push(this.#strings.intern(detail))
  }

  at(index: number): FindingSummary {
    const rule = this.#strings.get(this.#rule.at(index)) as RuleId // as it was added
    const start = this.#start.at(index)
    return {
      index,
      row: this.#row.at(index),
      rule,
      severity: SEVERITIES[this.#severity.at(index)] ?? 'info',
      clause: this.#strings.get(this.#clause.at(index)),
      start,
      end: start + this.#size.at(index),
      detail: this.#strings.get(this.#detail.at(index)),
      why: RULES[rule].why,
      fix: RULES[rule].fix,
    }
  }

  ofRow(row: number): FindingSummary[] {
    const found: FindingSummary[] = []
    for (let index = this.#row.lowerBound(row); this.#row.at(index) === row; index++) {
      if (index >= this.length) break
      found.push(this.at(index))
    }
    return found
  }

  /** The first finding of a row after (or the last one before) a row; undefined if there is none. */
  near(row: number, step: 1 | -1): FindingSummary | undefined {
    const index = step === 1 ? this.#row.lowerBound(row + 1) : this.#row.lowerBound(row) - 1
    return index < 0 || index >= this.length ? undefined : this.at(index)
  }
}
