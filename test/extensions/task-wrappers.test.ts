import { afterEach, describe, expect, it } from 'vitest'
import { app, apps } from '../../src/apps.js'
import { type ToolCall, extension } from '../../src/extensions.js'
import { type Tool, RpcError, createServer, form, tool } from '../../src/index.js'
import { MemoryTaskStore, type TaskStore, type TasksOptions, tasks } from '../../src/tasks.js'
import { RawClient, TASKS, accept } from './raw-client.js'
import { controlled, until } from './task-server.js'

/* Other extensions wrap every run of a task's handler: at once, from the queue, after answers and restarts. */

const SCHEMA = { type: 'object', properties: { ok: { type: 'boolean' } } } as const
const REDACT = 'com.example/redact'
const DECLARED = {
  elicitation: {},
  extensions: { [TASKS]: {}, [REDACT]: { mark: '***' } },
}

const clients: RawClient[] = []
afterEach(async () => {
  for (const client of clients.splice(0)) await client.close()
})

/** An extension that hides secrets in results with the mark of the client, and its calls. */
function redacting() {
  const calls: ToolCall[] = []
  const redact = extension({
    id: REDACT,
    async callTool(toolCall, run) {
      calls.push(toolCall)
      const result = await run()
      const mark = String(toolCall.settings?.['mark'])
      return JSON.parse(JSON.stringify(result).replaceAll('SECRET', mark)) as object
    },
  })
  return { redact, calls }
}

function clientOf(server: ConstructorParameters<typeof RawClient>[0]): RawClient {
  const principal = { id: 'ada', scopes: [] }
  const client = new RawClient(server, { principal, capabilities: DECLARED })
  clients.push(client)
  return client
}

async function answer(client: RawClient, taskId: string): Promise<void> {
  const { inputRequests = {} } = await client.until(taskId, 'input_required')
  await client.update(taskId, { [Object.keys(inputRequests)[0] ?? '']: accept({ ok: true }) })
}

describe.each(['first', 'last'])('with tasks() as the %s extension', (place) => {
  function start(tools: readonly Tool[], options: TasksOptions = {}) {
    const { redact, calls } = redacting()
    const others = [redact, apps()]
    const own = tasks(options)
    const extensions = place === 'first' ? [own, ...others] : [...others, own]
    const client = clientOf(createServer({ name: 'x', version: '1', tools, extensions }))
    const textOf = async (taskId: string) =>
      (await client.until(taskId, 'completed')).result?.content[0]?.text
    return { client, calls, textOf }
  }
  const secret = tool({ name: 'secret', task: 'must', run: () => 'SECRET' })
  const asks = tool({
    name: 'asks',
    input: SCHEMA,
    task: 'must',
    async run(_, call) {
      await call.ask({ ok: form({ message: 'OK?', schema: SCHEMA }) })
      return 'SECRET'
    },
  })

  it('a result is the same at once and from the queue', async () => {
    const { run, begun } = controlled()
    const slow: Tool = { name: 'slow', input: { type: 'object' }, task: 'must', run }
    const { client, textOf } = start([secret, slow], { concurrency: 1 })
    expect(await textOf(await client.create('secret'))).toBe('***')
    const first = await client.create('slow')
    const queued = await client.create('secret')
    ;(await begun()).resolve('SECRET')
    expect([await textOf(first), await textOf(queued)]).toEqual(['***', '***'])
  })

  it('a run after the answers is wrapped as that of the same caller', async () => {
    const { client, calls, textOf } = start([asks])
    const taskId = await client.create('asks', { ok: false })
    await answer(client, taskId)
    expect(await textOf(taskId)).toBe('***')
    expect(calls.map(({ call }) => call.attempt)).toEqual([1, 2])
    const [first, second] = calls
    expect(second?.call.key).toBe(first?.call.key)
    for (const { caller, settings, params, tool: called } of calls) {
      expect(caller.principal?.id).toBe('ada')
      expect(caller.revision).toBe('2026-07-28')
      expect(settings).toEqual({ mark: '***' })
      expect(params).toMatchObject({ name: 'asks', arguments: { ok: false } })
      expect(called.name).toBe('asks')
    }
  })

  it('a run after a restart is wrapped', async () => {
    const store: MemoryTaskStore & TaskStore = new MemoryTaskStore()
    const closed = new Promise<void>((resolve) => {
      store.close = resolve
    })
    const job = (run: NonNullable<Tool['run']>): Tool => ({
      name: 'job',
      input: { type: 'object' },
      task: { mode: 'must', retries: 1, retryDelay: 0 },
      run,
    })
    const { run, begun } = controlled()
    const before = start([job(run)], { store })
    const taskId = await before.client.create('job')
    await begun()
    await before.client.close()
    await closed
    const after = start([job(() => 'SECRET')], { store })
    expect(await after.textOf(taskId)).toBe('***')
  })

  it('a call that becomes a task is wrapped once', async () => {
    const { run, begun } = controlled()
    const late: Tool = {
      name: 'late',
      input: { type: 'object' },
      task: { mode: 'may', after: 1 },
      run,
    }
    const { client, calls, textOf } = start([late])
    const taskId = await client.create('late')
    ;(await begun()).resolve('SECRET')
    expect(await textOf(taskId)).toBe('***')
    expect(calls).toHaveLength(1)
  })

  it('a wrapper sees the signal of the task', async () => {
    const { run } = controlled()
    const slow: Tool = { name: 'slow', input: { type: 'object' }, task: 'must', run }
    const { client, calls } = start([slow])
    const taskId = await client.create('slow')
    await until(() => calls.length === 1)
    expect(calls[0]?.call.signal.aborted).toBe(false)
    await client.request('tasks/cancel', { taskId })
    await until(() => calls[0]?.call.signal.aborted === true)
  })

  it('an app has its fallback text', async () => {
    const page = app({ name: 'page', html: '<!doctype html><p>x' })
    const shown = tool({
      name: 'shown',
      app: page,
      task: 'must',
      async run(_, call) {
        await call.ask({ ok: form({ message: 'OK?', schema: SCHEMA }) })
        return { content: [] }
      },
    })
    const { client, textOf } = start([shown])
    const taskId = await client.create('shown')
    await answer(client, taskId)
    expect(await textOf(taskId)).toContain('page')
  })
})

