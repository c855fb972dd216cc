import { type RuleId, RULES, type Severity, clauseUrl } from '../capture/rules.js'
import { VERSION } from '../version.js'
import { type Item, bySeverity } from './report.js'

const LEVELS: Readonly<Record<Severity, string>> = {
  error: 'error',
  warning: 'warning',
  info: 'note',
}
const FALLBACK_URL = 'https://modelcontextprotocol.io/specification'

/** Where a finding is in the file of a capture. */
export interface Line {
  /** From 1. */
  number: number
  /** The bytes of the line, without the newline. */
  offset: number
  length: number
}

/** Where the first byte of a finding was recorded; undefined if that is not known. */
export type LineOf = (item: Item) => Line | undefined

/** A report in SARIF 2.1.0. The most severe findings come first. */
export function sarif(items: readonly Item[], lineOf: LineOf): object {
  const sorted = bySeverity(items)
  const ids = [...new Set(sorted.map(({ finding }) => finding.rule))]
  return {
    $schema: 'https://json.schemastore.org/sarif-2.1.0.json',
    version: '2.1.0',
    runs: [
      {
        tool: {
          driver: {
            name: 'ccmcp check',
            version: VERSION,
            rules: ids.map(ruleOf),
          },
        },
        columnKind: 'utf16CodeUnits',
        results: sorted.map((item) => resultOf(item, ids.indexOf(item.finding.rule), lineOf(item))),
      },
    ],
  }
}

function ruleOf(id: RuleId): object {
  const { severity, why, fix } = RULES[id]
  return {
    id,
    shortDescription: { text: why },
    help: { text: fix },
    helpUri: clauseUrl(id) || FALLBACK_URL,
    defaultConfiguration: { level: LEVELS[severity] },
  }
}

function resultOf(item: Item, ruleIndex: number, line: Line | undefined): object {
  const { finding, row, probe, capture, fingerprint, count } = item
  const { rule, severity, detail, dir, start, end, clause } = finding
  const { why, fix } = RULES[rule]
  const text = `${why} ${detail === '' ? '' : `Found: ${detail}. `}${fix}`
  const { method, target, id, revision } = row
  return {
    ruleId: rule,
    ruleIndex,
    level: LEVELS[severity],
    message: { text: text.toWellFormed() },
    locations: locationsOf(probe, capture, line),
    partialFingerprints: { 'ccmcpFinding/v1': fingerprint },
    occurrenceCount: count,
    properties: {
      direction: dir,
      startByte: start,
      endByte: end,
      clause,
      method,
      target,
      id,
      revision,
    },
  }
}

function locationsOf(
  probe: string | undefined,
  capture: string | undefined,
  line: Line | undefined,
): object[] {
  const logical =
    probe === undefined ? {} : { logicalLocations: [{ name: probe, kind: 'function' }] }
  if (capture === undefined) return probe === undefined ? [] : [logical]
  const region =
    line === undefined
      ? {}
      : {
          region: {
            startLine: line.number,
            endLine: line.number,
            byteOffset: line.offset,
            byteLength: line.length,
          },
        }
  const uri = encodeURI(capture.replaceAll('\\', '/')).replaceAll('#', '%23').replaceAll('?', '%3F')
  return [{ physicalLocation: { artifactLocation: { uri }, ...region }, ...logical }]
}
