import { mkdirSync, readdirSync, rmSync, statSync } from 'node:fs'
import { homedir } from 'node:os'
import { basename, isAbsolute, join } from 'node:path'

/** Older captures are deleted, and the oldest ones if all together are larger. */
const MAX_AGE = 7 * 24 * 60 * 60 * 1000
const MAX_TOTAL = 2 * 1024 * 1024 * 1024

/** `20261116T021500123Z-name-4711.ndjson`: names sort by time. */
const NAME = /^\d{8}T\d{9}Z-.*-(\d+)\.ndjson$/

/** The folder of captures without a name: `$XDG_STATE_HOME/ccmcp/captures`. */
export function captureFolder(environment = process.env): string {
  const state = environment['XDG_STATE_HOME'] ?? ''
  // The specification of base directories says that relative paths are ignored.
  const home = isAbsolute(state) ? state : join(homedir(), '.local', 'state')
  return join(home, 'ccmcp', 'captures')
}

/** The path of a new capture in the folder, which is created if it is missing. */
export function newCapturePath(folder: string, command: string): string {
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  const time = new Date().toISOString().replaceAll(/[-:.]/g, '')
  const name =
    basename(command)
      .replaceAll(/[^\w.@-]/g, '_')
      .slice(0, 60) || 'server'
  return join(folder, `${time}-${name}-${process.pid}.ndjson`)
}

/** The captures of a folder, oldest first. */
function capturesIn(folder: string): string[] {
  try {
    return readdirSync(folder)
      .filter((name) => NAME.test(name))
      .toSorted()
  } catch {
    return [] // there is no folder yet
  }
}

/** The newest capture of a folder. */
export function newestCapture(folder: string): string | undefined {
  const name = capturesIn(folder).at(-1)
  return name === undefined ? undefined : join(folder, name)
}

/** Deletes old captures, except those that are being written. Failures are ignored: the next run tries again. */
export function pruneCaptures(
  folder: string,
  { now = Date.now(), maxAge = MAX_AGE, maxTotal = MAX_TOTAL } = {},
): void {
  let total = 0
  // From the newest on, so that the oldest exceed the total.
  for (const name of capturesIn(folder).toReversed()) {
    const path = join(folder, name)
    const found = statSync(path, { throwIfNoEntry: false })
    if (found?.isFile() !== true) continue
    total += found.size
    const isOld = now - found.mtimeMs > maxAge
    if ((isOld || total > maxTotal) && !isRunning(Number(NAME.exec(name)?.[1])))
      rmSync(path, { force: true })
  }
}

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return error instanceof Error && 'code' in error && error.code === 'EPERM'
  }
}
