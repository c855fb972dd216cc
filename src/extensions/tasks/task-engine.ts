import { withTimeout } from '../../jsonrpc/deadline.js'
import { ignore, markHandled } from '../../jsonrpc/hook.js'
import type { LogEntry } from '../../jsonrpc/log-entry.js'
import { isThenable } from '../../jsonrpc/message.js'
import { tracedReport } from '../../protocol/telemetry.js'
import type { Cipher } from '../../server/cipher.js'
import { checkServer } from '../../server/context.js'
import type { Serving } from '../../server/extensions.js'
import type { Server } from '../../server/server.js'
import type { TaskCommand } from '../../stores/task-store.js'
import { TaskCalls } from './task-calls.js'
import { TaskCodec } from './task-codec.js'
import { TaskClaims } from './task-claims.js'
import { type TaskRecords, endOf } from './task-records.js'
import { TaskRequests } from './task-requests.js'
import { TaskRunner } from './task-runner.js'

/** Milliseconds after which a store that could not be opened is opened again, when it is needed. */
const AGAIN = 1000
/** Maximum fraction of the time that is spent on failed attempts to open it. */
const SHARE = 1 / 20

/** Milliseconds for a store to give up its claims, and to close. */
const CLOSE = 5000

interface EngineOptions {
  readonly concurrency: number
  readonly maxTaskBytes: number
  readonly workers: boolean
  readonly seal: boolean
}

interface Running {
  readonly runner: TaskRunner
  readonly claims: TaskClaims
  readonly calls: TaskCalls
  readonly requests: TaskRequests
  readonly ignoreCommands: () => void
}

/** Runs the tasks of a server while it is served and its store can be used. */
export class TaskEngine {
  readonly records: TaskRecords
  readonly #options: EngineOptions
  #serving: Serving = { remote: false }
  #server: Server | undefined
  #report: (entry: LogEntry) => void = ignore
  #running: Running | undefined
  /** Why the store could not be opened. */
  problem: unknown
  #openAgain = 0
  /** Resolves when what ran before has given up its claims. */
  #stopped: Promise<unknown> = Promise.resolve()

  constructor(records: TaskRecords, options: EngineOptions) {
    this.records = records
    this.#options = options
  }

  get running(): Running {
    if (this.#running !== undefined) return this.#running
    throw new Error('The tasks of this server are not being served')
  }

  /** Starts with the server. If the store cannot be used, a server that is served over HTTP fails; others start without tasks. */
  start(server: Server, report: (entry: LogEntry) => void, serving: Serving): void {
    if (this.#server !== undefined && this.#server !== server)
      throw new TypeError('tasks() belongs to another server; call tasks() once for each server')
    if (serving.worker !== undefined && this.records.store.shared !== true)
      throw new TypeError(
        'Workers need a store of tasks that several processes share, such as that of redis()',
      )
    this.#server = server
    if (this.#options.seal) this.records.codec = new TaskCodec(cipherOf(server))
    this.#serving = serving
    this.#report = report
    this.problem = undefined
    try {
      this.#open(server)
    } catch (error) {
      if (serving.remote) throw error
      this.#failed(error)
    }
  }

  /** Whether there are tasks. If the store could not be opened, it is tried again: a process that used it may have ended. */
  available(): boolean {
    const server = this.#server
    if (this.problem === undefined || server === undefined) return true
    const now = performance.now()
    if (now < this.#openAgain) return false
    try {
      this.#open(server)
    } catch (error) {
      const wait = Math.max(AGAIN, (performance.now() - now) / SHARE)
      this.#openAgain = performance.now() + wait
      this.problem = error
      return false
    }
    this.problem = undefined
    const message = 'The task store was opened; tasks are enabled'
    this.#report({ level: 'info', message })
    // Tools that need tasks are listed from now on.
    server.tools.changed()
    return true
  }

  async stop(): Promise<void> {
    const stopping = this.#running
    this.#running = undefined
    this.problem = undefined
    if (stopping === undefined) return
    stopping.ignoreCommands()
    const stopped = this.#stop(stopping)
    // Also if the store fails: then the next start finds out by itself.
    this.#stopped = stopped.catch(ignore)
    await stopped
  }

  async #stop({ runner, claims }: Running): Promise<void> {
    const { store } = this.records
    const { drain = 0 } = this.#serving.worker ?? {}
    // A store that fails, or does not answer, must not keep the process from ending.
    try {
      if (drain > 0) await runner.drain(drain)
      await runner.stop(() => claims.stop())
      await withTimeout(CLOSE, Promise.resolve(store.release()))
    } finally {
      // The server may be served again already.
      if (this.#running === undefined) await withTimeout(CLOSE, Promise.resolve(store.close?.()))
    }
  }

  #open(server: Server): void {
    const { store } = this.records
    const opened: unknown = store.open?.(this.#report)
    const opening = isThenable(opened) ? Promise.resolve(opened) : Promise.resolve()
    const internal = checkServer(server)
    const { telemetry } = internal
    const { worker } = this.#serving
    const { concurrency, maxTaskBytes, workers } = this.#options
    const options = {
      server: internal,
      records: this.records,
      concurrency: worker?.concurrency ?? concurrency,
      maxTaskBytes,
      workers: workers || worker !== undefined,
      ready: markHandled(Promise.all([this.#stopped, opening]).then(ignore)),
      report: telemetry === undefined ? this.#report : tracedReport(telemetry, this.#report),
    }
    const runner = new TaskRunner(options)
    const claims = new TaskClaims(runner, options)
    const running = {
      runner,
      claims,
      calls: new TaskCalls(runner, claims, options),
      requests: new TaskRequests(runner, claims, options),
      ignoreCommands: this.#receiveCommands(runner),
    }
    this.#running = running
    opening.catch((error: unknown) => {
      if (this.#running !== running) return
      running.ignoreCommands()
      this.#running = undefined
      void markHandled(runner.stop(() => claims.stop()))
      this.#failed(error)
    })
  }

  #receiveCommands(runner: TaskRunner): () => void {
    const { store } = this.records
    if (store.receiveCommands === undefined) return ignore
    try {
      const end = store.receiveCommands((command) => void this.#runCommand(runner, command))
      return endOf(end, 'receiveCommands')
    } catch (error) {
      const message = 'Commands of operators cannot be received'
      this.#report({ level: 'error', message, error })
      return ignore
    }
  }

  #failed(error: unknown): void {
    this.problem = error ?? new Error('The store of tasks cannot be used')
    this.#openAgain = performance.now() + AGAIN
    this.#report({
      level: 'error',
      message:
        'Tasks are disabled: the task store could not be opened. Opening it is retried when tasks are used',
      error,
    })
  }

  /** Runs a command of an operator. */
  async #runCommand(runner: TaskRunner, { command, name }: TaskCommand): Promise<void> {
    try {
      if (command === 'cancel') await runner.cancel(name, 'Cancelled by the operator of the server')
      else await runner.restart(name, 'The operator of the server has started the task again')
    } catch (error) {
      this.#report({ level: 'error', message: `A task could not be changed: ${command}`, error })
    }
  }
}

/** Encrypts the tasks of a server. With a random key, nobody could decrypt them after a restart. */
function cipherOf(server: Server): Cipher {
  const { cipher } = checkServer(server)
  if (cipher.isLasting) return cipher
  throw new TypeError(
    'tasks: "seal" needs "state: { keys: [ … ] }" of createServer, secrets that all processes share',
  )
}
