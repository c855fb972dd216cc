import fs from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { HEADER, encodeLine, readJournalFile } from './journal-lines.js'
import { type JournalLock, JournalLostError } from './journal-lock.js'

/** Lines are written together up to about this many bytes. */
const CHUNK = 1024 * 1024
/** What follows the path of a journal in that of its next version. */
const TEMPORARY = /^(?:\.[\da-f-]{36})?\.new$/

/**
 * An append-only file of JSON values: one line each, `<crc32> <json>`. A value is either there as a whole, or not at
 * all: an incomplete last line is cut when the file is opened.
 */
export class JournalFile {
  readonly #path: string
  readonly #lock: JournalLock
  readonly #reportLost: (error: JournalLostError) => void
  #fd: number
  /** The end of the last complete line. */
  #size: number
  /** Whether there may be bytes behind it. */
  #torn = false
  /** Whether the file was renamed into place, and its directory is not on the disk yet. */
  #unsyncedDirectory = false
  #mustReplace: boolean
  #lost: JournalLostError | undefined
  /** The bytes of an incomplete end that were cut when it was opened. */
  cut = 0

  private constructor(
    path: string,
    lock: JournalLock,
    lost: (error: JournalLostError) => void,
    fd: number,
    size: number,
  ) {
    this.#path = path
    this.#lock = lock
    this.#reportLost = lost
    this.#fd = fd
    this.#size = size
    this.#mustReplace = lock.takenOver
  }

  /** Opens a file, or creates it; `read` gets its values in order. `lost` is called once if it must not be used any more. */
  static open(
    path: string,
    lock: JournalLock,
    lost: (error: JournalLostError) => void,
    read: (value: unknown) => void,
  ): JournalFile {
    // If another process is still there, its new version would replace this one.
    removeTemporaries(path)
    const { size, length } = readJournalFile(path, (value) => {
      // A large file takes long: the lock is touched meanwhile.
      lock.checkAgain()
      read(value)
    })
    if (size === 0) return JournalFile.#create(path, lock, lost)
    const journal = new JournalFile(path, lock, lost, fs.openSync(path, 'r+'), size)
    try {
      if (size < length) journal.#cutNow()
      journal.cut = length - size
    } catch (error) {
      fs.closeSync(journal.#fd)
      throw error
    }
    return journal
  }

  static #create(
    path: string,
    lock: JournalLock,
    lost: (error: JournalLostError) => void,
  ): JournalFile {
    const temporary = temporaryPathOf(path)
    const fd = fs.openSync(temporary, 'w+', 0o600)
    try {
      const line = encodeLine(HEADER)
      fs.writeFileSync(fd, line)
      fs.fsyncSync(fd)
      fs.renameSync(temporary, path)
      if (process.platform !== 'win32') withDirectory(path, (directory) => fs.fsyncSync(directory))
      return new JournalFile(path, lock, lost, fd, line.length)
    } catch (error) {
      fs.closeSync(fd)
      fs.rmSync(temporary, { force: true })
      throw error
    }
  }

  get size(): number {
    return this.#size
  }

  /** Why nothing more is written: the file was deleted, replaced or truncated by something else. */
  get lost(): JournalLostError | undefined {
    return this.#lost
  }

  /** Whether another process may still write to this file: it must be replaced before something is appended. */
  get mustReplace(): boolean {
    return this.#mustReplace
  }

  /** Appends a value; it is on the disk when this resolves. If it rejects, nothing was appended. */
  async append(value: unknown): Promise<void> {
    const line = encodeLine(value)
    this.#lock.check()
    this.#checkFile()
    if (this.#unsyncedDirectory) await this.#syncDirectory()
    if (this.#torn) await this.#cut()
    this.#torn = true
    try {
      await writeAll(this.#fd, line, this.#size)
      await datasync(this.#fd)
      this.#lock.checkAgain()
      // Again: what is acknowledged is in the file that is read after a restart.
      this.#checkFile(this.#size + line.length)
    } catch (error) {
      this.#discard()
      throw error
    }
    this.#size += line.length
    this.#torn = false
  }

  /** Replaces all values at once: a crash, or an error, leaves either the old file or the new one. */
  async replace(values: Iterable<unknown>): Promise<void> {
    this.#lock.check()
    const temporary = temporaryPathOf(this.#path)
    const fd = fs.openSync(temporary, 'w+', 0o600)
    let size = 0
    try {
      for (const bytes of chunksOf(values)) {
        await writeAll(fd, bytes, size)
        size += bytes.length
      }
      await sync(fd)
      this.#lock.check()
      // What somebody has put in its place, such as a backup, is not overwritten.
      this.#checkFile()
      await rename(temporary, this.#path)
    } catch (error) {
      fs.closeSync(fd)
      fs.rmSync(temporary, { force: true })
      throw error
    }
    // From here on the new file has the name: values that were appended to the old one would be lost.
    const old = this.#fd
    this.#fd = fd
    this.#size = size
    this.#torn = false
    this.#mustReplace = false
    this.#unsyncedDirectory = true
    fs.closeSync(old)
    await this.#syncDirectory()
  }

  close(): void {
    try {
      if (this.#torn && this.#lost === undefined) this.#cutNow()
    } catch {
      // What was refused may be there when it is opened again: the disk has failed, or another process has the file.
    } finally {
      fs.closeSync(this.#fd)
    }
  }

  /** Throws if the file has lost its name, or has another size than what was written: that would be gone after a restart. */
  #checkFile(size = this.#torn || this.#mustReplace ? undefined : this.#size): void {
    const own = fs.fstatSync(this.#fd, { bigint: true })
    const named = fs.statSync(this.#path, { bigint: true, throwIfNoEntry: false })
    const isChanged = size !== undefined && own.size !== BigInt(size)
    // Not every file system has numbers that stay the same. In another file, what is appended here is missing.
    const isOwn = named?.ino === own.ino || (named?.size === own.size && own.nlink > 0n)
    if (isOwn && !isChanged) return
    // Another process may have taken it over, and replaced it.
    this.#lock.check()
    const what = named === undefined ? 'deleted' : isChanged ? 'changed' : 'replaced'
    this.#lost = new JournalLostError(
      this.#path,
      `was ${what} by something else while this process was using it`,
      'put it back if its tasks are still needed, and ',
    )
    this.#reportLost(this.#lost)
    throw this.#lost
  }

  /** Hides what was not appended from whoever opens the file next; it is cut for good before the next line, or at the end. */
  #discard(): void {
    if (this.#lost !== undefined) return
    try {
      this.#lock.check()
      fs.ftruncateSync(this.#fd, this.#size)
    } catch {
      // It is tried again then.
    }
  }

  async #cut(): Promise<void> {
    this.#lock.check()
    await truncate(this.#fd, this.#size)
    await datasync(this.#fd)
    this.#torn = false
  }

  #cutNow(): void {
    this.#lock.check()
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

/** Where a new version is written before it is renamed into place. */
function temporaryPathOf(path: string): string {
  return `${path}.${crypto.randomUUID()}.new`
}

function removeTemporaries(path: string): void {
  const folder = dirname(path)
  const name = basename(path)
  for (const each of fs.readdirSync(folder))
    if (each.startsWith(name) && TEMPORARY.test(each.slice(name.length)))
      fs.rmSync(join(folder, each), { force: true })
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
