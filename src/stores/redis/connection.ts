import { type Link, type RedisClient, kindOf, openLink } from './link.js'
import { type Script, digestOf } from './script.js'

/** Redis cannot be reached, or has not replied in time: the command may have been executed. */
export class RedisUnavailableError extends Error {
  override readonly name = 'RedisUnavailableError'
  readonly code = 'REDIS_UNAVAILABLE'
}

/** Maximum characters of commands without a reply. */
const MAX_PENDING = 64 * 1024 * 1024
/** Approximate memory of a command beside its text. */
const COMMAND = 200
/** A connection that is still being opened is given up after this multiple of the time limit: it takes several replies. */
const CONNECT_FACTOR = 3
/** Milliseconds by which a timer may be late; if it is later, this process was busy, and may not have read the reply yet. */
const MAX_LAG = 50
/** Milliseconds until a new connection is opened after one has failed; doubled each time up to the maximum. */
const MIN_BACKOFF = 50
const MAX_BACKOFF = 2000

/**
 * Sends commands, each with a time limit. A connection on which one gets no reply in time is destroyed: the client
 * library would wait for replies on it forever. The size of pending commands is bounded.
 */
export class Connection {
  readonly #client: RedisClient
  readonly #timeout: number
  #link: Link | undefined
  #isClosed = false
  #pending = 0
  #failures = 0
  #retryAt = 0
  /** Since when the client has had no connection, by the clock of `performance.now`; undefined while it has one. */
  #offlineSince: number | undefined

  /** `timeout` is in milliseconds. */
  constructor(client: RedisClient, timeout: number) {
    kindOf(client)
    this.#client = client
    this.#timeout = timeout
  }

  /** Sends a command. `key` is one of its keys, by which a cluster finds the process. `timeout` is longer for one that waits. */
  async command(
    command: readonly string[],
    key?: string,
    timeout = this.#timeout,
  ): Promise<unknown> {
    let size = COMMAND
    for (const part of command) size += part.length
    if (this.#pending + size > MAX_PENDING)
      throw new RedisUnavailableError('Too many commands are waiting for a reply from Redis')
    const link = this.#linked()
    this.#pending += size
    try {
      await this.#connected(link)
      return await this.#inTime(link, timeout, () => this.#send(link, command, key))
    } finally {
      this.#pending -= size
      if (this.#isClosed && this.#pending === 0) this.#close()
    }
  }

  /** Runs a script, which Redis may not have yet. All keys are in one slot. */
  async run(
    script: Script,
    keys: readonly string[],
    parameters: readonly string[],
  ): Promise<unknown> {
    const rest = [String(keys.length), ...keys, ...parameters]
    try {
      return await this.command(['EVALSHA', await digestOf(script), ...rest], keys[0])
    } catch (error) {
      if (replyCode(error) !== 'NOSCRIPT') throw error
      return this.command(['EVAL', script.source, ...rest], keys[0])
    }
  }

  /** Keeps the connection open between commands, as it is at first. */
  open(): void {
    this.#isClosed = false
  }

  /**
   * Closes the connection. A command that follows opens a new one, which is closed with its last reply: otherwise what a
   * handler stores too late would keep the process alive.
   */
  close(): void {
    this.#isClosed = true
    this.#close()
  }

  #close(): void {
    this.#link?.destroy()
    this.#link = undefined
    this.#failures = 0
    this.#retryAt = 0
  }

  /** Waits until commands can be sent. They have their own time limit, which begins then. */
  async #connected(link: Link): Promise<void> {
    if (link.isReady) return
    const limit = CONNECT_FACTOR * this.#timeout
    const left = Math.max(0, Math.round(link.opened + limit - performance.now()))
    try {
      await this.#inTime(link, limit, () => link.ready, left)
    } catch (error) {
      this.#drop(link)
      throw unavailable('Redis cannot be reached', error)
    }
  }

  /** Gives up a connection on which something takes longer than `milliseconds`, of which some are left. */
  async #inTime<Value>(
    link: Link,
    milliseconds: number,
    run: () => Promise<Value>,
    left = milliseconds,
  ): Promise<Value> {
    const deadline = new Deadline(left)
    try {
      const late = deadline.passed.then(() => {
        this.#drop(link)
        throw unavailable(`Redis has not replied within ${milliseconds} ms`, link.lastError)
      })
      return await Promise.race([run(), late])
    } finally {
      deadline.stop()
    }
  }

  async #send(link: Link, command: readonly string[], key: string | undefined): Promise<unknown> {
    try {
      const reply = await link.send(command, key)
      this.#failures = 0
      this.#offlineSince = undefined
      return reply
    } catch (error) {
      const code = replyCode(error)
      // A replica: the address may now lead to another process, which is the primary.
      if (code === 'READONLY' || (code === undefined && this.#staysOffline())) this.#drop(link)
      throw code === undefined ? unavailable('Redis cannot be reached', error) : error
    }
  }

  /** A client reconnects by itself, but may wait without end for the first reply of a connection that is silent. */
  #staysOffline(): boolean {
    this.#offlineSince ??= performance.now()
    return performance.now() - this.#offlineSince > CONNECT_FACTOR * this.#timeout
  }

  #linked(): Link {
    if (this.#link !== undefined) return this.#link
    if (performance.now() < this.#retryAt)
      throw new RedisUnavailableError('Redis cannot be reached; the next attempt follows shortly')
    this.#link = openLink(this.#client)
    return this.#link
  }

  #drop(link: Link): void {
    if (this.#link !== link) return
    this.#link = undefined
    this.#offlineSince = undefined
    link.destroy()
    const backoff = Math.min(MAX_BACKOFF, MIN_BACKOFF * 2 ** this.#failures++)
    // Not all processes at the same time.
    this.#retryAt = performance.now() + backoff * (0.5 + Math.random() / 2)
  }
}

/** A time limit. If the timer fires late because this process was busy, it is extended once, so that a reply that has arrived can be read. */
class Deadline {
  readonly passed: Promise<void>
  #timer: ReturnType<typeof setTimeout> | undefined

  constructor(milliseconds: number) {
    const due = performance.now() + milliseconds
    this.passed = new Promise((resolve) => {
      this.#timer = setTimeout(() => {
        if (performance.now() - due <= MAX_LAG) return resolve()
        this.#timer = setTimeout(resolve, milliseconds / 2)
      }, milliseconds)
    })
  }

  stop(): void {
    clearTimeout(this.#timer)
  }
}

function unavailable(message: string, cause: unknown): RedisUnavailableError {
  const reason = cause instanceof Error ? `: ${cause.message}` : ''
  return new RedisUnavailableError(message + reason, { cause })
}

/** The code of an error that Redis has replied with: the first word, in capitals. */
function replyCode(error: unknown): string | undefined {
  const [word = ''] = error instanceof Error ? error.message.split(' ', 1) : []
  return /^[A-Z]{2,}$/.test(word) ? word : undefined
}
