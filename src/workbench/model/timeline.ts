import { LANES } from './lanes.js'
import type { RowStore } from './row-store.js'

/** A bar of the timeline: a request until its response, or a moment. */
export interface Bar {
  lane: number
  /** Bars of a lane that overlap have different tracks; 0 is the first. */
  track: number
  /** Nanoseconds. */
  from: number
  to: number
  row: number
  isError: boolean
  /** Whether there is no response yet. */
  isOpen: boolean
}

/** What happens between two times. If there are too many bars, only how many there are in each part of the time. */
export interface Timeline {
  from: number
  to: number
  bars: Bar[]
  /** For each lane, how many bars begin in each part; undefined if `bars` has all of them. */
  density: Uint32Array[] | undefined
  /** The same for errors. */
  errors: Uint32Array | undefined
}

/** Bars that are drawn one by one. */
const MAX_BARS = 2500
/** Tracks of a lane; further bars share the last one. */
const MAX_TRACKS = 4

/** The time of the first and the last row. */
export function timeRange(rows: RowStore): { from: number; to: number } {
  return { from: rows.ns.at(0), to: rows.ns.at(rows.length - 1) }
}

export function timelineOf(rows: RowStore, from: number, to: number, parts: number): Timeline {
  const { to: last } = timeRange(rows)
  const density = LANES.map(() => new Uint32Array(parts))
  const errors = new Uint32Array(parts)
  const scale = parts / Math.max(1, to - from)
  const bars: Bar[] = []
  const numbers = {
    request: rows.numberOf('request'),
    unanswered: rows.numberOf('unanswered'),
    error: rows.numberOf('error'),
  }
  let count = 0
  for (let row = 0; row < rows.length; row++) {
    const lane = rows.lane(row)
    if (lane >= LANES.length) continue
    const kind = rows.kindNumber(row)
    const isOpen = kind === numbers.request
    // A request is drawn with its response, so that it is one bar.
    if (kind === numbers.unanswered || (isOpen && rows.peer(row) !== undefined)) continue
    const start = startOf(rows, row)
    const end = isOpen ? last : rows.ns.at(row)
    if (end < from || start > to) continue
    const isError = rows.statusNumber(row) === numbers.error
    if (++count <= MAX_BARS) {
      const shown = isOpen ? row : (rows.peer(row) ?? row)
      bars.push({ lane, track: 0, from: start, to: end, row: shown, isError, isOpen })
    }
    const part = Math.min(parts - 1, Math.max(0, Math.floor((start - from) * scale)))
    const counts = density[lane]
    if (counts !== undefined) counts[part] = (counts[part] ?? 0) + 1
    if (isError) errors[part] = (errors[part] ?? 0) + 1
  }
  if (count > MAX_BARS) return { from, to, bars: [], density, errors }
  return { from, to, bars: withTracks(bars), density: undefined, errors: undefined }
}

function startOf(rows: RowStore, row: number): number {
  const duration = rows.duration(row)
  return Number.isNaN(duration) ? rows.ns.at(row) : rows.ns.at(row) - duration
}

function withTracks(bars: readonly Bar[]): Bar[] {
  const ends = LANES.map((): number[] => [])
  return bars
    .toSorted((one, other) => one.from - other.from)
    .map((bar) => {
      const tracks = ends[bar.lane] ?? []
      let track = tracks.findIndex((end) => end <= bar.from)
      if (track === -1) track = Math.min(tracks.length, MAX_TRACKS - 1)
      tracks[track] = Math.max(tracks[track] ?? 0, bar.to)
      return { ...bar, track }
    })
}
