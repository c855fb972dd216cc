import { isObject } from '../../schema/issue.js'
import { type Piece, styled } from '../print.js'

/** A message as the client sent (`out`) or received it (`in`). */
export interface Frame {
  direction: 'in' | 'out'
  frame: string
}

/** The messages of a conversation. */
interface Column {
  title: string
  frames: readonly Frame[]
}

type Members = ReadonlySet<string>

export function members(names: string): Members {
  return new Set(names.split(' '))
}

const GAP = '  '

/** Two conversations side by side: lines of pieces. `shown`: the members that are shown. */
export function sideBySide(one: Column, other: Column, shown: Members, width: number): Piece[][] {
  const columnWidth = Math.floor((width - 2 * GAP.length) / 2)
  const [left, right] = [linesOf(one, shown, columnWidth), linesOf(other, shown, columnWidth)]
  return Array.from({ length: Math.max(left.length, right.length) }, (_, index) => {
    const first = left[index] ?? { pieces: [], length: 0 }
    const second = right[index]
    if (second === undefined) return [GAP, ...first.pieces]
    const padding = ' '.repeat(Math.max(0, columnWidth - first.length))
    return [GAP, ...first.pieces, padding, GAP, ...second.pieces]
  })
}

interface Line {
  pieces: Piece[]
  length: number
}

function linesOf({ title, frames }: Column, shown: Members, width: number): Line[] {
  const lines: Line[] = [{ pieces: [styled('heading', title)], length: title.length }]
  for (const { direction, frame } of frames) {
    let start: Piece = direction === 'out' ? styled('sent', '→ ') : styled('received', '← ')
    for (const text of wrapped(excerpt(frame, shown), width - 2)) {
      lines.push({ pieces: [start, ...marked(text, title)], length: 2 + text.length })
      start = '  '
    }
  }
  return lines
}

/** The text of a message without `jsonrpc`, `id` and members that are not shown; "…" stands for these. */
export function excerpt(frame: string, shown: Members): string {
  const { jsonrpc: _, id: __, ...message } = JSON.parse(frame) as Record<string, unknown> // of a client
  return textOf(message, shown)
}

function textOf(value: unknown, shown: Members): string {
  if (Array.isArray(value)) return `[${value.map((item) => textOf(item, shown)).join(',')}]`
  if (!isObject(value)) return JSON.stringify(value)
  const members = Object.entries(value)
  const parts = members
    .filter(([name]) => shown.has(name))
    .map(([name, member]) => [JSON.stringify(name), textOf(member, shown)])
    .filter(([, text]) => text !== '{…}')
    .map((part) => part.join(':'))
  return `{${[...parts, ...(parts.length < members.length ? ['…'] : [])].join(',')}}`
}

/** Breaks JSON into lines: after commas and opening brackets, and in what is still too long after ":" and "/". */
export function wrapped(json: string, width: number): string[] {
  const lines: string[] = []
  let line = ''
  const parts = (json.match(/[^,{[]*[,{[]+|.+$/g) ?? []).flatMap((part) =>
    part.length < width ? [part] : (part.match(/[^:/]*[:/]+|.+$/g) ?? []),
  )
  for (const part of parts) {
    if (line !== '' && line.length + part.length > width) {
      lines.push(line)
      line = ''
    }
    line += part
  }
  return [...lines, line]
}

/** A line with every occurrence of a word in bold. */
function marked(line: string, word: string): Piece[] {
  return line
    .split(word)
    .flatMap((part, index) => (index === 0 ? [part] : [styled('heading', word), part]))
}
