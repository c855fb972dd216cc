import { withTimeout } from '../../jsonrpc/deadline.js'
import { INTERNAL_ERROR, RpcError, withCode } from '../../jsonrpc/errors.js'
import { ignore, markHandled } from '../../jsonrpc/hook.js'
import type { LogEntry } from '../../jsonrpc/log-entry.js'
import { truncate, truncateJson } from '../../jsonrpc/truncate.js'
import type { CallToolResult } from '../../protocol/model.js'
import { addResultFields, projectCallResult } from '../../protocol/revisions/project.js'
import { nextTurn } from '../../runtime.js'
import { Suspended } from '../../server/ask.js'
import type { Suspension } from '../../server/asking/ask-by-result.js'
import type { InternalServer } from '../../server/context.js'
import { stringMemory } from '../../stores/bytes.js'
import type { ClaimShares, ClaimedTask } from '../../stores/task-store.js'
import { nameInLogs } from './task-id.js'
import { type OpenQuestion, type TaskState, isTerminal } from './task-record.js'
import { type RecordChange, StoreError, type TaskRecords, lossOf } from './task-records.js'
import type { TaskRun, TaskWriter } from './task-run.js'
import { TaskSlots } from './task-slots.js'
import { WriteRetries } from './write-retries.js'

/** How long handlers may take to end when the server stops, in milliseconds. */
const DRAIN = 1000
/** Maximum characters of the status message of a failed task. */
const MAX_MESSAGE = 500
/** Maximum bytes of results that are kept in memory because they cannot be stored at present. */
const MAX_UNSTORED = 16 * 1024 * 1024

export type Outcome = { readonly result: CallToolResult } | { readonly thrown: unknown }

/** A task that is run: `entries` are what it was stored with. */
export type StartedTask = Pick<ClaimedTask, 'name' | 'expires' | 'timeLeft' | 'entries'>
/** `release` ends its reservation. */
export type ReservedTask = StartedTask & { readonly release: () => void }

type Ending = Pick<TaskState, 'status' | 'statusMessage' | 'result' | 'error'>

export interface RunnerOptions {
  readonly server: InternalServer
  readonly records: TaskRecords
  /** Maximum tasks whose handlers run at the same time. */
  readonly concurrency: number
  readonly maxTaskBytes: number
  /** Whether stored tasks are run here; otherwise other processes do so. */
  readonly workers: boolean
  /** Resolves when the store can be used; rejects if it cannot. */
  readonly ready: Promise<void>
  report(entry: LogEntry): void
}

/** Runs the handlers of the tasks of one server, and stores how they end. */
export class TaskRunner {
  readonly #options: RunnerOptions
  readonly #records: TaskRecords
  readonly #runs = new Map<string, TaskRun>()
  readonly #running = new Set<Promise<void>>()
  readonly #unsubscribe: () => void
  readonly #stopping = new AbortController()
  readonly writes: WriteRetries
  #draining = false
  readonly #slots: TaskSlots
  /** Bytes of results that wait to be stored. */
  #unstored = 0
  /** Called when there may be room for another task. */
  onRoom: () => void = () => {}

