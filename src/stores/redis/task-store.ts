import type {
  ClaimShares,
  ClaimedTask,
  NewTask,
  StoredTask,
  StoreReport,
  TaskChange,
  TaskStore,
} from '../task-store.js'
import { type Connection, RedisUnavailableError } from './connection.js'
import type { Keys } from './keys.js'
import { asList, asText, asTexts, claimedOf } from './replies.js'
import { type Script, whole } from './script.js'
import type { SettingsCheck } from './settings.js'
import { TaskChanges } from './task-changes.js'
import { CHANGE, CLAIM, CONFIRM, RELEASE, RENEW, RESERVE, UNDO } from './task-scripts.js'
import { unref } from '../../runtime.js'

export interface RedisTaskOptions {
  /** Maximum number of tasks (default 10,000). */
  maxTasks?: number
  /** Maximum bytes of all tasks (default 64 MiB). */
  maxBytes?: number
  /** Maximum number of tasks of one principal (default 1000); callers without authentication count as one. */
  maxTasksPerOwner?: number
  /** Maximum bytes of the tasks of one principal (default 16 MiB). */
  maxBytesPerOwner?: number
}

interface RedisTaskStoreOptions extends RedisTaskOptions {
  /** Milliseconds. */
  lease: number
  settings: SettingsCheck
}

const MIB = 1024 * 1024
/** About how many bytes of tasks are claimed at a time. */
const CLAIMED_BYTES = 8 * MIB
/** Milliseconds until a task is confirmed again whose confirmation has failed; doubled each time up to the slowest. */
const FIRST = 50
const SLOWEST = 1000
/** Maximum names of tasks of which it is unknown whether they were created. Others expire. */
const MAX_UNCONFIRMED = 10_000
const NOT_CONFIRMED = 'Redis has lost the task, or it was not confirmed in time'
const CLAIM_ENDED = 'The claim of the task has ended before its confirmation was known'

interface Listener {
  readonly changed: (name: string) => void
  readonly missed: () => void
}

/**
 * Stores tasks in Redis for any number of processes. A claim lasts as long as the lease of its process, which is renewed
 * for all of its claims at once.
 */
export class RedisTaskStore implements TaskStore {
  readonly shared = true
  readonly #connection: Connection
  readonly #keys: Keys
  readonly #lease: number
  readonly #limits: readonly string[]
  readonly #settings: SettingsCheck
  readonly #changes: TaskChanges
  readonly #listeners = new Set<Listener>()
  readonly #worker = crypto.randomUUID()
  /** Names of the tasks that this process has claimed. */
  readonly #held = new Set<string>()
  /** Names of tasks that may have been created, though Redis has not replied. Nobody knows their ids. */
  readonly #unconfirmed = new Set<string>()
  /** Names of tasks that wait for the reply to their confirmation. */
  readonly #confirming = new Set<string>()
  /** Names that were claimed when the lease was last renewed, but not known to be. */
  #unknown: ReadonlySet<string> = new Set()
  /** How many more times the lease is renewed because claims may be unknown. */
  #renewalsLeft = 0
  /** When the lease ends at the earliest, by the monotonic clock of this process. */
  #until = 0
  #timer: ReturnType<typeof setTimeout> | undefined
  #renewing: Promise<void> | undefined
  #report: StoreReport = () => {}
  #failed = false

  /** `waiting` is a connection of its own, for commands that wait. */
  constructor(
    connection: Connection,
    waiting: Connection,
    keys: Keys,
    options: RedisTaskStoreOptions,
  ) {
    const { maxTasks = 10_000, maxTasksPerOwner = 1000, lease, settings } = options
    const { maxBytes = 64 * MIB, maxBytesPerOwner = 16 * MIB } = options
    const limits = { maxTasks, maxBytes, maxTasksPerOwner, maxBytesPerOwner }
    for (const [option, value] of Object.entries(limits))
      if (!(Number.isFinite(value) && value >= 1))
        throw new TypeError(
          `redis: "tasks.${option}" must be a number of 1 or more, not ${String(value)}`,
        )
    this.#connection = connection
    this.#keys = keys
    this.#lease = lease
    this.#settings = settings
    this.#limits = Object.values(limits).map(String)
    this.#changes = new TaskChanges(connection, waiting, keys)
  }

  open(report: StoreReport = () => {}): void {
    this.#report = report
    this.#connection.open()
    void this.#settings.warn(this.#connection, report)
  }

  close(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    this.#listeners.clear()
    this.#changes.stop()
    this.#connection.close()
  }

