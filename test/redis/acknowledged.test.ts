import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest'
import { rateLimit } from '../../examples/middleware/rate-limit.mjs'
import { type Server, createServer, resource } from '../../src/index.js'
import type { SessionRecord } from '../../src/http.js'
import { type Answer, InitializedSession, POST, message, send } from '../http/caller.js'
import { Cluster } from './cluster.js'
import { commanding, hasRedis, newPrefix, sharedServer } from './redis-server.js'

/* What was acknowledged is stored, whatever fails; what cannot be stored is not acknowledged. */

const NEWEST = '2025-11-25'
const WITH_BATCHES = '2025-03-26'
const until = (condition: () => unknown) => vi.waitFor(condition, { timeout: 60_000, interval: 5 })
const notes = (): Server =>
  createServer({
    name: 'notes',
    version: '1',
    resources: [resource({ uri: 'note://{+name}', read: () => 'text' })],
  })
const subscribe = (client: InitializedSession, uri: string) =>
  client.request('resources/subscribe', { uri })
const isAcknowledged = ({ status, json }: Answer) =>
  expect([status, json]).toMatchObject([200, { result: {} }])
const isUnavailable = ({ status, headers }: Answer) =>
  expect([status, headers['retry-after']]).toEqual([503, '5'])

describe.skipIf(!hasRedis)('what was acknowledged', () => {
  let redis: Awaited<ReturnType<typeof sharedServer>>
  let cluster: Cluster
  beforeAll(async () => {
    redis = await sharedServer()
  })
  afterAll(() => redis.stop())
  afterEach(() => cluster.close())
  const newCluster = () => (cluster = new Cluster(redis.url, newPrefix()))

  const uris = (messages: readonly string[]) =>
    messages.flatMap(
      (each) => (JSON.parse(each) as { params?: { uri?: string } }).params?.uri ?? [],
    )
  /** The subscriptions in Redis. */
  const stored = ({ session }: InitializedSession) =>
    commanding(redis.url, async (command) => {
      const key = `{${cluster.prefix}}:s:${session.slice(0, -20)}`
      const state = JSON.parse(String(await command('HGET', key, 's'))) as { messages: string[] }
      return uris(state.messages)
    })
  /** The resources of which a client is told at a process. */
  const toldOf = async (
    client: InitializedSession,
    server: Server,
    expected: readonly string[],
  ) => {
    const stream = await client.listen()
    const told = () => expected.filter((uri) => stream.text.split(`"${uri}"`).length > 2)
    const update = () => {
      for (const uri of expected) server.updated(uri)
      expect(told()).toEqual(expected)
    }
    await until(update)
    stream.disconnect()
  }

  it('is there though "initialize" failed for a moment in the process that took over', async () => {
    newCluster()
    let now = 0
    const limited = notes()
    limited.use(rateLimit(20, () => now))
    const a = await cluster.start(notes())
    const b = await cluster.start(limited)
    const clients = [
      await InitializedSession.open(a.url, NEWEST),
      await InitializedSession.open(a.url, NEWEST),
    ] as const
    for (const client of clients) isAcknowledged(await subscribe(client, 'note://1'))
    const other = await InitializedSession.open(b.url, NEWEST)
    for (let n = 0; n < 20; n++) await other.request('ping')
    await a.close()
    const [first, second] = clients
    isUnavailable(await first.at(b.url).request('ping'))
    isUnavailable(await first.at(b.url).end())
    isUnavailable(await second.at(b.url).request('ping'))
    // Another process may have it meanwhile.
    const c = await cluster.start(notes())
    expect((await second.at(c.url).request('ping')).status).toBe(200)
    expect(await stored(second)).toEqual(['note://1'])
    now += 61_000
    expect((await first.at(b.url).request('ping')).status).toBe(200)
    expect([b.sessions, c.sessions]).toEqual([2, 1])
    await toldOf(first.at(b.url), limited, ['note://1'])
  })

  it('is there though the process that took over limits the requests', async () => {
    newCluster()
    let now = 0
    const limited = notes()
    limited.use(rateLimit(20, () => now))
    const a = await cluster.start(notes())
    const client = await InitializedSession.open(a.url, NEWEST)
    const subscriptions = Array.from({ length: 50 }, (_, n) => `note://${n}`)
    for (const uri of subscriptions) isAcknowledged(await subscribe(client, uri))
    await a.close()
    const b = await cluster.start(limited)
    const c = await cluster.start(notes())
    // Twenty of them per minute.
    for (let minute = 0; minute < 2; minute++) {
      isUnavailable(await client.at(b.url).request('ping'))
      isUnavailable(await client.at(c.url).request('ping'))
      expect(await stored(client)).toEqual(subscriptions)
      now += 61_000
    }
    expect((await client.at(c.url).request('ping')).status).toBe(200)
    expect([b.sessions, c.sessions]).toEqual([1, 0])
    now += 61_000
    await toldOf(client.at(b.url), limited, subscriptions)
    expect(await stored(client)).toEqual(subscriptions)
  })

  it('is there if the process that took over has asynchronous middleware', async () => {
    newCluster()
    const server = notes()
    server.use(async (_call, next) => next())
    const a = await cluster.start(notes())
    const b = await cluster.start(server)
    const client = await InitializedSession.open(a.url, NEWEST)
    const subscriptions = Array.from({ length: 6 }, (_, n) => `note://${n}`)
    for (const uri of subscriptions) isAcknowledged(await subscribe(client, uri))
    await a.close()
    expect((await client.at(b.url).request('ping')).status).toBe(200)
    expect(await stored(client)).toEqual(subscriptions)
    await toldOf(client.at(b.url), server, subscriptions)
    expect(await stored(client)).toEqual(subscriptions)
  })

  it('is released with its process before it is restored completely', async () => {
    newCluster()
    const failing = notes()
    failing.use((call, next) => {
      if (call.method === 'resources/subscribe' && call.params['uri'] === 'note://2')
        throw new Error('not now')
      return next()
    })
    const a = await cluster.start(notes())
    const client = await InitializedSession.open(a.url, NEWEST)
    for (const uri of ['note://1', 'note://2', 'note://3'])
      isAcknowledged(await subscribe(client, uri))
    await a.close()
    const b = await cluster.start(failing)
    isUnavailable(await client.at(b.url).request('ping'))
    expect(b.sessions).toBe(1)
    await b.close()
    const server = notes()
    const c = await cluster.start(server)
    await toldOf(client.at(c.url), server, ['note://1', 'note://2', 'note://3'])
  })

  it.each([
    ['64 Ki characters', {}],
    ['the memory limit of a session', { retainedBytesPerSession: 150_000 }],
  ])('is not lost with the subscription that exceeds %s', async (_, limits) => {
    newCluster()
    const server = notes()
    const a = await cluster.start(server, { limits })
    const b = await cluster.start(notes())
    const client = await InitializedSession.open(a.url, WITH_BATCHES)
    const uri = (n: number) => `note://${n}${'x'.repeat(5000)}`
    const acknowledged: string[] = []
    let refused: Answer | undefined
    while (refused === undefined) {
      const answer = await subscribe(client, uri(acknowledged.length))
      if ('error' in (answer.json as object)) refused = answer
      else acknowledged.push(uri(acknowledged.length))
    }
    expect(acknowledged.length).toBeGreaterThan(1)
    const tooMany = {
      error: { code: -32603, message: expect.stringMatching(/^Too many/) as string },
    }
    expect([refused.status, refused.json]).toMatchObject([200, tooMany])
    expect(await stored(client)).toEqual(acknowledged)
    // What is there already can be repeated.
    isAcknowledged(await subscribe(client, acknowledged[0] ?? ''))
    const batch = [uri(100), uri(101)].map((each, index) =>
      message('resources/subscribe', { uri: each }, `b${index}`),
    )
    const both = await client.post(`[${batch.join()}]`)
    expect([both.status, both.json]).toMatchObject([
      200,
      [
        { id: 'b0', ...tooMany },
        { id: 'b1', ...tooMany },
      ],
    ])
    expect((await client.at(b.url).request('ping')).status).toBe(200)
    // Nobody is told of what was refused.
    const stream = await client.listen()
    server.updated(uri(acknowledged.length))
    server.updated(acknowledged[0] ?? '')
    await stream.has(acknowledged[0] ?? '')
    expect(stream.text).not.toContain(uri(acknowledged.length))
    stream.disconnect()
    const [gone = '', ...kept] = acknowledged
    expect((await client.request('resources/unsubscribe', { uri: gone })).status).toBe(200)
    isAcknowledged(await subscribe(client, uri(200)))
    await a.close()
    expect((await client.at(b.url).request('ping')).status).toBe(200)
    expect(await stored(client)).toEqual([...kept, uri(200)])
  })

  it('is as much as fits, of subscriptions at the same time', async () => {
    newCluster()
    const server = notes()
    const waiting: (() => void)[] = []
    server.use(async (call, next) => {
      if (call.method === 'resources/subscribe')
        await new Promise<void>((resolve) => waiting.push(resolve))
      return next()
    })
    const a = await cluster.start(server)
    const client = await InitializedSession.open(a.url, NEWEST)
    const uri = (n: number) => `note://${n}${'x'.repeat(7000)}`
    const answers = Array.from({ length: 12 }, (_, n) => subscribe(client, uri(n)))
    await until(() => expect(waiting).toHaveLength(9))
    const refused = (await Promise.race(answers)).json
    expect(refused).toMatchObject({ error: { code: -32603 } })
    for (const go of waiting) go()
    const texts = (await Promise.all(answers)).map(({ text }) => text)
    expect(texts.filter((text) => text.includes('result'))).toHaveLength(9)
    expect(await stored(client)).toHaveLength(9)
  })

  it('does not include a session that could not be stored', async () => {
    newCluster()
    const stores = cluster.stores()
    const a = await cluster.start(notes(), { stores })
    vi.spyOn(stores.sessions, 'set').mockRejectedValueOnce(new Error('OOM command not allowed'))
    const clientInfo = { name: 'test', version: '1' }
    const params = { protocolVersion: NEWEST, capabilities: {}, clientInfo }
    const body = message('initialize', params, 7)
    const answer = await send(a.url, { headers: POST, body })
    isUnavailable(answer)
    expect(answer.json).toMatchObject({ id: 7, error: { code: -32603 } })
    expect(a.sessions).toBe(0)
  })

  it('was stored, also if an overlapping change was stored and this one was not', async () => {
    newCluster()
    const stores = cluster.stores()
    const { sessions } = stores
    const server = notes()
    const served: unknown[] = []
    server.use((call, next) => {
      if (call.method === 'resources/subscribe') served.push(call.params['uri'])
      return next()
    })
    const a = await cluster.start(server, { stores })
    const client = await InitializedSession.open(a.url, NEWEST)
    const set = sessions.set.bind(sessions)
    let go = () => {}
    const slow = new Promise<void>((resolve) => (go = resolve))
    const storing = vi
      .spyOn(sessions, 'set')
      .mockImplementationOnce(async (...record) => {
        await slow
        return set(...record)
      })
      .mockImplementationOnce(() => Promise.reject(new Error('OOM command not allowed')))
    const first = subscribe(client, 'note://A')
    await until(() => expect(storing).toHaveBeenCalledTimes(1))
    const second = subscribe(client, 'note://B')
    await until(() => expect(served).toEqual(['note://A', 'note://B']))
    go()
    isAcknowledged(await first)
    isUnavailable(await second)
    expect(await stored(client)).toEqual(['note://A'])
    isAcknowledged(await subscribe(client, 'note://B'))
    expect(await stored(client)).toEqual(['note://A', 'note://B'])
  })

  it('is not overwritten by an older write that arrives late', async () => {
    newCluster()
    const stores = cluster.stores()
    const { sessions } = stores
    const a = await cluster.start(notes(), { stores })
    const client = await InitializedSession.open(a.url, NEWEST)
    const late: [string, SessionRecord, number][] = []
    vi.spyOn(sessions, 'set').mockImplementationOnce((...record) => {
      late.push(record)
      return Promise.reject(new Error('No reply'))
    })
    isUnavailable(await subscribe(client, 'note://A'))
    isAcknowledged(await subscribe(client, 'note://A'))
    isAcknowledged(await subscribe(client, 'note://B'))
    expect(late).toHaveLength(1)
    for (const record of late) expect(await sessions.set(...record)).toBe(true)
    expect(await stored(client)).toEqual(['note://A', 'note://B'])
    isAcknowledged(await subscribe(client, 'note://C'))
    // The process that takes over counts anew.
    const b = await cluster.start(notes())
    await a.close()
    isAcknowledged(await subscribe(client.at(b.url), 'note://D'))
    expect(await stored(client)).toEqual(['note://A', 'note://B', 'note://C', 'note://D'])
  })
})
