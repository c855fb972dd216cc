import { Cluster, Redis } from 'ioredis'
import { createClient, createCluster } from 'redis'
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest'
import { type RedisClient, type RedisOptions, redis } from '../../src/redis.js'
import { EVERYTHING, Port, changeBusContract } from '../stores/change-bus-contract.js'
import {
  type RedisServer,
  canStartRedis,
  commanding,
  hasRedis,
  moveSlot,
  newPrefix,
  sharedServer,
  startCluster,
} from './redis-server.js'

/* The change bus on Redis, with each supported client. */

const until = (condition: () => unknown) => vi.waitFor(condition, { timeout: 60_000, interval: 5 })
/** Milliseconds for a reply of Redis, which may take long on a busy machine. */
const PATIENT = 20_000
/** The same where a test waits until a read ends without an entry, which takes twice as long. */
const BRIEF = 1000
const made: (() => Promise<void>)[] = []
afterEach(async () => {
  await Promise.all(made.splice(0).map((close) => close()))
})
function busOf(client: RedisClient, options: RedisOptions) {
  const { changes, close } = redis(client, options)
  made.push(close)
  return changes
}

function contract(client: () => RedisClient): void {
  let prefix = ''
  changeBusContract(
    () => busOf(client(), { prefix, timeout: PATIENT }),
    () => (prefix = newPrefix()),
  )
}

