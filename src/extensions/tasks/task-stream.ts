import { ignore } from '../../jsonrpc/hook.js'
import type { ExtensionStream } from '../../server/extensions.js'
import { detailedTask, isTerminal } from './task-record.js'
import type { TaskRecords } from './task-records.js'

type Notify = (method: string, params: object) => void

/** Notifies a client of each change of some tasks, and first of their current state. */
export class TaskStream implements ExtensionStream {
  readonly acknowledged: readonly string[]
  /** The ids of the tasks, by the names under which they are stored. */
  readonly #ids: Map<string, string>
  readonly #records: TaskRecords
  /** Tasks that have changed since they were last sent; several changes are merged. */
  readonly #changed = new Set<string>()
  #notify: Notify = ignore
  #unsubscribe: () => void = ignore
  #sending = false

  constructor(ids: Map<string, string>, records: TaskRecords) {
    this.#ids = ids
    this.#records = records
    this.acknowledged = [...ids.values()]
  }

  start(notify: Notify): void {
    this.#notify = notify
    const sendAll = () => {
      for (const name of this.#ids.keys()) this.#send(name)
    }
    this.#unsubscribe = this.#records.subscribe((name) => this.#send(name), sendAll)
    sendAll()
  }

  stop(): void {
    this.#unsubscribe()
    this.#ids.clear()
    this.#changed.clear()
  }

  #send(name: string): void {
    if (!this.#ids.has(name)) return
    this.#changed.add(name)
    if (this.#sending) return
    this.#sending = true
    // If the store fails, the client polls.
    this.#sendAll().catch(ignore)
  }

  async #sendAll(): Promise<void> {
    try {
      for (const name of this.#changed) {
        this.#changed.delete(name)
        const state = await this.#records.get(name)
        const id = this.#ids.get(name)
        // It may have ended while the state was read.
        if (id === undefined) continue
        if (state === undefined || isTerminal(state)) this.#ids.delete(name)
        if (state !== undefined && state.unreadable !== true)
          this.#notify('notifications/tasks', detailedTask(id, state))
      }
    } finally {
      this.#sending = false
    }
  }
}
