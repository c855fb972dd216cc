import { readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { CommandError, UsageError } from './options.js'

/** Reads a baseline or a lock file. */
export function readCheckFile<Content>(
  path: string,
  kind: 'baseline' | 'lock',
  read: (text: string) => Content,
): Content {
  try {
    return read(readFileSync(path, 'utf8'))
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error)
    throw new UsageError(
      `Cannot read ${path}: ${reason}. Create it with --${kind} ${path} --update-${kind}`,
    )
  }
}

/** Replaces a file at once: it is never half written. */
export function writeCheckFile(path: string, text: string): void {
  const aside = `${path}.${process.pid}`
  try {
    writeFileSync(aside, text)
    renameSync(aside, path)
  } catch (error) {
    rmSync(aside, { force: true })
    throw new CommandError(
      2,
      `Cannot write ${path}: ${error instanceof Error ? error.message : String(error)}`,
    )
  }
}
