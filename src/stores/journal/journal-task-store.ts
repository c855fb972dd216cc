import {
  MemoryTaskStore,
  type MemoryTaskStoreOptions,
  type TaskEntry,
  taskOf,
} from '../memory-task-store.js'
import type {
  ClaimShares,
  ClaimedTask,
  NewTask,
  StoreReport,
  StoredTask,
  TaskChange,
  TaskCommand,
  TaskStore,
} from '../task-store.js'
import { receiveCommands } from './journal-commands.js'
import { JournalFile } from './journal-file.js'
import { readJournalFile } from './journal-lines.js'
import { JournalLock, realPath } from './journal-lock.js'

/** What one line of the journal contains: the changes that were written together. */
type Change =
  | { readonly task: ClaimedTask }
  | { readonly change: TaskChange; readonly name: string; readonly version: number }

/** About how many bytes the line of a task has beside its texts. */
const LINE = 150
/** Characters of changes that are written together, at most, if it is not a single one. */
const BATCH = 8 * 1024 * 1024

interface Pending {
  readonly change: Change
  readonly name: string
  /** The task before this change, to be put back if it cannot be written. */
  readonly before: TaskEntry | undefined
  resolve(): void
  reject(error: unknown): void
}

export interface JournalTaskStoreOptions extends MemoryTaskStoreOptions {
  /** The file is rewritten when it has more bytes than this and most of them are obsolete (default 4 MiB). */
  compactBytes?: number
}

/** What is there while the journal is in use. */
interface Opened {
  readonly memory: MemoryTaskStore
  readonly file: JournalFile
  readonly lock: JournalLock
}

/**
 * Stores tasks in a file, so that they survive a crash of the process and of the machine. All tasks are also in memory,
 * with the same limits. One process can use a file: it is locked and read when the server is first served.
 */
export class JournalTaskStore implements TaskStore {
  readonly #path: string
  readonly #limits: MemoryTaskStoreOptions
  readonly #compactBytes: number
  readonly #listeners = new Set<{ changed: (name: string) => void; missed: () => void }>()
  #opened: Opened | undefined
  #queue: Pending[] = []
  /** Resolves when the last change of a task is on the disk, or has failed. */
  readonly #unwritten = new Map<string, Promise<unknown>>()
  #writing: Promise<void> | undefined
  #closing = false
  /** The size at which the file is next compacted. */
  #compactAt = 0

  constructor(path: string, options: JournalTaskStoreOptions = {}) {
    if (typeof path !== 'string' || path === '')
      throw new TypeError('JournalTaskStore: pass the path of a file')
    const { compactBytes = 4 * 1024 * 1024, ...limits } = options
    if (!(typeof compactBytes === 'number' && compactBytes >= 1))
      throw new TypeError('JournalTaskStore: "compactBytes" must be a number above 0')
    this.#path = path
    this.#limits = limits
    this.#compactBytes = compactBytes
    void new MemoryTaskStore(limits) // throws if they are invalid
  }

  /** A journal that is in use already; rejects with the code `JOURNAL_LOCKED` if another process uses it. */
  static open(path: string, options?: JournalTaskStoreOptions): Promise<JournalTaskStore> {
    const store = new JournalTaskStore(path, options)
    return new Promise((resolve) => {
      store.open()
      resolve(store)
    })
  }

  /** Number of stored tasks, with those that have expired but are not deleted yet. */
  get size(): number {
    return this.#opened?.memory.size ?? 0
  }

