import { createHash } from 'node:crypto'
import { chmod, mkdir, readFile, stat, utimes } from 'node:fs/promises'
import { join } from 'node:path'
import { LockFile, LockLost } from '../bundled/lock-file.js'
import { isObject } from '../jsonrpc/message.js'
import type { TokenStore } from '../oauth.js'
import { CommandError } from './options.js'
import { tokenDirectory, tokenPath } from './token-path.js'

export interface TokenFileOptions {
  /** Ends the waiting for a lock. */
  signal?: AbortSignal
  /** Whether waiting for a lock, such as that of a login, keeps the process alive (default true). */
  ref?: boolean
  /** Milliseconds after which a lock that does not change was left by a killed process. */
  stale?: number
}

const STALE = 15_000
/** Milliseconds to wait for the lock of the file, which is held for some milliseconds. */
const LOCK_TIMEOUT = 30_000
const MAX_FILE = 16 * 1024 * 1024

/**
 * Tokens in one JSON file that only its owner can read. It is replaced as a whole, so a reader never sees half of it;
 * changes are made one after the other, also by several processes.
 */
export class TokenFile implements TokenStore {
  readonly #directory: string
  readonly #file: string
  readonly #signal: AbortSignal | undefined
  readonly #ref: boolean
  readonly #stale: number

  constructor(
    directory = tokenDirectory(),
    { signal, ref = true, stale = STALE }: TokenFileOptions = {},
  ) {
    this.#directory = directory
    this.#file = tokenPath(directory)
    this.#signal = signal
    this.#ref = ref
    this.#stale = stale
  }

  async get(key: string): Promise<string | undefined> {
    return (await this.#read()).get(key)
  }

  set(key: string, value: string): Promise<void> {
    return this.#change((entries) => entries.set(key, value).size > 0)
  }

  delete(key: string): Promise<void> {
    return this.#change((entries) => entries.delete(key))
  }

  /** The keys of the file. */
  async keys(): Promise<string[]> {
    return [...(await this.#read()).keys()]
  }

  /** Holds a lock file while `run` runs. It is touched again and again, so that others see that its owner is alive. */
  async exclusively<Result>(key: string, run: () => Promise<Result>): Promise<Result> {
    const name = createHash('sha256').update(key).digest('hex').slice(0, 32)
    const path = join(this.#directory, `${name}.lock`)
    const lock = await this.#acquire(path, Infinity)
    let touching = Promise.resolve()
    const timer = setInterval(() => {
      const now = new Date()
      touching = utimes(path, now, now).catch(() => {})
    }, this.#stale / 5)
    try {
      return await run()
    } finally {
      clearInterval(timer)
      // The lock is only released if it is unchanged.
      await touching
      await lock.release()
    }
  }

  async #acquire(path: string, timeout: number): Promise<LockFile> {
    await mkdir(this.#directory, { recursive: true, mode: 0o700 })
    const deadline = performance.now() + timeout
    return await LockFile.acquire(path, {
      stale: this.#stale,
      deadline,
      signal: this.#signal,
      ref: this.#ref,
    })
  }

  async #change(change: (entries: Map<string, string>) => boolean): Promise<void> {
    for (;;) {
      const lock = await this.#acquire(`${this.#file}.lock`, LOCK_TIMEOUT)
      try {
        const entries = await this.#read()
        if (!change(entries)) return await lock.release()
        await lock.replace(this.#file, `${JSON.stringify(Object.fromEntries(entries), null, 2)}\n`)
        return
      } catch (error) {
        await lock.release()
        if (!(error instanceof LockLost)) throw error
      }
    }
  }

  async #read(): Promise<Map<string, string>> {
    let text: string
    try {
      const { size, mode } = await stat(this.#file)
      if (size > MAX_FILE) throw this.#invalid(`is larger than ${MAX_FILE} bytes`)
      // A copy or a backup may have made it readable for others.
      if ((mode & 0o077) !== 0 && process.platform !== 'win32') await chmod(this.#file, 0o600)
      text = await readFile(this.#file, 'utf8')
    } catch (error) {
      if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return new Map()
      throw error
    }
    let value: unknown
    try {
      value = JSON.parse(text)
    } catch {
      // Without the parser's message, which may repeat a token.
      throw this.#invalid('is not JSON')
    }
    if (!isObject(value)) throw this.#invalid('is not a JSON object')
    const entries = Object.entries(value)
    return new Map(
      entries.filter((entry): entry is [string, string] => typeof entry[1] === 'string'),
    )
  }

  #invalid(what: string): CommandError {
    return new CommandError(
      1,
      `The file of tokens ${this.#file} ${what}. Delete it, and log in again`,
    )
  }
}
