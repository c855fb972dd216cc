import { afterEach, describe, expect, it, vi } from 'vitest'
import { RpcError, type Tool, ToolError, createServer, form, tool } from '../../src/index.js'
import { MemoryTaskStore, type TaskStore, type TasksOptions, tasks } from '../../src/tasks.js'
import { onStillClock } from '../clock.js'
import { answers, initialize } from '../drive.js'
import { RawClient, TASKS, accept } from './raw-client.js'
import { controlled, serverOf, until } from './task-server.js'
import { newTaskId } from '../../src/extensions/tasks/task-id.js'

const NAME = {
  type: 'object',
  properties: { name: { type: 'string' } },
  required: ['name'],
} as const
const TEXT = { type: 'object', properties: { text: { type: 'string' } } } as const

const open: RawClient[] = []
function clientOf(...given: ConstructorParameters<typeof RawClient>): RawClient {
  const client = new RawClient(...given)
  open.push(client)
  return client
}
afterEach(async () => {
  for (const client of open.splice(0)) await client.close()
})

const echo = tool({
  name: 'echo',
  input: TEXT,
  task: 'must',
  run: ({ text }) => `You said ${text}`,
})
const ask = tool({
  name: 'ask',
  task: 'must',
  async run(_, call) {
    const { who } = await call.ask({ who: form({ message: 'Who?', schema: NAME }) })
    return `Hello, ${who.name}!`
  },
})

describe('a tool that must be called as a task', () => {
  it('is answered with a task, which has the result in the end', async () => {
    const client = clientOf(serverOf([echo]))
    const created = await client.call('echo', { text: 'hi' })
    expect(created).toEqual({
      resultType: 'task',
      taskId: expect.stringMatching(/^[\w-]{27}$/),
      status: 'working',
      createdAt: expect.stringMatching(/^\d{4}-.*Z$/),
      lastUpdatedAt: created['createdAt'],
      ttlMs: 3_600_000,
      pollIntervalMs: 1000,
      _meta: expect.anything(),
    })
    const task = await client.until(created.taskId ?? '', 'completed')
    expect(task.resultType).toBe('complete')
    expect(task.result).toMatchObject({
      resultType: 'complete',
      content: [{ type: 'text', text: 'You said hi' }],
    })
  })

  it('can be read as soon as it was announced', async () => {
    const { run, begun } = controlled()
    const client = clientOf(
      serverOf([{ name: 'slow', input: { type: 'object' }, task: 'must', run }]),
    )
    const taskId = await client.create('slow')
    const task = await client.get(taskId)
    expect(task).toMatchObject({ taskId, status: 'working', resultType: 'complete' })
    expect(task).not.toHaveProperty('result')
    ;(await begun()).resolve('done')
    await client.until(taskId, 'completed')
  })

  it('is completed if the tool reports an error, and failed after a JSON-RPC error', async () => {
    const fails = (name: string, error: Error) =>
      tool({
        name,
        task: 'must',
        run() {
          throw error
        },
      })
    const data = { reason: 'full' }
    const client = clientOf(
      serverOf([
        fails('tool', new ToolError('No paper')),
        fails('rpc', new RpcError(-32042, 'No toner', data)),
      ]),
    )
    const completed = await client.until(await client.create('tool'), 'completed')
    expect(completed.result).toMatchObject({ isError: true, content: [{ text: 'No paper' }] })
    const failed = await client.until(await client.create('rpc'), 'failed')
    expect(failed).toMatchObject({
      statusMessage: 'No toner',
      error: { code: -32042, message: 'No toner', data },
    })
    expect(failed).not.toHaveProperty('result')
  })

  it('is refused and not listed for a client that has not declared the extension', async () => {
    const run = vi.fn(() => 'x')
    const client = clientOf(
      serverOf([
        { ...echo, run },
        { ...echo, name: 'may', task: 'may', run: () => 'direct' },
      ]),
      { capabilities: {} },
    )
    expect(await client.error('tools/call', { name: 'echo', arguments: {} })).toMatchObject({
      code: -32021,
      data: { requiredCapabilities: { extensions: { [TASKS]: {} } } },
    })
    expect(run).not.toHaveBeenCalled()
    expect((await client.request('tools/list'))['tools']).toMatchObject([{ name: 'may' }])
    expect(await client.call('may')).toMatchObject({ content: [{ text: 'direct' }] })
    for (const method of ['tasks/get', 'tasks/update', 'tasks/cancel'])
      expect(await client.error(method, { taskId: 'x' })).toMatchObject({ code: -32021 })
    const listening = client.error('subscriptions/listen', { notifications: { taskIds: ['x'] } })
    expect(await listening).toMatchObject({ code: -32021 })
  })

  it('does not exist in revisions without result types, whatever the client declares', async () => {
    const [, opening] = initialize('2025-11-25')
    const first = JSON.stringify({
      jsonrpc: '2.0',
      id: 'init',
      method: 'initialize',
      params: {
        protocolVersion: '2025-11-25',
        capabilities: { extensions: { [TASKS]: {} }, tasks: {} },
        clientInfo: { name: 't', version: '1' },
      },
    })
    const request = (id: number, method: string, params: object) =>
      JSON.stringify({ jsonrpc: '2.0', id, method, params })
    const all = (await answers(serverOf([echo, { ...echo, name: 'may', task: 'may' }]), [
      first,
      String(opening),
      request(1, 'tasks/get', { taskId: 'x' }),
      request(2, 'tools/call', { name: 'echo', arguments: {} }),
      request(3, 'tools/call', { name: 'may', arguments: { text: 'a' }, task: { ttl: 1 } }),
      request(4, 'tools/list', {}),
    ])) as { id: unknown; error?: object; result?: { capabilities?: object } }[]
    const byId = (id: unknown) => all.find((each) => each.id === id)
    expect(byId('init')?.result?.capabilities).not.toHaveProperty('extensions')
    expect(byId('init')?.result?.capabilities).not.toHaveProperty('tasks')
    expect(byId(1)?.error).toMatchObject({ code: -32601 })
    expect(byId(2)?.error).toMatchObject({ code: -32021 })
    expect(byId(3)?.result).toMatchObject({ content: [{ text: 'You said a' }] })
    expect(byId(4)?.result).toMatchObject({ tools: [{ name: 'may' }] })
  })
})

