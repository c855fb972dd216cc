import type { BigIntStats, Dirent } from 'node:fs'

/*
 * Files of a folder, and of nothing outside of it. On Linux, each directory of a path is opened relative to the one
 * before, through /proc/self/fd, and no symbolic link is followed, so that a concurrent rename cannot lead outside.
 * Elsewhere the path is compared with its real path before and after opening. Links that stay within the folder are
 * resolved when the folder is scanned; what is opened later is the real path that was found then.
 */

/** Node's modules, without an import: this file can be part of a bundle for browsers. */
function node() {
  const { getBuiltinModule } = globalThis.process ?? {}
  if (getBuiltinModule === undefined)
    throw new TypeError('folders need Node, or a runtime with its file system')
  return {
    fs: getBuiltinModule('node:fs'),
    path: getBuiltinModule('node:path'),
    url: getBuiltinModule('node:url'),
  }
}

/** The absolute path of a folder: the working directory may change. */
export function absolutePath(folder: string | URL): string {
  const { path, url } = node()
  return path.resolve(typeof folder === 'string' ? folder : url.fileURLToPath(folder))
}

/** The path below the folder, by segments. */
export type Segments = readonly string[]

/** What is known of a file without reading it: if two are the same, so are the contents. */
export interface FileIdentity {
  readonly text: string
  readonly size: number
  /** When it was last changed, in milliseconds. */
  readonly changedAt: number
}

const NONE: FileIdentity = { text: '', size: 0, changedAt: 0 }

export interface FolderEntry {
  readonly name: string
  /** `outside`: a symbolic link that leaves the folder. `unnamed`: its name is not UTF-8. */
  readonly kind: 'file' | 'directory' | 'outside' | 'special' | 'unnamed'
  /** Where it is, after symbolic links. */
  readonly real: Segments
  readonly identity: FileIdentity
}

export interface FileContents {
  readonly bytes: Uint8Array<ArrayBuffer>
  readonly identity: FileIdentity
}

/** A file that changes, or is gone, while it is used. */
export class FileChangedError extends Error {
  override readonly name = 'FileChangedError'
}

/** Reads below a folder. */
export class SkillFolder {
  readonly #fs = node().fs
  readonly #path = node().path
  readonly #byDescriptor: boolean
  /** The real path of the folder. */
  readonly root: string
  /** The name of the folder, as it was given. */
  readonly name: string

  /** `folder` is an absolute path. Throws if there is no such folder. */
  constructor(folder: string, resolution = defaultResolution()) {
    this.root = this.#fs.realpathSync(folder)
    this.name = this.#path.basename(folder)
    if (!this.#fs.statSync(this.root).isDirectory()) throw new Error('it is not a folder')
    this.#byDescriptor = resolution === 'descriptor'
  }

  /** The absolute path of something below the folder. */
  pathOf(segments: Segments): string {
    return this.#path.join(this.root, ...segments)
  }

  /** What a directory has, in the order of names, without names that begin with a dot. */
  list(directory: Segments): FolderEntry[] {
    return this.#within(directory, (at) => {
      const found: Dirent[] = this.#fs.readdirSync(at(''), { withFileTypes: true })
      const names = found.map(({ name }) => name).filter((name) => !name.startsWith('.'))
      return names.toSorted(compare).flatMap((name) => this.#entry(directory, name, at(name)) ?? [])
    })
  }