describe.skipIf(!hasRedis)('changes on one server', () => {
  let server: Awaited<ReturnType<typeof sharedServer>>
  const url = () => server.url
  const lazy = { lazyConnect: true }
  beforeAll(async () => {
    server = await sharedServer()
  })
  afterAll(() => server.stop())

  describe('node-redis', () => contract(() => createClient({ url: url() })))
  describe('node-redis with RESP2', () => contract(() => createClient({ url: url(), RESP: 2 })))
  describe('ioredis', () => contract(() => new Redis(url(), lazy)))
  describe('ioredis with RESP3, a key prefix and time limits', () =>
    contract(
      () =>
        new Redis(url(), {
          ...lazy,
          protocol: 3,
          keyPrefix: 'more:',
          commandTimeout: BRIEF,
          socketTimeout: BRIEF,
        }),
    ))

  /** A process that reads. */
  const started = async (prefix: string, options: RedisOptions = {}) => {
    const bus = busOf(createClient({ url: url() }), { prefix, timeout: PATIENT, ...options })
    const port = new Port()
    const reports: { message: string }[] = []
    const end = bus.share(port, (entry) => void reports.push(entry))
    made.push(end)
    await until(() => expect(port.received).toEqual([EVERYTHING]))
    port.take()
    return { bus, port, reports, end }
  }
  const command = (...parts: string[]) => commanding(url(), (send) => send(...parts))
  const keyOf = (prefix: string) => `{${prefix}}:c`
  /** An entry as another process would append it. */
  const append = (prefix: string, previous: string, text: string) =>
    command('XADD', keyOf(prefix), '*', 'p', previous, 'b', '0', 'o', 'other', 'c', text)
  const changesOf = (uri: string) => JSON.stringify({ lists: [], uris: [uri] })

  it('stores a bounded number of entries and bytes, with a time to live', async () => {
    const prefix = newPrefix()
    const { bus } = await started(prefix)
    for (let count = 0; count < 40; count++)
      await bus.publish({ uri: `note:${count}/${'x'.repeat(60_000)}` })
    const bytes = Number(await command('MEMORY', 'USAGE', keyOf(prefix), 'SAMPLES', '0'))
    expect(bytes).toBeGreaterThan(500_000)
    expect(bytes).toBeLessThan(2_000_000)
    await Promise.all(
      Array.from({ length: 2000 }, (_, count) => bus.publish({ uri: `note:${count}` })),
    )
    expect(await command('XLEN', keyOf(prefix))).toBe(1000)
    const ttl = Number(await command('PTTL', keyOf(prefix)))
    expect(ttl).toBeGreaterThan(500_000)
    expect(ttl).toBeLessThanOrEqual(600_000)
    await bus.publish({ uri: 'x'.repeat(100_000) })
    const [[, fields] = []] = (await command('XREVRANGE', keyOf(prefix), '+', '-')) as [
      string,
      string[],
    ][] // entries of a stream
    expect(fields?.at(-1)).toBe('"everything"')
  })

  it('keeps the stream while a process reads it', async () => {
    const prefix = newPrefix()
    const { port } = await started(prefix, { timeout: BRIEF })
    await append(prefix, '0-0', changesOf('note:1'))
    await until(() => expect(port.take()).toEqual([{ uri: 'note:1' }]))
    await command('PEXPIRE', keyOf(prefix), '30000')
    await until(async () =>
      expect(Number(await command('PTTL', keyOf(prefix)))).toBeGreaterThan(500_000),
    )
    expect(port.received).toEqual([])
  })

  it('is told that everything has changed where entries were trimmed', async () => {
    const prefix = newPrefix()
    const { port } = await started(prefix)
    const first = String(await append(prefix, '0-0', changesOf('note:1')))
    await until(() => expect(port.take()).toEqual([{ uri: 'note:1' }]))
    const second = String(await append(prefix, first, changesOf('note:2')))
    await until(() => expect(port.take()).toEqual([{ uri: 'note:2' }]))
    expect(second).not.toBe(first)
    // The entry before this one is gone.
    await append(prefix, '1-1', changesOf('note:4'))
    await until(() => expect(port.take()).toEqual([EVERYTHING, { uri: 'note:4' }]))
  })

  it('is told that everything has changed where Redis has lost its data', async () => {
    const prefix = newPrefix()
    const { bus, port } = await started(prefix, { timeout: BRIEF })
    const other = await started(prefix)
    await other.bus.publish({ uri: 'note:1' })
    await until(() => expect(port.take()).toEqual([{ uri: 'note:1' }]))
    // Noticed without a change,
    await command('DEL', keyOf(prefix))
    await until(() => expect(port.take()).toEqual([EVERYTHING]))
    await other.bus.publish({ uri: 'note:2' })
    await until(() => expect(port.take()).toEqual([{ uri: 'note:2' }]))
    // and with one.
    await commanding(url(), async (send) => {
      await send('MULTI')
      await send('DEL', keyOf(prefix))
      await send('XADD', keyOf(prefix), '*', 'p', '0-0', 'b', '0', 'o', 'x', 'c', changesOf('n:3'))
      await send('EXEC')
    })
    await until(() => expect(port.take()).toEqual([EVERYTHING, { uri: 'n:3' }]))
    await until(() => bus.publish({ uri: 'note:4' }))
    await until(() => expect(other.port.received).toContainEqual({ uri: 'note:4' }))
  })

  it('is told that everything has changed where the stream has lost its newest entries', async () => {
    const prefix = newPrefix()
    const { port } = await started(prefix, { timeout: BRIEF })
    const future = `${Date.now() + 3_600_000}-0`
    const entry = ['p', '0-0', 'b', '0', 'o', 'other', 'c', changesOf('note:1')]
    await command('XADD', keyOf(prefix), future, ...entry)
    await until(() => expect(port.take()).toEqual([{ uri: 'note:1' }]))
    // As after a failover to a replica that was behind: lower ids are not read by XREAD.
    const last = await commanding(url(), async (send) => {
      await send('MULTI')
      await send('DEL', keyOf(prefix))
      await send('XADD', keyOf(prefix), '*', 'p', '0-0', 'b', '0', 'o', 'x', 'c', changesOf('n:2'))
      return String(((await send('EXEC')) as string[])[1]) // the replies to both
    })
    await until(() => expect(port.take()).toEqual([EVERYTHING]))
    await append(prefix, last, changesOf('note:3'))
    await until(() => expect(port.take()).toEqual([{ uri: 'note:3' }]))
  })

  it('takes what it does not know for everything', async () => {
    const prefix = newPrefix()
    const { bus, port } = await started(prefix)
    let last = '0-0'
    for (const text of ['', '{', '{"lists":["templates"],"uris":[]}', '{"more":1}']) {
      last = String(await append(prefix, last, text))
      await until(() => expect(port.take()).toEqual([EVERYTHING]))
    }
    // Neither are its fields known.
    last = String(await command('XADD', keyOf(prefix), '*', 'x', 'y'))
    await until(() => expect(port.take()).toEqual([EVERYTHING, EVERYTHING]))
    await bus.publish({ uri: 'note:1' })
    await append(prefix, '1-1', changesOf('note:2'))
    await until(() => expect(port.received).toContainEqual({ uri: 'note:2' }))
  })

  it('works without the right to use INFO', async () => {
    const prefix = newPrefix()
    const user = newPrefix()
    await command('ACL', 'SETUSER', user, 'on', '>secret', '~*', '+@all', '-info')
    try {
      const client = createClient({ url: url(), username: user, password: 'secret' })
      const bus = busOf(client, { prefix, timeout: BRIEF })
      const port = new Port()
      const reports: unknown[] = []
      made.push(bus.share(port, (report) => void reports.push(report)))
      await until(() => expect(port.take()).toEqual([EVERYTHING]))
      const { bus: other } = await started(prefix)
      for (const uri of ['note:1', 'note:2']) {
        const failures = reports.length
        await other.publish({ uri })
        // On a busy machine a read may take too long, which is reported: then everything may have changed.
        const told = (): object => (reports.length === failures ? { uri } : EVERYTHING)
        await until(() => expect(port.received).toContainEqual(told()))
        if (reports.length === failures) expect(port.received).toEqual([{ uri }])
        port.take()
      }
      // Several times idle: not each time everything.
      const calls = async () =>
        Number(/xread:calls=(\d+)/.exec(String(await command('INFO', 'commandstats')))?.[1])
      const before = await calls()
      await until(async () => expect(await calls()).toBeGreaterThan(before + 4))
      expect(port.take().length).toBeLessThanOrEqual(reports.length)
      // It cannot know that this is the same server.
      await command('CLIENT', 'KILL', 'USER', user)
      await until(() => expect(port.take()).toContainEqual(EVERYTHING))
    } finally {
      await command('ACL', 'DELUSER', user)
    }
  })

  it('reads again after its connection was closed, and has missed nothing', async () => {
    const prefix = newPrefix()
    const reader = `reader-${prefix}`
    const bus = busOf(createClient({ url: url(), name: reader }), { prefix, timeout: PATIENT })
    const port = new Port()
    const reports: unknown[] = []
    made.push(bus.share(port, (entry) => void reports.push(entry)))
    await until(() => expect(port.take()).toEqual([EVERYTHING]))
    const { bus: other } = await started(prefix)
    for (let count = 0; count < 5; count++) {
      await commanding(url(), async (send) => {
        const list = String(await send('CLIENT', 'LIST'))
        for (const line of list.split('\n'))
          if (line.includes(`name=${reader} `))
            await send('CLIENT', 'KILL', 'ID', /id=(\d+)/.exec(line)?.[1] ?? '')
      })
      await other.publish({ uri: `note:${count}` })
      await until(() => expect(port.take()).toEqual([{ uri: `note:${count}` }]))
    }
    expect(reports.length).toBeGreaterThan(0)
  })

  it.each([
    ['node-redis', () => createClient({ url: url(), socket: { socketTimeout: 100 } })],
    ['ioredis', () => new Redis(url(), { ...lazy, commandTimeout: 100, socketTimeout: 100 })],
  ])('waits for longer than the time limits of the client (%s)', async (_, client) => {
    const prefix = newPrefix()
    const reports: unknown[] = []
    const port = new Port()
    const bus = busOf(client(), { prefix, timeout: PATIENT })
    made.push(bus.share(port, (entry) => void reports.push(entry)))
    await until(() => expect(port.take()).toEqual([EVERYTHING]))
    const { port: observer } = await started(prefix, { timeout: BRIEF })
    const first = String(await append(prefix, '0-0', changesOf('note:1')))
    await until(() => expect(observer.take()).toEqual([{ uri: 'note:1' }]))
    // Idle until a read of the observer has ended, which takes longer than both.
    await command('PEXPIRE', keyOf(prefix), '30000')
    await until(async () =>
      expect(Number(await command('PTTL', keyOf(prefix)))).toBeGreaterThan(500_000),
    )
    await append(prefix, first, changesOf('note:2'))
    await until(() => expect(port.received).toEqual([{ uri: 'note:1' }, { uri: 'note:2' }]))
    expect(reports).toEqual([])
  })

  it('leaves no connection open', async () => {
    const prefix = newPrefix()
    const name = `closed-${prefix}`
    const open = async () =>
      String(await command('CLIENT', 'LIST'))
        .split('\n')
        .filter((line) => line.includes(`name=${name} `)).length
    const bus = busOf(createClient({ url: url(), name }), { prefix, timeout: PATIENT })
    const port = new Port()
    const end = bus.share(port, () => {})
    await until(() => expect(port.received).toEqual([EVERYTHING]))
    port.emit({ uri: 'note:1' })
    await until(async () => expect(await open()).toBe(2))
    port.emit({ uri: 'note:2' })
    await end()
    await until(async () => expect(await open()).toBe(0))
  })
})

