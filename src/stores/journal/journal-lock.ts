import fs from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { type Owner, isForeign, isRunning, parseOwner, thisProcess } from './journal-owner.js'

/** A journal that another process is using. */
export class JournalLockedError extends Error {
  override readonly name = 'JournalLockedError'
  readonly code = 'JOURNAL_LOCKED'

  constructor(path: string, owner: Owner | undefined) {
    super(
      `The journal ${path} is in use by ${nameOf(owner)}; only one process can use it. Stop that process, or use another file`,
    )
  }
}

/** A journal that this process has used, and that another one has taken over, or something else has removed. */
export class JournalLostError extends Error {
  override readonly name = 'JournalLostError'
  readonly code = 'JOURNAL_LOST'

  /** `reason` is what happened, and `remedy` what to do before the restart. */
  constructor(path: string, reason: string, remedy = '') {
    super(
      `The journal ${path} ${reason}. Nothing more is written to it; ${remedy}restart this process`,
    )
  }
}

const ATTEMPTS = 10
/** Milliseconds after which a lock that is not touched is that of a process that has ended. */
const STALE = 5000
/** Milliseconds between two touches. */
const TOUCH = 1000
/** Milliseconds between two looks at the lock of a process elsewhere. */
const LOOK = 50
/** Temporary files older than this were left by processes killed while taking a lock, and are removed. */
const LEFTOVER = 60_000

/** The locks of this process, by their paths. */
const held = new Map<string, JournalLock>()
/** Locks of processes elsewhere as they were last seen, and since when they are so. */
const seen = new Map<string, { readonly found: Found; readonly since: number }>()

/** A lock file, and the process that it names. */
interface Found extends Owner {
  /** How it names the process. */
  readonly text: string
  /** Whether that process took it from one that may still run. */
  readonly takenOver: boolean
  readonly modified: bigint
  readonly inode: bigint
}

/**
 * The lock of a journal: a file that names the process which uses it, and that this process touches regularly. The id of a
 * process has no meaning in another container or on another machine; there, a lock that is not touched for some seconds
 * is taken over. Its process may be stopped or cut off rather than ended, so it looks at the lock before it writes.
 */
export class JournalLock {
  readonly #path: string
  readonly #lock: string
  readonly #fd: number
  readonly #inode: bigint
  readonly #reportLost: (error: JournalLostError) => void
  readonly #timer: NodeJS.Timeout
  #touched = performance.now()
  #lost: JournalLostError | undefined
  /** Whether the process that had the lock before may still run, and write to the files that it has open. */
  readonly takenOver: boolean

  private constructor(
    path: string,
    fd: number,
    takenOver: boolean,
    lost: (error: JournalLostError) => void,
  ) {
    this.#path = path
    this.#lock = lockOf(path)
    this.#fd = fd
    this.#inode = fs.fstatSync(fd, { bigint: true }).ino
    this.takenOver = takenOver
    this.#reportLost = lost
    held.set(this.#lock, this)
    this.#timer = setInterval(() => this.#tick(), TOUCH)
    this.#timer.unref()
  }

  /**
   * Takes the lock; that of a process which has ended is taken over. It returns without waiting, so that a server knows
   * whether it has tasks before it receives a message, except that it watches a lock from elsewhere when it first sees it.
   * `lost` is called once if another process takes the lock.
   */
  static take(path: string, lost: (error: JournalLostError) => void): JournalLock {
    const lock = lockOf(path)
    let takenOver = false
    for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
      const found = readLock(lock)
      if (found !== undefined) {
        // Nothing is written while another process has it: it may be tried often.
        if (isHeld(lock, found)) throw new JournalLockedError(path, found)
        takenOver ||= found.takenOver || isForeign(found)
        removeStale(lock, found)
      }
      const fd = link(lock, takenOver)
      if (fd === undefined) continue
      seen.delete(lock)
      return new JournalLock(path, fd, takenOver, lost)
    }
    throw new JournalLockedError(path, readLock(lock))
  }

  get lost(): JournalLostError | undefined {
    return this.#lost
  }

