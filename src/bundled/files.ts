import { randomBytes } from 'node:crypto'
import { type Dirent, type Stats, constants, existsSync } from 'node:fs'
import { type FileHandle, open, opendir, rename, statfs, unlink } from 'node:fs/promises'
import { ToolError } from '../index.js'
import { findHeld, hasCode } from './held-directory.js'
import { OwnFiles } from './own-files.js'
import { type Directory, type Find, PathProblem, type Place, locationOf, quoted } from './place.js'
import { findReal } from './real-directory.js'
import { type Location, type RootList, Roots } from './roots.js'

// Some of them are missing elsewhere, and count as 0 in a sum of bits.
const { O_RDONLY, O_WRONLY, O_CREAT, O_EXCL, O_NOFOLLOW, O_NONBLOCK, O_NOCTTY } = constants

/** The longest file that is read, in bytes. */
export const MAX_READ = 1024 * 1024
/** The most entries of a directory that are listed. */
export const MAX_ENTRIES = 10_000
/** So many links of a directory are looked behind; that takes time for each. */
const MAX_LINKS_SHOWN = 256

/** Linux's numbers of file systems whose files are no files: proc, sysfs, cgroup, debugfs, tracefs, securityfs, bpf. */
const PSEUDO: ReadonlySet<number> = new Set([
  0x9fa0, 0x62656572, 0x27e0eb, 0x63677270, 0x64626720, 0x74726163, 0x73636673, 0xcafe4a11,
])

export interface Entry {
  /** `D` is a directory, or a link to one inside; everything else is `F`. */
  readonly type: 'F' | 'D'
  readonly name: string
  /** The name as it may be shown on a line of its own. */
  readonly shown: string
}

export interface Listing {
  readonly entries: readonly Entry[]
  /** Whether there are more than are listed. */
  readonly more: boolean
}

const BY_NAME =
  'This system has no /proc/self/fd: files are found by name and looked at twice. Whoever renames beneath a root at the same moment may lead a caller out of it'

export interface FilesOptions {
  /** How places are found: by descriptors (`held`, Linux), or by name and a second look (`real`). */
  finding?: 'held' | 'real'
  /** Files that belong to the server itself, and to no caller. */
  own?: readonly string[]
  /** Takes what whoever runs the server should know. */
  warn?: (message: string) => void
}

/** Reads, writes and lists what is beneath the roots, and nothing else. Every failure is a ToolError. */
export class Files {
  readonly #roots: Roots
  readonly #own: OwnFiles
  readonly #find: Find
  /** Whether a device holds a pseudo file system. */
  readonly #pseudo = new Map<number, boolean>()

  constructor(
    roots: RootList,
    { finding = existsSync('/proc/self/fd') ? 'held' : 'real', own = [], warn }: FilesOptions = {},
  ) {
    if (finding === 'real') warn?.(BY_NAME)
    this.#roots = new Roots(roots)
    this.#own = new OwnFiles(own)
    this.#find = (finding === 'held' ? findHeld : findReal)(this.#roots, this.#own)
  }

