import { randomBytes } from 'node:crypto'
import { constants } from 'node:fs'
import { type FileHandle, chmod, open, realpath, rename, unlink } from 'node:fs/promises'
import { dirname, join, basename } from 'node:path'

/** Larger than any configuration. */
const MAX_BYTES = 16 * 1024 * 1024

/** A configuration file, as it was when it was read. */
export interface ConfigFile {
  /** The file itself, if the path leads through symbolic links. */
  readonly path: string
  readonly bytes: Buffer
  readonly text: string
  readonly mode: number
  readonly owner: { readonly uid: number; readonly gid: number }
}

/** The permission of a file's owner to write it. To replace the file, nobody needs it. */
const OWNER_WRITES = 0o200

/** A file that cannot be used as it is. */
export class ConfigFileError extends Error {
  override readonly name = 'ConfigFileError'
}

/** Reads a file; undefined if there is none. */
export async function readConfig(path: string): Promise<ConfigFile | undefined> {
  let real: string
  try {
    real = await realpath(path)
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined
    throw error
  }
  // Without O_NONBLOCK, opening a named pipe would wait for a writer.
  const file = await open(real, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0))
  try {
    const found = await file.stat()
    if (!found.isFile()) throw new ConfigFileError('it is not a regular file')
    const bytes = await readAll(file, found.size)
    const { mode, uid, gid } = found
    return { path: real, bytes, text: decode(bytes), mode: mode & 0o7777, owner: { uid, gid } }
  } finally {
    await file.close()
  }
}

async function readAll(file: FileHandle, size: number): Promise<Buffer> {
  if (size > MAX_BYTES) throw new ConfigFileError(`it has more than ${MAX_BYTES} bytes`)
  const bytes = await file.readFile()
  if (bytes.length > MAX_BYTES) throw new ConfigFileError(`it has more than ${MAX_BYTES} bytes`)
  return bytes
}

/** With its byte order mark, so that it is written again. */
function decode(bytes: Buffer): string {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
  } catch {
    throw new ConfigFileError('it is not UTF-8')
  }
}

/** Throws if a file must not be changed. */
export function requireWritable({ mode }: ConfigFile): void {
  if ((mode & OWNER_WRITES) === 0)
    throw new ConfigFileError('it is read-only; make it writable first, if it may be changed')
}

/** Replaces a file at once, with the same mode and owner. Throws if it has changed since it was read. */
export async function replaceConfig(file: ConfigFile, bytes: Buffer): Promise<void> {
  const { path, mode, owner } = file
  const name = `.${basename(path)}.${randomBytes(6).toString('hex')}.tmp`
  const temporary = join(dirname(path), name)
  const written = await open(temporary, 'wx', 0o600)
  try {
    try {
      await written.writeFile(bytes)
      const { uid, gid } = await written.stat()
      if (uid !== owner.uid || gid !== owner.gid) await written.chown(owner.uid, owner.gid)
      if (process.platform !== 'win32') await written.chmod(mode)
      await written.sync()
    } finally {
      await written.close()
    }
    const now = await readConfig(path)
    if (now === undefined || !now.bytes.equals(file.bytes))
      throw new ConfigFileError('it has been changed by another program in the meantime; try again')
    await rename(temporary, path)
  } catch (error) {
    await unlink(temporary).catch(() => {})
    throw error
  }
}

/** Replaces a file of ours, which only its owner can read. */
export async function writePrivate(path: string, bytes: Buffer): Promise<void> {
  const temporary = `${path}.${randomBytes(6).toString('hex')}.tmp`
  const file = await open(temporary, 'wx', 0o600)
  try {
    await file.writeFile(bytes)
    await file.sync()
  } finally {
    await file.close()
  }
  await rename(temporary, path)
  await chmod(path, 0o600)
}
