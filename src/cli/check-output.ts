import { percentile } from '../check/budgets.js'
import type { LiveReport, ProbeResult } from '../check/live.js'
import type { Durations } from '../check/recording.js'
import { type Item, type Items, bySeverity } from '../check/report.js'
import type { Row } from '../capture/analysis.js'
import { tokenEstimate } from '../capture/definition-checks.js'
import type { Definitions } from '../capture/definitions.js'
import { RULES } from '../capture/rules.js'
import { escaped, print, styled } from './print.js'
import { findingPieces, rowPieces } from './rows.js'

interface Output {
  label: string
  items: Items
  definitions: Definitions | undefined
  durations: Durations
  capture?: { isComplete: boolean }
  live?: LiveReport
}

const NAME_WIDTH = 44

/** One line for a probe. */
export function printProbe({ name, status, detail, milliseconds, found }: ProbeResult): void {
  const outcome =
    found.length === 0 ? 'ok' : `${found.length} ${found.length === 1 ? 'finding' : 'findings'}`
  print(
    `${name.padEnd(NAME_WIDTH)} `,
    styled(
      found.length === 0 ? 'detail' : 'warning',
      `${status === 'refused' ? 'refused' : outcome}, ${Math.round(milliseconds)} ms`,
    ),
    detail === '' ? '\n' : styled('detail', ` (${oneLine(detail)})\n`),
  )
}

/** The findings of a capture below their messages; those of a server by severity, with the probe. */
export function printItems(items: readonly Item[], startedAt: number | undefined): void {
  let last: unknown
  for (const item of startedAt === undefined ? bySeverity(items) : items) {
    const { row, finding, probe, capture, count } = item
    const isRow = startedAt !== undefined && 'kind' in row
    if (isRow && row !== last) print(...rowPieces(row as Row, startedAt)) // as `checkCapture` adds them
    last = row
    print(...findingPieces(finding))
    const place = [probe, count > 1 ? `${count} times` : undefined, capture]
      .filter((each) => each !== undefined)
      .join(', ')
    if (probe !== undefined) print(styled('detail', `      in: ${oneLine(place)}\n`))
  }
}

/** What is known about a server. */
export function printFacts({ definitions, live, durations }: Output): void {
  const tools = definitions?.listing('tools')
  if (tools !== undefined)
    print(`tools: ${tools.items.size}, ${tools.bytes} bytes, ${tokenEstimate(tools.bytes)}\n`)
  if (live === undefined) return
  const { server, revisions, startup, transport } = live
  const name =
    server === undefined ? '' : `server: ${oneLine(`${server.name} ${server.version}`)}, `
  const transportText = transport === 'sse' ? ', transport: HTTP+SSE (deprecated)' : ''
  if (revisions.length > 0) print(`${name}revisions: ${revisions.join(', ')}${transportText}\n`)
  const slowest = [...durations.groups]
    .map(([group, values]) => ({ group, p95: percentile(values) }))
    .toSorted((one, other) => other.p95 - one.p95)
  if (startup !== undefined)
    print(
      `start-up: ${Math.round(startup)} ms${slowest[0] === undefined ? '' : `, slowest method: ${oneLine(slowest[0].group)}, 95th percentile ${slowest[0].p95.toFixed(1)} ms`}\n`,
    )
}

function oneLine(text: string): string {
  return escaped(text).replaceAll('\n', '\\n').replaceAll('\t', '\\t')
}

/** The report as JSON. */
export function jsonOf({ label, items, definitions, durations, capture, live }: Output): object {
  const tools = definitions?.listing('tools')
  const about =
    live === undefined
      ? { capture: label, complete: capture?.isComplete }
      : {
          server: label,
          serverInfo: live.server,
          revisions: live.revisions,
          transport: live.transport,
          startupMilliseconds: live.startup,
          probes: live.probes.map(({ name, status, detail, milliseconds, capture: file }) => ({
            name,
            status,
            detail,
            milliseconds,
            capture: file,
          })),
        }
  return {
    ...about,
    counts: items.counts,
    known: items.known,
    tools:
      tools === undefined
        ? undefined
        : { count: tools.items.size, bytes: tools.bytes, estimate: tokenEstimate(tools.bytes) },
    percentiles: [...durations.groups].map(([name, values]) => ({
      name,
      count: values.length,
      p95Milliseconds: percentile(values),
    })),
    findings: items.list.map(({ row, finding, probe, fingerprint, count }) => {
      const { why, fix } = RULES[finding.rule]
      const { method, target, id, revision } = row
      return { ...finding, why, fix, method, target, id, revision, probe, fingerprint, count }
    }),
  }
}