  constructor(options: RunnerOptions) {
    this.#options = options
    this.#records = options.records
    this.#slots = new TaskSlots(options.concurrency, options.report)
    this.writes = new WriteRetries(this.#stopping.signal, options.report)
    this.#unsubscribe = options.records.subscribe(
      (name) => void markHandled(this.#changed(name)),
      () => void markHandled(this.#missed()),
    )
  }

  get stopped(): boolean {
    return this.#stopping.signal.aborted
  }

  /** Aborts what is running, and waits a moment for it and for what else has to stop. It is stored as running: after the next start it is run again, or has failed. */
  async stop(alsoStopped: () => Promise<void>): Promise<void> {
    this.#stopping.abort(new Error('The server is stopping'))
    this.#unsubscribe()
    for (const run of this.#runs.values()) run.abort(new Error('The server is stopping'))
    await withTimeout(DRAIN, Promise.all([alsoStopped(), ...this.#running]))
  }

  /** Starts nothing more, and waits until what is running has ended. */
  async drain(milliseconds: number): Promise<void> {
    this.#draining = true
    await withTimeout(milliseconds, Promise.all(this.#running))
  }

  /** How many more handlers may run. */
  get room(): number {
    return this.#draining ? 0 : this.#slots.free
  }

  /** How many more of one owner. */
  roomFor(owner: string): number {
    return this.#draining ? 0 : this.#slots.freeFor(owner)
  }

  /** What each owner may still take of `room`. */
  get shares(): ClaimShares {
    return this.#slots.shares
  }

  /** Creates something of some entries and starts it, and counts it as running meanwhile, until `release` is called. */
  async reserve<Value>(
    owner: string,
    create: (release: () => void) => Promise<Value>,
    entries: readonly string[] = [],
  ): Promise<Value> {
    const bytes = entries.reduce((sum, entry) => sum + 2 * entry.length, 0)
    const release = this.#slots.reserve(owner, bytes)
    try {
      return await create(release)
    } finally {
      release()
    }
  }

  /** Cancels a task; nothing happens to one that has ended. */
  async cancel(name: string, statusMessage?: string): Promise<void> {
    await this.#records.change(name, (state) =>
      isTerminal(state) ? undefined : endedWith(state, { status: 'cancelled', statusMessage }),
    )
    this.#runs.get(name)?.abort(withCode('CANCELLED', new Error('The task was cancelled')))
  }

  /** Runs a running or queued task again, with its recorded steps. Returns false if it was not changed: it has ended, waits for input or is unknown, or there is no room. */
  async restart(name: string, statusMessage: string): Promise<boolean> {
    const changed = await this.#records.change(name, (state) =>
      isTerminal(state) || state.status === 'input_required'
        ? undefined
        : { state: { ...state, statusMessage, started: false }, release: true, note: true },
    )
    if (changed !== 'changed') return false
    this.#runs.get(name)?.abort(new Error('The task is run again'))
    this.onRoom()
    return true
  }

  /** Marks a task as failed that cannot be run. */
  async fail(name: string, message: string): Promise<void> {
    await fitting(errorsOf({ code: INTERNAL_ERROR, message }), (ending) =>
      this.writes.until(() =>
        this.#records.change(name, (state) =>
          isTerminal(state) ? undefined : endedWith(state, ending),
        ),
      ),
    )
  }

  /** How a run writes to its task. While the store fails, it waits. */
  writerOf(name: string, attempt: number): TaskWriter {
    const check = (changed: Awaited<ReturnType<TaskRecords['change']>>) => {
      if (changed === 'full')
        throw new Error(
          'The task has no room for this: return less from steps and ask less, or raise the limits of the store',
        )
      if (changed === 'changed') return
      const ended = new Error('The task has ended, or was taken over by another process')
      const run = this.#runs.get(name)
      if (run?.attempt === attempt && run.open) run.abort(ended)
      throw ended
    }
    let count = 0
    const write = async (signal: AbortSignal, next: (state: TaskState) => RecordChange) => {
      const appended = `${attempt}.${++count}`
      let stored = false
      const changed = await this.writes.until(
        () =>
          this.#records.change(name, (state) => {
            // An earlier attempt was stored although the store reported a failure.
            stored = state.appended === appended
            if (stored || !isRunBy(state, attempt)) return undefined
            const change = next(state)
            return { ...change, state: { ...change.state, appended } }
          }),
        signal,
      )
      if (!stored) check(changed)
    }
    let last: Promise<unknown> = Promise.resolve()
    /** One after the other: what was appended last can be recognized. */
    const inTurn = (...given: Parameters<typeof write>) => {
      const written = last.then(() => write(...given))
      last = markHandled(written).catch(ignore)
      return written
    }
    return {
      append: (append, signal) => inTurn(signal, (state) => ({ state, append })),
      // Not tried again: the next one replaces it.
      status: async (statusMessage) =>
        check(
          await this.#records.change(name, (state) =>
            isRunBy(state, attempt) ? { state: { ...state, statusMessage } } : undefined,
          ),
        ),
      park: (questions, append, signal) =>
        inTurn(signal, (state) => ({
          state: { ...state, ...askIn(state, questions), started: false },
          append,
          runnable: false,
        })),
      held: (signal) => this.writes.until(() => this.#records.holds(name), signal),
    }
  }

  /** Runs the handler of a task until it ends or is parked: takes the place that was reserved for it. */
  start(
    { name, expires, timeLeft = expires - Date.now(), entries, release }: ReservedTask,
    run: TaskRun,
    begin: () => CallToolResult | Promise<CallToolResult>,
  ): void {
    run.holds(entries)
    this.#runs.set(name, run)
    release()
    this.#slots.take(run)
    run.onHeld = () => this.#slots.update(run)
    run.onDetached = () => {
      if (this.stopped) return
      this.#slots.detach(run)
      this.onRoom()
    }
    if (isDetached(run)) run.onDetached()
    run.expireAfter(timeLeft, () => run.abort(new Error('The task has expired')))
    // After the response: the client gets the id first.
    const running: Promise<void> = new Promise<void>((resolve) => nextTurn(resolve))
      .then(() => this.#run(name, run, begin))
      .then((outcome) => this.#finish(name, run, outcome))
      .catch((error: unknown) => {
        if (lossOf(error) === undefined)
          this.#options.report({ level: 'error', message: 'A task was not stored', error })
      })
      .finally(() => {
        run.close()
        this.#running.delete(running)
        if (this.#runs.get(name) === run) this.#runs.delete(name)
        this.#slots.end(run)
        this.onRoom()
      })
    this.#running.add(running)
  }

  async #run(
    name: string,
    run: TaskRun,
    begin: () => CallToolResult | Promise<CallToolResult>,
  ): Promise<Outcome> {
    // The server may have stopped meanwhile.
    if (run.signal.aborted) return { thrown: run.signal.reason }
    const observed = run.observeTask(nameInLogs(name))
    if (observed === undefined) return await settle(begin)
    const outcome = await settle(() => observed.run(begin))
    observed.end(observedOutcome(run, outcome))
    return outcome
  }

  async #finish(name: string, run: TaskRun, outcome: Outcome): Promise<void> {
    run.end()
    // Whoever has its task runs it again: what the handler made of refused steps is not its outcome.
    if (run.parked || run.interrupted) return
    // A task that was interrupted has no outcome; one that has finished all the same has.
    if (this.stopped && !isComplete(outcome)) return
    if ('thrown' in outcome)
      return await this.#endFailed(name, run, this.#errorOf(run, outcome.thrown))
    try {
      await this.#endCompleted(name, run, outcome.result)
    } catch (error) {
      if (error instanceof StoreError || lossOf(error) !== undefined) throw error
      // The result is not JSON.
      this.#options.report({ level: 'error', message: 'A task failed', id: run.id, error })
      await this.#endFailed(name, run, { code: INTERNAL_ERROR, message: 'Internal error' })
    }
  }

  async #endCompleted(name: string, run: TaskRun, returned: CallToolResult): Promise<void> {
    const { server, maxTaskBytes } = this.#options
    const type = resultTypeOf(returned)
    if (type !== 'complete')
      return await this.#endUnfit(
        name,
        run,
        `The result of a task must be complete, but an extension has returned the resultType ${truncateJson(type)}`,
      )
    const projected = projectCallResult(run.revision, returned)
    const result = addResultFields(run.revision, projected, server.info, undefined)
    const ending: Ending = { status: 'completed', statusMessage: undefined, result }
    let ended: Awaited<ReturnType<TaskRecords['change']>>
    try {
      ended = await this.#end(name, run, ending)
    } catch (error) {
      if (!(error instanceof StoreError)) throw error
      const bytes = stringMemory(JSON.stringify(result))
      if (this.#unstored + bytes > MAX_UNSTORED) {
        const message = 'The result could not be stored: the store of tasks has failed'
        return await this.#endFailed(name, run, { code: INTERNAL_ERROR, message })
      }
      this.#unstored += bytes
      try {
        ended = await this.writes.after(error, () => this.#end(name, run, ending), run.signal)
      } finally {
        this.#unstored -= bytes
      }
    }
    if (ended !== 'full') return
    const message = `The result is too large to be stored with its task: at most ${maxTaskBytes} bytes, within the limits of the store`
    await this.#endUnfit(name, run, message)
  }

  /** The result cannot be that of a task. */
  async #endUnfit(name: string, run: TaskRun, message: string): Promise<void> {
    this.#options.report({ level: 'error', message, id: run.id })
    await this.#endFailed(name, run, { code: INTERNAL_ERROR, message })
  }

  async #endFailed(
    name: string,
    run: TaskRun,
    error: NonNullable<TaskState['error']>,
  ): Promise<void> {
    await fitting(errorsOf(error), (ending) =>
      this.writes.until(() => this.#end(name, run, ending), run.signal),
    )
  }

  #end(name: string, run: TaskRun, ending: Ending) {
    return this.#records.change(name, (state) =>
      isRunBy(state, run.attempt) ? endedWith(state, ending) : undefined,
    )
  }