describe('a tool that may be called as a task', () => {
  const after = (run: Tool['run'], milliseconds = 20): Tool => ({
    name: 'job',
    input: { type: 'object' },
    task: { mode: 'may', after: milliseconds, ttl: 60_000, poll: 5 },
    ...(run && { run }),
  })

  it('is answered directly if it is done in time', async () => {
    const client = clientOf(serverOf([after(() => 'quick', 60_000)]))
    expect(await client.call('job')).toMatchObject({
      resultType: 'complete',
      content: [{ text: 'quick' }],
    })
  })

  it('becomes a task when it takes longer, without being run again', async () => {
    const { run, runs, begun } = controlled()
    const client = clientOf(serverOf([after(run)]))
    const created = await client.call('job')
    expect(created).toMatchObject({ resultType: 'task', ttlMs: 60_000, pollIntervalMs: 5 })
    ;(await begun()).resolve('late')
    const task = await client.until(created.taskId ?? '', 'completed')
    expect(task.result?.content).toEqual([{ type: 'text', text: 'late' }])
    expect(runs).toHaveLength(1)
  })

  it('asks on the call first, then in the task, with the steps and answers of the call', async () => {
    const effects: string[] = []
    const seen: unknown[] = []
    let proceed = () => {}
    const gate = new Promise<void>((resolve) => (proceed = resolve))
    const job = after(async (_, call) => {
      seen.push([call.key, call.attempt])
      await call.step('first', () => void effects.push('first'))
      const { one } = await call.ask({ one: form({ message: '1?', schema: NAME }) })
      await call.step('second', async () => {
        effects.push('second')
        await gate
      })
      const { two } = await call.ask({ two: form({ message: '2?', schema: NAME }) })
      return `${one.name} ${two.name}`
    }, 60_000)
    const server = serverOf([job])
    const client = clientOf(server)
    const asked = await client.call('job')
    expect(asked).toMatchObject({ resultType: 'input_required', inputRequests: { one: {} } })
    const { requestState } = asked
    server.tools.update('job', { task: { mode: 'may', after: 1, poll: 5 } })
    const created = await client.request('tools/call', {
      name: 'job',
      arguments: {},
      requestState,
      inputResponses: { one: accept({ name: 'Ada' }) },
    })
    expect(created).toMatchObject({ resultType: 'task', status: 'working' })
    expect(created).not.toHaveProperty('requestState')
    proceed()
    const taskId = created.taskId ?? ''
    const parked = await client.until(taskId, 'input_required')
    const [key = ''] = Object.keys(parked.inputRequests ?? {})
    expect(parked.inputRequests?.[key]).toMatchObject({
      method: 'elicitation/create',
      params: { message: '2?' },
    })
    await client.update(taskId, { [key]: accept({ name: 'Lovelace' }) })
    const { result } = await client.until(taskId, 'completed')
    expect(result?.content).toEqual([{ type: 'text', text: 'Ada Lovelace' }])
    expect(effects).toEqual(['first', 'second'])
    expect(new Set(seen.map((each) => (each as [string])[0])).size).toBe(1)
    expect(seen.map((each) => (each as [string, number])[1])).toEqual([1, 2, 3])
  })

  it('keeps an answer of the call that its handler asks for after the hand-over', async () => {
    const proceeds: (() => void)[] = []
    const job = after(async (_, call) => {
      if (call.attempt === 2) await new Promise<void>((resolve) => proceeds.push(resolve))
      const { one } = await call.ask({ one: form({ message: '1?', schema: NAME }) })
      const { two } = await call.ask({ two: form({ message: '2?', schema: NAME }) })
      return `${one.name} ${two.name}`
    }, 60_000)
    const server = serverOf([job])
    const client = clientOf(server)
    const { requestState } = await client.call('job')
    server.tools.update('job', { task: { mode: 'may', after: 1, poll: 5 } })
    const inputResponses = { one: accept({ name: 'Ada' }) }
    const params = { name: 'job', arguments: {}, requestState, inputResponses }
    const { taskId = '' } = await client.request('tools/call', params)
    proceeds[0]?.()
    const { inputRequests = {} } = await client.until(taskId, 'input_required')
    expect(Object.values(inputRequests)).toMatchObject([{ params: { message: '2?' } }])
    const [key = ''] = Object.keys(inputRequests)
    await client.update(taskId, { [key]: accept({ name: 'Lovelace' }) })
    const { result } = await client.until(taskId, 'completed')
    expect(result?.content).toEqual([{ type: 'text', text: 'Ada Lovelace' }])
  })

  it('has the answers of the request that makes it a task', async () => {
    const job: Tool = {
      name: 'job',
      input: { type: 'object' },
      task: { mode: 'may', after: 0 },
      async run(_, call) {
        const { who } = await call.ask({ who: form({ message: 'Who?', schema: NAME }) })
        return `Hello, ${who.name}!`
      },
    }
    const store = new MemoryTaskStore({ maxTasks: 1 })
    const client = clientOf(serverOf([job, { ...ask, name: 'fill' }], { store }))
    const filling = await client.create('fill')
    const { requestState } = await client.call('job')
    expect(requestState).toBeDefined()
    for (const { name } of store.entries()) store.restore(name, undefined)
    const created = await client.request('tools/call', {
      name: 'job',
      arguments: {},
      requestState,
      inputResponses: { who: accept({ name: 'Ada' }) },
    })
    expect(created).toMatchObject({ resultType: 'task' })
    const { result } = await client.until(created.taskId ?? '', 'completed')
    expect(result?.content).toEqual([{ type: 'text', text: 'Hello, Ada!' }])
    expect(filling).not.toBe(created.taskId)
  })

  it('stays a plain call if there is no room for its task', async () => {
    const store = new MemoryTaskStore({ maxTasks: 1 })
    const { run, begun } = controlled()
    const client = clientOf(serverOf([after(run, 1), { ...ask, name: 'fill' }], { store }))
    await client.create('fill')
    const { response } = client.send('tools/call', { name: 'job', arguments: {} })
    const running = await begun()
    await new Promise((resolve) => setTimeout(resolve, 20))
    running.resolve('plain after all')
    expect((await response).result).toMatchObject({ content: [{ text: 'plain after all' }] })
    expect(await client.error('tools/call', { name: 'fill', arguments: {} })).toMatchObject({
      code: -32603,
    })
    expect(store.size).toBe(1)
  })

  it('asks on the call if there was no room for its task', async () => {
    const store = new MemoryTaskStore({ maxTasks: 1 })
    const job = after(async (_, call) => {
      await new Promise((resolve) => setTimeout(resolve, 30))
      return call.ask({ who: form({ message: 'Who?', schema: NAME }) })
    }, 1)
    const client = clientOf(serverOf([job, { ...ask, name: 'fill' }], { store }))
    await client.create('fill')
    expect(await client.call('job')).toMatchObject({ resultType: 'input_required' })
  })

  it('is aborted with its request before it is a task, and not afterwards', async () => {
    const { run, begun } = controlled()
    const client = clientOf(serverOf([after(run, 60_000), { ...after(run, 1), name: 'short' }]))
    const early = client.send('tools/call', { name: 'job', arguments: {} })
    const first = await begun()
    client.notify('notifications/cancelled', { requestId: early.id })
    await until(() => first.call.signal.aborted)
    const late = client.send('tools/call', { name: 'short', arguments: {} })
    const { result } = await late.response
    client.notify('notifications/cancelled', { requestId: late.id })
    const second = await begun(1)
    expect(await client.get(result?.taskId ?? '')).toMatchObject({ status: 'working' })
    expect(second.call.signal.aborted).toBe(false)
    second.resolve('done')
    await client.until(result?.taskId ?? '', 'completed')
  })
})

