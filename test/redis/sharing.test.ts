import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest'
import { type Server, createServer, resource, tool } from '../../src/index.js'
import { tokens } from '../../src/http.js'
import { InitializedSession, POST, message, send } from '../http/caller.js'
import { nestedBatch, parsesOf } from '../http/nested-batch.js'
import { Gate, servedOverHttp } from '../http/served.js'
import { Cluster } from './cluster.js'
import { commanding, hasRedis, newPrefix, sharedServer } from './redis-server.js'

/* Several processes that serve the sessions of one another; each `start` here is one. */

const NEWEST = '2025-11-25'
const until = <Value>(condition: () => Value | Promise<Value>): Promise<Value> =>
  vi.waitFor(condition, { timeout: 60_000, interval: 5 })
const said = (text: string) => ({ result: { content: [{ type: 'text', text }] } })

describe.skipIf(!hasRedis)('several processes with Redis', () => {
  let redis: Awaited<ReturnType<typeof sharedServer>>
  let cluster: Cluster
  const clusters: Cluster[] = []
  beforeAll(async () => {
    redis = await sharedServer()
  })
  afterAll(() => redis.stop())
  afterEach(async () => {
    vi.useRealTimers()
    await Promise.all(clusters.splice(0).map((each) => each.close()))
  })
  const newCluster = (options = {}) => {
    cluster = new Cluster(redis.url, newPrefix(), options)
    clusters.push(cluster)
    return cluster
  }
  const where = (name: string, gate = new Gate()): Server =>
    createServer({
      name: 'where',
      version: '1',
      tools: [
        tool({ name: 'where', run: () => name }),
        tool({
          name: 'wait',
          async run(_, call) {
            call.progress(1)
            await gate.wait(name)
            return `waited at ${name}`
          },
        }),
      ],
      resources: [resource({ uri: 'note:it', name: 'it', read: () => 'text' })],
    })
  const asked = async (client: InitializedSession, url: string) =>
    (await client.at(url).request('tools/call', { name: 'where' })).json

  it('pass requests on to the process of the session', async () => {
    newCluster()
    const a = await cluster.start(where('a'))
    const b = await cluster.start(where('b'))
    const c = await cluster.start(where('c'))
    const client = await InitializedSession.open(a.url, NEWEST)
    for (const { url } of [a, b, c, a, c]) expect(await asked(client, url)).toMatchObject(said('a'))
    expect([a.sessions, b.sessions, c.sessions]).toEqual([1, 0, 0])
    // The same errors as there.
    expect((await client.at(b.url).request('no/such')).json).toMatchObject({
      error: { code: -32601 },
    })
    const last = client.session.endsWith('-') ? '_' : '-'
    const other = { ...client.headers, 'mcp-session-id': `${client.session.slice(0, -1)}${last}` }
    const stolen = { headers: { ...POST, ...other }, body: message('ping', {}, 1) }
    expect((await send(b.url, stolen)).status).toBe(404)
    expect((await client.at(b.url).end()).status).toBe(204)
    for (const { url } of [a, b, c]) expect((await client.at(url).request('ping')).status).toBe(404)
    await until(() => expect([a, b, c].map((each) => each.openResponses)).toEqual([0, 0, 0]))
  })

  it('repeat ids and progress tokens exactly that JavaScript cannot express as numbers', async () => {
    newCluster()
    const gate = new Gate()
    const a = await cluster.start(where('a', gate))
    const b = await cluster.start(where('b'))
    const client = await InitializedSession.open(a.url, NEWEST)
    for (const url of [a.url, b.url]) {
      const answer = client
        .at(url)
        .post(
          '{"jsonrpc":"2.0","id":9007199254740993,"method":"tools/call","params":{"name":"wait","_meta":{"progressToken":9007199254740995}}}',
        )
      gate.open('a')
      const { text } = await answer
      expect(text).toContain('"id":9007199254740993,')
      expect(text).toContain('"progressToken":9007199254740995,')
      expect(text).toContain('waited at a')
    }
  })

  it('do not parse batches in batches again at each level', async () => {
    newCluster()
    const { url } = await cluster.start(where('a'))
    const client = await InitializedSession.open(url, '2025-03-26')
    const parses = (depth: number) =>
      parsesOf(async () => expect((await client.post(nestedBatch(depth))).status).toBe(200))
    expect(await parses(100)).toBe(await parses(2))
  })

  it('pass streams on, in both directions', async () => {
    newCluster()
    const { server, gate, ended } = servedOverHttp()
    const a = await cluster.start(server)
    const b = await cluster.start(servedOverHttp().server)
    const client = await InitializedSession.open(a.url, NEWEST, { elicitation: {} })
    const atB = client.at(b.url)
    const own = await atB.listen()
    await own.has('data:')
    server.tools.remove('big')
    expect(await own.message()).toMatchObject({ method: 'notifications/tools/list_changed' })
    expect((await atB.listen()).status).toBe(409)
    const steps = await atB.stream('tools/call', {
      name: 'steps',
      arguments: { gate: 'x' },
      _meta: { progressToken: 1 },
    })
    expect(await steps.message()).toMatchObject({ params: { progress: 1 } })
    gate.open('x')
    expect(await steps.message()).toMatchObject({ params: { progress: 2 } })
    expect(await steps.message()).toMatchObject(said('passed x'))
    expect(await steps.message()).toBeUndefined()
    const ask = await atB.stream('tools/call', { name: 'ask', arguments: {} })
    const { id } = (await ask.message()) as { id: number }
    const answer = { jsonrpc: '2.0', id, result: { action: 'accept', content: { name: 'Ann' } } }
    expect((await atB.post(JSON.stringify(answer))).status).toBe(202)
    expect(await ask.message()).toMatchObject(said('It is Ann'))
    // A client that disconnects is noticed at the other end.
    own.disconnect()
    await until(() => expect([a.openResponses, b.openResponses]).toEqual([0, 0]))
    expect(ended.get('x')).toBe('done')
  })

  it('wait for the responses of a process that is shutting down, and has no lease any more', async () => {
    newCluster()
    const gate = new Gate()
    const a = await cluster.start(where('a', gate))
    const waiting = vi.spyOn(gate, 'wait')
    // Half of it passes before the first check, and two seconds before a process is given up.
    const stores = cluster.stores({ lease: 2000 })
    const { ownership } = stores.sessions
    if (ownership === undefined) throw new Error('sessions are not shared')
    const checked = vi.spyOn(ownership, 'isAlive').mockResolvedValue(false)
    const b = await cluster.start(where('b'), { stores })
    const session = await InitializedSession.open(a.url, NEWEST)
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    const answer = session.at(b.url).request('tools/call', { name: 'wait' })
    await until(() => expect(waiting).toHaveBeenCalled())
    await vi.advanceTimersByTimeAsync(1000)
    expect(checked).toHaveBeenCalledTimes(1)
    await vi.advanceTimersByTimeAsync(500)
    gate.open('a')
    expect((await answer).json).toMatchObject(said('waited at a'))
    expect(checked).toHaveBeenCalledTimes(1)
  })

  it.each([
    [
      'wait for a process whose lease was lost with the data of Redis',
      [false],
      said('waited at a'),
    ],
    [
      'give up a process without a lease',
      [false, false],
      { error: { message: expect.stringContaining('may have run') as string } },
    ],
  ])('%s', async (_, alive, expected) => {
    newCluster()
    const gate = new Gate()
    const a = await cluster.start(where('a', gate))
    const stores = cluster.stores({ lease: 200 })
    const { ownership } = stores.sessions
    if (ownership === undefined) throw new Error('sessions are not shared')
    // It is asked twice before a process is given up; the third time, this one was not.
    const answers = [...alive, true]
    vi.spyOn(ownership, 'isAlive').mockImplementation(() => {
      if (answers.length === 0) gate.open('a')
      return Promise.resolve(answers.shift() ?? true)
    })
    const b = await cluster.start(where('b'), { stores })
    const session = await InitializedSession.open(a.url, NEWEST)
    const { json } = await session.at(b.url).request('tools/call', { name: 'wait' })
    expect(json).toMatchObject(expected)
  })

  it('end connections while they shut down, so that a load balancer does not use them again', async () => {
    newCluster()
    const a = await cluster.start(where('a'))
    const post = () => fetch(a.url, { method: 'POST', headers: POST, body: message('ping', {}, 1) })
    const connection = async () => (await post()).headers.get('connection')
    expect(await connection()).toBe('keep-alive')
    const closing = a.close()
    const refused = await post()
    expect([refused.status, refused.headers.get('connection')]).toEqual([503, 'close'])
    await closing
  })

  it('respond to a notification with 202 also if a keep-alive is due while it is stored', async () => {
    newCluster()
    const stores = cluster.stores()
    const { sessions } = stores
    const set = sessions.set.bind(sessions)
    const a = await cluster.start(where('a'), { stores, keepAlive: 5 })
    const params = {
      protocolVersion: NEWEST,
      capabilities: {},
      clientInfo: { name: 'test', version: '1' },
    }
    const opened = await send(a.url, { headers: POST, body: message('initialize', params, 1) })
    const storing = vi.spyOn(sessions, 'set').mockImplementation(async (...record) => {
      // Several times the interval.
      await new Promise((resolve) => setTimeout(resolve, 50))
      return set(...record)
    })
    const { status, text } = await send(a.url, {
      headers: {
        ...POST,
        'mcp-session-id': String(opened.headers['mcp-session-id']),
        'mcp-protocol-version': NEWEST,
      },
      body: message('notifications/initialized'),
    })
    expect([status, text]).toEqual([202, ''])
    expect(storing).toHaveBeenCalled()
  })

  it('pass large responses on', async () => {
    newCluster()
    const a = await cluster.start(servedOverHttp().server)
    const b = await cluster.start(servedOverHttp().server)
    const client = await InitializedSession.open(a.url, NEWEST)
    const big = { name: 'big', arguments: { size: 3_000_000 } }
    const { json } = await client.at(b.url).request('tools/call', big)
    expect(json).toMatchObject(said('x'.repeat(3_000_000)))
    const slow = await client.at(b.url).stream('tools/call', big)
    slow.pause()
    await new Promise(setImmediate)
    slow.resume()
    await slow.ended()
    expect(slow.text).toHaveLength(JSON.stringify(json).length)
  })

  it('check the Host and Origin that the client has sent', async () => {
    newCluster()
    const options = { hosts: ['mcp.example.com'], origins: ['https://app.example.com'] }
    const a = await cluster.start(where('a'), options)
    const b = await cluster.start(where('b'), options)
    const named = { host: 'mcp.example.com', origin: 'https://app.example.com' }
    const client = await InitializedSession.open(a.url, NEWEST, {}, named)
    const answer = await client.at(b.url).request('tools/call', { name: 'where' })
    expect(answer.json).toMatchObject(said('a'))
    expect(answer.headers['access-control-allow-origin']).toBe('https://app.example.com')
    // The owner refuses what the other process would allow.
    const c = await cluster.start(where('c'), { hosts: ['mcp.example.com', 'other.example.com'] })
    const sending = {
      headers: { ...POST, ...client.headers, host: 'other.example.com', origin: '' },
      body: message('ping', {}, 1),
    }
    expect((await send(c.url, sending)).status).toBe(403)
  })

  it('verify the caller again, and each other', async () => {
    newCluster()
    const auth = tokens([
      { token: 'a'.repeat(32), id: 'ann', scopes: [] },
      { token: 'b'.repeat(32), id: 'bob', scopes: [] },
    ])
    const by = (letter: string) => ({ authorization: `Bearer ${letter.repeat(32)}` })
    const a = await cluster.start(where('a'), { auth })
    const b = await cluster.start(where('b'), { auth })
    const client = await InitializedSession.open(a.url, NEWEST, {}, by('a'))
    const ping = (url: string, more: Record<string, string>) =>
      send(url, { headers: { ...POST, ...client.headers, ...more }, body: message('ping', {}, 1) })
    expect((await ping(b.url, {})).status).toBe(200)
    expect((await ping(b.url, by('b'))).status).toBe(404)
    expect((await ping(b.url, by('c'))).status).toBe(401)
    // A header that no process has signed, or signed for something else.
    for (const forged of ['x', `${crypto.randomUUID()}.${'A'.repeat(43)}`])
      for (const url of [a.url, b.url])
        expect((await ping(url, { 'ccmcp-forwarded': forged })).status).toBe(421)
  })

  it('refuse requests of a process with another key', async () => {
    newCluster()
    const a = await cluster.start(where('a'))
    // It tries until its own lease would have ended.
    const key = 'another key, which the others do not have'
    const b = await cluster.start(where('b'), {}, { key, lease: 500 })
    const client = await InitializedSession.open(a.url, NEWEST)
    const refused = await client.at(b.url).request('ping')
    expect([refused.status, refused.headers['retry-after']]).toEqual([503, '5'])
    expect(await asked(client, a.url)).toMatchObject(said('a'))
  })

  it('take over the sessions of a process that is closed, at once', async () => {
    newCluster({ lease: 600_000 })
    const a = await cluster.start(where('a'))
    const b = await cluster.start(where('b'))
    const c = await cluster.start(where('c'))
    const client = await InitializedSession.open(a.url, NEWEST)
    await client.request('resources/subscribe', { uri: 'note:it' })
    await a.close()
    const answers = await Promise.all(
      [b, c, b, c, b].map(({ url }) => client.at(url).request('tools/call', { name: 'where' })),
    )
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200, 200])
    // One of them has it now.
    expect(new Set(answers.map(({ text }) => text.replace(/"id":\d+/, ''))).size).toBe(1)
    expect(b.sessions + c.sessions).toBe(1)
  })

  it('wait for calls in progress of a process that is closed', async () => {
    newCluster({ lease: 600_000 })
    const gate = new Gate()
    const a = await cluster.start(where('a', gate))
    const b = await cluster.start(where('b'))
    const client = await InitializedSession.open(a.url, NEWEST)
    const call = await client.at(b.url).stream('tools/call', {
      name: 'wait',
      arguments: {},
      _meta: { progressToken: 1 },
    })
    expect(await call.message()).toMatchObject({ params: { progress: 1 } })
    const closed = a.close(20_000)
    const moved = asked(client, b.url)
    gate.open('a')
    expect(await call.message()).toMatchObject(said('waited at a'))
    await closed
    expect(await moved).toMatchObject(said('b'))
  })

  it('keep the responses of a process that is closed for clients that reconnect', async () => {
    newCluster({ lease: 600_000 })
    const a = await cluster.start(where('a'))
    const b = await cluster.start(where('b'))
    const client = await InitializedSession.open(a.url, NEWEST)
    const params = { name: 'wait', arguments: {}, _meta: { progressToken: 1 } }
    const { id, seen } = await until(async () => {
      const callId = crypto.randomUUID()
      const call = await client.stream('tools/call', params, callId)
      expect(await call.message()).toMatchObject({ params: { progress: 1 } })
      // An event that is not stored within two seconds is sent without an id.
      for (const event of call.seen) expect(event.id).toBeDefined()
      return { id: callId, seen: call.seen }
    })
    const [primed, progress] = seen
    await a.close(0)
    for (const last of [primed?.id, progress?.id]) {
      const resumed = await client.at(b.url).listen(last)
      await resumed.ended()
      const expected = { id, error: { code: -32603 } }
      expect(resumed.messages).toMatchObject(
        last === primed?.id ? [{ params: { progress: 1 } }, expected] : [expected],
      )
    }
  })

  it('without an address take a session over for each request', async () => {
    newCluster({ address: undefined, key: undefined })
    const a = await cluster.start(where('a'))
    const b = await cluster.start(where('b'))
    const client = await InitializedSession.open(a.url, NEWEST)
    for (const [url, name] of [
      [b.url, 'b'],
      [a.url, 'a'],
      [a.url, 'a'],
      [b.url, 'b'],
    ] as const)
      expect(await asked(client, url)).toMatchObject(said(name))
    expect((await client.at(a.url).end()).status).toBe(204)
    expect((await client.at(b.url).request('ping')).status).toBe(404)
  })

  it('leave nothing but records with a time to live', async () => {
    newCluster()
    const a = await cluster.start(where('a'))
    const client = await InitializedSession.open(a.url, NEWEST)
    const call = await client.stream('tools/call', {
      name: 'wait',
      arguments: {},
      _meta: { progressToken: 1 },
    })
    await call.message()
    await commanding(redis.url, async (command) => {
      const keys = await until(async () => {
        const found = (await command('KEYS', `{${cluster.prefix}}*`)) as string[] // KEYS returns names
        expect(found).toHaveLength(5)
        return found
      })
      for (const key of keys) {
        expect(Number(await command('PTTL', key))).toBeGreaterThan(0)
        expect(key).not.toContain(client.session)
        const dump = String(await command('DUMP', key))
        expect(dump).not.toContain(client.session.slice(-20))
      }
    })
    call.disconnect()
  })
})
