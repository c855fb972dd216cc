import { INTERNAL_ERROR, INVALID_PARAMS, RpcError } from '../../jsonrpc/errors.js'
import { type Params, isObject } from '../../jsonrpc/message.js'
import type { Caller } from '../../server/call.js'
import { notStored } from './task-calls.js'
import { UNREADABLE } from './task-codec.js'
import type { TaskClaims } from './task-claims.js'
import { isTaskId, nameOf, ownerOf, unknownTask } from './task-id.js'
import { type TaskEntry, type TaskState, detailedTask } from './task-record.js'
import { StoreError, type TaskRecords } from './task-records.js'
import type { RunnerOptions, TaskRunner } from './task-runner.js'

/** Serves `tasks/get`, `tasks/update` and `tasks/cancel`. */
export class TaskRequests {
  readonly #runner: TaskRunner
  readonly #claims: TaskClaims
  readonly #records: TaskRecords
  readonly #ready: Promise<void>

  constructor(
    runner: TaskRunner,
    claims: TaskClaims,
    { records, ready }: Pick<RunnerOptions, 'records' | 'ready'>,
  ) {
    this.#runner = runner
    this.#claims = claims
    this.#records = records
    this.#ready = ready
  }

  /** The task of a caller, as `tasks/get` returns it. */
  async get(taskId: unknown, caller: Caller): Promise<Params> {
    const { id, state } = await this.findReadable(taskId, caller)
    return detailedTask(id, state)
  }

  async update(taskId: unknown, responses: unknown, caller: Caller): Promise<void> {
    const { name } = await this.findReadable(taskId, caller)
    if (!isObject(responses) || !Object.values(responses).every(isObject))
      throw new RpcError(
        INVALID_PARAMS,
        'Invalid params: "inputResponses" must be an object with a result for each key',
      )
    const write = this.#records.change(name, (state) => {
      if (state.status !== 'input_required' || state.unreadable === true) return undefined
      const open = new Map(Object.entries(state.open))
      const append: string[] = []
      for (const [wireKey, response] of Object.entries(responses)) {
        const question = open.get(wireKey)
        // Unknown and answered keys are ignored.
        if (question === undefined) continue
        open.delete(wireKey)
        const { key: answer, digest } = question
        append.push(JSON.stringify({ answer, digest, response } satisfies TaskEntry))
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
    if ((await acknowledged(write)) === 'full') throw noRoomForAnswers()
    this.#claims.claim()
  }

  async cancel(taskId: unknown, caller: Caller): Promise<void> {
    const { name } = await this.#find(taskId, caller)
    await acknowledged(this.#runner.cancel(name))
  }

  /** Throws if the content of the task is sealed with a key that this server does not have. */
  async findReadable(taskId: unknown, caller: Caller): Promise<FoundTask> {
    const found = await this.#find(taskId, caller)
    if (found.state.unreadable === true) throw new RpcError(INTERNAL_ERROR, UNREADABLE)
    return found
  }

  /** Throws the same error for a task that is unknown, has expired or belongs to somebody else. */
  async #find(taskId: unknown, caller: Caller): Promise<FoundTask> {
    if (typeof taskId !== 'string')
      throw new RpcError(INVALID_PARAMS, 'Invalid params: "taskId" must be the id of a task')
    if (!isTaskId(taskId)) throw unknownTask()
    await this.#ready
    const name = await nameOf(taskId)
    const state = await this.#read(name, ownerOf(caller))
    if (state === undefined) throw unknownTask()
    return { id: taskId, name, state }
  }

  async #read(name: string, owner: string): Promise<TaskState | undefined> {
    try {
      return await this.#records.get(name, owner)
    } catch (error) {
      throw error instanceof StoreError ? notRead() : error
    }
  }
}

interface FoundTask {
  readonly id: string
  readonly name: string
  readonly state: TaskState
}

/** The store has failed: the task may exist. */
function notRead(): RpcError {
  return new RpcError(
    INTERNAL_ERROR,
    'The task could not be read, because the store of tasks has failed; try again later',
  )
}

function noRoomForAnswers(): RpcError {
  return new RpcError(
    INTERNAL_ERROR,
    'There is no room for the answers with the task; answer with less, or cancel the task',
  )
}

/** What is not stored is not acknowledged: the client can try again. */
async function acknowledged<Value>(write: Promise<Value>): Promise<Value> {
  try {
    return await write
  } catch (error) {
    throw error instanceof StoreError ? notStored() : error
  }
}
