import { type FileHandle, open, readFile, rename } from 'node:fs/promises'
import { dirname } from 'node:path'
import { crc32 } from 'node:zlib'

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

/**
 * An append-only file of JSON values: one line each, `<crc32> <json>`. A value is either there as a whole, or not at
 * all: an incomplete last line is cut when the file is opened.
 */
export class JournalFile {
  readonly #path: string
  #file: FileHandle
  /** The end of the last complete line. */
  #size: number
  /** Whether there may be bytes behind it. */
  #torn = false

  private constructor(path: string, file: FileHandle, size: number) {
    this.#path = path
    this.#file = file
    this.#size = size
  }

  /** Opens a file, or creates it; `read` gets its values in order. */
  static async open(path: string, read: (value: unknown) => void): Promise<JournalFile> {
    const found = await readFile(path).catch((error: unknown) => {
      if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined
      throw error
    })
    const bytes = found ?? Buffer.alloc(0)
    let size = 0
    let lines = 0
    while (size < bytes.length) {
      const end = bytes.indexOf(NEWLINE, size)
      const value = end === -1 ? undefined : parseLine(bytes.subarray(size, end))
      if (value === undefined) {
        // Every write is one line and is awaited: only the last line can be incomplete.
        const more = end === -1 ? -1 : bytes.indexOf(NEWLINE, end + 1)
        if (more !== -1) throw new JournalCorruptError(path, size, 'the checksum does not match')
        break
      }
      if (lines++ === 0) checkHeader(path, value)
      else read(value)
      size = end + 1
    }
    if (lines === 0) {
      if (bytes.length > 0) throw new JournalCorruptError(path, 0, 'it has no header')
      const file = await create(path, [HEADER])
      return new JournalFile(path, file.handle, file.size)
    }
    const handle = await open(path, 'r+')
    const journal = new JournalFile(path, handle, size)
    if (size < bytes.length) await journal.#cut()
    return journal
  }

  get size(): number {
    return this.#size
  }

  /** Appends a value; it is on the disk when this resolves. If it rejects, nothing was appended. */
  async append(value: unknown): Promise<void> {
    if (this.#torn) await this.#cut()
    const line = encodeLine(value)
    this.#torn = true
    await writeAll(this.#file, line, this.#size)
    await this.#file.datasync()
    this.#size += line.length
    this.#torn = false
  }

  /** Replaces all values at once: a crash leaves either the old file or the new one. */
  async replace(values: readonly unknown[]): Promise<void> {
    const { handle, size } = await create(this.#path, [HEADER, ...values])
    const before = this.#file
    this.#file = handle
    this.#size = size
    this.#torn = false
    await before.close()
  }

  close(): Promise<void> {
    return this.#file.close()
  }

  async #cut(): Promise<void> {
    await this.#file.truncate(this.#size)
    await this.#file.datasync()
    this.#torn = false
  }
}

/** Writes a complete file aside and renames it into place. */
async function create(
  path: string,
  values: readonly unknown[],
): Promise<{ handle: FileHandle; size: number }> {
  const aside = `${path}.new`
  const handle = await open(aside, 'w+', 0o600)
  try {
    let size = 0
    for (const value of values) {
      const line = encodeLine(value)
      await writeAll(handle, line, size)
      size += line.length
    }
    await handle.sync()
    await rename(aside, path)
    await syncDirectory(dirname(path))
    return { handle, size }
  } catch (error) {
    await handle.close()
    throw error
  }
}

/** The rename is on the disk when the directory is. Some systems cannot open a directory. */
async function syncDirectory(path: string): Promise<void> {
  if (process.platform === 'win32') return
  const directory = await open(path, 'r')
  try {
    await directory.sync()
  } finally {
    await directory.close()
  }
}

async function writeAll(file: FileHandle, bytes: Buffer, position: number): Promise<void> {
  let written = 0
  while (written < bytes.length)
    written += (await file.write(bytes, written, bytes.length - written, position + written))
      .bytesWritten
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
