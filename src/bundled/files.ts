import { randomBytes } from 'node:crypto'
import { type Dirent, type Stats, constants, existsSync } from 'node:fs'
import { type FileHandle, open, opendir, rename, statfs, unlink } from 'node:fs/promises'
import { ToolError } from '../index.js'
import { resolveByFd, hasCode } from './fd-directory.js'
import { ProtectedFiles } from './protected-files.js'
import {
  type Directory,
  type Resolve,
  PathError,
  type ResolvedPath,
  locationOf,
  quoted,
} from './resolved-path.js'
import { resolveByRealpath } from './realpath-directory.js'
import { type Location, type RootList, Roots } from './roots.js'

// Flags that a platform lacks are undefined, which counts as 0 in a bitwise OR.
const { O_RDONLY, O_WRONLY, O_CREAT, O_EXCL, O_NOFOLLOW, O_NONBLOCK, O_NOCTTY } = constants

/** Maximum size of a file to read, in bytes. */
export const MAX_READ = 1024 * 1024
/** Maximum number of directory entries to list. */
export const MAX_ENTRIES = 10_000
/** Maximum number of symbolic links to resolve per listing. */
const MAX_LINKS_RESOLVED = 256

/** Linux's magic numbers of pseudo file systems: proc, sysfs, cgroup, cgroup2, debugfs, tracefs, securityfs, bpf. */
const PSEUDO_FILE_SYSTEMS: ReadonlySet<number> = new Set([
  0x9fa0, 0x62656572, 0x27e0eb, 0x63677270, 0x64626720, 0x74726163, 0x73636673, 0xcafe4a11,
])

export interface Entry {
  /** `D`: a directory, or a symbolic link to one under the roots. `F`: everything else. */
  readonly type: 'F' | 'D'
  readonly name: string
  /** The name with unsafe characters escaped, for one line of text. */
  readonly displayName: string
}

export interface Listing {
  readonly entries: readonly Entry[]
  /** Whether the listing is truncated. */
  readonly more: boolean
}

const REALPATH_WARNING =
  'This system has no /proc/self/fd: paths are resolved by name and checked again after opening. A process that renames files under a root at the same time may redirect access outside of it'

export interface FilesOptions {
  /** How paths are resolved: `descriptors` (Linux), or `realpath` with a check after opening. */
  resolution?: 'descriptors' | 'realpath'
  /** Files of the server itself, which callers must not access. */
  protectedFiles?: readonly string[]
  /** Receives warnings for the operator. */
  warn?: (message: string) => void
}

/** Reads, writes and lists files under the roots, and nothing else. Every failure is a ToolError. */
export class Files {
  readonly #roots: Roots
  readonly #protected: ProtectedFiles
  readonly #resolve: Resolve
  /** Whether a device (by number) is a pseudo file system. */
  readonly #pseudo = new Map<number, boolean>()

