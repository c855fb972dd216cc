import { createHash } from 'node:crypto'
import type { Finding } from '../capture/findings.js'
import { type RuleId, RULES, SEVERITIES, type Severity, clauseUrl } from '../capture/rules.js'
import type { Found } from './recording.js'

/** Findings that are kept; all are counted. */
const MAX_ITEMS = 5000

/** A finding in a report. */
export interface Item extends Found {
  /** The probe, if the server was probed. */
  probe: string | undefined
  /** The file with the bytes, if there is one. */
  capture: string | undefined
  /** The same for the same fault, in every run. */
  fingerprint: string
  /** How often it was found. */
  count: number
}

export type Counts = Record<Severity, number>

/** Collects findings. Those of probes that have the same fingerprint are one. */
export class Items {
  readonly list: Item[] = []
  readonly counts: Counts = { info: 0, warning: 0, error: 0 }
  /** Findings of the baseline. */
  known = 0
  readonly #baseline: ReadonlySet<string>
  readonly #mergesEqual: boolean
  readonly #byFingerprint = new Map<string, Item>()

  constructor(baseline: ReadonlySet<string>, mergesEqual: boolean) {
    this.#baseline = baseline
    this.#mergesEqual = mergesEqual
  }

  add(found: Found, probe?: string, capture?: string): void {
    const fingerprint = fingerprintOf(found)
    const before = this.#byFingerprint.get(fingerprint)
    if (before !== undefined && this.#mergesEqual) {
      before.count++
      return
    }
    if (this.#baseline.has(fingerprint)) {
      this.known++
      return
    }
    this.counts[found.finding.severity]++
    if (this.list.length >= MAX_ITEMS) return
    const item = { ...found, probe, capture, fingerprint, count: 1 }
    this.#byFingerprint.set(fingerprint, item)
    this.list.push(item)
  }

  /** How many have this severity, or a higher one. */
  atLeast(severity: Severity): number {
    return SEVERITIES.slice(SEVERITIES.indexOf(severity)).reduce(
      (sum, each) => sum + this.counts[each],
      0,
    )
  }
}

/** A finding that is not about bytes, such as a budget. */
export function plainFinding(rule: RuleId, detail: string, method?: string): Found {
  const finding: Finding = {
    rule,
    severity: RULES[rule].severity,
    clause: clauseUrl(rule),
    dir: 'out',
    start: 0,
    end: 0,
    detail,
  }
  const row = { method, target: undefined, id: undefined, revision: undefined, text: '' }
  return { finding, row }
}

/** Without positions, ids, revisions and other numbers, which differ from run to run. */
function fingerprintOf({ finding: { rule, dir, detail }, row }: Found): string {
  const words = [detail, row.text].map((text) => text.slice(0, 300).replaceAll(/\d+/g, '#'))
  const parts = [rule, dir, row.method ?? '', row.target ?? '', ...words]
  return createHash('sha256').update(JSON.stringify(parts)).digest('hex').slice(0, 32)
}

/** Most severe first; otherwise in the order in which they were found. */
export function bySeverity(items: readonly Item[]): Item[] {
  const rank = ({ finding }: Item) => SEVERITIES.indexOf(finding.severity)
  return items.toSorted((one, other) => rank(other) - rank(one))
}
