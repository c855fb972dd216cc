import fs from 'node:fs'
import type { TaskCommand } from '../task-store.js'
import { isCode, realPath } from './journal-lock.js'
import { thisProcess } from './journal-owner.js'

/*
 * An operator sends a command to the process that uses a journal by leaving a file beside it. The file is looked for
 * every second rather than watched: that works on every file system, and writes to the journal cause no events.
 */

const INTERVAL = 1000
const MAX_BYTES = 1024
const COMMANDS: ReadonlySet<unknown> = new Set<TaskCommand['command']>(['cancel', 'retry'])

/** Calls a function with each command for this process. Returns a function that ends this. */
export function receiveCommands(path: string, run: (command: TaskCommand) => void): () => void {
  const timer = setInterval(() => {
    const command = take(path)
    if (command !== undefined) run(command)
  }, INTERVAL)
  timer.unref()
  return () => clearInterval(timer)
}

/**
 * Leaves a command for the process that a lock names; resolves with whether it was taken within some milliseconds. One
 * that was not is withdrawn.
 */
export async function sendCommand(
  path: string,
  command: TaskCommand,
  process: string,
  timeout = 5000,
): Promise<boolean> {
  const file = fileOf(path)
  const temporary = `${file}.${crypto.randomUUID()}`
  const end = performance.now() + timeout
  fs.writeFileSync(temporary, JSON.stringify({ ...command, process }), { mode: 0o600 })
  try {
    // A file with the command of somebody else is taken first.
    while (!linked(temporary, file)) {
      if (performance.now() > end) return false
      await pause()
    }
    const { ino } = fs.statSync(temporary)
    const isThere = () => fs.lstatSync(file, { throwIfNoEntry: false })?.ino === ino
    while (isThere()) {
      if (performance.now() > end) {
        fs.rmSync(file, { force: true })
        return false
      }
      await pause()
    }
    return true
  } finally {
    fs.rmSync(temporary, { force: true })
  }
}

function fileOf(path: string): string {
  return `${realPath(path)}.command`
}

/** Unlike a file that is created and then written, a link is complete when it appears. */
function linked(from: string, to: string): boolean {
  try {
    fs.linkSync(from, to)
    return true
  } catch (error) {
    if (isCode(error, 'EEXIST')) return false
    throw error
  }
}

const pause = () => new Promise((resolve) => setTimeout(resolve, 50))

/** Reads and removes the file with a command; undefined if there is none for this process. */
function take(path: string): TaskCommand | undefined {
  try {
    const file = fileOf(path)
    const found = fs.lstatSync(file, { throwIfNoEntry: false })
    if (found === undefined) return undefined
    const text = isTrusted(found) ? readSmall(file) : undefined
    // Whatever it is, it is not looked at again. A directory is not removed; it is harmless.
    fs.rmSync(file, { force: true })
    return text === undefined ? undefined : parse(text)
  } catch {
    return undefined
  }
}

/** Whether nobody else can have written it. */
function isTrusted(stats: fs.Stats): boolean {
  if (!stats.isFile() || stats.size > MAX_BYTES) return false
  const { getuid } = process
  return getuid === undefined || (stats.uid === getuid() && (stats.mode & 0o077) === 0)
}

function readSmall(file: string): string | undefined {
  // On Windows, some of them are undefined, which counts as 0.
  const { O_RDONLY, O_NOFOLLOW, O_NONBLOCK } = fs.constants
  const fd = fs.openSync(file, O_RDONLY | O_NOFOLLOW | O_NONBLOCK)
  try {
    // It may have been replaced since it was looked at.
    if (!isTrusted(fs.fstatSync(fd))) return undefined
    const bytes = Buffer.alloc(MAX_BYTES)
    return bytes.toString('utf8', 0, fs.readSync(fd, bytes, 0, MAX_BYTES, 0))
  } finally {
    fs.closeSync(fd)
  }
}

function parse(text: string): TaskCommand | undefined {
  const value = Object(JSON.parse(text)) as Partial<Record<string, unknown>>
  const { command, name, process: addressed } = value
  // One that was left for another process may be old.
  if (addressed !== thisProcess() || !COMMANDS.has(command) || typeof name !== 'string')
    return undefined
  return { command: command as TaskCommand['command'], name } // it is one of COMMANDS
}
