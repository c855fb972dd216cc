import { Redis } from 'ioredis'
import { createClient } from 'redis'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { type Server, createServer, resource, tool } from '../../src/index.js'
import { type RedisOptions, redis } from '../../src/redis.js'
import { type Answer, InitializedSession, POST, message, send } from '../http/caller.js'
import { Cluster } from './cluster.js'
import { RedisServer, canStartRedis, commanding, newPrefix } from './redis-server.js'
import { TcpProxy } from './tcp-proxy.js'

/* Redis that is slow, away, restarted, full, read-only or empty. */

const NEWEST = '2025-11-25'
const until = <Value>(condition: () => Value | Promise<Value>): Promise<Value> =>
  vi.waitFor(condition, { timeout: 60_000, interval: 10 })
const said = (text: string) => ({ result: { content: [{ type: 'text', text }] } })

const stops: (() => Promise<unknown>)[] = []
afterEach(async () => {
  vi.restoreAllMocks()
  // The servers before what they need.
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

function newCluster(url: string, options: RedisOptions): Cluster {
  const cluster = new Cluster(url, newPrefix(), options)
  stops.push(() => cluster.close())
  return cluster
}

/** A server whose tool says which process it is in. */
const where = (name: string): Server =>
  createServer({
    name: 'where',
    version: '1',
    tools: [tool({ name: 'where', run: () => name })],
    resources: [resource({ uri: 'note:it', name: 'it', read: () => 'text' })],
  })
const ask = (client: InitializedSession, url = client.url) =>
  client.at(url).request('tools/call', { name: 'where' })
const initialize = (url: string) =>
  send(url, {
    headers: POST,
    body: message(
      'initialize',
      { protocolVersion: NEWEST, capabilities: {}, clientInfo: { name: 'test', version: '1' } },
      1,
    ),
  })
/** A session; a busy machine may exceed the short time limits of these tests. */
const opened = (url: string) => until(() => InitializedSession.open(url, NEWEST))
/** The first answer that is not 503, for the same reason. */
const answered = (send: () => Promise<Answer>) =>
  until(async () => {
    const answer = await send()
    expect(answer.status).not.toBe(503)
    return answer
  })
const isUnavailable = ({ status, headers }: Answer) =>
  expect([status, headers['retry-after']]).toEqual([503, '5'])

describe.skipIf(!canStartRedis)('Redis', () => {
  it.each(['hold', 'refuse', 'lose replies'] as const)(
    'may be out of reach (%s): own sessions are served until the lease ends, and again afterwards',
    async (mode) => {
      const server = await startRedis()
      const proxy = await startProxy(server)
      const cluster = newCluster(server.url, {})
      const stores = cluster.stores({ timeout: 700 }, proxy.url)
      const a = await cluster.start(where('a'), { stores })
      const b = await cluster.start(where('b'), {}, { lease: 600_000 })
      const ofA = await opened(a.url)
      const ofB = await opened(b.url)
      proxy.set(mode)
      expect((await ask(ofA)).json).toMatchObject(said('a'))
      isUnavailable(await ask(ofB, a.url))
      isUnavailable(await initialize(a.url))
      // What would be acknowledged must be stored.
      isUnavailable(await ofA.request('resources/subscribe', { uri: 'note:it' }))
      isUnavailable(await ofA.request('resources/subscribe', { uri: 'note:it' }))
      // The lease ends.
      const now = performance.now.bind(performance)
      vi.spyOn(performance, 'now').mockImplementation(() => now() + 60_000)
      await commanding(server.url, (command) =>
        command('DEL', `{${cluster.prefix}}:p:${stores.sessions.ownership?.process}`),
      )
      isUnavailable(await ask(ofA))
      isUnavailable(await ofA.end())
      expect((await ask(ofB)).json).toMatchObject(said('b'))
      // By then, another process has taken it over.
      const taken = mode === 'hold'
      if (taken) expect((await ask(ofA, b.url)).json).toMatchObject(said('b'))
      proxy.set('pass')
      expect((await answered(() => ask(ofA))).json).toMatchObject(said(taken ? 'b' : 'a'))
      expect((await answered(() => ask(ofB, a.url))).json).toMatchObject(said('b'))
      expect((await answered(() => initialize(a.url))).status).toBe(200)
      const { status } = await ofA.end()
      if (status === 503) await answered(() => ofA.end())
      else expect(status).toBe(204)
      expect((await answered(() => ask(ofA, b.url))).status).toBe(404)
    },
    60_000,
  )

  it('may get late what was sent on a connection that was given up: a process notices that its session was taken over', async () => {
    const server = await startRedis()
    const proxy = await startProxy(server)
    const cluster = newCluster(server.url, {})
    const short = { lease: 2000, timeout: 700 }
    const a = await cluster.start(where('a'), { url: proxy.url }, short)
    const b = await cluster.start(where('b'))
    const client = await opened(a.url)
    const own = await until(async () => {
      const stream = await client.listen()
      expect(stream.status).toBe(200)
      return stream
    })
    proxy.set('late')
    await until(async () => expect((await ask(client, b.url)).json).toMatchObject(said('b')))
    // The first renewal that Redis gets now is one whose reply nobody reads.
    proxy.set('pass')
    await until(async () => expect((await initialize(a.url)).status).toBe(200))
    expect((await answered(() => ask(client))).json).toMatchObject(said('b'))
    await own.ended()
  }, 60_000)

  it('may be slow: everything takes longer', async () => {
    const server = await startRedis()
    const proxy = await startProxy(server)
    const cluster = newCluster(proxy.url, {})
    const a = await cluster.start(where('a'))
    const b = await cluster.start(where('b'))
    proxy.set('delay')
    const clients = await Promise.all([opened(a.url), opened(b.url)])
    for (const client of clients)
      expect((await client.request('resources/subscribe', { uri: 'note:it' })).json).toMatchObject({
        result: {},
      })
    expect((await ask(clients[0], b.url)).json).toMatchObject(said('a'))
    expect((await clients[0].at(b.url).end()).status).toBe(204)
    expect((await ask(clients[0])).status).toBe(404)
  })

  it('may be killed and restarted: what was acknowledged is there', async () => {
    const server = await startRedis()
    const cluster = newCluster(server.url, {})
    const a = await cluster.start(where('a'))
    const b = await cluster.start(where('b'))
    const clients = await Promise.all(Array.from({ length: 10 }, () => opened(a.url)))
    for (const client of clients)
      await until(async () =>
        expect((await client.request('resources/subscribe', { uri: 'note:it' })).status).toBe(200),
      )
    const [gone, ...kept] = clients
    expect((await gone?.end())?.status).toBe(204)
    await server.kill()
    isUnavailable(await initialize(b.url))
    await server.restart()
    await until(async () => expect((await initialize(b.url)).status).toBe(200))
    for (const client of kept)
      await until(async () => expect((await ask(client, b.url)).json).toMatchObject(said('a')))
    for (const { url } of [a, b])
      await until(async () => expect((await gone?.at(url).request('ping'))?.status).toBe(404))
    await a.close()
    const [first] = kept
    expect((await first?.at(b.url).request('tools/call', { name: 'where' }))?.json).toMatchObject(
      said('b'),
    )
    await commanding(server.url, async (command) => {
      const key = `{${cluster.prefix}}:s:${first?.session.slice(0, -20)}`
      expect(String(await command('HGET', key, 's'))).toContain('note:it')
    })
  })

  it('may lose its data: processes store their sessions again', async () => {
    const server = await startRedis()
    const cluster = newCluster(server.url, {})
    const stores = cluster.stores()
    const a = await cluster.start(where('a'), { stores })
    const b = await cluster.start(where('b'))
    const client = await opened(a.url)
    await commanding(server.url, (command) => command('FLUSHALL'))
    expect((await ask(client)).json).toMatchObject(said('a'))
    // It notices when it renews its lease.
    await stores.sessions.ownership?.renew()
    await until(async () => expect((await ask(client, b.url)).json).toMatchObject(said('a')))
  })

  it('may be full: calls are served, and nothing is acknowledged that is not stored', async () => {
    const server = await startRedis('--maxmemory', '3mb', '--maxmemory-policy', 'noeviction')
    const cluster = newCluster(server.url, {})
    const a = await cluster.start(where('a'))
    const client = await opened(a.url)
    await commanding(server.url, async (command) => {
      await command('CONFIG', 'SET', 'maxmemory', '1')
      expect((await ask(client)).json).toMatchObject(said('a'))
      isUnavailable(await initialize(a.url))
      isUnavailable(await client.request('resources/subscribe', { uri: 'note:it' }))
      await command('CONFIG', 'SET', 'maxmemory', '100mb')
    })
    await until(async () => {
      expect((await client.request('resources/subscribe', { uri: 'note:it' })).status).toBe(200)
      expect((await initialize(a.url)).status).toBe(200)
    })
  })

  it('may be a replica that cannot be written, for a while', async () => {
    const server = await startRedis()
    const primary = await startRedis()
    const cluster = newCluster(server.url, {})
    const a = await cluster.start(where('a'))
    const client = await opened(a.url)
    await commanding(server.url, async (command) => {
      await command('REPLICAOF', '127.0.0.1', String(primary.port))
      expect((await ask(client)).json).toMatchObject(said('a'))
      isUnavailable(await initialize(a.url))
      await command('REPLICAOF', 'NO', 'ONE')
    })
    await until(async () => expect((await initialize(a.url)).status).toBe(200))
  })

  it('may require another password: that is logged, and nothing hangs', async () => {
    const server = await startRedis('--requirepass', 'right')
    const url = `redis://:wrong@127.0.0.1:${server.port}`
    const cluster = newCluster(url, { lease: 2000, timeout: 500 })
    // One more if a busy machine has exceeded the time limit: a process logs the first failure only.
    for (let logged = ''; !/WRONGPASS|NOAUTH/.test(logged); logged = cluster.lines.join('')) {
      cluster.lines.length = 0
      const a = await cluster.start(where('a'))
      isUnavailable(await initialize(a.url))
      await until(() => expect(cluster.lines.join('')).toContain('could not be renewed in Redis'))
    }
  })

  it('may have settings that lose data: that is logged', async () => {
    const server = await startRedis(
      '--maxmemory-policy',
      'allkeys-lru',
      '--appendfsync',
      'everysec',
    )
    const cluster = newCluster(server.url, {})
    await cluster.start(where('a'))
    await until(() => expect(cluster.lines.join('')).toContain('appendfsync everysec'))
    expect(cluster.lines.join('')).toContain('maxmemory-policy allkeys-lru')
    const durable = newCluster((await startRedis()).url, {})
    await opened((await durable.start(where('b'))).url)
    expect(durable.lines.join('')).not.toContain('Redis has')
  })

  it.each(['redis', 'ioredis'] as const)(
    'that does not reply is given up, and what waits is bounded (%s)',
    async (kind) => {
      const server = await startRedis()
      const proxy = await startProxy(server)
      const client =
        kind === 'redis'
          ? createClient({ url: proxy.url })
          : new Redis(proxy.url, { lazyConnect: true })
      const { sessions, events, close } = redis(client, { timeout: 700 })
      stops.push(close)
      await until(() => sessions.set('a', { generation: 1, state: 'x' }, 60_000))
      proxy.set('hold')
      await expect(sessions.get('a')).rejects.toMatchObject({ code: 'REDIS_UNAVAILABLE' })
      const frame = 'x'.repeat(1024 * 1024)
      const appended = Array.from({ length: 100 }, async (_, index) =>
        events.append(`s${index}`, { number: 1, frame }, 60_000),
      )
      const outcomes = await Promise.allSettled(appended)
      expect(outcomes.filter(({ status }) => status === 'fulfilled')).toEqual([])
      proxy.set('pass')
      await until(async () =>
        expect(await sessions.get('a')).toEqual({ generation: 1, state: 'x' }),
      )
      // A new connection, since the old one has not replied; and few attempts in the meantime.
      expect(proxy.connections).toBeGreaterThan(1)
      expect(proxy.connections).toBeLessThan(20)
    },
    60_000,
  )
})
