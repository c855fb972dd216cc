import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest'
import { extension } from '../../src/extensions.js'
import { type ListenOptions, httpHandler, nodeHandler } from '../../src/http.js'
import { createServer, tool } from '../../src/index.js'
import { redis as redisStores } from '../../src/redis.js'
import { InitializedSession } from '../http/caller.js'
import { Gate } from '../http/served.js'
import { Cluster, KEY } from './cluster.js'
import { commanding, hasRedis, newPrefix, sharedServer } from './redis-server.js'

/* The lease by which a process owns its sessions, and what happens when it ends. */

const NEWEST = '2025-11-25'
const ADDRESS = 'http://127.0.0.1:1'
const LEASE = 600_000
const until = <Value>(condition: () => Value | Promise<Value>): Promise<Value> =>
  vi.waitFor(condition, { timeout: 60_000, interval: 10 })
const said = (text: string) => ({ result: { content: [{ type: 'text', text }] } })

describe('a lease', () => {
  let now = 0
  const closes: (() => Promise<void>)[] = []
  afterEach(async () => {
    for (const close of closes.splice(0)) await close()
    vi.restoreAllMocks()
  })

  /** The ownership of a process. Each renewal gets the next reply: what the key was before, or an error. */
  function started(...replies: (string | null | Error)[]) {
    vi.spyOn(performance, 'now').mockImplementation(() => now)
    const call = async (name: string) => {
      if (name !== 'SET') return name === 'INFO' ? '' : []
      const reply = replies.shift()
      if (reply instanceof Error) throw reply
      return Promise.resolve(reply)
    }
    const connection = { connect: async () => {}, on: () => {}, disconnect: () => {}, call }
    const client = { call, duplicate: () => connection }
    const { sessions, close } = redisStores(client, { address: ADDRESS, key: KEY, lease: LEASE })
    closes.push(close)
    const { ownership } = sessions
    if (ownership === undefined) throw new Error('sessions are not shared')
    const lapsed = vi.fn()
    ownership.start({ lapsed, report: () => {} })
    return { ownership, lapsed }
  }

  it('that is renewed in time does not lapse', async () => {
    const { ownership, lapsed } = started(null, ADDRESS, ADDRESS)
    await ownership.renew()
    const { term } = ownership
    for (const part of [0.3, 0.6]) {
      now += part * LEASE
      expect(await ownership.renew()).toBe(true)
    }
    expect(ownership.term).toBe(term)
    expect(lapsed).not.toHaveBeenCalled()
  })

  it.each([
    ['whose key has expired', [null], 0],
    ['that had ended when it was renewed, though its key is there', [ADDRESS], LEASE],
    ['after a renewal without a reply, though its key is there', [new Error('lost'), ADDRESS], 0],
  ])('%s has lapsed', async (_, replies, wait) => {
    const { ownership, lapsed } = started(null, ...replies)
    await ownership.renew()
    const { term } = ownership
    expect(term).toBeDefined()
    now += wait
    for (const _reply of replies) await ownership.renew()
    expect(ownership.term).toBeDefined()
    expect(ownership.term).not.toBe(term)
    expect(lapsed).toHaveBeenCalledTimes(1)
  })

  it('can lapse also if the first reply was lost', async () => {
    const { ownership, lapsed } = started(new Error('lost'), ADDRESS, null)
    expect(await ownership.renew()).toBe(false)
    expect(await ownership.renew()).toBe(true)
    expect(lapsed).not.toHaveBeenCalled()
    expect(await ownership.renew()).toBe(true)
    expect(lapsed).toHaveBeenCalledTimes(1)
  })
})

