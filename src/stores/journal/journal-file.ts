import fs from 'node:fs'
import { dirname } from 'node:path'
import { promisify } from 'node:util'
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

const HEADER = { journal: 'ccmcp tasks', version: 1 }
const NEWLINE = 0x0a
/** Lines are written together up to about this many bytes. */
const CHUNK = 1024 * 1024

/**
 * An append-only file of JSON values: one line each, `<crc32> <json>`. A value is either there as a whole, or not at
 * all: an incomplete last line is cut when the file is opened.
 */
export class JournalFile {
  readonly #path: string
  #fd: number
  /** The end of the last complete line. */
  #size: number
  /** Whether there may be bytes behind it. */
  #torn = false
  /** Whether the file was renamed into place, and its directory is not on the disk yet. */
  #unsyncedDirectory = false

  private constructor(path: string, fd: number, size: number) {
    this.#path = path
    this.#fd = fd
    this.#size = size
  }

  /** Opens a file, or creates it; `read` gets its values in order. */
  static open(path: string, read: (value: unknown) => void): JournalFile {
    const { size, length } = readJournalFile(path, read)
    if (size === 0) return JournalFile.#create(path)
    const journal = new JournalFile(path, fs.openSync(path, 'r+'), size)
    try {
      if (size < length) journal.#cutNow()
    } catch (error) {
      fs.closeSync(journal.#fd)
      throw error
    }
    return journal
  }

  static #create(path: string): JournalFile {
    const aside = asideOf(path)
    const fd = fs.openSync(aside, 'w+', 0o600)
    try {
      const line = encodeLine(HEADER)
      fs.writeFileSync(fd, line)
      fs.fsyncSync(fd)
      fs.renameSync(aside, path)
      if (process.platform !== 'win32') withDirectory(path, (directory) => fs.fsyncSync(directory))
      return new JournalFile(path, fd, line.length)
    } catch (error) {
      fs.closeSync(fd)
      fs.rmSync(aside, { force: true })
      throw error
    }
  }

  get size(): number {
    return this.#size
  }

  /** Appends a value; it is on the disk when this resolves. If it rejects, nothing was appended. */
  async append(value: unknown): Promise<void> {
    const line = encodeLine(value)
    if (this.#unsyncedDirectory) await this.#syncDirectory()
    if (this.#torn) await this.#cut()
    this.#torn = true
    await writeAll(this.#fd, line, this.#size)
    await datasync(this.#fd)
    this.#size += line.length
    this.#torn = false
  }

  /** Replaces all values at once: a crash, or an error, leaves either the old file or the new one. */
  async replace(values: Iterable<unknown>): Promise<void> {
    const aside = asideOf(this.#path)
    const fd = fs.openSync(aside, 'w+', 0o600)
    let size = 0
    try {
      for (const bytes of chunksOf(values)) {
        await writeAll(fd, bytes, size)
        size += bytes.length
      }
      await sync(fd)
      await rename(aside, this.#path)
    } catch (error) {
      fs.closeSync(fd)
      fs.rmSync(aside, { force: true })
      throw error
    }
    // From here on the new file has the name: values that were appended to the old one would be lost.
    fs.closeSync(this.#fd)
    this.#fd = fd
    this.#size = size
    this.#torn = false
    this.#unsyncedDirectory = true
    await this.#syncDirectory()
  }

  close(): void {
    fs.closeSync(this.#fd)
  }

  async #cut(): Promise<void> {
    await truncate(this.#fd, this.#size)
    await datasync(this.#fd)
    this.#torn = false
  }

  #cutNow(): void {
    fs.ftruncateSync(this.#fd, this.#size)
    fs.fdatasyncSync(this.#fd)
  }

  /** The rename is on the disk when the directory is. Some systems cannot open a directory. */
  async #syncDirectory(): Promise<void> {
    if (process.platform !== 'win32')
      await withDirectory(this.#path, (directory) => sync(directory))
    this.#unsyncedDirectory = false
  }
}

/**
 * Reads a journal without changing it; the last line may be incomplete, because it is being written or a crash has cut it.
 * Returns the bytes of complete lines, and all. An empty file, or none, has no lines.
 */
export function readJournalFile(
  path: string,
  read: (value: unknown) => void,
): { size: number; length: number } {
  const bytes = readIfThere(path)
  let size = 0
  while (size < bytes.length) {
    const end = bytes.indexOf(NEWLINE, size)
    const value = end === -1 ? undefined : parseLine(bytes.subarray(size, end))
    if (value === undefined) {
      // Every write is one line and is awaited: only the last line can be incomplete.
      const more = end === -1 ? -1 : bytes.indexOf(NEWLINE, end + 1)
      if (more !== -1) throw new JournalCorruptError(path, size, 'the checksum does not match')
      break
    }
    if (size === 0) checkHeader(path, value)
    else read(value)
    size = end + 1
  }
  if (size === 0 && bytes.length > 0) throw new JournalCorruptError(path, 0, 'it has no header')
  return { size, length: bytes.length }
}

function readIfThere(path: string): Buffer {
  try {
    return fs.readFileSync(path)
  } catch (error) {
    if (isCode(error, 'ENOENT')) return Buffer.alloc(0)
    throw error
  }
}

/** Where a new version is written before it is renamed into place. */
function asideOf(path: string): string {
  return `${path}.new`
}

function withDirectory(path: string, use: (directory: number) => Promise<void>): Promise<void>
function withDirectory(path: string, use: (directory: number) => void): void
function withDirectory(
  path: string,
  use: (directory: number) => void | Promise<void>,
): void | Promise<void> {
  const directory = fs.openSync(dirname(path), 'r')
  const close = () => fs.closeSync(directory)
  let used: void | Promise<void>
  try {
    used = use(directory)
  } catch (error) {
    close()
    throw error
  }
  if (used instanceof Promise) return used.finally(close)
  return close()
}

function* chunksOf(values: Iterable<unknown>): Generator<Buffer> {
  let lines = [encodeLine(HEADER)]
  let bytes = 0
  for (const value of values) {
    const line = encodeLine(value)
    lines.push(line)
    bytes += line.length
    if (bytes < CHUNK) continue
    yield Buffer.concat(lines)
    lines = []
    bytes = 0
  }
  yield Buffer.concat(lines)
}

// The functions of `fs` are looked up when they are called, so that tests can make them fail.
const datasync = (fd: number) => promisify(fs.fdatasync)(fd)
const sync = (fd: number) => promisify(fs.fsync)(fd)
const truncate = (fd: number, size: number) => promisify(fs.ftruncate)(fd, size)
const rename = (from: string, to: string) => promisify(fs.rename)(from, to)

async function writeAll(fd: number, bytes: Buffer, position: number): Promise<void> {
  for (let written = 0; written < bytes.length;)
    written += await write(fd, bytes.subarray(written), position + written)
}

function write(fd: number, bytes: Buffer, position: number): Promise<number> {
  return new Promise((resolve, reject) =>
    fs.write(fd, bytes, 0, bytes.length, position, (error, written) => {
      if (error === null) resolve(written)
      else reject(error)
    }),
  )
}

function encodeLine(value: unknown): Buffer {
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