describe.each(['at once', 'from the queue'])('a task that is to run %s', (when) => {
  it('is not run if its call is cancelled while it is created', async () => {
    const { run, runs, begun } = controlled()
    const job: Tool = { name: 'job', input: { type: 'object' }, task: 'must', run }
    const store = new MemoryTaskStore()
    const client = clientOf(serverOf([job], { store, concurrency: 1 }))
    const before = when === 'at once' ? 0 : 1
    if (before === 1) await client.create('job')
    const create = store.create.bind(store)
    let proceed = () => {}
    const spy = vi.spyOn(store as TaskStore, 'create').mockImplementationOnce(async (task) => {
      await new Promise<void>((resolve) => (proceed = resolve))
      return create(task)
    })
    const cancelled = client.send('tools/call', { name: 'job', arguments: {} })
    await until(() => spy.mock.calls.length === 1)
    client.notify('notifications/cancelled', { requestId: cancelled.id })
    // It is queued while the other one seems to run.
    const queued = await client.create('job')
    proceed()
    const status = (name: string) =>
      (JSON.parse(store.get(name)?.state ?? '{}') as { status?: string }).status
    const name = spy.mock.calls[0]?.[0].name ?? ''
    await until(() => status(name) === 'cancelled')
    if (before === 1) (await begun()).resolve('first')
    ;(await begun(before)).resolve('queued')
    expect((await client.until(queued, 'completed')).result?.content).toMatchObject([
      { text: 'queued' },
    ])
    expect(runs).toHaveLength(before + 1)
  })
})

