import fs, { mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { PassThrough } from 'node:stream'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { listen } from '../../src/http.js'
import { type Tool, form, tool } from '../../src/index.js'
import { JournalTaskStore } from '../../src/journal.js'
import { MemoryTaskStore, type TaskStore } from '../../src/tasks.js'
import { serve } from '../../src/stdio.js'
import { connectInMemory } from '../../src/testing.js'
import { onStillClock } from '../clock.js'
import { RawClient, TASKS, accept } from './raw-client.js'
import { controlled, serverOf, until } from './task-server.js'

/* A store that another process uses, or that fails: nothing is acknowledged that is not stored, and the server lives. */

const NAME = {
  type: 'object',
  properties: { name: { type: 'string' } },
  required: ['name'],
} as const

let folder = ''
const path = () => join(folder, 'tasks.journal')
const clients: RawClient[] = []
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'ccmcp-stores-'))
})
afterEach(async () => {
  vi.restoreAllMocks()
  for (const client of clients.splice(0)) await client.close()
  rmSync(folder, { recursive: true, force: true })
})

function clientOf(...given: ConstructorParameters<typeof RawClient>): RawClient {
  const client = new RawClient(...given)
  clients.push(client)
  return client
}

const must = tool({ name: 'must', task: 'must', run: () => 'as a task' })
const may = tool({
  name: 'may',
  task: { mode: 'may', after: 0 },
  run: (_, call) => `attempt ${call.attempt}`,
})
const ask = tool({
  name: 'ask',
  task: 'must',
  async run(_, call) {
    const { who } = await call.ask({ who: form({ message: 'Who?', schema: NAME }) })
    return `Hello, ${who.name}!`
  },
})
const tools = [must, may, ask]

/** Polls until a task has one of some statuses, while time passes. */
async function untilIn(
  client: RawClient,
  taskId: string,
  status: string | readonly string[],
  pass: (milliseconds: number) => Promise<unknown>,
) {
  for (const end = performance.now() + 60_000; performance.now() < end;) {
    const task = await client.get(taskId)
    if ([status].flat().includes(task.status ?? '')) return task
    await pass(10)
    await new Promise((resolve) => setImmediate(resolve))
  }
  throw new Error(`the task did not become ${String(status)}`)
}

describe('a store that fails while the server stops', () => {
  it('is not tried again, which would keep the process alive', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    try {
      const store: TaskStore = new MemoryTaskStore()
      const claims: ((error: Error) => void)[] = []
      store.claim = () => new Promise((_, reject) => void claims.push(reject))
      const closed = new Promise<void>((resolve) => {
        store.close = resolve
      })
      const client = new RawClient(serverOf(tools, { store }))
      await until(() => claims.length > 0)
      const closing = client.close()
      claims[0]?.(new Error('out of reach'))
      await Promise.all([closing, closed])
      await new Promise(setImmediate)
      expect(vi.getTimerCount()).toBe(0)
    } finally {
      vi.useRealTimers()
    }
  })
})

describe('a journal that another process uses', () => {
  it('leaves a second server without tasks, which takes it over when the first has ended', () =>
    onStillClock(async (pass) => {
      const store = new JournalTaskStore(path())
      const closed = new Promise<void>((resolve) => {
        const close = store.close.bind(store)
        store.close = () => close().then(resolve)
      })
      const first = new RawClient(serverOf(tools, { store }))
      const taskId = await first.create('ask')
      const { inputRequests = {} } = await untilIn(first, taskId, 'input_required', pass)
      const second = clientOf(serverOf(tools, { store: new JournalTaskStore(path()) }))
      const extensions = async () => {
        const { capabilities } = await second.request('server/discover')
        return (capabilities as { extensions?: object }).extensions
      }
      const listed = async () =>
        ((await second.request('tools/list'))['tools'] as { name: string }[]).map(
          ({ name }) => name,
        )
      expect(await extensions()).toBeUndefined()
      expect(await listed()).toEqual(['may'])
      expect(await second.call('may')).toMatchObject({ content: [{ text: 'attempt 1' }] })
      expect(await second.error('tools/call', { name: 'must', arguments: {} })).toMatchObject({
        code: -32603,
        message: expect.stringContaining('another process'),
      })
      for (const method of ['tasks/get', 'tasks/update', 'tasks/cancel'])
        expect(await second.error(method, { taskId })).toMatchObject({ code: -32601 })
      // The next look is a second later.
      await first.close()
      await closed
      expect(await listed()).toEqual(['may'])
      await pass(1000)
      const { id } = second.send('subscriptions/listen', {
        notifications: { toolsListChanged: true },
      })
      await second.notified((all) => all.length === 1)
      expect(await extensions()).toEqual({ [TASKS]: {} })
      await second.notified((all) =>
        all.some(({ method }) => method === 'notifications/tools/list_changed'),
      )
      second.notify('notifications/cancelled', { requestId: id })
      expect(await listed()).toEqual(['must', 'may', 'ask'])
      const [key = ''] = Object.keys(inputRequests)
      await second.update(taskId, { [key]: accept({ name: 'Ada' }) })
      expect((await second.until(taskId, 'completed')).result).toMatchObject({
        content: [{ text: 'Hello, Ada!' }],
      })
    }))

  it('makes listen fail', async () => {
    const store = await JournalTaskStore.open(path())
    const server = serverOf(tools, { store: new JournalTaskStore(path()) })
    await expect(listen(server, { port: 0 })).rejects.toMatchObject({
      code: 'JOURNAL_LOCKED',
      message: expect.stringContaining(`process ${process.pid}`),
    })
    await store.close()
    const listening = await listen(server, { port: 0 })
    await listening.close()
  })
})