describe.skipIf(!hasRedis)('processes that own sessions', () => {
  let redis: Awaited<ReturnType<typeof sharedServer>>
  let cluster: Cluster
  beforeAll(async () => {
    redis = await sharedServer()
  })
  afterAll(() => redis.stop())
  afterEach(async () => {
    vi.restoreAllMocks()
    vi.useRealTimers()
    await cluster.close()
  })

  /** A server, and what has happened to it. */
  function observed(name: string) {
    const events: string[] = []
    const gate = new Gate()
    const server = createServer({
      name: 'observed',
      version: '1',
      tools: [
        tool({ name: 'where', run: () => name }),
        tool({
          name: 'wait',
          async run(_, call) {
            call.progress(1)
            try {
              await gate.wait('wait', call.signal)
              events.push('completed')
            } catch {
              events.push('aborted')
            }
            return 'waited'
          },
        }),
      ],
      extensions: [
        extension({ id: 'com.example/observed', stop: () => void events.push('stopped') }),
      ],
    })
    return { server, gate, events }
  }
  const ask = async (client: InitializedSession, url: string) =>
    (await client.at(url).request('tools/call', { name: 'where' })).json

  /** A session of `a` with a call in progress that `b` has taken over, as if `a` had been cut off. */
  async function takenOver(options: ListenOptions = {}) {
    cluster = new Cluster(redis.url, newPrefix())
    const { server, gate, events } = observed('a')
    const stores = cluster.stores()
    const a = await cluster.start(server, { ...options, stores })
    const b = await cluster.start(observed('b').server)
    const client = await InitializedSession.open(a.url, NEWEST)
    const own = await client.listen()
    const params = { name: 'wait', arguments: {}, _meta: { progressToken: 1 } }
    const call = await client.stream('tools/call', params)
    expect(await call.message()).toMatchObject({ params: { progress: 1 } })
    const { ownership } = stores.sessions
    await commanding(redis.url, (command) =>
      command('DEL', `{${cluster.prefix}}:p:${ownership?.process}`),
    )
    expect(await ask(client, b.url)).toMatchObject(said('b'))
    // It notices when it renews its lease; its client reconnects to the other one.
    await ownership?.renew()
    await own.ended()
    expect(a.sessions).toBe(0)
    return { a, b, client, call, gate, events }
  }

  it.each([
    ['wait for its calls when they close', 20_000, ['completed', 'stopped']],
    ['abort its calls when the deadline of close has passed', 0, ['aborted', 'stopped']],
  ])('whose session was taken over %s', async (_, deadline, expected) => {
    const { a, b, client, call, gate, events } = await takenOver()
    const closing = a.close(deadline)
    for (let count = 0; count < 5; count++)
      await until(async () => expect(await ask(client, b.url)).toMatchObject(said('b')))
    gate.open('wait')
    await closing
    expect(events).toEqual(expected)
    expect([await call.message()]).toMatchObject(
      deadline > 0 ? [said('waited')] : [{ error: { code: -32603 } }],
    )
  })

  it('whose session was taken over abort its calls without a client after the idle timeout', async () => {
    const sessionIdleTimeout = 100_000
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] })
    const { a, call, events } = await takenOver({ limits: { sessionIdleTimeout } })
    call.disconnect()
    await until(() => expect(a.openResponses).toBe(0))
    vi.advanceTimersByTime(sessionIdleTimeout / 2)
    expect(events).toEqual([])
    const now = performance.now.bind(performance)
    vi.spyOn(performance, 'now').mockImplementation(() => now() + 2 * sessionIdleTimeout)
    vi.advanceTimersByTime(sessionIdleTimeout / 2)
    await until(() => expect(events).toEqual(['aborted']))
  })

  it('whose lease has lapsed keep a session whose "initialize" is in progress', async () => {
    cluster = new Cluster(redis.url, newPrefix())
    const { server, gate } = observed('a')
    let held = 0
    server.use(async (call, next) => {
      if (call.method === 'initialize' && held++ === 0) await gate.wait('initialize')
      return next()
    })
    const stores = cluster.stores()
    const { ownership } = stores.sessions
    if (ownership === undefined) throw new Error('sessions are not shared')
    const confirm = vi.spyOn(ownership, 'confirm')
    const a = await cluster.start(server, { stores })
    const opening = InitializedSession.open(a.url, NEWEST)
    await until(() => expect(held).toBe(1))
    // Confirmed after the first one.
    const { session } = await InitializedSession.open(a.url, NEWEST)
    await commanding(redis.url, (command) =>
      command('DEL', `{${cluster.prefix}}:p:${ownership.process}`),
    )
    await ownership.renew()
    await until(() => expect(confirm).toHaveBeenCalledWith(session.slice(0, -20), 0))
    await Promise.all(confirm.mock.results.map(({ value }) => value as Promise<unknown>))
    gate.open('initialize')
    expect(await ask(await opening, a.url)).toMatchObject(said('a'))
  })

  it('are not disturbed by an endpoint that fails to start with the same stores', async () => {
    cluster = new Cluster(redis.url, newPrefix())
    const { server, events } = observed('a')
    const stores = cluster.stores()
    const a = await cluster.start(server, { stores })
    const client = await InitializedSession.open(a.url, NEWEST)
    const used = /these stores are used by another endpoint/
    await expect(cluster.start(server, { stores })).rejects.toThrow(used)
    await expect(cluster.start(server, { stores, port: a.port })).rejects.toThrow('is in use')
    expect(() => httpHandler(server, { stores })).toThrow(used)
    expect(() => nodeHandler(server, { stores })).toThrow(used)
    expect(await ask(client, a.url)).toMatchObject(said('a'))
    expect(await ask(await InitializedSession.open(a.url, NEWEST), a.url)).toMatchObject(said('a'))
    expect(events).toEqual([])
    await a.close(0)
    expect(events).toEqual(['stopped'])
  })

  it('close also if their lease cannot be ended', async () => {
    cluster = new Cluster(redis.url, newPrefix())
    const { server, events } = observed('a')
    const stores = cluster.stores()
    const { ownership } = stores.sessions
    if (ownership === undefined) throw new Error('sessions are not shared')
    vi.spyOn(ownership, 'close').mockRejectedValueOnce(new Error('no lease to end'))
    const a = await cluster.start(server, { stores })
    await a.close(0)
    await stores.close()
    expect(events).toEqual(['stopped'])
    expect(cluster.lines.join('')).toContain('no lease to end')
  })
})
