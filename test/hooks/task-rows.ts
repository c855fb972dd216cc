import { connect, memory } from '../../src/client.js'
import { createServer, tool } from '../../src/index.js'
import {
  type ClientTasksOptions,
  MemoryTaskStore,
  type TaskStore,
  clientTasks,
  tasks,
} from '../../src/tasks.js'
import { type Hook, type Row, outcome, row, turn } from './modes.js'

const GIVEN_UP = 'Error: given up'
const INTERNAL = 'error -32603'

const tools = [
  tool({ name: 'may', task: { mode: 'may', after: 0 }, run: () => 'done' }),
  tool({ name: 'must', task: { mode: 'must', poll: 1 }, run: () => 'done' }),
]

/** Uses a server whose store has methods that fail. It must serve the next request. */
async function use(
  hook: Hook,
  methods: Partial<Record<keyof TaskStore, Hook>>,
  method: string,
  params: (taskId: string) => Readonly<Record<string, unknown>>,
  options: ClientTasksOptions = {},
): Promise<string> {
  const store = new MemoryTaskStore()
  const server = createServer({
    name: 'hooks',
    version: '1',
    tools,
    extensions: [tasks({ store })],
  })
  // Those that are called at the start must fail from the start, the others when there is a task.
  const early = ['open', 'subscribe', 'receiveCommands', 'claim'].some((name) => name in methods)
  if (early) Object.assign(store, methods)
  const extension = clientTasks(options)
  const client = await connect(memory(server), { extensions: [extension] })
  let taskId = ''
  if (!early) {
    const created: unknown = await client
      .request('tools/call', { name: 'must', arguments: {} })
      .catch(() => undefined)
    taskId = String(Object(created)['taskId'])
    for (let turns = 0; turns < 5; turns++) await turn()
    Object.assign(store, methods)
  }
  const controller = new AbortController()
  const result = client.request(method, params(taskId), { signal: controller.signal })
  const came = await outcome(result, hook, () => controller.abort(new Error('given up')))
  await client.request('server/discover')
  await client.close()
  for (let turns = 0; turns < 5; turns++) await turn()
  return came
}

const call = (name: string) => () => ({ name, arguments: {} })
const id = (taskId: string) => ({ taskId })

export const TASK_ROWS: readonly Row[] = [
  row('open of a TaskStore, and a tool that may be a task', 'result', GIVEN_UP, (open) =>
    use(open, { open }, 'tools/call', call('may')),
  ),
  row('create of a TaskStore, and a tool that may be a task', 'result', GIVEN_UP, (create) =>
    use(create, { create }, 'tools/call', call('may')),
  ),
  row('create of a TaskStore, and a tool that must be a task', INTERNAL, GIVEN_UP, (create) =>
    use(create, { create }, 'tools/call', call('must')),
  ),
  row('get of a TaskStore', INTERNAL, GIVEN_UP, (get) => use(get, { get }, 'tasks/get', id)),
  row('claim of a TaskStore', 'result', 'result', (claim) =>
    use(claim, { claim }, 'tools/call', call('must')),
  ),
  row('subscribe of a TaskStore', 'result', 'result', (subscribe) =>
    use(subscribe, { subscribe }, 'tools/call', call('may')),
  ),
  row('receiveCommands of a TaskStore', 'result', 'result', (receiveCommands) =>
    use(receiveCommands, { receiveCommands }, 'tools/call', call('must')),
  ),
  row('release of a TaskStore', 'result', 'result', (release) =>
    use(release, { release }, 'tasks/get', id),
  ),
  row('close of a TaskStore', 'result', 'result', (close) =>
    use(close, { close }, 'tasks/get', id),
  ),
  row('change of a TaskStore', INTERNAL, GIVEN_UP, cancelRunning),
  row('onStatus of clientTasks', 'result', 'result', async (onStatus) => {
    const server = createServer({ name: 'hooks', version: '1', tools, extensions: [tasks()] })
    await using client = await connect(memory(server), { extensions: [clientTasks({ onStatus })] })
    return await outcome(client.callTool('must'), onStatus)
  }),
]

/** Cancels a task that is running. */
async function cancelRunning(change: Hook): Promise<string> {
  const store = new MemoryTaskStore()
  const endless = tool({
    name: 'endless',
    task: 'must',
    run: (_, { signal }) =>
      new Promise((_resolve, reject) =>
        signal.addEventListener('abort', () => reject(signal.reason as Error)),
      ),
  })
  const server = createServer({
    name: 'hooks',
    version: '1',
    tools: [endless],
    extensions: [tasks({ store })],
  })
  const client = await connect(memory(server), { extensions: [clientTasks()] })
  const created: unknown = await client.request('tools/call', { name: 'endless', arguments: {} })
  Object.assign(store, { change })
  const controller = new AbortController()
  const params = { taskId: String(Object(created)['taskId']) }
  const result = client.request('tasks/cancel', params, { signal: controller.signal })
  const came = await outcome(result, change, () => controller.abort(new Error('given up')))
  await client.close()
  for (let turns = 0; turns < 5; turns++) await turn()
  return came
}
