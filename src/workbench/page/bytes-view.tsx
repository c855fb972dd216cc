import { useLayoutEffect, useRef, useState } from 'preact/hooks'
import type { FrameDetail } from '../model/frame-detail.js'
import { caret, range, selectNode, setRange } from './state.js'
import { nodeAt } from './tree-rows.js'
import { VirtualList } from './virtual-list.js'

const ROW_HEIGHT = 20
/** Width of a row of 16 bytes, in pixels. */
const WIDE = 570

/** The bytes of the selected row. Those of the selected field are marked; a byte selects the field that it belongs to. */
export function BytesView({ shown }: { shown: FrameDetail }) {
  const place = useRef<HTMLElement>(null)
  const [perRow, setPerRow] = useState(16)
  useLayoutEffect(() => {
    const element = place.current
    if (element === null) return undefined
    const observer = new ResizeObserver(() => setPerRow(element.clientWidth < WIDE ? 8 : 16))
    observer.observe(element)
    return () => observer.disconnect()
  }, [])
  const { bytes, offset } = shown
  const at = caret.value === undefined ? undefined : caret.value - offset
  const isInside = at !== undefined && at >= 0 && at <= bytes.length
  const active = isInside ? Math.floor(Math.min(at, bytes.length - 1) / perRow) : undefined
  const moveTo = (byte: number) => selectByte(shown, Math.max(0, Math.min(bytes.length - 1, byte)))
  const onKey = (event: KeyboardEvent) => {
    if (event.key === 'ArrowRight') moveTo((at ?? -1) + 1)
    else if (event.key === 'ArrowLeft') moveTo((at ?? 0) - 1)
    else return
    event.preventDefault()
  }
  const onClick = ({ target }: MouseEvent) => {
    const byte = target instanceof HTMLElement ? target.dataset['at'] : undefined
    if (byte !== undefined) moveTo(Number(byte))
  }
  return (
    // oxlint-disable-next-line jsx-a11y/no-static-element-interactions -- the keyboard moves within the grid
    <section class="bytes" aria-label="Bytes" ref={place} onClick={onClick}>
      <VirtualList
        id="bytes"
        label={`Bytes, ${perRow} in a row`}
        role="grid"
        count={Math.ceil(bytes.length / perRow)}
        rowHeight={ROW_HEIGHT}
        active={active}
        reveal={range.value}
        content={shown.row.index}
        onMove={(row) => moveTo(row * perRow + ((at ?? 0) % perRow))}
        onKey={onKey}
        row={(row, id) => <ByteRow id={id} shown={shown} row={row} perRow={perRow} />}
      />
    </section>
  )
}

function selectByte(shown: FrameDetail, byte: number): void {
  const { tree, offset } = shown
  const node = tree === undefined ? undefined : nodeAt(tree, byte, byte + 1)
  // Bytes outside of the JSON text, such as the newline, are selected as they are.
  if (node === undefined) setRange({ start: offset + byte, end: offset + byte + 1 })
  else selectNode(node, offset + byte)
}

interface RowProperties {
  id: string
  shown: FrameDetail
  row: number
  perRow: number
}

function ByteRow({ id, shown, row, perRow }: RowProperties) {
  const { bytes, offset } = shown
  const start = row * perRow
  const positions = Array.from(bytes.subarray(start, start + perRow), (_, i) => start + i)
  const isMarked = positions.some((at) => isSelected(shown, at))
  return (
    <div id={id} class="byte-row" role="row" aria-rowindex={row + 1} aria-selected={isMarked}>
      <span class="byte-offset" role="rowheader">
        {String(offset + start).padStart(8, '0')}
      </span>
      <span class={`hex hex-${perRow}`} role="gridcell">
        {positions.map((at) => (
          <span key={at} data-at={at} class={`${classOf(shown, at)}${at % 8 === 7 ? ' gap' : ''}`}>
            {(bytes[at] ?? 0).toString(16).padStart(2, '0')}
          </span>
        ))}
      </span>
      <span class="ascii" role="gridcell">
        {positions.map((at) => (
          <span key={at} data-at={at} class={classOf(shown, at)}>
            {printable(bytes[at] ?? 0)}
          </span>
        ))}
      </span>
    </div>
  )
}

function isSelected({ offset }: FrameDetail, at: number): boolean {
  const { value: bytes } = range
  return bytes !== undefined && offset + at >= bytes.start && offset + at < bytes.end
}

function classOf(shown: FrameDetail, at: number): string {
  const { offset, findings } = shown
  const found = findings.find(
    ({ start, end }) => offset + at >= start && offset + at < Math.max(end, start + 1),
  )
  const isWhole = found !== undefined && found.end - found.start >= shown.bytes.length - 2
  const mark = found === undefined || isWhole ? '' : ` found found-${found.severity}`
  const isCaret = caret.value === offset + at
  return `byte${isSelected(shown, at) ? ' on' : ''}${isCaret ? ' caret' : ''}${mark}`
}

function printable(byte: number): string {
  return byte >= 0x20 && byte < 0x7f ? String.fromCharCode(byte) : '·'
}
