import type { Attributes } from './attributes.js'
import { BOUNDARIES, GAUGES, type Gauge, HISTOGRAMS, type Histogram } from './conventions.js'
import type { Meter } from './measurements.js'

/** Maximum combinations of labels of one metric; all others are one series. */
const MAX_SERIES = 500
/** As OpenTelemetry marks what is beyond the limit. */
const OVERFLOW = 'otel_metric_overflow="true"'

interface Series {
  /** How many values are in each bucket; the last one is for values beyond all boundaries. */
  readonly counts: number[]
  sum: number
}

/** Keeps metrics in memory, and writes them in the text format of Prometheus. */
export class PrometheusMeter implements Meter {
  /** By their labels. */
  readonly #histograms = new Map<Histogram, Map<string, Series>>()
  readonly #gauges = new Map<Gauge, number>()

  record(histogram: Histogram, seconds: number, attributes: Attributes): void {
    const series = this.#seriesOf(histogram, labelsOf(attributes))
    const found = BOUNDARIES.findIndex((boundary) => seconds <= boundary)
    const bucket = found === -1 ? BOUNDARIES.length : found
    series.counts[bucket] = (series.counts[bucket] ?? 0) + 1
    series.sum += seconds
  }

  add(gauge: Gauge, difference: number): void {
    this.#gauges.set(gauge, (this.#gauges.get(gauge) ?? 0) + difference)
  }

  #seriesOf(histogram: Histogram, wanted: string): Series {
    let all = this.#histograms.get(histogram)
    if (all === undefined) {
      all = new Map()
      this.#histograms.set(histogram, all)
    }
    const labels = all.has(wanted) || all.size < MAX_SERIES ? wanted : OVERFLOW
    let series = all.get(labels)
    if (series === undefined) {
      series = { counts: Array.from({ length: BOUNDARIES.length + 1 }, () => 0), sum: 0 }
      all.set(labels, series)
    }
    return series
  }

  /** https://prometheus.io/docs/instrumenting/exposition_formats/#text-based-format */
  text(): string {
    const lines: string[] = []
    for (const [histogram, all] of this.#histograms) {
      const name = `${nameOf(histogram)}_seconds`
      lines.push(`# HELP ${name} ${HISTOGRAMS[histogram]}`, `# TYPE ${name} histogram`)
      for (const [labels, series] of all) writeSeries(lines, name, labels, series)
    }
    for (const [gauge, value] of this.#gauges) {
      const name = nameOf(gauge)
      lines.push(`# HELP ${name} ${GAUGES[gauge][1]}`, `# TYPE ${name} gauge`, `${name} ${value}`)
    }
    return lines.map((line) => `${line}\n`).join('')
  }
}

function writeSeries(lines: string[], name: string, labels: string, series: Series): void {
  const { counts, sum } = series
  let total = 0
  for (const [index, count] of counts.entries()) {
    total += count
    const boundary = BOUNDARIES[index] ?? '+Inf'
    const separator = labels === '' ? '' : ','
    lines.push(`${name}_bucket{${labels}${separator}le="${boundary}"} ${total}`)
  }
  lines.push(`${name}_sum{${labels}} ${sum}`, `${name}_count{${labels}} ${total}`)
}

function nameOf(name: string): string {
  return name.replaceAll('.', '_')
}

function labelsOf(attributes: Attributes): string {
  return Object.entries(attributes)
    .map(([name, value]) => `${nameOf(name)}="${escaped(String(value))}"`)
    .join(',')
}

function escaped(value: string): string {
  return value.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n')
}
