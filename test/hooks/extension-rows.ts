import { type ClientExtension, connect, memory } from '../../src/client.js'
import { type ExtensionDefinition, extension } from '../../src/extensions.js'
import { createServer, tool } from '../../src/index.js'
import { clientTasks, tasks } from '../../src/tasks.js'
import { extensionNames } from '../official/schema-validator.js'
import { type Hook, type Row, outcome, row } from './modes.js'

for (const name of ['task', 'tasks/get']) extensionNames.add(name)

const NEWEST = '2026-07-28'
const ID = 'com.example/hooks'
const GIVEN_UP = 'Error: given up'
const INTERNAL = 'error -32603'

const serverOf = (definition: Partial<ExtensionDefinition>) =>
  createServer({
    name: 'hooks',
    version: '1',
    tools: [tool({ name: 'it', run: () => 'done' })],
    extensions: [extension({ id: ID, ...definition })],
  })

/** Sends a request; cancels it if there is no response. Afterwards the server must serve the next one. */
async function ask(
  hook: Hook,
  definition: Partial<ExtensionDefinition>,
  method: string,
  params: Readonly<Record<string, unknown>> = {},
  client: Partial<ClientExtension> = {},
): Promise<string> {
  await using connected = await connect(memory(serverOf(definition)), {
    extensions: [{ id: ID, revisions: [NEWEST], ...client }],
  })
  const controller = new AbortController()
  const result = connected.request(method, params, { signal: controller.signal })
  const came = await outcome(result, hook, () => controller.abort(new Error('given up')))
  await connected.request('server/discover')
  return came
}

const call = { name: 'it' }
const listened = { notifications: { it: true } }
const stream = { acknowledged: true, start: () => {}, stop: () => {} }

export const EXTENSION_ROWS: readonly Row[] = [
  row('serve of an extension', INTERNAL, GIVEN_UP, (serve) =>
    ask(serve, { methods: { 'it/get': { serve } } }, 'it/get'),
  ),
  row('callTool of an extension', INTERNAL, GIVEN_UP, (callTool) =>
    ask(callTool, { callTool }, 'tools/call', call),
  ),
  row('listTool of an extension', INTERNAL, INTERNAL, (listTool) =>
    ask(listTool, { listTool }, 'tools/list'),
  ),
  row('check of a tool field', 'TypeError', 'TypeError', async (check) => {
    try {
      createServer({
        name: 'hooks',
        version: '1',
        extensions: [extension({ id: ID, toolFields: { cost: check } })],
        tools: [Object.assign(tool({ name: 'it', run: () => 'done' }), { cost: 1 })],
      })
      return 'a server'
    } catch (error) {
      return error instanceof TypeError || check.mode === 'throws' ? 'TypeError' : 'another error'
    }
  }),
  row('listen of an extension', INTERNAL, GIVEN_UP, (it) =>
    ask(it, { listen: { it } }, 'subscriptions/listen', listened),
  ),
  row('listen of an extension, with another that throws', INTERNAL, INTERNAL, (it) => {
    const other = () => {
      throw new Error('boom as well')
    }
    const notifications = { it: true, other: true }
    return ask(it, { listen: { it, other } }, 'subscriptions/listen', { notifications })
  }),
  row('start of a stream', INTERNAL, GIVEN_UP, (start) =>
    ask(start, { listen: { it: () => ({ ...stream, start }) } }, 'subscriptions/listen', listened),
  ),
  row('stop of a stream, when it is cancelled', GIVEN_UP, GIVEN_UP, async (stop) => {
    const controller = new AbortController()
    const start = () => queueMicrotask(() => controller.abort(new Error('given up')))
    await using client = await connect(
      memory(serverOf({ listen: { it: () => ({ ...stream, start, stop }) } })),
      { extensions: [{ id: ID, revisions: [NEWEST] }] },
    )
    const { signal } = controller
    const came = await outcome(client.request('subscriptions/listen', listened, { signal }), stop)
    await client.request('server/discover')
    return came
  }),
  row('start of an extension', 'result', 'result', (start) =>
    start.mode === 'throws' ? startThatThrows(start) : ask(start, { start }, 'tools/call', call),
  ),
  row('connected of a client extension', 'rejected', 'rejected', async (connected) => {
    const extensions = [{ id: ID, connected: connected as () => void }]
    const opened = connect(memory(serverOf({})), { extensions })
    return await opened.then(
      () => 'connected',
      () => 'rejected',
    )
  }),
  row('onStatus of clientTasks', 'result', 'result', async (onStatus) => {
    const slow = tool({ name: 'it', task: { mode: 'must', poll: 10 }, run: () => 'done' })
    const options = { name: 'hooks', version: '1', tools: [slow], extensions: [tasks()] }
    await using client = await connect(memory(createServer(options)), {
      extensions: [clientTasks({ onStatus })],
    })
    return await outcome(client.callTool('it'), onStatus, () => {})
  }),
  row('stop of an extension', 'result', 'result', (stop) =>
    ask(stop, { stop }, 'tools/call', call),
  ),
]

/** What `start` throws is thrown by the transport. */
async function startThatThrows(start: Hook): Promise<string> {
  try {
    await connect(memory(serverOf({ start })))
    return 'connected'
  } catch (error) {
    return error instanceof Error && error.message.includes('boom') ? 'result' : String(error)
  }
}
