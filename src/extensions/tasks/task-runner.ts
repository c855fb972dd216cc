import { INTERNAL_ERROR, RpcError } from '../../jsonrpc/errors.js'
import { markHandled } from '../../jsonrpc/hook.js'
import type { LogEntry } from '../../jsonrpc/log-entry.js'
import { truncate } from '../../jsonrpc/truncate.js'
import type { CallToolResult } from '../../protocol/model.js'
import { revisions } from '../../protocol/revisions/index.js'
import { addResultFields, projectCallResult } from '../../protocol/revisions/project.js'
import { nextTurn } from '../../runtime.js'
import { describeIssues } from '../../schema/standard.js'
import { Suspended } from '../../server/ask.js'
import type { Suspension } from '../../server/asking/ask-by-result.js'
import { ServedCall } from '../../server/call.js'
import type { InternalServer } from '../../server/context.js'
import { runTool } from '../../server/features/tools.js'
import type { ClaimedTask } from '../../stores/task-store.js'
import { definitionOf, taskOptionsOf } from './task-options.js'
import { type OpenQuestion, type TaskState, isTerminal, restore } from './task-record.js'
import type { TaskRecords } from './task-records.js'
import { TaskRun, type TaskWriter } from './task-run.js'

/** How long handlers may take to end when the server stops, in milliseconds. */
const DRAIN = 1000
/** Maximum characters of the status message of a failed task. */
const MAX_MESSAGE = 500

export type Outcome = { readonly result: CallToolResult } | { readonly thrown: unknown }

export interface RunnerOptions {
  readonly server: InternalServer
  readonly records: TaskRecords
  /** Maximum handlers that run at the same time. */
  readonly concurrency: number
  readonly maxTaskBytes: number
  /** Resolves when an earlier runner has given up its claims. */
  readonly ready: Promise<void>
  report(entry: LogEntry): void
}

/** Runs the handlers of the tasks of one server, and continues tasks that are stored. */
export class TaskRunner {
  readonly #options: RunnerOptions
  readonly #records: TaskRecords
  readonly #runs = new Map<string, TaskRun>()
  readonly #running = new Set<Promise<void>>()
  readonly #unsubscribe: () => void
  /** Runs that are about to start. */
  #starting = 0
  #claiming: Promise<void> | undefined
  #claimAgain = false
  stopped = false

  constructor(options: RunnerOptions) {
    this.#options = options
    this.#records = options.records
    this.#unsubscribe = options.records.store.subscribe(
      (name) => void markHandled(this.#changed(name)),
    )
    this.claim()
  }

