import { ChannelClosedError } from '../jsonrpc/errors.js'
import { Backoff, wait } from './reconnect.js'
import { ConnectionError } from './target.js'

/**
 * Initializes a new session after the server has ended one: once for all requests that were refused. A server may end
 * each session at once; then there is a pause, longer each time, until a request succeeds.
 */
export class SessionRenewal {
  readonly #initialize: () => Promise<void>
  readonly #closed = new AbortController()
  #pending: Promise<void> | undefined
  #isUnattended = false
  /** Undefined if a request has succeeded since the last renewal. */
  #backoff: Backoff | undefined

  constructor(initialize: () => Promise<void>) {
    this.#initialize = initialize
  }

  /** Whether there is a renewal in progress. */
  get isRunning(): boolean {
    return this.#pending !== undefined
  }

  /** Whether no call waits for the renewal in progress. */
  get isUnattended(): boolean {
    return this.#isUnattended
  }

  /** Resolves when there is a new session. `isUnattended`: no call waits for it. */
  start(isUnattended = false): Promise<void> {
    const before = this.#pending
    const wasUnattended = this.#isUnattended
    this.#isUnattended = isUnattended && (before === undefined || wasUnattended)
    const pending = before ?? this.#run()
    this.#pending = pending
    // It may have been refused because nobody waited for it: the user was not asked.
    return wasUnattended && !isUnattended ? pending.catch(() => this.start()) : pending
  }

  /** A request has succeeded in the session. */
  succeeded(): void {
    this.#backoff = undefined
  }

  close(): void {
    this.#closed.abort()
  }

  async #run(): Promise<void> {
    try {
      await this.#renew()
    } finally {
      this.#pending = undefined
      this.#isUnattended = false
    }
  }

  async #renew(): Promise<void> {
    const { signal } = this.#closed
    try {
      const { delay } = this.#backoff?.next() ?? { delay: 0 }
      if (delay > 0) await wait(delay, signal)
      await this.#initialize()
    } catch (error) {
      if (signal.aborted) throw new ChannelClosedError('The connection is closed')
      const reason = error instanceof Error ? error.message : String(error)
      throw new ConnectionError(`The server ended the session and refused a new one: ${reason}`, {
        cause: error,
      })
    }
    this.#backoff ??= new Backoff({ attempts: Infinity })
    this.#backoff.opened()
  }
}