  read(path: string): Promise<string> {
    return this.#at(path, 'read', async (place) => {
      const name = fileAt(place, path)
      if (place.stat === undefined) throw new ToolError(`${quoted(path)} does not exist`)
      const handle = await open(
        place.directory.at(name),
        O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY,
      )
      try {
        await this.#check(handle, place.directory, name, path)
        return decode(await readLimited(handle, path), path)
      } finally {
        await handle.close()
      }
    })
  }

  /** Writes a whole file at once, and gives the number of bytes: whoever reads sees the old content or the new one. */
  write(path: string, content: string): Promise<number> {
    return this.#at(path, 'written', async (place) => {
      if (/\p{Surrogate}/u.test(content))
        throw new ToolError('The content is not valid Unicode: it has half of a surrogate pair')
      const bytes = Buffer.from(content)
      const name = fileAt(place, path)
      const { directory, stat } = place
      const mode = stat === undefined ? undefined : await this.#modeOf(directory, name, path)
      const temporary = `.ccmcp-${randomBytes(8).toString('hex')}.tmp`
      const handle = await open(
        directory.at(temporary),
        O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW,
        mode ?? 0o666,
      )
      try {
        try {
          // Before there is anything in it: where the system finds places by name, this may be elsewhere.
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
      // Not every file system can; the file is whole in any case.
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
      const reading = (await opendir(directory.at(), {
        encoding: 'buffer' as 'utf8',
        bufferSize: 512,
      })) as unknown as AsyncIterable<Dirent<Buffer>> // the types do not know of bytes here
      for await (const entry of reading) {
        if (found.push(entry) > MAX_ENTRIES) break
      }
      await directory.verifySelf()
      const entries = found.slice(0, MAX_ENTRIES).map(entryOf)
      await this.#lookBehind(location, entries)
      return {
        entries: entries.toSorted((one, other) => (one.shown < other.shown ? -1 : 1)),
        more: found.length > MAX_ENTRIES,
      }
    })
  }

  /** Links that lead to directories inside are directories to a caller. */
  async #lookBehind(
    { root, names }: Location,
    entries: { type: 'F' | 'D'; name: string; link: boolean }[],
  ): Promise<void> {
    for (const entry of entries.filter(({ link }) => link).slice(0, MAX_LINKS_SHOWN)) {
      try {
        const { directory, name } = await this.#find({ root, names: [...names, entry.name] })
        if (name === undefined) entry.type = 'D'
        await directory.close()
      } catch {
        // It leads out, or nowhere.
      }
    }
  }

  async #at<Result>(
    path: string,
    done: string,
    use: (place: Place, location: Location) => Promise<Result>,
  ): Promise<Result> {
    const location = locationOf(path, this.#roots)
    let place: Place | undefined
    try {
      place = await this.#find(location)
      return await use(place, location)
    } catch (error) {
      throw error instanceof ToolError
        ? error
        : new ToolError(`${quoted(path)} ${why(error, done)}`)
    } finally {
      await place?.directory.close()
    }
  }

  /** The mode of a file that is to be replaced, if it may be written. */
  async #modeOf(directory: Directory, name: string, path: string): Promise<number> {
    const handle = await open(directory.at(name), O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY)
    try {
      return (await this.#check(handle, directory, name, path)).mode & 0o777
    } finally {
      await handle.close()
    }
  }

  /** What was opened is looked at again: the name may have come to mean something else. */
  async #check(
    handle: FileHandle,
    directory: Directory,
    name: string,
    path: string,
  ): Promise<Stats> {
    const stat = await handle.stat()
    if (!stat.isFile() || (await this.#isPseudo(handle, stat))) throw notRegular(path)
    await directory.verify(name, stat)
    if (await this.#own.includes(stat)) throw new PathProblem('OWN_FILE')
    return stat
  }

  async #isPseudo({ fd }: FileHandle, { dev }: Stats): Promise<boolean> {
    if (process.platform !== 'linux') return false
    const known = this.#pseudo.get(dev)
    if (known !== undefined) return known
    const pseudo = PSEUDO.has((await statfs(`/proc/self/fd/${fd}`)).type)
    this.#pseudo.set(dev, pseudo)
    return pseudo
  }
}

/** The name of a place that may be a file. Pipes and devices are not even opened: that alone can have effects. */
function fileAt({ name, stat }: Place, path: string): string {
  if (name === undefined) throw new ToolError(`${quoted(path)} is a directory, not a file`)
  if (/\/\.?$/.test(path))
    throw new ToolError(`${quoted(path)} ends like the name of a directory; name a file`)
  if (stat !== undefined && !stat.isFile()) throw notRegular(path)
  return name
}

function notRegular(path: string): ToolError {
  return new ToolError(`${quoted(path)} is not a regular file`)
}

/** Reads to the end, or to the limit, also where the file grows meanwhile. */
async function readLimited(handle: FileHandle, path: string): Promise<Buffer> {
  const { size } = await handle.stat()
  const tooLong = (bytes: string) =>
    new ToolError(`${quoted(path)} has ${bytes} bytes; at most ${MAX_READ} are read`)
  if (size > MAX_READ) throw tooLong(String(size))
  let buffer = Buffer.allocUnsafe(size + 1)
  let length = 0
  for (;;) {
    const { bytesRead } = await handle.read(buffer, length, buffer.length - length, length)
    if (bytesRead === 0) return buffer.subarray(0, length)
    length += bytesRead
    if (length > MAX_READ) throw tooLong(`more than ${MAX_READ}`)
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
    // Not UTF-8: told like any other.
  }
  throw new ToolError(
    `${quoted(path)} is a binary file (${bytes.length} bytes); only UTF-8 text can be read`,
  )
}

function entryOf(entry: Dirent<Buffer>): {
  type: 'F' | 'D'
  name: string
  shown: string
  link: boolean
} {
  const type = entry.isDirectory() ? 'D' : 'F'
  const name = entry.name.toString()
  const exact = Buffer.from(name).equals(entry.name)
  const shown = exact ? visible(name) : visible(entry.name.toString('latin1'), 'x')
  return { type, name: exact ? name : shown, shown, link: exact && entry.isSymbolicLink() }
}

/** Control, direction and invisible characters as escapes, so that no name can fake a line. Bytes that are no text come as `\xNN`. */
function visible(name: string, bytes?: 'x'): string {
  const unsafe =
    bytes === 'x'
      ? /[^\u0020-\u007e]|\\/g
      : /[\u0000-\u001f\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2066-\u2069\ufeff\u{e0000}-\u{e007f}\\]/gu
  return name.replaceAll(unsafe, (character) => {
    if (character === '\\') return '\\\\'
    const code = (character.codePointAt(0) ?? 0).toString(16)
    return bytes === 'x'
      ? `\\x${code.padStart(2, '0')}`
      : character === '\n'
        ? '\\n'
        : `\\u{${code}}`
  })
}

const REASONS: Readonly<Record<string, string>> = {
  OUTSIDE: 'leads out of the directories that this server works in (its --root)',
  OWN_FILE: 'belongs to the server itself; name another file',
  FOREIGN_LINK: 'goes through a link that another user has put into a shared directory',
  SWAPPED: 'was replaced while it was being opened; try again',
  UNREADABLE_LINK: 'leads to a name that is not valid UTF-8',
  ENOENT: 'does not exist',
  ENOTDIR: 'leads through something that is not a directory',
  EISDIR: 'is a directory, not a file',
  ELOOP: 'has too many parts or links',
  ENXIO: 'is not a regular file',
  ENAMETOOLONG: 'has a name that is too long',
  EROFS: 'is on a read-only file system',
  ENOSPC: 'does not fit: the disk is full',
  EDQUOT: 'does not fit: the quota is used up',
  EMFILE: 'cannot be opened now: too many files are open; try again later',
  ENFILE: 'cannot be opened now: too many files are open; try again later',
}

/** In words, and without the system's own message: that names the absolute path. */
function why(error: unknown, done: string): string {
  const code = error instanceof Error && 'code' in error ? String(error.code) : 'unknown error'
  if (done === 'written' && code === 'ENOENT')
    return 'cannot be written: its directory does not exist'
  if (hasCode(error, 'EACCES', 'EPERM')) return `may not be ${done}: permission denied`
  return REASONS[code] ?? `cannot be ${done} (${code})`
}
