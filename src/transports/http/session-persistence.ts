import { andThen } from '../../jsonrpc/hook.js'
import type { LogEntry } from '../../jsonrpc/log-entry.js'
import { isObject, isThenable } from '../../jsonrpc/message.js'
import type { SessionRecord, SessionStore } from '../../stores/session-store.js'
import { sessionNameOf, secretDigest, secretOf } from './session-id.js'
import type { HttpSession, RestorableState } from './session.js'

/** A session as it was read from the store. */
export interface StoredSession extends RestorableState {
  readonly generation: number
  readonly owner?: string | undefined
  /** The secret of the session id; its digest where others can read the store. */
  readonly secret: string
}

/** Reads sessions from a store, and writes them. The operations on one session run in order. */
export class SessionPersistence {
  readonly #store: SessionStore
  readonly #ttl: number
  readonly #report: (entry: LogEntry) => void
  /** By session name, the last operation in progress. */
  readonly #operations = new Map<string, Promise<void>>()
  readonly #queued = new Set<HttpSession>()
  readonly #deleted = new WeakSet<HttpSession>()

  constructor(store: SessionStore, ttl: number, report: (entry: LogEntry) => void) {
    this.#store = store
    this.#ttl = ttl
    this.#report = report
  }

  /** Stores a session. Resolves when that is done or has failed; undefined where there is nothing to wait for. */
  set(session: HttpSession): Promise<void> | undefined {
    session.storedAt = Date.now()
    const store = this.#store
    if (session.superseded || this.#queued.has(session)) return undefined
    this.#queued.add(session)
    return this.#enqueue(session.name, async () => {
      // Before the state is read: a change from here on is stored by the next operation.
      this.#queued.delete(session)
      const state = stateOf(session, await this.#secret(session.id))
      if (this.#deleted.has(session)) return
      if (state === undefined) return void (await store.delete(session.name, this.#ttl, session.generation))
      const record = { generation: session.generation, state: JSON.stringify(state) }
      // Only `false` is a refusal: not every store is checked by a compiler.
      const stored: unknown = await store.set(session.name, record, this.#ttl)
      if (stored !== false) return
      session.superseded = true
      this.#report({ level: 'info', message: 'Another process has restored or ended a session' })
    })
  }

  /** Whether a stored session belongs to an id. */
  async matches(id: string, { secret }: StoredSession): Promise<boolean> {
    return secret === (await this.#secret(id))
  }

  /** Reads a session. Rejects where the store fails. */
  get(id: string): StoredSession | undefined | Promise<StoredSession | undefined> {
    const name = sessionNameOf(id)
    if (name === '') return undefined
    const operation = this.#operations.get(name)
    if (operation !== undefined) return operation.then(() => this.get(id))
    return andThen(this.#get(name), parse)
  }

  #secret(id: string): string | Promise<string> {
    return this.#store.inProcess === true ? secretOf(id) : secretDigest(id)
  }

  #get(name: string): SessionRecord | undefined | Promise<SessionRecord | undefined> {
    try {
      const record = this.#store.get(name)
      // Database clients have thenables of their own.
      return isThenable(record) ? Promise.resolve(record) : record
    } catch (error) {
      return Promise.reject(error)
    }
  }

  /** Deletes a session; resolves with whether that succeeded. */
  async delete(session: HttpSession): Promise<boolean> {
    const store = this.#store
    this.#deleted.add(session)
    let deleted = false
    await this.#enqueue(session.name, async () => {
      await store.delete(session.name, this.#ttl)
      deleted = true
    })
    return deleted
  }

  /** Resolves when no operation is in progress. */
  async settled(): Promise<void> {
    await Promise.all(this.#operations.values())
  }

  #enqueue(name: string, work: () => Promise<void>): Promise<void> {
    const operation = (this.#operations.get(name) ?? Promise.resolve())
      .then(work)
      .catch((error: unknown) =>
        this.#report({
          level: 'error',
          message: 'The session store failed to store or delete a session',
          error,
        }),
      )
      .finally(() => {
        if (this.#operations.get(name) === operation) this.#operations.delete(name)
      })
    this.#operations.set(name, operation)
    return operation
  }
}

/** What is stored of a session; undefined where it cannot be restored from that. */
function stateOf(session: HttpSession, secret: string): object | undefined {
  const { owner, protocolVersion, capabilities, state } = session
  if (protocolVersion === undefined || !state.complete) return undefined
  const { initialize, messages } = state
  return { owner, secret, initialize, protocolVersion, capabilities, messages }
}

function parse(record: SessionRecord | undefined): StoredSession | undefined {
  try {
    const { generation, state } = record ?? {}
    const stored: unknown = state === undefined ? undefined : JSON.parse(state)
    if (!isObject(stored) || typeof generation !== 'number') return undefined
    return { ...stored, generation } as unknown as StoredSession // written by `stateOf`
  } catch {
    // Not written by `stateOf`.
    return undefined
  }
}
