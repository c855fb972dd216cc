import type { LogEntry } from '../../../jsonrpc/log-entry.js'
import type { SentMessage } from '../../../jsonrpc/message.js'
import { untilAborted, withTimeout } from './abort.js'

/** A message that is not a request: a notification, or the response to a request of the server. */
export interface Post {
  readonly frame: string
  readonly message: SentMessage | undefined
}

/** Maximum messages that are sent at the same time. */
const MAX_RUNNING = 16
/** Beyond this, nothing is read from the server, whose requests make these messages. */
const MAX_WAITING = 64
const MAX_WAITING_BYTES = 8 * 1024 * 1024
/** Beyond this, messages are dropped: the server does not accept any. */
const MAX_BYTES = 64 * 1024 * 1024
/** Milliseconds for the response to one message. */
const TIMEOUT = 30_000
/** Milliseconds for what waits when the queue is closed. */
const LINGER = 2000

/** Sends messages that get no response, a bounded number and amount of them at a time. */
export class PostQueue {
  readonly #send: (post: Post, signal: AbortSignal) => Promise<void>
  readonly #report: (entry: LogEntry) => void
  /** A set: to remove the first item of a long array takes as long as the array. */
  readonly #waiting = new Set<Post>()
  /** What is not a response, while the queue is paused. */
  #held: Post[] = []
  readonly #running = new Set<AbortController>()
  /** Characters of the frames that wait or are sent; each is at most two bytes in memory. */
  #length = 0
  #paused = false
  readonly #ready = new Waiters()
  readonly #idle = new Waiters()

  /** `send` must not reject. */
  constructor(
    send: (post: Post, signal: AbortSignal) => Promise<void>,
    report: (entry: LogEntry) => void,
  ) {
    this.#send = send
    this.#report = report
  }

  add(post: Post): void {
    if (2 * (this.#length + post.frame.length) > MAX_BYTES && this.#length > 0)
      return this.#report({
        level: 'warning',
        message: `A message was dropped: the server has not accepted the last ${2 * this.#length} bytes`,
      })
    this.#length += post.frame.length
    // The server waits for a response; it may be part of the handshake (`ping`).
    const isHeld = this.#paused && post.message?.kind !== 'response'
    if (isHeld) this.#held.push(post)
    else this.#waiting.add(post)
    this.#next()
  }

  /** Holds back what waits, and then all but responses. */
  pause(): void {
    this.#paused = true
    for (const post of this.#waiting) this.#held.push(post)
    this.#waiting.clear()
  }

  resume(): void {
    this.#paused = false
    for (const post of this.#held) this.#waiting.add(post)
    this.#held = []
    this.#next()
  }

  /** Sends a message before those that wait; resolves when the server has responded. */
  sendNow(post: Post): Promise<void> {
    this.#length += post.frame.length
    return this.#run(post)
  }

  /** Resolves when there is room; undefined if there is now. */
  ready(): Promise<void> | undefined {
    return this.#isFull() ? this.#ready.wait() : undefined
  }

  /** Sends what waits, for a limited time. */
  async close(): Promise<void> {
    if (this.#running.size === 0) return this.#abort()
    const idle = this.#idle.wait()
    await withTimeout(LINGER, (signal) => untilAborted(idle, signal)).catch(() => this.#abort())
  }

  #abort(): void {
    for (const { frame } of [...this.#waiting, ...this.#held]) this.#length -= frame.length
    this.#waiting.clear()
    this.#held = []
    for (const controller of this.#running) controller.abort()
  }

  /** Never while nothing is being sent: only the end of a message makes room. */
  #isFull(): boolean {
    const isLong = 2 * this.#length > MAX_WAITING_BYTES && this.#running.size > 0
    return this.#waiting.size > MAX_WAITING || isLong
  }

  #next(): void {
    for (const post of this.#waiting) {
      if (this.#running.size >= MAX_RUNNING) return
      this.#waiting.delete(post)
      void this.#run(post)
    }
  }

  async #run(post: Post): Promise<void> {
    const controller = new AbortController()
    this.#running.add(controller)
    const timer = setTimeout(() => controller.abort(), TIMEOUT)
    await this.#send(post, controller.signal)
    clearTimeout(timer)
    this.#running.delete(controller)
    this.#length -= post.frame.length
    this.#next()
    if (!this.#isFull()) this.#ready.resolve()
    if (this.#running.size === 0 && this.#waiting.size === 0) this.#idle.resolve()
  }
}

class Waiters {
  #resolves: (() => void)[] = []

  wait(): Promise<void> {
    return new Promise((resolve) => this.#resolves.push(resolve))
  }

  resolve(): void {
    for (const resolve of this.#resolves.splice(0)) resolve()
  }
}
