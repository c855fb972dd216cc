import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest'
import { freePort } from '../../scripts/free-port.mjs'
import { createServer } from '../../src/index.js'
import { InitializedSession } from '../http/caller.js'
import { Gate } from '../http/served.js'
import { Cluster } from './cluster.js'
import { commanding, hasRedis, newPrefix, sharedServer } from './redis-server.js'

/* Requests that wait for their sessions when the process shuts down. */

const NEWEST = '2025-11-25'
/** Longer than a test may take. */
const DEADLINE = 600_000
const until = (condition: () => void) => vi.waitFor(condition, { timeout: 60_000, interval: 5 })
const plain = () => createServer({ name: 'plain', version: '1' })

describe.skipIf(!hasRedis)('a process that shuts down', () => {
  let redis: Awaited<ReturnType<typeof sharedServer>>
  let cluster: Cluster
  beforeAll(async () => {
    redis = await sharedServer()
  })
  afterAll(() => redis.stop())
  afterEach(() => cluster.close())

  it('refuses requests that wait for the lease of another one', async () => {
    cluster = new Cluster(redis.url, newPrefix())
    const a = await cluster.start(plain())
    const client = await InitializedSession.open(a.url, NEWEST)
    // As if the session belonged to a process that was killed.
    const address = `http://127.0.0.1:${await freePort()}`
    const key = (rest: string) => `{${cluster.prefix}}:${rest}`
    await commanding(redis.url, async (command) => {
      await command('SET', key('p:killed'), address, 'PX', '600000')
      await command('HSET', key(`s:${client.session.slice(0, -20)}`), 'o', 'killed')
    })
    const b = await cluster.start(plain())
    const waiting = client.at(b.url).request('ping')
    await until(() => expect(cluster.lines.join('')).toContain('A request waits for the lease'))
    const closed = b.close(DEADLINE)
    const { status, headers, json, text } = await waiting
    expect([status, headers['retry-after']]).toEqual([503, '5'])
    expect(json).toMatchObject({ id: 100 })
    expect(text).toContain('shutting down')
    await closed
  })

  it('leaves sessions that it is restoring to the process that has passed on their requests', async () => {
    cluster = new Cluster(redis.url, newPrefix())
    const gate = new Gate()
    const wait = vi.spyOn(gate, 'wait')
    const stuck = plain()
    stuck.use(async (call, next) => {
      if (call.method === 'initialize') await gate.wait('never')
      return next()
    })
    const a = await cluster.start(plain())
    const b = await cluster.start(stuck)
    const client = await InitializedSession.open(a.url, NEWEST)
    await a.close()
    const first = client.at(b.url).request('ping')
    await until(() => expect(wait).toHaveBeenCalled())
    const c = await cluster.start(plain())
    const passedOn = client.at(c.url).request('ping')
    await until(() => expect(c.openResponses).toBe(1))
    const closed = b.close(DEADLINE)
    expect((await first).status).toBe(503)
    expect((await passedOn).status).toBe(200)
    expect(c.sessions).toBe(1)
    await closed
    expect(cluster.lines.filter((line) => line.includes('could not be released'))).toEqual([])
  })
})
