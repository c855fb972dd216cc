import { randomBytes } from 'node:crypto'
import type { BigIntStats } from 'node:fs'
import { type FileHandle, link, lstat, open, rename, unlink } from 'node:fs/promises'
import { setTimeout as delay } from 'node:timers/promises'
import { ToolError } from '../index.js'

export interface LockOptions {
  /** Milliseconds after which a lock that nobody has touched counts as left by a killed process. Whoever holds one needs a few. */
  readonly stale: number
  /** When to stop waiting, by `performance.now()`. */
  readonly deadline: number
  readonly signal?: AbortSignal | undefined
}

/**
 * A lock that is also the next version of the file it protects, as git does it:
 * it is created exclusively beside the file, written, and renamed over it.
 * Waiting never blocks the event loop.
 */
export class LockFile {
  readonly #path: string
  readonly #handle: FileHandle
  #closed: Promise<BigIntStats> | undefined

  private constructor(path: string, handle: FileHandle) {
    this.#path = path
    this.#handle = handle
  }

  /** Takes the lock as soon as it is free; one that stays untouched for `stale` milliseconds is removed. */
  static async take(path: string, { stale, deadline, signal }: LockOptions): Promise<LockFile> {
    let seen: BigIntStats | undefined
    let since = performance.now()
    for (;;) {
      signal?.throwIfAborted()
      try {
        return new LockFile(path, await open(path, 'wx', 0o600))
      } catch (error) {
        if (codeOf(error) !== 'EEXIST') throw error
      }
      const there = await look(path)
      if (there !== undefined && !there.isFile())
        throw notKept('something else has the name of its lock file')
      if (!isSame(seen, there)) {
        seen = there
        since = performance.now()
      } else if (seen !== undefined && performance.now() - since > stale) {
        await takeAway(path, seen)
        continue
      }
      if (performance.now() > deadline) throw notKept('another process holds its lock; try again')
      await delay(5 + Math.random() * 20, undefined, signal === undefined ? {} : { signal })
    }
  }

  /** Gives the file this content, which also frees the lock. */
  async replace(file: string, content: string): Promise<void> {
    await this.#handle.writeFile(content)
    await this.#handle.sync()
    const own = await this.#close()
    // This process may have been stopped for so long that another one has taken the lock for stale.
    if (!isSame(own, await look(this.#path)))
      throw notKept('another process has taken over its lock; try again')
    await rename(this.#path, file)
  }

  /** Frees the lock without a change. */
  async release(): Promise<void> {
    const own = await this.#close()
    if (isSame(own, await look(this.#path))) await unlink(this.#path)
  }

  /** Closes the file and says which one it was. */
  #close(): Promise<BigIntStats> {
    return (this.#closed ??= this.#handle
      .stat({ bigint: true })
      .finally(() => this.#handle.close()))
  }
}

/** Removes a stale lock, unless another process has removed it and taken the lock in the meantime. */
async function takeAway(path: string, stale: BigIntStats): Promise<void> {
  if (!isSame(stale, await look(path))) return
  const aside = `${path}.${randomBytes(8).toString('hex')}`
  try {
    await rename(path, aside)
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return
    throw error
  }
  if (!isSame(stale, await look(aside))) await link(aside, path).catch(() => {})
  await unlink(aside)
}

async function look(path: string): Promise<BigIntStats | undefined> {
  try {
    return await lstat(path, { bigint: true })
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return undefined
    throw error
  }
}

/** An inode number alone can be used again at once; with its time of change it is not. */
function isSame(one: BigIntStats | undefined, other: BigIntStats | undefined): boolean {
  return (
    one?.ino === other?.ino &&
    one?.dev === other?.dev &&
    one?.mtimeNs === other?.mtimeNs &&
    one?.size === other?.size
  )
}

function notKept(reason: string): ToolError {
  return new ToolError(`The change cannot be kept on disk, and nothing was changed: ${reason}`)
}

function codeOf(error: unknown): unknown {
  return error instanceof Error && 'code' in error ? error.code : undefined
}
