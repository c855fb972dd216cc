import { afterEach, describe, expect, it, vi } from 'vitest'
import { type Call, type Tool, tool } from '../../src/index.js'
import { MemoryTaskStore, type TaskCommand } from '../../src/tasks.js'
import { RawClient } from './raw-client.js'
import { serverOf, until } from './task-server.js'

/* The steps of a task that no longer is the task of its handler. */

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

/** A handler whose first run goes on with 30 steps when it is told to, whatever they throw. */
function stubborn(task: Omit<NonNullable<Tool['task']> & object, 'mode'> = {}) {
  const effects: string[] = []
  const errors: unknown[] = []
  const calls: Call[] = []
  let proceed = () => {}
  const proceeding = new Promise<void>((resolve) => (proceed = resolve))
  const job = tool({
    name: 'job',
    task: { mode: 'must', ...task },
    async run(_, call) {
      calls.push(call)
      const { attempt } = call
      await call.step('first', () => void effects.push('first'))
      if (attempt === 1) await proceeding
      for (let each = 0; each < 30; each++)
        await call
          .step(`step ${each}`, () => void effects.push(`${attempt}: step ${each}`))
          .catch((error: unknown) => errors.push(error))
      return `attempt ${attempt}`
    },
  })
  return { job, effects, errors, calls, proceed }
}
const of = (attempt: number) => Array.from({ length: 30 }, (_, each) => `${attempt}: step ${each}`)

it('each step costs the same, however many there were', async () => {
  const spent: number[] = []
  const many = tool({
    name: 'many',
    input: { type: 'object', properties: { count: { type: 'integer' } }, required: ['count'] },
    task: 'must',
    async run({ count }, call) {
      const before = process.cpuUsage()
      for (let each = 0; each < count; each++) await call.step(`step ${each}`, () => each)
      const { user, system } = process.cpuUsage(before)
      spent.push(user + system)
      return 'done'
    },
  })
  const client = clientOf(serverOf([many]))
  for (const count of [300, 300, 4800])
    await client.until(await client.create('many', { count }), 'completed')
  // 16 times as many take about 16 times as long, where copying all of them takes 256 times.
  expect((spent[2] ?? 0) / (spent[1] ?? 0)).toBeLessThan(50)
})

describe('no step begins after its task', () => {
  it.each([0, 1])('was cancelled, with "after: %i"', async (after) => {
    const { job, effects, errors, calls, proceed } = stubborn({ after })
    const client = clientOf(serverOf([job]))
    const taskId = await client.create('job')
    await until(() => effects.length === 1)
    await client.request('tasks/cancel', { taskId })
    proceed()
    await until(() => errors.length === 30)
    expect(effects).toEqual(['first'])
    expect(errors.every((error) => error === calls[0]?.signal.reason)).toBe(true)
  })

  it('is run again', async () => {
    const { job, effects, errors, proceed } = stubborn()
    let send: (command: TaskCommand) => void = () => {}
    const store: MemoryTaskStore = Object.assign(new MemoryTaskStore(), {
      receiveCommands: (run: (command: TaskCommand) => void) => {
        send = run
        return () => {}
      },
    })
    const client = clientOf(serverOf([job], { store }))
    const taskId = await client.create('job')
    await until(() => effects.length === 1)
    send({ command: 'retry', name: [...store.entries()][0]?.name ?? '' })
    await client.until(taskId, 'completed')
    proceed()
    await until(() => errors.length === 30)
    expect(effects).toEqual(['first', ...of(2)])
  })

  /** A store that can take its claims away, and fail, as if its process had been stopped. */
  class LeasedStore extends MemoryTaskStore {
    held = true
    asked = 0
    failures = 0

    holds(): boolean {
      this.asked++
      if (this.failures-- > 0) throw new Error('the store fails')
      return this.held
    }

    takeAll(): void {
      this.held = false
      for (const { name, version, state } of this.entries())
        this.change(name, version, { state, runnable: true, release: true })
    }
  }

  it('may have been claimed by another process, which runs it', async () => {
    const store = new LeasedStore()
    const { job, effects, errors, calls, proceed } = stubborn({ retries: 1, retryDelay: 1 })
    const claim = vi.spyOn(store, 'claim').mockReturnValue([])
    const client = clientOf(serverOf([job], { store }))
    const taskId = await client.create('job')
    await until(() => effects.length === 1)
    // Nothing in its state says so: who has claimed it has not begun to run it.
    store.takeAll()
    for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setImmediate(resolve))
    expect(calls[0]?.signal.aborted).toBe(false)
    const change = vi.spyOn(store, 'change')
    proceed()
    await until(() => errors.length === 30)
    for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setImmediate(resolve))
    expect(effects).toEqual(['first'])
    expect(String(errors[0])).toContain('Another process may run the task now')
    expect(errors.every((error) => error === calls[0]?.signal.reason)).toBe(true)
    expect(change).not.toHaveBeenCalled()
    expect(await client.get(taskId)).toMatchObject({ status: 'working' })
    // As if this process was the one that claims it.
    store.held = true
    claim.mockRestore()
    await clientOf(serverOf([job], { store })).until(taskId, 'completed')
    expect(effects).toEqual(['first', ...of(2)])
  })

  it('may have been claimed, until the store can be asked', async () => {
    const store = new LeasedStore()
    const { job, effects, errors, proceed } = stubborn()
    const client = clientOf(serverOf([job], { store }))
    store.failures = 2
    proceed()
    await client.until(await client.create('job'), 'completed')
    expect(errors).toEqual([])
    expect(effects).toEqual(['first', ...of(1)])
    expect(store.asked).toBe(33)
  })
})
