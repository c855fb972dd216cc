import { type Stats, constants } from 'node:fs'
import { type FileHandle, lstat, open, readlink } from 'node:fs/promises'
import { type Directory, type Find, PathProblem, type Place, type Root } from './place.js'

/*
 * Linux: every directory on the way is held open, and the next name is looked
 * up in the one that is held, through /proc/self/fd. No link is ever followed
 * by the system: links are read, and walked over here. So it does not matter
 * who renames what meanwhile: a walk cannot leave the root.
 */

const { O_RDONLY, O_DIRECTORY, O_NOFOLLOW, O_NONBLOCK } = constants
/** As many links as Linux itself follows. */
const MAX_LINKS = 40
/** The most parts of a path, those of links included. */
const MAX_STEPS = 1000

class HeldDirectory implements Directory {
  readonly #handle: FileHandle

  constructor(handle: FileHandle) {
    this.#handle = handle
  }

  static async open(path: string): Promise<HeldDirectory> {
    return new HeldDirectory(await open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK))
  }

  at(name = '.'): string {
    return `/proc/self/fd/${this.#handle.fd}/${name}`
  }

  /** The directory of that name in this one; undefined where that is none. */
  async enter(name: string): Promise<HeldDirectory | undefined> {
    try {
      return await HeldDirectory.open(this.at(name))
    } catch (error) {
      if (hasCode(error, 'ENOTDIR', 'ELOOP', 'ENOENT')) return undefined
      throw error
    }
  }

  async look(name: string): Promise<Stats | undefined> {
    try {
      return await lstat(this.at(name))
    } catch (error) {
      if (hasCode(error, 'ENOENT')) return undefined
      throw error
    }
  }

  /** Where a link leads; undefined where it is none any more. */
  async target(name: string): Promise<string | undefined> {
    const bytes = await readlink(this.at(name), { encoding: 'buffer' }).catch((error: unknown) => {
      if (hasCode(error, 'EINVAL', 'ENOENT')) return undefined
      throw error
    })
    if (bytes === undefined) return undefined
    try {
      return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
    } catch {
      throw new PathProblem('UNREADABLE_LINK')
    }
  }

  /** It was opened in the directory itself, by a name that was not followed: there is nothing to check. */
  verify(): Promise<void> {
    return Promise.resolve()
  }

  verifySelf(): Promise<void> {
    return Promise.resolve()
  }

  sync(): Promise<void> {
    return this.#handle.sync()
  }

  close(): Promise<void> {
    return this.#handle.close()
  }
}

/** One way from the root to a place. */
class Walk {
  readonly #root: Root
  /** What is still to be walked. */
  readonly #pending: string[]
  /** The directories that were entered, from the root. */
  #passed: string[] = []
  #directory: HeldDirectory | undefined
  #steps = 0
  #links = 0

  constructor(root: Root, parts: readonly string[]) {
    this.#root = root
    this.#pending = [...parts]
  }

  async go(): Promise<Place> {
    try {
      for (;;) {
        const directory = (this.#directory ??= await HeldDirectory.open(this.#root.real))
        if (++this.#steps > MAX_STEPS) throw new PathProblem('ELOOP')
        const name = this.#pending.shift()
        if (name === undefined) return { directory, name, stat: undefined }
        const place = name === '..' ? await this.#up() : await this.#step(directory, name)
        if (place !== undefined) return place
      }
    } catch (error) {
      await this.#directory?.close()
      throw error
    }
  }

  /** Enters a directory or takes up a link; a place where the walk ends here. */
  async #step(directory: HeldDirectory, name: string): Promise<Place | undefined> {
    const next = await directory.enter(name)
    if (next !== undefined) {
      this.#directory = next
      this.#passed.push(name)
      await directory.close()
      return undefined
    }
    const stat = await directory.look(name)
    const target = stat?.isSymbolicLink() === true ? await directory.target(name) : undefined
    if (target !== undefined) {
      await this.#follow(target)
      return undefined
    }
    // It has become something else just now.
    if (stat?.isSymbolicLink() === true || stat?.isDirectory() === true) {
      this.#pending.unshift(name)
      return undefined
    }
    if (this.#pending.length > 0) throw new PathProblem(stat === undefined ? 'ENOENT' : 'ENOTDIR')
    return { directory, name, stat }
  }

  async #follow(target: string): Promise<void> {
    if (++this.#links > MAX_LINKS) throw new PathProblem('ELOOP')
    const absolute = target.startsWith('/')
    const written = target.split('/').filter((part) => part !== '' && part !== '.')
    const parts = absolute ? rootedParts(written, this.#root) : written
    if (parts === undefined) throw new PathProblem('OUTSIDE')
    this.#pending.unshift(...parts)
    if (absolute) await this.#restart([])
  }

  /** Only links have `..`: it leads to the directory that was passed before, which is looked up anew. */
  async #up(): Promise<undefined> {
    if (this.#passed.length === 0) throw new PathProblem('OUTSIDE')
    await this.#restart(this.#passed.slice(0, -1))
  }

  async #restart(parts: readonly string[]): Promise<void> {
    this.#pending.unshift(...parts)
    this.#passed = []
    const directory = this.#directory
    this.#directory = undefined
    await directory?.close()
  }
}

/** The rest of an absolute path behind the root's. A `..` in it stays for the walk: what it means depends on the links before it. */
function rootedParts(written: readonly string[], { real, given }: Root): string[] | undefined {
  for (const root of [real, given]) {
    const above = root.split('/').filter((part) => part !== '')
    if (above.every((part, index) => part === written[index])) return written.slice(above.length)
  }
  return undefined
}

export function findHeld(root: Root): Find {
  return (parts) => new Walk(root, parts).go()
}

export function hasCode(error: unknown, ...codes: readonly string[]): boolean {
  return error instanceof Error && 'code' in error && codes.some((code) => code === error.code)
}
