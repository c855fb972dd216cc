import { connect, memory } from '../../src/client.js'
import { extension } from '../../src/extensions.js'
import { type Server, createServer, tool } from '../../src/index.js'
import { MemoryTaskStore, type TaskStore, clientTasks, tasks } from '../../src/tasks.js'
import { RawClient } from '../extensions/raw-client.js'
import { type Hook, type Row, outcome, row, turn } from './modes.js'

const GIVEN_UP = 'Error: given up'
const INTERNAL = 'error -32603'
const ID = 'com.example/hooks'

const tools = [
  tool({ name: 'plain', run: () => 'done' }),
  tool({ name: 'may', task: { mode: 'may', after: 0 }, run: () => 'done' }),
  tool({ name: 'must', task: { mode: 'must', poll: 1 }, run: () => 'done' }),
  tool({
    name: 'endless',
    task: 'must',
    run: (_, { signal }) =>
      new Promise((_resolve, reject) =>
        signal.addEventListener('abort', () => reject(signal.reason as Error)),
      ),
  }),
]

const serverOf = (store: TaskStore) =>
  createServer({ name: 'hooks', version: '1', tools, extensions: [tasks({ store })] })

interface Use {
  server: Server
  method: string
  params?: (taskId: string) => object
  /** Called when there is a task. */
  spoil?: () => void
  /** Whether there is no response if the function never settles: then the request is cancelled. */
  hangs?: true
}

/** Sends a request; cancels it if there is no response. Afterwards the server must serve the next one, and stop. */
async function use(hook: Hook, { server, method, params = () => ({}), spoil, hangs }: Use) {
  const client = new RawClient(server, { capabilities: { extensions: { [ID]: {}, ...DECLARED } } })
  let taskId = ''
  if (spoil !== undefined) {
    taskId = await client.create('endless')
    for (let turns = 0; turns < 5; turns++) await turn()
    spoil()
  }
  const { id, response } = client.send(method, params(taskId))
  let giveUp = () => {}
  const givenUp = new Promise<never>((_, reject) => {
    giveUp = () => {
      client.notify('notifications/cancelled', { requestId: id })
      reject(new Error('given up'))
    }
  })
  const settled = Promise.race([givenUp, response]).then(({ result, error }) => {
    if (error !== undefined) throw Object.assign(new Error(error.message), { code: error.code })
    return { isError: result?.['isError'] }
  })
  const came = await outcome(settled, hook, hangs === true ? () => giveUp() : undefined)
  await client.call('plain')
  await client.close()
  for (let turns = 0; turns < 5; turns++) await turn()
  return came
}

const DECLARED = { 'io.modelcontextprotocol/tasks': {} }
const call = (name: string) => () => ({ name, arguments: {} })
const byId = (taskId: string) => ({ taskId })

/** A store with a method that fails from the start. */
const broken = (methods: Partial<Record<Exclude<keyof TaskStore, 'shared'>, Hook>>) =>
  Object.assign(new MemoryTaskStore(), methods)

/** A store with methods that fail when there is a task. */
function breaking(methods: Partial<Record<Exclude<keyof TaskStore, 'shared'>, Hook>>) {
  const store = new MemoryTaskStore()
  return { server: serverOf(store), spoil: () => void Object.assign(store, methods) }
}

export const TASK_ROWS: readonly Row[] = [
  row('available of an extension', INTERNAL, INTERNAL, (available) => {
    const methods = { 'it/get': { serve: () => ({}) } }
    const extensions = [extension({ id: ID, available, methods })]
    const server = createServer({ name: 'hooks', version: '1', tools: [], extensions })
    server.tools.add(tool({ name: 'plain', run: () => 'done' }))
    return use(available, { server, method: 'it/get' })
  }),
  row('open of a store, and a tool that may be a task', 'result', GIVEN_UP, (open) =>
    use(open, {
      server: serverOf(broken({ open })),
      hangs: true,
      method: 'tools/call',
      params: call('may'),
    }),
  ),
  row('subscribe of a store', 'result', 'result', (subscribe) =>
    use(subscribe, {
      server: serverOf(broken({ subscribe })),
      method: 'tools/call',
      params: call('may'),
    }),
  ),
  row('receiveCommands of a store', 'result', 'result', (receiveCommands) =>
    use(receiveCommands, {
      server: serverOf(broken({ receiveCommands })),
      method: 'tools/call',
      params: call('must'),
    }),
  ),
  row('claim of a store', 'result', 'result', (claim) =>
    use(claim, {
      server: serverOf(broken({ claim })),
      method: 'tools/call',
      params: call('must'),
    }),
  ),
  row('create of a store, and a tool that may be a task', 'result', GIVEN_UP, (create) =>
    use(create, {
      ...breaking({ create }),
      hangs: true,
      method: 'tools/call',
      params: call('may'),
    }),
  ),
  row('create of a store, and a tool that must be a task', INTERNAL, GIVEN_UP, (create) =>
    use(create, {
      ...breaking({ create }),
      hangs: true,
      method: 'tools/call',
      params: call('must'),
    }),
  ),
  row('get of a store', INTERNAL, GIVEN_UP, (get) =>
    use(get, { ...breaking({ get }), hangs: true, method: 'tasks/get', params: byId }),
  ),
  row('change of a store', INTERNAL, GIVEN_UP, (change) =>
    use(change, { ...breaking({ change }), hangs: true, method: 'tasks/cancel', params: byId }),
  ),
  row('release of a store', 'result', 'result', (release) =>
    use(release, { ...breaking({ release }), method: 'tasks/get', params: byId }),
  ),
  row('close of a store', 'result', 'result', (close) =>
    use(close, { ...breaking({ close }), method: 'tasks/get', params: byId }),
  ),
  row('onStatus of clientTasks', 'result', 'result', async (onStatus) => {
    const server = createServer({ name: 'hooks', version: '1', tools, extensions: [tasks()] })
    await using client = await connect(memory(server), { extensions: [clientTasks({ onStatus })] })
    return await outcome(client.callTool('must'), onStatus)
  }),
]
