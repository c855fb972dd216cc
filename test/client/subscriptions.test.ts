import { describe, expect, it } from 'vitest'
import { listen } from '../../src/http.js'
import { type ResourceChange, type SubscriptionEnded, connect, http } from '../../src/client.js'
import { createServer, resource, tool } from '../../src/index.js'
import { matrix } from '../../src/testing.js'
import { onStillClock } from '../clock.js'
import { everythingServer } from '../interop/everything.mjs'
import { type Asked, type ServerEnd, at, scriptedServer, settle } from './scripted-server.js'
import { ABSENT, inTime, targetsOf } from './targets.js'

const URI = 'config://app'
const quiet = { log: { write: () => true } }

/** Resolves when it has been called so many times. */
function heard<Event>(times = 1) {
  const events: Event[] = []
  let done: () => void = () => {}
  const all = new Promise<void>((resolve) => (done = resolve))
  const listener = (event: Event) => {
    events.push(event)
    if (events.length === times) done()
  }
  return { events, listener, all }
}

describe('subscribe and watch on every transport in every revision', () => {
  const cells = matrix(targetsOf(everythingServer, 'everything-server.mjs'), ABSENT).filter(
    ({ absent }) => absent === undefined,
  )

  it.each(cells.map((cell) => [cell.name, cell] as const))('%s', async (_, cell) => {
    await using client = await inTime(cell, 'connect', cell.connect())
    const first = heard<ResourceChange>()
    const second = heard<ResourceChange>()
    const tools = heard<unknown>()
    const subscription = await client.subscribe(URI, first.listener)
    const other = await client.subscribe(URI, second.listener)
    await client.watch('tools', tools.listener)
    await client.callTool('change')
    await Promise.all([first.all, second.all, tools.all])
    expect(first.events).toContainEqual({ uri: URI })
    expect(tools.events).toContainEqual({ list: 'tools' })

    await subscription.unsubscribe()
    await subscription.unsubscribe()
    const again = heard<ResourceChange>()
    await client.subscribe(URI, again.listener)
    const before = first.events.length
    await client.callTool('change')
    await again.all
    expect(first.events).toHaveLength(before)
    await other.unsubscribe()
  })
})

describe.each(['2024-11-05', '2025-11-25', '2026-07-28'])('in %s', (revision) => {
  it('a server without the capability is an error with a code', async () => {
    const server = scriptedServer({ revision, capabilities: { tools: {} }, serve: () => false })
    await using client = await connect(server)
    const failures = await Promise.allSettled([
      client.subscribe(URI, () => {}),
      client.watch('tools', () => {}),
      client.watch('prompts', () => {}),
    ])
    expect(failures).toMatchObject([
      { reason: { code: 'NOT_SUPPORTED' } },
      { reason: { code: 'NOT_SUPPORTED' } },
      { reason: { code: 'NOT_SUPPORTED' } },
    ])
    expect(server.asked.map(({ method }) => method)).not.toContain('subscriptions/listen')
    expect(server.asked.map(({ method }) => method)).not.toContain('resources/subscribe')
  })

  it('an update of a part of a resource is heard; one of another resource is not', async () => {
    const server = scriptedServer({ revision, serve: acknowledging })
    await using client = await connect(server)
    const updates: string[] = []
    await client.subscribe('file:///docs', ({ uri }) => updates.push(uri))
    const uris = [
      'file:///docs/a',
      'file:///docsets',
      'file:///doc',
      'FILE:///docs',
      'file:///docs',
    ]
    for (const uri of uris) server.server.notify('notifications/resources/updated', { uri })
    server.server.notify('notifications/resources/updated', { uri: 7 })
    server.server.notify('notifications/resources/updated')
    await settle()
    expect(updates).toEqual(['file:///docs/a', 'FILE:///docs', 'file:///docs'])
  })

  it('a listener that throws is reported, and the others are called', async () => {
    const server = scriptedServer({ revision, serve: acknowledging })
    const reports: string[] = []
    await using client = await connect(server, { report: ({ message }) => reports.push(message) })
    const good = heard<ResourceChange>()
    await client.subscribe(URI, () => {
      throw new Error('bad listener')
    })
    await client.subscribe(URI, good.listener)
    server.server.notify('notifications/resources/updated', { uri: URI })
    await good.all
    expect(reports).toContain('A listener for changes failed')
  })

  it('an aborted signal ends the wait', async () => {
    const server = scriptedServer({ revision, serve: () => true })
    await using client = await connect(server)
    const controller = new AbortController()
    const subscribing = client.subscribe(URI, () => {}, { signal: controller.signal })
    await settle()
    controller.abort(new Error('enough'))
    await expect(subscribing).rejects.toThrow('enough')
  })
})

