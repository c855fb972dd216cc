import { afterEach, describe, expect, it, vi } from 'vitest'
import { TaskSlots } from '../../src/extensions/tasks/task-slots.js'
import type { LogEntry } from '../../src/jsonrpc/log-entry.js'
import { type Call, type Tool, createServer, form, tool } from '../../src/index.js'
import {
  MemoryTaskStore,
  type TaskCommand,
  type TaskStore,
  type TasksOptions,
  tasks,
} from '../../src/tasks.js'
import { onStillClock } from '../clock.js'
import { RawClient, type Result, accept } from './raw-client.js'
import { controlled, serverOf, until } from './task-server.js'

/* A task always ends: however near its limits it is, and whatever other handlers do. */

const TEXT = { type: 'object', properties: { text: { type: 'string' } } } as const
const NAME = { type: 'object', properties: { name: { type: 'string' } } } as const
const ENDED = new Set<unknown>(['completed', 'failed', 'cancelled'])

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

/** A store, and a promise of the end of its first server. */
function restartable() {
  const store: MemoryTaskStore & TaskStore = new MemoryTaskStore()
  const closed = new Promise<void>((resolve) => {
    store.close = resolve
  })
  return { store, closed }
}

/** Calls a tool that must be a task; undefined if the call is too large for one. */
async function accepted(
  client: RawClient,
  name: string,
  args: object,
): Promise<string | undefined> {
  const { response } = client.send('tools/call', { name, arguments: args })
  const { result, error } = await response
  if (error !== undefined) expect(error.message).toContain('too large for a task')
  return result?.taskId
}

async function ended(client: RawClient, taskId: string): Promise<Result> {
  let task: Result = {}
  for (let turn = 0; turn < 20_000; turn++) {
    task = await client.get(taskId)
    if (ENDED.has(task.status)) return task
    await new Promise((resolve) => setImmediate(resolve))
  }
  throw new Error(`the task has not ended: ${JSON.stringify(task)}`)
}

/** Sizes up to that which no longer fits. */
const SIZES = Array.from({ length: 250 }, (_, index) => 1500 + 8 * index)
const textOf = (length: number) => ({ text: 'x'.repeat(length) })

describe.each([
  ['plain', {}],
  ['sealed', { seal: true }],
] as const)('a task that is as large as it may be (%s)', (_, sealing) => {
  const make = (tools: readonly Tool[], options: TasksOptions) =>
    createServer({
      name: 'x',
      version: '1',
      tools,
      state: { keys: ['0123456789abcdef0123456789abcdef'] },
      extensions: [tasks({ maxTaskBytes: 4096, ...sealing, ...options })],
    })

  it('is run from the queue', async () => {
    const { run, begun } = controlled()
    const block: Tool = { name: 'block', input: { type: 'object' }, task: 'must', run }
    const echo = tool({ name: 'echo', input: TEXT, task: 'must', run: ({ text }) => text ?? '' })
    const client = clientOf(make([block, echo], { concurrency: 1 }))
    await client.create('block')
    const ids: string[] = []
    let refused = 0
    for (const size of SIZES) {
      const id = await accepted(client, 'echo', textOf(size))
      if (id === undefined) refused++
      else ids.push(id)
    }
    expect(refused).toBeGreaterThan(0)
    expect(ids.length).toBeGreaterThan(0)
    ;(await begun()).resolve('done')
    const states = new Set<unknown>()
    for (const id of ids) states.add((await ended(client, id)).status)
    expect([...states]).toEqual(['completed'])
  })

  it('is run again after it was interrupted', async () => {
    const { store, closed } = restartable()
    const job = (run: NonNullable<Tool['run']>): Tool => ({
      name: 'job',
      input: TEXT,
      task: { mode: 'must', retries: 3, retryDelay: 0 },
      run,
    })
    const first = clientOf(make([job(controlled().run)], { store }))
    const ids: string[] = []
    for (const size of SIZES) {
      const id = await accepted(first, 'job', textOf(size))
      if (id !== undefined) ids.push(id)
    }
    await first.close()
    await closed
    const second = clientOf(make([job(() => 'done')], { store }))
    const states = new Set<unknown>()
    for (const id of ids) states.add((await ended(second, id)).status)
    expect([...states]).toEqual(['completed'])
  })

  it('ends after steps, questions and answers of any size', async () => {
    const ask = tool({
      name: 'ask',
      input: TEXT,
      task: 'must',
      async run({ text = '' }, call) {
        await call.step('step', () => text.slice(0, text.length / 2))
        const { who } = await call.ask({ who: form({ message: 'Who?', schema: NAME }) })
        return who.name ?? ''
      },
    })
    const client = clientOf(make([ask], {}))
    let answered = 0
    for (let size = 0; size < 3500; size += 30) {
      const id = await accepted(client, 'ask', textOf(size / 2))
      if (id === undefined) continue
      let task = await client.get(id)
      while (task.status === 'working') task = await client.get(id)
      const [key] = Object.keys(task.inputRequests ?? {})
      if (key !== undefined) {
        const inputResponses = { [key]: accept({ name: 'x'.repeat(size / 2) }) }
        const { error } = await client.send('tasks/update', { taskId: id, inputResponses }).response
        if (error === undefined) answered++
        else {
          expect(error.message).toContain('no room for the answers')
          await client.request('tasks/cancel', { taskId: id })
        }
      }
      await ended(client, id)
    }
    expect(answered).toBeGreaterThan(0)
  })
})

