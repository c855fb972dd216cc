import type { CallOptions } from '../../client/call-options.js'
import type { ClientExtension, ExtensionConnection } from '../../client/extension.js'
import { withCode } from '../../jsonrpc/errors.js'
import { callHook, ignore } from '../../jsonrpc/hook.js'
import type { Params } from '../../jsonrpc/message.js'
import type { CallToolResult } from '../../protocol/model.js'
import { checkNames, namesOf } from '../../schema/names.js'
import { type TaskStatus, readTask, readTaskOf } from './client-task-state.js'
import { type WaitOptions, waitFor } from './client-task-wait.js'
import { WatchedTasks } from './client-task-watch.js'
import { TASKS, TASK_REVISIONS } from './task-name.js'

export interface ClientTasksOptions {
  /**
   * Called with every state of a task that is received, and with the params of the `tools/call` that has created it. The
   * first state has the id, to be stored if the task is to be resumed.
   */
  onStatus?: (task: TaskStatus, call?: Params) => unknown
  /** Maximum milliseconds to wait for a task (default 24 hours); then it is cancelled. */
  maxWait?: number
}

/** A task of the server, by its id. Its requests reject with −32602 if the server does not know it. */
export interface ClientTask {
  readonly id: string
  /** Its current state (`tasks/get`). */
  status(options?: CallOptions): Promise<TaskStatus>
  /** Waits until the task has ended, and answers its questions. The task is cancelled when the signal fires. */
  result(options?: CallOptions): Promise<CallToolResult>
  /** Asks the server to cancel it (`tasks/cancel`). It may take a while, or complete nevertheless. */
  cancel(options?: CallOptions): Promise<void>
}

/** What a client with `clientTasks()` has. */
export interface TaskMembers {
  /** A task that this client, or another one before, has created. */
  task(id: string): ClientTask
}

const OPTIONS = namesOf<ClientTasksOptions>()('onStatus maxWait')
const DAY = 86_400_000

/** The extension for clients: `callTool` waits for tasks until they have ended, `task(id)` resumes one. */
export function clientTasks(options: ClientTasksOptions = {}): ClientExtension<TaskMembers> {
  checkNames('clientTasks', options, OPTIONS)
  const { onStatus, maxWait = DAY } = options
  if (!(typeof maxWait === 'number' && maxWait > 0))
    throw new TypeError('clientTasks: "maxWait" must be a number of milliseconds, greater than 0')
  const clients = new WeakMap<ExtensionConnection, WatchedTasks>()
  const watchedBy = (connection: ExtensionConnection) => {
    const watched = clients.get(connection) ?? new WatchedTasks()
    clients.set(connection, watched)
    return watched
  }
  const seen = (call?: Params) => (task: TaskStatus) => {
    if (onStatus !== undefined) callHook(() => onStatus(task, call), ignore)
  }
  return {
    id: TASKS,
    revisions: TASK_REVISIONS,
    methods: {
      'tasks/get': { nameParam: 'taskId' },
      'tasks/update': { nameParam: 'taskId' },
      'tasks/cancel': { nameParam: 'taskId' },
    },
    resultTypes: {
      task(created, { method, params, signal, request, connection }) {
        if (method !== 'tools/call')
          throw withCode(
            'INVALID_RESPONSE',
            new TypeError(`The response to ${method} is a task; only tools/call may be one`),
          )
        const watched = watchedBy(connection)
        const { _meta, ...call } = params ?? {}
        const own = { isNew: true, connection, request, watched, signal, maxWait, seen: seen(call) }
        return waitFor(readTask(created), own)
      },
    },
    notifications: {
      'notifications/tasks': (params, { connection }) => watchedBy(connection).notified(params),
    },
    connected: (connection) => ({
      task: (id) =>
        taskOf(id, connection, { watched: watchedBy(connection), maxWait, seen: seen() }),
    }),
  }
}

function taskOf(
  taskId: string,
  connection: ExtensionConnection,
  waiting: Pick<WaitOptions, 'watched' | 'maxWait' | 'seen'>,
): ClientTask {
  if (typeof taskId !== 'string') throw new TypeError('client.task: the id must be a string')
  return {
    id: taskId,
    async status(options) {
      const response = await connection.request('tasks/get', { taskId }, options)
      const { status } = readTaskOf(taskId, response)
      waiting.seen(status)
      return status
    },
    async result(options = {}) {
      const { signal = new AbortController().signal, ...times } = options
      const request: WaitOptions['request'] = (method, params, own) =>
        connection.request(method, params, { ...times, ...own })
      const first = readTaskOf(taskId, await request('tasks/get', { taskId }, { signal }))
      const result = await waitFor(first, { ...waiting, isNew: false, connection, request, signal })
      if (Array.isArray(result['content'])) return result as unknown as CallToolResult // the content is not checked
      throw withCode('INVALID_RESPONSE', new TypeError('The result of the task has no "content"'))
    },
    async cancel(options) {
      await connection.request('tasks/cancel', { taskId }, options)
    },
  }
}
