import { createClient } from 'redis'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { redis } from '../../src/redis.js'
import { MemoryTaskStore, type TaskStore } from '../../src/tasks.js'
import { fc } from '../fast-check.js'
import { newTask } from '../stores/task-store-contract.js'
import { commanding, hasRedis, newPrefix, sharedServer } from './redis-server.js'

/* Any sequence of operations has the same outcome in Redis, by either of two processes, as in memory. */

const NAMES = ['a', 'b', 'c', 'd', 'e']
const text = fc.constantFrom('', 'x', '語'.repeat(3000), 'y'.repeat(9000))
const operation = fc.oneof(
  fc.record({
    kind: fc.constant('create' as const),
    name: fc.constantFrom(...NAMES),
    owner: fc.constantFrom('', 'ada', 'bob: 1 x'),
    runnable: fc.boolean(),
    claimed: fc.boolean(),
    state: text,
  }),
  fc.record({
    kind: fc.constant('change' as const),
    name: fc.constantFrom(...NAMES),
    // The version that is stored, or an older one.
    stale: fc.boolean(),
    runnable: fc.boolean(),
    state: text,
    append: fc.array(text, { maxLength: 2 }),
    clear: fc.boolean(),
    release: fc.boolean(),
  }),
  fc.record({ kind: fc.constant('claim' as const) }),
  fc.record({ kind: fc.constant('release' as const) }),
)
type Operation = typeof operation extends fc.Arbitrary<infer Value> ? Value : never

async function outcomeOf(store: TaskStore, step: Operation): Promise<unknown> {
  switch (step.kind) {
    case 'create': {
      const { kind: _, ...task } = step
      return store.create(newTask(step.name, { ...task, expires: 4_000_000_000_000 }))
    }
    case 'change': {
      const { kind: _, name, stale, ...change } = step
      const version = (await store.get(name))?.version ?? 1
      return store.change(name, stale ? version - 1 : version, change)
    }
    case 'claim':
      return (await store.claim(99)).toSorted(byName).map(({ name, version, state, entries }) => ({
        name,
        version,
        state,
        entries,
      }))
    case 'release':
      await store.release()
      return undefined
  }
}
const byName = (one: { name: string }, other: { name: string }) => (one.name < other.name ? -1 : 1)

describe.skipIf(!hasRedis)('tasks in Redis', () => {
  let server: Awaited<ReturnType<typeof sharedServer>>
  beforeAll(async () => {
    server = await sharedServer()
  })
  afterAll(() => server.stop())

  it('are as those in memory, and what they use adds up', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.tuple(operation, fc.boolean()), { maxLength: 30 }),
        async (steps) => {
          const prefix = newPrefix()
          const limits = { maxTasks: 4, maxTasksPerOwner: 3 }
          const options = { lease: 60_000, timeout: 20_000 }
          const processes = [1, 2].map(() =>
            redis(createClient({ url: server.url }), { ...options, prefix, tasks: limits }),
          )
          const model = new MemoryTaskStore(limits)
          try {
            for (const [step, second] of steps) {
              // The claims of one process only end with its own release: both release.
              const chosen = processes[second ? 1 : 0]?.tasks as TaskStore // there are two
              const expected = await outcomeOf(model, step)
              if (step.kind === 'release') for (const { tasks } of processes) await tasks.release()
              else expect(await outcomeOf(chosen, step)).toEqual(expected)
            }
            for (const name of NAMES)
              expect(await processes[0]?.tasks.get(name)).toEqual(model.get(name))
            await commanding(server.url, (command) => usageAddsUp(command, prefix))
          } finally {
            await Promise.all(processes.map((each) => each.close()))
          }
        },
      ),
      { numRuns: 25 },
    )
  }, 120_000)
})

/** The counters are the sums of what the tasks are charged; the queue and the claims have each runnable task once. */
async function usageAddsUp(
  command: (...parts: string[]) => Promise<unknown>,
  prefix: string,
): Promise<void> {
  const list = async (...parts: string[]) => (await command(...parts)) as string[] // as Redis replies
  const sums = new Map<string, number>()
  const add = (field: string, amount: number) => sums.set(field, (sums.get(field) ?? 0) + amount)
  const runnable: string[] = []
  for (const key of await list('KEYS', `{${prefix}}:t:*`)) {
    const [owner = '', bytes, run] = await list('HMGET', key, 'o', 'b', 'r')
    add('tasks', 1)
    add(`t:${owner}`, 1)
    add('bytes', Number(bytes))
    add(`b:${owner}`, Number(bytes))
    if (run === '1') runnable.push(key.slice(`{${prefix}}:t:`.length))
  }
  const usage = Object.entries((await command('HGETALL', `{${prefix}}:tu`)) as object)
  const counted = usage.filter(([field]) => field !== 'place' && field !== 'changes')
  expect(new Map(counted.map(([field, value]) => [field, Number(value)]))).toEqual(sums)
  const places = [...(await list('ZRANGE', `{${prefix}}:tq`, '0', '-1'))]
  for (const key of await list('KEYS', `{${prefix}}:tc:*`))
    places.push(...(await list('ZRANGE', key, '0', '-1')))
  expect(places.toSorted()).toEqual(runnable.toSorted())
}
