import { afterEach, describe, expect, it, vi } from 'vitest'
import {
  type Client,
  type ConnectOptions,
  RpcError,
  type Target,
  connect,
  http,
  memory,
} from '../../src/client.js'
import { listen } from '../../src/http.js'
import { type Call, type Tool, createServer, form, tool } from '../../src/index.js'
import {
  type ClientTasksOptions,
  type TaskMembers,
  type TaskStatus,
  clientTasks,
  tasks,
} from '../../src/tasks.js'
import { extensionNames } from '../official/schema-validator.js'
import { until } from './scripted-tasks.js'

for (const name of ['task', 'notifications/tasks', 'tasks/get', 'tasks/update', 'tasks/cancel'])
  extensionNames.add(name)

const NAME = {
  type: 'object',
  properties: { name: { type: 'string' } },
  required: ['name'],
} as const
const POLL = { mode: 'must', poll: 10 } as const

let begun = 0
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
      new Promise<string>((_resolve, reject) => {
        begun++
        signal.addEventListener('abort', () => {
          aborted++
          reject(signal.reason as Error)
        })
      }),
  },
]
const serverOf = () => createServer({ name: 'x', version: '1', tools, extensions: [tasks()] })

const open: { close(): Promise<unknown> }[] = []
afterEach(async () => {
  for (const each of open.splice(0).toReversed()) await each.close()
})
async function opened(
  target: Target,
  { onStatus, ...options }: ConnectOptions & ClientTasksOptions = {},
): Promise<Client & TaskMembers> {
  const extensions = [clientTasks(onStatus === undefined ? {} : { onStatus })] as const
  const client = await connect(target, { ...options, extensions })
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
    const calls = new Set<unknown>()
    const onStatus = (task: TaskStatus, call: unknown) => {
      states.push(task)
      calls.add(call)
    }
    const client = await opened(await target(), { onStatus, elicit })
    expect(await client.callTool('greet')).toMatchObject({
      content: [{ type: 'text', text: 'Hello, Ada Lovelace!' }],
    })
    expect([...calls]).toEqual([{ name: 'greet', arguments: {} }])
    expect(elicit).toHaveBeenCalledTimes(2)
    expect(states[0]).toMatchObject({ status: 'working' })
    expect(states.at(-1)).toMatchObject({ status: 'completed', taskId: states[0]?.taskId })
  })

  it('rejects with the error of a failed task', async () => {
    const client = await opened(await target())
    await expect(client.callTool('fail')).rejects.toMatchObject({
      code: -32042,
      message: 'Out of order',
      data: { part: 7 },
    })
  })

  it('cancels the task when the caller gives up', async () => {
    begun = 0
    aborted = 0
    const controller = new AbortController()
    let taskId = ''
    const onStatus = (task: TaskStatus) => void (taskId = task.taskId)
    const client = await opened(await target(), { onStatus })
    const { signal } = controller
    const failed = expect(client.callTool('wait', {}, { signal })).rejects.toThrow('enough')
    // A task that is cancelled before its handler has begun is not run.
    await until(() => taskId !== '' && begun === 1)
    controller.abort(new Error('enough'))
    await failed
    await until(() => aborted === 1)
    expect(await client.task(taskId).status()).toMatchObject({ status: 'cancelled' })
    await expect(client.task(taskId).result()).rejects.toMatchObject({ code: 'CANCELLED' })
  })

  it('cancels a task whose questions it cannot answer', async () => {
    let taskId = ''
    const onStatus = (task: TaskStatus) => void (taskId = task.taskId)
    const fails = () => {
      throw new Error('the user has left')
    }
    const client = await opened(await target(), { onStatus, elicit: fails })
    await expect(client.callTool('greet')).rejects.toThrow('the user has left')
    await until(async () => (await client.task(taskId).status()).status === 'cancelled')
  })

  it('resumes a task by its id on another connection', async () => {
    const to = await target()
    const controller = new AbortController()
    const created = new Promise<string>((resolve) => {
      const onStatus = ({ taskId }: TaskStatus) => resolve(taskId)
      const never = () => new Promise<never>(() => {})
      void opened(to, { onStatus, elicit: never }).then((first) =>
        first.callTool('greet', {}, { signal: controller.signal }).catch(() => {}),
      )
    })
    const id = await created
    const client = await opened(to, { elicit })
    const result = await client.task(id).result()
    expect(result.content).toEqual([{ type: 'text', text: 'Hello, Ada Lovelace!' }])
    await expect(client.task('unknown').result()).rejects.toMatchObject({ code: -32602 })
    await client.task(id).cancel()
    expect(await client.task(id).status()).toMatchObject({ status: 'completed' })
  })
})

describe.each(['memory', 'http'] as const)(
  'a task that is to be polled rarely, over %s',
  (transport) => {
    it('is followed by notifications, also with several at the same time', async () => {
      const ends: (() => void)[] = []
      const slow = tool({
        name: 'slow',
        // Without notifications the test would not end in time.
        task: { mode: 'must', poll: 3_600_000 },
        async run(_, call) {
          await call.step('wait', () => new Promise<void>((resolve) => ends.push(resolve)))
          const { first } = await call.ask({ first: form({ message: 'First?', schema: NAME }) })
          return first.name
        },
      })
      const server = createServer({ name: 'x', version: '1', tools: [slow], extensions: [tasks()] })
      let target = memory(server)
      if (transport === 'http') {
        const listening = await listen(server, { port: 0 })
        open.push(listening)
        target = http(listening.url)
      }
      const client = await opened(target, { elicit })
      const results = [1, 2, 3].map(() => client.callTool('slow'))
      await until(() => ends.length === 3)
      for (const end of ends) end()
      for (const result of await Promise.all(results))
        expect(result.content).toEqual([{ type: 'text', text: 'Ada' }])
    })
  },
)

it('is not declared in revisions without tasks, and plain calls work', async () => {
  const server = createServer({
    name: 'x',
    version: '1',
    extensions: [tasks()],
    tools: [tool({ name: 'may', task: 'may', run: () => 'plain' })],
  })
  const client = await opened(memory(server), { revision: '2025-11-25' })
  expect(await client.callTool('may')).toMatchObject({ content: [{ text: 'plain' }] })
  // The experimental tasks of that revision have a method of the same name.
  await expect(client.task('x').cancel()).rejects.toMatchObject({ code: 'NOT_SUPPORTED' })
})

it('adds the members of extensions to the client; one object may be given to several clients', async () => {
  const extension = clientTasks()
  const server = serverOf()
  await using one = await connect(memory(server), { extensions: [extension] })
  await using other = await connect(memory(server), { extensions: [extension] })
  for (const client of [one, other])
    await expect(client.task('x').status()).rejects.toMatchObject({ code: -32602 })
  expect(() => one.task(7 as never)).toThrow('must be a string')
  const twice = { id: 'com.example/x', connected: () => ({ callTool: () => {} }) }
  await expect(connect(memory(server), { extensions: [twice] })).rejects.toThrow(
    'the member "callTool", which the client has already',
  )
  expect(() => clientTasks({ maxWait: 0 })).toThrow('"maxWait"')
})
