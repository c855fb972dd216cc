import { Analysis, type Row } from '../capture/analysis.js'
import type { Finding } from '../capture/findings.js'
import { RULES, SEVERITIES, type Severity } from '../capture/rules.js'
import { loadSchemaChecks } from '../capture/schema-check.js'
import { CaptureSource } from './capture-source.js'
import { type Command, HELP } from './command.js'
import { type Arguments, CommandError } from './options.js'
import { print, printJson, warn } from './print.js'
import { findingPieces, rowPieces } from './rows.js'

/** Findings that are printed; all are counted. */
const MAX_FINDINGS = 5000

export const check: Command = {
  usage: 'check CAPTURE [options]',
  description: 'Reports what is wrong in a capture of "ccmcp tap".',
  notes:
    'Exit codes: 0 no finding of that severity, 1 findings, 2 an invalid command line or no capture.',
  options: {
    format: { value: ['text', 'json'], description: 'format of the report (default text)' },
    'fail-on': {
      value: SEVERITIES,
      description: 'lowest severity that makes the check fail (default error)',
    },
    ...HELP,
  },
  positionals: [1, 1],
  run: runCheck,
}

interface Report {
  capture: string
  /** Whether the capture has the exit of the server. */
  complete: boolean
  counts: Record<Severity, number>
  found: { row: Row; finding: Finding }[]
  startedAt: number
}

async function runCheck({ values, positionals: [path = ''] }: Arguments): Promise<void> {
  const failOn = (values.get('fail-on') ?? 'error') as Severity // checked against the option's values
  const report = await reportOn(path)
  if (values.get('format') === 'json') printJson(jsonOf(report))
  else printText(report)
  if (!report.complete)
    warn('the capture has no end: it is still being written, or its writer was killed')
  const failing = SEVERITIES.slice(SEVERITIES.indexOf(failOn))
  const count = failing.reduce((sum, severity) => sum + report.counts[severity], 0)
  if (count > 0)
    throw new CommandError(
      1,
      `${path}: ${count} ${count === 1 ? 'finding' : 'findings'} of severity ${failOn}${failOn === 'error' ? '' : ' or higher'}`,
    )
}

async function reportOn(path: string): Promise<Report> {
  const analysis = new Analysis(await loadSchemaChecks())
  const source = new CaptureSource(path)
  const counts = { info: 0, warning: 0, error: 0 }
  const found: Report['found'] = []
  const add = (rows: readonly Row[]) => {
    for (const row of rows)
      for (const finding of row.findings) {
        counts[finding.severity]++
        if (found.length < MAX_FINDINGS) found.push({ row, finding })
      }
  }
  for (const record of source.records()) {
    if (record === undefined) break
    add(analysis.add(record))
  }
  for (const record of source.end()) add(analysis.add(record))
  add(analysis.end())
  const { startedAt } = source
  return { capture: path, complete: analysis.hasExited, counts, found, startedAt }
}

function printText({ counts, found, startedAt }: Report): void {
  let last: Row | undefined
  for (const { row, finding } of found) {
    if (row !== last) print(...rowPieces(row, startedAt))
    last = row
    print(...findingPieces(finding))
  }
  const { error, warning, info } = counts
  print(`errors: ${error}, warnings: ${warning}, notes: ${info}\n`)
}

function jsonOf({ capture, complete, counts, found }: Report): object {
  return {
    capture,
    complete,
    counts,
    findings: found.map(({ row: { method, target, id, revision }, finding }) => {
      const { why, fix } = RULES[finding.rule]
      return { ...finding, why, fix, method, target, id, revision }
    }),
  }
}
