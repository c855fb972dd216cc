import { escaped } from '../../capture/escaped.js'

/** Text of a peer on one line: control and bidirectional characters are shown as escapes. */
export function line(text: string): string {
  return escaped(text).replaceAll('\n', '\\n').replaceAll('\t', '\\t')
}

export function durationText(ns: number): string {
  if (ns < 1e6) return `${Math.round(ns / 1e3)} µs`
  if (ns < 1e9) return `${(ns / 1e6).toFixed(ns < 1e7 ? 2 : 1)} ms`
  return `${(ns / 1e9).toFixed(2)} s`
}

export function sizeText(bytes: number): string {
  if (bytes < 1024) return `${bytes} B`
  if (bytes < 1024 * 1024) return `${(bytes / 1024).toFixed(1)} kB`
  return `${(bytes / 1024 / 1024).toFixed(1)} MB`
}

const pad = (value: number, length = 2) => String(value).padStart(length, '0')

/** The local time of day. */
export function clockText(milliseconds: number): string {
  const date = new Date(milliseconds)
  const time = [date.getHours(), date.getMinutes(), date.getSeconds()].map((each) => pad(each))
  return `${time.join(':')}.${pad(date.getMilliseconds(), 3)}`
}

/** Seconds since the start of the capture. */
export function sinceText(ns: number): string {
  return (ns / 1e9).toFixed(6)
}

export function countText(count: number, noun: string): string {
  return `${count.toLocaleString('en')} ${noun}${count === 1 ? '' : 's'}`
}
