import type { Stats } from 'node:fs'
import { stat } from 'node:fs/promises'
import { basename, dirname, resolve } from 'node:path'

/**
 * Files of the server itself, such as the one with the registered tools, which
 * the file tools must not access. `tools.json` also protects every name that
 * starts with `tools.json.`, such as its lock file, and numbered ones such as
 * `tools-2.json`: a second capture of the same name gets a number.
 */
export class ProtectedFiles {
  readonly #files: readonly {
    readonly path: string
    readonly directory: string
    readonly name: string
  }[]

  constructor(paths: readonly string[]) {
    this.#files = paths.map((path) => ({
      path: resolve(path),
      directory: dirname(resolve(path)),
      name: folded(basename(path)),
    }))
  }

  /** Whether a directory entry is a protected file, or would be if it existed. */
  async has(name: string, directory: () => Promise<Stats>): Promise<boolean> {
    const entry = folded(name)
    const unnumbered = entry.replace(/-(?:\d{1,3}|1000)(\.[^.]*)?$/, '$1')
    for (const file of this.#files) {
      const named = [entry, unnumbered].includes(file.name) || entry.startsWith(`${file.name}.`)
      if (named && isSame(await directory(), await statOrUndefined(file.directory))) return true
    }
    return false
  }

  /** Whether an opened file is a protected one, under any name: it may be a hard link. */
  async includes(opened: Stats): Promise<boolean> {
    for (const { path } of this.#files)
      if (
        isSame(opened, await statOrUndefined(path)) ||
        isSame(opened, await statOrUndefined(`${path}.lock`))
      )
        return true
    return false
  }
}

/** Normalizes a name as the most tolerant file system compares it: without case, invisible characters, and the trailing characters that Windows ignores. */
function folded(name: string): string {
  const plain = name
    .normalize('NFKC')
    .replaceAll(/\p{Default_Ignorable_Code_Point}/gu, '')
    .toUpperCase()
    .toLowerCase()
    .normalize('NFKC')
  return (process.platform === 'win32' ? plain.split(':', 1).join() : plain).replace(
    /(?<![. ])[. ]+$/,
    '',
  )
}

function statOrUndefined(path: string): Promise<Stats | undefined> {
  return stat(path).catch(() => undefined)
}

function isSame(one: Stats, other: Stats | undefined): boolean {
  return one.ino === other?.ino && one.dev === other.dev
}
