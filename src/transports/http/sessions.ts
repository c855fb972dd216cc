import type { HttpSession } from './session.js'

export interface SessionsOptions {
  /** How many there may be. */
  max: number
  /** After so many milliseconds without a request or an open stream a session is ended. */
  idle: number
}

/** A session that was used within this time is not given up for a new one. */
const SETTLED = 60_000
/** So long nothing is looked for where nothing was found. */
const LOOK_AGAIN = 100

/** Every session of an endpoint. Most clients never say that they are done, so it ends those that nobody uses. */
export class Sessions {
  readonly #options: SessionsOptions
  readonly #all = new Map<string, HttpSession>()
  #timer: ReturnType<typeof setInterval> | undefined
  /** Before this moment none of them makes way. */
  #fullUntil = 0

  constructor(options: SessionsOptions) {
    this.#options = options
  }

  get size(): number {
    return this.#all.size
  }

  values(): Iterable<HttpSession> {
    return this.#all.values()
  }

  /** The session of that id, if it belongs to whoever asks: to others it does not exist. */
  get(id: string, owner: string | undefined): HttpSession | undefined {
    const session = this.#all.get(id)
    return session?.owner === owner ? session : undefined
  }

  /** Whether there is room for one more; one that has been idle for a while makes way for it. */
  makeRoom(): boolean {
    if (this.#all.size < this.#options.max) return true
    // Who asks all the time must not have all of them looked at each time.
    if (Date.now() < this.#fullUntil) return false
    let oldest: HttpSession | undefined
    for (const session of this.#all.values()) if (!session.busy && (oldest === undefined || session.used < oldest.used)) oldest = session
    const free = oldest === undefined ? Date.now() + LOOK_AGAIN : oldest.used + Math.min(SETTLED, this.#options.idle)
    if (oldest === undefined || Date.now() < free) {
      this.#fullUntil = Math.min(free, Date.now() + LOOK_AGAIN)
      return false
    }
    this.end(oldest)
    return true
  }

  add(session: HttpSession): void {
    this.#all.set(session.id, session)
    if (this.#timer !== undefined) return
    this.#timer = setInterval(() => this.#sweep(), Math.max(10, Math.min(this.#options.idle / 2, SETTLED)))
    // Not every runtime has timers that let a process end.
    ;(this.#timer as { unref?: () => void }).unref?.()
  }

  end(session: HttpSession): void {
    this.#all.delete(session.id)
    session.end()
    if (this.#all.size > 0) return
    clearInterval(this.#timer)
    this.#timer = undefined
  }

  #sweep(): void {
    const since = Date.now() - this.#options.idle
    for (const session of this.#all.values()) if (session.used < since && !session.busy) this.end(session)
  }
}
