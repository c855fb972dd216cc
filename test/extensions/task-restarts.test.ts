import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { type Call, ToolError, type Tool, form, tool } from '../../src/index.js'
import { JournalTaskStore } from '../../src/journal.js'
import {
  MemoryTaskStore,
  type TaskCommand,
  type TaskOptions,
  type TaskStore,
} from '../../src/tasks.js'
import { onStillClock } from '../clock.js'
import { RawClient, accept } from './raw-client.js'
import { controlled, serverOf, until } from './task-server.js'

/* What becomes of tasks when the server ends and is started again, by the same program or by a newer one. */

const NAME = {
  type: 'object',
  properties: { name: { type: 'string' } },
  required: ['name'],
} as const

let folder = ''
const clients: RawClient[] = []
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'ccmcp-restarts-'))
})
afterEach(async () => {
  await stop()
  rmSync(folder, { recursive: true, force: true })
})

function clientOf(...given: ConstructorParameters<typeof RawClient>): RawClient {
  const client = new RawClient(...given)
  clients.push(client)
  return client
}

/** Resolve when a store is closed. */
const closing: Promise<void>[] = []

/** Ends the connections, and with them the server; resolves when it has stopped. */
async function stop(): Promise<void> {
  for (const client of clients.splice(0)) await client.close()
  await Promise.all(closing.splice(0))
}

function tracked<Store extends TaskStore>(store: Store): Store {
  const close = store.close?.bind(store)
  closing.push(
    new Promise((resolve) => {
      store.close = async () => {
        await close?.()
        resolve()
      }
    }),
  )
  return store
}

const slowTool = (run: NonNullable<Tool['run']>, task: Omit<TaskOptions, 'mode'> = {}): Tool => ({
  name: 'slow',
  input: { type: 'object' },
  task: { mode: 'must', ...task },
  run,
})

const stores: Readonly<Record<string, () => () => TaskStore>> = {
  'in memory': () => {
    const store = new MemoryTaskStore()
    return () => tracked(store)
  },
  'in a journal': () => () => tracked(new JournalTaskStore(join(folder, 'tasks.journal'))),
}

