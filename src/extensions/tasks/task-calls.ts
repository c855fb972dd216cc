import { RpcError, INTERNAL_ERROR } from '../../jsonrpc/errors.js'
import { markHandled } from '../../jsonrpc/hook.js'
import type { Params } from '../../jsonrpc/message.js'
import type { CallToolResult } from '../../protocol/model.js'
import { revisions } from '../../protocol/revisions/index.js'
import { AskByResult, type Suspension } from '../../server/asking/ask-by-result.js'
import type { CallEnvironment, Caller } from '../../server/call.js'
import type { ToolCall } from '../../server/extensions.js'
import { newTaskId, nameOf, ownerOf } from './task-id.js'
import { type ToolTask, definitionOf } from './task-options.js'
import {
  type TaskEntry,
  type TaskOrigin,
  type TaskState,
  entriesOf,
  taskOf,
} from './task-record.js'
import type { TaskClaims } from './task-claims.js'
import { StoreError, type TaskRecords } from './task-records.js'
import { TaskRun, type TaskWriter } from './task-run.js'
import {
  type Outcome,
  type RunnerOptions,
  type StartedTask,
  type TaskRunner,
  settle,
} from './task-runner.js'

type Run = (environment?: CallEnvironment) => CallToolResult | Promise<CallToolResult>

/** Serves calls of tools that may become tasks. */
export class TaskCalls {
  readonly #runner: TaskRunner
  readonly #claims: TaskClaims
  readonly #options: RunnerOptions
  readonly #records: TaskRecords

  constructor(runner: TaskRunner, claims: TaskClaims, options: RunnerOptions) {
    this.#runner = runner
    this.#claims = claims
    this.#options = options
    this.#records = options.records
  }