  /** To be called before something is written: throws if another process has taken the lock. */
  check(): void {
    // After a pause, another process may be about to take it: touched, it is not taken.
    if (this.#isOverdue()) this.#touch()
    this.#look()
    if (this.#lost !== undefined) throw this.#lost
  }

  /** To be called after something was written: the same, if the lock can have been taken meanwhile. */
  checkAgain(): void {
    if (this.#lost !== undefined || this.#isOverdue()) this.check()
    touchOverdue()
  }

  release(): void {
    clearInterval(this.#timer)
    if (held.get(this.#lock) === this) held.delete(this.#lock)
    try {
      this.#look()
    } finally {
      fs.closeSync(this.#fd)
    }
    if (this.#lost === undefined) fs.rmSync(this.#lock, { force: true })
  }

  /** Does what its timer does, if that has not run for long. */
  touchIfOverdue(): void {
    if (this.#lost === undefined && this.#isOverdue()) this.#tick()
  }

  /** Whether another process may soon take the lock, or may have taken it. */
  #isOverdue(): boolean {
    return performance.now() - this.#touched > STALE / 2
  }

  #tick(): void {
    try {
      this.#touch()
      this.#look()
    } catch {
      // It is tried again, and looked at before something is written.
    }
  }

  /** Touches the file that was linked, whatever has its name now. */
  #touch(): void {
    const now = performance.now()
    const date = new Date()
    fs.futimesSync(this.#fd, date, date)
    this.#touched = now
  }

  #look(): void {
    if (this.#lost !== undefined || this.#isOwn()) return
    const owner = readLock(this.#lock)
    const what = owner === undefined ? 'removed' : `taken over by ${nameOf(owner)}`
    this.#lost = new JournalLostError(
      this.#path,
      `no longer belongs to this process: its lock was ${what}`,
    )
    clearInterval(this.#timer)
    this.#reportLost(this.#lost)
  }

  #isOwn(): boolean {
    for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
      const found = fs.statSync(this.#lock, { bigint: true, throwIfNoEntry: false })
      if (found?.ino === this.#inode) return true
      // Not every file system has numbers that stay the same.
      if (found !== undefined) return readLock(this.#lock)?.text === thisProcess()
      // Another process may be putting it back.
      pause(LOOK / ATTEMPTS)
    }
    return false
  }
}

/** The process that uses a journal, or may use it if it is elsewhere; undefined if none does. */
export function userOf(path: string): { readonly pid: number; readonly text: string } | undefined {
  const lock = lockOf(realPath(path))
  const found = readLock(lock)
  return found !== undefined && (isForeign(found) || isAlive(lock, found)) ? found : undefined
}

/** A path without symbolic links: a journal has one lock, whatever path it is opened with. */
export function realPath(path: string): string {
  try {
    return fs.realpathSync(path)
  } catch (error) {
    if (!isCode(error, 'ENOENT')) throw error
  }
  return join(fs.realpathSync(dirname(path)), basename(path))
}

function lockOf(path: string): string {
  return `${path}.lock`
}

function isHeld(lock: string, found: Found): boolean {
  return isForeign(found) ? watchUntilTouched(lock) : isAlive(lock, found)
}

function isAlive(lock: string, found: Found): boolean {
  return isRunning(found) ?? held.has(lock)
}

/**
 * Whether the lock of a process elsewhere is touched. It is compared with itself: the clock of its file system may be
 * another one. The first time, this waits until it has changed or is stale.
 */
function watchUntilTouched(lock: string): boolean {
  const isFirst = !seen.has(lock)
  for (;;) {
    const found = readLock(lock)
    if (found === undefined) return false
    const known = seen.get(lock)
    if (known === undefined || !isSame(known.found, found)) {
      seen.set(lock, { found, since: performance.now() })
      if (known !== undefined) return true
    } else if (performance.now() - known.since >= STALE) return false
    if (!isFirst) return true
    pause(LOOK)
  }
}

function isSame(one: Found, other: Found): boolean {
  return one.text === other.text && one.inode === other.inode && one.modified === other.modified
}

/** Creates a lock; returns the file, or undefined if there is one. */
function link(lock: string, takenOver: boolean): number | undefined {
  const mine = temporaryPath(lock)
  fs.writeFileSync(mine, takenOver ? `${thisProcess()} taken-over` : thisProcess(), { mode: 0o600 })
  const fd = fs.openSync(mine, 'r+')
  try {
    // Unlike a file that is created and then written, a link is complete when it appears.
    fs.linkSync(mine, lock)
    removeLeftovers(lock, fs.fstatSync(fd).mtimeMs)
    return fd
  } catch (error) {
    fs.closeSync(fd)
    if (isCode(error, 'EEXIST')) return undefined
    throw error
  } finally {
    fs.rmSync(mine, { force: true })
  }
}

function temporaryPath(lock: string): string {
  return `${lock}.${process.pid}.${crypto.randomUUID()}`
}

/** Removes files of processes that were killed while they took the lock. */
function removeLeftovers(lock: string, now: number): void {
  const prefix = `${basename(lock)}.`
  try {
    for (const name of fs.readdirSync(dirname(lock))) {
      if (!name.startsWith(prefix)) continue
      const file = join(dirname(lock), name)
      if (now - fs.statSync(file).mtimeMs > LEFTOVER) fs.rmSync(file, { force: true })
    }
  } catch {
    // They are harmless.
  }
}

/** Removes a lock that is stale. */
function removeStale(lock: string, found: Found): void {
  // Another process may do the same, and may have taken the lock since: then it is put back.
  const taken = temporaryPath(lock)
  try {
    fs.renameSync(lock, taken)
  } catch (error) {
    if (isCode(error, 'ENOENT')) return
    throw error
  }
  const removed = readLock(taken)
  if (removed !== undefined && !isSame(removed, found)) putBack(taken, lock)
  fs.rmSync(taken, { force: true })
}

function putBack(taken: string, lock: string): void {
  try {
    fs.linkSync(taken, lock)
  } catch {
    // A third process has it.
  }
}

function readLock(lock: string): Found | undefined {
  let fd: number
  try {
    // A network file system looks at the file again when it is opened.
    fd = fs.openSync(lock, 'r')
  } catch (error) {
    if (isCode(error, 'ENOENT')) return undefined
    throw error
  }
  try {
    const { mtimeNs, ino } = fs.fstatSync(fd, { bigint: true })
    const fields = fs.readFileSync(fd, 'utf8').split(' ')
    const text = fields.slice(0, 3).join(' ')
    const takenOver = fields.length > 3
    return { ...parseOwner(text), text, takenOver, modified: mtimeNs, inode: ino }
  } finally {
    fs.closeSync(fd)
  }
}

function nameOf(owner: Owner | undefined): string {
  if (owner === undefined) return 'another process'
  const name = `process ${owner.pid}`
  return isForeign(owner) ? `${name} of another container or machine` : name
}

/** Waits without returning to the event loop. */
function pause(milliseconds: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, milliseconds)
  touchOverdue()
}

/** While one journal waits or is read, no timer runs: the locks of the others are touched here. */
function touchOverdue(): void {
  for (const lock of held.values()) lock.touchIfOverdue()
}

export function isCode(error: unknown, code: string): boolean {
  return error instanceof Error && 'code' in error && error.code === code
}
