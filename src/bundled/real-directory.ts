import type { Stats } from 'node:fs'
import { lstat, realpath } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { hasCode } from './held-directory.js'
import { type Directory, type Find, PathProblem, type Root, beneath } from './place.js'

/*
 * Where there is no /proc: links are resolved by the system first, and what
 * was opened is compared with what is there after that. Somebody who renames
 * at the right moments, several times in a row, can still slip through.
 */

class RealDirectory implements Directory {
  readonly #path: string
  readonly #root: Root
  readonly #found: Stats

  constructor(path: string, root: Root, found: Stats) {
    this.#path = path
    this.#root = root
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
    if (beneath(real, this.#root) === undefined || there.ino !== ino || there.dev !== dev) throw new PathProblem('SWAPPED')
  }

  sync(): Promise<void> {
    return Promise.resolve()
  }

  close(): Promise<void> {
    return Promise.resolve()
  }
}

export function findReal(root: Root): Find {
  return async (parts) => {
    const path = await resolve(join(root.real, ...parts))
    if (beneath(path, root) === undefined) throw new PathProblem('OUTSIDE')
    const stat = await look(path)
    if (stat?.isDirectory() === true) return { directory: new RealDirectory(path, root, stat), name: undefined, stat: undefined }
    const directory = dirname(path)
    return { directory: new RealDirectory(directory, root, await lstat(directory)), name: basename(path), stat }
  }
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