describe('questions of a task', () => {
  it('are answered in parts; keys that are unknown or answered are ignored', async () => {
    const effect = vi.fn(() => 1)
    const both = tool({
      name: 'both',
      task: 'must',
      async run(_, call) {
        await call.step('effect', effect)
        const [{ a }, { b }] = await Promise.all([
          call.ask({ a: form({ message: 'A?', schema: NAME }) }),
          call.ask({ b: form({ message: 'B?', schema: NAME }) }),
        ])
        return `${a.name}${b.name}`
      },
    })
    const client = clientOf(serverOf([both]))
    const taskId = await client.create('both')
    const { inputRequests = {}, lastUpdatedAt } = await client.until(taskId, 'input_required')
    const [a = '', b = ''] = Object.keys(inputRequests).toSorted()
    expect([a, b]).toEqual([expect.stringMatching(/^a\./), expect.stringMatching(/^b\./)])
    const ack = await client.update(taskId, { [a]: accept({ name: 'x' }), never: accept({}) })
    expect(Object.keys(ack).toSorted()).toEqual(['_meta', 'resultType'])
    const partly = await client.get(taskId)
    expect(partly.status).toBe('input_required')
    expect(Object.keys(partly.inputRequests ?? {})).toEqual([b])
    expect(String(partly.lastUpdatedAt) >= String(lastUpdatedAt)).toBe(true)
    await client.update(taskId, { [a]: accept({ name: 'other' }), [b]: accept({ name: 'y' }) })
    const { result } = await client.until(taskId, 'completed')
    expect(result?.content).toEqual([{ type: 'text', text: 'xy' }])
    expect(effect).toHaveBeenCalledTimes(1)
    expect(await client.update(taskId, { [a]: accept({}) })).toMatchObject({
      resultType: 'complete',
    })
  })

  it('are asked again under another key if the answer is invalid, and may be declined', async () => {
    const client = clientOf(serverOf([ask]))
    const taskId = await client.create('ask')
    const keys: string[] = []
    const key = async () => {
      const { inputRequests = {} } = await client.until(taskId, 'input_required')
      keys.push(...Object.keys(inputRequests))
      return keys.at(-1) ?? ''
    }
    await client.update(taskId, { [await key()]: accept({ name: 7 }) })
    await client.update(taskId, { [await key()]: accept({}) })
    await client.update(taskId, { [await key()]: { action: 'decline' } })
    const { result } = await client.until(taskId, 'completed')
    expect(result).toMatchObject({ isError: true, content: [{ text: 'The user declined "who"' }] })
    expect(new Set(keys).size).toBe(3)
  })

  it('fail the task if the client has not declared the capability', async () => {
    const capabilities = { extensions: { [TASKS]: {} } }
    const client = clientOf(serverOf([ask]), { capabilities })
    const failed = await client.until(await client.create('ask'), 'failed')
    expect(failed.error).toMatchObject({
      code: -32021,
      data: { requiredCapabilities: { elicitation: { form: {} } } },
    })
  })

  it.each([{}, { inputResponses: [] }, { inputResponses: { a: 'text' } }])(
    'rejects tasks/update with %j',
    async (params) => {
      const client = clientOf(serverOf([ask]))
      const taskId = await client.create('ask')
      expect(await client.error('tasks/update', { taskId, ...params })).toMatchObject({
        code: -32602,
      })
    },
  )

  it('hold no handler: a parked task takes no room', async () => {
    const client = clientOf(serverOf([ask, echo], { concurrency: 1 }))
    const taskId = await client.create('ask')
    await client.until(taskId, 'input_required')
    await client.until(await client.create('echo'), 'completed')
    expect(await client.get(taskId)).toMatchObject({ status: 'input_required' })
  })
})

