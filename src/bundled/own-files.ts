import type { Stats } from 'node:fs'
import { stat } from 'node:fs/promises'
import { basename, dirname, resolve } from 'node:path'

/**
 * Files of the server itself, such as the one that keeps registered tools: its
 * tools must not touch them. With `tools.json` these are also all names that
 * begin with `tools.json.`, such as that of its lock.
 */
export class OwnFiles {
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

  /** Whether an entry of a directory is one of them, or would be. */
  async has(name: string, directory: () => Promise<Stats>): Promise<boolean> {
    const given = folded(name)
    for (const own of this.#files) {
      const named = given === own.name || given.startsWith(`${own.name}.`)
      if (named && isSame(await directory(), await look(own.directory))) return true
    }
    return false
  }

  /** Whether a file that was opened is one of them, under whatever name: a hard link is another name of the same file. */
  async includes(opened: Stats): Promise<boolean> {
    for (const { path } of this.#files)
      if (isSame(opened, await look(path)) || isSame(opened, await look(`${path}.lock`)))
        return true
    return false
  }
}

/** A name as the least particular file system compares it: without case, invisible characters, and what Windows ignores at its end. */
function folded(name: string): string {
  const plain = name
    .normalize('NFKC')
    .replaceAll(/\p{Default_Ignorable_Code_Point}/gu, '')
    .toUpperCase()
    .toLowerCase()
    .normalize('NFKC')
  return (process.platform === 'win32' ? plain.split(':', 1).join() : plain).replace(/[. ]+$/, '')
}

function look(path: string): Promise<Stats | undefined> {
  return stat(path).catch(() => undefined)
}

function isSame(one: Stats, other: Stats | undefined): boolean {
  return one.ino === other?.ino && one.dev === other.dev
}