describe.skipIf(!canStartRedis)('changes on a cluster', () => {
  let servers: RedisServer[] = []
  beforeAll(async () => {
    servers = await startCluster()
  })
  afterAll(async () => {
    await Promise.all(servers.map((server) => server.stop()))
  })
  const nodes = () => servers.map(({ port }) => ({ host: '127.0.0.1', port }))
  const clients = {
    'node-redis': () => createCluster({ rootNodes: servers.map(({ url }) => ({ url })) }),
    ioredis: () => new Cluster(nodes(), { lazyConnect: true }),
  }
  for (const kind of ['node-redis', 'ioredis'] as const)
    describe(kind, () => {
      contract(clients[kind])

      it('follows a slot that has moved', async () => {
        const prefix = newPrefix()
        const ports = [new Port(), new Port()]
        // The first one publishes, the second one reads.
        const buses = [PATIENT, 2000].map((timeout) => busOf(clients[kind](), { prefix, timeout }))
        for (const [index, port] of ports.entries()) {
          made.push(buses[index]?.share(port, () => {}) ?? (async () => {}))
          await until(() => expect(port.take()).toContainEqual(EVERYTHING))
        }
        await buses[0]?.publish({ uri: 'note:1' })
        await until(() => expect(ports[1]?.received).toContainEqual({ uri: 'note:1' }))
        ports[1]?.take()
        const urls = servers.map(({ url }) => url)
        // Without its data, as where a node is lost.
        await moveSlot(urls, `{${prefix}}`, (from) =>
          commanding(from, (run) => run('DEL', `{${prefix}}:c`)),
        )
        await until(() => expect(ports[1]?.received).toContainEqual(EVERYTHING))
        await buses[0]?.publish({ uri: 'note:2' })
        await until(() => expect(ports[1]?.received).toContainEqual({ uri: 'note:2' }))
      })
    })
})
