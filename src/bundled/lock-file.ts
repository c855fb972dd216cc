import { randomBytes } from 'node:crypto'
import type { BigIntStats } from 'node:fs'
import { type FileHandle, link, lstat, open, rename, unlink } from 'node:fs/promises'
import { setTimeout as delay } from 'node:timers/promises'
import { ToolError } from '../index.js'

export interface LockOptions {
  /** Milliseconds after which an unchanged lock counts as left by a killed process. A live process holds one for a few milliseconds. */
  readonly stale: number
  /** When to stop waiting, as a `performance.now()` time. */
  readonly deadline: number
  readonly signal?: AbortSignal | undefined
  /** Whether waiting keeps the process alive (default true). */
  readonly ref?: boolean
}

/**
 * A lock file that is also the next version of the file it protects, as in git:
 * it is created exclusively beside the file, written, and renamed over it.
 */
export class LockFile {
  readonly #path: string
  readonly #handle: FileHandle
  #closed: Promise<BigIntStats> | undefined

  private constructor(path: string, handle: FileHandle) {
    this.#path = path
    this.#handle = handle
  }

  /** Acquires the lock as soon as it is free. Removes one that has not changed for `stale` milliseconds. */
  static async acquire(
    path: string,
    { stale, deadline, signal, ref = true }: LockOptions,
  ): Promise<LockFile> {
    let seen: BigIntStats | undefined
    let since = performance.now()
    for (;;) {
      signal?.throwIfAborted()
      try {
        return new LockFile(path, await open(path, 'wx', 0o600))
      } catch (error) {
        if (codeOf(error) !== 'EEXIST') throw error
      }
      const there = await lstatOrUndefined(path)
      if (there !== undefined && !there.isFile())
        throw lockError('the path of its lock file is not a regular file')
      if (!isSame(seen, there)) {
        seen = there
        since = performance.now()
      } else if (seen !== undefined && performance.now() - since > stale) {
        await removeStale(path, seen)
        continue
      }
      if (performance.now() > deadline) throw lockError('another process holds its lock; try again')
      await delay(5 + Math.random() * 20, undefined, { ref, ...(signal && { signal }) })
    }
  }

  /** Replaces the content of the file and releases the lock. */
  async replace(file: string, content: string): Promise<void> {
    await this.#handle.writeFile(content)
    await this.#handle.sync()
    const own = await this.#close()
    // If this process was suspended, another one may have removed the lock as stale.
    if (!isSame(own, await lstatOrUndefined(this.#path))) throw new LockLost()
    await rename(this.#path, file)
  }

  /** Releases the lock without a change. */
  async release(): Promise<void> {
    const own = await this.#close()
    if (isSame(own, await lstatOrUndefined(this.#path))) await unlink(this.#path)
  }

  /** Closes the lock file and returns its final stat. */
  #close(): Promise<BigIntStats> {
    return (this.#closed ??= this.#handle
      .stat({ bigint: true })
      .finally(() => this.#handle.close()))
  }
}

/** The lock was removed before the file was replaced; nothing was changed. */
export class LockLost extends ToolError {
  constructor() {
    super(lockError('another process has taken over its lock; try again').message)
  }
}

/** Removes a stale lock, unless another process has replaced it in the meantime. */
async function removeStale(path: string, stale: BigIntStats): Promise<void> {
  if (!isSame(stale, await lstatOrUndefined(path))) return
  const aside = `${path}.${randomBytes(8).toString('hex')}`
  try {
    await rename(path, aside)
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return
    throw error
  }
  if (!isSame(stale, await lstatOrUndefined(aside))) await link(aside, path).catch(() => {})
  await unlink(aside)
}

async function lstatOrUndefined(path: string): Promise<BigIntStats | undefined> {
  try {
    return await lstat(path, { bigint: true })
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return undefined
    throw error
  }
}

/** Also compares the modification time: an inode number can be reused immediately. */
function isSame(one: BigIntStats | undefined, other: BigIntStats | undefined): boolean {
  return (
    one?.ino === other?.ino &&
    one?.dev === other?.dev &&
    one?.mtimeNs === other?.mtimeNs &&
    one?.size === other?.size
  )
}

function lockError(reason: string): ToolError {
  return new ToolError(`The change could not be saved, and nothing was changed: ${reason}`)
}

function codeOf(error: unknown): unknown {
  return error instanceof Error && 'code' in error ? error.code : undefined
}