describe.each(Object.keys(stores))('after a restart, tasks %s', (kind) => {
  const storeOf = () => stores[kind]?.() ?? (() => new MemoryTaskStore())

  it('that were running have failed, if their tool has no retries', async () => {
    const open = storeOf()
    const { run, runs, begun } = controlled()
    const before = clientOf(serverOf([slowTool(run)], { store: open() }))
    const taskId = await before.create('slow')
    const { call } = await begun()
    await stop()
    await until(() => call.signal.aborted)
    const after = clientOf(serverOf([slowTool(run)], { store: open() }))
    expect(await after.until(taskId, 'failed')).toMatchObject({
      statusMessage: 'The server was restarted while the task was running',
      error: { code: -32603, message: 'The server was restarted while the task was running' },
    })
    expect(runs).toHaveLength(1)
  })

  it('whose handler had not begun are not completed without having run', async () => {
    const open = storeOf()
    const runs: number[] = []
    const job = slowTool(
      (_, { attempt }) => {
        runs.push(attempt)
        return 'done'
      },
      { retries: 1, retryDelay: 1 },
    )
    const before = clientOf(serverOf([job], { store: open() }))
    const { response } = before.send('tools/call', { name: 'slow' })
    const { result } = await response
    await stop()
    const after = clientOf(serverOf([job], { store: open() }))
    const task = await after.until(result?.taskId ?? '', 'completed')
    expect(task.result?.content).toEqual([{ type: 'text', text: 'done' }])
    expect(runs.length).toBeGreaterThan(0)
  })

  it('that were running are run again with their steps and key, if their tool has retries', async () => {
    const open = storeOf()
    const { run, begun } = controlled()
    const effects: string[] = []
    const job = slowTool(
      async (input, call) => {
        const value = await call.step('first', () => {
          effects.push(call.key)
          return effects.length
        })
        await run(input, call)
        return `step ${value}, attempt ${call.attempt}`
      },
      { retries: 2, retryDelay: 1 },
    )
    const before = clientOf(serverOf([job], { store: open() }))
    const taskId = await before.create('slow')
    const first = await begun()
    await stop()
    const after = clientOf(serverOf([job], { store: open() }))
    const second = await begun(1)
    expect(second.call.key).toBe(first.call.key)
    expect(await after.get(taskId)).toMatchObject({
      status: 'working',
      statusMessage: 'The server was restarted; the task is run again',
    })
    second.resolve('done')
    const { result } = await after.until(taskId, 'completed')
    expect(result?.content).toEqual([{ type: 'text', text: 'step 1, attempt 2' }])
    expect(effects).toEqual([first.call.key])
  })

  it('have failed when all retries are used', async () => {
    const open = storeOf()
    const { run, runs, begun } = controlled()
    const job = slowTool(run, { retries: 2, retryDelay: 1 })
    let taskId = ''
    for (let start = 0; start < 3; start++) {
      const client = clientOf(serverOf([job], { store: open() }))
      taskId ||= await client.create('slow')
      await begun(start)
      await stop()
    }
    const last = clientOf(serverOf([job], { store: open() }))
    const failed = await last.until(taskId, 'failed')
    expect(failed.statusMessage).toContain('The server was restarted')
    expect(failed.statusMessage).toContain('2 times')
    expect(runs).toHaveLength(3)
  })

  it('that were parked go on with a newer version of the program', async () => {
    const open = storeOf()
    const toolOf = (more: Partial<Tool>): Tool => ({
      ...tool({
        name: 'ask',
        input: { type: 'object', properties: { a: { type: 'number' }, b: { type: 'string' } } },
        task: 'must',
        async run(_, call) {
          const { who } = await call.ask({ who: form({ message: 'Who?', schema: NAME }) })
          return `Hello, ${who.name}!`
        },
      }),
      ...more,
    })
    const before = clientOf(
      serverOf([toolOf({}), toolOf({ name: 'versioned' }), toolOf({ name: 'schema' })], {
        store: open(),
      }),
    )
    const ids = new Map<string, string>()
    const keys = new Map<string, string>()
    for (const name of ['ask', 'versioned', 'schema']) {
      const taskId = await before.create(name)
      const { inputRequests = {} } = await before.until(taskId, 'input_required')
      ids.set(name, taskId)
      keys.set(name, Object.keys(inputRequests)[0] ?? '')
    }
    await stop()
    const input = {
      properties: { b: { type: 'string' }, a: { type: 'number' } },
      type: 'object',
    } as const
    const after = clientOf(
      serverOf(
        [
          // Another text, another order of keys, other code, other options: an ordinary deployment.
          toolOf({
            description: 'Now with a description',
            title: 'Ask',
            input,
            task: { mode: 'may', ttl: 5000, retries: 1 },
            run: async (_, call) => {
              const answers = await call.ask({ who: form({ message: 'Who?', schema: NAME }) })
              return `Welcome, ${answers.who.name}.`
            },
          }),
          toolOf({ name: 'versioned', task: { mode: 'must', version: '2' } }),
          toolOf({
            name: 'schema',
            input: { type: 'object', properties: { a: { type: 'string' } } },
          }),
        ],
        { store: open() },
      ),
    )
    for (const [name, taskId] of ids)
      await after.update(taskId, { [keys.get(name) ?? '']: accept({ name: 'Ada' }) })
    const { result } = await after.until(ids.get('ask') ?? '', 'completed')
    expect(result?.content).toEqual([{ type: 'text', text: 'Welcome, Ada.' }])
    for (const name of ['versioned', 'schema'])
      expect(await after.until(ids.get(name) ?? '', 'failed')).toMatchObject({
        statusMessage: `The tool ${name} has changed since the task was created`,
        error: { code: -32603 },
      })
  })

  it('that were queued are run, in their order', async () => {
    const open = storeOf()
    const { run, begun } = controlled()
    const order: unknown[] = []
    const job = slowTool(async (input, call) => {
      if ((input as { n?: number }).n === 0) return String(await run(input, call))
      order.push((input as { n?: number }).n)
      return 'done'
    })
    const before = clientOf(serverOf([job], { store: open(), concurrency: 1 }))
    const ids: string[] = []
    for (let n = 0; n < 4; n++) ids.push(await before.create('slow', { n }))
    await begun()
    await stop()
    const after = clientOf(serverOf([job], { store: open(), concurrency: 1 }))
    for (const taskId of ids.slice(1)) await after.until(taskId, 'completed')
    expect(order).toEqual([1, 2, 3])
    await after.until(ids[0] ?? '', 'failed')
  })

  it('whose handler has finished while the server stopped are completed', async () => {
    const open = storeOf()
    let finish = () => {}
    const gate = new Promise<void>((resolve) => (finish = resolve))
    let signal: AbortSignal | undefined
    const job = slowTool(async (_, call) => {
      signal = call.signal
      await gate
      return 'in time'
    })
    const before = clientOf(serverOf([job], { store: open() }))
    const taskId = await before.create('slow')
    await until(() => signal !== undefined)
    const stopped = stop()
    await until(() => signal?.aborted === true)
    finish()
    await stopped
    const after = clientOf(serverOf([job], { store: open() }))
    const { result } = await after.until(taskId, 'completed')
    expect(result?.content).toEqual([{ type: 'text', text: 'in time' }])
  })
})

