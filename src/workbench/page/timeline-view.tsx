import { signal, useSignalEffect } from '@preact/signals'
import { useEffect, useRef, useState } from 'preact/hooks'
import { LANES } from '../model/lanes.js'
import type { Bar, Timeline } from '../model/timeline.js'
import { durationText } from './format.js'
import { capture, engine, panel, select, selected } from './state.js'
import { colorOf, colors } from './theme.js'

const LANE_HEIGHT = 20
const AXIS = 18
const NAMES = 92
const TRACKS = 4
/** Milliseconds between drawings while a capture is read. */
const REDRAW = 300

/** The visible time; undefined: all of it. */
const shownTime = signal<{ from: number; to: number } | undefined>(undefined)
const timeline = signal<Timeline | undefined>(undefined)

function wholeTime(): { from: number; to: number } {
  const { from, to } = capture.value
  const margin = (to - from) * 0.01 + 1
  return { from: from - margin, to: to + margin }
}

/** When each request was sent and answered, by lanes. */
export function TimelineView() {
  const canvas = useRef<HTMLCanvasElement>(null)
  const [width, setWidth] = useState(0)
  const drag = useRef<{ x: number; moved: number } | undefined>(undefined)
  const lanes = usedLanes(timeline.value)
  const height = lanes.length * LANE_HEIGHT + AXIS
  useEffect(() => {
    const element = canvas.current?.parentElement
    if (element === null || element === undefined) return undefined
    const observer = new ResizeObserver(() => setWidth(element.clientWidth))
    observer.observe(element)
    return () => observer.disconnect()
  }, [])
  useTimeline(width)
  // Read here, so that a change of the theme draws it again: what effects read is not noticed.
  void colors.value
  useEffect(() => {
    if (canvas.current !== null && timeline.value !== undefined && width > NAMES)
      draw(canvas.current, timeline.value, width, height, lanes)
  })
  const scale = (width - NAMES) / Math.max(1, duration())
  const zoom = (factor: number, at = width / 2) => {
    const { from, to } = shownTime.value ?? wholeTime()
    const center = from + Math.max(0, at - NAMES) / scale
    setTime(center - (center - from) * factor, center + (to - center) * factor)
  }
  const pan = (part: number) => {
    const { from, to } = shownTime.value ?? wholeTime()
    setTime(from + (to - from) * part, to + (to - from) * part)
  }
  useEffect(() => {
    const element = canvas.current
    const onWheel = (event: WheelEvent) => {
      event.preventDefault()
      if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) pan(event.deltaX / 1000)
      else zoom(event.deltaY > 0 ? 1.25 : 0.8, event.offsetX)
    }
    element?.addEventListener('wheel', onWheel, { passive: false })
    return () => element?.removeEventListener('wheel', onWheel)
  })
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key === '+' || event.key === '=') zoom(0.5)
    else if (event.key === '-') zoom(2)
    else if (event.key === 'ArrowLeft') pan(-0.2)
    else if (event.key === 'ArrowRight') pan(0.2)
    else if (event.key === 'Home') shownTime.value = undefined
    else return
    event.preventDefault()
    event.stopPropagation()
  }
  const onPointerUp = (event: PointerEvent) => {
    const { current } = drag
    drag.current = undefined
    if (current === undefined || current.moved > 4) return
    const bar = barAt(timeline.value, lanes, event.offsetX, event.offsetY, scale)
    if (bar === undefined) return
    panel.value = 'message'
    void select(bar.row)
  }
  return (
    <figure class="timeline" aria-label="Timeline">
      <canvas
        ref={canvas}
        tabIndex={0}
        role="img"
        aria-label={description(lanes)}
        style={{ height: `${height}px`, width: '100%' }}
        onKeyDown={onKeyDown}
        onPointerDown={(event) => {
          event.currentTarget.setPointerCapture(event.pointerId)
          drag.current = { x: event.offsetX, moved: 0 }
        }}
        onPointerMove={(event) => {
          const { current } = drag
          if (current === undefined) return
          const moved = event.offsetX - current.x
          current.moved += Math.abs(moved)
          current.x = event.offsetX
          if (shownTime.value !== undefined) pan(-moved / (width - NAMES))
        }}
        onPointerUp={onPointerUp}
        onDblClick={() => (shownTime.value = undefined)}
      />
      {shownTime.value === undefined ? undefined : (
        <button type="button" class="small reset" onClick={() => (shownTime.value = undefined)}>
          Show all
        </button>
      )}
    </figure>
  )
}