describe('tasks/cancel', () => {
  it('aborts the handler, and is acknowledged for a task that has ended', async () => {
    const { run, begun } = controlled()
    const slow: Tool = { name: 'slow', input: { type: 'object' }, task: 'must', run }
    const client = clientOf(serverOf([slow]))
    const taskId = await client.create('slow')
    const { call } = await begun()
    const ack = await client.request('tasks/cancel', { taskId })
    expect(Object.keys(ack).toSorted()).toEqual(['_meta', 'resultType'])
    expect(call.signal.aborted).toBe(true)
    const cancelled = await client.get(taskId)
    expect(cancelled).toMatchObject({ status: 'cancelled' })
    expect(cancelled).not.toHaveProperty('result')
    expect(cancelled).not.toHaveProperty('error')
    await client.request('tasks/cancel', { taskId })
    expect(await client.get(taskId)).toEqual(cancelled)
  })

  it('cancels a task that waits for an answer', async () => {
    const client = clientOf(serverOf([ask]))
    const taskId = await client.create('ask')
    const { inputRequests = {} } = await client.until(taskId, 'input_required')
    await client.request('tasks/cancel', { taskId })
    await client.update(taskId, { [Object.keys(inputRequests)[0] ?? '']: accept({ name: 'x' }) })
    const task = await client.get(taskId)
    expect(task).toMatchObject({ status: 'cancelled' })
    expect(task).not.toHaveProperty('inputRequests')
  })
})

