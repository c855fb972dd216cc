import type { Stats } from 'node:fs'
import { lstat, realpath } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { hasCode } from './fd-directory.js'
import type { ProtectedFiles } from './protected-files.js'
import { type Directory, type Resolve, PathError } from './resolved-path.js'
import { type Roots, segmentsOf } from './roots.js'

/*
 * Path resolution on systems without /proc/self/fd: the system resolves the
 * links, and the opened file is then compared with the one at that path. A
 * process that renames several times at the right moments can still defeat it.
 */

class RealpathDirectory implements Directory {
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
    if (
      this.#roots.locate(segmentsOf(real)) === undefined ||
      there.ino !== ino ||
      there.dev !== dev
    )
      throw new PathError('REPLACED')
  }

  sync(): Promise<void> {
    return Promise.resolve()
  }

  close(): Promise<void> {
    return Promise.resolve()
  }
}

export function resolveByRealpath(roots: Roots, protectedFiles: ProtectedFiles): Resolve {
  return async ({ root, segments }) => {
    const path = await resolve(join(root, ...segments))
    if (roots.locate(segmentsOf(path)) === undefined) throw new PathError('OUTSIDE')
    await rejectProtected(path, protectedFiles)
    const stat = await lstatOrUndefined(path)
    if (stat?.isDirectory() === true)
      return {
        directory: new RealpathDirectory(path, roots, stat),
        name: undefined,
        stat: undefined,
      }
    const directory = dirname(path)
    return {
      directory: new RealpathDirectory(directory, roots, await lstat(directory)),
      name: basename(path),
      stat,
    }
  }
}

/** Throws if the path, or a directory in it, is a file of the server itself. */
async function rejectProtected(path: string, protectedFiles: ProtectedFiles): Promise<void> {
  for (let at = path; dirname(at) !== at; at = dirname(at))
    if (await protectedFiles.has(basename(at), () => lstat(dirname(at))))
      throw new PathError('PROTECTED_FILE')
}

/** The real path. The last segment need not exist; a dangling symbolic link is an error. */
async function resolve(path: string): Promise<string> {
  try {
    return await realpath(path)
  } catch (error) {
    if (!hasCode(error, 'ENOENT') || (await lstatOrUndefined(path)) !== undefined) throw error
    return join(await realpath(dirname(path)), basename(path))
  }
}

async function lstatOrUndefined(path: string): Promise<Stats | undefined> {
  try {
    return await lstat(path)
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return undefined
    throw error
  }
}
