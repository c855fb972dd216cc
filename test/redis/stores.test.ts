import { Cluster, Redis } from 'ioredis'
import { createClient, createCluster } from 'redis'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { type RedisClient, type RedisOptions, type RedisStores, redis } from '../../src/redis.js'
import { eventStoreContract } from '../stores/event-store-contract.js'
import { sessionStoreContract } from '../stores/session-store-contract.js'
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

/* The stores on Redis, with each supported client. */

const TTL = 60_000
const opened: RedisStores[] = []
afterEach(async () => {
  await Promise.all(opened.splice(0).map((each) => each.close()))
})
function stores(client: RedisClient, options: RedisOptions = {}): RedisStores {
  const made = redis(client, { prefix: newPrefix(), lease: 60_000, timeout: 20_000, ...options })
  opened.push(made)
  return made
}

/** Runs what every store must do. */
function contracts(client: () => RedisClient, urls: () => string[], keyPrefix = ''): void {
  let prefix = ''
  const make = () => {
    prefix = newPrefix()
    return stores(client(), { prefix })
  }
  // Redis has a clock of its own: instead of waiting, times to live become shorter.
  const advance = async (milliseconds: number) => {
    for (const url of urls())
      await commanding(url, async (command) => {
        const keys = (await command('KEYS', `${keyPrefix}{${prefix}}*`)) as string[] // KEYS returns names
        for (const key of keys) {
          const left = Number(await command('PTTL', key)) - milliseconds
          await command('PEXPIRE', key, String(left))
        }
      })
  }
  describe('sessions', () => sessionStoreContract(() => make().sessions, advance))
  describe('events', () => eventStoreContract(() => make().events))
}

