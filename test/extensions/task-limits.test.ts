import { afterEach, describe, expect, it, vi } from 'vitest'
import { TaskRecords } from '../../src/extensions/tasks/task-records.js'
import { type Tool, form, tool } from '../../src/index.js'
import { MemoryTaskStore, type StoredTask } from '../../src/tasks.js'
import { connectInMemory } from '../../src/testing.js'
import { onStillClock } from '../clock.js'
import { RawClient } from './raw-client.js'
import { controlled, serverOf, until } from './task-server.js'

/* What a task may cost: time, bytes, messages; and what others learn of it. */

const NAME = {
  type: 'object',
  properties: { name: { type: 'string' } },
  required: ['name'],
} as const
const TEXT = { type: 'object', properties: { text: { type: 'string' } } } as const

const clients: RawClient[] = []
afterEach(async () => {
  vi.restoreAllMocks()
  for (const client of clients.splice(0)) await client.close()
})
function clientOf(...given: ConstructorParameters<typeof RawClient>): RawClient {
  const client = new RawClient(...given)
  clients.push(client)
  return client
}

const ask = tool({
  name: 'ask',
  input: TEXT,
  task: { mode: 'must', ttl: 60_000 },
  async run(_, call) {
    const { who } = await call.ask({ who: form({ message: 'Who?', schema: NAME }) })
    return `Hello, ${who.name}!`
  },
})

describe('limits', () => {
  const principalOf = (id: string) => ({ principal: { id, scopes: [] } })

  it.each([
    ['of one principal', { maxBytesPerOwner: 40_000 }, true],
    ['of all', { maxBytes: 40_000 }, false],
  ])('in bytes %s: a task is refused, and others live', async (_, limits, othersMay) => {
    const server = serverOf([ask], { store: new MemoryTaskStore(limits) })
    const [ada, bob] = [clientOf(server, principalOf('ada')), clientOf(server, principalOf('bob'))]
    const text = 'x'.repeat(25_000)
    const taskId = await ada.create('ask', { text })
    expect(await ada.error('tools/call', { name: 'ask', arguments: { text } })).toMatchObject({
      code: -32603,
      message: expect.stringContaining('no room'),
    })
    const { response } = bob.send('tools/call', { name: 'ask', arguments: { text } })
    expect((await response).error === undefined).toBe(othersMay)
    await ada.until(taskId, 'input_required')
    await ada.request('tasks/cancel', { taskId })
    await ada.create('ask', { text })
  })

  it('in bytes of a status message', () =>
    onStillClock(async (pass) => {
      const { run, begun } = controlled()
      const slow: Tool = { name: 'slow', input: { type: 'object' }, task: 'must', run }
      const client = clientOf(serverOf([slow]))
      const taskId = await client.create('slow')
      const { call } = await begun()
      call.progress(1, 2, 'x'.repeat(1_000_000))
      await pass(1000)
      const { statusMessage } = await client.get(taskId)
      expect(statusMessage?.length).toBeLessThan(1100)
    }))
})

describe('the slots of one principal', () => {
  const principalOf = (id: string) => ({ principal: { id, scopes: [] } })
  /** A server whose tasks run until they are told to end, and how many of them were running at most. */
  function slow(options: Parameters<typeof serverOf>[1], task: object = {}) {
    const running = new Map<string, (() => void)[]>()
    let most = 0
    const job: Tool = {
      name: 'job',
      input: { type: 'object' },
      task: { mode: 'must', ...task },
      run: (_, { client }) =>
        new Promise<string>((resolve) => {
          const own = running.get(client.principal?.id ?? '') ?? []
          running.set(client.principal?.id ?? '', own)
          own.push(() => resolve('done'))
          most = Math.max(most, own.length)
        }),
    }
    const count = (id: string) => running.get(id)?.length ?? 0
    const endOne = (id: string) => running.get(id)?.shift()?.()
    return { server: serverOf([job], options), count, endOne, most: () => most }
  }
  const turns = async () => {
    for (let turn = 0; turn < 30; turn++) await new Promise((resolve) => setImmediate(resolve))
  }

  it.each([
    [8, 4],
    [5, 2],
    [1, 1],
  ])('are at most half: of %i, %i', async (concurrency, half) => {
    const { server, count, endOne, most } = slow({ concurrency })
    const [ada, bob] = [clientOf(server, principalOf('ada')), clientOf(server, principalOf('bob'))]
    const ids = await Promise.all(Array.from({ length: 12 }, () => ada.create('job')))
    await turns()
    expect(count('ada')).toBe(half)
    if (concurrency > 1) {
      await bob.create('job')
      await until(() => count('bob') === 1)
    }
    // What was queued is run in its turn.
    for (let each = 0; each < ids.length; each++) {
      await until(() => count('ada') > 0)
      endOne('ada')
    }
    for (const id of ids) await ada.until(id, 'completed')
    expect(most()).toBe(half)
  })

  it('are at most half of those of calls that become tasks: others stay calls', async () => {
    const { server, count, endOne } = slow({ concurrency: 4 }, { mode: 'may', after: 1 })
    const ada = clientOf(server, principalOf('ada'))
    const calls = Array.from({ length: 4 }, () => ada.call('job'))
    const created = new Set<unknown>()
    for (const call of calls) void call.then(({ taskId }) => created.add(taskId))
    await until(() => created.size === 2)
    await turns()
    expect([count('ada'), created.size]).toEqual([4, 2])
    for (let each = 0; each < 4; each++) endOne('ada')
    const results = await Promise.all(calls)
    expect(results.filter(({ resultType }) => resultType === 'task')).toHaveLength(2)
  })

  it('are all, if it is not authenticated', async () => {
    const { server, count } = slow({ concurrency: 8 })
    const [one, other] = [clientOf(server), clientOf(server)]
    await Promise.all(Array.from({ length: 6 }, () => one.create('job')))
    await Promise.all(Array.from({ length: 6 }, () => other.create('job')))
    await until(() => count('') === 8)
    await turns()
    expect(count('')).toBe(8)
  })
})