describe('a queued task', () => {
  /** A client of a server with one task that waits for another one to end. */
  async function queued(store: TaskStore) {
    const { run, begun } = controlled()
    const block: Tool = { name: 'block', input: { type: 'object' }, task: 'must', run }
    const echo = tool({ name: 'echo', input: TEXT, task: 'must', run: () => 'done' })
    const client = clientOf(serverOf([block, echo], { store, concurrency: 1 }))
    await client.create('block')
    const taskId = await client.create('echo', textOf(10_000))
    return { client, taskId, unblock: async () => (await begun()).resolve('done') }
  }

  it('is run though its owner has used all bytes', async () => {
    const measured = new MemoryTaskStore()
    await queued(measured)
    const store = new MemoryTaskStore({ maxBytesPerOwner: measured.bytes })
    const { client, taskId, unblock } = await queued(store)
    await unblock()
    expect(await ended(client, taskId)).toMatchObject({ status: 'completed' })
  })

  it('fails if the store has no room to begin it', async () => {
    const store = new MemoryTaskStore()
    const { client, taskId, unblock } = await queued(store)
    const change = store.change.bind(store)
    store.change = (name, version, its) =>
      its.clear === true ? change(name, version, its) : 'full'
    await unblock()
    expect(await ended(client, taskId)).toMatchObject({
      status: 'failed',
      statusMessage: expect.stringContaining('limits of the store'),
    })
  })

  it('fails if the store has no room for the reason either', async () => {
    const store = new MemoryTaskStore()
    const { client, taskId, unblock } = await queued(store)
    const change = store.change.bind(store)
    store.change = (name, version, its) =>
      its.clear === true && !its.state.includes('limits of the store')
        ? change(name, version, its)
        : 'full'
    await unblock()
    expect(await ended(client, taskId)).toMatchObject({
      status: 'failed',
      statusMessage: expect.stringContaining('no room'),
    })
  })
})

it('fails tasks that are larger than a new limit: queued and interrupted ones', async () => {
  const { store, closed } = restartable()
  const job = (run: NonNullable<Tool['run']>): Tool => ({
    name: 'job',
    input: TEXT,
    task: { mode: 'must', retries: 1, retryDelay: 0 },
    run,
  })
  const { run, begun } = controlled()
  const first = clientOf(serverOf([job(run)], { store, concurrency: 1 }))
  const ids = [await first.create('job', textOf(10_000)), await first.create('job', textOf(10_000))]
  await begun()
  await first.close()
  await closed
  const limited = serverOf([job(() => 'done')], { store, maxTaskBytes: 4096 })
  const second = clientOf(limited)
  for (const id of ids)
    expect(await ended(second, id)).toMatchObject({
      status: 'failed',
      statusMessage: expect.stringContaining('limit of bytes'),
    })
})

it.each([0, 1])('a task takes one slot when it begins, after %d ms and queued', async (after) => {
  const free: number[] = []
  const { take } = TaskSlots.prototype
  vi.spyOn(TaskSlots.prototype, 'take').mockImplementation(function (this: TaskSlots, run) {
    Reflect.apply(take, this, [run])
    free.push(this.free)
  })
  const { run, begun } = controlled()
  const job: Tool = { name: 'job', input: { type: 'object' }, task: { mode: 'must', after }, run }
  const queued: Tool = { name: 'queued', input: { type: 'object' }, task: 'must', run }
  const client = clientOf(serverOf([job, queued], { concurrency: 1 }))
  const ids = [await client.create('job'), await client.create('queued')]
  for (const [index, id] of ids.entries()) {
    ;(await begun(index)).resolve('done')
    await ended(client, id)
  }
  expect(free).toEqual([0, 0])
})

