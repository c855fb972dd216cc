import fs from 'node:fs'
import { crc32 } from 'node:zlib'
import { isCode } from './journal-lock.js'

/** A journal that was changed by something else, or whose disk has failed. */
export class JournalCorruptError extends Error {
  override readonly name = 'JournalCorruptError'
  readonly code = 'JOURNAL_CORRUPT'

  constructor(path: string, offset: number, problem: string) {
    super(
      `The journal ${path} is corrupt at byte ${offset}: ${problem}. Restore it from a backup, or move it away to start without its tasks`,
    )
  }
}

/** The first line of a journal. */
export const HEADER = { journal: 'ccmcp tasks', version: 1 }
const NEWLINE = 0x0a
/** Bytes that are read together. */
const CHUNK = 1024 * 1024
/** Bytes that a line may have; those that are written have far less. */
const LONGEST = 512 * CHUNK

/**
 * Reads a journal without changing it; the last line may be incomplete, because it is being written or a crash has cut it.
 * Returns the bytes of complete lines, and all. An empty file, or none, has no lines. A line is in memory, the file is not.
 */
export function readJournalFile(
  path: string,
  read: (value: unknown) => void,
): { size: number; length: number } {
  let size = 0
  let length = 0
  /** Whether the last line had a wrong checksum. */
  let broken = false
  for (const { line, end } of linesOf(path)) {
    length = end
    if (line === undefined) break
    // Every write is one line and is awaited: only the last line can be incomplete.
    if (broken) throw new JournalCorruptError(path, size, 'the checksum does not match')
    const value = parseLine(line)
    broken = value === undefined
    if (size === 0) checkHeader(path, value)
    else if (!broken) read(value)
    if (!broken) size = end
  }
  if (size === 0 && length > 0) throw new JournalCorruptError(path, 0, 'it has no header')
  return { size, length }
}

/** The lines of a file, without their line breaks, and where each ends; what follows the last one is undefined. */
function* linesOf(path: string): Generator<{ line: Buffer | undefined; end: number }> {
  const fd = openIfThere(path)
  if (fd === undefined) return
  try {
    let begun: Buffer[] = []
    let position = 0
    let start = 0
    for (;;) {
      const bytes = Buffer.allocUnsafe(CHUNK)
      const chunk = bytes.subarray(0, fs.readSync(fd, bytes, 0, CHUNK, position))
      if (chunk.length === 0) break
      let from = 0
      for (let to = chunk.indexOf(NEWLINE); to !== -1; to = chunk.indexOf(NEWLINE, from)) {
        const rest = chunk.subarray(from, to)
        const line = begun.length === 0 ? rest : Buffer.concat([...begun, rest])
        begun = []
        from = to + 1
        start = position + from
        yield { line, end: start }
      }
      if (from < chunk.length) begun.push(chunk.subarray(from))
      position += chunk.length
      // The header is much shorter than this.
      if (start === 0) throw new JournalCorruptError(path, 0, 'it has no header')
      if (position - start > LONGEST)
        throw new JournalCorruptError(path, start, 'a line is longer than 512 MiB')
    }
    if (position > start) yield { line: undefined, end: position }
  } finally {
    fs.closeSync(fd)
  }
}

function openIfThere(path: string): number | undefined {
  try {
    return fs.openSync(path, 'r')
  } catch (error) {
    if (isCode(error, 'ENOENT')) return undefined
    throw error
  }
}

export function encodeLine(value: unknown): Buffer {
  const json = Buffer.from(JSON.stringify(value))
  return Buffer.concat([Buffer.from(`${checksum(json)} `), json, Buffer.from('\n')])
}

/** Undefined if the line is incomplete or was changed. */
function parseLine(line: Buffer): unknown {
  const json = line.subarray(9)
  if (line.length < 10 || line.toString('latin1', 0, 8) !== checksum(json)) return undefined
  return JSON.parse(json.toString('utf8')) as unknown // its checksum is right
}

function checksum(bytes: Buffer): string {
  return crc32(bytes).toString(16).padStart(8, '0')
}

function checkHeader(path: string, value: unknown): void {
  const { journal, version } = Object(value) as { journal?: unknown; version?: unknown }
  if (journal !== HEADER.journal)
    throw new JournalCorruptError(path, 0, 'it is not a journal of tasks')
  if (version !== HEADER.version)
    throw new JournalCorruptError(
      path,
      0,
      `its format ${String(version)} is not known; update ccmcp`,
    )
}
