import { describe, expect, it } from 'vitest'
import { InvalidResultError } from '../../src/client.js'
import { onStillClock } from '../clock.js'
import { proves } from './proves.js'
import { ScriptedServer, type Sent, collect, settle, textResult } from './scripted-server.js'
import { ids, modern } from './wire.js'

/* What a client keeps: cached results, subscriptions and output schemas. */

const SUBSCRIPTION = 'io.modelcontextprotocol/subscriptionId'

/* https://modelcontextprotocol.io/specification/2026-07-28/server/utilities/caching */
describe('the cache of a client', () => {
  const toolsOf = (...names: string[]) => ({
    tools: names.map((name) => ({ name, inputSchema: { type: 'object' } })),
  })
  const namesOf = async (list: AsyncIterable<{ name: string }>) =>
    (await collect(list)).map(({ name }) => name)

  it('returns a result for ttlMs milliseconds, and asks again only when it is needed', async () => {
    proves('caching.ttl-meaning', 'caching.freshness')
    const server = new ScriptedServer(modern, {
      respond: () => ({ ...toolsOf('a'), ttlMs: 1000 }),
    })
    const client = await server.connect()
    await onStillClock(async (pass) => {
      await collect(client.tools())
      await pass(999)
      expect(await namesOf(client.tools())).toEqual(['a'])
      expect(server.methods).toEqual(['tools/list'])
      // Stale, but nobody asks.
      await pass(60_000)
      expect(server.methods).toEqual(['tools/list'])
      await collect(client.tools())
      expect(server.methods).toEqual(['tools/list', 'tools/list'])
    })
  })

  it.each([0, -1, undefined])('does not keep a result whose ttlMs is %s', async (ttlMs) => {
    proves('caching.ttl-meaning')
    const server = new ScriptedServer(modern, {
      hostile: true,
      respond({ id }, own) {
        own.send({ id, result: { resultType: 'complete', ...toolsOf('a'), ttlMs } })
        return undefined
      },
    })
    const client = await server.connect()
    await collect(client.tools())
    await collect(client.tools())
    expect(server.methods).toEqual(['tools/list', 'tools/list'])
  })

  it('returns a result only for the same method, cursor and URI', async () => {
    proves('caching.key')
    const server = new ScriptedServer(modern, {
      respond({ method, params }) {
        if (method === 'prompts/list') return { prompts: [{ name: 'p' }], ttlMs: 1000 }
        if (method === 'tools/list')
          return params?.['cursor'] === undefined
            ? { ...toolsOf('a'), nextCursor: '2', ttlMs: 1000 }
            : { ...toolsOf('b'), ttlMs: 1000 }
        const { uri } = params ?? {}
        return { contents: [{ uri, text: String(uri) }], ttlMs: 1000 }
      },
    })
    const client = await server.connect()
    await onStillClock(async () => {
      for (let count = 0; count < 2; count++) {
        expect(await namesOf(client.tools())).toEqual(['a', 'b'])
        expect(await namesOf(client.prompts())).toEqual(['p'])
        for (const uri of ['note://1', 'note://2'])
          expect((await client.readResource(uri)).contents).toMatchObject([{ uri, text: uri }])
      }
    })
    expect(server.methods).toHaveLength(5)
  })

  it('does not keep the result of a retry with input', async () => {
    proves('caching.retries')
    const server = new ScriptedServer(modern, {
      respond: ({ params }) =>
        params?.['inputResponses'] === undefined
          ? {
              resultType: 'input_required',
              inputRequests: { it: { method: 'roots/list', params: {} } },
            }
          : { contents: [{ uri: 'note://1', text: 'for you' }], ttlMs: 1000 },
    })
    const client = await server.connect({ roots: () => [] })
    await client.readResource('note://1')
    await client.readResource('note://1')
    expect(server.methods).toHaveLength(4)
  })

  it('is not shared with another client of the same server', async () => {
    proves('caching.private')
    let count = 0
    const server = new ScriptedServer(modern, {
      respond: () => ({ ...toolsOf(`for-${++count}`), ttlMs: 3_600_000, cacheScope: 'private' }),
    })
    const one = await server.connect()
    expect(await namesOf(one.tools())).toEqual(['for-1'])
    const two = await server.connect()
    expect(await namesOf(two.tools())).toEqual(['for-2'])
    expect(await namesOf(one.tools())).toEqual(['for-1'])
  })

  it('fetches a stale page by its cursor, and the whole list when the cursor is rejected', async () => {
    proves('caching.pages-clients')
    let valid = true
    const server = new ScriptedServer(modern, {
      respond({ params }) {
        const cursor = params?.['cursor']
        if (cursor === undefined) return { ...toolsOf('a'), nextCursor: '2', ttlMs: 10_000 }
        if (!valid && cursor === '2') {
          valid = true
          return { error: { code: -32_602, message: 'Invalid cursor' } }
        }
        return { ...toolsOf('b'), ttlMs: 1000 }
      },
    })
    const client = await server.connect()
    const cursors = () => server.paramsOf('tools/list').map(({ cursor }) => cursor)
    await onStillClock(async (pass) => {
      await collect(client.tools())
      await pass(2000)
      server.received.length = 0
      expect(await namesOf(client.tools())).toEqual(['a', 'b'])
      expect(cursors()).toEqual(['2'])
      await pass(2000)
      server.received.length = 0
      valid = false
      expect(await namesOf(client.tools())).toEqual(['a', 'b'])
      expect(cursors()).toEqual(['2', undefined, '2'])
    })
  })
})

