import { createClient } from 'redis'
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest'
import { type Extension, extension } from '../../src/extensions.js'
import { type Call, type Tool, createServer, form, tool } from '../../src/index.js'
import { type RedisOptions, redis } from '../../src/redis.js'
import { type TasksOptions, tasks } from '../../src/tasks.js'
import { RawClient, TASKS, accept } from '../extensions/raw-client.js'
import { controlled } from '../extensions/task-server.js'
import { RedisServer, canStartRedis, commanding, newPrefix } from './redis-server.js'
import { TcpProxy } from './tcp-proxy.js'

/* Tasks of several servers that share them, each with connections of its own, as processes have. */

const NAME = {
  type: 'object',
  properties: { name: { type: 'string' } },
  required: ['name'],
} as const
const until = <Value>(condition: () => Value | Promise<Value>): Promise<Value> =>
  vi.waitFor(condition, { timeout: 60_000, interval: 10 })
/** Long: whatever happens soon happens for another reason. */
const LONG = 120_000

describe.skipIf(!canStartRedis)('servers that share their tasks', () => {
  let server: RedisServer
  let prefix = ''
  const stops: (() => unknown)[] = []
  beforeAll(async () => {
    server = await RedisServer.start()
  })
  afterAll(() => server.stop())
  afterEach(async () => {
    for (const stop of stops.splice(0).toReversed()) await stop()
  })

  /** A client of a process of its own. */
  function start(
    tools: readonly Tool[],
    options: RedisOptions & {
      url?: string
      worker?: Omit<TasksOptions, 'store'>
      client?: { capabilities?: object }
      keys?: string[]
      others?: Extension[]
    } = {},
  ): RawClient {
    const { url = server.url, worker = {}, client: clientOptions, keys = [], ...rest } = options
    const { others = [], ...more } = rest
    const stores = redis(createClient({ url }), { prefix, lease: LONG, timeout: 20_000, ...more })
    const extensions = [...others, tasks({ store: stores.tasks, ...worker })]
    const state = { keys }
    const client = new RawClient(
      createServer({ name: 'x', version: '1', tools, extensions, state }),
      clientOptions,
    )
    stops.push(
      () => stores.close(),
      () => client.close(),
    )
    return client
  }
  const commands = <Result>(
    use: (command: (...parts: string[]) => Promise<unknown>) => Promise<Result>,
  ) => commanding(server.url, use)
  const keyCount = (pattern: string) =>
    commands(async (command) => {
      const keys = (await command('KEYS', `{${prefix}}:${pattern}`)) as string[] // KEYS returns names
      return keys.length
    })
  /** The number of entries of the only task: its origin, steps and answers. */
  const entryCount = () =>
    commands(async (command) => {
      const [key = ''] = (await command('KEYS', `{${prefix}}:te:*`)) as string[] // KEYS returns names
      return command('LLEN', key)
    })
  const startProxy = async () => {
    const proxy = await TcpProxy.start(server.port)
    stops.push(() => proxy.stop())
    return proxy
  }

  const must = (name: string, run: NonNullable<Tool['run']>, more = {}) =>
    tool({ name, task: { mode: 'must', ...more }, run })
  const greet = must('greet', async (_: unknown, call: Call) => {
    const { who } = await call.ask({ who: form({ message: 'Who?', schema: NAME }) })
    return `Hello, ${who.name}!`
  })

  it.each([-2, 2])('run tasks whose creator has another date (%i hours)', async (hours) => {
    prefix = newPrefix()
    const { run, begun } = controlled()
    const tool = must('work', run)
    const taskId = await start([tool], { worker: { workers: false } }).create('work')
    vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + hours * 3_600_000 })
    try {
      const worker = start([tool])
      const { call, resolve } = await begun()
      await call.step('one', () => 1)
      resolve('done')
      const { result } = await worker.until(taskId, 'completed')
      expect(result?.content).toMatchObject([{ text: 'done' }])
    } finally {
      vi.useRealTimers()
    }
  })

  it('answer tasks/get, tasks/update and tasks/cancel, whoever has created or runs a task', async () => {
    prefix = newPrefix()
    const { run, begun } = controlled()
    const tools = [greet, must('wait', run)]
    const [a, b] = [start(tools), start(tools)]
    const asked = await a.create('greet')
    const { inputRequests = {} } = await b.until(asked, 'input_required')
    // Nobody holds a task that waits for an answer.
    expect(await keyCount('tc:*')).toBe(0)
    const [key = ''] = Object.keys(inputRequests)
    await b.update(asked, { [key]: accept({ name: 'Ada' }) })
    const { result } = await a.until(asked, 'completed')
    expect(result?.content).toMatchObject([{ text: 'Hello, Ada!' }])

    const waiting = await a.create('wait')
    const { call } = await begun()
    expect(await b.get(waiting)).toMatchObject({ status: 'working' })
    await b.request('tasks/cancel', { taskId: waiting })
    expect(await a.get(waiting)).toMatchObject({ status: 'cancelled' })
    await until(() => expect(call.signal.aborted).toBe(true))
    expect(await b.error('tasks/get', { taskId: 'A'.repeat(27) })).toMatchObject({ code: -32602 })
  })

  it('notify clients that listen at another process', async () => {
    prefix = newPrefix()
    const { run, begun } = controlled()
    const tools = [must('wait', run)]
    const [a, b] = [start(tools), start(tools)]
    const taskId = await a.create('wait')
    const listening = b.send('subscriptions/listen', { notifications: { taskIds: [taskId] } })
    const states = () => b.notifications.filter(({ method }) => method === 'notifications/tasks')
    await b.notified(() => states().length === 1)
    const { call, resolve } = await begun()
    call.progress(1, 2, 'half')
    await b.notified(() => states().some(({ params }) => params?.['statusMessage'] === 'half'))
    resolve('done')
    await b.notified(() => states().some(({ params }) => params?.['status'] === 'completed'))
    b.notify('notifications/cancelled', { requestId: listening.id })
  })

  it('leave tasks to others with `workers: false`, and call tools plainly for clients without tasks', async () => {
    prefix = newPrefix()
    const toolsOf = (name: string) => [
      must('where', () => name),
      tool({ name: 'maybe', task: 'may', run: () => name }),
    ]
    const front = start(toolsOf('front'), { worker: { workers: false } })
    const queued = await front.create('where')
    const also = await front.create('maybe')
    expect(await front.get(queued)).toMatchObject({ status: 'working' })
    expect(await commands((command) => command('ZCARD', `{${prefix}}:tq`))).toBe(2)
    start(toolsOf('back'))
    for (const taskId of [queued, also]) {
      const { result } = await front.until(taskId, 'completed')
      expect(result?.content).toMatchObject([{ text: 'back' }])
    }
    const plain = start(toolsOf('plain'), {
      worker: { workers: false },
      client: { capabilities: {} },
    })
    expect(await plain.call('maybe')).toMatchObject({ content: [{ text: 'plain' }] })
    const later = await front.create('where')
    expect((await front.until(later, 'completed')).result?.content).toMatchObject([
      { text: 'back' },
    ])
  })

  it('give Redis nothing to read with `seal`, neither arguments nor steps, questions or results', async () => {
    prefix = newPrefix()
    const keys = ['a secret that all of the processes share']
    const secret = tool({
      name: 'secret',
      input: { type: 'object', properties: { text: { type: 'string' } } },
      task: 'must',
      async run({ text }, call) {
        const step = await call.step('one', () => 'SECRET step')
        const question = form({ message: 'SECRET question', schema: NAME })
        const { who } = await call.ask({ who: question })
        return `SECRET result: ${step}, ${who.name}, ${text}`
      },
    })
    const options = { worker: { seal: true }, keys }
    const [a, b] = [start([secret], options), start([secret], options)]
    const taskId = await a.create('secret', { text: 'SECRET argument' })
    const { inputRequests = {} } = await b.until(taskId, 'input_required')
    const [key = ''] = Object.keys(inputRequests)
    await b.update(taskId, { [key]: accept({ name: 'SECRET answer' }) })
    const { result } = await a.until(taskId, 'completed')
    expect(result?.content[0]?.text).toBe(
      'SECRET result: SECRET step, SECRET answer, SECRET argument',
    )
    const executed = server.executed().toString('latin1')
    expect(executed).toContain(prefix)
    expect(executed).not.toContain('SECRET')
    expect(executed).not.toContain(taskId)
  })

  it('need a shared store for `workers: false`', () => {
    expect(() => tasks({ workers: false })).toThrow('needs a store that several processes share')
    expect(() => tasks({ workers: 1 } as object)).toThrow('"workers" must be true or false')
  })

  it('run them within the wrappers of other extensions, with the caller of the task', async () => {
    prefix = newPrefix()
    const redact = extension({
      id: 'com.example/redact',
      async callTool({ settings }, run) {
        const result = await run()
        const mark = String(settings?.['mark'])
        return JSON.parse(JSON.stringify(result).replaceAll('SECRET', mark)) as object
      },
    })
    const capabilities = { extensions: { [TASKS]: {}, 'com.example/redact': { mark: '***' } } }
    const tools = [must('secret', () => 'SECRET')]
    const others = [redact]
    const front = start(tools, { others, worker: { workers: false }, client: { capabilities } })
    const taskId = await front.create('secret')
    start(tools, { others })
    const { result } = await front.until(taskId, 'completed')
    expect(result?.content).toMatchObject([{ text: '***' }])
  })

  it('run those that are as large as they may be', async () => {
    prefix = newPrefix()
    const tools = [{ ...must('done', () => 'done'), input: { type: 'object' } as const }]
    const front = start(tools, { worker: { workers: false, maxTaskBytes: 4096 } })
    const ids: string[] = []
    for (let size = 3000; size < 4096; size += 10) {
      const args = { text: 'x'.repeat(size) }
      const { result } = await front.send('tools/call', { name: 'done', arguments: args }).response
      if (result?.taskId !== undefined) ids.push(result.taskId)
    }
    expect(ids.length).toBeGreaterThan(10)
    start(tools, { worker: { maxTaskBytes: 4096 } })
    for (const id of ids) await front.until(id, 'completed')
  })

  it('run others when a handler ignores that its task was cancelled at another process', async () => {
    prefix = newPrefix()
    const begun = vi.fn()
    const tools = [must('stuck', () => new Promise(begun)), must('quick', () => 'done')]
    const front = start(tools, { worker: { workers: false } })
    start(tools, { worker: { concurrency: 1 } })
    const taskId = await front.create('stuck')
    await until(() => expect(begun).toHaveBeenCalledOnce())
    const quick = await front.create('quick')
    await front.request('tasks/cancel', { taskId })
    await front.until(quick, 'completed')
  })

  it('run one again that was answered at another process, whatever its first handler still does', async () => {
    prefix = newPrefix()
    const ask = must('ask', async (_: unknown, call: Call) => {
      if (call.attempt > 1) return 'answered'
      await call.ask({ who: form({ message: 'Who?', schema: NAME }) }).catch(() => {})
      return await new Promise(() => {})
    })
    const front = start([ask], { worker: { workers: false } })
    start([ask], { worker: { concurrency: 1 } })
    const taskId = await front.create('ask')
    const { inputRequests = {} } = await front.until(taskId, 'input_required')
    const [key = ''] = Object.keys(inputRequests)
    await front.update(taskId, { [key]: accept({ name: 'Ada' }) })
    await front.until(taskId, 'completed')
  })

  it('take over the tasks of one that stops, at once', async () => {
    prefix = newPrefix()
    const [first, second] = [controlled(), controlled()]
    const retried = { retries: 1, retryDelay: 0 }
    const a = start([must('retried', first.run, retried), must('once', first.run)])
    const taskIds = [await a.create('retried'), await a.create('once')]
    await first.begun(1)
    const b = start([must('retried', second.run, retried), must('once', second.run)])
    await a.close()
    const { call, resolve } = await second.begun()
    expect(call.key).toBe(first.runs[0]?.call.key)
    expect(call.attempt).toBe(2)
    resolve('done')
    await b.until(taskIds[0] ?? '', 'completed')
    expect(await b.until(taskIds[1] ?? '', 'failed')).toMatchObject({
      error: { code: -32603, message: expect.stringContaining('server was restarted') },
    })
  })

  it('take over the tasks of one that is cut off; it can write nothing, and its handlers are told', async () => {
    prefix = newPrefix()
    const proxy = await startProxy()
    const [first, second] = [controlled(), controlled()]
    const task = { retries: 1, retryDelay: LONG }
    const a = start([must('work', first.run, task)], { url: proxy.url, lease: 600, timeout: 300 })
    // Created elsewhere: on a busy machine `a` may exceed its time limit after it has created one.
    const front = start([must('work', second.run, task)], { worker: { workers: false } })
    const taskId = await front.create('work')
    const old = await first.begun()
    await old.call.step('before', () => 1)
    const b = start([must('work', second.run, task)])
    proxy.set('hold')
    // It has not begun again, but the old run is over.
    await until(async () =>
      expect(await b.get(taskId)).toMatchObject({
        statusMessage: 'The server was restarted; the task is run again',
      }),
    )
    // Its lease has ended: it cannot know whether the step is its own.
    const effect = vi.fn<() => number>()
    const late = old.call.step('late', effect)
    late.catch(() => {})
    const { lastUpdatedAt } = await b.get(taskId)
    proxy.set('pass')
    await until(() => expect(old.call.signal.aborted).toBe(true))
    await expect(late).rejects.toThrow(/another process/i)
    expect(effect).not.toHaveBeenCalled()
    old.resolve('too late')
    await until(async () =>
      expect(await a.get(taskId)).toMatchObject({ status: 'working', lastUpdatedAt }),
    )
    expect(await entryCount()).toBe(2)
    expect(second.runs).toHaveLength(0)
  })
})
