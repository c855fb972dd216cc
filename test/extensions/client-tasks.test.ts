import { afterEach, describe, expect, it, vi } from 'vitest'
import { type Client, RpcError, type Target, connect, http, memory } from '../../src/client.js'
import { listen } from '../../src/http.js'
import { type Call, type Tool, createServer, form, tool } from '../../src/index.js'
import { type TaskStatus, clientTasks, tasks } from '../../src/tasks.js'
import { hostileServers } from '../official/hostile.js'
import { extensionNames } from '../official/schema-validator.js'
import { memoryChannels } from '../../src/transports/memory.js'

for (const name of ['task', 'notifications/tasks', 'tasks/get', 'tasks/update', 'tasks/cancel'])
  extensionNames.add(name)

const NAME = {
  type: 'object',
  properties: { name: { type: 'string' } },
  required: ['name'],
} as const
const POLL = { mode: 'must', poll: 10 } as const

let aborted = 0
const tools: Tool[] = [
  tool({
    name: 'greet',
    task: POLL,
    async run(_, call) {
      const { first } = await call.ask({ first: form({ message: 'First?', schema: NAME }) })
      const { last } = await call.ask({ last: form({ message: 'Last?', schema: NAME }) })
      return `Hello, ${first.name} ${last.name}!`
    },
  }),
  tool({
    name: 'fail',
    task: POLL,
    run() {
      throw new RpcError(-32042, 'Out of order', { part: 7 })
    },
  }),
  {
    name: 'wait',
    input: { type: 'object' },
    task: POLL,
    run: (_: unknown, { signal }: Call) =>
      new Promise<string>((_resolve, reject) =>
        signal.addEventListener('abort', () => {
          aborted++
          reject(signal.reason as Error)
        }),
      ),
  },
]
const serverOf = () => createServer({ name: 'x', version: '1', tools, extensions: [tasks()] })

const open: { close(): Promise<unknown> }[] = []
afterEach(async () => {
  for (const each of open.splice(0).toReversed()) await each.close()
})
async function opened(target: Target, options: Parameters<typeof connect>[1]): Promise<Client> {
  const client = await connect(target, options)
  open.push(client)
  return client
}

const elicit = vi.fn(({ message }: { message: string }) => ({
  action: 'accept' as const,
  content: { name: message === 'First?' ? 'Ada' : 'Lovelace' },
}))

describe.each(['memory', 'http'] as const)('over %s', (transport) => {
  async function target() {
    const server = serverOf()
    if (transport === 'memory') return memory(server)
    const listening = await listen(server, { port: 0 })
    open.push(listening)
    return http(listening.url)
  }

  it('waits for the end of a task, and answers each question once', async () => {
    elicit.mockClear()
    const states: TaskStatus[] = []
    const extension = clientTasks({ onStatus: (task) => void states.push(task) })
    const client = await opened(await target(), { extensions: [extension], elicit })
    expect(await client.callTool('greet')).toMatchObject({
      content: [{ type: 'text', text: 'Hello, Ada Lovelace!' }],
    })
    expect(elicit).toHaveBeenCalledTimes(2)
    expect(states[0]).toMatchObject({ status: 'working' })
    expect(states.at(-1)).toMatchObject({ status: 'completed', taskId: states[0]?.taskId })
  })

  it('rejects with the error of a failed task', async () => {
    const client = await opened(await target(), { extensions: [clientTasks()] })
    await expect(client.callTool('fail')).rejects.toMatchObject({
      code: -32042,
      message: 'Out of order',
      data: { part: 7 },
    })
  })

  it('cancels the task when the caller gives up', async () => {
    aborted = 0
    const controller = new AbortController()
    let taskId = ''
    const onStatus = (task: TaskStatus) => {
      taskId = task.taskId
      controller.abort(new Error('enough'))
    }
    const extension = clientTasks({ onStatus })
    const client = await opened(await target(), { extensions: [extension] })
    const { signal } = controller
    await expect(client.callTool('wait', {}, { signal })).rejects.toThrow('enough')
    await vi.waitUntil(() => aborted === 1)
    expect(await extension.task(taskId).status()).toMatchObject({ status: 'cancelled' })
    await expect(extension.task(taskId).result()).rejects.toMatchObject({ code: 'CANCELLED' })
  })

  it('cancels a task whose questions it cannot answer', async () => {
    let taskId = ''
    const extension = clientTasks({ onStatus: (task) => void (taskId = task.taskId) })
    const fails = () => {
      throw new Error('the user has left')
    }
    const client = await opened(await target(), { extensions: [extension], elicit: fails })
    await expect(client.callTool('greet')).rejects.toThrow('the user has left')
    await vi.waitUntil(async () => (await extension.task(taskId).status()).status === 'cancelled')
  })

  it('resumes a task by its id on another connection', async () => {
    const to = await target()
    const controller = new AbortController()
    const created = new Promise<string>((resolve) => {
      const onStatus = ({ taskId }: TaskStatus) => resolve(taskId)
      const never = () => new Promise<never>(() => {})
      void opened(to, { extensions: [clientTasks({ onStatus })], elicit: never }).then((client) =>
        client.callTool('greet', {}, { signal: controller.signal }).catch(() => {}),
      )
    })
    const id = await created
    const extension = clientTasks()
    await opened(to, { extensions: [extension], elicit })
    const result = await extension.task(id).result()
    expect(result.content).toEqual([{ type: 'text', text: 'Hello, Ada Lovelace!' }])
    await expect(extension.task('unknown').result()).rejects.toMatchObject({ code: -32602 })
    await extension.task(id).cancel()
    expect(await extension.task(id).status()).toMatchObject({ status: 'completed' })
  })
})

