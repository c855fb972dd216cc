import { revisions } from '../../protocol/revisions/index.js'
import { describeIssues } from '../../schema/standard.js'
import { ServedCall } from '../../server/call.js'
import { runWrapped } from '../../server/features/tools.js'
import type { ClaimedTask } from '../../stores/task-store.js'
import { TASKS } from './task-name.js'
import { nameInLogs } from './task-id.js'
import { UNREADABLE } from './task-codec.js'
import { definitionOf, retryDelayOf, taskOptionsOf } from './task-options.js'
import { type TaskState, isTerminal, restore } from './task-record.js'
import { StoreError, lossOf } from './task-records.js'
import { TaskRun } from './task-run.js'
import type { ReservedTask, RunnerOptions, TaskRunner } from './task-runner.js'

/** Milliseconds after which a store that has failed is asked again for tasks. */
const AGAIN = 5000
/** Tasks that are claimed together at most: what they hold is not known before. */
const TOGETHER = 16

const NO_ROOM =
  'The task could not be run: it has reached its limit of bytes, or the limits of the store'

/** Runs tasks that are stored: queued ones, those that have their answers, and those that were interrupted. */
export class TaskClaims {
  readonly #runner: TaskRunner
  readonly #options: RunnerOptions
  readonly #continuing = new Set<Promise<void>>()
  readonly #timers = new Set<ReturnType<typeof setTimeout>>()
  #claiming: Promise<void> | undefined
  #again = false
  /** Whether another process has taken the store over. */
  #lost = false

  constructor(runner: TaskRunner, options: RunnerOptions) {
    this.#runner = runner
    this.#options = options
    runner.onRoom = () => this.claim()
    this.claim()
  }