it('waits before a retry, longer each time, and runs other tasks meanwhile', () =>
  onStillClock(async (pass) => {
    const store = new MemoryTaskStore()
    const { run, runs } = controlled()
    const tools = [
      slowTool(run, { retries: 5, retryDelay: 1000, ttl: 600_000 }),
      tool({ name: 'quick', task: 'must', run: () => 'done' }),
    ]
    let taskId = ''
    for (const delay of [0, 1000, 2000, 4000]) {
      const client = clientOf(serverOf(tools, { store: tracked(store), concurrency: 1 }))
      taskId ||= await client.create('slow')
      const before = runs.length
      if (delay > 0) {
        await client.get(taskId)
        await pass(delay - 1)
        expect(await client.get(taskId)).toMatchObject({ status: 'working' })
        await client.until(await client.create('quick'), 'completed')
        expect(runs).toHaveLength(before)
        await pass(1)
      }
      await until(() => runs.length > before)
      await stop()
    }
  }))

it('can be cancelled while it waits for its retry', () =>
  onStillClock(async (pass) => {
    const store = new MemoryTaskStore()
    const { run, runs, begun } = controlled()
    const job = slowTool(run, { retries: 5 })
    const before = clientOf(serverOf([job], { store: tracked(store) }))
    const taskId = await before.create('slow')
    await begun()
    await stop()
    const after = clientOf(serverOf([job], { store }))
    expect(await after.get(taskId)).toMatchObject({ status: 'working' })
    await after.request('tasks/cancel', { taskId })
    await pass(5000)
    expect(await after.get(taskId)).toMatchObject({ status: 'cancelled' })
    expect(runs).toHaveLength(1)
  }))

it.each([
  ['a ToolError', () => new ToolError('No paper'), 'completed'],
  ['any other error', () => new Error('boom'), 'completed'],
] as const)('is not run again after %s: that is its outcome', async (_, error, status) => {
  let runs = 0
  const job = slowTool(
    () => {
      runs++
      throw error()
    },
    { retries: 3, retryDelay: 0 },
  )
  const client = clientOf(serverOf([job]))
  const { result } = await client.until(await client.create('slow'), status)
  expect(result?.isError).toBe(true)
  expect(runs).toBe(1)
})