  #errorOf({ signal }: TaskRun, thrown: unknown): NonNullable<TaskState['error']> {
    if (thrown instanceof RpcError) {
      const { code, message, data } = thrown
      return data === undefined ? { code, message } : { code, message, data }
    }
    const message = 'A task failed'
    const isExpected = thrown instanceof Suspended || (signal.aborted && thrown === signal.reason)
    if (!isExpected) this.#options.report({ level: 'error', message, error: thrown })
    return { code: INTERNAL_ERROR, message: 'Internal error' }
  }

  /** Another process may have cancelled a task that runs here or have taken it over, or one can be claimed. */
  async #changed(name: string): Promise<void> {
    const run = this.#runs.get(name)
    if (run === undefined || isDetached(run)) return this.onRoom()
    if (!run.open) return
    const state = await this.#records.get(name).catch((error: unknown) => {
      const loss = lossOf(error)
      if (loss !== undefined) run.abort(loss)
      throw error
    })
    if (state === undefined || isTerminal(state))
      run.abort(withCode('CANCELLED', new Error('The task has ended')))
    else if (state.attempt !== run.attempt || (!state.started && state.status === 'working'))
      run.abort(new Error('The task was taken over by another process'))
  }

  async #missed(): Promise<void> {
    this.onRoom()
    await Promise.all([...this.#runs.keys()].map((name) => this.#changed(name)))
  }
}

