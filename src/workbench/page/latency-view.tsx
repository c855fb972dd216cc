import { signal, useSignalEffect } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'
import uPlot from 'uplot'
import type { LatencyPoints, LatencyRow } from '../model/latency.js'
import { durationText, line } from './format.js'
import { applyFilter, capture, engine, select } from './state.js'
import { colorOf, colors } from './theme.js'

/** Milliseconds between questions while a capture is read. */
const REFRESH = 1000
const HEIGHT = 240

const table = signal<LatencyRow[]>([])
const chosen = signal<{ method: string; target: string | undefined } | undefined>(undefined)
const points = signal<LatencyPoints | undefined>(undefined)

/** How long each tool takes: percentiles, and every call over time. */
export function LatencyView() {
  useLatency()
  const current = table.value.find(isChosen) ?? table.value[0]
  if (current === undefined) return <p class="hint">No request was answered so far.</p>
  return (
    <div class="latency">
      <Plot row={current} />
      <div class="table-frame" tabIndex={0} role="region" aria-label="Latency by tool">
        <table>
          <thead>
            <tr>
              <th scope="col">Method or tool</th>
              <th scope="col">Calls</th>
              <th scope="col">Errors</th>
              <th scope="col">p50</th>
              <th scope="col">p95</th>
              <th scope="col">p99</th>
              <th scope="col">Max</th>
            </tr>
          </thead>
          <tbody>
            {table.value.map((row) => (
              <tr key={`${row.method} ${row.target}`} class={row === current ? 'is-active' : ''}>
                <th scope="row">
                  <button
                    type="button"
                    class="plain"
                    aria-pressed={row === current}
                    onClick={() => (chosen.value = { method: row.method, target: row.target })}
                    onDblClick={() => void applyFilter(filterFor(row))}
                    title="Show its calls; a double click filters the list"
                  >
                    {row.target === undefined ? (
                      line(row.method.slice(0, 100))
                    ) : (
                      <>
                        <strong>{line(row.target.slice(0, 100))}</strong>{' '}
                        <span class="muted">{line(row.method.slice(0, 100))}</span>
                      </>
                    )}
                  </button>
                </th>
                <td>{row.calls.toLocaleString('en')}</td>
                <td class={row.errors > 0 ? 'has-errors' : ''}>{row.errors}</td>
                <td>{durationText(row.p50)}</td>
                <td>{durationText(row.p95)}</td>
                <td>{durationText(row.p99)}</td>
                <td>{durationText(row.max)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </div>
  )
}

function isChosen({ method, target }: LatencyRow): boolean {
  return method === chosen.value?.method && target === chosen.value.target
}

/** A name with a space cannot be written in a filter: any character stands for it. */
function filterFor({ method, target }: LatencyRow): string {
  const term = (text: string) => text.replaceAll(/[\s,]+/g, '*')
  return `method:${term(method)}${target === undefined ? '' : ` tool:${term(target)}`}`
}

/** Keeps the table and the points up to date. */
function useLatency(): void {
  const timer = useRef<ReturnType<typeof setTimeout> | undefined>(undefined)
  useSignalEffect(() => {
    const { phase } = capture.value
    void chosen.value
    const isGrowing = phase === 'loading'
    if (isGrowing && timer.current !== undefined) return
    clearTimeout(timer.current)
    const run = () => {
      timer.current = undefined
      void refresh()
    }
    timer.current = setTimeout(run, isGrowing ? REFRESH : 0)
  })
  useEffect(() => () => clearTimeout(timer.current), [])
}

async function refresh(): Promise<void> {
  table.value = await engine.call('latency')
  const current = table.value.find(isChosen) ?? table.value[0]
  if (current !== undefined)
    points.value = await engine.call('points', current.method, current.target)
}

function Plot({ row }: { row: LatencyRow }) {
  const place = useRef<HTMLDivElement>(null)
  const { value: shown } = points
  const { value: version } = colors
  useEffect(() => {
    const element = place.current
    if (element === null || shown === undefined || shown.ns.length === 0) return undefined
    const plot = plotOf(element, row, shown)
    const observer = new ResizeObserver(() =>
      plot.setSize({ width: element.clientWidth, height: HEIGHT }),
    )
    observer.observe(element)
    return () => {
      observer.disconnect()
      plot.destroy()
    }
  }, [shown, version, row.method, row.target, row.p50, row.p95, row.p99])
  const name = line((row.target ?? row.method).slice(0, 100))
  return (
    <figure class="plot">
      <figcaption>
        <strong>{name}</strong>
        <span class="key-p50">p50 {durationText(row.p50)}</span>
        <span class="key-p95">p95 {durationText(row.p95)}</span>
        <span class="key-p99">p99 {durationText(row.p99)}</span>
      </figcaption>
      <div
        ref={place}
        class="plot-area"
        role="img"
        aria-label={`Durations of ${name}: ${row.calls} calls, p50 ${durationText(row.p50)}, p95 ${durationText(row.p95)}, p99 ${durationText(row.p99)}`}
      />
    </figure>
  )
}

function plotOf(element: HTMLElement, row: LatencyRow, shown: LatencyPoints): uPlot {
  const level = (value: number) => Array.from(shown.ns, () => value)
  const seconds = Array.from(shown.ns, (ns) => ns / 1e9)
  const line = (name: string) => ({
    stroke: colorOf(name),
    width: 1,
    dash: [4, 3],
    points: { show: false },
  })
  const axis = {
    stroke: colorOf('muted'),
    grid: { stroke: colorOf('line'), width: 0.5 },
    ticks: { stroke: colorOf('line'), width: 0.5 },
    font: '11px system-ui, sans-serif',
  }
  const plot = new uPlot(
    {
      width: element.clientWidth,
      height: HEIGHT,
      legend: { show: false },
      cursor: { y: false, drag: { x: true, y: false } },
      scales: { x: { time: false }, y: { distr: 3 } },
      axes: [
        { ...axis, values: (_, values) => values.map((value) => `${value} s`) },
        {
          ...axis,
          size: 64,
          values: (_, values) => values.map((value) => (value === null ? '' : durationText(value))),
        },
      ],
      series: [
        {},
        {
          stroke: colorOf('accent'),
          paths: () => null,
          points: { show: true, size: 5, width: 0, fill: colorOf('accent') },
        },
        line('p50'),
        line('p95'),
        line('p99'),
      ],
    },
    [
      seconds,
      // The scale is logarithmic: 0 cannot be drawn.
      Array.from(shown.duration, (ns) => Math.max(ns, 1000)),
      level(row.p50),
      level(row.p95),
      level(row.p99),
    ],
    element,
  )
  plot.over.addEventListener('click', () => {
    const index = plot.cursor.idx
    const found = typeof index === 'number' ? shown.row[index] : undefined
    if (found !== undefined) void select(found)
  })
  return plot
}