it.each([
  ['is corrupt', () => writeFileSync(path(), 'precious notes\n')],
  ['cannot be created', () => rmSync(folder, { recursive: true })],
])('starts without tasks if the journal %s, and says so in the log', async (_, spoil) => {
  spoil()
  const report = vi.fn()
  const server = serverOf(tools, { store: new JournalTaskStore(path()) })
  const channel = connectInMemory(server, { report })
  expect(report).toHaveBeenCalledWith(
    expect.objectContaining({
      level: 'error',
      message: expect.stringContaining('Tasks are disabled'),
    }),
  )
  const client = clientOf(server)
  expect(await client.call('may')).toMatchObject({ content: [{ text: 'attempt 1' }] })
  await expect(listen(serverOf(tools, { store: new JournalTaskStore(path()) }))).rejects.toThrow()
  await channel.close()
})

it('ends what runs when another process has taken the journal over', () =>
  onStillClock(async (pass) => {
    const store = new JournalTaskStore(path())
    const claim = vi.spyOn(store, 'claim')
    const { run, runs, begun } = controlled()
    const slow: Tool = { name: 'slow', input: { type: 'object' }, task: 'must', run }
    let goOn = () => {}
    let failed: unknown
    const deaf = tool({
      name: 'deaf',
      task: 'must',
      async run(_, call) {
        await new Promise<void>((resolve) => (goOn = resolve))
        await call.step('charge', () => 1).catch((error: unknown) => (failed = error))
        return 'late'
      },
    })
    const report = vi.fn()
    const server = serverOf([slow, deaf], { store, concurrency: 2 })
    const channel = connectInMemory(server, { report })
    const client = clientOf(server)
    const taskId = await client.create('slow')
    await client.create('deaf')
    await client.create('slow')
    const { call } = await begun()
    writeFileSync(join(folder, 'theirs'), '1 1 elsewhere')
    renameSync(join(folder, 'theirs'), `${path()}.lock`)
    await pass(1000)
    await until(() => call.signal.aborted)
    expect(call.signal.reason).toMatchObject({ code: 'JOURNAL_LOST' })
    goOn()
    await until(() => failed !== undefined)
    expect(failed).toMatchObject({ code: 'JOURNAL_LOST' })
    expect(await client.error('tasks/get', { taskId })).toMatchObject({ code: -32603 })
    const claims = claim.mock.calls.length
    await pass(60_000)
    expect(claim).toHaveBeenCalledTimes(claims)
    expect(runs).toHaveLength(1)
    const errors = report.mock.calls.filter(([{ level }]) => level === 'error')
    expect(errors).toMatchObject([[{ error: { code: 'JOURNAL_LOST' } }]])
    await client.close()
    await channel.close()
  }))

it('acknowledges no more tasks when its journal was deleted, and ends what runs', async () => {
  const { run, begun } = controlled()
  const slow: Tool = { name: 'slow', input: { type: 'object' }, task: 'must', run }
  const report = vi.fn()
  const server = serverOf([slow], { store: new JournalTaskStore(path()) })
  const channel = connectInMemory(server, { report })
  const client = clientOf(server)
  const taskId = await client.create('slow')
  const { call } = await begun()
  rmSync(path())
  for (let each = 0; each < 5; each++)
    expect(await client.error('tools/call', { name: 'slow' })).toMatchObject({ code: -32603 })
  await until(() => call.signal.aborted)
  expect(call.signal.reason).toMatchObject({ code: 'JOURNAL_LOST' })
  expect(await client.error('tasks/get', { taskId })).toMatchObject({ code: -32603 })
  expect(report).toHaveBeenCalledWith({
    level: 'error',
    message: 'The journal of tasks cannot be used any more',
    error: expect.objectContaining({ message: expect.stringContaining('was deleted') }),
  })
  await client.close()
  await channel.close()
})