/** Whether a run no longer has its task, although its handler may still run. */
function isDetached({ parked, signal }: TaskRun): boolean {
  return parked || signal.aborted
}

/** Whether a run may write to its task: it has not ended, and no other run has begun or is due. */
function isRunBy(state: TaskState, attempt: number): boolean {
  return !isTerminal(state) && state.started && state.attempt === attempt
}

/** How a run has ended, for telemetry. */
function observedOutcome({ parked, signal }: TaskRun, outcome: Outcome) {
  if (parked) return { result: { resultType: 'input_required' } }
  if (signal.aborted && !isComplete(outcome)) return { error: signal.reason as unknown }
  return 'thrown' in outcome ? { error: outcome.thrown } : outcome
}

function isComplete(outcome: Outcome): boolean {
  return 'result' in outcome && outcome.result.isError !== true
}

/** What an extension may have put into a result. */
function resultTypeOf(result: object): unknown {
  return 'resultType' in result ? (result.resultType ?? 'complete') : 'complete'
}

/** How a task fails, from the complete error to one that every store has room for. */
function errorsOf(error: NonNullable<TaskState['error']>): readonly Ending[] {
  const { code } = error
  const statusMessage = truncate(error.message, MAX_MESSAGE)
  const short = 'The task has failed; there is no room for the reason'
  return [
    { status: 'failed', statusMessage, error },
    { status: 'failed', statusMessage, error: { code, message: statusMessage } },
    { status: 'failed', statusMessage: short, error: { code, message: short } },
  ]
}

/** Ends a task with the first ending that it has room for. */
async function fitting(
  endings: readonly Ending[],
  end: (ending: Ending) => Promise<string>,
): Promise<void> {
  for (const ending of endings) if ((await end(ending)) !== 'full') return
}

function endedWith(state: TaskState, ending: Ending): RecordChange {
  return { state: { ...state, ...ending, open: {} }, runnable: false, clear: true }
}

/** Asks questions in a task. A key is never used twice: a question that is asked again gets another one. */
function askIn(
  state: TaskState,
  questions: Suspension['questions'],
): Pick<TaskState, 'status' | 'statusMessage' | 'open' | 'questions'> {
  let count = state.questions
  const open: [string, OpenQuestion][] = []
  for (const [key, { request, digest: mark }] of questions) {
    const { method, params } = request
    open.push([`${key}.${++count}`, { key, digest: mark, request: { method, params } }])
  }
  return {
    status: 'input_required',
    statusMessage: undefined,
    questions: count,
    open: Object.fromEntries(open),
  }
}

export async function settle(
  run: () => CallToolResult | Promise<CallToolResult>,
): Promise<Outcome> {
  try {
    return { result: await run() }
  } catch (thrown) {
    return { thrown }
  }
}