it.each([0, 1])(
  'a task that is stopped within a wrapper has not completed (retries: %i)',
  async (retries) => {
    let ran = 0
    const pay = tool({
      name: 'pay',
      task: { mode: 'must', retries, retryDelay: 0 },
      run: () => `paid ${++ran}`,
    })
    const store: MemoryTaskStore & TaskStore = new MemoryTaskStore()
    const closed = new Promise<void>((resolve) => {
      store.close = resolve
    })
    let waits = false
    const wait = extension({
      id: 'com.example/wait',
      clientDeclares: false,
      async callTool({ call }, run) {
        waits = true
        if (call.attempt === 1)
          await new Promise((resolve) => call.signal.addEventListener('abort', resolve))
        return await run()
      },
    })
    const start = () => {
      const extensions = [wait, tasks({ store })]
      return clientOf(createServer({ name: 'x', version: '1', tools: [pay], extensions }))
    }
    const before = start()
    const taskId = await before.create('pay')
    await until(() => waits)
    await before.close()
    await closed
    expect(ran).toBe(0)
    const after = start()
    if (retries === 0) {
      const { statusMessage } = await after.until(taskId, 'failed')
      expect(statusMessage).toContain('restarted')
    } else {
      const { result } = await after.until(taskId, 'completed')
      expect(result?.content).toMatchObject([{ text: 'paid 1' }])
    }
    expect(ran).toBe(retries)
  },
)

it('steps of a wrapper are those of the task', async () => {
  let charged = 0
  const charge = extension({
    id: 'com.example/charge',
    clientDeclares: false,
    async callTool({ call }, run) {
      await call.step('charge', () => ++charged)
      return await run()
    },
  })
  const asks = tool({
    name: 'asks',
    task: 'must',
    async run(_, call) {
      await call.ask({ ok: form({ message: 'OK?', schema: SCHEMA }) })
      return 'done'
    },
  })
  const extensions = [charge, tasks()]
  const client = clientOf(createServer({ name: 'x', version: '1', tools: [asks], extensions }))
  const taskId = await client.create('asks')
  await answer(client, taskId)
  await client.until(taskId, 'completed')
  expect(charged).toBe(1)
})

describe('a wrapper within a task', () => {
  const greet = tool({ name: 'greet', task: 'must', run: () => 'Hello' })
  const start = (callTool: () => object) => {
    const refuse = extension({
      id: 'com.example/refuse',
      clientDeclares: false,
      resultTypes: ['refused'],
      callTool,
    })
    const extensions = [refuse, tasks()]
    return clientOf(createServer({ name: 'x', version: '1', tools: [greet], extensions }))
  }

  it('that throws an RpcError fails the task', async () => {
    const client = start(() => {
      throw new RpcError(-32000, 'No')
    })
    const failed = await client.until(await client.create('greet'), 'failed')
    expect(failed.error).toMatchObject({ code: -32000, message: 'No' })
  })

  it('that returns another result type fails the task: its result is that of a tool', async () => {
    const client = start(() => ({ resultType: 'refused' }))
    const failed = await client.until(await client.create('greet'), 'failed')
    expect(failed.error).toMatchObject({
      code: -32603,
      message: expect.stringContaining('"refused"'),
    })
  })
})
