import { bytesOf } from './bytes.js'

/**
 * Where sessions are kept, so that they can be made anew by a process that does
 * not have them: after a restart, or when another one has failed. What is kept
 * is text; the name of a session is not enough to use it. Where something takes
 * time, a promise is waited for.
 */
export interface SessionStore {
  /** Whether nobody but this process can read what is kept: then no digest is made of what makes an id worth something. */
  readonly inProcess?: boolean
  /** Keeps it, or what has become of it, for so many milliseconds at least, counted anew each time. */
  keep(name: string, session: string, ttl: number): void | Promise<void>
  fetch(name: string): string | undefined | Promise<string | undefined>
  drop(name: string): void | Promise<void>
}

export interface MemorySessionStoreOptions {
  /** How many are kept (default 10,000): the one that was kept longest ago is let go first. */
  max?: number
  /** How many bytes they may take (default 64 MiB). */
  maxBytes?: number
}

/** What a session costs beside its text, about. */
const SESSION = 300

/** Keeps sessions in this process, and no longer than it lives. */
export class MemorySessionStore implements SessionStore {
  readonly inProcess = true
  readonly #max: number
  readonly #maxBytes: number
  #bytes = 0
  /** In the order in which they were kept last. */
  readonly #sessions = new Map<string, { session: string; bytes: number; until: number }>()

  constructor({ max = 10_000, maxBytes = 64 * 1024 * 1024 }: MemorySessionStoreOptions = {}) {
    this.#max = max
    this.#maxBytes = maxBytes
  }

  /** How many are kept. */
  get size(): number {
    return this.#sessions.size
  }

  keep(name: string, session: string, ttl: number): void {
    this.drop(name)
    const bytes = bytesOf(session) + SESSION
    this.#bytes += bytes
    this.#sessions.set(name, { session, bytes, until: Date.now() + ttl })
    for (const [oldest, { until }] of this.#sessions) {
      if (this.#sessions.size <= this.#max && this.#bytes <= this.#maxBytes && until > Date.now())
        break
      this.drop(oldest)
    }
  }

  fetch(name: string): string | undefined {
    const kept = this.#sessions.get(name)
    return kept !== undefined && kept.until > Date.now() ? kept.session : undefined
  }

  drop(name: string): void {
    this.#bytes -= this.#sessions.get(name)?.bytes ?? 0
    this.#sessions.delete(name)
  }
}
