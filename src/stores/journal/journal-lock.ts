import fs from 'node:fs'
import { basename, dirname, join } from 'node:path'

/** A journal that another process is using. */
export class JournalLockedError extends Error {
  override readonly name = 'JournalLockedError'
  readonly code = 'JOURNAL_LOCKED'

  constructor(path: string, pid: number) {
    super(
      `The journal ${path} is used by process ${pid}, and by one process at a time; end that process, or use another file`,
    )
  }
}

const ATTEMPTS = 10
/** The locks of this process. */
const held = new Set<string>()

/**
 * Takes the lock of a file; a lock whose process has ended is taken over. Returns a function that releases it. It does
 * not wait for anything, so that a server knows whether it has tasks before it receives a message.
 */
export function lockFile(path: string): () => void {
  const lock = lockOf(path)
  const mine = `${lock}.${process.pid}.${crypto.randomUUID()}`
  fs.writeFileSync(mine, thisProcess(), { mode: 0o600 })
  try {
    for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
      try {
        // Unlike a file that is created and then written, a link is complete when it appears.
        fs.linkSync(mine, lock)
        held.add(lock)
        removeLeftovers(lock)
        return () => {
          held.delete(lock)
          fs.rmSync(lock, { force: true })
        }
      } catch (error) {
        if (!isCode(error, 'EEXIST')) throw error
      }
      removeStale(path, lock)
    }
    throw new JournalLockedError(path, 0)
  } finally {
    fs.rmSync(mine, { force: true })
  }
}

/** The process that uses a journal; undefined if none does. */
export function userOf(path: string): { readonly pid: number; readonly text: string } | undefined {
  const lock = lockOf(path)
  const owner = readOwner(lock)
  return owner !== undefined && isAlive(owner, lock) ? owner : undefined
}

/** How the lock names this process. */
export function thisProcess(): string {
  return `${process.pid} ${startOf(process.pid)}`
}

function lockOf(path: string): string {
  return `${path}.lock`
}

/** Removes files of processes that were killed while they took the lock. */
function removeLeftovers(lock: string): void {
  const prefix = `${basename(lock)}.`
  try {
    for (const name of fs.readdirSync(dirname(lock))) {
      if (!name.startsWith(prefix)) continue
      const pid = Number(name.slice(prefix.length).split('.')[0])
      if (Number.isInteger(pid) && pid !== process.pid && !exists(pid))
        fs.rmSync(join(dirname(lock), name), { force: true })
    }
  } catch {
    // They are harmless.
  }
}

/** Removes a lock whose process has ended; throws if it has not. */
function removeStale(path: string, lock: string): void {
  const found = readOwner(lock)
  if (found === undefined) return
  if (isAlive(found, lock)) throw new JournalLockedError(path, found.pid)
  // Another process may do the same, and may have taken the lock since: then it is put back.
  const taken = `${lock}.${process.pid}.${crypto.randomUUID()}`
  try {
    fs.renameSync(lock, taken)
  } catch (error) {
    if (isCode(error, 'ENOENT')) return
    throw error
  }
  const removed = readOwner(taken)
  if (removed !== undefined && removed.text !== found.text) putBack(taken, lock)
  fs.rmSync(taken, { force: true })
}

function putBack(taken: string, lock: string): void {
  try {
    fs.linkSync(taken, lock)
  } catch {
    // A third process has it.
  }
}

interface Owner {
  readonly pid: number
  readonly start: string
  readonly text: string
}

function readOwner(lock: string): Owner | undefined {
  try {
    const text = fs.readFileSync(lock, 'utf8')
    const [pid = '', start = ''] = text.split(' ')
    return { pid: Number(pid), start, text }
  } catch (error) {
    if (isCode(error, 'ENOENT')) return undefined
    throw error
  }
}

function isAlive({ pid, start }: Owner, lock: string): boolean {
  // In a container, the process after a restart often has the same id.
  if (pid === process.pid) return held.has(lock)
  if (!(Number.isInteger(pid) && pid > 0) || !exists(pid)) return false
  return start === '' || startOf(pid) === start
}

function exists(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return !isCode(error, 'ESRCH')
  }
}

/** When a process was started, on systems that tell: its id may have been used before. */
function startOf(pid: number): string {
  try {
    const stat = fs.readFileSync(`/proc/${pid}/stat`, 'utf8')
    // The second field is a name in parentheses, which may contain anything.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    // A process that has ended stays listed until its parent asks for its exit code.
    return fields[0] === 'Z' ? 'ended' : (fields[19] ?? '')
  } catch {
    return ''
  }
}

export function isCode(error: unknown, code: string): boolean {
  return error instanceof Error && 'code' in error && error.code === code
}