  /** Starts stored tasks while there is room. */
  claim(): void {
    this.#again = true
    if (!this.#options.workers || this.#runner.stopped || this.#lost) return
    if (this.#claiming !== undefined) return
    this.#claiming = this.#claimAll()
      .catch((error: unknown) => {
        this.#again = false
        this.#lost = lossOf(error) !== undefined
        // The store has reported that.
        if (this.#lost) return
        this.#options.report({ level: 'error', message: 'Tasks could not be claimed', error })
        this.#later(AGAIN, () => this.claim())
      })
      .finally(() => {
        this.#claiming = undefined
        if (this.#again) this.claim()
      })
  }

  /** Resolves when no more task is started. */
  async stop(): Promise<void> {
    for (const timer of this.#timers) clearTimeout(timer)
    await Promise.all([this.#claiming, ...this.#continuing])
  }

  async #claimAll(): Promise<void> {
    await this.#options.ready
    for (;;) {
      this.#again = false
      const { room, shares, stopped } = this.#runner
      if (room <= 0 || stopped) return
      const claimed = await this.#options.records.store.claim(Math.min(room, TOGETHER), shares)
      for (const task of claimed) this.#continue(task)
      // One may have become runnable meanwhile.
      if (claimed.length === 0 && !this.#again) return
    }
  }

  /** Not awaited: a task whose state cannot be stored at present must not hold up others. */
  #continue(task: ClaimedTask): void {
    const continuing = this.#runner
      .reserve(task.owner, (release) => this.#start({ ...task, release }), task.entries)
      .catch((error: unknown) => {
        if (lossOf(error) === undefined)
          this.#options.report({ level: 'error', message: 'A task could not be continued', error })
      })
      .finally(() => {
        this.#continuing.delete(continuing)
        this.claim()
      })
    this.#continuing.add(continuing)
  }

  async #start(task: ClaimedTask & ReservedTask): Promise<void> {
    const { name } = task
    let problem: string | undefined
    try {
      problem = await this.#continueClaimed(task)
    } catch (error) {
      if (error instanceof StoreError || lossOf(error) !== undefined) throw error
      this.#options.report({ level: 'error', message: 'A stored task could not be run', error })
      problem = 'The stored task could not be run'
    }
    if (problem !== undefined) await this.#runner.fail(name, problem)
  }

  async #continueClaimed(task: ClaimedTask & ReservedTask): Promise<string | undefined> {
    const opened = await this.#options.records.open(task)
    if (opened === undefined) return UNREADABLE
    const { state, entries } = opened
    return state.started
      ? await this.#retry(task.name, state)
      : await this.#runAgain({ ...task, entries }, state)
  }

  /** A task was interrupted: it is run again later, if the tool allows that; otherwise returns why it has failed. */
  async #retry(name: string, state: TaskState): Promise<string | undefined> {
    const { retried = 0 } = state
    const tool = this.#options.server.tools.get(state.tool)
    const options = tool === undefined ? undefined : taskOptionsOf(tool.definition)
    const delay = options === undefined ? undefined : retryDelayOf(options, retried)
    if (delay === undefined)
      return retried === 0
        ? 'The server was restarted while the task was running'
        : `The server was restarted while the task was running, also when it was run again (${retried} times)`
    if (!(await this.#interrupt(name, state.attempt))) return NO_ROOM
    this.#later(delay, () => void this.#enqueue(name, state.attempt))
    return undefined
  }

  /** Ends a run that may still be running elsewhere: from now on it can write nothing. Returns false if there is no room to store that. */
  async #interrupt(name: string, attempt: number): Promise<boolean> {
    const changed = await this.#runner.writes.until(() =>
      this.#options.records.change(name, (state) =>
        isTerminal(state) || !state.started || state.attempt !== attempt
          ? undefined
          : {
              state: {
                ...state,
                started: false,
                retried: (state.retried ?? 0) + 1,
                statusMessage: 'The server was restarted; the task is run again',
              },
              note: true,
            },
      ),
    )
    return changed !== 'full'
  }

  /** Lets a task be claimed that was interrupted. */
  async #enqueue(name: string, attempt: number): Promise<void> {
    const { records, report } = this.#options
    try {
      const changed = await this.#runner.writes.until(() =>
        records.change(name, (state) =>
          isTerminal(state) || state.started || state.attempt !== attempt
            ? undefined
            : { state, release: true, note: true },
        ),
      )
      if (changed === 'full') await this.#runner.fail(name, NO_ROOM)
      this.claim()
    } catch (error) {
      report({ level: 'error', message: 'A task could not be run again', error })
    }
  }

  /** Runs the handler of a stored task from the top, with its steps and answers; returns why it cannot. */
  async #runAgain(task: ClaimedTask & ReservedTask, state: TaskState): Promise<string | undefined> {
    const { server, report, maxTaskBytes } = this.#options
    const { name } = task
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
    const begun = await this.#begin(task, attempt)
    if (begun === 'full') return NO_ROOM
    if (!begun) return undefined
    const run = new TaskRun(
      {
        id: nameInLogs(name),
        tool: state.tool,
        key: state.key,
        attempt,
        client: origin.client,
        revision,
        trace: origin.trace,
        telemetry: server.telemetry,
        arguments: origin.arguments,
        meta: origin.meta,
        maxBytes: maxTaskBytes,
        steps,
        answers,
        report,
      },
      this.#runner.writerOf(name, attempt),
    )
    const context = {
      server,
      call: new ServedCall(run),
      connection: { revision, caller: origin.client },
      report,
      remote: origin.remote,
    }
    this.#runner.start(task, run, () => runWrapped(tool, checked.value, context, TASKS))
    return undefined
  }

  /** Marks a task as running. Returns false if it is not to be run: it was cancelled or has expired meanwhile; `full` if there is no room to store that. */
  async #begin({ name, version }: ClaimedTask, attempt: number): Promise<boolean | 'full'> {
    const run = crypto.randomUUID()
    let begun = false
    const changed = await this.#runner.writes.until(() =>
      this.#options.records.change(name, (state, current) => {
        // An earlier attempt was stored although the store reported a failure.
        begun = state.run === run
        if (begun || isTerminal(state) || this.#runner.stopped) return undefined
        begun = current === version
        // Somebody who has lost the claim has changed it meanwhile: it is claimed again, with all its entries.
        return begun
          ? { state: { ...state, attempt, started: true, run }, note: true }
          : { state, release: true, note: true }
      }),
    )
    if (changed === 'full') return 'full'
    return begun && changed !== 'unknown'
  }

  #later(milliseconds: number, run: () => void): void {
    // It would keep the process alive.
    if (this.#runner.stopped) return
    const timer = setTimeout(() => {
      this.#timers.delete(timer)
      if (!this.#runner.stopped) run()
    }, milliseconds)
    this.#timers.add(timer)
  }
}