describe('a task of another principal', () => {
  it('is compared by its owner before anything of it is read', async () => {
    const stored: StoredTask = {
      name: 'a',
      owner: 'principal ada',
      expires: Infinity,
      runnable: true,
      version: 1,
      state: 'not JSON: reading it would take longer for a large task',
    }
    const store = Object.assign(new MemoryTaskStore(), { get: () => stored })
    const records = new TaskRecords(store, 4096)
    expect(await records.get('a', 'principal bob')).toBeUndefined()
    await expect(records.get('a', 'principal ada')).rejects.toThrow(SyntaxError)
  })
})

describe('time', () => {
  it('ends tasks that wait for an answer, which free their room', () =>
    onStillClock(async (pass) => {
      const store = new MemoryTaskStore({ maxTasks: 1 })
      const client = clientOf(serverOf([ask], { store }))
      const taskId = await client.create('ask')
      await pass(59_999)
      expect(await client.get(taskId)).toMatchObject({ taskId })
      await pass(1)
      expect(await client.error('tasks/get', { taskId })).toMatchObject({ code: -32602 })
      const params = { taskId, inputResponses: {} }
      expect(await client.error('tasks/update', params)).toMatchObject({ code: -32602 })
      expect(await client.error('tasks/cancel', { taskId })).toMatchObject({ code: -32602 })
      await client.create('ask')
      expect(store.size).toBe(1)
    }))

  it('ends tasks in the queue, which are never run', () =>
    onStillClock(async (pass) => {
      const { run, runs, begun } = controlled()
      const slow: Tool = {
        name: 'slow',
        input: { type: 'object' },
        task: { mode: 'must', ttl: 600_000 },
        run,
      }
      const short: Tool = { ...slow, name: 'short', task: { mode: 'must', ttl: 1000 } }
      const client = clientOf(serverOf([slow, short], { concurrency: 1 }))
      const first = await client.create('slow')
      const running = await begun()
      await client.create('short')
      const last = await client.create('slow')
      await pass(1000)
      running.resolve('done')
      await client.until(first, 'completed')
      ;(await begun(1)).resolve('done')
      await client.until(last, 'completed')
      expect(runs).toHaveLength(2)
    }))

  it('makes the poll interval longer, unless the tool has set one', () =>
    onStillClock(async (pass) => {
      const { run } = controlled()
      const slow: Tool = { name: 'slow', input: { type: 'object' }, task: 'must', run }
      const fixed: Tool = { ...slow, name: 'fixed', task: { mode: 'must', poll: 7 } }
      const client = clientOf(serverOf([slow, fixed]))
      const [one, two] = [await client.create('slow'), await client.create('fixed')]
      const poll = async (taskId: string) => (await client.get(taskId))['pollIntervalMs']
      expect([await poll(one), await poll(two)]).toEqual([1000, 7])
      await pass(60_000)
      expect([await poll(one), await poll(two)]).toEqual([3000, 7])
      await pass(3_000_000)
      expect([await poll(one), await poll(two)]).toEqual([10_000, 7])
    }))
})

it('writes log messages of a task to the log of the server, and sends none', async () => {
  const report = vi.fn()
  const told = tool({
    name: 'told',
    task: 'must',
    run: (_, call) => {
      call.log.warning('paper is low', 'printer')
      return 'done'
    },
  })
  const server = serverOf([told])
  const channel = connectInMemory(server, { report })
  const client = clientOf(server)
  await client.until(await client.create('told'), 'completed')
  await until(() => report.mock.calls.length > 0)
  expect(JSON.stringify(report.mock.calls)).toContain('paper is low')
  expect(client.notifications).toEqual([])
  await channel.close()
})
