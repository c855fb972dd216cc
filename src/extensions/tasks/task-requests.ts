import { INVALID_PARAMS, RpcError } from '../../jsonrpc/errors.js'
import { type Params, isObject } from '../../jsonrpc/message.js'
import type { Caller } from '../../server/call.js'
import { full } from './task-calls.js'
import { isTaskId, nameOf, ownerOf, unknownTask } from './task-id.js'
import { type TaskEntry, type TaskState, detailedTask } from './task-record.js'
import type { TaskRecords } from './task-records.js'
import type { TaskRunner } from './task-runner.js'

/** Serves `tasks/get`, `tasks/update` and `tasks/cancel`. */
export class TaskRequests {
  readonly #runner: TaskRunner
  readonly #records: TaskRecords

  constructor(runner: TaskRunner, records: TaskRecords) {
    this.#runner = runner
    this.#records = records
  }

  /** The task of a caller, as `tasks/get` returns it. */
  async get(taskId: unknown, caller: Caller): Promise<Params> {
    const { id, state } = await this.find(taskId, caller)
    return detailedTask(id, state)
  }

  async update(taskId: unknown, responses: unknown, caller: Caller): Promise<void> {
    const { name } = await this.find(taskId, caller)
    if (!isObject(responses) || !Object.values(responses).every(isObject))
      throw new RpcError(
        INVALID_PARAMS,
        'Invalid params: "inputResponses" must be an object with a result for each key',
      )
    const changed = await this.#records.change(name, (state) => {
      if (state.status !== 'input_required') return undefined
      const open = new Map(Object.entries(state.open))
      const append: TaskEntry[] = []
      for (const [wireKey, response] of Object.entries(responses)) {
        const question = open.get(wireKey)
        // Unknown and answered keys are ignored.
        if (question === undefined) continue
        open.delete(wireKey)
        append.push({ answer: question.key, digest: question.digest, response })
      }
      if (append.length === 0) return undefined
      const answered = open.size === 0
      const status = answered ? 'working' : state.status
      return {
        state: { ...state, status, open: Object.fromEntries(open) },
        append,
        runnable: answered,
      }
    })
    if (changed === 'full') throw full()
    this.#runner.claim()
  }

  async cancel(taskId: unknown, caller: Caller): Promise<void> {
    const { name } = await this.find(taskId, caller)
    await this.#runner.cancel(name)
  }

  /** Throws the same error for a task that is unknown, has expired or belongs to somebody else. */
  async find(
    taskId: unknown,
    caller: Caller,
  ): Promise<{ id: string; name: string; state: TaskState }> {
    if (typeof taskId !== 'string')
      throw new RpcError(INVALID_PARAMS, 'Invalid params: "taskId" must be the id of a task')
    if (!isTaskId(taskId)) throw unknownTask()
    const name = await nameOf(taskId)
    const stored = await this.#records.get(name)
    if (stored === undefined || stored.owner !== ownerOf(caller)) throw unknownTask()
    return { id: taskId, name, state: stored.state }
  }
}
