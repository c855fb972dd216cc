import { estimateMemory } from '../../jsonrpc/budget.js'
import type { HttpRequest } from '../../jsonrpc/channel.js'
import { RpcError, abortError } from '../../jsonrpc/errors.js'
import { ignore } from '../../jsonrpc/hook.js'
import type { LogEntry } from '../../jsonrpc/log-entry.js'
import type { Id, Params } from '../../jsonrpc/message.js'
import { truncate } from '../../jsonrpc/truncate.js'
import type { ProgressParams } from '../../protocol/model.js'
import type { Revision } from '../../protocol/revisions/index.js'
import type { Activity, Carrier, Observed, Observer } from '../../protocol/telemetry.js'
import { AskByResult, type Suspension } from '../../server/asking/ask-by-result.js'
import type { Asking } from '../../server/ask.js'
import type { AskingCall, Call, CallEnvironment, Caller } from '../../server/call.js'
import { logEntryOf } from '../../server/log.js'
import type { LogMessage } from '../../server/registry.js'
import { ownerOf } from './task-id.js'
import type { Answers, TaskEntry } from './task-record.js'
import type { Recorded } from '../../server/asking/steps.js'

/** The shortest time between two status messages, in milliseconds. */
const STATUS_INTERVAL = 1000
const MAX_STATUS = 1000

/** Bytes of a run itself, at least. */
const RUN = 6144

/** What a run writes to its task: entries are JSON. Each throws if the task has ended meanwhile, or has no room. */
export interface TaskWriter {
  append(entries: readonly string[], signal: AbortSignal): Promise<void>
  park(
    questions: Suspension['questions'],
    entries: readonly string[],
    signal: AbortSignal,
  ): Promise<void>
  status(message: string): Promise<void>
  /** Whether no other process can have begun to run the task. */
  held(signal: AbortSignal): Promise<boolean>
}

export interface TaskRunOptions {
  readonly id: Id
  readonly tool: string
  readonly key: string
  readonly attempt: number
  readonly client: Caller
  readonly revision: Revision
  /** The trace context of the call that the task was created by. */
  readonly trace: Carrier | undefined
  readonly telemetry: Observer | undefined
  readonly arguments: unknown
  readonly meta: Readonly<Record<string, unknown>>
  /** Maximum bytes of a step. */
  readonly maxBytes: number
  readonly steps: Readonly<Record<string, Recorded>>
  readonly answers: Answers
  report(entry: LogEntry): void
}

/**
 * One run of a tool's handler: for a live request, which it may outlive as a task, or for a task alone. Until it is
 * handed over to a task, everything goes to the request.
 */
export class TaskRun implements CallEnvironment {
  readonly id: Id
  readonly method = 'tools/call'
  readonly params: Params
  readonly client: Caller
  /** Whose share of the slots it takes. */
  readonly owner: string
  readonly key: string
  readonly attempt: number
  readonly revision: Revision
  readonly #options: TaskRunOptions
  readonly #controller = new AbortController()
  /** The request, until the run is handed over. */
  #live: { readonly call: Call; readonly asking: AskByResult } | undefined
  #asking: AskByResult | undefined
  /** Resolves with the task when the hand-over has ended; undefined if there is no task. */
  #handing: Promise<TaskWriter | undefined> = Promise.resolve(undefined)
  /** The steps that are stored with the task. */
  readonly #stored: Set<string>
  /** Resolves when the steps that are being stored are stored. */
  #appends: Promise<unknown> = Promise.resolve()
  #status: string | undefined
  #statusTimer: ReturnType<typeof setTimeout> | undefined
  #statusAt = Number.NEGATIVE_INFINITY
  #expiry: ReturnType<typeof setTimeout> | undefined
  #ended = false
  /** About how many bytes it keeps in memory. */
  bytes = RUN
  /** Called when `bytes` has changed. */
  onHeld: () => void = ignore
  /** Called when it no longer has its task, because it was aborted or has parked it; its handler may still run. */
  onDetached: () => void = ignore
  /** Whether it has parked its task: it will be run again with the answers. */
  parked = false
  /** Whether another process may have its task. */
  interrupted = false

  constructor(options: TaskRunOptions, task?: TaskWriter) {
    this.#options = options
    this.id = options.id
    this.key = options.key
    this.attempt = options.attempt
    this.revision = options.revision
    this.client = options.client
    this.owner = ownerOf(options.client)
    this.params = { name: options.tool, arguments: options.arguments, _meta: options.meta }
    this.#stored = new Set(Object.keys(options.steps))
    this.#handing = Promise.resolve(task)
  }

  observe(activity: Activity): Observed | undefined {
    return this.#options.telemetry?.begin(activity, this.#options.report)
  }

  /** Counts what the task was created or claimed with, or what the run has recorded. */
  holds(entries: readonly string[]): void {
    for (const entry of entries) this.bytes += estimateMemory(entry)
    this.onHeld()
  }

  /** Observes the run as that of a task. */
  observeTask(task: string): Observed | undefined {
    const { tool, attempt, trace: origin } = this.#options
    return this.observe({ kind: 'task', tool, task, attempt, origin })
  }