/* https://modelcontextprotocol.io/specification/2026-07-28/basic/patterns/subscriptions */
describe('the subscriptions of a stateless client', () => {
  const capabilities = { resources: { subscribe: true }, tools: { listChanged: true } }
  /** A server that accepts a subscription to any resource except note://no. */
  const listening = (streams: Sent[]) =>
    new ScriptedServer(modern, {
      capabilities,
      respond(message, own) {
        streams.push(message)
        const asked = message.params?.['notifications'] as Record<string, unknown>
        const uris = (asked['resourceSubscriptions'] ?? []) as string[]
        own.notify('notifications/subscriptions/acknowledged', {
          notifications: {
            ...asked,
            resourceSubscriptions: uris.filter((uri) => uri !== 'note://no'),
          },
          _meta: { [SUBSCRIPTION]: message.id },
        })
        return undefined
      },
    })

  it('fail if the server does not acknowledge what was asked for', async () => {
    proves('listen.check-filter')
    const streams: Sent[] = []
    const server = listening(streams)
    const client = await server.connect()
    await client.subscribe('note://yes', () => {})
    await expect(client.subscribe('note://no', () => {})).rejects.toThrow(/note:\/\/no/)
  })

  it('take only notifications with the id of their stream', async () => {
    proves('listen.correlate', 'stdio.correlate')
    const streams: Sent[] = []
    const server = listening(streams)
    const client = await server.connect()
    const heard: string[] = []
    await client.subscribe('note://1', ({ uri }) => heard.push(uri))
    const updated = (id: unknown) =>
      server.notify('notifications/resources/updated', {
        uri: 'note://1',
        _meta: { [SUBSCRIPTION]: id },
      })
    updated('another stream')
    await settle()
    expect(heard).toEqual([])
    updated(streams.at(-1)?.id)
    await settle()
    expect(heard).toEqual(['note://1'])
  })

  it('are made again after the server ended the stream, and after it was restarted', async () => {
    proves('listen.again', 'stdio.restart')
    const streams: Sent[] = []
    const server = listening(streams)
    const client = await server.connect({ reconnect: { delay: 0 } })
    const heard: unknown[] = []
    await client.subscribe('note://1', (change) => heard.push(change))
    server.reply(streams[0] ?? {}, { _meta: { [SUBSCRIPTION]: streams[0]?.id } })
    await expect.poll(() => streams.length).toBe(2)
    await server.exit()
    await expect.poll(() => streams.length).toBe(3)
    expect(server.connections).toBe(2)
    for (const { params } of streams)
      expect(params?.['notifications']).toMatchObject({ resourceSubscriptions: ['note://1'] })
    await expect.poll(() => heard.length).toBe(2)
    expect(heard).toEqual([
      { uri: 'note://1', missed: true },
      { uri: 'note://1', missed: true },
    ])
  })
})

/* https://modelcontextprotocol.io/specification/2026-07-28/server/tools#output-schema */
describe.each(ids.filter((id) => id >= '2025-06-18'))('structured results in %s', (revision) => {
  it('are validated by the output schema of the tool', async () => {
    proves('tools.output-checked-by-client')
    const outputSchema = {
      type: 'object',
      properties: { sum: { type: 'number' } },
      required: ['sum'],
    }
    const server = new ScriptedServer(revision, {
      respond({ method, params }) {
        if (method === 'tools/list')
          return { tools: [{ name: 'add', inputSchema: { type: 'object' }, outputSchema }] }
        return { ...textResult(''), structuredContent: params?.['arguments'] }
      },
    })
    const client = await server.connect({ validateResults: true })
    await collect(client.tools())
    expect((await client.callTool('add', { sum: 3 })).structuredContent).toEqual({ sum: 3 })
    await expect(client.callTool('add', { sum: 'three' })).rejects.toThrow(InvalidResultError)
  })
})
