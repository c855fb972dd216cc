import type { Stats } from 'node:fs'
import { lstat, realpath } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { hasCode } from './held-directory.js'
import type { OwnFiles } from './own-files.js'
import { type Directory, type Find, PathProblem } from './place.js'
import { type Roots, namesOf } from './roots.js'

/*
 * Where there is no /proc: links are resolved by the system first, and what
 * was opened is compared with what is there after that. Somebody who renames
 * at the right moments, several times in a row, can still slip through.
 */

class RealDirectory implements Directory {
  readonly #path: string
  readonly #roots: Roots
  readonly #found: Stats

  constructor(path: string, roots: Roots, found: Stats) {
    this.#path = path
    this.#roots = roots
    this.#found = found
  }

  at(name?: string): string {
    return name === undefined ? this.#path : join(this.#path, name)
  }

  async verify(name: string, opened: Stats): Promise<void> {
    await this.#compare(this.at(name), opened)
    await this.verifySelf()
  }

  verifySelf(): Promise<void> {
    return this.#compare(this.#path, this.#found)
  }

  async #compare(path: string, { ino, dev }: Stats): Promise<void> {
    const real = await realpath(path)
    const there = await lstat(real)
    if (this.#roots.locate(namesOf(real)) === undefined || there.ino !== ino || there.dev !== dev)
      throw new PathProblem('SWAPPED')
  }

  sync(): Promise<void> {
    return Promise.resolve()
  }

  close(): Promise<void> {
    return Promise.resolve()
  }
}

export function findReal(roots: Roots, own: OwnFiles): Find {
  return async ({ root, names }) => {
    const path = await resolve(join(root, ...names))
    if (roots.locate(namesOf(path)) === undefined) throw new PathProblem('OUTSIDE')
    await refuseOwn(path, own)
    const stat = await look(path)
    if (stat?.isDirectory() === true)
      return { directory: new RealDirectory(path, roots, stat), name: undefined, stat: undefined }
    const directory = dirname(path)
    return {
      directory: new RealDirectory(directory, roots, await lstat(directory)),
      name: basename(path),
      stat,
    }
  }
}

/** Throws where the path, or a directory on the way, is a file of the server itself. */
async function refuseOwn(path: string, own: OwnFiles): Promise<void> {
  for (let at = path; dirname(at) !== at; at = dirname(at))
    if (await own.has(basename(at), () => lstat(dirname(at)))) throw new PathProblem('OWN_FILE')
}

/** The path without links. Its last part may be missing; a link that leads nowhere is as if it were not to be had. */
async function resolve(path: string): Promise<string> {
  try {
    return await realpath(path)
  } catch (error) {
    if (!hasCode(error, 'ENOENT') || (await look(path)) !== undefined) throw error
    return join(await realpath(dirname(path)), basename(path))
  }
}

async function look(path: string): Promise<Stats | undefined> {
  try {
    return await lstat(path)
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return undefined
    throw error
  }
}
