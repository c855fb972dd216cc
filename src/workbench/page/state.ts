import { computed, effect, signal } from '@preact/signals'
import type { CaptureState } from '../model/capture-service.js'
import type { FrameDetail } from '../model/frame-detail.js'
import { Engine } from './engine.js'
import { type ByteRange, type Panel, formatLink, parseLink } from './link.js'
import type { Opened } from './messages.js'
import { nodeAt } from './tree-rows.js'

/* What the page shows. Components read the signals; only the functions here change them. */

const EMPTY: CaptureState = {
  phase: 'empty',
  name: '',
  startedAt: Number.NaN,
  by: '',
  bytesRead: 0,
  bytesTotal: 0,
  rows: 0,
  shown: 0,
  isFiltering: false,
  findings: { info: 0, warning: 0, error: 0 },
  findingsKept: 0,
  handshakes: 0,
  from: 0,
  to: 0,
  hasExited: false,
  unreadable: 0,
  textsLost: 0,
  problem: '',
}

const initial = parseLink(location.hash)

export const capture = signal(EMPTY)
export const filter = signal({ text: initial.filter, problem: '' })
/** The selected row, and its position in the filtered list once that is known. */
export const selected = signal<{ row: number; position: number | undefined } | undefined>(undefined)
export const detail = signal<FrameDetail | undefined>(undefined)
/** The selected bytes, counted from the first byte of the direction. */
export const range = signal<ByteRange | undefined>(undefined)
/** The byte that the keyboard moves from. */
export const caret = signal<number | undefined>(undefined)
export const panel = signal<Panel>(initial.panel)
/** Whether the list stays at its end. */
export const tail = signal(false)
/** Changes when the list has other rows: another capture, or another filter. */
export const listVersion = signal(0)
/** A short message, such as "Copied". */
export const notice = signal('')

/** The selected value of the decoded tree. */
export const selectedNode = computed(() => {
  const { value: shown } = detail
  const { value: bytes } = range
  if (shown?.tree === undefined || bytes === undefined) return undefined
  return nodeAt(shown.tree, bytes.start - shown.offset, bytes.end - shown.offset)
})

export const engine = new Engine(onState)

/** The row and bytes of a link, until the row is read. */
let wanted: { row: number; bytes: ByteRange | undefined } | undefined =
  initial.row === undefined ? undefined : { row: initial.row, bytes: initial.bytes }
let token = initial.token

function onState(next: CaptureState): void {
  const { value: before } = capture
  if (next.name !== before.name || next.rows < before.rows) clearSelection()
  // Whoever opens a capture that grows wants to see its end, unless a link says otherwise.
  if (next.phase === 'following' && before.phase === 'loading' && wanted === undefined)
    tail.value = selected.value === undefined
  capture.value = next
  if (wanted !== undefined && next.rows > wanted.row) {
    const { row, bytes } = wanted
    wanted = undefined
    void select(row, bytes)
  }
}

function clearSelection(): void {
  selected.value = undefined
  detail.value = undefined
  setRange(undefined)
  listVersion.value++
}

function open(opened: Opened): void {
  clearSelection()
  engine.open(opened)
}

export function openFile(file: File): void {
  tail.value = false
  token = ''
  open({ type: 'file', file })
}

/** Opens the capture of the program that serves the page, and applies the filter of the link. */
export function start(): void {
  if (filter.value.text !== '') void applyFilter(filter.value.text)
  if (location.protocol === 'http:') open({ type: 'served', origin: location.origin, token })
  effect(writeLink)
  addEventListener('hashchange', () => void followLink())
}

/** Browsers limit how often the address changes: keys that are held down would exceed that. */
const LINK_DELAY = 250
let linkTimer: ReturnType<typeof setTimeout> | undefined

function writeLink(): void {
  const link = formatLink({
    token,
    filter: filter.value.text,
    row: selected.value?.row ?? wanted?.row,
    bytes: range.value ?? wanted?.bytes,
    panel: panel.value,
  })
  clearTimeout(linkTimer)
  linkTimer = setTimeout(() => {
    if (link !== location.hash) history.replaceState(undefined, '', link)
  }, LINK_DELAY)
}

async function followLink(): Promise<void> {
  const link = parseLink(location.hash)
  if (link.token !== '' && link.token !== token && location.protocol === 'http:') {
    token = link.token
    open({ type: 'served', origin: location.origin, token })
  }
  panel.value = link.panel
  if (link.filter !== filter.value.text) await applyFilter(link.filter)
  if (link.row !== undefined) await select(link.row, link.bytes)
}

export async function applyFilter(text: string): Promise<void> {
  filter.value = { text, problem: filter.value.problem }
  const problem = await engine.call('filter', text)
  if (filter.value.text !== text) return
  filter.value = { text, problem }
  if (problem !== '') return
  listVersion.value++
  await locate()
}

/** Finds the selected row in the list. */
async function locate(): Promise<void> {
  const { value: current } = selected
  if (current === undefined) return
  const position = await engine.call('positionOf', current.row)
  if (selected.value?.row === current.row) selected.value = { row: current.row, position }
}

/** Shows a row, and selects bytes of it. */
export async function select(row: number, bytes?: ByteRange, position?: number): Promise<void> {
  const isSame = selected.value?.row === row && detail.value?.row.index === row
  if (!isSame) {
    selected.value = { row, position }
    setRange(bytes)
    if (position === undefined) void locate()
    const shown = await readFrame(row)
    if (selected.value?.row !== row) return
    detail.value = shown
  }
  setRange(bytes)
}

/** From a request to its response, and back. The details of the selected row may still be loading. */
export async function selectPeer(): Promise<void> {
  const row = selected.value?.row
  if (row === undefined) return
  const shown = detail.value?.row.index === row ? detail.value : await readFrame(row)
  if (selected.value?.row === row && shown?.peer !== undefined) await select(shown.peer.index)
}

async function readFrame(row: number): Promise<FrameDetail | undefined> {
  try {
    return await engine.call('frame', row)
  } catch (error) {
    announce(error instanceof Error ? error.message : String(error))
    return undefined
  }
}

/** Selects bytes; the keyboard continues from the first one, or from `from`. */
export function setRange(bytes: ByteRange | undefined, from = bytes?.start): void {
  range.value = bytes
  caret.value = from
}

/** Shows the next or the previous row with a finding, and selects its bytes. */
export async function selectFinding(step: 1 | -1): Promise<void> {
  const from = selected.value?.row ?? (step === 1 ? -1 : capture.value.rows)
  const found = await engine.call('nearFinding', from, step)
  if (found === undefined) return announce('No further finding')
  panel.value = 'message'
  await select(found.row, { start: found.start, end: found.end })
}

/** Selects a value of the decoded tree, with its name. */
export function selectNode(node: number, from?: number): void {
  const { value: shown } = detail
  if (shown?.tree === undefined) return
  const { keyStart, keyEnd, start, end } = shown.tree
  const hasKey = keyEnd[node] !== keyStart[node]
  const first = (hasKey ? keyStart[node] : start[node]) ?? 0
  setRange({ start: shown.offset + first, end: shown.offset + (end[node] ?? 0) }, from)
}

let noticeTimer: ReturnType<typeof setTimeout> | undefined

/** Shows a message for a moment. */
export function announce(text: string): void {
  clearTimeout(noticeTimer)
  notice.value = text
  noticeTimer = setTimeout(() => (notice.value = ''), 2500)
}
