import type { Row } from '../capture/analysis.js'
import type { Finding } from '../capture/findings.js'
import { RULES } from '../capture/rules.js'
import { type Piece, type Styled, escaped, styled } from './print.js'

const ARROWS = { in: '→', out: '←' } as const
const STATUS_STYLES = {
  ok: undefined,
  error: 'error',
  input_required: 'warning',
  cancelled: 'warning',
} as const
const FINDING_STYLES = { error: 'error', warning: 'warning', info: 'detail' } as const

/** A row of a capture as one line. Control characters are escaped, also outside of a terminal: text must not break lines. */
export function rowPieces(row: Row, startedAt: number): Piece[] {
  const { dir, kind, method, target, id, progress, text, start, end } = row
  const time = timeOf(startedAt + row.ns / 1e6)
  if (kind === 'event')
    return [styled('detail', `${time} · ${line(method)} ${line(text.trimEnd())}`.trimEnd()), '\n']
  const name = [method ?? kind, target].filter((each) => each !== undefined).join(' ')
  const direction: Styled =
    dir === 'in' ? styled('sent', ARROWS.in) : styled('received', ARROWS.out)
  const details = [
    progress === 0 ? '' : `${progress} progress`,
    `${end - start} bytes`,
    line(text),
  ].filter((each) => each !== '')
  return [
    styled('detail', time),
    ' ',
    direction,
    ` ${(row.revision ?? '-').padEnd(10)} `,
    styled('name', line(name)),
    id === undefined ? '' : ` #${line(id)}`,
    ...statusPieces(row),
    ' ',
    styled('detail', details.join(' ')),
    '\n',
  ]
}

function statusPieces({ status, duration }: Row): Piece[] {
  const pieces: Piece[] = []
  const style = status === undefined ? undefined : STATUS_STYLES[status]
  if (status !== undefined) pieces.push(' ', style === undefined ? status : styled(style, status))
  if (duration !== undefined) pieces.push(` ${durationText(duration)}`)
  return pieces
}

/** What is wrong, what to do, and where the specification says so. */
export function findingPieces({ rule, severity, clause, start, end, detail }: Finding): Piece[] {
  const { why, fix } = RULES[rule]
  return [
    '    ',
    styled(FINDING_STYLES[severity], `${severity} ${rule}`),
    `, bytes ${start}-${end}${detail === '' ? '' : `: ${line(detail)}`}\n`,
    styled('detail', `      ${why} ${fix}\n${clause === '' ? '' : `      ${clause}\n`}`),
  ]
}

function line(text = ''): string {
  return escaped(text).replaceAll('\n', '\\n').replaceAll('\t', '\\t')
}

function timeOf(milliseconds: number): string {
  const date = new Date(milliseconds)
  const pad = (value: number, length = 2) => String(value).padStart(length, '0')
  const time = [date.getHours(), date.getMinutes(), date.getSeconds()].map((each) => pad(each))
  return `${time.join(':')}.${pad(date.getMilliseconds(), 3)}`
}

function durationText(ns: number): string {
  if (ns < 1e6) return `${Math.round(ns / 1e3)} µs`
  return ns < 1e9 ? `${(ns / 1e6).toFixed(1)} ms` : `${(ns / 1e9).toFixed(2)} s`
}