/** A journal on a disk that is full while `full` is true. */
function onDisk() {
  const disk = { full: false, refused: 0 }
  const { write } = fs
  vi.spyOn(fs, 'write').mockImplementation((...args: Parameters<typeof write>) => {
    if (!disk.full) return write(...args)
    disk.refused++
    const done = args.at(-1) as unknown as (error: Error) => void // as all functions of fs
    setImmediate(done, Object.assign(new Error('ENOSPC: no space left'), { code: 'ENOSPC' }))
  })
  return { disk, store: new JournalTaskStore(path(), { maxBytesPerOwner: 64 * 1024 * 1024 }) }
}

describe('a full disk', () => {
  it('makes a `may` tool run plainly and a `must` tool fail', async () => {
    const { disk, store } = onDisk()
    const client = clientOf(serverOf(tools, { store }))
    await client.until(await client.create('must'), 'completed')
    disk.full = true
    expect(await client.call('may')).toMatchObject({
      resultType: 'complete',
      content: [{ text: 'attempt 1' }],
    })
    expect(await client.error('tools/call', { name: 'must', arguments: {} })).toMatchObject({
      code: -32603,
      message: expect.stringContaining('could not be stored'),
    })
    disk.full = false
    await client.until(await client.create('must'), 'completed')
    expect(store.size).toBe(2)
  })

  it('delays the outcome of a task, which is stored when there is room', () =>
    onStillClock(async (pass) => {
      const { disk, store } = onDisk()
      const { run, begun } = controlled()
      const slow: Tool = { name: 'slow', input: { type: 'object' }, task: 'must', run }
      const fails: Tool = { ...slow, name: 'fails' }
      const client = clientOf(serverOf([slow, fails], { store }))
      const [one, two] = [await client.create('slow'), await client.create('fails')]
      const [first, second] = [await begun(), await begun(1)]
      const timers = vi.getTimerCount()
      disk.full = true
      first.resolve('worth keeping')
      second.resolve({ content: [], isError: true })
      await until(() => disk.refused >= 1)
      await pass(60_000)
      expect(await client.get(one)).toMatchObject({ status: 'working' })
      // Both wait for their next attempt; none is in progress.
      await until(() => vi.getTimerCount() === timers + 2)
      disk.full = false
      await pass(10_000)
      const { result } = await client.until(one, 'completed')
      expect(result?.content).toEqual([{ type: 'text', text: 'worth keeping' }])
      expect((await client.until(two, 'completed')).result?.isError).toBe(true)
    }))

  it('delays steps and questions, and loses none', () =>
    onStillClock(async (pass) => {
      const { disk, store } = onDisk()
      const effect = vi.fn(() => 'once')
      const job = tool({
        name: 'job',
        task: 'must',
        async run(_, call) {
          await call.step('effect', () => {
            disk.full = true
            return effect()
          })
          const { who } = await call.ask({ who: form({ message: 'Who?', schema: NAME }) })
          return `Hello, ${who.name}!`
        },
      })
      const client = clientOf(serverOf([job], { store }))
      const taskId = await client.create('job')
      await until(() => disk.refused >= 1)
      expect(await client.get(taskId)).toMatchObject({ status: 'working' })
      disk.full = false
      await pass(300)
      const { inputRequests = {} } = await untilIn(client, taskId, 'input_required', pass)
      const [key = ''] = Object.keys(inputRequests)
      disk.full = true
      const inputResponses = { [key]: accept({ name: 'Ada' }) }
      expect(await client.error('tasks/update', { taskId, inputResponses })).toMatchObject({
        code: -32603,
        message: expect.stringContaining('could not be stored'),
      })
      expect(await client.get(taskId)).toMatchObject({ status: 'input_required' })
      expect(await client.error('tasks/cancel', { taskId })).toMatchObject({ code: -32603 })
      disk.full = false
      await client.update(taskId, { [key]: accept({ name: 'Ada' }) })
      const { result } = await client.until(taskId, 'completed')
      expect(result?.content).toEqual([{ type: 'text', text: 'Hello, Ada!' }])
      expect(effect).toHaveBeenCalledTimes(1)
    }))

  it('keeps a bounded number of bytes of results that wait; others fail', () =>
    onStillClock(async (pass) => {
      const { disk, store } = onDisk()
      const { run, begun } = controlled()
      const slow: Tool = { name: 'slow', input: { type: 'object' }, task: 'must', run }
      const client = clientOf(serverOf([slow], { store }))
      const ids: string[] = []
      for (let each = 0; each < 8; each++) ids.push(await client.create('slow'))
      const large = 'x'.repeat(3 * 1024 * 1024)
      const runs = await Promise.all(ids.map((_, index) => begun(index)))
      disk.full = true
      for (const each of runs) each.resolve(large)
      await until(() => disk.refused >= 1)
      await pass(1000)
      disk.full = false
      const statuses: (string | undefined)[] = []
      for (const taskId of ids) {
        const { status, error } = await untilIn(client, taskId, ['completed', 'failed'], pass)
        statuses.push(status)
        if (status === 'failed') expect(error?.message).toContain('could not be stored')
      }
      expect(statuses.filter((status) => status === 'completed').length).toBe(5)
      expect(statuses.filter((status) => status === 'failed').length).toBe(3)
      expect(new Set(statuses)).toEqual(new Set(['completed', 'failed']))
    }))

  it('does not hold up the end of the server, and a task is as if it was interrupted', async () => {
    const { disk, store } = onDisk()
    const closed = new Promise<void>((resolve) => {
      const close = store.close.bind(store)
      store.close = () => close().then(resolve)
    })
    const { run, begun } = controlled()
    const slow: Tool = { name: 'slow', input: { type: 'object' }, task: 'must', run }
    const client = new RawClient(serverOf([slow], { store }))
    const taskId = await client.create('slow')
    const running = await begun()
    disk.full = true
    running.resolve('lost')
    await until(() => disk.refused >= 1)
    await client.close()
    await closed
    disk.full = false
    const after = clientOf(serverOf([slow], { store: new JournalTaskStore(path()) }))
    expect(await after.until(taskId, 'failed')).toMatchObject({
      statusMessage: expect.stringContaining('restarted'),
    })
  })
})

