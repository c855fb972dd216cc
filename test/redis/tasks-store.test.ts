import { Cluster, Redis } from 'ioredis'
import { createClient, createCluster } from 'redis'
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest'
import { type RedisClient, type RedisOptions, type RedisStores, redis } from '../../src/redis.js'
import { newTask, taskStoreContract } from '../stores/task-store-contract.js'
import {
  type RedisServer,
  canStartRedis,
  commanding,
  hasRedis,
  newPrefix,
  sharedServer,
  startCluster,
} from './redis-server.js'

/* Tasks in Redis, with each supported client. */

const LEASE = 60_000
const until = <Value>(condition: () => Value | Promise<Value>): Promise<Value> =>
  vi.waitFor(condition, { timeout: 60_000, interval: 10 })

const opened: RedisStores[] = []
afterEach(async () => {
  await Promise.all(opened.splice(0).map((each) => each.close()))
})
function tasksOf(client: RedisClient, options: RedisOptions) {
  const made = redis(client, { lease: LEASE, timeout: 20_000, ...options })
  opened.push(made)
  return made.tasks
}

/** Redis has a clock of its own: instead of waiting, everything that expires does so earlier. */
const ADVANCE = `
for _, key in ipairs(KEYS) do
  local kind, at = redis.call('TYPE', key).ok, redis.call('PEXPIRETIME', key)
  if kind == 'hash' and redis.call('HEXISTS', key, 'd') == 1 then redis.call('HINCRBY', key, 'd', -ARGV[1]) end
  if string.match(key, ':t[xw]$') then
    for _, member in ipairs(redis.call('ZRANGE', key, 0, -1)) do redis.call('ZINCRBY', key, -ARGV[1], member) end
  end
  if at > 0 then redis.call('PEXPIREAT', key, at - ARGV[1]) end
end`

async function advanceKeys(
  urls: readonly string[],
  prefix: string,
  milliseconds: number,
): Promise<void> {
  for (const url of urls)
    await commanding(url, async (command) => {
      const keys = (await command('KEYS', `${prefix}*`)) as string[] // KEYS returns names
      if (keys.length > 0)
        await command('EVAL', ADVANCE, String(keys.length), ...keys, String(milliseconds))
    })
}

function contract(client: () => RedisClient, urls: () => string[], keyPrefix = ''): void {
  let prefix = ''
  const advance = (milliseconds: number) =>
    advanceKeys(urls(), `${keyPrefix}{${prefix}}`, milliseconds)
  const another = () => tasksOf(client(), { prefix })
  taskStoreContract({
    create(limits = {}) {
      prefix = newPrefix()
      return tasksOf(client(), { prefix, tasks: limits })
    },
    advance,
    another,
    async restart() {
      // The lease of the process that was killed ends, long before its tasks.
      await commandingAny(urls(), keyPrefix, prefix, async (command, key) => {
        for (const worker of (await command('ZRANGE', key, '0', '-1')) as string[])
          await command('ZADD', key, '1', worker)
      })
      return another()
    },
  })
}

/** Runs commands on the server that has the leases of processes. */
async function commandingAny(
  urls: readonly string[],
  keyPrefix: string,
  prefix: string,
  use: (command: (...parts: string[]) => Promise<unknown>, key: string) => Promise<void>,
): Promise<void> {
  const key = `${keyPrefix}{${prefix}}:tw`
  for (const url of urls)
    await commanding(url, async (command) => {
      const [found] = (await command('KEYS', key)) as string[] // KEYS returns names
      if (found !== undefined) await use(command, found)
    })
}