it('is not declared in revisions without tasks, and plain calls work', async () => {
  const server = createServer({
    name: 'x',
    version: '1',
    extensions: [tasks()],
    tools: [tool({ name: 'may', task: 'may', run: () => 'plain' })],
  })
  const options = { extensions: [clientTasks()], revision: '2025-11-25' as const }
  const client = await opened(memory(server), options)
  expect(await client.callTool('may')).toMatchObject({ content: [{ text: 'plain' }] })
})

describe('a server that does not follow the specification', () => {
  /** Responds to tools/call and tasks/get with these results, one after the other. */
  function server(...results: object[]): Target & { methods: string[] } {
    const methods: string[] = []
    return {
      methods,
      open() {
        const [client, other] = memoryChannels()
        hostileServers.add(client).add(other)
        other.receive({
          frame(frame) {
            const { id, method } = JSON.parse(frame) as { id?: number; method: string }
            methods.push(method)
            if (id === undefined) return
            const opening = {
              supportedVersions: ['2026-07-28'],
              capabilities: {},
              serverInfo: { name: 's', version: '1' },
              resultType: 'complete',
            }
            const polled =
              method === 'tools/call' || method === 'tasks/get' || method === 'prompts/get'
            const next = polled ? results.shift() : { resultType: 'complete' }
            const result = method === 'server/discover' ? opening : next
            other.send(JSON.stringify({ jsonrpc: '2.0', id, result }))
          },
          malformed: () => {},
          closed: () => {},
        })
        return client
      },
    }
  }
  const task = { resultType: 'task', taskId: 't', status: 'working', pollIntervalMs: 0 }
  const got = (more: object) => ({ ...task, resultType: 'complete', pollIntervalMs: 10, ...more })

  it.each([
    ['no id', [{ ...task, taskId: 7 }], '"taskId"'],
    ['an unknown status', [{ ...task, status: 'paused' }], '"status"'],
    ['no result', [{ ...task, pollIntervalMs: 10 }, got({ status: 'completed' })], 'no "result"'],
    ['another task', [{ ...task, pollIntervalMs: 10 }, got({ taskId: 'u' })], 'another task'],
    [
      'no questions',
      [{ ...task, pollIntervalMs: 10 }, got({ status: 'input_required' })],
      'no "inputRequests"',
    ],
    ['no error', [{ ...task, pollIntervalMs: 10 }, got({ status: 'failed' })], 'The task failed'],
  ])('with %s', async (_, results, message) => {
    const client = await opened(server(...results), { extensions: [clientTasks()] })
    await expect(client.callTool('x')).rejects.toThrow(message)
  })

  it('with a task as the result of another method', async () => {
    const client = await opened(server(task), { extensions: [clientTasks()] })
    await expect(client.getPrompt('x')).rejects.toThrow('only tools/call')
  })

  it('with a question that is repeated: it is answered once', async () => {
    elicit.mockClear()
    const inputRequests = {
      'first.1': {
        method: 'elicitation/create',
        params: { message: 'First?', requestedSchema: {} },
      },
    }
    const asks = got({ status: 'input_required', inputRequests })
    const done = got({ status: 'completed', result: { content: [] } })
    const target = server({ ...task, pollIntervalMs: 10 }, asks, asks, asks, done)
    const client = await opened(target, { extensions: [clientTasks()], elicit })
    expect(await client.callTool('x')).toMatchObject({ content: [] })
    expect(elicit).toHaveBeenCalledTimes(1)
    expect(target.methods.filter((method) => method === 'tasks/update')).toHaveLength(1)
  })
})

it('says that it is not connected', async () => {
  await expect(clientTasks().task('x').status()).rejects.toThrow('not connected')
})
