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
  /** The secret of the session id; its digest if others can read the store. */
  readonly secret: string
}

/** Reads sessions from a store, and writes them. The operations on one session run in order. */
export class SessionPersistence {
  readonly #store: SessionStore
  readonly #ttl: number
  readonly #report: (entry: LogEntry) => void
  /** By session name, the last operation in progress. */
  readonly #operations = new Map<string, Promise<unknown>>()
  readonly #queued = new Map<HttpSession, Promise<boolean>>()
  readonly #deleted = new WeakSet<HttpSession>()

  constructor(store: SessionStore, ttl: number, report: (entry: LogEntry) => void) {
    this.#store = store
    this.#ttl = ttl
    this.#report = report
  }

  /** Stores a session. Resolves with whether it is stored; undefined if another process has it. */
  set(session: HttpSession): Promise<boolean> | undefined {
    session.storedAt = performance.now()
    if (session.superseded) return undefined
    const queued = this.#queued.get(session)
    if (queued !== undefined) return queued
    const stored = this.#enqueue(session.name, () => this.#set(session))
    this.#queued.set(session, stored)
    return stored
  }

  async #set(session: HttpSession): Promise<boolean> {
    // Before the state is read: a change from here on is stored by the next operation.
    this.#queued.delete(session)
    const { name, generation } = session
    const secret = await this.#secret(session.id)
    const sequence = session.state.changeCount
    const state = stateOf(session, secret)
    // Nothing is stored before `initialize` has a result.
    if (this.#deleted.has(session) || session.protocolVersion === undefined) return false
    if (state === undefined) {
      await this.#store.delete(name, this.#ttl, generation)
      return true
    }
    const record = { generation, sequence, state: JSON.stringify(state) }
    // Only `false` is a refusal: the store may be written in JavaScript.
    const stored: unknown = await this.#store.set(name, record, this.#ttl)
    if (stored === false) {
      this.#supersede(session)
      return false
    }
    session.storedChangeCount = sequence
    return true
  }

  #supersede(session: HttpSession): void {
    session.superseded = true
    this.#report({ level: 'info', message: 'Another process has restored or ended a session' })
  }

  /** Whether a stored session belongs to an id. */
  async matches(id: string, { secret }: StoredSession): Promise<boolean> {
    return secret === (await this.#secret(id))
  }

  /** Reads a session. Rejects if the store fails. */
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

  /** Deletes a session; resolves with whether that succeeded. A session of another process is not deleted. */
  delete(session: HttpSession): Promise<boolean> {
    this.#deleted.add(session)
    const { name, generation } = session
    return this.#enqueue(name, async () => {
      const deleted: unknown = await this.#store.delete(name, this.#ttl, generation)
      if (deleted === false) this.#supersede(session)
      return deleted !== false
    })
  }

  /** Resolves when no operation is in progress; with a name, none of that session. */
  async settled(name?: string): Promise<void> {
    await (name === undefined ? Promise.all(this.#operations.values()) : this.#operations.get(name))
  }

  #enqueue(name: string, work: () => Promise<boolean>): Promise<boolean> {
    const operation = (this.#operations.get(name) ?? Promise.resolve())
      .then(work)
      .catch((error: unknown) => {
        const message = 'The session store failed to store or delete a session'
        this.#report({ level: 'error', message, error })
        return false
      })
      .finally(() => {
        if (this.#operations.get(name) === operation) this.#operations.delete(name)
      })
    this.#operations.set(name, operation)
    return operation
  }
}

/** What is stored of a session; undefined if it cannot be restored from that. */
function stateOf(session: HttpSession, secret: string): object | undefined {
  const { owner, protocolVersion, capabilities, state } = session
  if (!state.complete) return undefined
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