describe.skipIf(!hasRedis)('tasks on one server', () => {
  let server: Awaited<ReturnType<typeof sharedServer>>
  const url = () => server.url
  const urls = () => [server.url]
  const lazy = { lazyConnect: true }
  beforeAll(async () => {
    server = await sharedServer()
  })
  afterAll(() => server.stop())

  describe('node-redis', () => contract(() => createClient({ url: url() }), urls))
  describe('node-redis with RESP2', () =>
    contract(() => createClient({ url: url(), RESP: 2 }), urls))
  describe('ioredis', () => contract(() => new Redis(url(), lazy), urls))
  describe('ioredis with RESP3 and a key prefix', () =>
    contract(() => new Redis(url(), { ...lazy, protocol: 3, keyPrefix: 'more:' }), urls, 'more:'))

  const make = (options: RedisOptions) => tasksOf(createClient({ url: url() }), options)
  const commands = <Result>(
    use: (command: (...parts: string[]) => Promise<unknown>) => Promise<Result>,
  ) => commanding(url(), use)
  const keysOf = (prefix: string) =>
    commands(async (command) => {
      const keys = (await command('KEYS', `{${prefix}}*`)) as string[] // KEYS returns names
      const times = await Promise.all(keys.map((key) => command('PTTL', key)))
      return keys.map((key, index) => ({ key, ttl: Number(times[index]) }))
    })

  it('stores nothing without a time to live, and nothing when all tasks have expired', async () => {
    const prefix = newPrefix()
    const store = make({ prefix })
    const ttl = LEASE / 2
    const expires = Date.now() + ttl
    await store.create(newTask('a', { expires }))
    await store.create(newTask('b', { expires, claimed: true }))
    await store.create(newTask('c', { expires, runnable: false }))
    await store.claim(1)
    await store.change('b', 1, { state: 'x'.repeat(9000), runnable: true, append: ['y'] })
    await store.change('c', 1, { state: 'x', runnable: true })
    const keys = await keysOf(prefix)
    expect(keys.map(({ key }) => key.replace(/tc:.*/, 'tc')).toSorted()).toEqual(
      ['t:a', 't:b', 't:c', 'tc', 'te:a', 'te:b', 'te:c', 'tl', 'tq', 'tu', 'tw', 'tx'].map(
        (key) => `{${prefix}}:${key}`,
      ),
    )
    expect(keys.filter((each) => !(each.ttl > 0 && each.ttl <= ttl))).toEqual([])
    await advanceKeys(urls(), `{${prefix}}`, ttl)
    await until(async () => expect(await keysOf(prefix)).toEqual([]))
  })

  it('counts what has expired no longer, also for another owner', async () => {
    const prefix = newPrefix()
    const store = make({ prefix })
    for (const name of ['a', 'b'])
      await store.create(newTask(name, { expires: Date.now() + 5, owner: `of ${name}` }))
    await until(async () => expect(await store.get('b')).toBeUndefined())
    await store.create(newTask('c'))
    const usage = await commands((command) => command('HGETALL', `{${prefix}}:tu`))
    const fields = new Map(Object.entries(usage as Record<string, string>))
    expect(fields.get('tasks')).toBe('1')
    expect(fields.get('bytes')).toBe('4096')
    expect([...fields.keys()].filter((field) => field.includes(':')).toSorted()).toEqual([
      'b:ada',
      't:ada',
    ])
  })

  it('keeps limits that several processes reach at the same time', async () => {
    const prefix = newPrefix()
    const limits = { prefix, tasks: { maxTasks: 10, maxTasksPerOwner: 6 } }
    const processes = [make(limits), make(limits), make(limits)]
    const created = await Promise.all(
      Array.from({ length: 30 }, async (_, index) => {
        const owner = index % 2 === 0 ? 'ada' : 'bob'
        const task = newTask(`task ${index}`, { owner })
        return (await processes[index % 3]?.create(task)) === true ? owner : 'refused'
      }),
    )
    const count = (outcome: string) => created.filter((each) => each === outcome).length
    expect(count('refused')).toBe(20)
    expect(Math.max(count('ada'), count('bob'))).toBeLessThanOrEqual(6)
  })

  it('refuses limits that are none', () => {
    const wrong = (tasks: object) => () => redis(createClient({ url: url() }), { tasks })
    expect(wrong({ maxTasks: 0 })).toThrow('"tasks.maxTasks" must be a number of 1 or more')
    expect(wrong({ maxBytes: Number.NaN })).toThrow('"tasks.maxBytes" must be')
    expect(wrong({ maxTask: 1 })).toThrow('redis: "tasks": unknown option "maxTask"')
  })

  it('expires tasks by the clock of Redis, whatever the clock of a process says', async () => {
    const store = make({ prefix: newPrefix() })
    vi.useFakeTimers({ toFake: ['Date'], now: Date.now() - 3_600_000 })
    try {
      const expires = Date.now() + LEASE
      expect(await store.create(newTask('a', { expires }))).toBe(true)
      expect(await store.get('a')).toMatchObject({ expires })
      vi.setSystemTime(Date.now() + 7_200_000)
      const [claimed] = await store.claim(1)
      expect(claimed).toMatchObject({ name: 'a', expires })
      expect(claimed?.timeLeft).toBeGreaterThan(0)
      expect(claimed?.timeLeft).toBeLessThanOrEqual(LEASE)
    } finally {
      vi.useRealTimers()
    }
  })

  it('loads its scripts again where Redis has lost them', async () => {
    const store = make({ prefix: newPrefix() })
    await store.create(newTask('a'))
    await commands((command) => command('SCRIPT', 'FLUSH'))
    expect(await store.change('a', 1, { state: 'x', runnable: true })).toBe('changed')
  })

  it('lets tasks be claimed whose process does not renew its lease, and tells all', async () => {
    const prefix = newPrefix()
    const dead = make({ prefix, lease: 300 })
    await dead.create(newTask('a', { claimed: true }))
    // As if it was killed.
    await dead.close?.()
    const store = make({ prefix })
    const told = new Promise<string>((resolve) => void store.subscribe(resolve))
    expect(await told).toBe('a')
    expect(await store.claim(9)).toMatchObject([{ name: 'a', version: 1 }])
  })

  it('has no claim after it was stopped for longer than its lease, and another process has taken it', async () => {
    const prefix = newPrefix()
    const [store, other] = [make({ prefix }), make({ prefix })]
    const held = (name: string) => Promise.resolve(store.holds?.(name))
    const expires = Date.now() + 10 * LEASE
    await store.create(newTask('a', { claimed: true, expires }))
    expect(await held('a')).toBe(true)
    expect(await held('b')).toBe(false)
    await advanceKeys(urls(), `{${prefix}}`, LEASE)
    expect(await other.claim(1)).toMatchObject([{ name: 'a' }])
    // It does not ask Redis while the lease has not ended by its clock.
    expect(await held('a')).toBe(true)
    const now = performance.now() + LEASE
    const clock = vi.spyOn(performance, 'now').mockImplementation(() => now)
    try {
      // A new claim says nothing of earlier ones.
      await store.create(newTask('c', { claimed: true, expires }))
      expect(await held('a')).toBe(false)
      expect(await held('c')).toBe(true)
    } finally {
      clock.mockRestore()
    }
  })

  it('keeps its claims as long as it renews its lease', async () => {
    const prefix = newPrefix()
    const store = make({ prefix, lease: 6000 })
    const other = make({ prefix })
    await store.create(newTask('a', { claimed: true }))
    const [first] = await leases(prefix)
    await until(async () => expect((await leases(prefix))[0]).toBeGreaterThan(Number(first) + 1500))
    expect(await other.claim(1)).toEqual([])
    await store.release()
    expect(await leases(prefix)).toEqual([])
    expect(await other.claim(1)).toMatchObject([{ name: 'a' }])
  })
  const leases = (prefix: string) =>
    commands(async (command) => {
      const reply = await command('ZRANGEBYSCORE', `{${prefix}}:tw`, '-inf', '+inf')
      const scores: number[] = []
      for (const worker of reply as string[])
        scores.push(Number(await command('ZSCORE', `{${prefix}}:tw`, worker)))
      return scores
    })

  it('notices that a claim was lost when it renews its lease, without being told', async () => {
    const prefix = newPrefix()
    const store = make({ prefix, lease: 300 })
    await store.create(newTask('a', { claimed: true }))
    const other = make({ prefix })
    const changed = new Promise<string>((resolve) => void store.subscribe(resolve))
    await other.change('a', 1, { state: 'cancelled', runnable: false })
    // The log of changes is lost.
    await commands((command) => command('UNLINK', `{${prefix}}:tl`))
    expect(await changed).toBe('a')
  })

  it('says that changes may have been missed when the log of changes was cut', async () => {
    const prefix = newPrefix()
    const store = make({ prefix })
    const other = make({ prefix })
    let missed = 0
    store.subscribe(
      () => {},
      () => void missed++,
    )
    await until(() => expect(missed).toBe(1))
    await other.create(newTask('a'))
    // At once, so that nobody reads in between.
    const cut = `
for _ = 1, 5 do
  redis.call('XADD', KEYS[1], '*', 'n', redis.call('HINCRBY', KEYS[2], 'changes', 1), 't', 'a', 'w', 'other')
end
return redis.call('XTRIM', KEYS[1], 'MAXLEN', 1)`
    await commands((command) => command('EVAL', cut, '2', `{${prefix}}:tl`, `{${prefix}}:tu`))
    await until(() => expect(missed).toBe(2))
  })

  it('stops reading changes when it is closed', async () => {
    const prefix = newPrefix()
    const [closed, store, other] = [make({ prefix }), make({ prefix }), make({ prefix })]
    const told: Record<string, string[]> = { closed: [], store: [] }
    let ready = 0
    for (const [name, each] of Object.entries({ closed, store }))
      each.subscribe(
        (changed) => void told[name]?.push(changed),
        () => void ready++,
      )
    await until(() => expect(ready).toBe(2))
    await closed.close?.()
    for (const name of ['a', 'b', 'c']) {
      await other.create(newTask(name))
      await until(() => expect(told['store']).toContain(name))
    }
    expect(told['closed']).toEqual([])
  })
})

describe.skipIf(!canStartRedis)('tasks on a cluster', () => {
  let servers: RedisServer[] = []
  const urls = () => servers.map(({ url }) => url)
  beforeAll(async () => {
    servers = await startCluster()
  })
  afterAll(async () => {
    await Promise.all(servers.map((server) => server.stop()))
  })

  describe('node-redis', () =>
    contract(() => createCluster({ rootNodes: servers.map(({ url }) => ({ url })) }), urls))
  describe('ioredis', () =>
    contract(
      () =>
        new Cluster(
          servers.map(({ port }) => ({ host: '127.0.0.1', port })),
          { lazyConnect: true },
        ),
      urls,
    ))
})