  async create(task: NewTask): Promise<boolean> {
    const { name, owner, expires, runnable, claimed, state, entries } = task
    const worker = claimed && runnable ? this.#worker : ''
    const lease = whole(this.#lease)
    // Clocks may differ: it lives as long by that of Redis.
    const ttl = expires - Date.now()
    const until = whole(Math.min(this.#lease, Math.max(ttl, SLOWEST)))
    const stored = [name, owner, until, String(expires), flag(runnable)]
    try {
      const reply = await this.#run(RESERVE, [...stored, ...this.#limits, state, ...entries])
      if (Number(reply) !== 1) return false
    } catch (error) {
      // If it is stored, it is never claimed.
      throw storing(error, false)
    }
    const parameters = [name, whole(ttl), worker, lease, this.#changes.writer]
    this.#confirming.add(name)
    try {
      const sent = await this.#confirm(name, ttl, parameters)
      if (worker === '') return true
      this.#hold([name], sent)
    } finally {
      this.#confirming.delete(name)
    }
    if (await this.holds(name).catch(() => false)) return true
    this.#addUnconfirmed(name)
    throw storing(new Error(CLAIM_ENDED), 'unknown')
  }

  /** Lets a task be claimed; returns when that was sent. If the reply is lost, finds out whether it can be. */
  async #confirm(name: string, ttl: number, parameters: readonly string[]): Promise<number> {
    const begun = performance.now()
    let end = begun + this.#lease
    let isUnknown = false
    for (let wait = FIRST; ; wait = Math.min(2 * wait, SLOWEST)) {
      const sent = performance.now()
      let failure: unknown
      try {
        const reply = Number(await this.#run(CONFIRM, parameters))
        if (reply === 1) return sent
        failure = new Error(reply === 2 ? CLAIM_ENDED : NOT_CONFIRMED)
        // One that was confirmed before is gone only after its time to live: then it may have run.
        isUnknown = reply === 2 || (isUnknown && performance.now() >= begun + ttl)
        end = begun
      } catch (error) {
        failure = error
        isUnknown ||= error instanceof RedisUnavailableError
      }
      if (!isUnknown) throw storing(failure, false)
      if (performance.now() >= end) {
        this.#addUnconfirmed(name)
        throw storing(failure, 'unknown')
      }
      await new Promise((resolve) => setTimeout(resolve, wait))
    }
  }

  async get(name: string): Promise<StoredTask | undefined> {
    const key = `${this.#keys.tasks[0]}${name}`
    const command = ['HMGET', key, 'o', 'e', 'r', 'v', 's']
    const [owner, expires, runnable, version, state] = asTexts(
      await this.#connection.command(command, key),
    )
    if (owner === undefined || state === undefined) return undefined
    return {
      name,
      owner,
      expires: Number(expires),
      runnable: runnable === '1',
      version: Number(version),
      state,
    }
  }

  async change(
    name: string,
    version: number,
    { state, runnable, append = [], clear = false, release = false }: TaskChange,
  ): Promise<'changed' | 'conflict' | 'full'> {
    const outcome = asText(
      await this.#run(CHANGE, [
        name,
        String(version),
        flag(runnable),
        flag(clear),
        flag(release),
        this.#changes.writer,
        ...this.#limits,
        state,
        ...(clear ? [] : append),
      ]),
    )
    if (outcome !== 'changed') return outcome === 'full' ? 'full' : 'conflict'
    if (!runnable || release) this.#held.delete(name)
    for (const { changed } of this.#listeners) changed(name)
    return 'changed'
  }

  async claim(limit: number, shares?: ClaimShares): Promise<readonly ClaimedTask[]> {
    const { anybody = '', most = limit, taken = new Map<string, number>() } = shares ?? {}
    const parameters = [
      this.#worker,
      whole(this.#lease),
      String(limit),
      String(CLAIMED_BYTES),
      anybody,
      String(shares === undefined ? Number.MAX_SAFE_INTEGER : most),
      ...[...taken].flatMap(([owner, count]) => [owner, String(count)]),
    ]
    const sent = performance.now()
    let reply: unknown
    try {
      reply = await this.#run(CLAIM, parameters)
    } catch (error) {
      if (error instanceof RedisUnavailableError) this.#renewalsLeft = 2
      this.#keepRenewing()
      throw error
    }
    const tasks = asList(reply).map(claimedOf)
    if (tasks.length > 0)
      this.#hold(
        tasks.map(({ name }) => name),
        sent,
      )
    return tasks
  }

  /** After the end of its lease, a process has what Redis says. */
  async holds(name: string): Promise<boolean> {
    // A renewal that was sent before the process was stopped may come too late: then it is renewed again.
    while (performance.now() >= this.#until) {
      await this.#renew()
      if (this.#failed)
        throw new RedisUnavailableError(
          'The lease of this process on its tasks could not be renewed',
        )
    }
    return this.#held.has(name)
  }

  async release(): Promise<void> {
    clearTimeout(this.#timer)
    this.#timer = undefined
    await this.#renewing
    await this.#run(RELEASE, [this.#worker])
    this.#held.clear()
  }

  subscribe(changed: (name: string) => void, missed: () => void = () => {}): () => void {
    const listener = { changed, missed }
    this.#listeners.add(listener)
    if (this.#listeners.size === 1)
      this.#changes.start({
        changed: (name) => this.#tell((each) => each.changed(name)),
        missed: () => this.#tell((each) => each.missed()),
        late: () => void this.#reap(),
        failed: (error) => {
          const message = 'Task changes cannot be read from Redis; retrying'
          this.#report({ level: 'error', message, error })
        },
      })
    return () => {
      this.#listeners.delete(listener)
      if (this.#listeners.size === 0) this.#changes.stop()
    }
  }

  /** Learns now what other processes have changed, instead of somewhat later. */
  poll(): void {
    if (this.#listeners.size > 0) this.#changes.poll()
  }

  /** Lets the tasks of a process be claimed whose lease has ended. */
  async #reap(): Promise<void> {
    await this.#renew()
    if (!this.#failed) this.poll()
  }

  #tell(each: (listener: Listener) => void): void {
    for (const listener of this.#listeners) each(listener)
  }

  #run(script: Script, parameters: readonly string[]): Promise<unknown> {
    return this.#connection.run(script, this.#keys.tasks, parameters)
  }

  /** What Redis has claimed by a command that was sent at a time. */
  #hold(names: readonly string[], sent: number): void {
    // If the lease may have ended, other claims may have ended with it: renewing it tells.
    if (this.#held.size === 0 || performance.now() < this.#until)
      this.#until = Math.max(this.#until, sent + this.#lease)
    for (const name of names) this.#held.add(name)
    this.#keepRenewing()
  }

  /** A task that may have been created without anybody knowing its id is deleted when Redis can be reached. */
  #addUnconfirmed(name: string): void {
    if (this.#unconfirmed.size < MAX_UNCONFIRMED) this.#unconfirmed.add(name)
    this.#renewalsLeft = 2
    this.#keepRenewing()
  }

  get #needsLease(): boolean {
    return this.#held.size > 0 || this.#unconfirmed.size > 0 || this.#renewalsLeft > 0
  }

  /** Renews three times per lease, more often while that fails. */
  #keepRenewing(): void {
    if (this.#timer !== undefined) return
    const wait = this.#failed ? Math.min(this.#lease / 6, 1000) : this.#lease / 3
    this.#timer = setTimeout(() => {
      void this.#renew().finally(() => {
        if (this.#timer === undefined) return
        this.#timer = undefined
        if (this.#needsLease) this.#keepRenewing()
      })
    }, wait)
    unref(this.#timer)
  }

  #renew(): Promise<void> {
    this.#renewing ??= this.#renewOnce().finally(() => (this.#renewing = undefined))
    return this.#renewing
  }

  async #renewOnce(): Promise<void> {
    const before = [...this.#held]
    const sent = performance.now()
    try {
      const reply = await this.#run(RENEW, [this.#worker, whole(this.#lease)])
      const held = new Set(asTexts(reply).map((name) => name ?? ''))
      for (const name of before) if (!held.has(name)) this.#lost(name)
      this.#until = sent + this.#lease
      await this.#undo(held)
      this.#failed = false
    } catch (error) {
      if (!this.#failed) {
        const message = 'The lease of this process on its tasks could not be renewed in Redis'
        this.#report({ level: 'error', message, error })
      }
      this.#failed = true
    }
  }

  /** Its task was cancelled, has expired, or has been taken over: the listener finds out. */
  #lost(name: string): void {
    if (this.#held.delete(name)) this.#tell((each) => each.changed(name))
  }

  /** Gives back what was created or claimed by a command whose reply was lost. */
  async #undo(held: ReadonlySet<string>): Promise<void> {
    const created = [...this.#unconfirmed]
    const unknown = [...held].filter(
      (name) => ![this.#held, this.#unconfirmed, this.#confirming].some((each) => each.has(name)),
    )
    // The reply to a claim may still be in transit: a name is given back only if it was unknown at two renewals in a row.
    const claimed = unknown.filter((name) => this.#unknown.has(name))
    this.#unknown = new Set(unknown)
    if (created.length + claimed.length > 0) {
      const parameters = [this.#worker, String(created.length), ...created, ...claimed]
      await this.#run(UNDO, parameters)
    }
    for (const name of created) this.#unconfirmed.delete(name)
    this.#renewalsLeft = Math.max(0, this.#renewalsLeft - 1)
  }
}

function flag(value: boolean): string {
  return value ? '1' : '0'
}

/** Says in the error of `create` what has become of the task. */
function storing(error: unknown, stored: false | 'unknown'): unknown {
  return error instanceof Error ? Object.assign(error, { stored }) : error
}
