import { tokenEstimate } from '../capture/definition-checks.js'
import type { Definitions } from '../capture/definitions.js'
import type { Durations, Found } from './recording.js'
import { plainFinding } from './report.js'

export interface Budgets {
  /** Maximum bytes of the definitions of all tools. */
  toolsBytes: number | undefined
  /** Maximum 95th percentile of the durations of each method, in milliseconds. */
  p95: number | undefined
  /** Tools that must be listed. */
  tools: readonly string[]
}

/** `mayLackTools`: the list may be incomplete, so no tool is reported as missing. */
export function checkBudgets(
  { toolsBytes, p95, tools }: Budgets,
  definitions: Definitions | undefined,
  durations: Durations,
  mayLackTools = false,
): Found[] {
  const found: Found[] = []
  const listed = definitions?.listing('tools')
  for (const name of mayLackTools ? [] : tools)
    if (listed?.items.has(name) !== true) found.push(plainFinding('expected-tool', name))
  const bytes = listed?.bytes ?? 0
  if (toolsBytes !== undefined && bytes > toolsBytes)
    found.push(
      plainFinding(
        'tools-budget',
        `${bytes} bytes, more than ${toolsBytes}; ${tokenEstimate(bytes)}`,
      ),
    )
  for (const [name, values] of p95 === undefined ? [] : durations.groups) {
    const value = percentile(values)
    if (value > (p95 ?? 0))
      found.push(
        plainFinding(
          'latency-budget',
          `${name}: ${value.toFixed(1)} ms, more than ${p95} ms`,
          name,
        ),
      )
  }
  return found
}

/** The 95th percentile: the smallest value that at least 95 % of the values do not exceed. */
export function percentile(values: readonly number[]): number {
  const sorted = values.toSorted((one, other) => one - other)
  return sorted[Math.ceil(sorted.length * 0.95) - 1] ?? 0
}