/** Accepts every subscription. */
function acknowledging(asked: Asked, server: ServerEnd): unknown {
  if (asked.method !== 'subscriptions/listen') return false
  server.acknowledge(asked)
  return true
}

describe('in a revision with a handshake', () => {
  const revision = '2025-11-25'

  it('listeners of one resource share one subscription', async () => {
    const server = scriptedServer({ revision, serve: () => false })
    await using client = await connect(server)
    const listener = () => {}
    const [one, two] = await Promise.all([
      client.subscribe(URI, listener),
      client.subscribe(URI, listener),
    ])
    expect(server.of('resources/subscribe')).toHaveLength(1)
    await one.unsubscribe()
    expect(server.of('resources/unsubscribe')).toHaveLength(0)
    await two[Symbol.asyncDispose]()
    expect(server.of('resources/unsubscribe')).toMatchObject([{ params: { uri: URI } }])
  })

  it('a refused subscription rejects, and can be tried again', async () => {
    let refusals = 1
    const server = scriptedServer({
      revision,
      serve(asked, end) {
        if (asked.method !== 'resources/subscribe' || refusals-- <= 0) return false
        end.refuse(asked, -32602, 'no such resource')
        return true
      },
    })
    await using client = await connect(server)
    const both = await Promise.allSettled([
      client.subscribe(URI, () => {}),
      client.subscribe(URI, () => {}),
    ])
    expect(both.map(({ status }) => status)).toEqual(['rejected', 'rejected'])
    await client.subscribe(URI, () => {})
    expect(server.of('resources/subscribe')).toHaveLength(2)
    expect(server.of('resources/unsubscribe')).toHaveLength(0)
  })

  it('subscribe waits for an unsubscribe of the same resource', async () => {
    const held: Asked[] = []
    const server = scriptedServer({
      revision,
      serve: ({ method, ...rest }) =>
        method === 'resources/unsubscribe' ? held.push({ method, ...rest }) : false,
    })
    await using client = await connect(server)
    const subscription = await client.subscribe(URI, () => {})
    const ending = subscription.unsubscribe()
    const again = client.subscribe(URI, () => {})
    await settle()
    expect(server.of('resources/subscribe')).toHaveLength(1)
    server.server.answer(at(held, 0), {})
    await Promise.all([ending, again])
    expect(server.of('resources/subscribe')).toHaveLength(2)
  })
})

