import { Redis } from 'ioredis'
import { createClient } from 'redis'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { type Server, createServer, prompt, resource, tool } from '../../src/index.js'
import { type RedisOptions, redis } from '../../src/redis.js'
import { InitializedSession, type Stream, open, statelessRequest } from '../http/caller.js'
import { EVERYTHING, Port } from '../stores/change-bus-contract.js'
import { Cluster } from './cluster.js'
import { RedisServer, canStartRedis, commanding, newPrefix } from './redis-server.js'
import { TcpProxy } from './tcp-proxy.js'

/* Changes while Redis is slow, away, restarted, full or read-only. */

const until = <Value>(condition: () => Value | Promise<Value>): Promise<Value> =>
  vi.waitFor(condition, { timeout: 60_000, interval: 10 })
const stops: (() => Promise<unknown>)[] = []
afterEach(async () => {
  // The servers before what they need.
  for (const stop of stops.splice(0).toReversed()) await stop()
})

async function startRedis(...options: string[]): Promise<RedisServer> {
  const server = await RedisServer.start(...options)
  stops.push(() => server.stop())
  return server
}

const changing = (): Server =>
  createServer({
    name: 'changing',
    version: '1',
    tools: [tool({ name: 'here', run: () => 'here' })],
    prompts: [prompt({ name: 'hello', build: () => 'Hello' })],
    resources: [resource({ uri: 'note:{name}', name: 'note', read: () => 'text' })],
  })

/** What a client has heard since the last call. */
class Heard {
  readonly #stream: Stream
  #from = 0

  constructor(stream: Stream) {
    this.#stream = stream
  }

  get all(): string[] {
    return this.#stream.seen.slice(this.#from).flatMap(({ data }) => {
      if (data === undefined || data === '') return []
      const { method, params } = JSON.parse(data) as { method: string; params?: { uri?: string } } // our messages
      return [params?.uri ?? method.split('/')[1] ?? '']
    })
  }

  clear(): void {
    this.#from = this.#stream.seen.length
  }
}

/** Of each process, the resource that it changes last. */
const FENCES = ['note:fence-0', 'note:fence-1']
const SUBSCRIBED = ['note:a', 'note:b', ...FENCES]
/** Everything that a client can be told. */
const ALL = [...SUBSCRIBED, 'prompts', 'resources', 'tools']

/** A process with a session and a `subscriptions/listen` stream. */
async function start(cluster: Cluster, url = cluster.url, options: RedisOptions = {}) {
  const server = changing()
  const listening = await cluster.start(server, { url }, options)
  const session = await until(() => InitializedSession.open(listening.url, '2025-11-25'))
  const own = await session.listen()
  stops.push(async () => own.disconnect())
  for (const uri of SUBSCRIBED)
    await until(async () =>
      expect((await session.request('resources/subscribe', { uri })).status).toBe(200),
    )
  const notifications = {
    toolsListChanged: true,
    promptsListChanged: true,
    resourcesListChanged: true,
    resourceSubscriptions: SUBSCRIBED,
  }
  const stream = await open(
    listening.url,
    statelessRequest('subscriptions/listen', { notifications }),
  )
  stops.push(async () => stream.disconnect())
  await stream.has('acknowledged')
  const clients = [new Heard(own), new Heard(stream)]
  const clear = () => clients.forEach((each) => each.clear())
  clear()
  return {
    server,
    listening,
    clear,
    /** Both clients have heard this, in any order, and nothing else. */
    hears: async (expected: readonly string[]) => {
      await until(() => {
        for (const { all } of clients) expect(all.toSorted()).toEqual([...expected].toSorted())
      })
      clear()
    },
    /** How often each client has heard this. */
    times: (what: string) => clients.map(({ all }) => all.filter((each) => each === what).length),
    /** Whether both clients have heard this, among others. */
    hasHeard: (...expected: readonly string[]) =>
      clients.every(({ all }) => expected.every((each) => all.includes(each))),
  }
}
type Started = Awaited<ReturnType<typeof start>>

/** Until each hears the other; then nothing more is on its way. */
async function settled(one: Started, other: Started): Promise<void> {
  for (const [from, to] of [
    [one, other],
    [other, one],
  ] as const) {
    to.clear()
    await until(() => {
      from.server.prompts.changed()
      expect(to.hasHeard('prompts')).toBe(true)
    })
  }
  one.clear()
  other.clear()
  for (const [index, { server }] of [one, other].entries()) server.updated(FENCES[index] ?? '')
  await heard(one, ...FENCES)
  await heard(other, ...FENCES)
  one.clear()
  other.clear()
}

const heard = (one: Started, ...expected: readonly string[]) =>
  until(() => expect(one.hasHeard(...expected)).toBe(true))

function newCluster(url: string): Cluster {
  const cluster = new Cluster(url, newPrefix())
  stops.push(() => cluster.close())
  return cluster
}

/** Of a process that must notice that Redis does not reply. What it publishes may be published twice. */
const BRIEF = { timeout: 700 }