it.each([
  [{ mode: 'may', retries: -1 }, '"retries"'],
  [{ mode: 'may', retries: 1.5 }, '"retries"'],
  [{ mode: 'may', retries: Infinity }, '"retries"'],
  [{ mode: 'may', retryDelay: -1 }, '"retryDelay"'],
])('rejects the task %j of a tool', (task, message) => {
  expect(() => serverOf([{ ...slowTool(() => ''), task } as Tool])).toThrow(message)
})

it('is run with all that was recorded, also by a process that has lost its claim', async () => {
  const effect = vi.fn(() => 'again')
  const store = new MemoryTaskStore()
  const job = slowTool(async (_, call) => await call.step('effect', effect), { retries: 1 })
  const claim = store.claim.bind(store)
  let late = 0
  store.claim = (limit) => {
    const claimed = claim(limit)
    for (const { name, version, state } of claimed) {
      if (late++ > 0) continue
      const append = [JSON.stringify({ step: 'effect', outcome: { value: 'once' } })]
      expect(store.change(name, version, { state, runnable: true, append })).toBe('changed')
    }
    return claimed
  }
  const { run, begun } = controlled()
  const first: Tool = { ...slowTool(run), name: 'first' }
  const client = clientOf(serverOf([job, first], { store, concurrency: 1 }))
  await client.create('first')
  const running = await begun()
  const taskId = await client.create('slow')
  running.resolve('done')
  const { result } = await client.until(taskId, 'completed')
  expect(result?.content).toEqual([{ type: 'text', text: 'once' }])
  expect(effect).not.toHaveBeenCalled()
  expect(late).toBe(2)
})

describe('commands of an operator', () => {
  function commanded() {
    let send: (command: TaskCommand) => void = () => {}
    const store: MemoryTaskStore = Object.assign(new MemoryTaskStore(), {
      receiveCommands: (run: (command: TaskCommand) => void) => {
        send = run
        return () => {}
      },
    })
    const nameOf = () => [...store.entries()][0]?.name ?? ''
    const command = (what: TaskCommand['command'], name = nameOf()) => send({ command: what, name })
    return { store, command }
  }

  it('run a task again; what the first run returns is ignored', async () => {
    const { store, command } = commanded()
    const runs: { call: Call; resolve: (value: string) => void }[] = []
    // It does not care that it was aborted.
    const deaf = slowTool((_, call) => new Promise((resolve) => void runs.push({ call, resolve })))
    const client = clientOf(serverOf([deaf], { store }))
    const taskId = await client.create('slow')
    await until(() => runs.length === 1)
    command('retry')
    await until(() => runs.length === 2)
    expect(runs[0]?.call.signal.aborted).toBe(true)
    expect(runs.map(({ call }) => [call.attempt, call.key])).toEqual([
      [1, runs[0]?.call.key],
      [2, runs[0]?.call.key],
    ])
    runs[0]?.resolve('first')
    for (let turn = 0; turn < 20; turn++)
      expect(await client.get(taskId)).toMatchObject({ status: 'working' })
    runs[1]?.resolve('second')
    const { result } = await client.until(taskId, 'completed')
    expect(result?.content).toEqual([{ type: 'text', text: 'second' }])
  })

  it('cancel a task; nothing happens to one that has ended, waits or is unknown', async () => {
    const { store, command } = commanded()
    const { run, begun } = controlled()
    const client = clientOf(serverOf([slowTool(run)], { store }))
    const taskId = await client.create('slow')
    const { call } = await begun()
    command('cancel', 'unknown')
    command('retry', 'unknown')
    command('cancel')
    await until(() => call.signal.aborted)
    const cancelled = await client.until(taskId, 'cancelled')
    expect(cancelled.statusMessage).toContain('operator')
    command('retry')
    command('cancel')
    for (let turn = 0; turn < 20; turn++) expect(await client.get(taskId)).toEqual(cancelled)
  })
})