describe('who may see a task', () => {
  it('tells an id of another principal, an unknown one and an invalid one apart for nobody', async () => {
    const server = serverOf([ask])
    const [ada, bob] = ['ada', 'bob'].map((id) =>
      clientOf(server, { principal: { id, scopes: [] } }),
    ) as [RawClient, RawClient]
    const nobody = clientOf(server)
    const taskId = await ada.create('ask')
    const unknown = taskId.replaceAll(/./g, 'x')
    for (const client of [bob, nobody])
      for (const method of ['tasks/get', 'tasks/update', 'tasks/cancel']) {
        const params = { inputResponses: {} }
        const expected = await client.error(method, { taskId: unknown, ...params })
        expect(expected.code).toBe(-32602)
        expect(await client.error(method, { taskId, ...params })).toEqual(expected)
        expect(await client.error(method, { taskId: 'short', ...params })).toEqual(expected)
      }
    expect(await ada.until(taskId, 'input_required')).toMatchObject({ taskId })
    expect(await ada.error('tasks/get', {})).toMatchObject({ code: -32602 })
  })

  it('stores digests of ids, which are never the same', async () => {
    const store = new MemoryTaskStore()
    const names = vi.spyOn(store, 'create')
    const client = clientOf(serverOf([ask], { store }))
    const ids = new Set<string>()
    for (let each = 0; each < 50; each++) ids.add(await client.create('ask'))
    expect(ids.size).toBe(50)
    const stored = JSON.stringify(names.mock.calls)
    for (const id of ids) expect(stored).not.toContain(id)
  })
})

describe('limits', () => {
  const principal = { id: 'ada', scopes: [] }

  it('applies those of one principal to that principal only', async () => {
    const store = new MemoryTaskStore({ maxTasksPerOwner: 2 })
    const server = serverOf([ask], { store })
    const ada = clientOf(server, { principal })
    const bob = clientOf(server, { principal: { id: 'bob', scopes: [] } })
    const taskId = await ada.create('ask')
    await ada.create('ask')
    const refused = await ada.error('tools/call', { name: 'ask', arguments: {} })
    expect(refused).toMatchObject({ code: -32603, message: expect.stringContaining('no room') })
    await bob.create('ask')
    expect(await ada.get(taskId)).toMatchObject({ taskId })
  })

  it('refuses arguments, steps and answers that are larger than a task may be', async () => {
    const large = 'x'.repeat(10_000)
    const steps = tool({
      name: 'steps',
      task: 'must',
      run: (_, call) => call.step('large', () => large),
    })
    const client = clientOf(serverOf([echo, steps, ask], { maxTaskBytes: 8192 }))
    const tooLong = { name: 'echo', arguments: { text: large } }
    expect(await client.error('tools/call', tooLong)).toMatchObject({ code: -32603 })
    const { result } = await client.until(await client.create('steps'), 'completed')
    expect(result).toMatchObject({ isError: true })
    const taskId = await client.create('ask')
    const { inputRequests = {} } = await client.until(taskId, 'input_required')
    const [key = ''] = Object.keys(inputRequests)
    const inputResponses = { [key]: accept({ name: large }) }
    expect(await client.error('tasks/update', { taskId, inputResponses })).toMatchObject({
      code: -32603,
    })
    await client.update(taskId, { [key]: accept({ name: 'short' }) })
    await client.until(taskId, 'completed')
  })

  it('fails a task whose result or error is too large', async () => {
    const large = 'x'.repeat(10_000)
    const result = tool({ name: 'result', task: 'must', run: () => large })
    const error = tool({
      name: 'error',
      task: 'must',
      run() {
        throw new RpcError(-32000, large, large)
      },
    })
    const client = clientOf(serverOf([result, error], { maxTaskBytes: 4096 }))
    const failed = await client.until(await client.create('result'), 'failed')
    expect(failed.error).toMatchObject({
      code: -32603,
      message: expect.stringContaining('too large'),
    })
    const long = await client.until(await client.create('error'), 'failed')
    expect(long.error?.code).toBe(-32000)
    expect(long.statusMessage?.length).toBeLessThan(1100)
  })

  it('queues tasks beyond the number of handlers that may run', async () => {
    const { run, runs, begun } = controlled()
    const slow: Tool = { name: 'slow', input: { type: 'object' }, task: 'must', run }
    const client = clientOf(serverOf([slow], { concurrency: 2 }))
    const ids = [
      await client.create('slow'),
      await client.create('slow'),
      await client.create('slow'),
    ]
    const [first, , third = ''] = ids
    await begun(1)
    expect(runs).toHaveLength(2)
    expect(await client.get(third)).toMatchObject({ status: 'working' })
    ;(await begun()).resolve('one')
    const last = await begun(2)
    expect(await client.get(first ?? '')).toMatchObject({ status: 'completed' })
    expect(last.call.attempt).toBe(1)
    last.resolve('three')
    const { result } = await client.until(third, 'completed')
    expect(result?.content).toEqual([{ type: 'text', text: 'three' }])
  })
})

