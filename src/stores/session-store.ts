import { stringMemory } from './bytes.js'
import type { SessionOwnership } from './session-ownership.js'

/** A session as it is stored. */
export interface SessionRecord {
  /** The fencing token: a process that restores a session stores it with a higher generation. */
  readonly generation: number
  /** How often the process with this generation has changed the session; a write may arrive after a newer one. */
  readonly sequence?: number
  /** The state of the session, as JSON. It does not contain the session id. */
  readonly state: string
}

/**
 * Stores sessions, so that another process can restore them: after a restart, or behind a load balancer. A store may
 * return values or promises. `name` is a part of the session id; the name alone does not give access to the session.
 */
export interface SessionStore {
  /** Set if only this process can read the store: then the secret part of session ids is stored without hashing it. */
  readonly inProcess?: boolean
  /** Set if several processes serve the sessions of this store at the same time: which of them serves which. */
  readonly ownership?: SessionOwnership
  /** The stored session; undefined if it is unknown, expired or deleted. */
  get(name: string): SessionRecord | undefined | Promise<SessionRecord | undefined>
  /**
   * Stores a session for `ttl` milliseconds, counted from this call. Returns false, and stores nothing, if the stored
   * session has a higher generation or was deleted: another process has restored or ended it. Returns true, but stores
   * nothing, if the stored session has the same generation and a higher sequence. Must be atomic.
   */
  set(name: string, record: SessionRecord, ttl: number): boolean | Promise<boolean>
  /**
   * Deletes a session. For `ttl` milliseconds `set` returns false for this name. An unknown session is not an error.
   * With `generation`, it returns false, and deletes nothing, if the stored session has a higher one.
   */
  delete(name: string, ttl: number, generation?: number): boolean | void | Promise<boolean | void>
}

export interface MemorySessionStoreOptions {
  /** Maximum number of sessions (default 10,000); beyond it, the one that was stored longest ago is evicted. */
  maxSessions?: number
  /** Maximum bytes of all sessions (default 64 MiB). */
  maxBytes?: number
}

interface Entry {
  record: SessionRecord
  bytes: number
  /** By the clock of `performance.now`, as all times here. */
  expires: number
}

/** Approximate memory of an entry beside its text. */
const ENTRY = 300

/** Stores sessions in this process: they end with it. */
export class MemorySessionStore implements SessionStore {
  readonly inProcess = true
  readonly #maxSessions: number
  readonly #maxBytes: number
  #bytes = 0
  /** Ordered by when they were last stored. */
  readonly #entries = new Map<string, Entry>()
  /** Names of deleted sessions and when that is forgotten; at most `maxSessions`. */
  readonly #deleted = new Map<string, number>()

  constructor({
    maxSessions = 10_000,
    maxBytes = 64 * 1024 * 1024,
  }: MemorySessionStoreOptions = {}) {
    this.#maxSessions = maxSessions
    this.#maxBytes = maxBytes
  }

  /** Number of stored sessions. */
  get size(): number {
    return this.#entries.size
  }

  get(name: string): SessionRecord | undefined {
    const entry = this.#entries.get(name)
    return entry !== undefined && entry.expires > performance.now() ? entry.record : undefined
  }

  set(name: string, record: SessionRecord, ttl: number): boolean {
    const now = performance.now()
    if ((this.#deleted.get(name) ?? 0) > now) return false
    const stored = this.get(name)
    if (stored !== undefined && stored.generation > record.generation) return false
    if (stored !== undefined && isOlder(record, stored)) return true
    this.#remove(name)
    const bytes = stringMemory(record.state) + ENTRY
    this.#entries.set(name, { record, bytes, expires: now + ttl })
    this.#bytes += bytes
    for (const [oldest, { expires }] of this.#entries) {
      const fits = this.#entries.size <= this.#maxSessions && this.#bytes <= this.#maxBytes
      if (fits && expires > now) break
      this.#remove(oldest)
    }
    return true
  }

  delete(name: string, ttl: number, generation = Infinity): boolean {
    if ((this.get(name)?.generation ?? 0) > generation) return false
    this.#remove(name)
    const now = performance.now()
    this.#deleted.delete(name)
    this.#deleted.set(name, now + ttl)
    for (const [oldest, expires] of this.#deleted) {
      if (this.#deleted.size <= this.#maxSessions && expires > now) break
      this.#deleted.delete(oldest)
    }
    return true
  }

  #remove(name: string): void {
    this.#bytes -= this.#entries.get(name)?.bytes ?? 0
    this.#entries.delete(name)
  }
}

/** Whether a write of the same process was overtaken by a newer one. */
function isOlder(record: SessionRecord, stored: SessionRecord): boolean {
  const { generation, sequence = Infinity } = record
  return generation === stored.generation && sequence < (stored.sequence ?? 0)
}
