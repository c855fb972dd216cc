import type { ClientExtension, ExtensionConnection } from '../../client/extension.js'
import { RpcError, withCode } from '../../jsonrpc/errors.js'
import { callHook, markHandled, ignore } from '../../jsonrpc/hook.js'
import { type Params, isObject } from '../../jsonrpc/message.js'
import { truncateJson } from '../../jsonrpc/truncate.js'
import type { CallToolResult } from '../../protocol/model.js'
import { checkNames, namesOf } from '../../schema/names.js'
import { TASKS, TASK_REVISIONS } from './task-name.js'

/** A task, as the server describes it. */
export interface TaskStatus {
  readonly taskId: string
  readonly status: 'working' | 'input_required' | 'completed' | 'failed' | 'cancelled'
  readonly statusMessage?: string
  readonly createdAt: string
  readonly lastUpdatedAt: string
  /** Milliseconds from its creation in which the server keeps it; null: without a limit. */
  readonly ttlMs: number | null
  readonly pollIntervalMs?: number
}

export interface ClientTasksOptions {
  /** Called with every state of a task that is received. The first one has the id, to be stored if the task is to be resumed. */
  onStatus?: (task: TaskStatus) => void
}

export interface ClientTaskOptions {
  /** Stops waiting, and cancels the task. */
  signal?: AbortSignal
}

/** A task of the server, by its id. */
export interface ClientTask {
  readonly id: string
  /** Its current state (`tasks/get`). */
  status(): Promise<TaskStatus>
  /** Polls until the task has ended, and answers its questions. */
  result(options?: ClientTaskOptions): Promise<CallToolResult>
  /** Asks the server to cancel it (`tasks/cancel`). */
  cancel(): Promise<void>
}

const OPTIONS = namesOf<ClientTasksOptions>()('onStatus')
const STATUSES = new Set(['working', 'input_required', 'completed', 'failed', 'cancelled'])

/** Milliseconds between two polls: if the server proposes none, and the limits of what it may propose. */
const POLL = 1000
const SHORTEST = 10
const LONGEST = 60_000

/** The extension for one client: `callTool` waits for tasks until they have ended. */
export function clientTasks(options: ClientTasksOptions = {}): ClientTasks {
  checkNames('clientTasks', options, OPTIONS)
  return new ClientTasks(options)
}

/** What `clientTasks()` makes. */
export class ClientTasks implements ClientExtension {
  readonly id = TASKS
  readonly revisions = TASK_REVISIONS
  readonly methods = {
    'tasks/get': { nameParam: 'taskId' },
    'tasks/update': { nameParam: 'taskId' },
    'tasks/cancel': { nameParam: 'taskId' },
  }
  readonly resultTypes: NonNullable<ClientExtension['resultTypes']>
  readonly #onStatus: ClientTasksOptions['onStatus']
  #connection: ExtensionConnection | undefined

