import type { ComponentChildren, JSX } from 'preact'
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks'

/** Browsers limit the height of an element: a longer list is scrolled in proportion. */
const MAX_HEIGHT = 8_000_000
/** Rows that are rendered above and below the visible ones. */
const OVERSCAN = 4
/** Rows are positioned relative to the first row of their block, so that their styles do not change during scrolling. */
const BLOCK = 1000

interface Properties {
  id: string
  label: string
  role: 'grid' | 'tree' | 'listbox'
  class?: string
  count: number
  rowHeight: number
  /** The position of the selected row. */
  active: number | undefined
  /** The selected row is scrolled into view when this changes. */
  reveal?: unknown
  /** What the rows belong to: another list begins at its top. The element, and with it the focus, stays. */
  content?: unknown
  /** Whether the list stays at its end. */
  tail?: boolean
  header?: ComponentChildren
  row(position: number, id: string): JSX.Element
  onMove(position: number): void
  onKey?(event: KeyboardEvent): void
  onWindow?(first: number, last: number): void
  /** The user has scrolled away from the end. */
  onLeaveTail?(): void
}

/** A list of any length: only what is visible is in the document. The keyboard moves the selection. */
export function VirtualList(properties: Properties) {
  const { id, label, role, count, rowHeight, active, reveal, content, tail = false } = properties
  const { onWindow } = properties
  const scroller = useRef<HTMLDivElement>(null)
  /** The position at which we have put the scroll bar: such an event is not the user's. */
  const placed = useRef(0)
  const [height, setHeight] = useState(0)
  const [offset, setOffset] = useState(0)
  /** The offset, also before the next rendering. */
  const latest = useRef(0)

  const total = count * rowHeight
  const spacer = Math.min(total, MAX_HEIGHT)
  const lastOffset = Math.max(0, total - height)
  const ratio = spacer > height ? lastOffset / (spacer - height) : 1
  const isScaled = total > MAX_HEIGHT

  const scrollTo = (wanted: number) => {
    const next = Math.max(0, Math.min(wanted, lastOffset))
    const element = scroller.current
    if (element === null) return
    element.scrollTop = next / ratio
    placed.current = element.scrollTop
    latest.current = next
    setOffset(next)
  }

  const isAtEnd = (at: number) => at >= lastOffset - rowHeight
  const onScroll = () => {
    const top = scroller.current?.scrollTop ?? 0
    if (Math.abs(top - placed.current) < 1) return
    placed.current = top
    const next = Math.min(top * ratio, lastOffset)
    if (next < offset && !isAtEnd(next)) properties.onLeaveTail?.()
    latest.current = next
    setOffset(next)
  }

  useLayoutEffect(() => {
    const element = scroller.current
    if (element === null) return undefined
    const measure = () => {
      setHeight(element.clientHeight)
      // The header is as wide as the rows.
      const bar = element.offsetWidth - element.clientWidth
      element.parentElement?.style.setProperty('--scroll-bar', `${bar}px`)
    }
    const observer = new ResizeObserver(measure)
    observer.observe(element)
    measure()
    return () => observer.disconnect()
  }, [])

  // Of a list that is scrolled in proportion, one pixel would be several rows.
  useEffect(() => {
    const element = scroller.current
    if (element === null || !isScaled) return undefined
    const onWheel = (event: WheelEvent) => {
      if (event.ctrlKey || event.deltaY === 0) return
      event.preventDefault()
      if (event.deltaY < 0) properties.onLeaveTail?.()
      scrollTo(offset + event.deltaY * (event.deltaMode === 1 ? rowHeight : 1))
    }
    element.addEventListener('wheel', onWheel, { passive: false })
    return () => element.removeEventListener('wheel', onWheel)
  })

  useLayoutEffect(() => scrollTo(0), [content])

  useLayoutEffect(() => {
    if (tail) scrollTo(lastOffset)
    else if (latest.current > lastOffset) scrollTo(lastOffset)
  }, [tail, lastOffset])

  useLayoutEffect(() => {
    if (active === undefined || height === 0 || tail) return
    const at = latest.current
    const top = active * rowHeight
    const margin = Math.min(rowHeight * 2, Math.max(0, height - rowHeight) / 2)
    const isFar = top < at - height || top > at + 2 * height
    if (isFar) scrollTo(top - height / 3)
    else if (top < at + margin) scrollTo(top - margin)
    else if (top + rowHeight > at + height - margin) scrollTo(top + rowHeight + margin - height)
  }, [active, reveal, height, content])

  const first = Math.max(0, Math.floor(offset / rowHeight) - OVERSCAN)
  const last = Math.min(count, Math.ceil((offset + height) / rowHeight) + OVERSCAN)
  useEffect(() => onWindow?.(first, last))

  const move = (event: KeyboardEvent, position: number) => {
    event.preventDefault()
    if (count > 0) properties.onMove(Math.max(0, Math.min(count - 1, position)))
  }
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return
    const page = Math.max(1, Math.floor(height / rowHeight) - 1)
    const at = active ?? -1
    if (event.key === 'ArrowDown' || event.key === 'j') move(event, at + 1)
    else if (event.key === 'ArrowUp' || event.key === 'k') move(event, Math.max(0, at - 1))
    else if (event.key === 'PageDown') move(event, at + page)
    else if (event.key === 'PageUp') move(event, at - page)
    else if (event.key === 'Home') move(event, 0)
    else if (event.key === 'End') move(event, count - 1)
    else properties.onKey?.(event)
  }

  const top = scroller.current?.scrollTop ?? 0
  const base = first - (first % BLOCK)
  const keyOf = useKeys(first, Math.ceil(height / rowHeight) + 2 * OVERSCAN + 2)
  const positions = Array.from({ length: Math.max(0, last - first) }, (_, i) => first + i)
  const activeId =
    active !== undefined && active >= first && active < last ? `${id}-${active}` : undefined
  const hasHeader = properties.header !== undefined
  return (
    <div
      id={id}
      class={`list ${properties.class ?? ''}`}
      role={role}
      aria-label={label}
      aria-rowcount={role === 'grid' ? count + (hasHeader ? 1 : 0) : undefined}
      aria-activedescendant={activeId}
      tabIndex={0}
      onKeyDown={onKeyDown}
    >
      {properties.header}
      <div
        class="scroller"
        ref={scroller}
        onScroll={onScroll}
        tabIndex={-1}
        role={role === 'grid' ? 'rowgroup' : 'presentation'}
      >
        <div class="spacer" role="presentation" style={{ height: `${spacer}px` }}>
          <div
            class="slots"
            role="presentation"
            style={{
              transform: `translateY(${(isScaled ? top - offset : 0) + base * rowHeight}px)`,
            }}
          >
            {positions.map((position) => (
              <div
                key={keyOf(position)}
                class="slot"
                role="presentation"
                style={{ height: `${rowHeight}px`, top: `${(position - base) * rowHeight}px` }}
              >
                {properties.row(position, `${id}-${position}`)}
              </div>
            ))}
          </div>
        </div>
      </div>
    </div>
  )
}

/** Keys by which elements that are scrolled out of view are used for rows that come into view, in the order of the rows. */
function useKeys(first: number, size: number): (position: number) => number {
  const state = useRef({ first, origin: 0 })
  const { current } = state
  // If all rows are new, each element stays where it is.
  if (Math.abs(first - current.first) >= size) current.origin += first - current.first
  current.first = first
  const { origin } = current
  return (position) => (((position - origin) % size) + size) % size
}