function description(lanes: readonly number[]): string {
  const names = lanes.map((lane) => LANES[lane]).join(', ')
  return `Requests over ${durationText(Math.max(0, duration()))}, lanes: ${names}. Plus and minus zoom, arrows move, Home shows all.`
}

function duration(): number {
  const { from, to } = shownTime.value ?? wholeTime()
  return to - from
}

function setTime(from: number, to: number): void {
  const whole = wholeTime()
  const size = Math.max(1000, to - from)
  if (size >= whole.to - whole.from) {
    shownTime.value = undefined
    return
  }
  const first = Math.min(Math.max(from, whole.from), whole.to - size)
  shownTime.value = { from: first, to: first + size }
}

/** Asks for the bars again when the time or the capture has changed. */
function useTimeline(width: number): void {
  const state = useRef({ isAsked: false, isStale: false, width })
  state.current.width = width
  useSignalEffect(() => {
    const time = shownTime.value ?? wholeTime()
    void capture.value.rows
    void ask(state.current, time)
  })
  useEffect(() => void ask(state.current, shownTime.value ?? wholeTime()), [width])
}

interface Asked {
  isAsked: boolean
  isStale: boolean
  width: number
}

async function ask(state: Asked, { from, to }: { from: number; to: number }): Promise<void> {
  state.isStale = true
  if (state.isAsked || state.width <= NAMES) return
  state.isAsked = true
  state.isStale = false
  const parts = Math.floor(state.width - NAMES)
  const asked = performance.now()
  timeline.value = await engine.call('timeline', from, to, parts)
  // The worker looks at every row for it: while a capture is read, that takes a small part of its time.
  const wait = Math.max(REDRAW, 20 * (performance.now() - asked))
  await pauseWhileReading(wait)
  state.isAsked = false
  if (state.isStale) await ask(state, shownTime.value ?? wholeTime())
}

/** Resolves after a time, or when the capture is read. */
function pauseWhileReading(milliseconds: number): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(done, milliseconds)
    const unsubscribe = capture.subscribe(({ phase }) => {
      // It is called at once, before there is something to unsubscribe.
      if (phase !== 'loading') queueMicrotask(done)
    })
    function done(): void {
      clearTimeout(timer)
      unsubscribe()
      resolve()
    }
  })
}

/** The first three lanes, and those that have something. */
function usedLanes(shown: Timeline | undefined): number[] {
  return LANES.map((_, lane) => lane).filter(
    (lane) =>
      lane < 3 ||
      seenLanes.has(lane) ||
      shown?.bars.some((bar) => bar.lane === lane) === true ||
      shown?.density?.[lane]?.some((count) => count > 0) === true,
  )
}
const seenLanes = new Set<number>()

function barAt(
  shown: Timeline | undefined,
  lanes: readonly number[],
  x: number,
  y: number,
  scale: number,
): Bar | undefined {
  const lane = lanes[Math.floor(y / LANE_HEIGHT)]
  if (shown === undefined || lane === undefined) return undefined
  const track = Math.floor((y % LANE_HEIGHT) / (LANE_HEIGHT / TRACKS))
  const time = shown.from + (x - NAMES) / scale
  const reach = 4 / scale
  return shown.bars
    .filter((bar) => bar.lane === lane && time >= bar.from - reach && time <= bar.to + reach)
    .toSorted((one, other) => Math.abs(one.track - track) - Math.abs(other.track - track))[0]
}