describe('the time of a task', () => {
  it('aborts and forgets it after its time to live', () =>
    onStillClock(async (pass) => {
      const { run, runs } = controlled()
      const slow: Tool = {
        name: 'slow',
        input: { type: 'object' },
        task: { mode: 'must', ttl: 5000 },
        run,
      }
      const client = clientOf(serverOf([slow]))
      const taskId = await client.create('slow')
      await until(() => runs.length > 0)
      await pass(4999)
      expect(await client.get(taskId)).toMatchObject({ status: 'working', ttlMs: 5000 })
      expect(runs[0]?.call.signal.aborted).toBe(false)
      await pass(2)
      expect(runs[0]?.call.signal.aborted).toBe(true)
      expect(await client.error('tasks/get', { taskId })).toMatchObject({ code: -32602 })
    }))

  it('makes progress its status message, at most once a second', () =>
    onStillClock(async (pass) => {
      const { run, runs } = controlled()
      const slow: Tool = { name: 'slow', input: { type: 'object' }, task: 'must', run }
      const store = new MemoryTaskStore()
      const client = clientOf(serverOf([slow], { store }))
      const taskId = await client.create('slow')
      await until(() => runs.length > 0)
      const { lastUpdatedAt } = await client.get(taskId)
      const call = runs[0]?.call
      const change = vi.spyOn(store, 'change')
      await pass(1)
      for (let done = 1; done <= 100; done++) call?.progress(done, 1000)
      await pass(10)
      const first = await client.get(taskId)
      expect(first.statusMessage).toBe('100 of 1000')
      expect(String(first.lastUpdatedAt) > String(lastUpdatedAt)).toBe(true)
      for (let done = 101; done <= 200; done++) call?.progress(done, 1000, `page ${done}`)
      await pass(10)
      expect((await client.get(taskId)).statusMessage).toBe('100 of 1000')
      await pass(1000)
      expect((await client.get(taskId)).statusMessage).toBe('page 200')
      expect(change).toHaveBeenCalledTimes(2)
      // The date is set back.
      vi.setSystemTime(Date.now() - 7_200_000)
      call?.progress(201, 1000)
      await pass(1000)
      expect((await client.get(taskId)).statusMessage).toBe('201 of 1000')
      expect(client.notifications).toEqual([])
      runs[0]?.resolve('done')
      expect(await client.until(taskId, 'completed')).not.toHaveProperty('statusMessage')
    }))
})