describe.skipIf(!canStartRedis)('changes, with Redis that', () => {
  it.each(['hold', 'refuse', 'lose replies'] as const)(
    'is out of reach for one process (%s): its clients are told at once, the others when it is back',
    async (mode) => {
      const server = await startRedis()
      const proxy = await TcpProxy.start(server.port)
      stops.push(() => proxy.stop())
      const cluster = newCluster(server.url)
      const a = await start(cluster, proxy.url, BRIEF)
      const b = await start(cluster)
      await settled(a, b)
      proxy.set(mode)
      a.server.updated('note:a')
      b.server.tools.changed()
      // Each those of its own.
      await a.hears(['note:a'])
      await heard(b, 'tools')
      a.server.tools.changed()
      await a.hears(['tools'])
      await until(() => expect(cluster.lines.join('')).toContain('Changes could not be published'))
      await until(() => expect(cluster.lines.join('')).toContain('cannot be read from Redis'))
      b.clear()
      proxy.set('pass')
      await heard(a, 'tools')
      await heard(b, 'tools', 'note:a')
      await settled(a, b)
      b.server.updated('note:b')
      await a.hears(['note:b'])
      await heard(b, 'note:b')
      expect(b.times('note:b')).toEqual([1, 1])
    },
    60_000,
  )

  it('is killed and restarted: clients are told of everything, once', async () => {
    const server = await startRedis()
    const cluster = newCluster(server.url)
    const a = await start(cluster)
    const b = await start(cluster)
    await settled(a, b)
    await server.kill()
    a.server.updated('note:a')
    await a.hears(['note:a'])
    await server.restart()
    await a.hears(ALL)
    await heard(b, ...ALL)
    await settled(a, b)
    a.server.updated('note:a')
    await b.hears(['note:a'])
    await a.hears(['note:a'])
  })

  it('is paused: clients of the same process are told at once, others when it continues', async () => {
    const server = await startRedis()
    const cluster = newCluster(server.url)
    const a = await start(cluster)
    const b = await start(cluster)
    await settled(a, b)
    server.signal('SIGSTOP')
    for (let count = 0; count < 100; count++) {
      a.server.updated('note:a')
      a.server.tools.changed()
      await new Promise(setImmediate)
    }
    await heard(a, 'note:a', 'tools')
    server.signal('SIGCONT')
    await heard(b, 'note:a', 'tools')
    // What has waited was merged.
    await settled(a, b)
    expect(cluster.lines.join('')).not.toContain('cannot be read')
  })

  it.each([
    ['full', ['CONFIG', 'SET', 'maxmemory', '1'], ['CONFIG', 'SET', 'maxmemory', '100mb']],
    ['a replica', ['REPLICAOF', '127.0.0.1', '1'], ['REPLICAOF', 'NO', 'ONE']],
  ])(
    'is %s for a while',
    async (_, begin, end) => {
      const server = await startRedis('--maxmemory-policy', 'noeviction')
      const cluster = newCluster(server.url)
      const a = await start(cluster)
      const b = await start(cluster)
      await settled(a, b)
      await commanding(server.url, async (command) => {
        await command(...begin)
        a.server.updated('note:a')
        await heard(a, 'note:a')
        await until(() =>
          expect(cluster.lines.join('')).toContain('Changes could not be published'),
        )
        await command(...end)
      })
      await heard(b, 'note:a')
      await settled(a, b)
    },
    60_000,
  )

  it('has trimmed what a process has not read: its clients are told of everything', async () => {
    const server = await startRedis()
    const proxy = await TcpProxy.start(server.port)
    stops.push(() => proxy.stop())
    const cluster = newCluster(server.url)
    const a = await start(cluster)
    const b = await start(cluster, proxy.url, BRIEF)
    await settled(a, b)
    proxy.set('hold')
    const { changes, close } = cluster.stores()
    for (let count = 0; count < 1500; count++) await changes.publish({ uri: `note:${count}` })
    await close()
    proxy.set('pass')
    await b.hears(ALL)
    await settled(a, b)
  })

  it('gets 100,000 changes of distinct resources: little is stored, and everything has changed once', async () => {
    const server = await startRedis()
    const cluster = newCluster(server.url)
    const a = await start(cluster)
    const b = await start(cluster)
    await settled(a, b)
    for (let count = 0; count < 100_000; count++) a.server.updated(`note:${count}`)
    await b.hears(ALL)
    await a.hears([])
    const key = `{${cluster.prefix}}:c`
    // Of all nodes: by default Redis estimates from the first five, which may be larger than the others.
    const size = () =>
      commanding(server.url, async (command) =>
        Number(await command('MEMORY', 'USAGE', key, 'SAMPLES', '0')),
      )
    expect(await size()).toBeLessThan(100_000)
    // Over many turns: what is published while the one before is in progress.
    for (let count = 0; count < 100_000; count++) {
      a.server.updated(`note:${count}`)
      if (count % 500 === 0) await new Promise(setImmediate)
    }
    a.server.updated('note:a')
    await heard(b, 'note:a')
    expect(await size()).toBeLessThan(2_500_000)
    await settled(a, b)
  }, 120_000)

  it('does not reply while a process ends: that ends in time, and leaves no connection', async () => {
    const server = await startRedis()
    const proxy = await TcpProxy.start(server.port)
    stops.push(() => proxy.stop())
    const cluster = newCluster(proxy.url)
    const a = await start(cluster, proxy.url, BRIEF)
    proxy.set('hold')
    a.server.updated('note:a')
    await heard(a, 'note:a')
    await a.listening.close(0)
    await until(() =>
      expect(cluster.lines.join('')).toContain('The last changes could not be published'),
    )
    proxy.set('pass')
    await until(() =>
      commanding(server.url, async (command) => {
        const list = String(await command('CLIENT', 'LIST')).trim()
        expect(list.split('\n')).toHaveLength(1)
      }),
    )
  })

  it.each(['node-redis', 'ioredis'] as const)(
    'is silent while a client reconnects: the client is replaced (%s)',
    async (kind) => {
      const server = await startRedis()
      const proxy = await TcpProxy.start(server.port)
      stops.push(() => proxy.stop())
      const { url } = proxy
      const client =
        kind === 'ioredis' ? new Redis(url, { lazyConnect: true }) : createClient({ url })
      const { sessions, close } = redis(client, { prefix: newPrefix(), timeout: 500 })
      stops.push(close)
      await until(() => sessions.set('a', { generation: 1, state: 'x' }, 60_000))
      const before = proxy.connections
      proxy.set('refuse')
      // It reconnects by itself, and waits for the reply to its first command without end.
      proxy.set('hold')
      await until(() => expect(proxy.connections).toBeGreaterThan(before))
      await expect(sessions.get('a')).rejects.toMatchObject({ code: 'REDIS_UNAVAILABLE' })
      proxy.set('pass')
      await until(async () => expect(await sessions.get('a')).toMatchObject({ state: 'x' }))
    },
    60_000,
  )

  it('fails again and again: every change is told, or everything after it', async () => {
    const server = await startRedis()
    const prefix = newPrefix()
    const processes = await Promise.all(
      [0, 1, 2].map(async () => {
        const proxy = await TcpProxy.start(server.port)
        stops.push(() => proxy.stop())
        const { changes } = redis(createClient({ url: proxy.url }), { prefix, timeout: 300 })
        const port = new Port()
        stops.push(changes.share(port, () => {}))
        return { proxy, port }
      }),
    )
    /** Of each change, who has made it, and how much each had received by then. */
    const ledger: { uri: string; by: Port; received: number[] }[] = []
    const change = (by: Port) => {
      const received = processes.map(({ port }) => port.received.length)
      const uri = `note:${ledger.length}`
      ledger.push({ uri, by, received })
      by.emit({ uri })
    }
    const missing = () =>
      ledger.flatMap(({ uri, by, received }) =>
        processes.flatMap(({ port }, index) => {
          const since = port.received.slice(received[index])
          const told = since.some(
            (each) => 'everything' in each || ('uri' in each && each.uri === uri),
          )
          return port === by || told ? [] : [uri]
        }),
      )
    const modes = ['refuse', 'pass', 'lose replies', 'pass', 'delay', 'hold', 'pass'] as const
    for (let round = 0; round < 21; round++) {
      processes[round % 3]?.proxy.set(modes[round % modes.length] ?? 'pass')
      if (round === 10) await server.kill()
      if (round === 11) await server.restart()
      if (round === 15) await commanding(server.url, (command) => command('FLUSHALL'))
      // Some of the failures are noticed, some are not.
      for (let turn = 0; turn < 1000; turn++) {
        if (turn % 40 === 0) change(processes[(turn / 40) % 3]?.port ?? new Port())
        await new Promise(setImmediate)
      }
    }
    for (const { proxy } of processes) proxy.set('pass')
    await until(() => expect(missing()).toEqual([]))
    // By then, each hears the others again, exactly.
    for (const { port } of processes) port.take()
    ledger.length = 0
    for (const { port } of processes) change(port)
    await until(() => expect(missing()).toEqual([]))
  }, 120_000)

  it('is not there at first: clients are told of everything when it is', async () => {
    const server = await startRedis()
    const proxy = await TcpProxy.start(server.port)
    stops.push(() => proxy.stop())
    proxy.set('refuse')
    const prefix = newPrefix()
    const { changes } = redis(createClient({ url: proxy.url }), { prefix, timeout: 500 })
    const other = redis(createClient({ url: server.url }), { prefix, timeout: 20_000 })
    stops.push(other.close)
    const port = new Port()
    const reports: { message: string }[] = []
    stops.push(changes.share(port, (entry) => void reports.push(entry)))
    await until(() => expect(reports).toHaveLength(1))
    await other.changes.publish({ uri: 'note:a' })
    await expect(changes.publish({ uri: 'note:b' })).rejects.toMatchObject({
      code: 'REDIS_UNAVAILABLE',
    })
    expect(port.take()).toEqual([{ uri: 'note:b' }])
    expect(reports).toHaveLength(1)
    proxy.set('pass')
    await until(() => expect(port.take()).toEqual([EVERYTHING]))
    await other.changes.publish({ uri: 'note:c' })
    await until(() => expect(port.take()).toEqual([{ uri: 'note:c' }]))
  })
})
