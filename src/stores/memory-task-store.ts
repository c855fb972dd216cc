import { stringMemory } from './bytes.js'
import type {
  ClaimShares,
  ClaimedTask,
  NewTask,
  StoredTask,
  TaskChange,
  TaskStore,
} from './task-store.js'

export interface MemoryTaskStoreOptions {
  /** Maximum number of tasks (default 10,000). */
  maxTasks?: number
  /** Maximum bytes of all tasks (default 64 MiB). */
  maxBytes?: number
  /** Maximum number of tasks of one principal (default 1000); callers without authentication count as one. */
  maxTasksPerOwner?: number
  /** Maximum bytes of the tasks of one principal (default 16 MiB). */
  maxBytesPerOwner?: number
}

/** A task in memory. Only `claimed` changes. */
export interface TaskEntry extends StoredTask {
  readonly entries: Entries
  claimed: boolean
  /** What its texts have, and what it is charged. */
  readonly text: number
  readonly bytes: number
  /** When it is deleted, by the clock of `performance.now`: the date may be set. */
  readonly deadline: number
}

/** The entries of a task at one version. Those of later versions share them: appending costs what is appended. */
class Entries {
  readonly #shared: string[]
  readonly #count: number
  readonly bytes: number

  constructor(shared: string[], bytes: number) {
    this.#shared = shared
    this.#count = shared.length
    this.bytes = bytes
  }

  static of(texts: readonly string[]): Entries {
    return new Entries([], 0).with(texts)
  }

  with(texts: readonly string[]): Entries {
    // Another version may have appended to them, and have been undone.
    const shared = this.#shared.length === this.#count ? this.#shared : [...this.texts]
    let { bytes } = this
    for (const text of texts) {
      shared.push(text)
      bytes += ENTRY + stringMemory(text)
    }
    return new Entries(shared, bytes)
  }

  get texts(): readonly string[] {
    return this.#shared.slice(0, this.#count)
  }
}

/** The bytes that every task is charged at least, so that a small change always fits. */
const MINIMUM = 4096
/** Approximate memory of a task and of an entry beside their text. */
const OVERHEAD = 500
const ENTRY = 32

/** How often expired tasks are looked for, in milliseconds. */
const SWEEP = 60_000

/** Stores tasks in this process: they end with it. */
export class MemoryTaskStore implements TaskStore {
  readonly #options: Required<MemoryTaskStoreOptions>
  readonly #tasks = new Map<string, TaskEntry>()
  /** Names of tasks that are to be run and not claimed. */
  readonly #due = new Set<string>()
  readonly #owners = new Map<string, { tasks: number; bytes: number }>()
  readonly #listeners = new Set<(name: string) => void>()
  #bytes = 0
  #text = 0
  #swept = 0
  /** No task expires before this time. */
  #earliest = Number.POSITIVE_INFINITY