  /** Locks and reads the journal, or creates it. Throws if another process uses it, or it cannot be read. */
  open(report?: StoreReport): void {
    this.#closing = false
    if (this.#opened !== undefined) return
    const memory = new MemoryTaskStore(this.#limits)
    memory.subscribe((name) => this.#changed(name))
    const path = realPath(this.#path)
    const lost = (error: Error) => {
      report?.({ level: 'error', message: 'The journal of tasks cannot be used any more', error })
      for (const { missed } of this.#listeners) missed()
    }
    const lock = JournalLock.take(path, lost)
    try {
      const tasks = new Map<string, ReadTask>()
      const file = JournalFile.open(path, lock, lost, (line) => applyLine(tasks, line))
      for (const task of tasks.values()) memory.load(task)
      this.#compactAt = this.#compactBytes
      this.#opened = { memory, file, lock }
      if (file.cut > 0)
        report?.({
          level: 'warning',
          message: `The journal of tasks ${path} ended with an incomplete line, as after a crash: ${file.cut} bytes were cut. No change was acknowledged that they contained`,
        })
    } catch (error) {
      lock.release()
      throw error
    }
    // It may be large, or must be replaced.
    this.#writing ??= this.#writeAll(this.#opened)
  }

  /** Writes what is pending, and lets another process use the file. */
  async close(): Promise<void> {
    this.#closing = true
    while (this.#writing !== undefined) await this.#writing
    // It may have been started again meanwhile.
    if (!this.#closing || this.#opened === undefined) return
    const { file, lock } = this.#opened
    this.#opened = undefined
    try {
      file.close()
    } finally {
      lock.release()
    }
  }

  async create(task: NewTask): Promise<boolean> {
    const { memory } = this.#use()
    const before = memory.entry(task.name)
    if (!memory.create(task)) return false
    const { claimed: _, ...stored } = task
    await this.#write(task.name, before, { task: { ...stored, version: 1 } })
    return true
  }

  /** What is not on the disk yet is not returned: a crash would undo it. */
  async get(name: string): Promise<StoredTask | undefined> {
    for (let last = this.#unwritten.get(name); last !== undefined; last = this.#unwritten.get(name))
      await last
    return this.#use().memory.get(name)
  }

  async change(
    name: string,
    version: number,
    change: TaskChange,
  ): Promise<'changed' | 'conflict' | 'full'> {
    const { memory } = this.#use()
    const before = memory.entry(name)
    const outcome = memory.change(name, version, change)
    if (outcome === 'changed') await this.#write(name, before, { change, name, version })
    return outcome
  }

  claim(limit: number, shares?: ClaimShares): readonly ClaimedTask[] {
    return this.#use().memory.claim(limit, shares)
  }

  /** Throws if another process has taken the journal over while this one was stopped. */
  holds(): boolean {
    this.#use().lock.checkAgain()
    return true
  }

  release(): void {
    this.#opened?.memory.release()
  }

  /** Calls `missed` when another process has taken the journal over: then every method fails. */
  subscribe(changed: (name: string) => void, missed: () => void = () => {}): () => void {
    const listener = { changed, missed }
    this.#listeners.add(listener)
    return () => void this.#listeners.delete(listener)
  }

  /** Receives the commands of `ccmcp tasks`. */
  receiveCommands(run: (command: TaskCommand) => void): () => void {
    return receiveCommands(this.#path, run)
  }

  #changed(name: string): void {
    for (const { changed } of this.#listeners) changed(name)
  }

  #use(): Opened {
    if (this.#opened === undefined || this.#closing)
      throw new TypeError(
        'The task journal is not open: it is open only while its server is being served',
      )
    // What is in memory is no longer true.
    const lost = this.#opened.lock.lost ?? this.#opened.file.lost
    if (lost !== undefined) throw lost
    return this.#opened
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
    this.#writing ??= this.#writeAll(this.#use())
    return written
  }

  /** Writes the queue; what is added meanwhile is written together. */
  async #writeAll(opened: Opened): Promise<void> {
    // In the next turn: what this one adds is part of it.
    await Promise.resolve()
    do {
      await this.#writeBatch(opened)
      await this.#compact(opened)
    } while (this.#queue.length > 0)
    // In the same turn as the check: what is added later starts again.
    this.#writing = undefined
  }

  async #writeBatch({ file, memory }: Opened): Promise<void> {
    const batch = this.#queue.splice(0, lengthOfBatch(this.#queue))
    try {
      if (file.mustReplace) await file.replace(written(memory, [...batch, ...this.#queue]))
      if (batch.length > 0) await file.append(batch.map(({ change }) => change))
      for (const { resolve } of batch) resolve()
    } catch (error) {
      // Later changes are undone as well: they were made on top of those that could not be written.
      undo(memory, [...batch, ...this.#queue.splice(0)], error)
    }
  }

  /** Rewrites the file when most of it is obsolete. */
  async #compact({ file, memory }: Opened): Promise<void> {
    const needed = memory.text + LINE * memory.size
    if (file.size < Math.max(this.#compactAt, 3 * needed)) return
    try {
      await file.replace(written(memory, this.#queue))
      // As JSON, tasks may need more room than in memory: it is not compacted in vain.
      this.#compactAt = Math.max(this.#compactBytes, 2 * file.size)
    } catch {
      // The disk may be full. The file is used further, and compacted when it has grown.
      this.#compactAt = file.size + this.#compactBytes
    }
  }
}

/** The tasks in a journal, which another process may be using. */
export function readJournal(path: string): ReadonlyMap<string, ClaimedTask> {
  const tasks = new Map<string, ReadTask>()
  readJournalFile(path, (line) => applyLine(tasks, line))
  return tasks
}

/** How many of the first changes are written together. */
function lengthOfBatch(queue: readonly Pending[]): number {
  let characters = 0
  const end = queue.findIndex(({ change }) => {
    characters += sizeOf(change)
    return characters > BATCH
  })
  return end === -1 ? queue.length : Math.max(end, 1)
}

function sizeOf(change: Change): number {
  const { state } = 'task' in change ? change.task : change.change
  const entries = 'task' in change ? change.task.entries : (change.change.append ?? [])
  return entries.reduce((sum, entry) => sum + entry.length, state.length)
}

/** All tasks as they were before changes that are not written yet. */
function written(memory: MemoryTaskStore, unwritten: readonly Pending[]): (readonly Change[])[] {
  const before = new Map<string, TaskEntry | undefined>()
  for (const each of unwritten) if (!before.has(each.name)) before.set(each.name, each.before)
  const lines: (readonly Change[])[] = []
  for (const entry of memory.entries()) {
    const stored = before.has(entry.name) ? before.get(entry.name) : entry
    if (stored !== undefined) lines.push([{ task: taskOf(stored) }])
  }
  return lines
}

function undo(memory: MemoryTaskStore, failed: readonly Pending[], error: unknown): void {
  for (const { name, before } of failed.toReversed()) memory.restore(name, before)
  for (const { reject } of failed) reject(error)
}

/** A task as it is while the journal is read. */
interface ReadTask extends ClaimedTask {
  readonly entries: string[]
}

function applyLine(tasks: Map<string, ReadTask>, line: unknown): void {
  for (const change of line as readonly Change[]) apply(tasks, change) // written by this class
}

function apply(tasks: Map<string, ReadTask>, each: Change): void {
  if ('task' in each) {
    tasks.delete(each.task.name)
    // A journal may have many that have expired.
    if (each.task.expires > Date.now())
      tasks.set(each.task.name, { ...each.task, entries: [...each.task.entries] })
    return
  }
  const { name, version, change } = each
  const task = tasks.get(name)
  // It has expired, or had, and was not part of a compacted file.
  if (task === undefined || task.version !== version) return
  const { state, runnable, append = [], clear = false } = change
  const entries = clear ? [] : task.entries
  if (!clear) for (const entry of append) entries.push(entry)
  tasks.set(name, { ...task, state, runnable, entries, version: version + 1 })
}
