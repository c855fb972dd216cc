import type {
  ChangeBus,
  ChangeBusDefinition,
  ChangePort,
  ChangeReceiver,
  ChangedList,
  Changes,
  SharedChange,
} from './change-bus.js'
import { PendingChanges } from './pending-changes.js'
import { unref } from '../runtime.js'

const LISTS: readonly unknown[] = ['tools', 'resources', 'prompts'] satisfies ChangedList[]
/** Milliseconds until changes are published again after a failure; doubled each time up to the maximum. */
const MIN_BACKOFF = 50
const MAX_BACKOFF = 2000
/** Milliseconds in which the last changes are published when the server is no longer served, and in which the bus is closed. */
const CLOSE_TIMEOUT = 1000

type Report = ChangeReceiver['report']

/** Makes a bus for `createServer({ changes })` and `listen(server, { changes })`. */
export function changeBus(definition: ChangeBusDefinition): ChangeBus {
  for (const name of ['publish', 'open', 'close'] as const)
    if (typeof (definition as Partial<ChangeBusDefinition> | undefined)?.[name] !== 'function')
      throw new TypeError(`changeBus: "${name}" must be a function`)
  return new SharedChanges(definition)
}

class SharedChanges implements ChangeBus {
  readonly #definition: ChangeBusDefinition
  #port: ChangePort | undefined
  #sharing: Sharing | undefined
  #users = 0
  /** Until the one before is closed. */
  #closing: Promise<void> | undefined

  constructor(definition: ChangeBusDefinition) {
    this.#definition = definition
  }

  async publish(change: SharedChange): Promise<void> {
    const pending = new PendingChanges()
    pending.add(checked(change))
    // A bus does not pass the changes of a process back to it.
    this.#port?.receive(change)
    await this.#definition.publish(pending.take())
  }

  share(port: ChangePort, report: Report): () => Promise<void> {
    if (this.#port !== undefined && this.#port !== port)
      throw new TypeError(
        '"changes" is used by another server already; make one for each server (with redis(…), each with a prefix of its own)',
      )
    if (this.#users === 0)
      this.#sharing = new Sharing(this.#definition, port, report, this.#closing)
    this.#port = port
    this.#users++
    let used = true
    return async () => {
      if (!used) return
      used = false
      if (--this.#users > 0) return
      this.#port = undefined
      const closing = this.#sharing?.close()
      this.#closing = closing
      await closing
      if (this.#closing === closing) this.#closing = undefined
    }
  }
}

/** The changes of a server while it is served. */
class Sharing {
  readonly #definition: ChangeBusDefinition
  readonly #report: Report
  readonly #before: Promise<void> | undefined
  readonly #stopListening: () => void
  readonly #pending = new PendingChanges()
  /** Until all changes are published. */
  #publishing: Promise<void> | undefined
  #failures = 0
  #closing = false
  /** Ends the wait for the next attempt. */
  #wake = () => {}

  /** Throws what `open` throws. The bus is opened when `before` has resolved. */
  constructor(
    definition: ChangeBusDefinition,
    port: ChangePort,
    report: Report,
    before: Promise<void> | undefined,
  ) {
    this.#definition = definition
    this.#report = report
    this.#before = before
    const changed = (changes: Changes) => {
      if (!this.#closing) receive(port, changes)
    }
    const open = () => (this.#closing ? undefined : definition.open({ report, changed }))
    void this.#logged(
      before === undefined ? open() : before.then(open),
      'The change bus failed to open: changes of other processes are missed',
    )
    this.#stopListening = port.listenLocal((change) => {
      this.#pending.add(change)
      this.#publishing ??= this.#publishAll()
    })
  }

  /** Publishes what is left, as far as that is possible in time. */
  async close(): Promise<void> {
    this.#closing = true
    this.#stopListening()
    this.#wake()
    await this.#inTime(this.#publishing)
    await this.#before
    const close = async () => this.#definition.close()
    await this.#inTime(this.#logged(close(), 'The change bus failed to close'))
  }

  /** Never rejects, even if a function written in JavaScript returns another type than it should. */
  async #logged(returned: unknown, message: string): Promise<void> {
    try {
      await returned
    } catch (error) {
      this.#report({ level: 'error', message, error })
    }
  }

  async #inTime(done: Promise<void> | undefined): Promise<void> {
    await Promise.race([done, this.#wait(CLOSE_TIMEOUT)])
    this.#wake()
  }

  async #publishAll(): Promise<void> {
    // Changes of one turn are merged.
    await Promise.resolve()
    while (!this.#pending.empty) {
      const changes = this.#pending.take()
      try {
        await this.#definition.publish(changes)
        this.#failures = 0
      } catch (error) {
        this.#pending.addAll(changes)
        this.#failed(error)
        if (this.#closing) break
        await this.#wait(backoffOf(this.#failures++))
      }
    }
    this.#publishing = undefined
  }

  #failed(error: unknown): void {
    // Once, until it succeeds again.
    if (this.#failures > 0 && !this.#closing) return
    const message = this.#closing
      ? 'The last changes could not be published: clients of other processes are not notified of them'
      : 'Changes could not be published to other processes; they are published when that is possible again'
    this.#report({ level: 'error', message, error })
  }

  #wait(milliseconds: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = unref(setTimeout(resolve, milliseconds))
      this.#wake = () => {
        clearTimeout(timer)
        resolve()
      }
    })
  }
}

/** The time until another attempt; not the same for all processes. */
function backoffOf(failures: number): number {
  return Math.min(MAX_BACKOFF, MIN_BACKOFF * 2 ** failures) * (0.5 + Math.random() / 2)
}

function receive(port: ChangePort, changes: unknown): void {
  if (!isChanges(changes)) return port.receive({ everything: true })
  for (const list of changes.lists) port.receive({ list })
  for (const uri of changes.uris) port.receive({ uri })
}

/** Whether changes are valid; another version of this package may have written them. */
function isChanges(changes: unknown): changes is Exclude<Changes, 'everything'> {
  if (typeof changes !== 'object' || changes === null) return false
  const { lists, uris } = changes as Record<string, unknown> // any members
  return (
    Array.isArray(lists) &&
    lists.every((list) => LISTS.includes(list)) &&
    Array.isArray(uris) &&
    uris.every((uri) => typeof uri === 'string')
  )
}

function checked(change: SharedChange): SharedChange {
  const { list, uri } = change as { list?: unknown; uri?: unknown } // may be written in JavaScript
  if (LISTS.includes(list) || typeof uri === 'string') return change
  throw new TypeError(
    'publish: pass { list: "tools" }, { list: "resources" }, { list: "prompts" } or { uri }',
  )
}
