import { type Splice, apply } from './document.js'

/** Unchanged lines around a change. */
const CONTEXT = 3

/** Lines that change together: the numbers of the first and the last one, from 0. */
interface Change {
  first: number
  last: number
  splices: Splice[]
}

/** The changes of a text as a unified diff. */
export function unifiedDiff(path: string, text: string, splices: readonly Splice[]): string {
  const starts = lineStarts(text)
  const changes = changesOf(starts, splices)
  const hunks: Change[][] = []
  for (const change of changes) {
    const before = hunks.at(-1)?.at(-1)
    if (before !== undefined && change.first - before.last <= 2 * CONTEXT)
      hunks.at(-1)?.push(change)
    else hunks.push([change])
  }
  let shift = 0
  const lines = (first: number, end: number) =>
    linesOf(text.slice(starts[first] ?? text.length, starts[end] ?? text.length))
  const written = hunks.map((hunk) => {
    let at = Math.max(0, (hunk[0]?.first ?? 0) - CONTEXT)
    const start = at
    const body: string[] = []
    const add = (mark: string, added: string[]) => body.push(...added.map((line) => mark + line))
    for (const { first, last, splices: own } of hunk) {
      add(' ', lines(at, first))
      const from = starts[first] ?? 0
      const before = text.slice(from, starts[last + 1] ?? text.length)
      add('-', linesOf(before))
      const moved = own.map((each) => ({ ...each, start: each.start - from, end: each.end - from }))
      add('+', linesOf(apply(before, moved)))
      at = last + 1
    }
    add(' ', lines(at, at + CONTEXT))
    const count = (other: string) => body.filter((line) => !line.startsWith(other)).length
    const head = `@@ -${start + 1},${count('+')} +${start + 1 + shift},${count('-')} @@`
    shift += count('-') - count('+')
    return [head, ...body].join('\n')
  })
  return written.length === 0 ? '' : `--- ${path}\n+++ ${path}\n${written.join('\n')}\n`
}

function changesOf(starts: readonly number[], splices: readonly Splice[]): Change[] {
  const changes: Change[] = []
  const lineAt = (offset: number) => starts.findLastIndex((start) => start <= offset)
  for (const splice of splices.toSorted((one, other) => one.start - other.start)) {
    const [first, last] = [lineAt(splice.start), lineAt(splice.end)]
    const before = changes.at(-1)
    if (before === undefined || first > before.last + 1)
      changes.push({ first, last, splices: [splice] })
    else {
      before.last = Math.max(before.last, last)
      before.splices.push(splice)
    }
  }
  return changes
}

function lineStarts(text: string): number[] {
  const starts = [0]
  for (let at = text.indexOf('\n'); at !== -1; at = text.indexOf('\n', at + 1)) starts.push(at + 1)
  if (starts.at(-1) === text.length && text !== '') starts.pop()
  return starts
}

/** Lines without their ends. */
function linesOf(text: string): string[] {
  if (text === '') return []
  return text.replace(/\r?\n$/, '').split(/\r?\n/)
}
