import { signal, useSignalEffect } from '@preact/signals'
import type { JSX } from 'preact'
import type { RowSummary } from '../model/row-store.js'
import { clockText, durationText, line, sinceText, sizeText } from './format.js'
import { ListCache } from './row-cache.js'
import { capture, engine, listVersion, panel, select, selected, tail } from './state.js'
import { VirtualList } from './virtual-list.js'

const ROW_HEIGHT = 24
const ARROWS = { in: '→', out: '←' } as const
const DIRECTION_NAMES = { in: 'to the server', out: 'to the client' } as const
const NO_NAME: ReadonlySet<string> = new Set(['blank', 'gap', 'invalid'])

const rows = new ListCache((from, to) => engine.call('rows', from, to))
const times = signal<'clock' | 'since'>('clock')

/** The rows of the capture that match the filter. */
export function RowList() {
  const { shown, phase } = capture.value
  const { value: current } = selected
  useSignalEffect(() => {
    if (listVersion.value >= 0) rows.clear()
  })
  void rows.version.value
  const isGrowing = phase === 'loading' || phase === 'following'
  const onWindow = (first: number, last: number) => rows.request(first, last, isStale(last))
  return (
    <VirtualList
      id="rows"
      label="Messages"
      role="grid"
      class="rows"
      count={shown}
      rowHeight={ROW_HEIGHT}
      active={current?.position}
      reveal={current}
      tail={tail.value}
      header={<Header />}
      onWindow={onWindow}
      onLeaveTail={() => (tail.value = false)}
      onMove={(position) => void moveTo(position)}
      onKey={onKey}
      row={(position, id) => {
        const row = rows.at(position)
        const isSelected = row !== undefined && row.index === current?.row
        return rendered(position, id, row, isSelected, isGrowing)
      }}
    />
  )
}

interface Rendered {
  row: RowSummary | undefined
  key: string
  element: JSX.Element
}
let elements = new Map<number, Rendered>()
const MAX_ELEMENTS = 500

/** The element of a row. It is the same as long as the row is, so that scrolling renders only rows that are new. */
function rendered(
  position: number,
  id: string,
  row: RowSummary | undefined,
  isSelected: boolean,
  isGrowing: boolean,
): JSX.Element {
  const key = `${isSelected} ${isGrowing} ${times.value} ${capture.value.startedAt}`
  const before = elements.get(position)
  if (before !== undefined && before.row === row && before.key === key) return before.element
  const element = (
    <Row id={id} position={position} row={row} isSelected={isSelected} isGrowing={isGrowing} />
  )
  if (elements.size >= MAX_ELEMENTS) elements = new Map()
  elements.set(position, { row, key, element })
  return element
}

/** Of a capture that grows, rows that were read before they were complete are asked for again. */
let rowsSeen = 0
function isStale(last: number): boolean {
  const { rows: count, shown } = capture.value
  const isNew = count !== rowsSeen
  rowsSeen = count
  return isNew && last >= shown - 1000
}

async function moveTo(position: number): Promise<void> {
  tail.value = false
  const known = rows.at(position) ?? (await engine.call('rows', position, position + 1))[0]
  if (known !== undefined) await select(known.index, undefined, position)
}

function onKey(event: KeyboardEvent): void {
  if (event.key !== 'Enter' || selected.value === undefined) return
  event.preventDefault()
  panel.value = 'message'
  requestAnimationFrame(() => document.getElementById('tree')?.focus())
}

function Header() {
  const isClock = times.value === 'clock'
  return (
    <div class="row head" role="row" aria-rowindex={1}>
      <span role="columnheader" class="c-time">
        <button
          type="button"
          class="plain"
          title={isClock ? 'Show seconds since the start' : 'Show the time of day'}
          onClick={() => (times.value = isClock ? 'since' : 'clock')}
        >
          {isClock ? 'Time' : 'Seconds'}
        </button>
      </span>
      <span role="columnheader" class="c-dir" aria-label="Direction" />
      <span role="columnheader" class="c-name">
        Method
      </span>
      <span role="columnheader" class="c-id">
        Id
      </span>
      <span role="columnheader" class="c-status">
        Status
      </span>
      <span role="columnheader" class="c-dur">
        Duration
      </span>
      <span role="columnheader" class="c-size">
        Size
      </span>
      <span role="columnheader" class="c-rev">
        Revision
      </span>
      <span role="columnheader" class="c-text">
        Text
      </span>
    </div>
  )
}

