import {
  type ClaimedTask,
  MemoryTaskStore,
  type MemoryTaskStoreOptions,
  type NewTask,
  type StoredTask,
  type TaskChange,
  type TaskEntry,
  type TaskStore,
} from '../task-store.js'
import { JournalFile } from './journal-file.js'
import { lockFile } from './journal-lock.js'

/** What one line of the journal contains: the changes that were written together. */
type Change =
  | { readonly task: ClaimedTask }
  | { readonly change: TaskChange; readonly name: string; readonly version: number }

interface Pending {
  readonly change: Change
  readonly name: string
  /** The task before this change, to be put back if it cannot be written. */
  readonly before: TaskEntry | undefined
  resolve(): void
  reject(error: unknown): void
}

/** A file that is smaller is not compacted. */
const SMALLEST = 4 * 1024 * 1024

/**
 * Stores tasks in a file, so that they survive a crash of the process and of the machine. All tasks are also in memory,
 * with the same limits. One process can use a file.
 */
export class JournalTaskStore implements TaskStore {
  readonly #memory: MemoryTaskStore
  readonly #file: JournalFile
  readonly #unlock: () => Promise<void>
  #queue: Pending[] = []
  /** Resolves when the last change of a task is on the disk, or has failed. */
  readonly #unwritten = new Map<string, Promise<unknown>>()
  #writing: Promise<void> | undefined
  #closed = false

  private constructor(memory: MemoryTaskStore, file: JournalFile, unlock: () => Promise<void>) {
    this.#memory = memory
    this.#file = file
    this.#unlock = unlock
  }

  /** Opens a journal, or creates it. Rejects with the code `JOURNAL_LOCKED` if another process uses it. */
  static async open(path: string, options?: MemoryTaskStoreOptions): Promise<JournalTaskStore> {
    const memory = new MemoryTaskStore(options)
    const unlock = await lockFile(path)
    try {
      const tasks = new Map<string, ClaimedTask>()
      const file = await JournalFile.open(path, (line) => {
        for (const change of line as readonly Change[]) apply(tasks, change) // written by this class
      })
      for (const [name, task] of tasks) memory.restore(name, { ...task, claimed: false })
      return new JournalTaskStore(memory, file, unlock)
    } catch (error) {
      await unlock()
      throw error
    }
  }

  /** Number of stored tasks, with those that have expired but are not deleted yet. */
  get size(): number {
    return this.#memory.size
  }

  async create(task: NewTask): Promise<boolean> {
    this.#checkOpen()
    const before = this.#memory.entry(task.name)
    if (!this.#memory.create(task)) return false
    const { claimed: _, ...stored } = task
    await this.#write(task.name, before, { task: { ...stored, version: 1 } })
    return true
  }

  /** What is not on the disk yet is not returned: a crash would undo it. */
  async get(name: string): Promise<StoredTask | undefined> {
    for (let last = this.#unwritten.get(name); last !== undefined; last = this.#unwritten.get(name))
      await last
    return this.#memory.get(name)
  }

  async change(
    name: string,
    version: number,
    change: TaskChange,
  ): Promise<'changed' | 'conflict' | 'full'> {
    this.#checkOpen()
    const before = this.#memory.entry(name)
    const outcome = this.#memory.change(name, version, change)
    if (outcome === 'changed') await this.#write(name, before, { change, name, version })
    return outcome
  }

  claim(limit: number): readonly ClaimedTask[] {
    return this.#memory.claim(limit)
  }

  release(): void {
    this.#memory.release()
  }

  subscribe(changed: (name: string) => void): () => void {
    return this.#memory.subscribe(changed)
  }

  /** Writes what is pending, and lets another process use the file. */
  async close(): Promise<void> {
    if (this.#closed) return
    this.#closed = true
    await this.#writing
    await this.#file.close()
    await this.#unlock()
  }

  #checkOpen(): void {
    if (this.#closed) throw new TypeError('The journal of tasks is closed')
  }

  #write(name: string, before: TaskEntry | undefined, change: Change): Promise<void> {
    const written = new Promise<void>((resolve, reject) =>
      this.#queue.push({ change, name, before, resolve, reject }),
    )
    const settled: Promise<unknown> = written
      .catch(() => {})
      .finally(() => {
        if (this.#unwritten.get(name) === settled) this.#unwritten.delete(name)
      })
    this.#unwritten.set(name, settled)
    this.#writing ??= this.#writeAll()
    return written
  }

  /** Writes the queue; what is added meanwhile is written together. */
  async #writeAll(): Promise<void> {
    // In the next turn: what this one adds is part of it.
    await Promise.resolve()
    while (this.#queue.length > 0) {
      const batch = this.#queue
      this.#queue = []
      try {
        await this.#file.append(batch.map(({ change }) => change))
        for (const { resolve } of batch) resolve()
      } catch (error) {
        this.#undo([...batch, ...this.#queue.splice(0)], error)
      }
      if (this.#queue.length === 0) await this.#compact()
    }
    // In the same turn as the check: what is added later starts again.
    this.#writing = undefined
  }

  /** Later changes are undone as well: they were made on top of those that could not be written. */
  #undo(failed: readonly Pending[], error: unknown): void {
    for (const { name, before } of failed.toReversed()) this.#memory.restore(name, before)
    for (const { reject } of failed) reject(error)
  }

  /** Rewrites the file when most of it is obsolete. */
  async #compact(): Promise<void> {
    if (this.#file.size < Math.max(SMALLEST, 3 * this.#memory.bytes)) return
    const values = [...this.#memory.entries()].map(
      ({ name, owner, expires, runnable, version, state, entries }) => [
        { task: { name, owner, expires, runnable, version, state, entries } },
      ],
    )
    // If it fails, the old file is used further.
    await this.#file.replace(values).catch(() => {})
  }
}

function apply(tasks: Map<string, ClaimedTask>, each: Change): void {
  if ('task' in each) return void tasks.set(each.task.name, each.task)
  const { name, version, change } = each
  const task = tasks.get(name)
  // It had expired, and was not part of a compacted file.
  if (task === undefined || task.version !== version) return
  const { state, runnable, append = [], clear = false } = change
  const entries = clear ? [] : [...task.entries, ...append]
  tasks.set(name, { ...task, state, runnable, entries, version: version + 1 })
}
