import { type Stats, constants } from 'node:fs'
import { type FileHandle, lstat, open, readlink } from 'node:fs/promises'
import type { OwnFiles } from './own-files.js'
import { type Directory, type Find, PathProblem, type Place } from './place.js'
import { type Location, type Roots, namesOf } from './roots.js'

/*
 * Linux: every directory on the way is held open, and the next name is looked
 * up in the one that is held, through /proc/self/fd. No link is ever followed
 * by the system: links are read, and walked over here. So it does not matter
 * who renames what meanwhile: a walk cannot leave the roots.
 */

const { O_RDONLY, O_DIRECTORY, O_NOFOLLOW, O_NONBLOCK } = constants
/** As many links as Linux itself follows. */
const MAX_LINKS = 40
/** The most parts of a path, those of links included. */
const MAX_STEPS = 1000
const STICKY_AND_WRITABLE = 0o1002

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

  stat(): Promise<Stats> {
    return this.#handle.stat()
  }

  /**
   * As Linux itself (fs.protected_symlinks): in a directory where everybody may
   * write, such as /tmp, a link of another user may be there to mislead.
   */
  async trusts(link: Stats): Promise<boolean> {
    if (link.uid === process.geteuid?.()) return true
    const { mode, uid } = await this.stat()
    return (mode & STICKY_AND_WRITABLE) !== STICKY_AND_WRITABLE || link.uid === uid
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

/** One way from a root to a place. */
class Walk {
  readonly #roots: Roots
  readonly #own: OwnFiles
  #root: string
  /** What is still to be walked. */
  #pending: string[]
  /** The directories that were entered, from the root. */
  #passed: string[] = []
  #directory: HeldDirectory | undefined
  #steps = 0
  #links = 0

  constructor({ root, names }: Location, roots: Roots, own: OwnFiles) {
    this.#roots = roots
    this.#own = own
    this.#root = root
    this.#pending = [...names]
  }

  async go(): Promise<Place> {
    try {
      for (;;) {
        const directory = (this.#directory ??= await HeldDirectory.open(this.#root))
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
    if (await this.#own.has(name, () => directory.stat())) throw new PathProblem('OWN_FILE')
    const next = await directory.enter(name)
    if (next !== undefined) {
      this.#directory = next
      this.#passed.push(name)
      await directory.close()
      return undefined
    }
    const stat = await directory.look(name)
    const target = stat?.isSymbolicLink() === true ? await directory.target(name) : undefined
    if (stat !== undefined && target !== undefined) {
      if (!(await directory.trusts(stat))) throw new PathProblem('FOREIGN_LINK')
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
    const names = [...namesOf(target), ...this.#pending]
    if (target.startsWith('/')) await this.#enterRoot(names)
    else this.#pending = names
  }

  /** Only links have `..`: it leads to the directory that was passed before, which is looked up anew. */
  async #up(): Promise<undefined> {
    if (this.#passed.length > 0)
      return this.#restart([...this.#passed.slice(0, -1), ...this.#pending])
    // Above a root nothing is looked at: the way must lead into a root by its name, which has no links in it.
    const above = namesOf(this.#root).slice(0, -1)
    while (this.#pending[0] === '..') {
      this.#pending.shift()
      above.pop()
    }
    await this.#enterRoot([...above, ...this.#pending])
  }

  /** Goes on at an absolute path. A `..` behind the name of the root stays for the walk: what it means depends on the links before it. */
  async #enterRoot(names: readonly string[]): Promise<void> {
    const location = this.#roots.locate(names)
    if (location === undefined) throw new PathProblem('OUTSIDE')
    this.#root = location.root
    await this.#restart(location.names)
  }

  async #restart(names: readonly string[]): Promise<undefined> {
    this.#pending = [...names]
    this.#passed = []
    const directory = this.#directory
    this.#directory = undefined
    await directory?.close()
  }
}

export function findHeld(roots: Roots, own: OwnFiles): Find {
  return (location) => new Walk(location, roots, own).go()
}

export function hasCode(error: unknown, ...codes: readonly string[]): boolean {
  return error instanceof Error && 'code' in error && codes.some((code) => code === error.code)
}