  constructor({ onStatus }: ClientTasksOptions) {
    this.#onStatus = onStatus
    this.resultTypes = {
      task: (created, context) => {
        if (context.method !== 'tools/call')
          throw new TypeError(
            `The response to ${context.method} is a task; only tools/call may be one`,
          )
        return waitFor(taskIn(created), context, context.signal, this.#seen)
      },
    }
  }

  connected(connection: ExtensionConnection): void {
    this.#connection = connection
  }

  /** A task that this or an earlier connection has created. */
  task(id: string): ClientTask {
    const request = (method: string, options?: ClientTaskOptions) =>
      this.#connected().request(method, { taskId: id }, options)
    return {
      id,
      status: async () => {
        const task = taskIn(await request('tasks/get'))
        this.#seen(task)
        return task
      },
      result: async ({ signal = new AbortController().signal } = {}) => {
        const task = taskIn(await request('tasks/get', { signal }))
        const result = await waitFor(task, this.#connected(), signal, this.#seen)
        if (!Array.isArray(result['content']))
          throw new TypeError('The result of the task has no "content"')
        return result as unknown as CallToolResult // the content is not checked
      },
      cancel: async () => {
        await request('tasks/cancel')
      },
    }
  }

  readonly #seen = (task: TaskStatus): void => {
    const onStatus = this.#onStatus
    if (onStatus !== undefined) callHook(() => onStatus(task), ignore)
  }

  #connected(): ExtensionConnection {
    if (this.#connection !== undefined) return this.#connection
    throw new TypeError(
      'clientTasks() is not connected; pass it to connect(target, { extensions })',
    )
  }
}

type Task = TaskStatus & Readonly<Record<string, unknown>>

function taskIn(value: Params): Task {
  const { taskId, status } = value
  if (typeof taskId === 'string' && STATUSES.has(String(status))) return value as unknown as Task // the other members are not checked
  throw new TypeError(
    `A task must have a "taskId" and a known "status"; the server sent ${truncateJson({ taskId, status })}`,
  )
}

/** Polls a task until it has ended. If the caller gives up, or cannot answer, the task is cancelled. */
async function waitFor(
  first: Task,
  connection: ExtensionConnection,
  signal: AbortSignal,
  seen: (task: TaskStatus) => void,
): Promise<Params> {
  const { taskId } = first
  // Not with the signal of the caller, which is aborted.
  const cancel = () =>
    void markHandled(
      connection.request('tasks/cancel', { taskId }, { signal: new AbortController().signal }),
    )
  signal.addEventListener('abort', cancel, { once: true })
  if (signal.aborted) cancel()
  const answered = new Set<string>()
  let task = first
  try {
    for (;;) {
      signal.throwIfAborted()
      seen(task)
      const result = outcomeOf(task)
      if (result !== undefined) return result
      if (task.status === 'input_required')
        await answerQuestions(task, answered, connection, signal, cancel)
      await delay(pollInterval(task), signal)
      task = taskIn(await connection.request('tasks/get', { taskId }, { signal }))
      if (task.taskId !== taskId)
        throw new TypeError('The response to tasks/get describes another task')
    }
  } finally {
    signal.removeEventListener('abort', cancel)
  }
}

/** The result of a task that is completed; throws for one that has failed or was cancelled. */
function outcomeOf({ status, result, error, statusMessage }: Task): Params | undefined {
  switch (status) {
    case 'completed':
      if (isObject(result)) return { resultType: 'complete', ...result }
      throw new TypeError('The completed task has no "result"')
    case 'failed': {
      const { code, message, data }: Params = isObject(error) ? error : {}
      const text = typeof message === 'string' ? message : (statusMessage ?? 'The task failed')
      throw new RpcError(typeof code === 'number' ? code : -32603, text, data)
    }
    case 'cancelled':
      throw withCode('CANCELLED', new Error('The task was cancelled'))
    default:
      return undefined
  }
}

/** Answers each question once, however often the server repeats it. */
async function answerQuestions(
  { taskId, inputRequests }: Task,
  answered: Set<string>,
  connection: ExtensionConnection,
  signal: AbortSignal,
  cancel: () => void,
): Promise<void> {
  if (!isObject(inputRequests)) throw new TypeError('A task needs input but has no "inputRequests"')
  const open = Object.entries(inputRequests).filter(([key]) => !answered.has(key))
  if (open.length === 0) return
  for (const [key] of open) answered.add(key)
  let inputResponses: Params
  try {
    inputResponses = await connection.answer(Object.fromEntries(open), signal)
  } catch (error) {
    cancel()
    throw error
  }
  await connection.request('tasks/update', { taskId, inputResponses }, { signal })
}

function pollInterval({ pollIntervalMs: given }: TaskStatus): number {
  if (typeof given !== 'number' || !(given > 0)) return POLL
  return Math.min(LONGEST, Math.max(SHORTEST, given))
}

function delay(milliseconds: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const abort = () => {
      clearTimeout(timer)
      reject(signal.reason as Error)
    }
    const timer = setTimeout(() => {
      signal.removeEventListener('abort', abort)
      resolve()
    }, milliseconds)
    signal.addEventListener('abort', abort, { once: true })
  })
}