describe.skipIf(!hasRedis)('on one server', () => {
  let server: Awaited<ReturnType<typeof sharedServer>>
  const url = () => server.url
  const urls = () => [server.url]
  const lazy = { lazyConnect: true }
  beforeAll(async () => {
    server = await sharedServer()
  })
  afterAll(() => server.stop())

  describe('node-redis', () => contracts(() => createClient({ url: url() }), urls))
  describe('node-redis with RESP2', () =>
    contracts(() => createClient({ url: url(), RESP: 2 }), urls))
  describe('ioredis', () => contracts(() => new Redis(url(), lazy), urls))
  describe('ioredis with RESP3 and a key prefix', () =>
    contracts(() => new Redis(url(), { ...lazy, protocol: 3, keyPrefix: 'more:' }), urls, 'more:'))

  const make = (options?: RedisOptions) => stores(createClient({ url: url() }), options)
  const keysOf = (prefix: string) =>
    commanding(url(), async (command) => {
      const keys = (await command('KEYS', `{${prefix}}*`)) as string[] // KEYS returns names
      const times = await Promise.all(keys.map((key) => command('PTTL', key)))
      return keys.map((key, index) => ({ key, ttl: Number(times[index]) }))
    })

  it('stores nothing without a time to live', async () => {
    const prefix = newPrefix()
    const { sessions, events } = make({ prefix })
    await sessions.set('a', { generation: 0, state: 'x' }, TTL)
    await sessions.set('b', { generation: 0, state: 'x' }, TTL)
    await sessions.delete('b', TTL)
    await sessions.delete('never', TTL)
    const writer = { session: 'a', generation: 0, owner: 'ada' }
    await events.append('a/g', { number: 1, frame: 'x' }, TTL, writer)
    const keys = await keysOf(prefix)
    expect(keys.map(({ key }) => key).toSorted()).toEqual([
      `{${prefix}}:e:a/g`,
      `{${prefix}}:eo:ada`,
      `{${prefix}}:eu`,
      `{${prefix}}:ex`,
      `{${prefix}}:s:a`,
      `{${prefix}}:s:b`,
      `{${prefix}}:s:never`,
    ])
    expect(keys.filter(({ ttl }) => !(ttl > 0 && ttl <= TTL))).toEqual([])
  })

  it('refuses events of a writer whose session was taken over or deleted', async () => {
    const { sessions, events } = make()
    const by = (generation: number) => ({ session: 'a', generation })
    await sessions.set('a', { generation: 1, state: 'x' }, TTL)
    expect(await events.append('a/g', { number: 1, frame: '1' }, TTL, by(1))).toBe(true)
    await sessions.set('a', { generation: 2, state: 'x' }, TTL)
    expect(await events.append('a/g', { number: 2, frame: '2' }, TTL, by(1))).toBe(false)
    expect(await events.append('a/g', { number: 2, frame: 'two' }, TTL, by(2))).toBe(true)
    await sessions.delete('a', TTL)
    expect(await events.append('a/g', { number: 3, frame: '3' }, TTL, by(2))).toBe(false)
    expect(await events.read('a/g', 0)).toEqual([
      { number: 1, frame: '1' },
      { number: 2, frame: 'two' },
    ])
  })

  it('does not change the owner of a session by a late set', async () => {
    const address = 'http://127.0.0.1:9'
    const { sessions } = make({ address, key: 'a key of at least 32 characters, for this test' })
    const { ownership } = sessions
    if (ownership === undefined) throw new Error('sessions are not shared')
    ownership.start({ report() {}, lapsed() {} })
    expect(await ownership.renew()).toBe(true)
    const owner = ownership.process
    const record = (generation: number) => ({ generation, sequence: 1, state: 'x' })
    await sessions.set('a', record(1), TTL)
    expect(await ownership.locate('a')).toEqual({ at: 'free', owner })
    await ownership.release('a', 1)
    expect(await sessions.set('a', record(1), TTL)).toBe(true)
    expect(await ownership.locate('a')).toEqual({ at: 'free', owner: '' })
    expect(await ownership.claim('a', 1, 2, '')).toBe(true)
    expect(await ownership.locate('a')).toEqual({ at: 'free', owner })
    // The sequence belongs to a generation.
    expect(await sessions.set('a', { generation: 2, sequence: 0, state: 'y' }, TTL)).toBe(true)
    expect(await sessions.get('a')).toEqual({ generation: 2, state: 'y' })
    await ownership.close()
  })

  it('bounds a stream in number and in bytes, and keeps event 0 and the newest', async () => {
    const { events } = make({ maxEventsPerStream: 4, maxBytesPerStream: 1000 })
    const numbers = async () => (await events.read('a', -1)).map(({ number }) => number)
    await events.append('a', { number: 0, frame: '[1]' }, TTL)
    for (let number = 1; number <= 9; number++)
      await events.append('a', { number, frame: 'x' }, TTL)
    expect(await numbers()).toEqual([0, 7, 8, 9])
    await events.append('a', { number: 10, frame: 'ü'.repeat(499) }, TTL)
    await events.append('a', { number: 11, frame: 'y' }, TTL)
    expect(await numbers()).toEqual([0, 9, 10, 11])
    await events.append('a', { number: 12, frame: 'z'.repeat(5000) }, TTL)
    expect(await numbers()).toEqual([0, 10, 11, 12])
    await events.append('a', { number: 13, frame: 'z' }, TTL)
    expect(await numbers()).toEqual([0, 13])
  })

  it('loads its scripts again where Redis has lost them', async () => {
    const { sessions, events } = make()
    await sessions.set('a', { generation: 1, state: 'x' }, TTL)
    await commanding(url(), (command) => command('SCRIPT', 'FLUSH'))
    expect(await sessions.set('a', { generation: 0, state: 'x' }, TTL)).toBe(false)
    await commanding(url(), (command) => command('SCRIPT', 'FLUSH'))
    expect(await events.append('a', { number: 1, frame: 'x' }, TTL)).toBe(true)
  })

  it('opens its connection when it is used, also after close', async () => {
    const client = createClient({ url: url() })
    const made = stores(client)
    expect(await made.sessions.set('a', { generation: 1, state: 'x' }, TTL)).toBe(true)
    expect(client.isOpen).toBe(false)
    await made.close()
    expect(await made.sessions.get('a')).toEqual({ generation: 1, state: 'x' })
  })

  it('rejects what is no client, and invalid options', () => {
    const client = createClient({ url: url() })
    const wrong = (options: object) => () => redis(client, options)
    for (const other of [undefined, {}, { duplicate() {} }, 'redis://'])
      expect(() => redis(other as RedisClient)).toThrow('expected a client of the package "redis"')
    expect(wrong({ prefix: 'a{b}' })).toThrow('"prefix" must be')
    expect(wrong({ prefixes: 'a' })).toThrow('unknown option "prefixes"')
    expect(wrong({ lease: 0 })).toThrow('"lease" must be')
    expect(wrong({ address: '10.0.0.5' })).toThrow('"address" needs "key"')
    expect(wrong({ address: '10.0.0.5', key: 'short' })).toThrow('at least 32 characters')
    const key = 'k'.repeat(32)
    for (const address of ['http://h/path', 'ftp://h', 'http://u:p@h', 'h/p', '', 5])
      expect(wrong({ address, key })).toThrow('"address" must be')
    for (const address of ['h', '10.0.0.5', '::1', '[::1]', 'https://h:1', 'http://h/'])
      expect(wrong({ address, key })).not.toThrow()
  })
})

describe.skipIf(!canStartRedis)('on a cluster', () => {
  let servers: RedisServer[] = []
  const urls = () => servers.map(({ url }) => url)
  const nodes = () => servers.map(({ port }) => ({ host: '127.0.0.1', port }))
  beforeAll(async () => {
    servers = await startCluster()
  })
  afterAll(async () => {
    await Promise.all(servers.map((server) => server.stop()))
  })

  describe('node-redis', () =>
    contracts(() => createCluster({ rootNodes: servers.map(({ url }) => ({ url })) }), urls))
  const clients = {
    'node-redis': () => createCluster({ rootNodes: servers.map(({ url }) => ({ url })) }),
    ioredis: () => new Cluster(nodes(), { lazyConnect: true }),
  }
  it.each(['node-redis', 'ioredis'] as const)('%s follows a slot that has moved', async (kind) => {
    const prefix = newPrefix()
    const { sessions, events } = stores(clients[kind](), { prefix })
    expect(await sessions.get('a')).toBeUndefined()
    const { slot, to } = await moveSlot(urls(), `{${prefix}}`)
    expect(await sessions.set('a', { generation: 1, state: 'x' }, TTL)).toBe(true)
    expect(await events.append('a', { number: 1, frame: 'x' }, TTL)).toBe(true)
    expect(await sessions.get('a')).toEqual({ generation: 1, state: 'x' })
    const count = ['CLUSTER', 'COUNTKEYSINSLOT', slot]
    expect(await commanding(to, (command) => command(...count))).toBe(4)
  })

  describe('ioredis', () => contracts(() => new Cluster(nodes(), { lazyConnect: true }), urls))
})