  /** Undefined if it is gone. */
  #entry(directory: Segments, name: string, path: string): FolderEntry | undefined {
    const stat = this.#fs.lstatSync(path, { bigint: true, throwIfNoEntry: false })
    if (stat === undefined)
      return name.includes('\uFFFD')
        ? { name, kind: 'unnamed', real: [], identity: NONE }
        : undefined
    if (!stat.isSymbolicLink())
      return { name, kind: kindOf(stat), real: [...directory, name], identity: identityOf(stat) }
    const identity = identityOf(stat)
    const real = this.#resolve([...directory, name])
    if (real === undefined) return { name, kind: 'outside', real: [], identity }
    const target = this.#within(real.slice(0, -1), (at) =>
      this.#fs.lstatSync(at(real.at(-1) ?? ''), { bigint: true, throwIfNoEntry: false }),
    )
    if (target === undefined) return undefined
    return { name, kind: kindOf(target), real, identity: identityOf(target) }
  }

  /** Where a symbolic link leads; undefined if that is not within the folder. */
  #resolve(link: Segments): Segments | undefined {
    try {
      const path = this.#fs.realpathSync(this.pathOf(link))
      const relative = this.#path.relative(this.root, path)
      const segments = relative.split(this.#path.sep)
      if (segments[0] === '..' || this.#path.isAbsolute(relative)) return undefined
      return relative === '' ? [] : segments
    } catch {
      return undefined
    }
  }

  /** Reads a file of at most `maxBytes`. Throws a `FileChangedError` if it is gone, is not a file, or changes meanwhile. */
  async read(file: Segments, maxBytes: number): Promise<FileContents> {
    const descriptor = this.#openFile(file)
    try {
      const identity = this.#identityOf(descriptor, maxBytes)
      const bytes = new Uint8Array(identity.size + 1)
      let length = 0
      for (;;) {
        const count = await this.#readSome(descriptor, bytes, length)
        length += count
        if (count === 0 || length === bytes.length) break
      }
      return this.#checked(descriptor, bytes, length, identity)
    } finally {
      this.#fs.closeSync(descriptor)
    }
  }

  /** Like `read`, but synchronous. */
  readSync(file: Segments, maxBytes: number): FileContents {
    const descriptor = this.#openFile(file)
    try {
      const identity = this.#identityOf(descriptor, maxBytes)
      const bytes = new Uint8Array(identity.size + 1)
      let length = 0
      for (;;) {
        const count = this.#fs.readSync(descriptor, bytes, length, bytes.length - length, length)
        length += count
        if (count === 0 || length === bytes.length) break
      }
      return this.#checked(descriptor, bytes, length, identity)
    } finally {
      this.#fs.closeSync(descriptor)
    }
  }

  #readSome(descriptor: number, bytes: Uint8Array, from: number): Promise<number> {
    return new Promise((resolve, reject) => {
      this.#fs.read(descriptor, bytes, from, bytes.length - from, from, (error, count) => {
        if (error === null) resolve(count)
        else reject(error)
      })
    })
  }

  #identityOf(descriptor: number, maxBytes: number): FileIdentity {
    const stat = this.#fs.fstatSync(descriptor, { bigint: true })
    if (!stat.isFile()) throw new FileChangedError('It is no longer a file')
    const identity = identityOf(stat)
    if (identity.size > maxBytes) throw new FileChangedError(`It has more than ${maxBytes} bytes`)
    return identity
  }

  /** `bytes` has room for one more than the file had, to see whether it ends there. */
  #checked(
    descriptor: number,
    bytes: Uint8Array<ArrayBuffer>,
    length: number,
    identity: FileIdentity,
  ): FileContents {
    const after = identityOf(this.#fs.fstatSync(descriptor, { bigint: true }))
    if (length !== identity.size || after.text !== identity.text)
      throw new FileChangedError('It has changed while it was read')
    return { bytes: bytes.subarray(0, length), identity }
  }

  #openFile(file: Segments): number {
    // On Windows some are undefined, which counts as 0.
    const { O_RDONLY, O_NOFOLLOW, O_NONBLOCK } = this.#fs.constants
    const name = file.at(-1) ?? ''
    try {
      const directory = this.#enter(file.slice(0, -1))
      try {
        const path = directory.at(name)
        const descriptor = this.#fs.openSync(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK)
        try {
          directory.verify(name)
          return descriptor
        } catch (error) {
          this.#fs.closeSync(descriptor)
          throw error
        }
      } finally {
        directory.close()
      }
    } catch (error) {
      if (isGone(error)) throw new FileChangedError('It is gone', { cause: error })
      throw error
    }
  }

  #within<Value>(segments: Segments, use: (at: (name: string) => string) => Value): Value {
    const directory = this.#enter(segments)
    try {
      const value = use(directory.at)
      directory.verify()
      return value
    } finally {
      directory.close()
    }
  }

  /** Opens a directory; `at` is the path of what is in it. Throws if a segment is a symbolic link. */
  #enter(segments: Segments) {
    return this.#byDescriptor ? this.#enterByDescriptor(segments) : this.#enterByPath(segments)
  }

  #enterByDescriptor(segments: Segments) {
    const { O_RDONLY, O_DIRECTORY, O_NOFOLLOW, O_NONBLOCK } = this.#fs.constants
    const flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK
    let descriptor = this.#fs.openSync(this.root, flags)
    for (const segment of segments) {
      const parent = descriptor
      try {
        descriptor = this.#fs.openSync(`/proc/self/fd/${parent}/${segment}`, flags)
      } finally {
        this.#fs.closeSync(parent)
      }
    }
    return {
      at: (name: string) => `/proc/self/fd/${descriptor}/${name}`,
      /** Nothing to verify: no link was followed. */
      verify: (_name?: string) => {},
      close: () => this.#fs.closeSync(descriptor),
    }
  }

  #enterByPath(segments: Segments) {
    const path = this.pathOf(segments)
    const verify = (name = '') => {
      const expected = this.#path.join(path, name)
      if (this.#fs.realpathSync(expected) !== expected) throw new FileChangedError('It is gone')
    }
    verify()
    return { at: (name: string) => this.#path.join(path, name), verify, close: () => {} }
  }
}

function defaultResolution(): 'descriptor' | 'path' {
  return node().fs.existsSync('/proc/self/fd/') ? 'descriptor' : 'path'
}

function kindOf(stat: BigIntStats): 'file' | 'directory' | 'special' {
  if (stat.isFile()) return 'file'
  return stat.isDirectory() ? 'directory' : 'special'
}

function identityOf({ dev, ino, size, mtimeNs, ctimeNs }: BigIntStats): FileIdentity {
  return {
    text: `${dev}-${ino}-${size}-${mtimeNs}-${ctimeNs}`,
    size: Number(size),
    // Unlike the time of modification, it cannot be set.
    changedAt: Number(ctimeNs / 1_000_000n),
  }
}

/** Whether a file is not there, or is now something else. */
function isGone(error: unknown): boolean {
  const codes = ['ENOENT', 'ENOTDIR', 'ELOOP', 'ENXIO', 'EISDIR']
  return error instanceof Error && 'code' in error && codes.some((code) => code === error.code)
}

/** By UTF-16 units, in every locale. */
export function compare(one: string, other: string): number {
  if (one === other) return 0
  return one < other ? -1 : 1
}
