import { createClient } from 'redis'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { type Call, type Tool, createServer, form, tool } from '../../src/index.js'
import { type RedisOptions, RedisUnavailableError, redis } from '../../src/redis.js'
import { type TaskStore, tasks } from '../../src/tasks.js'
import { RawClient, accept } from '../extensions/raw-client.js'
import { controlled } from '../extensions/task-server.js'
import { newTask } from '../stores/task-store-contract.js'
import { RedisServer, canStartRedis, commanding, newPrefix } from './redis-server.js'
import { TcpProxy } from './tcp-proxy.js'

/* Redis that is slow, away, restarted, full, read-only or loses replies: nothing is acknowledged that is not stored. */

const NAME = {
  type: 'object',
  properties: { name: { type: 'string' } },
  required: ['name'],
} as const
const until = <Value>(condition: () => Value | Promise<Value>): Promise<Value> =>
  vi.waitFor(condition, { timeout: 60_000, interval: 10 })
const notStored = {
  code: -32603,
  message: expect.stringContaining('could not be stored') as string,
}
const notRead = { code: -32603, message: expect.stringContaining('could not be read') as string }

type Run = NonNullable<Tool['run']>

/** For a process that need not notice that Redis does not reply. */
const PATIENT = { lease: 60_000, timeout: 20_000 }

const stops: (() => unknown)[] = []
afterEach(async () => {
  vi.useRealTimers()
  for (const stop of stops.splice(0).toReversed()) await stop()
})
async function startRedis(...options: string[]): Promise<RedisServer> {
  const server = await RedisServer.start(...options)
  stops.push(() => server.stop())
  return server
}
async function startProxy(server: RedisServer): Promise<TcpProxy> {
  const proxy = await TcpProxy.start(server.port)
  stops.push(() => proxy.stop())
  return proxy
}

/** A client of a process of its own. */
function start(
  url: string,
  prefix: string,
  tools: readonly Tool[],
  more: RedisOptions = {},
  wrap: (store: TaskStore) => TaskStore = (store) => store,
  workers = true,
) {
  const stores = redis(createClient({ url }), { prefix, lease: 5000, timeout: 800, ...more })
  const extensions = [tasks({ store: wrap(stores.tasks), workers })]
  const client = new RawClient(createServer({ name: 'x', version: '1', tools, extensions }))
  stops.push(
    () => stores.close(),
    () => client.close(),
  )
  return client
}

/** The methods of a store, as own members. */
function delegating(store: TaskStore): TaskStore {
  return {
    shared: true,
    create: (task) => store.create(task),
    get: (name) => store.get(name),
    change: (name, version, change) => store.change(name, version, change),
    claim: (limit) => store.claim(limit),
    release: () => store.release(),
    subscribe: (changed, missed) => store.subscribe(changed, missed),
  }
}

const must = (name: string, run: Run, more = {}) =>
  tool({ name, task: { mode: 'must', ...more }, run })
const greet = must('greet', async (_: unknown, call: Call) => {
  const { who } = await call.ask({ who: form({ message: 'Who?', schema: NAME }) })
  return `Hello, ${who.name}!`
})
const steps = must('steps', async (_: unknown, call: Call) => {
  await Promise.all([call.step('one', () => 1), call.step('two', () => 2)])
  const { who } = await call.ask({ who: form({ message: 'Who?', schema: NAME }) })
  await call.step('three', () => 3)
  return `Hello, ${who.name}! Attempt ${call.attempt}`
})
const may = tool({ name: 'may', task: { mode: 'may', after: 0 }, run: () => 'plainly' })
const called = (name: string) => ({ name, arguments: {} })

