import { INTERNAL_ERROR, INVALID_PARAMS, RpcError } from '../../jsonrpc/errors.js'
import { MISSING_CLIENT_CAPABILITY } from '../../protocol/errors.js'
import { checkNames, namesOf } from '../../schema/names.js'
import type { Call } from '../../server/call.js'
import { type Extension, type ExtensionStream, extension } from '../../server/extensions.js'
import { MemoryTaskStore } from '../../stores/memory-task-store.js'
import type { TaskStore } from '../../stores/task-store.js'
import { TaskEngine } from './task-engine.js'
import { checkTaskOptions, taskOptionsOf } from './task-options.js'
import { TASKS, TASK_REVISIONS } from './task-name.js'
import { TaskRecords } from './task-records.js'
import { TaskStream } from './task-stream.js'

export interface TasksOptions {
  /** Where tasks are stored (default: in memory, `new MemoryTaskStore()`). */
  store?: TaskStore
  /** Maximum tasks whose handlers run at the same time (default 256), at most half of them for one principal; others are queued. */
  concurrency?: number
  /** Maximum bytes of one task: its arguments, steps and answers, or its result (default 4 MiB). */
  maxTaskBytes?: number
  /** Whether this process runs tasks (default true). If not, other processes that share the store do: servers, or `ccmcp worker`. */
  workers?: boolean
  /**
   * Whether arguments, steps, answers, questions, status messages and results are stored encrypted, with `state.keys` of
   * the server (default false). A task that was stored otherwise, or with another key, fails.
   */
  seal?: boolean
}

const OPTIONS = namesOf<TasksOptions>()('store concurrency maxTaskBytes workers seal')

/** Maximum tasks of one `subscriptions/listen`. */
const MAX_LISTENED = 256

/** The extension for tasks: tools with a `task` may be answered with a task that clients poll. */
export function tasks(options: TasksOptions = {}): Extension {
  checkNames('tasks', options, OPTIONS)
  const store: TaskStore = options.store ?? new MemoryTaskStore()
  const { concurrency = 256, maxTaskBytes = 4 * 1024 * 1024, workers = true } = options
  const { seal = false } = options
  if (!(Number.isInteger(concurrency) && concurrency > 0))
    throw new TypeError('tasks: "concurrency" must be an integer greater than 0')
  if (!(typeof maxTaskBytes === 'number' && maxTaskBytes >= 4096))
    throw new TypeError('tasks: "maxTaskBytes" must be a number of bytes, at least 4096')
  if (typeof workers !== 'boolean') throw new TypeError('tasks: "workers" must be true or false')
  if (typeof seal !== 'boolean') throw new TypeError('tasks: "seal" must be true or false')
  if (!workers && store.shared !== true)
    throw new TypeError(
      'tasks: "workers: false" needs a store that several processes share, such as that of redis(); nobody else could run the tasks',
    )
  const records = new TaskRecords(store, maxTaskBytes)
  const engine = new TaskEngine(records, { concurrency, maxTaskBytes, workers, seal })
  return extension({
    id: TASKS,
    revisions: TASK_REVISIONS,
    resultTypes: ['task'],
    outermost: true,
    toolFields: { task: checkTaskOptions },
    methods: {
      'tasks/get': {
        nameParam: 'taskId',
        serve: ({ taskId }, { client }) => engine.running.requests.get(taskId, client),
      },
      'tasks/update': {
        nameParam: 'taskId',
        async serve({ taskId, inputResponses }, { client }) {
          await engine.running.requests.update(taskId, inputResponses, client)
          return {}
        },
      },
      'tasks/cancel': {
        nameParam: 'taskId',
        async serve({ taskId }, { client }) {
          await engine.running.requests.cancel(taskId, client)
          return {}
        },
      },
    },
    listTool: (listing, tool, { settings }) =>
      settings === undefined && taskOptionsOf(tool)?.mode === 'must' ? undefined : listing,
    callTool: (call, run) => {
      const task = taskOptionsOf(call.tool)
      if (task === undefined) return run()
      if (task.mode === 'must' && engine.problem !== undefined) throw unavailable()
      if (call.settings !== undefined) return engine.running.calls.call(call, task, run)
      if (task.mode === 'must') throw missingCapability()
      return run()
    },
    listen: { taskIds: (value, call) => listen(value, call, engine) },
    available: () => engine.available(),
    start: (server, report, serving) => engine.start(server, report, serving),
    stop: () => engine.stop(),
  })
}

/** Opens a stream for the tasks of the caller; ids that are unknown are left out of the acknowledgement. */
async function listen(
  value: unknown,
  { client }: Call,
  engine: TaskEngine,
): Promise<ExtensionStream> {
  const { requests } = engine.running
  if (!Array.isArray(value) || value.length > MAX_LISTENED)
    throw new RpcError(
      INVALID_PARAMS,
      `Invalid params: "taskIds" must be a list of at most ${MAX_LISTENED} task ids`,
    )
  const ids = new Map<string, string>()
  for (const taskId of new Set<unknown>(value))
    try {
      const { id, name } = await requests.findReadable(taskId, client)
      ids.set(name, id)
    } catch (error) {
      if (!(error instanceof RpcError)) throw error
    }
  return new TaskStream(ids, engine.records)
}

function unavailable(): RpcError {
  return new RpcError(
    INTERNAL_ERROR,
    'This tool requires tasks, but the task store is not available: another process is using it, or it has failed. See the log of the server',
  )
}

function missingCapability(): RpcError {
  return new RpcError(
    MISSING_CLIENT_CAPABILITY,
    `This tool needs the extension ${TASKS}; declare it in the client's capabilities`,
    { requiredCapabilities: { extensions: { [TASKS]: {} } } },
  )
}