interface RowProperties {
  id: string
  position: number
  row: RowSummary | undefined
  isSelected: boolean
  isGrowing: boolean
}

function Row({ id, position, row, isSelected, isGrowing }: RowProperties) {
  if (row === undefined) return waitingRow(id, position)
  const { dir, kind, severity, peer } = row
  const isPending = kind === 'request' && peer === undefined && isGrowing
  return (
    <div
      id={id}
      role="row"
      aria-rowindex={position + 2}
      aria-selected={isSelected}
      class={`row kind-${kind} dir-${dir ?? 'none'} found-${severity ?? 'none'}`}
      onClick={() => {
        tail.value = false
        void select(row.index, undefined, position)
      }}
    >
      <span role="gridcell" class="c-time">
        <Time row={row} />
      </span>
      <span
        role="gridcell"
        class="c-dir"
        aria-label={dir === undefined ? 'event' : DIRECTION_NAMES[dir]}
      >
        {dir === undefined ? '·' : ARROWS[dir]}
      </span>
      <span role="gridcell" class="c-name">
        {severity === undefined ? undefined : <Mark severity={severity} />}
        <Name row={row} />
      </span>
      <span role="gridcell" class="c-id">
        {line(row.id ?? '')}
      </span>
      <span role="gridcell" class={`c-status status-${row.status ?? 'none'}`}>
        {isPending ? <span class="pending">pending</span> : statusText(row.status)}
      </span>
      <span role="gridcell" class="c-dur">
        {row.duration === undefined ? '' : durationText(row.duration)}
      </span>
      <span role="gridcell" class="c-size">
        {dir === undefined || kind === 'http' ? '' : sizeText(row.end - row.start)}
      </span>
      <span role="gridcell" class="c-rev">
        {row.revision ?? ''}
      </span>
      <span role="gridcell" class="c-text">
        {`${row.progress > 0 ? `${row.progress} progress ` : ''}${line(row.text.slice(0, 200))}`}
      </span>
    </div>
  )
}

const CELLS = ['time', 'dir', 'name', 'id', 'status', 'dur', 'size', 'rev', 'text'] as const

/** A row that is asked for. It has the same elements, which are kept while the list is scrolled. */
function waitingRow(id: string, position: number): JSX.Element {
  return (
    <div id={id} role="row" aria-rowindex={position + 2} class="row waiting" aria-busy={true}>
      {CELLS.map((name) => (
        <span role="gridcell" class={`c-${name}`} />
      ))}
    </div>
  )
}

/** If there is little room, the hour is left out. */
function Time({ row: { ns } }: { row: RowSummary }) {
  if (times.value === 'since') return <>{sinceText(ns)}</>
  const clock = clockText(capture.value.startedAt + ns / 1e6)
  return (
    <>
      <span class="hour">{clock.slice(0, 3)}</span>
      {clock.slice(3)}
    </>
  )
}

export function statusText(status: RowSummary['status']): string {
  return status === 'input_required' ? 'input' : (status ?? '')
}

/** What a row is called: its method and target, or its kind. */
export function Name({ row: { kind, method, target } }: { row: RowSummary }) {
  const shown = method ?? kind
  return (
    <>
      <span class={NO_NAME.has(kind) && method === undefined ? 'name-kind' : 'name-method'}>
        {line(shown.slice(0, 200))}
      </span>
      {target === undefined ? undefined : (
        <span class="name-target">{line(target.slice(0, 200))}</span>
      )}
    </>
  )
}

const MARKS = { error: '✕', warning: '▲', info: 'i' } as const

/** A sign of a finding; not by color alone. */
export function Mark({ severity }: { severity: 'error' | 'warning' | 'info' }) {
  return (
    <span class={`mark mark-${severity}`} role="img" aria-label={severity}>
      {MARKS[severity]}
    </span>
  )
}