describe.skipIf(!canStartRedis)('tasks in Redis', () => {
  it.each(['hold', 'refuse'] as const)(
    'are not acknowledged while it is out of reach (%s), and go on afterwards',
    async (mode) => {
      const server = await startRedis()
      const proxy = await startProxy(server)
      const { run, begun } = controlled()
      const client = start(proxy.url, newPrefix(), [greet, may, must('work', run)])
      // A busy machine may exceed the short time limit.
      const parked = await until(() => client.create('greet'))
      const working = await until(() => client.create('work'))
      const { inputRequests = {} } = await readable(client, parked, 'input_required')
      const { call, resolve } = await begun()
      proxy.set(mode)
      expect(await client.error('tools/call', called('greet'))).toMatchObject(notStored)
      expect(await client.call('may')).toMatchObject({ content: [{ text: 'plainly' }] })
      for (const method of ['tasks/get', 'tasks/update', 'tasks/cancel'])
        expect(await client.error(method, { taskId: parked, inputResponses: {} })).toMatchObject(
          notRead,
        )
      // The handler goes on, and its result is stored later.
      const step = call.step('one', () => 1)
      expect(call.signal.aborted).toBe(false)
      proxy.set('pass')
      await step
      resolve('done')
      expect((await readable(client, working, 'completed')).result?.content).toMatchObject([
        { text: 'done' },
      ])
      const [key = ''] = Object.keys(inputRequests)
      await until(() => client.update(parked, { [key]: accept({ name: 'Ada' }) }))
      await readable(client, parked, 'completed')
    },
  )

  it('that may have been created without a reply are deleted', async () => {
    const server = await startRedis()
    const proxy = await startProxy(server)
    const prefix = newPrefix()
    const { run, runs } = controlled()
    const client = start(proxy.url, prefix, [must('work', run), greet])
    const known = await until(() => client.create('greet'))
    await readable(client, known, 'input_required')
    const names = () =>
      commanding(server.url, async (command) => {
        const keys = await command('KEYS', `{${prefix}}:t:*`)
        return (keys as string[]).length // KEYS returns names
      })
    await until(async () => expect(await names()).toBe(1))
    proxy.set('lose replies')
    expect(await client.error('tools/call', called('work'))).toMatchObject(notStored)
    await until(async () => expect(await names()).toBe(2))
    proxy.set('pass')
    await until(async () => expect(await names()).toBe(1))
    expect(runs).toHaveLength(0)
    await readable(client, known, 'input_required')
    // What they were charged is given back when another one is created.
    await until(() => client.create('greet'))
    const usage = `{${prefix}}:tu`
    expect(await commanding(server.url, (command) => command('HGET', usage, 'tasks'))).toBe('2')
  })

  it('that were claimed without a reply can be claimed again, though the lease is renewed', async () => {
    const server = await startRedis()
    const proxy = await startProxy(server)
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    const options = { prefix: newPrefix(), lease: 60_000, timeout: 60_000 }
    const [cut, other] = [proxy.url, server.url].map((url) => redis(createClient({ url }), options))
    if (cut === undefined || other === undefined) throw new Error('not made')
    stops.push(cut.close, other.close)
    // It has another task, for which it renews its lease.
    await cut.tasks.create(newTask('kept', { claimed: true }))
    // So that Redis has the script.
    await cut.tasks.claim(0)
    await other.tasks.create(newTask('a'))
    proxy.set('lose replies')
    const claiming = Promise.resolve(cut.tasks.claim(1)).catch((error: unknown) => error)
    const queue = ['ZCARD', `{${options.prefix}}:tq`]
    await until(async () =>
      expect(await commanding(server.url, (command) => command(...queue))).toBe(0),
    )
    proxy.set('refuse')
    expect(await claiming).toMatchObject({ code: 'REDIS_UNAVAILABLE' })
    expect(await other.tasks.claim(9)).toEqual([])
    proxy.set('pass')
    await until(async () => {
      // Until the next renewal.
      vi.advanceTimersByTime(options.lease / 3)
      expect(await other.tasks.claim(9)).toMatchObject([{ name: 'a' }])
    })
    vi.useRealTimers()
    expect(await other.tasks.claim(9)).toEqual([])
    await cut.tasks.release()
    expect(await other.tasks.claim(9)).toMatchObject([{ name: 'kept' }])
  })

  it('are written once, though replies are lost', async () => {
    const server = await startRedis()
    const prefix = newPrefix()
    const front = start(server.url, prefix, [steps], PATIENT, (store) => store, false)
    const lost: string[] = []
    const worker = start(server.url, prefix, [steps], PATIENT, (store) => ({
      ...delegating(store),
      async change(name, version, change) {
        const outcome = await store.change(name, version, change)
        // Each change once: after it was stored, the process does not learn so.
        if (outcome !== 'changed' || lost.includes(change.state)) return outcome
        lost.push(change.state)
        throw new RedisUnavailableError('The reply was lost')
      },
    }))
    const taskId = await front.create('steps')
    const { inputRequests = {} } = await readable(front, taskId, 'input_required')
    const entries = () =>
      commanding(server.url, async (command) => {
        const [key = ''] = (await command('KEYS', `{${prefix}}:te:*`)) as string[] // KEYS returns names
        const list = (await command('LRANGE', key, '0', '-1')) as string[]
        return list.flatMap((text) => Object.values(JSON.parse(text) as object)[0] as unknown)
      })
    expect(await entries()).toEqual([expect.anything(), 'one', 'two'])
    const [key = ''] = Object.keys(inputRequests)
    await front.update(taskId, { [key]: accept({ name: 'Ada' }) })
    const { result } = await readable(worker, taskId, 'completed')
    expect(result?.content).toMatchObject([{ text: 'Hello, Ada! Attempt 2' }])
    expect(lost.length).toBeGreaterThan(5)
  })

  it('are all there after it was killed and restarted', async () => {
    const server = await startRedis()
    const { run, begun } = controlled()
    const client = start(server.url, newPrefix(), [greet, must('work', run)], PATIENT)
    const parked = await Promise.all(Array.from({ length: 10 }, () => client.create('greet')))
    for (const taskId of parked) await client.until(taskId, 'input_required')
    const working = await client.create('work')
    const { resolve } = await begun()
    await server.kill()
    expect(await client.error('tools/call', called('greet'))).toMatchObject(notStored)
    resolve('done')
    await server.restart()
    await readable(client, working, 'completed')
    for (const taskId of parked) {
      const { inputRequests = {} } = await readable(client, taskId, 'input_required')
      const [key = ''] = Object.keys(inputRequests)
      await until(() => client.update(taskId, { [key]: accept({ name: 'Ada' }) }))
    }
    for (const taskId of parked) await readable(client, taskId, 'completed')
  })

  it('are not created while it is full, and those that exist end when it has room', async () => {
    const server = await startRedis('--maxmemory', '100mb', '--maxmemory-policy', 'noeviction')
    const { run, begun } = controlled()
    const client = start(server.url, newPrefix(), [greet, may, must('work', run)], PATIENT)
    const [parked, working] = [await client.create('greet'), await client.create('work')]
    const { inputRequests = {} } = await client.until(parked, 'input_required')
    const [key = ''] = Object.keys(inputRequests)
    const { resolve } = await begun()
    await commanding(server.url, async (command) => {
      await command('CONFIG', 'SET', 'maxmemory', '1')
      expect(await client.error('tools/call', called('greet'))).toMatchObject(notStored)
      expect(await client.call('may')).toMatchObject({ content: [{ text: 'plainly' }] })
      const answer = { taskId: parked, inputResponses: { [key]: accept({ name: 'Ada' }) } }
      expect(await client.error('tasks/update', answer)).toMatchObject(notStored)
      expect(await client.error('tasks/cancel', { taskId: parked })).toMatchObject(notStored)
      resolve('done')
      expect(await client.get(working)).toMatchObject({ status: 'working' })
      expect(await client.get(parked)).toMatchObject({ status: 'input_required' })
      await command('CONFIG', 'SET', 'maxmemory', '100mb')
    })
    await readable(client, working, 'completed')
    await client.update(parked, { [key]: accept({ name: 'Ada' }) })
    await readable(client, parked, 'completed')
  })

  it('are not created while it is a replica that cannot be written', async () => {
    const server = await startRedis()
    const primary = await startRedis()
    const client = start(server.url, newPrefix(), [greet, may], PATIENT)
    await client.until(await client.create('greet'), 'input_required')
    await commanding(server.url, async (command) => {
      await command('REPLICAOF', '127.0.0.1', String(primary.port))
      expect(await client.error('tools/call', called('greet'))).toMatchObject(notStored)
      expect(await client.call('may')).toMatchObject({ content: [{ text: 'plainly' }] })
      await command('REPLICAOF', 'NO', 'ONE')
    })
    await until(() => client.create('greet'))
  })

  it('that it has lost end their handlers', async () => {
    const server = await startRedis()
    const { run, begun } = controlled()
    const client = start(server.url, newPrefix(), [must('work', run)], {
      ...PATIENT,
      lease: 1000,
    })
    const taskId = await client.create('work')
    const { call } = await begun()
    await commanding(server.url, (command) => command('FLUSHALL'))
    await until(() => expect(call.signal.aborted).toBe(true))
    expect(await client.error('tasks/get', { taskId })).toMatchObject({ code: -32602 })
  })

  it('may take long, if it is slow', async () => {
    const server = await startRedis()
    const proxy = await startProxy(server)
    const client = start(proxy.url, newPrefix(), [greet], PATIENT)
    await client.request('tools/list')
    proxy.set('delay')
    const taskId = await client.create('greet')
    const { inputRequests = {} } = await client.until(taskId, 'input_required')
    const [key = ''] = Object.keys(inputRequests)
    await client.update(taskId, { [key]: accept({ name: 'Ada' }) })
    await client.until(taskId, 'completed')
  })
})

/** A task when it has a status; Redis may be out of reach at first. */
async function readable(client: RawClient, taskId: string, status: string) {
  return until(async () => {
    const { result } = await client.send('tasks/get', { taskId }).response
    expect(result).toMatchObject({ status })
    return result ?? {}
  })
}