function draw(
  canvas: HTMLCanvasElement,
  shown: Timeline,
  width: number,
  height: number,
  lanes: readonly number[],
): void {
  const pixels = devicePixelRatio
  canvas.width = Math.round(width * pixels)
  canvas.height = Math.round(height * pixels)
  const context = canvas.getContext('2d')
  if (context === null) return
  context.scale(pixels, pixels)
  context.font = '11px system-ui, sans-serif'
  context.textBaseline = 'middle'
  drawAxis(context, shown, width, height)
  lanes.forEach((lane, at) => {
    seenLanes.add(lane)
    const y = at * LANE_HEIGHT
    context.fillStyle = colorOf('muted')
    context.fillText(LANES[lane] ?? '', 10, y + LANE_HEIGHT / 2)
    context.fillStyle = colorOf('line')
    context.fillRect(0, y + LANE_HEIGHT - 0.5, width, 0.5)
    if (shown.density === undefined) drawBars(context, shown, lane, y, width)
    else drawDensity(context, shown, lane, y)
  })
}

function drawAxis(
  context: CanvasRenderingContext2D,
  { from, to }: Timeline,
  width: number,
  height: number,
): void {
  const step = niceStep((to - from) / Math.max(2, (width - NAMES) / 110))
  const y = height - AXIS / 2
  context.textAlign = 'center'
  for (let time = Math.ceil(from / step) * step; time < to; time += step) {
    const x = NAMES + ((time - from) / (to - from)) * (width - NAMES)
    context.fillStyle = colorOf('line')
    context.fillRect(x, 0, 0.5, height - AXIS)
    context.fillStyle = colorOf('muted')
    if (x < width - 30 && x > NAMES + 10) context.fillText(axisText(time, step), x, y)
  }
  context.textAlign = 'left'
}

/** 1, 2 or 5 times a power of ten. */
function niceStep(least: number): number {
  const power = 10 ** Math.floor(Math.log10(least))
  return power * ([1, 2, 5, 10].find((each) => each * power >= least) ?? 10)
}

function axisText(ns: number, step: number): string {
  if (step >= 1e9) return `${Math.round(ns / 1e9)} s`
  return step >= 1e6 ? `${Math.round(ns / 1e6)} ms` : `${Math.round(ns / 1e3)} µs`
}

const LANE_COLORS = [
  'lane-client',
  'lane-server',
  'lane-notification',
  'lane-stream',
  'lane-task',
  'lane-auth',
]

function drawBars(
  context: CanvasRenderingContext2D,
  { from, to, bars }: Timeline,
  lane: number,
  y: number,
  width: number,
): void {
  const scale = (width - NAMES) / (to - from)
  const used = Math.max(1, ...bars.filter((bar) => bar.lane === lane).map(({ track }) => track + 1))
  const tracks = used <= 2 ? used : TRACKS
  const size = (LANE_HEIGHT - 4) / tracks
  for (const bar of bars) {
    if (bar.lane !== lane) continue
    const x = Math.max(NAMES, NAMES + (bar.from - from) * scale)
    const end = Math.min(width, NAMES + (bar.to - from) * scale)
    const length = Math.max(2, end - x)
    const top = y + 2 + bar.track * size
    const isSelected = selected.value?.row === bar.row
    context.fillStyle = colorOf(bar.isError ? 'error' : (LANE_COLORS[lane] ?? 'accent'))
    context.globalAlpha = bar.isOpen ? 0.4 : 0.9
    context.fillRect(x, top + 0.5, length, Math.max(2, size - 1))
    context.globalAlpha = 1
    if (!isSelected) continue
    context.strokeStyle = colorOf('text')
    context.lineWidth = 1.5
    context.strokeRect(x - 1, top - 0.5, length + 2, size + 1)
  }
}

function drawDensity(
  context: CanvasRenderingContext2D,
  { density, errors }: Timeline,
  lane: number,
  y: number,
): void {
  const counts = density?.[lane]
  if (counts === undefined) return
  const most = counts.reduce((max, count) => Math.max(max, count), 1)
  counts.forEach((count, part) => {
    if (count === 0) return
    const size = 3 + (LANE_HEIGHT - 7) * (Math.log1p(count) / Math.log1p(most))
    context.fillStyle = colorOfLane(lane)
    context.fillRect(NAMES + part, y + LANE_HEIGHT - 2 - size, 1, size)
    if (lane !== 0 || (errors?.[part] ?? 0) === 0) return
    context.fillStyle = colorOf('error')
    context.fillRect(NAMES + part, y + LANE_HEIGHT - 4, 1, 2)
  })
}

const colorOfLane = (lane: number) => colorOf(LANE_COLORS[lane] ?? 'accent')
