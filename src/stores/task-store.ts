/** A task as it is stored. The store does not read `state`. */
export interface StoredTask {
  /** A digest of the task id; it gives no access to the task. */
  readonly name: string
  /** Whose limits the task counts against. */
  readonly owner: string
  /** When it is deleted, in milliseconds since 1970. */
  readonly expires: number
  /** Whether it is to be run: then `claim` returns it to one process. */
  readonly runnable: boolean
  /** 1, and one more with each change. Claims do not change it. */
  readonly version: number
  readonly state: string
}

/** A task to run, with everything that was appended to it. */
export interface ClaimedTask extends StoredTask {
  /** In the order in which they were appended. */
  readonly entries: readonly string[]
  /** Milliseconds until it is deleted. Without it, `expires` is compared with the clock of this process, which may differ. */
  readonly timeLeft?: number
}

export interface NewTask extends Omit<StoredTask, 'version'> {
  readonly entries: readonly string[]
  /** Whether this process runs it already: it is stored with a claim of this process. */
  readonly claimed: boolean
}

export interface TaskChange {
  readonly state: string
  /** A task that is not to be run is no longer claimed. */
  readonly runnable: boolean
  readonly append?: readonly string[]
  /** Whether its entries are deleted: it has ended and will not be run again. */
  readonly clear?: boolean
  /** Whether its claim ends, so that it can be claimed again. */
  readonly release?: boolean
}

/** How many tasks of one owner may be claimed, so that nobody takes all of the room. */
export interface ClaimShares {
  /** The owner whose tasks are claimed however many they are. */
  readonly anybody: string
  /** The most that one owner may have, with those in `taken`. */
  readonly most: number
  readonly taken: ReadonlyMap<string, number>
}

/** What an operator wants done with a task. */
export interface TaskCommand {
  readonly command: 'cancel' | 'retry'
  readonly name: string
}

/** Writes to the log of the process. */
export type StoreReport = (entry: {
  level: 'info' | 'warning' | 'error'
  message: string
  error?: unknown
}) => void

/**
 * Stores tasks. A method may return a value or a promise. Every method is atomic: it takes effect as a whole or not at
 * all, and methods that run at the same time, in this process or another, take effect one after the other.
 *
 * What a method has stored survives whatever the store is meant to survive before the method returns, and every later
 * `get`, in any process, sees it. A method that throws or rejects may have taken effect or not: the caller reads the task
 * and tries again. A method that does not return holds up its tasks, so a store over a network needs a timeout.
 *
 * A claim is the right of one process to run a task. It ends with a change that says so, with `release`, and when the
 * process ends, however it ends; a store that cannot see that lets claims expire that are not renewed. A process that has
 * lost a claim without noticing is harmless: whoever claims the task next changes it before running it, so the version
 * refuses changes that were based on an older state.
 */
export interface TaskStore {
  /** Whether other processes use it at the same time, and can run the tasks of this one (default false). */
  readonly shared?: boolean
  /**
   * Called before all other methods when a server is first served, and again when it is served after `close`. Throws or
   * rejects if this process cannot use the store, for example because it is for one process and another one uses it: then
   * there are no tasks, and it is called again later.
   */
  open?(report?: StoreReport): void | Promise<void>
  /** Called after `release` when the server is no longer served: closes connections and files. */
  close?(): void | Promise<void>
  /**
   * Stores a new task. Returns false, and stores nothing, if a limit is reached or the name is in use. After an error the
   * caller reads the task, and tells its client that it was not stored if it is not there: then it must not be claimed
   * later. An error with `stored: false` says so without reading; with `stored: 'unknown'`, that nobody can know.
   */
  create(task: NewTask): boolean | Promise<boolean>
  /** The task; undefined if it is unknown or has expired. */
  get(name: string): StoredTask | undefined | Promise<StoredTask | undefined>
  /**
   * Changes a task (compare-and-set). `conflict`, and nothing is changed: its version is another one, or it is unknown or
   * has expired. `full`, and nothing is changed: the change needs more room than the limits leave. A change that makes a
   * task smaller is never refused so, nor one whose state and entries have less than 2000 bytes: a task can always end.
   */
  change(
    name: string,
    version: number,
    change: TaskChange,
  ): 'changed' | 'conflict' | 'full' | Promise<'changed' | 'conflict' | 'full'>
  /**
   * Claims at most `limit` tasks that are to be run, have not expired and are not claimed. The one that has waited longest
   * comes first: since it was created, became runnable or lost its claim. Tasks of owners that have their share are
   * passed over, and keep their places; a store that ignores `shares` lets one principal take all the room of a process.
   */
  claim(
    limit: number,
    shares?: ClaimShares,
  ): readonly ClaimedTask[] | Promise<readonly ClaimedTask[]>
  /**
   * Whether this process still has its claim of a task, so that no other one can have run it meanwhile. It is called before
   * each step: a store whose claims expire answers from the time by a monotonic clock, and asks further only if that has
   * passed, for example because the process was stopped. Without this method, claims end with their process only.
   */
  holds?(name: string): boolean | Promise<boolean>
  /** Ends the claims of this process. */
  release(): void | Promise<void>
  /**
   * Calls a function with the name of each task that was changed, or has become claimable, by any process. It may be
   * called late, more than once, and while the change is being stored: the listener reads the task. A store that may have
   * missed what others have changed calls `missed`: any task may have changed. Returns a function that ends this.
   */
  subscribe(changed: (name: string) => void, missed?: () => void): () => void
  /** Calls a function with each command of an operator, if the store has a way to send them. Returns a function that ends this. */
  receiveCommands?(run: (command: TaskCommand) => void): () => void
}