  constructor({
    maxTasks = 10_000,
    maxBytes = 64 * 1024 * 1024,
    maxTasksPerOwner = 1000,
    maxBytesPerOwner = 16 * 1024 * 1024,
  }: MemoryTaskStoreOptions = {}) {
    this.#options = { maxTasks, maxBytes, maxTasksPerOwner, maxBytesPerOwner }
    for (const [option, value] of Object.entries(this.#options))
      if (!(typeof value === 'number' && value >= 1))
        throw new TypeError(`MemoryTaskStore: "${option}" must be a number above 0`)
  }

  /** Number of stored tasks, with those that have expired but are not deleted yet. */
  get size(): number {
    return this.#tasks.size
  }

  /** Bytes that all tasks are charged. */
  get bytes(): number {
    return this.#bytes
  }

  /** Bytes of the texts of all tasks. */
  get text(): number {
    return this.#text
  }

  create({ claimed, ...given }: NewTask): boolean {
    const task = { ...given, entries: Entries.of(given.entries) }
    const sizes = sizesOf(task)
    if (performance.now() - this.#swept > SWEEP) this.#sweep()
    const isNew = this.#find(task.name) === undefined
    if (!isNew || !this.#makeRoom(task.owner, sizes.bytes, 1)) return false
    const deadline = deadlineOf(task)
    this.#put({ ...task, version: 1, claimed: claimed && task.runnable, deadline, ...sizes })
    return true
  }

  get(name: string): StoredTask | undefined {
    const found = this.#find(name)
    if (found === undefined) return undefined
    const { owner, expires, runnable, version, state } = found
    return { name, owner, expires, runnable, version, state }
  }

  change(
    name: string,
    version: number,
    { state, runnable, append = [], clear = false, release = false }: TaskChange,
  ): 'changed' | 'conflict' | 'full' {
    const before = this.#find(name)
    if (before === undefined || before.version !== version) return 'conflict'
    const entries = clear ? Entries.of([]) : before.entries.with(append)
    const changed = { ...before, state, runnable, entries, version: version + 1 }
    const { text, bytes } = sizesOf(changed)
    const growth = bytes - before.bytes
    const fits = growth <= 0 || this.#makeRoom(before.owner, growth, 0)
    // It may have expired since, and have been deleted to make room.
    if (this.#tasks.get(name) !== before) return 'conflict'
    if (!fits) return 'full'
    const claimed = before.claimed && runnable && !release
    this.#tasks.set(name, { ...changed, claimed, text, bytes })
    this.#text += text - before.text
    // One that is due already keeps its place.
    if (runnable && !claimed) this.#due.add(name)
    else this.#due.delete(name)
    this.#charge(before.owner, growth, 0)
    for (const listener of this.#listeners) listener(name)
    return 'changed'
  }

  claim(limit: number, shares?: ClaimShares): readonly ClaimedTask[] {
    const claimed: ClaimedTask[] = []
    const taken = new Map(shares?.taken)
    for (const name of this.#due) {
      if (claimed.length >= limit) break
      const found = this.#find(name)
      if (found === undefined) continue
      const { owner } = found
      const own = taken.get(owner) ?? 0
      if (shares !== undefined && owner !== shares.anybody && own >= shares.most) continue
      taken.set(owner, own + 1)
      this.#due.delete(name)
      found.claimed = true
      claimed.push({ ...taskOf(found), timeLeft: found.deadline - performance.now() })
    }
    return claimed
  }

  release(): void {
    for (const task of this.#tasks.values()) {
      if (!task.claimed) continue
      task.claimed = false
      this.#due.add(task.name)
    }
  }

  /** All tasks that have not expired; for stores that keep a copy elsewhere. */
  *entries(): Generator<TaskEntry> {
    for (const name of this.#tasks.keys()) {
      const found = this.#find(name)
      if (found !== undefined) yield found
    }
  }

  entry(name: string): TaskEntry | undefined {
    return this.#find(name)
  }

  /** Puts a task back as it was, whatever the limits are. */
  restore(name: string, before: TaskEntry | undefined): void {
    this.#remove(name)
    if (before !== undefined) this.#put(before)
  }

  /** Adds a task that was stored elsewhere, whatever the limits are. */
  load(stored: ClaimedTask): void {
    const task = { ...stored, entries: Entries.of(stored.entries) }
    this.#put({ ...task, claimed: false, deadline: deadlineOf(task), ...sizesOf(task) })
  }

  subscribe(changed: (name: string) => void): () => void {
    this.#listeners.add(changed)
    return () => void this.#listeners.delete(changed)
  }

  /** Whether there is room, if need be without the tasks that have expired. */
  #makeRoom(owner: string, bytes: number, tasks: number): boolean {
    if (this.#fits(owner, bytes, tasks)) return true
    if (performance.now() < this.#earliest) return false
    this.#sweep()
    return this.#fits(owner, bytes, tasks)
  }

  #fits(owner: string, bytes: number, tasks: number): boolean {
    const { maxTasks, maxBytes, maxTasksPerOwner, maxBytesPerOwner } = this.#options
    const own = this.#owners.get(owner) ?? { tasks: 0, bytes: 0 }
    return (
      this.#tasks.size + tasks <= maxTasks &&
      this.#bytes + bytes <= maxBytes &&
      own.tasks + tasks <= maxTasksPerOwner &&
      own.bytes + bytes <= maxBytesPerOwner
    )
  }

  #find(name: string): TaskEntry | undefined {
    const found = this.#tasks.get(name)
    if (found === undefined || found.deadline > performance.now()) return found
    this.#remove(name)
    return undefined
  }

  #put(task: TaskEntry): void {
    this.#tasks.set(task.name, task)
    this.#text += task.text
    this.#earliest = Math.min(this.#earliest, task.deadline)
    if (task.runnable && !task.claimed) this.#due.add(task.name)
    this.#charge(task.owner, task.bytes, 1)
  }

  #remove(name: string): void {
    const task = this.#tasks.get(name)
    if (task === undefined) return
    this.#tasks.delete(name)
    this.#due.delete(name)
    this.#text -= task.text
    this.#charge(task.owner, -task.bytes, -1)
  }

  #charge(owner: string, bytes: number, tasks: number): void {
    const own = this.#owners.get(owner) ?? { tasks: 0, bytes: 0 }
    own.tasks += tasks
    own.bytes += bytes
    this.#bytes += bytes
    if (own.tasks === 0) this.#owners.delete(owner)
    else this.#owners.set(owner, own)
  }

  #sweep(): void {
    this.#swept = performance.now()
    this.#earliest = Number.POSITIVE_INFINITY
    for (const name of this.#tasks.keys()) {
      const { deadline = this.#earliest } = this.#find(name) ?? {}
      this.#earliest = Math.min(this.#earliest, deadline)
    }
  }
}

/** A task as others see it. */
export function taskOf(entry: TaskEntry): ClaimedTask {
  const { name, owner, expires, runnable, version, state, entries } = entry
  return { name, owner, expires, runnable, version, state, entries: entries.texts }
}

/** `expires` is by the date of now. */
function deadlineOf({ expires }: Pick<StoredTask, 'expires'>): number {
  return performance.now() + expires - Date.now()
}

function sizesOf({
  name,
  owner,
  state,
  entries,
}: Pick<TaskEntry, 'name' | 'owner' | 'state' | 'entries'>): Pick<TaskEntry, 'text' | 'bytes'> {
  const text = stringMemory(name) + stringMemory(owner) + stringMemory(state) + entries.bytes
  return { text, bytes: Math.max(OVERHEAD + text, MINIMUM) }
}