  /** Aborts what is running. It is stored as running: after the next start it has failed. */
  async stop(): Promise<void> {
    this.stopped = true
    this.#unsubscribe()
    for (const run of this.#runs.values()) run.abort(new Error('The server is stopping'))
    let timer: ReturnType<typeof setTimeout> | undefined
    const patience = new Promise<void>((resolve) => (timer = setTimeout(resolve, DRAIN)))
    await Promise.race([Promise.all([this.#claiming, ...this.#running]), patience])
    clearTimeout(timer)
    await this.#records.store.release()
  }

  /** How many more handlers may run. */
  get room(): number {
    return this.#options.concurrency - this.#runs.size - this.#starting
  }

  /** Creates something that will run, and counts it as running meanwhile. */
  async reserve<Value>(create: () => Promise<Value>): Promise<Value> {
    this.#starting++
    try {
      return await create()
    } finally {
      this.#starting--
    }
  }

  /** The state of a task, by the name under which it is stored. */
  async stateOf(name: string): Promise<TaskState | undefined> {
    return (await this.#records.get(name))?.state
  }

  /** Cancels a task; nothing happens to one that has ended. */
  async cancel(name: string): Promise<void> {
    await this.#records.change(name, (state) =>
      isTerminal(state)
        ? undefined
        : {
            state: { ...state, status: 'cancelled', statusMessage: undefined, open: {} },
            runnable: false,
            clear: true,
          },
    )
    this.#runs.get(name)?.abort(new Error('The task was cancelled'))
  }

  /** How a run writes to its task. */
  writerOf(name: string, attempt: number): TaskWriter {
    const write = async (
      next: (state: TaskState) => ReturnType<Parameters<TaskRecords['change']>[1]>,
    ) => {
      const changed = await this.#records.change(name, (state) =>
        isTerminal(state) || state.attempt !== attempt ? undefined : next(state),
      )
      if (changed === 'full')
        throw new Error(
          'The task has no room for this: return less from steps and ask less, or raise the limits of the store',
        )
      if (changed !== 'changed') throw new Error('The task has ended')
    }
    return {
      append: (append) => write((state) => ({ state, append })),
      status: (statusMessage) => write((state) => ({ state: { ...state, statusMessage } })),
      park: (questions, append) =>
        write((state) => ({
          state: { ...state, ...askIn(state, questions), started: false },
          append,
          runnable: false,
        })),
    }
  }

  /** Runs the handler of a task until it ends or is parked. */
  start(
    name: string,
    run: TaskRun,
    expires: number,
    begin: (run: TaskRun) => CallToolResult | Promise<CallToolResult>,
  ): void {
    this.#runs.set(name, run)
    run.expireAt(expires, () => run.abort(new Error('The task has expired')))
    // After the response: the client gets the id first.
    const running: Promise<void> = new Promise<void>((resolve) => nextTurn(resolve))
      .then(() => settle(() => begin(run)))
      .then((outcome) => this.#finish(name, run, outcome))
      .catch((error: unknown) =>
        this.#options.report({ level: 'error', message: 'A task was not stored', error }),
      )
      .finally(() => {
        this.#running.delete(running)
        if (this.#runs.get(name) === run) this.#runs.delete(name)
        this.claim()
      })
    this.#running.add(running)
  }

  async #finish(name: string, run: TaskRun, outcome: Outcome): Promise<void> {
    run.end()
    // A task that was interrupted has no outcome; one that was cancelled has its state already.
    if (this.stopped) return
    if (run.parked) return
    const end = (part: Pick<TaskState, 'status' | 'statusMessage' | 'result' | 'error'>) =>
      this.#records.change(name, (state) =>
        isTerminal(state) || state.attempt !== run.attempt
          ? undefined
          : { state: { ...state, ...part, open: {} }, runnable: false, clear: true },
      )
    const fail = async (error: NonNullable<TaskState['error']>) => {
      const { code, message } = error
      const short = truncate(message, MAX_MESSAGE)
      const ended = await end({ status: 'failed', statusMessage: short, error })
      if (ended === 'full')
        await end({ status: 'failed', statusMessage: short, error: { code, message: short } })
    }
    if ('thrown' in outcome) return await fail(this.#errorOf(outcome.thrown))
    const { server, report, maxTaskBytes } = this.#options
    const projected = projectCallResult(run.revision, outcome.result)
    const result = addResultFields(run.revision, projected, server.info, undefined)
    if ((await end({ status: 'completed', statusMessage: undefined, result })) !== 'full') return
    const message = `The result is too large to be stored with its task: at most ${maxTaskBytes} bytes, within the limits of the store`
    report({ level: 'error', message, id: run.id })
    await fail({ code: INTERNAL_ERROR, message })
  }

  #errorOf(thrown: unknown): NonNullable<TaskState['error']> {
    if (thrown instanceof RpcError) {
      const { code, message, data } = thrown
      return data === undefined ? { code, message } : { code, message, data }
    }
    const message = 'A task failed'
    if (!(thrown instanceof Suspended))
      this.#options.report({ level: 'error', message, error: thrown })
    return { code: INTERNAL_ERROR, message: 'Internal error' }
  }

  /** Another process may have cancelled a task that runs here, or have added one. */
  async #changed(name: string): Promise<void> {
    const run = this.#runs.get(name)
    if (run === undefined || !run.open) return
    const state = await this.stateOf(name)
    if (state === undefined || isTerminal(state)) run.abort(new Error('The task has ended'))
  }

  /** Starts stored tasks while there is room. */
  claim(): void {
    this.#claimAgain = true
    if (this.stopped || this.#claiming !== undefined) return
    this.#claiming = this.#claimAll()
      .catch((error: unknown) =>
        this.#options.report({ level: 'error', message: 'Tasks could not be claimed', error }),
      )
      .finally(() => {
        this.#claiming = undefined
        if (this.#claimAgain) this.claim()
      })
  }

  async #claimAll(): Promise<void> {
    await this.#options.ready
    for (;;) {
      this.#claimAgain = false
      if (this.room <= 0 || this.stopped) return
      const claimed = await this.#records.store.claim(this.room)
      for (const task of claimed) await this.#continue(task)
      // One may have become runnable meanwhile.
      if (claimed.length === 0 && !this.#claimAgain) return
    }
  }

  async #continue(task: ClaimedTask): Promise<void> {
    const { name } = task
    const state = JSON.parse(task.state) as TaskState // written by this extension
    try {
      const problem = state.started
        ? 'The server was restarted while the task was running'
        : await this.#runAgain(task, state)
      if (problem !== undefined) await this.#failStored(name, problem)
    } catch (error) {
      this.#options.report({ level: 'error', message: 'A stored task could not be run', error })
      await this.#failStored(name, 'The stored task could not be run')
    }
  }

  async #failStored(name: string, message: string): Promise<void> {
    await this.#records.change(name, (state) =>
      isTerminal(state)
        ? undefined
        : {
            state: {
              ...state,
              status: 'failed',
              statusMessage: message,
              error: { code: INTERNAL_ERROR, message },
              open: {},
            },
            runnable: false,
            clear: true,
          },
    )
  }

  /** Runs the handler of a stored task from the top, with its steps and answers; returns why it cannot. */
  async #runAgain(task: ClaimedTask, state: TaskState): Promise<string | undefined> {
    const { server, report, maxTaskBytes } = this.#options
    const { name, expires } = task
    const { origin, steps, answers } = restore(task.entries)
    const tool = server.tools.get(state.tool)
    const options = tool === undefined ? undefined : taskOptionsOf(tool.definition)
    const revision = revisions.find(({ id }) => id === origin.client.revision)
    if (tool === undefined || options === undefined || revision === undefined)
      return `The tool ${state.tool} no longer exists`
    if ((await definitionOf(tool, options)) !== origin.definition)
      return `The tool ${state.tool} has changed since the task was created`
    const checked = await tool.input.check(origin.arguments)
    if (checked.issues !== undefined)
      return `The arguments of ${state.tool} are no longer valid: ${describeIssues(checked.issues)}`
    const attempt = state.attempt + 1
    const begun = await this.#records.change(name, (before) =>
      isTerminal(before) ? undefined : { state: { ...before, attempt, started: true } },
    )
    // It was cancelled or has expired meanwhile.
    if (begun !== 'changed') return undefined
    const run = new TaskRun(
      {
        id: `task-${name.slice(0, 12)}`,
        key: state.key,
        attempt,
        client: origin.client,
        revision,
        meta: origin.meta,
        maxBytes: maxTaskBytes,
        steps,
        answers,
        report,
      },
      this.writerOf(name, attempt),
    )
    const context = { server, call: new ServedCall(run), report, remote: origin.remote }
    this.start(name, run, expires, () => runTool(tool, checked.value, context))
    return undefined
  }
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
