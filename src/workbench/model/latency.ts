import type { RowStore } from './row-store.js'

/** The durations of one method, or of one tool, prompt or resource. */
export interface LatencyRow {
  method: string
  target: string | undefined
  calls: number
  errors: number
  /** Nanoseconds. */
  p50: number
  p95: number
  p99: number
  max: number
}

/** The durations of some responses: parallel arrays, in the order of time. */
export interface LatencyPoints {
  /** Nanoseconds since the start of the capture, when the request was sent. */
  ns: Float64Array
  duration: Float64Array
  row: Uint32Array
}

/** Rows of the table: the most frequent ones. */
const MAX_ROWS = 500
/** Points that a plot shows. */
const MAX_POINTS = 4000

interface Group {
  first: number
  durations: number[]
  errors: number
}

/** A response whose request is known. */
function isTimed(rows: RowStore, index: number): boolean {
  return !Number.isNaN(rows.duration(index))
}

export function latencyTable(rows: RowStore): LatencyRow[] {
  const groups = new Map<string, Group>()
  for (let index = 0; index < rows.length; index++) {
    if (!isTimed(rows, index)) continue
    const key = `${rows.methodNumber(index)} ${rows.targetNumber(index)}`
    let group = groups.get(key)
    if (group === undefined) {
      group = { first: index, durations: [], errors: 0 }
      groups.set(key, group)
    }
    group.durations.push(rows.duration(index))
    if (rows.status(index) === 'error') group.errors++
  }
  return [...groups.values()]
    .toSorted((one, other) => other.durations.length - one.durations.length)
    .slice(0, MAX_ROWS)
    .map((group) => rowOf(rows, group))
}

function rowOf(rows: RowStore, { first, durations, errors }: Group): LatencyRow {
  const sorted = Float64Array.from(durations).toSorted()
  return {
    method: rows.method(first) ?? '',
    target: rows.target(first),
    calls: sorted.length,
    errors,
    p50: percentile(sorted, 0.5),
    p95: percentile(sorted, 0.95),
    p99: percentile(sorted, 0.99),
    max: sorted.at(-1) ?? 0,
  }
}

/** The smallest number that at least this part of the sorted numbers do not exceed (nearest rank). */
export function percentile(sorted: Float64Array, part: number): number {
  return sorted[Math.max(0, Math.ceil(part * sorted.length) - 1)] ?? 0
}

/**
 * The points of one row of the table. If there are too many, time is divided, and the lowest and the highest point of
 * each part are kept: outliers stay visible.
 */
export function latencyPoints(
  rows: RowStore,
  method: string,
  target: string | undefined,
): LatencyPoints {
  const found: number[] = []
  for (let index = 0; index < rows.length; index++)
    if (isTimed(rows, index) && rows.method(index) === method && rows.target(index) === target)
      found.push(index)
  const kept = found.length <= MAX_POINTS ? found : extremes(rows, found)
  const started = (index: number) => rows.ns.at(index) - rows.duration(index)
  const ordered = kept.toSorted((one, other) => started(one) - started(other))
  return {
    ns: Float64Array.from(ordered, started),
    duration: Float64Array.from(ordered, (index) => rows.duration(index)),
    row: Uint32Array.from(ordered),
  }
}

function extremes(rows: RowStore, found: readonly number[]): number[] {
  const size = Math.ceil((found.length * 2) / MAX_POINTS)
  const kept: number[] = []
  for (let at = 0; at < found.length; at += size) {
    const part = found.slice(at, at + size)
    const byDuration = part.toSorted((one, other) => rows.duration(one) - rows.duration(other))
    const [lowest] = byDuration
    const highest = byDuration.at(-1)
    if (lowest !== undefined) kept.push(lowest)
    if (highest !== undefined && highest !== lowest) kept.push(highest)
  }
  return kept
}