  /** Serves a call of a tool that may become a task. */
  async call(toolCall: ToolCall, options: ToolTask, run: Run): Promise<Params | CallToolResult> {
    const { tool, params, call, caller, remote } = toolCall
    const asking = await toolCall.asking()
    const served = this.#options.server.tools.get(tool.name)
    const revision = revisions.find(({ id }) => id === caller.revision)
    if (!(asking instanceof AskByResult) || revision === undefined || served === undefined)
      return await run()
    const { telemetry } = this.#options.server
    const trace = telemetry?.carrier(this.#options.report)
    const origin: TaskOrigin = {
      arguments: params['arguments'] ?? {},
      meta: call.meta,
      client: callerOf(caller),
      remote,
      definition: await definitionOf(served, options),
      ...(trace && { trace }),
    }
    // Now: the handler may change its arguments.
    const first = JSON.stringify({ origin } satisfies TaskEntry)
    const { key, attempt } = asking
    const environment = (task?: TaskWriter) =>
      new TaskRun(
        {
          id: call.id,
          tool: tool.name,
          key,
          attempt,
          client: origin.client,
          revision,
          trace,
          telemetry,
          arguments: origin.arguments,
          meta: call.meta,
          maxBytes: this.#options.maxTaskBytes,
          ...asking.recorded,
          report: this.#options.report,
        },
        task,
      )
    const create = async (
      recorded: Pick<Suspension, 'answers' | 'steps'>,
      started: boolean,
    ): Promise<Created | NotCreated> => {
      const entries = entriesOf(recorded.answers, recorded.steps)
      const texts = [first, ...entries.map((entry) => JSON.stringify(entry))]
      return await this.#create(tool.name, options, { key, attempt, caller, started }, texts)
    }
    if (options.after > 0 && this.#options.workers) {
      const plain = environment()
      plain.attach(call, asking)
      return await this.#callThenTask(toolCall, options, { run, environment: plain, create })
    }
    const owner = ownerOf(caller)
    const started = this.#options.workers && this.#runner.roomFor(owner) > 0
    const creating = async (release: () => void) => {
      const made = await create(asking.recorded, started)
      if (!started || typeof made === 'string' || call.signal.aborted) return made
      const task = environment(this.#runner.writerOf(made.name, attempt))
      this.#runner.start({ ...made, release }, task, () => run(task))
      return made
    }
    const created = await (started ? this.#runner.reserve(owner, creating) : creating(() => {}))
    if (typeof created === 'string') {
      if (started) this.#claims.claim()
      if (options.mode === 'may' && created !== 'unknown') return await run()
      throw notCreated(created, this.#options.maxTaskBytes)
    }
    const { name, taskId, state } = created
    if (call.signal.aborted) this.#cancel(name)
    // Others may have been queued because this one was about to run.
    if (!started || call.signal.aborted) this.#claims.claim()
    return { resultType: 'task', ...taskOf(taskId, state) }
  }

  /** Runs the handler for the request; it becomes a task if it takes long. */
  async #callThenTask(
    { call }: ToolCall,
    { after }: ToolTask,
    {
      run,
      environment,
      create,
    }: {
      run: Run
      environment: TaskRun
      create: (
        recorded: Pick<Suspension, 'answers' | 'steps'>,
        started: boolean,
      ) => Promise<Created | NotCreated>
    },
  ): Promise<Params | CallToolResult> {
    let timer: ReturnType<typeof setTimeout> | undefined
    const outcome = settle(() => run(environment))
    const late = new Promise<'late'>((resolve) => (timer = setTimeout(resolve, after, 'late')))
    const first = await Promise.race([outcome, late])
    clearTimeout(timer)
    if (first !== 'late') return unwrap(first)
    const mayStart = !this.#runner.stopped && !call.signal.aborted
    if (!mayStart || this.#runner.roomFor(environment.owner) <= 0) return unwrap(await outcome)
    const handedOver = await this.#runner.reserve(environment.owner, async (release) => {
      let created: Created | undefined
      const handed = await environment.handOver(async (recorded) => {
        const made = await create(recorded, true)
        if (typeof made === 'string') return undefined
        created = made
        return this.#runner.writerOf(made.name, environment.attempt)
      })
      if (!handed || created === undefined) return undefined
      this.#runner.start({ ...created, release }, environment, () => outcome.then(unwrap))
      return created
    })
    if (handedOver === undefined) {
      // Others may have been queued meanwhile.
      this.#claims.claim()
      return unwrap(await outcome)
    }
    const { name, taskId, state } = handedOver
    if (call.signal.aborted) this.#cancel(name)
    return { resultType: 'task', ...taskOf(taskId, state) }
  }

  /** Cancels a task of a call that was cancelled: nobody learns its id. */
  #cancel(name: string): void {
    void markHandled(this.#runner.writes.until(() => this.#runner.cancel(name)))
  }

  async #create(
    tool: string,
    { ttl, poll }: ToolTask,
    {
      key,
      attempt,
      caller,
      started,
    }: { key: string; attempt: number; caller: Caller; started: boolean },
    entries: readonly string[],
  ): Promise<Created | NotCreated> {
    const now = Date.now()
    const taskId = newTaskId()
    const name = await nameOf(taskId)
    const state: TaskState = {
      tool,
      status: 'working',
      createdAt: now,
      updatedAt: now,
      ttl,
      poll,
      key,
      attempt: started ? attempt : attempt - 1,
      started,
      // Of no run: the first one that begins later needs no more room for its name.
      run: crypto.randomUUID(),
      bytes: 0,
      questions: 0,
      open: {},
    }
    const expires = now + ttl
    const owner = ownerOf(caller)
    const created = { taskId, name, state, expires, timeLeft: ttl, entries }
    try {
      await this.#options.ready
      const task = { name, owner, expires, claimed: started }
      const stored = await this.#records.create(task, state, entries)
      return stored === 'created' ? created : stored
    } catch (error) {
      const cause = error instanceof StoreError ? error.cause : error
      this.#options.report({ level: 'error', message: 'A task could not be stored', error: cause })
      const outcome = await this.#records.outcomeOf(name, error)
      return outcome === 'created' ? created : outcome
    }
  }
}

/** The task is larger than one may be, there is no room for it, or the store has failed; with `unknown`, it may be stored. */
type NotCreated = 'large' | 'full' | 'failed' | 'unknown'

interface Created extends StartedTask {
  readonly taskId: string
  readonly state: TaskState
}

/** The caller without anything that only the connection has. */
function callerOf({ info, capabilities, revision, principal }: Caller): Caller {
  return { info, capabilities, revision, principal }
}

function notCreated(reason: NotCreated, maxBytes: number): RpcError {
  switch (reason) {
    case 'large':
      return new RpcError(
        INTERNAL_ERROR,
        `The call is too large for a task: at most ${maxBytes} bytes, with its arguments and what is known of the client`,
      )
    case 'full':
      return new RpcError(
        INTERNAL_ERROR,
        'There is no room for another task; cancel one, or try again later',
      )
    case 'failed':
      return notStored()
    case 'unknown':
      return new RpcError(
        INTERNAL_ERROR,
        'It is not known whether the task was stored, because the store of tasks has failed: the tool may run. Find out what it has done before you call it again',
      )
  }
}

export function notStored(): RpcError {
  return new RpcError(
    INTERNAL_ERROR,
    'The task could not be stored, because the store of tasks has failed; try again later',
  )
}

function unwrap(outcome: Outcome): CallToolResult {
  if ('thrown' in outcome) throw outcome.thrown
  return outcome.result
}