describe('in 2026-07-28', () => {
  const filters = (asked: Asked[]) => asked.map(({ params }) => params['notifications'])

  it('the stream is replaced when more is watched: the old one ends after the acknowledgement', async () => {
    const held: Asked[] = []
    const server = scriptedServer({
      serve: (asked) => (asked.method === 'subscriptions/listen' ? held.push(asked) : false),
    })
    await using client = await connect(server)
    const updates: string[] = []
    const listener = ({ uri }: ResourceChange) => updates.push(uri)
    const one = client.subscribe('x:1', listener)
    await settle()
    server.server.acknowledge(at(held, 0))
    await one
    const two = client.subscribe('x:2', listener)
    const lists = client.watch('tools', () => updates.push('tools'))
    await settle()
    expect(filters(held)).toEqual([
      { resourceSubscriptions: ['x:1'] },
      { toolsListChanged: true, resourceSubscriptions: ['x:1', 'x:2'] },
    ])
    // Before the acknowledgement the old stream still counts.
    server.server.onStream(at(held, 0).id, 'notifications/resources/updated', { uri: 'x:1' })
    await settle()
    expect(updates).toEqual(['x:1'])
    expect(server.of('notifications/cancelled')).toEqual([])
    server.server.acknowledge(at(held, 1))
    await Promise.all([two, lists])
    expect(server.of('notifications/cancelled')).toMatchObject([
      { params: { requestId: at(held, 0).id } },
    ])
    // Afterwards the new one sends what the old one sends; streams of others are none of ours.
    for (const id of [at(held, 0).id, at(held, 1).id, 'other'])
      server.server.onStream(id, 'notifications/resources/updated', { uri: 'x:2' })
    server.server.onStream(String(at(held, 1).id), 'notifications/tools/list_changed')
    await settle()
    expect(updates).toEqual(['x:1', 'x:2', 'tools'])
  })

  it('what the acknowledgement leaves out is an error, and the rest works', async () => {
    const server = scriptedServer({
      serve(asked, end) {
        if (asked.method !== 'subscriptions/listen') return false
        end.acknowledge(asked, { resourceSubscriptions: ['x:1'], toolsListChanged: 'yes' })
        return true
      },
    })
    await using client = await connect(server)
    const results = await Promise.allSettled([
      client.subscribe('x:1', () => {}),
      client.subscribe('x:2', () => {}),
      client.watch('tools', () => {}),
    ])
    expect(results).toMatchObject([
      { status: 'fulfilled' },
      { reason: { code: 'NOT_SUPPORTED', message: expect.stringContaining('x:2') as string } },
      { reason: { code: 'NOT_SUPPORTED' } },
    ])
    await settle()
    expect(server.of('subscriptions/listen')).toHaveLength(1)
  })

  it('the stream is narrowed, and closed with the last listener', async () => {
    const server = scriptedServer({ serve: acknowledging })
    await using client = await connect(server)
    const one = await client.subscribe('x:1', () => {})
    const two = await client.subscribe('x:2', () => {})
    await one.unsubscribe()
    await settle()
    expect(filters(server.of('subscriptions/listen')).at(-1)).toEqual({
      resourceSubscriptions: ['x:2'],
    })
    await two.unsubscribe()
    await settle()
    expect(server.of('subscriptions/listen')).toHaveLength(3)
    expect(server.of('notifications/cancelled')).toHaveLength(3)
  })

  it('a stream that the server ends is opened again, and listeners hear that they may have missed changes', async () => {
    const server = scriptedServer({ serve: acknowledging })
    await using client = await connect(server, { reconnect: { delay: () => 0 } })
    const changes = heard<ResourceChange>()
    await client.subscribe(URI, changes.listener)
    server.server.answer(at(server.of('subscriptions/listen'), 0), {})
    await changes.all
    expect(changes.events).toEqual([{ uri: URI, missed: true }])
    expect(server.of('subscriptions/listen')).toHaveLength(2)
  })

  it('waits longer after each failure to open it again, and does not give up', () =>
    onStillClock(async (pass) => {
      const attempts: number[] = []
      let open = true
      const server = scriptedServer({
        serve(asked, end) {
          if (asked.method !== 'subscriptions/listen') return false
          if (open) end.acknowledge(asked)
          else end.refuse(asked, -32603)
          return true
        },
      })
      const delay = (attempt: number) => {
        attempts.push(attempt)
        return attempt * 100
      }
      await using client = await connect(server, { reconnect: { delay, attempts: 2 } })
      const changes = heard<ResourceChange>()
      await client.subscribe(URI, changes.listener)
      open = false
      server.server.answer(at(server.of('subscriptions/listen'), 0), {})
      for (const milliseconds of [100, 200, 300]) {
        await settle()
        await pass(milliseconds)
      }
      await settle()
      expect(attempts).toEqual([1, 2, 3, 4])
      open = true
      await pass(400)
      await changes.all
      expect(changes.events).toEqual([{ uri: URI, missed: true }])
    }))

  it('a new subscription does not wait for the pause', () =>
    onStillClock(async () => {
      const server = scriptedServer({ serve: acknowledging })
      await using client = await connect(server, { reconnect: { delay: () => 60_000 } })
      await client.subscribe('x:1', () => {})
      server.server.answer(at(server.of('subscriptions/listen'), 0), {})
      await settle()
      await client.subscribe('x:2', () => {})
      expect(filters(server.of('subscriptions/listen'))).toEqual([
        { resourceSubscriptions: ['x:1'] },
        { resourceSubscriptions: ['x:1', 'x:2'] },
      ])
    }))

  it('rejects if the stream is refused, ends or is not acknowledged', () =>
    onStillClock(async (pass) => {
      const ways: ((asked: Asked, end: ServerEnd) => void)[] = [
        (asked, end) => end.refuse(asked, -32601),
        (asked, end) => end.answer(asked, {}),
        () => {},
      ]
      for (const way of ways) {
        const server = scriptedServer({
          serve(asked, end) {
            if (asked.method !== 'subscriptions/listen') return false
            way(asked, end)
            return true
          },
        })
        await using client = await connect(server)
        const subscribing = expect(client.subscribe(URI, () => {})).rejects.toMatchObject({
          code: expect.anything() as unknown,
        })
        await settle()
        await pass(30_000)
        await subscribing
        expect(await client.request('tools/list')).toBeDefined()
      }
    }))

  it('a subscription that is no longer accepted ends with an event', async () => {
    let open = true
    const server = scriptedServer({
      serve(asked, end) {
        if (asked.method !== 'subscriptions/listen') return false
        end.acknowledge(asked, open ? undefined : {})
        return true
      },
    })
    await using client = await connect(server, { reconnect: { delay: () => 0 } })
    const ended = heard<SubscriptionEnded>()
    client.on('unsubscribed', ended.listener)
    await client.subscribe(URI, () => {})
    open = false
    server.server.answer(at(server.of('subscriptions/listen'), 0), {})
    await ended.all
    expect(ended.events).toMatchObject([{ uri: URI, error: { code: 'NOT_SUPPORTED' } }])
  })

  it('a server cannot fake an event of the client', async () => {
    const server = scriptedServer({ serve: acknowledging })
    await using client = await connect(server)
    const faked = heard<unknown>()
    client.on('closed', faked.listener)
    server.server.notify('closed', {})
    await settle()
    expect(faked.events).toEqual([])
  })
})

describe('over HTTP in 2026-07-28', () => {
  it('no update is lost while the stream is replaced', async () => {
    const uris = Array.from({ length: 8 }, (_, number) => `count:${number}`)
    const server = createServer({
      name: 'counters',
      version: '1.0.0',
      tools: [tool({ name: 'noop', run: () => 'ok' })],
      resources: uris.map((uri) => resource({ uri, read: () => 'x' })),
    })
    const listening = await listen(server, { port: 0, ...quiet })
    const client = await connect(http(listening.url), { revision: '2026-07-28' })
    const counts = heard<ResourceChange>()
    let updates = 0
    const all = new Promise<void>((resolve) => {
      void client.subscribe(at(uris, 0), () => {
        counts.listener({ uri: at(uris, 0) })
        if (counts.events.length >= uris.length - 1) resolve()
      })
    })
    await settle()
    await client.subscribe(at(uris, 1), () => {})
    for (const uri of uris.slice(1)) {
      const widening = client.subscribe(uri, () => {})
      server.updated(at(uris, 0))
      updates++
      await widening
    }
    await all
    expect(counts.events.length).toBeGreaterThanOrEqual(updates)
    await client.close()
    await listening.close(0)
  })
})
