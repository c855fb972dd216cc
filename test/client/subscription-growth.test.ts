import { describe, expect, it } from 'vitest'
import { type ResourceChange, connect } from '../../src/client.js'
import { onStillClock } from '../clock.js'
import { type Asked, type Script, at, scriptedServer, settle } from './scripted-server.js'

/* What subscriptions cost is counted: the URIs that are sent, the streams that are open. */

const uriOf = (index: number) => `x:${index}`
const uris = (asked: Asked): readonly string[] => {
  const { resourceSubscriptions = [] } = asked.params['notifications'] as {
    resourceSubscriptions?: string[]
  }
  return resourceSubscriptions
}

/** A server that acknowledges every stream, unless it refuses it. */
function listenedTo({ refuses = () => false }: { refuses?: (asked: Asked) => boolean } = {}) {
  const serve: Script['serve'] = (asked, end) => {
    if (asked.method !== 'subscriptions/listen') return false
    if (refuses(asked)) end.refuse(asked, -32602, 'too much')
    else end.acknowledge(asked)
    return true
  }
  const server = scriptedServer({ serve })
  const streams = () => server.of('subscriptions/listen')
  return {
    server,
    streams,
    open: () => {
      const cancelled = server.of('notifications/cancelled')
      const closed = new Set(cancelled.map(({ params }) => params['requestId']))
      return streams().filter(({ id }) => !closed.has(id))
    },
    sent: () => streams().reduce((sum, asked) => sum + uris(asked).length, 0),
  }
}

async function subscribeAll(
  client: Awaited<ReturnType<typeof connect>>,
  count: number,
  listener: (change: ResourceChange, index: number) => unknown = () => {},
) {
  const subscriptions = []
  for (let index = 0; index < count; index++)
    subscriptions.push(await client.subscribe(uriOf(index), (change) => listener(change, index)))
  return subscriptions
}

describe('subscriptions one after the other, in 2026-07-28', () => {
  const COUNT = 500

  it('each is acknowledged, few are sent often, few streams are open, and later one', () =>
    onStillClock(async (pass) => {
      const { server, streams, open, sent } = listenedTo()
      await using client = await connect(server)
      const heard = new Set<number>()
      await subscribeAll(client, COUNT, (_, index) => heard.add(index))
      expect(streams()).toHaveLength(COUNT)
      // One stream for all would have been sent 125,250.
      expect(sent()).toBeLessThan(30 * COUNT)
      expect(open().length).toBeLessThanOrEqual(4)
      const covered = open().flatMap(uris)
      expect(covered).toHaveLength(COUNT)
      for (const asked of open())
        for (const uri of uris(asked))
          server.server.onStream(asked.id, 'notifications/resources/updated', { uri })
      await settle()
      expect(heard.size).toBe(COUNT)
      await pass(1000)
      await settle()
      expect(open()).toHaveLength(1)
      expect(new Set(open().flatMap(uris))).toEqual(new Set(covered))
      await pass(60_000)
      expect(streams()).toHaveLength(COUNT + 1)
    }))

  it('ended one after the other, few of the others are sent again', () =>
    onStillClock(async (pass) => {
      const { server, open, sent } = listenedTo()
      await using client = await connect(server)
      const subscriptions = await subscribeAll(client, COUNT)
      const before = sent()
      for (const subscription of subscriptions.slice(1)) {
        await subscription.unsubscribe()
        await settle()
      }
      expect(sent() - before).toBeLessThan(3 * COUNT)
      expect(open().flatMap(uris)).toEqual([uriOf(0)])
      await at(subscriptions, 0).unsubscribe()
      await settle()
      await pass(1000)
      expect(open()).toEqual([])
    }))

  it('the server is told after a while that one of many is no longer wanted', () =>
    onStillClock(async (pass) => {
      const { server, open } = listenedTo()
      await using client = await connect(server)
      const subscriptions = await subscribeAll(client, 5)
      await at(subscriptions, 2).unsubscribe()
      await settle()
      expect(open().flatMap(uris)).toHaveLength(5)
      await pass(1000)
      await settle()
      expect(open().flatMap(uris)).toEqual(['x:0', 'x:1', 'x:3', 'x:4'])
    }))

  it('only what a stream covered that has ended may have missed changes', async () => {
    const { server, streams, open } = listenedTo()
    await using client = await connect(server, { reconnect: { delay: () => 0 } })
    const missed: number[] = []
    let all: () => void = () => {}
    const told = new Promise<void>((resolve) => (all = resolve))
    await subscribeAll(client, 10, (change, index) => {
      if (change.missed === true && missed.push(index) === 9) all()
    })
    const [large, small] = open().map((asked) => ({ asked, count: uris(asked).length }))
    expect([large?.count, small?.count]).toEqual([9, 1])
    server.server.answer(at(open(), 0), {})
    await told
    expect(missed).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8])
    expect(uris(at(streams(), -1 + streams().length))).toHaveLength(10)
  })

  it('streams that cannot be merged stay, with the field of an extension, until there is a change', () =>
    onStillClock(async (pass) => {
      let limit = Infinity
      const { server, streams, open } = listenedTo({
        refuses: (asked) => uris(asked).length > limit,
      })
      const reports: string[] = []
      const ended: unknown[] = []
      await using client = await connect(server, {
        report: ({ message }) => reports.push(message),
      })
      client.on('unsubscribed', (event) => ended.push(event))
      await client.listen('tickets', true)
      await subscribeAll(client, 9)
      expect(open()).toHaveLength(2)
      limit = 8
      const before = streams().length
      await pass(1000)
      await settle()
      expect(reports).toEqual(['The stream of notifications could not be opened'])
      await pass(60_000)
      await settle()
      expect(streams()).toHaveLength(before + 1)
      expect(open().filter((asked) => asked !== streams().at(-1))).toHaveLength(2)
      expect(ended).toEqual([])
    }))

  it('over HTTP, few of the replaced streams are open at a time', () =>
    onStillClock(async (pass) => {
      const { server, open } = listenedTo()
      const overHttp = { open: () => Object.assign(server.open(), { http: true as const }) }
      await using client = await connect(overHttp)
      const heard = new Set<number>()
      await subscribeAll(client, 200, (_, index) => heard.add(index))
      expect(open().length).toBeGreaterThan(60)
      expect(open().length).toBeLessThanOrEqual(64 + 4)
      // What a replaced stream still has to send is heard.
      const [oldest] = open()
      const [uri = ''] = uris(at([oldest as Asked], 0))
      server.server.onStream(oldest?.id, 'notifications/resources/updated', { uri })
      await settle()
      expect(heard.size).toBe(1)
      await pass(3000)
      await settle()
      expect(open()).toHaveLength(1)
    }))
})
