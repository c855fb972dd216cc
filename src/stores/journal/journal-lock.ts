import { link, readFile, rename, rm, writeFile } from 'node:fs/promises'

/** A journal that another process is using. */
export class JournalLockedError extends Error {
  override readonly name = 'JournalLockedError'
  readonly code = 'JOURNAL_LOCKED'

  constructor(path: string, pid: number) {
    super(
      `The journal ${path} is used by process ${pid}; end that process, or use another file. Without tasks, the server can be started anyway`,
    )
  }
}

const ATTEMPTS = 10
/** The locks of this process. */
const held = new Set<string>()

/** Takes the lock of a file; a lock whose process has ended is taken over. Returns a function that releases it. */
export async function lockFile(path: string): Promise<() => Promise<void>> {
  const lock = `${path}.lock`
  const mine = `${lock}.${process.pid}.${crypto.randomUUID()}`
  const owner = `${process.pid} ${await startOf(process.pid)}`
  await writeFile(mine, owner)
  try {
    for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
      try {
        // Unlike a file that is created and then written, a link is complete when it appears.
        await link(mine, lock)
        held.add(lock)
        return async () => {
          held.delete(lock)
          await rm(lock, { force: true })
        }
      } catch (error) {
        if (!isCode(error, 'EEXIST')) throw error
      }
      await removeStale(path, lock)
    }
    throw new JournalLockedError(path, 0)
  } finally {
    await rm(mine, { force: true })
  }
}

/** Removes a lock whose process has ended; throws if it has not. */
async function removeStale(path: string, lock: string): Promise<void> {
  const found = await readOwner(lock)
  if (found === undefined) return
  if (await isAlive(found, lock)) throw new JournalLockedError(path, found.pid)
  // Another process may do the same, and may have taken the lock since: then it is put back.
  const taken = `${lock}.${process.pid}.${crypto.randomUUID()}`
  try {
    await rename(lock, taken)
  } catch (error) {
    if (isCode(error, 'ENOENT')) return
    throw error
  }
  const removed = await readOwner(taken)
  if (removed !== undefined && removed.text !== found.text) await link(taken, lock).catch(() => {}) // a third process has it
  await rm(taken, { force: true })
}

interface Owner {
  readonly pid: number
  readonly start: string
  readonly text: string
}

async function readOwner(lock: string): Promise<Owner | undefined> {
  try {
    const text = await readFile(lock, 'utf8')
    const [pid = '', start = ''] = text.split(' ')
    return { pid: Number(pid), start, text }
  } catch (error) {
    if (isCode(error, 'ENOENT')) return undefined
    throw error
  }
}

async function isAlive({ pid, start }: Owner, lock: string): Promise<boolean> {
  // In a container, the process after a restart often has the same id.
  if (pid === process.pid) return held.has(lock)
  if (!(Number.isInteger(pid) && pid > 0)) return false
  try {
    process.kill(pid, 0)
  } catch (error) {
    if (isCode(error, 'ESRCH')) return false
  }
  return start === '' || (await startOf(pid)) === start
}

/** When a process was started, on systems that tell: its id may have been used before. */
async function startOf(pid: number): Promise<string> {
  try {
    const stat = await readFile(`/proc/${pid}/stat`, 'utf8')
    // The second field is a name in parentheses, which may contain anything.
    return stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19] ?? ''
  } catch {
    return ''
  }
}

function isCode(error: unknown, code: string): boolean {
  return error instanceof Error && 'code' in error && error.code === code
}