describe('a handler that does not return', () => {
  /** Handlers that ignore their signals. */
  function deaf(task: Omit<NonNullable<Tool['task']> & object, 'mode'> = {}) {
    const runs: { call: Call; resolve: (value: string) => void }[] = []
    const run = (__: unknown, call: Call) =>
      new Promise<string>((resolve) => void runs.push({ call, resolve }))
    const stuck: Tool = {
      name: 'stuck',
      input: { type: 'object' },
      task: { mode: 'must', ...task },
      run,
    }
    return { stuck, runs }
  }
  const quick = tool({ name: 'quick', task: 'must', run: () => 'done' })

  it('takes no room when its task was cancelled', async () => {
    const { stuck, runs } = deaf()
    const client = clientOf(serverOf([stuck, quick], { concurrency: 2 }))
    const ids = [await client.create('stuck'), await client.create('stuck')]
    await until(() => runs.length === 2)
    const waiting = await client.create('quick')
    for (const taskId of ids) await client.request('tasks/cancel', { taskId })
    await client.until(waiting, 'completed')
    await client.until(await client.create('quick'), 'completed')
    runs[0]?.resolve('late')
    expect(await client.get(ids[0] ?? '')).toMatchObject({ status: 'cancelled' })
  })

  it('takes no room when its task has expired', () =>
    onStillClock(async (pass) => {
      const { stuck, runs } = deaf({ ttl: 5000 })
      const client = clientOf(serverOf([stuck, quick], { concurrency: 1 }))
      await client.create('stuck')
      await until(() => runs.length === 1)
      const waiting = await client.create('quick')
      await pass(5000)
      await client.until(waiting, 'completed')
    }))

  it('takes no room when its task is run again', async () => {
    const { stuck, runs } = deaf()
    let send: (command: TaskCommand) => void = () => {}
    const store: MemoryTaskStore = Object.assign(new MemoryTaskStore(), {
      receiveCommands: (run: (command: TaskCommand) => void) => {
        send = run
        return () => {}
      },
    })
    const client = clientOf(serverOf([stuck, quick], { store, concurrency: 1 }))
    const taskId = await client.create('stuck')
    await until(() => runs.length === 1)
    send({ command: 'retry', name: [...store.entries()][0]?.name ?? '' })
    await until(() => runs.length === 2)
    runs[1]?.resolve('second')
    await client.until(taskId, 'completed')
    await client.until(await client.create('quick'), 'completed')
  })

  it('takes no room when it has asked', async () => {
    const asks = tool({
      name: 'asks',
      task: 'must',
      async run(_, call) {
        if (call.attempt > 1) return 'answered'
        await call.ask({ who: form({ message: 'Who?', schema: NAME }) }).catch(() => {})
        return await new Promise<string>(() => {})
      },
    })
    const client = clientOf(serverOf([asks, quick], { concurrency: 1 }))
    const taskId = await client.create('asks')
    const { inputRequests = {} } = await client.until(taskId, 'input_required')
    await client.until(await client.create('quick'), 'completed')
    await client.update(taskId, { [Object.keys(inputRequests)[0] ?? '']: accept({ name: 'x' }) })
    await client.until(taskId, 'completed')
  })

  it('keeps its slot when others like it hold too many bytes, until some of them return', () => {
    const entries: LogEntry[] = []
    const run = () => ({ owner: '', bytes: 4096, parked: false })
    const slots = new TaskSlots(4, (entry) => entries.push(entry), { detached: 10_000 })
    const [a, b, c, d, e, f] = [run(), run(), run(), run(), run(), run()]
    for (const detached of [a, b, c]) {
      slots.take(detached)
      slots.detach(detached)
      slots.detach(detached)
    }
    expect(slots.free).toBe(4)
    for (const kept of [d, e]) {
      slots.take(kept)
      slots.detach(kept)
    }
    expect(slots.free).toBe(2)
    expect(entries).toMatchObject([
      { level: 'warning', message: expect.stringContaining('3 handlers') },
    ])
    slots.end(a)
    expect(slots.free).toBe(3)
    slots.end(e)
    expect(slots.free).toBe(4)
    for (const ended of [b, c, d]) slots.end(ended)
    slots.take(f)
    slots.detach(f)
    expect(slots.free).toBe(4)
    expect(entries).toHaveLength(1)
  })

  it('keeps its slot when there are as many like it as slots, unless it has asked', () => {
    const slots = new TaskSlots(1, () => {})
    const [a, b] = [
      { owner: '', bytes: 1, parked: false },
      { owner: '', bytes: 1, parked: false },
    ]
    const detach = (run: typeof a) => {
      slots.take(run)
      slots.detach(run)
      return slots.free
    }
    expect(detach({ owner: '', bytes: 1, parked: true })).toBe(1)
    expect(detach(a)).toBe(1)
    expect(detach({ owner: '', bytes: 1, parked: true })).toBe(1)
    expect(detach(b)).toBe(0)
    slots.end(a)
    expect(slots.free).toBe(1)
  })

  it('lets no other start while those with slots hold too many bytes, in all or of one principal', () => {
    const slots = new TaskSlots(8, () => {}, { running: 10_000 })
    const take = (owner: string, bytes: number) => {
      const run = { owner, bytes, parked: false }
      slots.take(run)
      return run
    }
    const free = () => [slots.free, slots.freeFor('ada'), slots.freeFor('bob'), slots.freeFor('')]
    const [first, second] = [take('ada', 2000), take('ada', 2000)]
    expect(free()).toEqual([6, 2, 4, 6])
    second.bytes = 3000
    slots.update(second)
    expect(free()).toEqual([6, 0, 4, 6])
    // Its tasks are not claimed either.
    expect(slots.shares).toMatchObject({ most: 4, taken: new Map([['ada', 4]]) })
    const release = slots.reserve('', 5000)
    expect(free()).toEqual([0, 0, 0, 0])
    release()
    slots.end(first)
    expect(free()).toEqual([7, 3, 4, 7])
    slots.detach(second)
    expect(free()).toEqual([8, 4, 4, 8])
    slots.end(second)
    expect(slots.shares.taken.size).toBe(0)
  })

  it('leaves half of what such handlers may take to other principals', () => {
    const slots = new TaskSlots(4, () => {}, { detached: 10_000 })
    const detach = (owner: string, bytes: number, parked = false) => {
      const run = { owner, bytes, parked }
      slots.take(run)
      slots.detach(run)
      return run
    }
    const [first] = [detach('ada', 1), detach('ada', 1)]
    expect([slots.free, slots.freeFor('ada'), slots.freeFor('bob')]).toEqual([4, 2, 2])
    detach('ada', 1)
    detach('ada', 1)
    expect([slots.free, slots.freeFor('ada'), slots.freeFor('bob')]).toEqual([2, 0, 2])
    detach('bob', 1)
    expect([slots.free, slots.freeFor('ada'), slots.freeFor('bob')]).toEqual([2, 0, 2])
    slots.end(first)
    expect([slots.free, slots.freeFor('ada'), slots.freeFor('bob')]).toEqual([3, 1, 2])
    // By their bytes too: beyond 5000, those of one principal keep their slots.
    const parked = [detach('eve', 4000, true), detach('eve', 4000, true), detach('eve', 1, true)]
    expect(slots.freeFor('eve')).toBe(1)
    for (const run of parked) slots.end(run)
    expect(slots.freeFor('eve')).toBe(2)
    expect([...slots.shares.taken.keys()].toSorted()).toEqual(['ada', 'bob'])
  })

  it('runs beside at most as many as there are slots', async () => {
    const { stuck, runs } = deaf()
    const client = clientOf(serverOf([stuck, quick], { concurrency: 2 }))
    for (let each = 0; each < 8; each++) {
      const taskId = await client.create('stuck')
      if (each < 4) await until(() => runs.length === each + 1)
      await client.request('tasks/cancel', { taskId })
    }
    expect(runs).toHaveLength(4)
    const waiting = await client.create('quick')
    for (let turn = 0; turn < 50; turn++) await new Promise((resolve) => setImmediate(resolve))
    expect(await client.get(waiting)).toMatchObject({ status: 'working' })
    runs[0]?.resolve('late')
    await client.until(waiting, 'completed')
    // Those that were cancelled in the queue are not run.
    expect(runs).toHaveLength(4)
  })

  it('is counted with the bytes of its arguments and steps', async () => {
    const { stuck, runs } = deaf()
    const large: Tool = {
      ...stuck,
      name: 'large',
      run: async (_, call) => {
        await call.step('large', () => 'x'.repeat(2_500_000))
        return await new Promise<string>(() => void runs.push({ call, resolve: () => {} }))
      },
    }
    const concurrency = 12
    const client = clientOf(serverOf([large, quick], { concurrency }))
    const text = 'x'.repeat(1_000_000)
    let begun = 0
    // 64 MiB are enough for about nine of them, each with two copies of 3.5 million characters; others keep their slots.
    for (; begun < 2 * concurrency; begun++) {
      const taskId = await client.create('large', { text })
      for (let turn = 0; turn < 500 && runs.length === begun; turn++)
        await new Promise((resolve) => setImmediate(resolve))
      await client.request('tasks/cancel', { taskId })
      if (runs.length === begun) break
    }
    expect(begun - concurrency).toBeGreaterThan(8)
    expect(begun - concurrency).toBeLessThan(12)
  })
})
