import { describe, expect, it } from 'vitest'
import { Budget } from '../../src/jsonrpc/budget.js'
import { copyString, estimateMemory } from '../../src/jsonrpc/budget.js'
import { Peer } from '../../src/jsonrpc/peer.js'
import { memoryChannels } from '../../src/transports/memory.js'

describe('a budget', () => {
  it('allows no more than its limit and that of its parent', () => {
    const all = new Budget(100)
    const [one, other] = [new Budget(60, all), new Budget(60, all)]
    expect([one.take(61), one.take(60), one.full, all.used]).toEqual([false, true, true, 60])
    expect([other.take(41), other.take(40), other.full, all.full]).toEqual([
      false,
      true,
      true,
      true,
    ])
    one.release(10)
    expect([one.full, other.take(10), all.used]).toEqual([false, true, 100])
  })

  it('charges what is held already, even beyond the limit', () => {
    const budget = new Budget(10)
    budget.charge(20)
    expect([budget.used, budget.full, budget.take(0)]).toEqual([20, true, false])
  })

  it('returns everything to its parent once when closed', () => {
    const all = new Budget(100)
    const one = new Budget(100, all)
    one.charge(30)
    one.close()
    one.release(30)
    one.close()
    expect(all.used).toBe(0)
  })
})

describe('the weight of a message', () => {
  it('includes the objects that JSON.parse creates', () => {
    const objects = '{},'.repeat(10_000)
    const latin = 'ü'.repeat(10_000)
    expect(estimateMemory(objects)).toBeGreaterThan(10_000 * 60)
    expect(estimateMemory(latin)).toBeGreaterThanOrEqual(2 * 10_000)
    expect(estimateMemory('語'.repeat(10_000)) - estimateMemory(latin)).toBe(2 * 10_000)
    expect(estimateMemory('{}')).toBeGreaterThan(1000)
  })

  it('does not change the text (detached)', () => {
    for (const text of ['', 'x', `${'ab'.repeat(1000)}語`]) expect(copyString(text)).toBe(text)
  })
})

describe('calls in progress', () => {
  const LARGE = { text: 'x'.repeat(100_000) }

  /** A peer with a budget for about two large calls, whose handlers end on demand. */
  function small() {
    const [left, right] = memoryChannels()
    const pending = new Budget(250_000)
    const running: (() => void)[] = []
    const client = new Peer(left, {
      onRequest: () => ({}),
      onNotification: () => {},
      respondsToMalformed: false,
      report: () => {},
    })
    const server = new Peer(Object.assign(right, { pending }), {
      onRequest: ({ request }) =>
        request.method === 'ping' ? {} : new Promise((resolve) => running.push(() => resolve({}))),
      urgent: ({ method }) => method === 'ping',
      onNotification: () => {},
      respondsToMalformed: true,
      report: () => {},
    })
    return { client, server, pending, running }
  }
  const turn = () => new Promise((resolve) => setImmediate(resolve))

  it('are limited in bytes; a ping gets its response nevertheless', async () => {
    const { client, pending, running } = small()
    const [first, second] = [client.request('a', LARGE), client.request('b', LARGE)]
    await expect(client.request('c')).rejects.toMatchObject({
      code: -32603,
      message: expect.stringMatching(/^Too many requests/) as string,
    })
    expect(await client.request('ping')).toEqual({})
    for (const end of running) end()
    await Promise.all([first, second])
    await turn()
    expect(pending.used).toBe(0)
    const third = client.request('c')
    await turn()
    expect(running.length).toBe(3)
    running[2]?.()
    await third
  })

  it('count until their handlers return, even if cancelled', async () => {
    const { client, server, pending, running } = small()
    client.request('a', LARGE).catch(() => {})
    await turn()
    server.cancel(1, 'not wanted')
    expect(pending.used).toBeGreaterThan(200_000)
    running[0]?.()
    await turn()
    expect(pending.used).toBe(0)
  })

  it('count while queued, until the connection closes', async () => {
    const { client, server, pending } = small()
    // As many as may run at once, and a few that wait.
    for (let i = 0; i < 260 && !pending.full; i++) client.request('a').catch(() => {})
    await turn()
    const before = pending.used
    server.cancel(2, 'not wanted')
    expect(pending.used).toBe(before)
    await server.close()
    client.closed()
    expect(pending.used).toBeLessThanOrEqual(before)
  })
})