describe('a store that fails for a while', () => {
  it('runs the tasks that it could not claim or begin before', () =>
    onStillClock(async (pass) => {
      const memory = new MemoryTaskStore()
      const { run, runs, begun } = controlled()
      const quick = tool({ name: 'quick', task: 'must', run: () => 'done' })
      const slow: Tool = { name: 'slow', input: { type: 'object' }, task: 'must', run }
      const client = clientOf(serverOf([slow, quick], { store: memory, concurrency: 1 }))
      await client.create('slow')
      const running = await begun()
      const ids = [
        await client.create('quick'),
        await client.create('quick'),
        await client.create('quick'),
      ]
      const boom = () => {
        throw new Error('boom')
      }
      vi.spyOn(memory, 'claim').mockImplementationOnce(boom)
      running.resolve('done')
      await until(() => runs.length === 1)
      for (let turn = 0; turn < 20; turn++) await client.get(ids[0] ?? '')
      vi.spyOn(memory, 'change').mockImplementationOnce(boom).mockImplementationOnce(boom)
      for (const taskId of ids) await untilIn(client, taskId, 'completed', pass)
    }))

  it.each([
    ['a BigInt', () => ({ structuredContent: { big: 1n }, content: [] })],
    [
      'a cycle',
      () => {
        const cycle: Record<string, unknown> = {}
        cycle['self'] = cycle
        return { structuredContent: cycle, content: [] }
      },
    ],
  ])('is not asked again for a result that is not JSON: %s', async (_, result) => {
    const store = new MemoryTaskStore()
    const job: Tool = {
      name: 'job',
      input: { type: 'object' },
      task: 'must',
      run: () => result(),
    }
    const client = clientOf(serverOf([job], { store }))
    const taskId = await client.create('job')
    await until(() => {
      const { state = '{}' } = store.get([...store.entries()][0]?.name ?? '') ?? {}
      return state.includes('"completed"') || state.includes('"failed"')
    })
    const task = await client.get(taskId)
    expect(task.status === 'failed' || task.result?.isError === true).toBe(true)
  })

  it('has no tasks if it could not be opened, and has them when it can', () =>
    onStillClock(async (pass) => {
      const memory = new MemoryTaskStore()
      let fail = true
      const store: TaskStore = Object.assign(memory, {
        open: () => (fail ? Promise.reject(new Error('unreachable')) : Promise.resolve()),
      })
      const client = clientOf(serverOf(tools, { store }))
      await until(() => true)
      expect(await client.call('may')).toMatchObject({ content: [{ text: 'attempt 1' }] })
      expect(await client.error('tasks/get', { taskId: 'x' })).toMatchObject({ code: -32601 })
      fail = false
      await pass(1000)
      await client.until(await client.create('must'), 'completed')
    }))
})

it.each(['release', 'close'] as const)(
  'stops with the server if %s of its store never returns',
  (method) =>
    onStillClock(async (pass) => {
      const store = Object.assign(new MemoryTaskStore(), { [method]: () => new Promise(() => {}) })
      const server = serverOf(tools, { store })
      const input = new PassThrough()
      const output = new PassThrough()
      const ended = vi.fn()
      const serving = serve(server, { input, output }).then(ended)
      input.end()
      for (let turn = 0; turn < 2000 && ended.mock.calls.length === 0; turn++) {
        await pass(10)
        await new Promise((resolve) => setImmediate(resolve))
      }
      expect(ended).toHaveBeenCalledTimes(1)
      await serving
    }),
)