describe('subscriptions/listen', () => {
  it('sends the state of tasks, then every change, as tasks/get would return it', async () => {
    const server = serverOf([ask])
    const client = clientOf(server)
    const taskId = await client.create('ask')
    const parked = await client.until(taskId, 'input_required')
    const other = clientOf(server, { principal: { id: 'bob', scopes: [] } })
    const theirs = await other.create('ask')
    const notifications = { taskIds: [taskId, theirs, 'unknown', 7, taskId] }
    const { id } = client.send('subscriptions/listen', { notifications })
    await client.notified((all) => all.length === 2)
    const meta = { 'io.modelcontextprotocol/subscriptionId': id }
    const { resultType: _, _meta, ...state } = parked
    expect(client.notifications).toEqual([
      expect.objectContaining({
        method: 'notifications/subscriptions/acknowledged',
        params: { _meta: meta, notifications: { taskIds: [taskId] } },
      }),
      expect.objectContaining({
        method: 'notifications/tasks',
        params: { _meta: meta, ...state },
      }),
    ])
    const [key = ''] = Object.keys(parked.inputRequests ?? {})
    await client.update(taskId, { [key]: accept({ name: 'Ada' }) })
    await client.notified((all) => all.some(({ params }) => params?.['status'] === 'completed'))
    const { resultType: __, _meta: ___, ...completed } = await client.get(taskId)
    const last = client.notifications.at(-1)
    expect(last).toMatchObject({ method: 'notifications/tasks', params: completed })
    client.notify('notifications/cancelled', { requestId: id })
  })

  it.each([['text'], [Array.from({ length: 300 }, () => 'x')]])(
    'rejects %.20j',
    async (taskIds) => {
      const client = clientOf(serverOf([ask]))
      const listening = client.error('subscriptions/listen', { notifications: { taskIds } })
      expect(await listening).toMatchObject({ code: -32602 })
    },
  )
})

describe('when the server stops', () => {
  it('continues parked tasks after the next start, and fails those that were running', async () => {
    const { run, begun } = controlled()
    const slow: Tool = { name: 'slow', input: { type: 'object' }, task: 'must', run }
    const server = serverOf([slow, ask, { ...ask, name: 'changed' }])
    const before = new RawClient(server)
    const [running, parked, changed] = [
      await before.create('slow'),
      await before.create('ask'),
      await before.create('changed'),
    ]
    await begun()
    const { inputRequests = {} } = await before.until(parked, 'input_required')
    await before.until(changed, 'input_required')
    await before.close()
    server.tools.update('changed', { task: { mode: 'must', version: '2' } })
    const interrupted = await begun()
    await until(() => interrupted.call.signal.aborted)
    const after = clientOf(server)
    expect(await after.until(running, 'failed')).toMatchObject({
      statusMessage: 'The server was restarted while the task was running',
      error: { code: -32603 },
    })
    const [key = ''] = Object.keys(inputRequests)
    await after.update(parked, { [key]: accept({ name: 'Ada' }) })
    const { result } = await after.until(parked, 'completed')
    expect(result?.content).toEqual([{ type: 'text', text: 'Hello, Ada!' }])
    await after.update(changed, { [key]: accept({ name: 'Ada' }) })
    expect(await after.until(changed, 'failed')).toMatchObject({
      statusMessage: 'The tool changed has changed since the task was created',
    })
  })
})

it.each([
  ['sometimes', '"task" must be "never"'],
  [{ mode: 'may', ttl: 0 }, '"ttl"'],
  [{ mode: 'may', ttl: 2 ** 31 }, '"ttl"'],
  [{ mode: 'may', after: -1 }, '"after"'],
  [{ mode: 'may', pol: 1 }, 'did you mean "poll"'],
  [{ ttl: 1 }, '"mode"'],
])('rejects the task %j of a tool', (task, message) => {
  const wrong = { ...echo, task } as unknown as Tool
  expect(() => serverOf([wrong])).toThrow(message)
})

it('rejects invalid options, and a second server', async () => {
  expect(() => tasks({ concurrency: 0 })).toThrow('concurrency')
  expect(() => tasks({ maxTaskBytes: 1 })).toThrow('maxTaskBytes')
  expect(() => tasks({ stor: 1 } as TasksOptions)).toThrow('did you mean "store"')
  expect(() => new MemoryTaskStore({ maxBytes: 0 })).toThrow('maxBytes')
  const shared = tasks()
  const options = { version: '1', tools: [echo], extensions: [shared] }
  clientOf(createServer({ name: 'a', ...options }))
  expect(() => new RawClient(createServer({ name: 'b', ...options }))).toThrow('once for each')
})

it('ids begin with a letter, so that they are no options on a command line', () => {
  const ids = Array.from({ length: 1000 }, newTaskId)
  expect(ids.filter((id) => !/^[A-Za-z][\w-]{26}$/.test(id))).toEqual([])
  expect(new Set(ids).size).toBe(1000)
})
