import { INTERNAL_ERROR, RpcError, withCode } from '../../jsonrpc/errors.js'
import { type Params, isObject } from '../../jsonrpc/message.js'
import { truncate, truncateJson } from '../../jsonrpc/truncate.js'

/** A task, as the server describes it. */
export interface TaskStatus {
  readonly taskId: string
  readonly status: 'working' | 'input_required' | 'completed' | 'failed' | 'cancelled'
  /** At most 2000 characters of what the server says about the status. */
  readonly statusMessage?: string
  readonly createdAt: string
  readonly lastUpdatedAt: string
  /** Milliseconds from its creation in which the server keeps it; null: without a limit. */
  readonly ttlMs: number | null
  readonly pollIntervalMs?: number
}

/** A state of a task, with what belongs to its status. */
export interface ReceivedTask {
  readonly status: TaskStatus
  readonly inputRequests: unknown
  readonly result: unknown
  readonly error: unknown
}

/** Maximum characters of a status message that are kept. */
const MAX_MESSAGE = 2000
/** Maximum characters of an id, which is sent with every request. */
const MAX_ID = 8192

/** Milliseconds between two polls: if the server proposes none, and the limits of what it may propose. */
const POLL = 1000
const SHORTEST = 10
const LONGEST = 60_000

/** Reads the response to `tasks/get`. Throws if it is not the task. */
export function readTaskOf(id: string, response: Params): ReceivedTask {
  const task = readTask(response)
  if (task.status.taskId === id) return task
  throw withCode(
    'INVALID_RESPONSE',
    new TypeError('The response to tasks/get describes another task'),
  )
}

/** Reads a task in a result or a notification. Throws if it is not one. */
export function readTask(value: Params): ReceivedTask {
  const { taskId, createdAt, lastUpdatedAt, ttlMs, pollIntervalMs, statusMessage } = value
  const status = statusOf(value['status'])
  if (typeof taskId !== 'string' || taskId.length > MAX_ID || status === undefined)
    throw withCode(
      'INVALID_RESPONSE',
      new TypeError(
        `A task must have a "taskId" of at most ${MAX_ID} characters and a known "status"; the server sent ${truncateJson(taskId)} and ${truncateJson(value['status'])}`,
      ),
    )
  const { inputRequests, result, error } = value
  return {
    status: {
      taskId,
      status,
      ...(typeof statusMessage === 'string'
        ? { statusMessage: truncate(statusMessage, MAX_MESSAGE) }
        : {}),
      createdAt: typeof createdAt === 'string' ? createdAt : '',
      lastUpdatedAt: typeof lastUpdatedAt === 'string' ? lastUpdatedAt : '',
      ttlMs: typeof ttlMs === 'number' ? ttlMs : null,
      ...(typeof pollIntervalMs === 'number' ? { pollIntervalMs } : {}),
    },
    inputRequests,
    result,
    error,
  }
}

function statusOf(value: unknown): TaskStatus['status'] | undefined {
  switch (value) {
    case 'working':
    case 'input_required':
    case 'completed':
    case 'failed':
    case 'cancelled':
      return value
    default:
      return undefined
  }
}

export function isEnded({ status }: TaskStatus): boolean {
  return status !== 'working' && status !== 'input_required'
}

/** The result of a task that has ended; throws for one that has failed or was cancelled. */
export function outcomeOf({ status, result, error }: ReceivedTask): Params {
  const { statusMessage } = status
  if (status.status === 'failed') {
    const { code, message, data }: Params = isObject(error) ? error : {}
    const text = typeof message === 'string' ? message : (statusMessage ?? 'The task failed')
    throw new RpcError(Number.isInteger(code) ? Number(code) : INTERNAL_ERROR, text, data)
  }
  if (status.status === 'cancelled') {
    const reason = statusMessage === undefined ? '' : `: ${statusMessage}`
    throw withCode('CANCELLED', new Error(`The task was cancelled${reason}`))
  }
  const { resultType = 'complete' } = isObject(result) ? result : {}
  if (isObject(result) && resultType === 'complete') return { resultType, ...result }
  throw withCode(
    'INVALID_RESPONSE',
    new TypeError(
      isObject(result)
        ? `The result of the task must be complete, but has the resultType ${truncateJson(resultType)}`
        : 'The completed task has no "result"',
    ),
  )
}

/** Milliseconds until the next poll. */
export function pollInterval({ pollIntervalMs: given }: TaskStatus): number {
  if (given === undefined || !(given > 0)) return POLL
  return Math.min(LONGEST, Math.max(SHORTEST, given))
}

/** Whether a state is older than another one. Unreadable times are equal. */
export function isOlder(one: TaskStatus, other: TaskStatus): boolean {
  return Date.parse(one.lastUpdatedAt) < Date.parse(other.lastUpdatedAt)
}

/** Milliseconds for which the task had existed when its state was written, by the clock of the server. */
export function ageOf({ createdAt, lastUpdatedAt }: TaskStatus): number {
  const age = Date.parse(lastUpdatedAt) - Date.parse(createdAt)
  return age > 0 ? age : 0
}
