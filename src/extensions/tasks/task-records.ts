import { callHook, ignore } from '../../jsonrpc/hook.js'
import { isObject } from '../../jsonrpc/message.js'
import { stringMemory } from '../../stores/bytes.js'
import type { ClaimedTask, StoredTask, TaskStore } from '../../stores/task-store.js'
import { TaskCodec } from './task-codec.js'
import type { TaskState } from './task-record.js'

/** A change of a task; what is not given stays. */
export interface RecordChange {
  readonly state: TaskState
  /** Each the JSON of a `TaskEntry`. */
  readonly append?: readonly string[]
  readonly runnable?: boolean
  readonly clear?: boolean
  readonly release?: boolean
  /** Whether this is the runner's own bookkeeping, which may exceed the task's limit by `NOTES` bytes. */
  readonly note?: boolean
}

/** A store has thrown or rejected: the change may be tried again. */
export class StoreError extends Error {
  override readonly name = 'StoreError'
}

/** The error of a store that another process has taken over, so that nothing is tried again; undefined for other errors. */
export function lossOf(error: unknown): Error | undefined {
  const cause = error instanceof StoreError ? error.cause : error
  const isLoss = cause instanceof Error && 'code' in cause && cause.code === 'JOURNAL_LOST'
  return isLoss ? cause : undefined
}

/** How often a change is tried again because somebody else has changed the task. */
const ATTEMPTS = 100

/**
 * Bytes that every task may have in addition, for what the runner notes in its state: the name of its run, how often it
 * was interrupted, and a status message that says so. Sealed, they are a third longer.
 */
const NOTES = 1024

/** Reads and writes the states of tasks in a store, and limits their size. */
export class TaskRecords {
  readonly store: TaskStore
  codec = new TaskCodec()
  readonly #maxBytes: number

  constructor(store: TaskStore, maxBytes: number) {
    this.store = store
    this.#maxBytes = maxBytes
  }

  /** The state of a task; of an owner's tasks only, if one is given. */
  async get(name: string, owner?: string): Promise<TaskState | undefined> {
    const stored = await this.#read(name)
    if (stored === undefined || (owner !== undefined && stored.owner !== owner)) return undefined
    return await this.codec.readState(name, stored.state)
  }

  /** The state of a claimed task, and its entries; undefined if they cannot be opened. */
  async open({
    name,
    state: text,
    entries,
  }: ClaimedTask): Promise<{ state: TaskState; entries: readonly string[] } | undefined> {
    const state = await this.codec.readState(name, text)
    const opened = await this.codec.readEntries(name, entries)
    return state.unreadable === true || opened === undefined
      ? undefined
      : { state, entries: opened }
  }

  /** Stores a new task. `large`: it is larger than a task may be; `full`: the store has no room for it. */
  async create(
    task: Pick<StoredTask, 'name' | 'owner' | 'expires'> & { claimed: boolean },
    state: TaskState,
    entries: readonly string[],
  ): Promise<'created' | 'large' | 'full'> {
    const written = await this.codec.writeEntries(task.name, entries)
    const bytes = memoryOf(written)
    const text = await this.codec.writeState(task.name, { ...state, bytes })
    if (bytes + stringMemory(text) > this.#maxBytes) return 'large'
    const stored = { ...task, runnable: true, state: text, entries: written }
    return (await attempt(() => this.store.create(stored))) ? 'created' : 'full'
  }

  /** Whether a task that `create` has failed to store is stored nevertheless. */
  async outcomeOf(name: string, error: unknown): Promise<'created' | 'failed' | 'unknown'> {
    if (!(error instanceof StoreError) || lossOf(error) !== undefined) return 'failed'
    const { cause } = error
    const { stored = 'to be read' } = (isObject(cause) ? cause : {}) as { stored?: unknown } // of any store
    if (stored === false) return 'failed'
    if (stored === 'unknown') return 'unknown'
    try {
      return (await this.#read(name)) === undefined ? 'failed' : 'created'
    } catch {
      return 'unknown'
    }
  }

  /** Changes a task as `next` says, which returns undefined to leave it as it is. Throws a `StoreError` if the store fails. */
  async change(
    name: string,
    next: (state: TaskState, version: number) => RecordChange | undefined,
  ): Promise<'changed' | 'unchanged' | 'unknown' | 'full'> {
    for (let tried = 0; tried < ATTEMPTS; tried++) {
      const stored = await this.#read(name)
      if (stored === undefined) return 'unknown'
      const change = next(await this.codec.readState(name, stored.state), stored.version)
      if (change === undefined) return 'unchanged'
      const { state, append = [], runnable = stored.runnable } = change
      const { clear = false, release = false, note = false } = change
      const entries = await this.codec.writeEntries(name, append)
      const bytes = clear ? 0 : state.bytes + memoryOf(entries)
      // The clock may have been set back.
      const updatedAt = Math.max(Date.now(), state.updatedAt)
      const text = await this.codec.writeState(name, { ...state, bytes, updatedAt })
      const limit = note ? this.#maxBytes + NOTES : this.#maxBytes
      if (bytes + stringMemory(text) > limit) return 'full'
      const written = { state: text, runnable, append: entries, clear, release }
      const outcome = await attempt(() => this.store.change(name, stored.version, written))
      if (outcome !== 'conflict') return outcome
    }
    throw new StoreError(`A task was changed by others ${ATTEMPTS} times in a row`)
  }

  /** Calls a function with the name of each task that was changed, or `missed` if any may have changed. Returns a function that ends this. */
  subscribe(changed: (name: string) => void, missed: () => void): () => void {
    return endOf(this.store.subscribe(changed, missed), 'subscribe')
  }

  /** Whether this process still has its claim of a task. */
  holds(name: string): Promise<boolean> {
    return attempt(() => this.store.holds?.(name) ?? true)
  }

  #read(name: string): Promise<StoredTask | undefined> {
    return attempt(() => this.store.get(name))
  }
}

/** Checks the unsubscribe function that a store returned: one written in JavaScript may return something else. */
export function endOf(returned: unknown, method: string): () => void {
  if (typeof returned === 'function') return () => callHook(() => returned() as unknown, ignore)
  callHook(() => returned, ignore)
  throw new TypeError(`The store of tasks: ${method} must return a function`)
}

async function attempt<Value>(use: () => Value | Promise<Value>): Promise<Value> {
  try {
    return await use()
  } catch (cause) {
    throw new StoreError('The store of tasks has failed', { cause })
  }
}

function memoryOf(entries: readonly string[]): number {
  let bytes = 0
  for (const entry of entries) bytes += stringMemory(entry)
  return bytes
}
