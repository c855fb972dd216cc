import type { Connection } from './connection.js'
import type { Keys } from './keys.js'
import { asList, asPairs, asText } from './replies.js'
import { READ_CHANGES } from './task-scripts.js'
import { unref } from '../../runtime.js'

/** Maximum milliseconds between two polls of the log of changes; while Redis cannot be reached, they double up to the slowest. */
const INTERVAL = 250
const SLOWEST = 5000
/** Minimum milliseconds between two polls: what is written meanwhile is read at once. */
const PAUSE = 20
/** Maximum milliseconds for the reply of a command that waits for changes, beyond the time that it waits. */
const WAIT_TIMEOUT = 2000
/** Maximum changes that are read at a time. */
const COUNT = 1000

export interface TaskChangesListener {
  /** Another process has changed a task, or it can be claimed. */
  changed(name: string): void
  /** Any task may have changed. */
  missed(): void
  /** The lease of a process has ended. */
  late(): void
  /** Nothing can be learned at present. Called once, until something can be again. */
  failed(error: unknown): void
}

/** Learns what other processes change. */
export class TaskChanges {
  readonly #connection: Connection
  readonly #waiting: Connection
  readonly #keys: Keys
  /** The name of this process in the log: its own changes are not reported. */
  readonly writer = crypto.randomUUID()
  #listener: TaskChangesListener | undefined
  #timer: ReturnType<typeof setTimeout> | undefined
  #failures = 0
  #isPolling = false
  #isWaiting = false
  /** Whether to poll again, since something may have changed after the last poll. */
  #again = false
  /** The last change that was read: its id in the log, and its number. Undefined at the start. */
  #last: { readonly id: string; readonly number: number } | undefined

  /** `waiting` is a connection of its own: commands would wait while it does. */
  constructor(connection: Connection, waiting: Connection, keys: Keys) {
    this.#connection = connection
    this.#waiting = waiting
    this.#keys = keys
  }

  /** Polls for changes from now on. */
  start(listener: TaskChangesListener): void {
    this.#listener = listener
    this.#last = undefined
    this.#waiting.open()
    this.poll()
  }

  stop(): void {
    this.#listener = undefined
    clearTimeout(this.#timer)
    this.#waiting.close()
  }

  /** Polls now: something may have changed. */
  poll(): void {
    clearTimeout(this.#timer)
    this.#again = true
    if (!this.#isPolling) void this.#pollRepeatedly()
  }

  async #pollRepeatedly(): Promise<void> {
    this.#isPolling = true
    while (this.#again) {
      this.#again = false
      await this.#pollOnce()
    }
    this.#isPolling = false
    if (this.#failures === 0) this.#later(PAUSE, () => void this.#wait())
    else this.#later(Math.min(SLOWEST, INTERVAL * 2 ** this.#failures), () => this.poll())
  }

  /** Polls again when something is written, or after a while: that a lease has ended is not written. */
  async #wait(): Promise<void> {
    if (this.#isWaiting) return
    this.#isWaiting = true
    const log = this.#keys.taskLog
    const block = ['COUNT', '1', 'BLOCK', String(INTERVAL)]
    const command = ['XREAD', ...block, 'STREAMS', log, this.#last?.id ?? '$']
    const waited = await this.#waiting.command(command, log, INTERVAL + WAIT_TIMEOUT).then(
      () => true,
      () => false,
    )
    this.#isWaiting = false
    // Polling shows whether Redis can be reached.
    this.#later(waited ? 0 : INTERVAL, () => this.poll())
  }

  #later(milliseconds: number, run: () => void): void {
    if (this.#listener === undefined) return
    clearTimeout(this.#timer)
    this.#timer = unref(setTimeout(run, milliseconds))
  }

  async #pollOnce(): Promise<void> {
    try {
      for (let more = true; more;) more = await this.#read()
      this.#failures = 0
    } catch (error) {
      // What is missed meanwhile is found by its number.
      if (this.#failures === 0) this.#listener?.failed(error)
      this.#failures = Math.min(this.#failures + 1, 10)
    }
  }

  /** Reads the next changes. Returns whether there may be more. */
  async #read(): Promise<boolean> {
    const last = this.#last
    const parameters = [last?.id ?? '', String(COUNT)]
    const reply = asList(await this.#connection.run(READ_CHANGES, this.#keys.tasks, parameters))
    const listener = this.#listener
    if (listener === undefined) return false
    // It was started again meanwhile.
    if (this.#last !== last) return true
    const entries = asList(reply[1])
    if (last === undefined) {
      this.#last = { id: '0', number: 0, ...entries.map(changeOf)[0] }
      // Something may have changed between what the listener has read and the start.
      listener.missed()
    } else this.#tell(entries.map(changeOf), last.number, listener)
    if (Number(reply[0]) > 0) listener.late()
    return last !== undefined && entries.length >= COUNT
  }

  #tell(changes: readonly Change[], before: number, listener: TaskChangesListener): void {
    let number = before
    let missed = false
    for (const change of changes) {
      if (change.number !== ++number) missed = true
      number = change.number
      this.#last = change
    }
    // The log was cut, or Redis has lost it.
    if (missed) return listener.missed()
    const names = changes.filter(({ writer }) => writer !== this.writer).map(({ name }) => name)
    for (const name of new Set(names)) listener.changed(name)
  }
}

interface Change {
  readonly id: string
  readonly number: number
  readonly name: string
  readonly writer: string
}

function changeOf(entry: unknown): Change {
  const [id, fields] = asList(entry)
  const pairs = asPairs(fields)
  const text = (field: string) => asText(pairs.get(field)) ?? ''
  return {
    id: asText(id) ?? '0',
    number: Number(text('n')),
    name: text('t'),
    writer: text('w'),
  }
}
