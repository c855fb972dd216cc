import { readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { CommandError, UsageError } from './options.js'
import { escapedLine, fileProblem } from './print.js'

/** Reads a baseline or a lock file. */
export function readCheckFile<Content>(
  path: string,
  kind: 'baseline' | 'lock',
  read: (text: string) => Content,
): Content {
  try {
    return read(readFileSync(path, 'utf8'))
  } catch (error) {
    const advice = `Create it with --${kind} ${escapedLine(path)} --update-${kind}`
    throw new UsageError(`${fileProblem('read', path, error)}. ${advice}`)
  }
}

/** Replaces a file at once: it is never half written. */
export function writeCheckFile(path: string, text: string): void {
  const aside = `${path}.${process.pid}`
  try {
    rmSync(aside, { force: true })
    // Not through a link that another user has put there.
    writeFileSync(aside, text, { flag: 'wx' })
    renameSync(aside, path)
  } catch (error) {
    rmSync(aside, { force: true })
    throw new CommandError(2, fileProblem('write', path, error))
  }
}