  constructor(
    roots: RootList,
    {
      resolution = existsSync('/proc/self/fd') ? 'descriptors' : 'realpath',
      protectedFiles = [],
      warn,
    }: FilesOptions = {},
  ) {
    if (resolution === 'realpath') warn?.(REALPATH_WARNING)
    this.#roots = new Roots(roots)
    this.#protected = new ProtectedFiles(protectedFiles)
    this.#resolve = (resolution === 'descriptors' ? resolveByFd : resolveByRealpath)(
      this.#roots,
      this.#protected,
    )
  }

  read(path: string): Promise<string> {
    return this.#at(path, 'read', async (resolved) => {
      const name = fileAt(resolved, path)
      if (resolved.stat === undefined) throw new ToolError(`${quoted(path)} does not exist`)
      const handle = await open(
        resolved.directory.at(name),
        O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY,
      )
      try {
        await this.#checkOpened(handle, resolved.directory, name, path)
        return decode(await readLimited(handle, path), path)
      } finally {
        await handle.close()
      }
    })
  }

  /** Replaces a file atomically and returns the number of bytes written. */
  write(path: string, content: string): Promise<number> {
    return this.#at(path, 'written', async (resolved) => {
      if (/\p{Surrogate}/u.test(content))
        throw new ToolError('The content is not valid Unicode: it contains a lone surrogate')
      const bytes = Buffer.from(content)
      const name = fileAt(resolved, path)
      const { directory, stat } = resolved
      const mode = stat === undefined ? undefined : await this.#modeOf(directory, name, path)
      const temporary = `.ccmcp-${randomBytes(8).toString('hex')}.tmp`
      const handle = await open(
        directory.at(temporary),
        O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW,
        mode ?? 0o666,
      )
      try {
        try {
          // Verified before any content is written: when resolved by name, it may be outside of the roots.
          await directory.verify(temporary, await handle.stat())
          await handle.writeFile(bytes)
          if (mode !== undefined) await handle.chmod(mode)
          await handle.sync()
        } finally {
          await handle.close()
        }
        await rename(directory.at(temporary), directory.at(name))
      } catch (error) {
        await unlink(directory.at(temporary)).catch(() => {})
        throw error
      }
      // Not every file system supports this. The file is complete in any case.
      await directory.sync().catch(() => {})
      return bytes.length
    })
  }

  list(path: string): Promise<Listing> {
    return this.#at(path, 'listed', async ({ directory, name, stat }, location) => {
      if (name !== undefined)
        throw new ToolError(
          `${quoted(path)} ${stat === undefined ? 'does not exist' : 'is not a directory'}`,
        )
      const found: Dirent<Buffer>[] = []
      const dirents = (await opendir(directory.at(), {
        encoding: 'buffer' as 'utf8',
        bufferSize: 512,
      })) as unknown as AsyncIterable<Dirent<Buffer>> // Node's types lack the buffer encoding for opendir
      for await (const entry of dirents) {
        if (found.push(entry) > MAX_ENTRIES) break
      }
      await directory.verifySelf()
      const entries = found.slice(0, MAX_ENTRIES).map(entryOf)
      await this.#resolveLinks(location, entries)
      return {
        entries: entries.toSorted((one, other) => (one.displayName < other.displayName ? -1 : 1)),
        more: found.length > MAX_ENTRIES,
      }
    })
  }

  /** Marks symbolic links to directories under the roots as directories. */
  async #resolveLinks(
    { root, segments }: Location,
    entries: { type: 'F' | 'D'; name: string; link: boolean }[],
  ): Promise<void> {
    for (const entry of entries.filter(({ link }) => link).slice(0, MAX_LINKS_RESOLVED)) {
      try {
        const { directory, name } = await this.#resolve({
          root,
          segments: [...segments, entry.name],
        })
        if (name === undefined) entry.type = 'D'
        await directory.close()
      } catch {
        // It points outside of the roots, or to nothing.
      }
    }
  }

  async #at<Result>(
    path: string,
    action: string,
    use: (resolved: ResolvedPath, location: Location) => Promise<Result>,
  ): Promise<Result> {
    const location = locationOf(path, this.#roots)
    let resolved: ResolvedPath | undefined
    try {
      resolved = await this.#resolve(location)
      return await use(resolved, location)
    } catch (error) {
      throw error instanceof ToolError
        ? error
        : new ToolError(`${quoted(path)} ${reasonOf(error, action)}`)
    } finally {
      await resolved?.directory.close()
    }
  }

  /** The mode of the file to replace. Throws if it is not writable. */
  async #modeOf(directory: Directory, name: string, path: string): Promise<number> {
    const handle = await open(directory.at(name), O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY)
    try {
      return (await this.#checkOpened(handle, directory, name, path)).mode & 0o777
    } finally {
      await handle.close()
    }
  }

  /** Checks the opened file: the name may refer to another file by now. */
  async #checkOpened(
    handle: FileHandle,
    directory: Directory,
    name: string,
    path: string,
  ): Promise<Stats> {
    const stat = await handle.stat()
    if (!stat.isFile() || (await this.#isPseudo(handle, stat))) throw notRegular(path)
    await directory.verify(name, stat)
    if (await this.#protected.includes(stat)) throw new PathError('PROTECTED_FILE')
    return stat
  }

  async #isPseudo({ fd }: FileHandle, { dev }: Stats): Promise<boolean> {
    if (process.platform !== 'linux') return false
    const known = this.#pseudo.get(dev)
    if (known !== undefined) return known
    const pseudo = PSEUDO_FILE_SYSTEMS.has((await statfs(`/proc/self/fd/${fd}`)).type)
    this.#pseudo.set(dev, pseudo)
    return pseudo
  }
}

/** The file name of a resolved path. Rejects pipes and devices, because opening one can have side effects. */
function fileAt({ name, stat }: ResolvedPath, path: string): string {
  if (name === undefined) throw new ToolError(`${quoted(path)} is a directory, not a file`)
  if (/\/\.?$/.test(path))
    throw new ToolError(
      `${quoted(path)} ends with a slash, like a directory; pass the path of a file`,
    )
  if (stat !== undefined && !stat.isFile()) throw notRegular(path)
  return name
}

function notRegular(path: string): ToolError {
  return new ToolError(`${quoted(path)} is not a regular file`)
}

/** Reads the file up to the limit, even if it grows meanwhile. */
async function readLimited(handle: FileHandle, path: string): Promise<Buffer> {
  const { size } = await handle.stat()
  const tooLarge = (bytes: string) =>
    new ToolError(`${quoted(path)} has ${bytes} bytes; at most ${MAX_READ} are read`)
  if (size > MAX_READ) throw tooLarge(String(size))
  let buffer = Buffer.allocUnsafe(size + 1)
  let length = 0
  for (;;) {
    const { bytesRead } = await handle.read(buffer, length, buffer.length - length, length)
    if (bytesRead === 0) return buffer.subarray(0, length)
    length += bytesRead
    if (length > MAX_READ) throw tooLarge(`more than ${MAX_READ}`)
    if (length === buffer.length)
      buffer = Buffer.concat([
        buffer,
        Buffer.allocUnsafe(Math.min(buffer.length, MAX_READ + 1 - length)),
      ])
  }
}

function decode(bytes: Buffer, path: string): string {
  try {
    if (!bytes.includes(0))
      return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
  } catch {
    // Not UTF-8; handled like a NUL byte.
  }
  throw new ToolError(
    `${quoted(path)} is a binary file (${bytes.length} bytes); only UTF-8 text can be read`,
  )
}

function entryOf(entry: Dirent<Buffer>): {
  type: 'F' | 'D'
  name: string
  displayName: string
  link: boolean
} {
  const type = entry.isDirectory() ? 'D' : 'F'
  const name = entry.name.toString()
  const exact = Buffer.from(name).equals(entry.name)
  const displayName = exact ? escapeUnsafe(name) : escapeUnsafe(entry.name.toString('latin1'), 'x')
  return {
    type,
    name: exact ? name : displayName,
    displayName,
    link: exact && entry.isSymbolicLink(),
  }
}

/** Escapes control, bidirectional and invisible characters, so that a name cannot imitate another line. Names that are not UTF-8 are shown with `\xNN`. */
function escapeUnsafe(name: string, bytes?: 'x'): string {
  const unsafe =
    bytes === 'x'
      ? /[^\u0020-\u007e]|\\/g
      : /[\u0000-\u001f\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2066-\u2069\ufeff\u{e0000}-\u{e007f}\\]/gu
  return name.replaceAll(unsafe, (character) => {
    if (character === '\\') return '\\\\'
    const code = (character.codePointAt(0) ?? 0).toString(16)
    if (bytes === 'x') return `\\x${code.padStart(2, '0')}`
    return character === '\n' ? '\\n' : `\\u{${code}}`
  })
}

const REASONS: Readonly<Record<string, string>> = {
  OUTSIDE: 'is outside of the allowed directories (--root)',
  PROTECTED_FILE: 'belongs to the server itself; use another file',
  FOREIGN_LINK: 'goes through a symbolic link that another user created in a shared directory',
  REPLACED: 'was replaced while it was being opened; try again',
  UNREADABLE_LINK: 'goes through a symbolic link whose target is not valid UTF-8',
  ENOENT: 'does not exist',
  ENOTDIR: 'has a part that is not a directory',
  EISDIR: 'is a directory, not a file',
  ELOOP: 'has too many segments or symbolic links',
  ENXIO: 'is not a regular file',
  ENAMETOOLONG: 'has a name that is too long',
  EROFS: 'is on a read-only file system',
  ENOSPC: 'cannot be written: the disk is full',
  EDQUOT: 'cannot be written: the disk quota is exceeded',
  EMFILE: 'cannot be opened now: too many files are open; try again later',
  ENFILE: 'cannot be opened now: too many files are open; try again later',
}

/** Explains an error without the system's message, which contains the absolute path. */
function reasonOf(error: unknown, action: string): string {
  const code = error instanceof Error && 'code' in error ? String(error.code) : 'unknown error'
  if (action === 'written' && code === 'ENOENT')
    return 'cannot be written: its directory does not exist'
  if (hasCode(error, 'EACCES', 'EPERM')) return `cannot be ${action}: permission denied`
  return REASONS[code] ?? `cannot be ${action} (${code})`
}