  /** Runs for a live request until `handOver`. */
  attach(call: Call, asking: AskByResult): void {
    this.#live = { call, asking }
    this.#asking = asking
    const abort = () => {
      if (this.#live !== undefined) this.abort(call.signal.reason)
    }
    if (call.signal.aborted) abort()
    else call.signal.addEventListener('abort', abort, { once: true })
  }

  /**
   * Continues as a task, which `create` makes of what was recorded so far. Returns false if there is none: the call
   * has just been suspended, or `create` has returned undefined.
   */
  async handOver(
    create: (recorded: Pick<Suspension, 'answers' | 'steps'>) => Promise<TaskWriter | undefined>,
  ): Promise<boolean> {
    const live = this.#live
    if (live === undefined || !live.asking.redirect((suspension) => this.#park(suspension)))
      return false
    const { recorded } = live.asking
    for (const key of Object.keys(recorded.steps)) this.#stored.add(key)
    this.#handing = create(recorded)
    const task = await this.#handing
    if (task === undefined) return false
    this.#live = undefined
    return true
  }

  get http(): HttpRequest | undefined {
    return this.#live?.call.http
  }

  get signal(): AbortSignal {
    return this.#controller.signal
  }

  get open(): boolean {
    return !this.#ended && !this.signal.aborted
  }

  abort(reason: unknown): void {
    this.#clearTimers()
    this.#controller.abort(reason)
    this.onDetached()
  }

  expireAfter(milliseconds: number, expired: () => void): void {
    this.#expiry = setTimeout(expired, Math.max(0, milliseconds))
  }

  /** The handler has returned. */
  end(): void {
    this.#ended = true
    clearTimeout(this.#statusTimer)
  }

  /** Its outcome is stored. */
  close(): void {
    this.#clearTimers()
  }

  log(message: LogMessage): void {
    if (this.#live === undefined) this.#options.report(logEntryOf(message, this.id))
    else this.#live.call.log[message.level](message.data, message.logger)
  }

  /** In a task, progress becomes its status message. */
  progress({ progress, total, message }: Omit<ProgressParams, 'progressToken'>): void {
    if (this.#live !== undefined) return this.#live.call.progress(progress, total, message)
    const share = total === undefined ? String(progress) : `${progress} of ${total}`
    this.#status = truncate(message ?? share, MAX_STATUS)
    const wait = Math.max(0, this.#statusAt + STATUS_INTERVAL - performance.now())
    this.#statusTimer ??= setTimeout(() => void this.#writeStatus(), wait)
  }

  releaseStream(): void {
    this.#live?.call.releaseStream()
  }

  park<Value>(promise: Promise<Value>): Promise<Value> {
    return promise
  }

  asking(call: AskingCall): Promise<Asking> {
    const { revision, key, attempt, client } = this
    const { maxBytes, steps, answers } = this.#options
    const context = {
      key,
      get signal() {
        return call.signal
      },
      revision,
      mayAsk: true,
      capabilities: client.capabilities,
      state: { maxBytes },
      binding: { method: this.method },
    }
    const before = { key, attempt: attempt - 1, asked: {}, answers, steps }
    this.#asking ??= new AskByResult(
      context,
      async (suspension) => void (await this.#park(suspension)),
      before,
    )
    const asking = this.#asking
    return Promise.resolve({
      key,
      attempt,
      get suspended() {
        return asking.suspended
      },
      ask: (questions) => asking.ask(questions),
      step: async (name, run) => {
        await this.#checkClaim()
        // The signal of the request does not know that the task was cancelled.
        if (call.signal.aborted) throw abortError(call.signal.reason)
        try {
          return await asking.step(name, (signal) => run(AbortSignal.any([signal, call.signal])))
        } finally {
          await this.#storeStep(name, asking)
        }
      },
    })
  }

  resume(call: AskingCall): Promise<Asking> {
    return this.asking(call)
  }

  /** A process that was stopped must not begin a step that another one may have begun. */
  async #checkClaim(): Promise<void> {
    const task = await this.#handing
    if (task === undefined || !this.open || (await task.held(this.signal))) return
    this.interrupted = true
    this.abort(
      new Error(
        'Another process may run the task now: this one was stopped for too long, or cut off from the store',
      ),
    )
  }

  /** A finished step is stored before the handler learns its outcome. */
  async #storeStep(step: string, asking: AskByResult): Promise<void> {
    const task = await this.#handing
    const outcome = asking.outcomeOf(step)
    if (task === undefined || outcome === undefined || this.#stored.has(step)) return
    this.#stored.add(step)
    const entry = entryOf({ step, outcome })
    this.holds([entry])
    const appended = task.append([entry], this.signal)
    this.#appends = Promise.allSettled([this.#appends, appended]).then(ignore)
    try {
      await appended
    } catch (error) {
      // The handler may go on.
      this.#stored.delete(step)
      throw error
    }
  }

  /** Returns false if there is no task: then the request is suspended. */
  async #park(suspension: Suspension | RpcError): Promise<boolean> {
    const task = await this.#handing
    if (task === undefined) return false
    if (suspension instanceof RpcError) throw suspension
    // It may be run again as soon as it is parked.
    await this.#appends
    const missing: string[] = []
    for (const [step, outcome] of Object.entries(suspension.steps))
      if (!this.#stored.has(step)) {
        this.#stored.add(step)
        missing.push(entryOf({ step, outcome }))
      }
    this.holds(missing)
    await task.park(suspension.questions, missing, this.signal)
    this.parked = true
    this.onDetached()
    return true
  }

  async #writeStatus(): Promise<void> {
    const message = this.#status
    this.#statusTimer = undefined
    this.#statusAt = performance.now()
    if (message === undefined || !this.open) return
    try {
      const task = await this.#handing
      await task?.status(message)
    } catch (error) {
      const text = 'The status message of a task was not stored'
      this.#options.report({ level: 'debug', message: text, id: this.id, error })
    }
  }

  #clearTimers(): void {
    clearTimeout(this.#expiry)
    clearTimeout(this.#statusTimer)
  }
}

function entryOf(entry: TaskEntry): string {
  return JSON.stringify(entry)
}
