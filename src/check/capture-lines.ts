import { createReadStream } from 'node:fs'
import { type Direction, bytesOf } from '../capture/format.js'
import { isObject } from '../schema/issue.js'
import type { Item } from './report.js'
import type { Line } from './sarif.js'

const NEWLINE = 0x0a
/** Longer lines are not looked into. */
const MAX_LINE = 32 * 1024 * 1024

/** Finds the lines of a capture in which the findings begin. */
export async function captureLines(path: string, items: readonly Item[]): Promise<Map<Item, Line>> {
  const found = new Map<Item, Line>()
  const byStart = items
    .filter(({ capture }) => capture === path)
    .toSorted((one, other) => other.finding.start - one.finding.start)
  // The items of each stream in descending order, so that the next one is popped from the end.
  const open = new Map<string, Item[]>()
  for (const item of byStart) {
    const key = keyOf(item.finding)
    const waiting = open.get(key) ?? []
    waiting.push(item)
    open.set(key, waiting)
  }
  const last = new Map<string, Line>()
  for await (const { text, ...line } of linesOf(path)) {
    const span = spanOf(text)
    if (span === undefined) continue
    const key = keyOf(span)
    last.set(key, line)
    const waiting = open.get(key) ?? []
    for (let next = waiting.at(-1); next !== undefined; next = waiting.at(-1)) {
      if (next.finding.start >= span.end) break
      found.set(next, line)
      waiting.pop()
    }
  }
  // An empty range at the end of a stream.
  for (const [key, rest] of open) {
    const line = last.get(key)
    if (line !== undefined) for (const item of rest) found.set(item, line)
  }
  return found
}

/** Positions are those of a direction; over HTTP, those of a body. */
function keyOf({ dir, exchange }: { dir: Direction; exchange?: number }): string {
  return `${dir} ${exchange ?? ''}`
}

async function* linesOf(path: string): AsyncGenerator<Line & { text: string }> {
  let parts: Uint8Array[] = []
  let length = 0
  let offset = 0
  let number = 1
  for await (const chunk of createReadStream(path) as AsyncIterable<Uint8Array>) {
    let rest = chunk
    for (let end = rest.indexOf(NEWLINE); end !== -1; end = rest.indexOf(NEWLINE)) {
      parts.push(rest.subarray(0, end))
      length += end
      const text = length > MAX_LINE ? '' : Buffer.concat(parts).toString('utf8')
      yield { number, offset, length, text }
      offset += length + 1
      number++
      parts = []
      length = 0
      rest = rest.subarray(end + 1)
    }
    length += rest.length
    if (length <= MAX_LINE) parts.push(rest)
  }
}

interface ChunkSpan {
  dir: Direction
  end: number
  exchange?: number
}

function spanOf(text: string): ChunkSpan | undefined {
  try {
    const record = JSON.parse(text) as unknown
    if (!isObject(record) || record['type'] !== 'chunk') return undefined
    const { dir, offset, exchange, text: content, base64 } = record
    if (typeof offset !== 'number' || (dir !== 'in' && dir !== 'out')) return undefined
    const { length } = bytesOf({
      ...(typeof content === 'string' ? { text: content } : {}),
      ...(typeof base64 === 'string' ? { base64 } : {}),
    })
    return {
      dir,
      end: offset + length,
      ...(typeof exchange === 'number' ? { exchange } : {}),
    }
  } catch {
    return undefined // an incomplete line
  }
}
