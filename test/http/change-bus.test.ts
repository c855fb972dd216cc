import { afterEach, describe, expect, it, vi } from 'vitest'
import { connect, memory } from '../../src/client.js'
import {
  type ChangeBus,
  type ChangeReceiver,
  changeBus,
  httpHandler,
  listen,
  nodeHandler,
} from '../../src/http.js'
import { type Server, createServer, resource, tool } from '../../src/index.js'
import { inProcessHttp } from '../../src/testing.js'
import { ChangeHub } from '../stores/change-hub.js'
import { InitializedSession, open, statelessRequest } from './caller.js'

/* A server that tells other processes of changes, and its clients of theirs. */

const until = <Value>(condition: () => Value | Promise<Value>): Promise<Value> =>
  vi.waitFor(condition, { timeout: 60_000, interval: 5 })
const stops: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const stop of stops.splice(0).toReversed()) await stop()
})

const make = (changes?: ChangeBus): Server =>
  createServer({
    name: 'shared',
    version: '1',
    tools: [tool({ name: 'here', run: () => 'here' })],
    resources: [resource({ uri: 'note:{name}', name: 'note', read: () => 'text' })],
    ...(changes === undefined ? {} : { changes }),
  })

/** A bus that a test drives itself. */
function driven() {
  const receivers = new Set<ChangeReceiver>()
  let closed = 0
  const bus = changeBus({
    publish() {},
    open: (receiver) => void receivers.add(receiver),
    close() {
      closed++
      receivers.clear()
    },
  })
  return {
    bus,
    changed: (...changes: Parameters<ChangeReceiver['changed']>) => {
      for (const receiver of receivers) receiver.changed(...changes)
    },
    get closed() {
      return closed
    },
    get open() {
      return receivers.size
    },
  }
}

describe('the option changes', () => {
  it('of createServer shares changes of a server that is served in any way', async () => {
    const hub = new ChangeHub()
    const [one, other] = [make(hub.bus()), make(hub.bus())]
    const heard: string[] = []
    for (const [name, target] of [
      ['memory', memory(other)],
      ['http', inProcessHttp(other)],
    ] as const)
      for (const revision of ['2025-11-25', '2026-07-28']) {
        const client = await connect(target, { revision })
        stops.push(() => client.close())
        await client.subscribe('NOTE:a', ({ uri }) => heard.push(`${name} ${revision} ${uri}`))
      }
    const { close } = await connect(memory(one)).then((client) => {
      stops.push(() => client.close())
      return { close: () => client.close() }
    })
    one.updated('note:b')
    one.updated('note:a')
    await until(() => expect(heard).toHaveLength(4))
    expect(heard.every((each) => each.endsWith('NOTE:a'))).toBe(true)
    // A server that is not served shares nothing.
    await close()
    one.updated('note:a')
    other.updated('note:a')
    await until(() => expect(heard).toHaveLength(8))
  })

  it('of listen takes precedence over stores, and those over createServer', async () => {
    const buses = [driven(), driven(), driven()] as const
    const server = make(buses[0].bus)
    const opened = () => buses.map((each) => each.open)
    const first = await listen(server, { port: 0 })
    stops.push(() => first.close(0))
    expect(opened()).toEqual([1, 0, 0])
    const second = await listen(server, { port: 0, stores: { changes: buses[1].bus } })
    stops.push(() => second.close(0))
    expect(opened()).toEqual([1, 1, 0])
    const third = httpHandler(server, {
      changes: buses[2].bus,
      stores: { changes: buses[1].bus },
    })
    stops.push(() => third.close(0))
    expect(opened()).toEqual([1, 1, 1])
    await second.close(0)
    expect(opened()).toEqual([1, 0, 1])
  })

  it('is opened once for all transports, and closed with the last', async () => {
    const bus = driven()
    const server = make(bus.bus)
    const closes = [
      httpHandler(server),
      nodeHandler(server),
      await listen(server, { port: 0 }),
    ].map((each) => () => each.close(0))
    for (const close of closes) {
      expect([bus.open, bus.closed]).toEqual([1, 0])
      await close()
    }
    expect([bus.open, bus.closed]).toEqual([0, 1])
    const again = httpHandler(server)
    expect([bus.open, bus.closed]).toEqual([1, 1])
    await again.close(0)
    expect([bus.open, bus.closed]).toEqual([0, 2])
  })

  it('is refused where it is no bus, or that of another server', async () => {
    const { bus } = driven()
    const definition = { publish() {}, open() {}, close() {} } as unknown as ChangeBus
    expect(() => make(definition)).toThrow('"changes" must be redis(…).changes')
    expect(() => httpHandler(make(), { changes: definition })).toThrow('"changes" must be')
    const handler = httpHandler(make(), { changes: bus })
    await expect(listen(make(), { port: 0, changes: bus })).rejects.toThrow('another server')
    await handler.close(0)
    const freed = await listen(make(), { port: 0, changes: bus })
    await freed.close(0)
  })
})

describe('a change of everything', () => {
  it('is one of each that a client has subscribed to, and of what the server has', async () => {
    const bus = driven()
    const listening = await listen(make(), { port: 0, changes: bus.bus })
    stops.push(() => listening.close(0))
    const client = await InitializedSession.open(listening.url, '2025-11-25')
    const stream = await client.listen()
    await stream.has('data:')
    for (const uri of ['note:a', 'NOTE:a', 'note:b'])
      await client.request('resources/subscribe', { uri })
    await client.request('resources/unsubscribe', { uri: 'note:b' })
    bus.changed('everything')
    bus.changed('everything')
    bus.changed({ lists: ['prompts'], uris: ['note:c', 'note:b'] })
    bus.changed({ lists: ['tools'], uris: ['note:%61'] })
    await new Promise(setImmediate)
    bus.changed({ lists: [], uris: ['note:a'] })
    await until(() => expect(stream.text.match(/NOTE:a/g)).toHaveLength(2))
    const messages = stream.seen.flatMap(({ data }) =>
      data ? [JSON.parse(data) as { method: string; params?: { uri: string } }] : [],
    ) // our messages
    const heard = messages.map(({ method, params }) => params?.uri ?? method)
    expect(heard).toEqual([
      'notifications/tools/list_changed',
      'notifications/resources/list_changed',
      'note:a',
      'NOTE:a',
      'note:a',
      'NOTE:a',
    ])
    stream.disconnect()
  })

  it('is sent as fast as the client reads, however much it has subscribed to', async () => {
    const bus = driven()
    const MIB = 1024 * 1024
    const limits = { retainedBytesPerSession: 64 * MIB, retainedBytes: 256 * MIB }
    const listening = await listen(make(), { port: 0, changes: bus.bus, limits })
    stops.push(() => listening.close(0))
    const uris = Array.from({ length: 8000 }, (_, count) => `note:${'x'.repeat(250)}${count}`)
    const notifications = { toolsListChanged: true, resourceSubscriptions: uris }
    const stream = await open(
      listening.url,
      statelessRequest('subscriptions/listen', { notifications }),
    )
    await stream.has('acknowledged')
    bus.changed('everything')
    // More than may be unsent; what changes meanwhile is merged.
    bus.changed({ lists: [], uris: uris.slice(-10) })
    await until(() => expect(stream.seen).toHaveLength(1 + 1 + 8000))
    bus.changed({ lists: ['tools'], uris: [] })
    await until(() => expect(stream.seen).toHaveLength(1 + 1 + 8000 + 1))
    expect(stream.isOpen).toBe(true)
    stream.disconnect()
  })
})
