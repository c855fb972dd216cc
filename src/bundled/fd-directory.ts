import { type Stats, constants } from 'node:fs'
import { type FileHandle, lstat, open, readlink } from 'node:fs/promises'
import type { ProtectedFiles } from './protected-files.js'
import { type Directory, type Resolve, PathError, type ResolvedPath } from './resolved-path.js'
import { type Location, type Roots, segmentsOf } from './roots.js'

/*
 * Path resolution on Linux. Each directory of the path is opened, and the next
 * segment is looked up relative to its descriptor, through /proc/self/fd. The
 * kernel never follows a symbolic link: links are read and resolved here. So a
 * concurrent rename cannot lead outside of the roots.
 */

const { O_RDONLY, O_DIRECTORY, O_NOFOLLOW, O_NONBLOCK } = constants
/** Maximum number of symbolic links to follow; the same as Linux. */
const MAX_LINKS = 40
/** Maximum number of path segments, including those of link targets. */
const MAX_STEPS = 1000
const STICKY_AND_WRITABLE = 0o1002

class FdDirectory implements Directory {
  readonly #handle: FileHandle

  constructor(handle: FileHandle) {
    this.#handle = handle
  }

  static async open(path: string): Promise<FdDirectory> {
    return new FdDirectory(await open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK))
  }

  at(name = '.'): string {
    return `/proc/self/fd/${this.#handle.fd}/${name}`
  }

  /** Opens a subdirectory; undefined if there is no directory of that name. */
  async enter(name: string): Promise<FdDirectory | undefined> {
    try {
      return await FdDirectory.open(this.at(name))
    } catch (error) {
      if (hasCode(error, 'ENOTDIR', 'ELOOP', 'ENOENT')) return undefined
      throw error
    }
  }

  async lstatOrUndefined(name: string): Promise<Stats | undefined> {
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

  /** Like fs.protected_symlinks of Linux: in a sticky world-writable directory such as /tmp, links of other users are not followed. */
  async isTrustedLink(link: Stats): Promise<boolean> {
    if (link.uid === process.geteuid?.()) return true
    const { mode, uid } = await this.stat()
    return (mode & STICKY_AND_WRITABLE) !== STICKY_AND_WRITABLE || link.uid === uid
  }

  /** The target of a symbolic link; undefined if it is no longer one. */
  async target(name: string): Promise<string | undefined> {
    const bytes = await readlink(this.at(name), { encoding: 'buffer' }).catch((error: unknown) => {
      if (hasCode(error, 'EINVAL', 'ENOENT')) return undefined
      throw error
    })
    if (bytes === undefined) return undefined
    try {
      return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
    } catch {
      throw new PathError('UNREADABLE_LINK')
    }
  }

  /** Nothing to verify: the entry was opened relative to this descriptor, without following links. */
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

/** The resolution of one path, starting at a root. */
class PathWalk {
  readonly #roots: Roots
  readonly #protected: ProtectedFiles
  #root: string
  /** The segments that are still to be resolved. */
  #pending: string[]
  /** The directories that were entered since the root. */
  #entered: string[] = []
  #directory: FdDirectory | undefined
  #steps = 0
  #links = 0

  constructor({ root, segments }: Location, roots: Roots, protectedFiles: ProtectedFiles) {
    this.#roots = roots
    this.#protected = protectedFiles
    this.#root = root
    this.#pending = [...segments]
  }

  async resolve(): Promise<ResolvedPath> {
    try {
      for (;;) {
        const directory = (this.#directory ??= await FdDirectory.open(this.#root))
        if (++this.#steps > MAX_STEPS) throw new PathError('ELOOP')
        const name = this.#pending.shift()
        if (name === undefined) return { directory, name, stat: undefined }
        const resolved =
          name === '..' ? await this.#enterParent() : await this.#step(directory, name)
        if (resolved !== undefined) return resolved
      }
    } catch (error) {
      await this.#directory?.close()
      throw error
    }
  }

  /** Enters a directory or follows a link; returns the resolved path if this was the last segment. */
  async #step(directory: FdDirectory, name: string): Promise<ResolvedPath | undefined> {
    if (await this.#protected.has(name, () => directory.stat()))
      throw new PathError('PROTECTED_FILE')
    const next = await directory.enter(name)
    if (next !== undefined) {
      this.#directory = next
      this.#entered.push(name)
      await directory.close()
      return undefined
    }
    const stat = await directory.lstatOrUndefined(name)
    const target = stat?.isSymbolicLink() === true ? await directory.target(name) : undefined
    if (stat !== undefined && target !== undefined) {
      if (!(await directory.isTrustedLink(stat))) throw new PathError('FOREIGN_LINK')
      await this.#follow(target)
      return undefined
    }
    // It changed between the two calls: try again.
    if (stat?.isSymbolicLink() === true || stat?.isDirectory() === true) {
      this.#pending.unshift(name)
      return undefined
    }
    if (this.#pending.length > 0) throw new PathError(stat === undefined ? 'ENOENT' : 'ENOTDIR')
    return { directory, name, stat }
  }

  async #follow(target: string): Promise<void> {
    if (++this.#links > MAX_LINKS) throw new PathError('ELOOP')
    const segments = [...segmentsOf(target), ...this.#pending]
    if (target.startsWith('/')) await this.#enterRoot(segments)
    else this.#pending = segments
  }

  /** Handles a `..`, which only link targets contain: resolves the parent again from the root. */
  async #enterParent(): Promise<undefined> {
    if (this.#entered.length > 0)
      return this.#restart([...this.#entered.slice(0, -1), ...this.#pending])
    // Nothing above a root is accessed: the path must enter a root by its real path, which contains no links.
    const above = segmentsOf(this.#root).slice(0, -1)
    while (this.#pending[0] === '..') {
      this.#pending.shift()
      above.pop()
    }
    await this.#enterRoot([...above, ...this.#pending])
  }

  /** Continues at an absolute path. A `..` after the root's segments is resolved by the walk, since its meaning depends on the links before it. */
  async #enterRoot(segments: readonly string[]): Promise<void> {
    const location = this.#roots.locate(segments)
    if (location === undefined) throw new PathError('OUTSIDE')
    this.#root = location.root
    await this.#restart(location.segments)
  }

  async #restart(segments: readonly string[]): Promise<undefined> {
    this.#pending = [...segments]
    this.#entered = []
    const directory = this.#directory
    this.#directory = undefined
    await directory?.close()
  }
}

export function resolveByFd(roots: Roots, protectedFiles: ProtectedFiles): Resolve {
  return (location) => new PathWalk(location, roots, protectedFiles).resolve()
}

export function hasCode(error: unknown, ...codes: readonly string[]): boolean {
  return error instanceof Error && 'code' in error && codes.some((code) => code === error.code)
}
