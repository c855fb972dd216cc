import { describe, expect, it } from 'vitest'
import { type Prior, connect, http, memory } from '../../src/client.js'
import { listen } from '../../src/http.js'
import { createServer, tool } from '../../src/index.js'
import { closing, event, json, result, scripted, stream } from '../http-client/scripted.js'
import { scriptedServer } from './scripted-server.js'

const ping = { serve: () => false as const }
const hour = 3_600_000
const dated = (ago: number) => new Date(Date.now() - ago).toISOString()

describe('client.prior', () => {
  it('is plain JSON with the date, and saves server/discover for a server with a handshake', async () => {
    const server = scriptedServer({ revision: '2025-11-25', ...ping })
    const first = await connect(server)
    const prior = JSON.parse(JSON.stringify(first.prior)) as Prior
    await first.close()
    expect(prior).toEqual({
      version: 1,
      date: expect.any(String) as string,
      revision: '2025-11-25',
    })
    expect(server.of('server/discover')).toHaveLength(1)
    const again = scriptedServer({ revision: '2025-11-25', ...ping })
    const second = await connect(again, { prior })
    expect(second.revision).toBe('2025-11-25')
    expect(again.asked.map(({ method }) => method)).toEqual([
      'initialize',
      'notifications/initialized',
    ])
    await second.close()
  })

  it.each<[string, unknown]>([
    ['null', null],
    ['a string', 'prior'],
    ['an array', []],
    ['another version', { version: 2, date: dated(1), revision: '2025-11-25' }],
    ['an unknown revision', { version: 1, date: dated(1), revision: '1999-01-01' }],
    ['a date that is none', { version: 1, date: 'yesterday', revision: '2025-11-25' }],
    ['a date in the future', { version: 1, date: dated(-hour), revision: '2025-11-25' }],
    ['an old date', { version: 1, date: dated(8 * 24 * hour), revision: '2025-11-25' }],
    ['the prototype', { version: 1, date: dated(1), revision: '__proto__' }],
  ])('is ignored if it is %s', async (_, prior) => {
    const server = scriptedServer(ping)
    const reports: string[] = []
    const client = await connect(server, { prior, report: ({ message }) => reports.push(message) })
    expect(server.asked.map(({ method }) => method)).toEqual(['server/discover'])
    expect(reports).toEqual(['"prior" was ignored: it is invalid, or older than 7 days'])
    await client.close()
  })

  it('that is wrong costs one request: a modern server is found', async () => {
    const server = scriptedServer(ping)
    const prior = { version: 1, date: dated(hour), revision: '2025-11-25', transport: 'http+sse' }
    const client = await connect(server, { prior })
    expect(client.revision).toBe('2026-07-28')
    expect(server.asked.map(({ method }) => method)).toEqual(['initialize', 'server/discover'])
    await client.close()
  })

  it('that says stateless is not believed by a server with a handshake', async () => {
    const server = scriptedServer({ revision: '2025-11-25', ...ping })
    const client = await connect(server, {
      prior: { version: 1, date: dated(hour), revision: '2026-07-28' },
    })
    expect(client.revision).toBe('2025-11-25')
    await client.close()
  })
})

const calculator = (ttlMs: number) =>
  createServer({
    name: 'calculator',
    version: '1.0.0',
    cache: { ttlMs, cacheScope: 'public' },
    tools: [tool({ name: 'two', run: () => '2' })],
  })
const quiet = { log: { write: () => true } }

describe('over HTTP', () => {
  it('server/discover is not repeated while its result may be reused', async () => {
    const listening = await listen(calculator(hour), { port: 0, ...quiet })
    closing.push(() => listening.close(0))
    const first = await connect(http(listening.url))
    const prior: unknown = JSON.parse(JSON.stringify(first.prior))
    await first.close()
    const sent: string[] = []
    const tap = ({ direction, frame }: { direction: string; frame: string }) =>
      direction === 'out' && sent.push((JSON.parse(frame) as { method: string }).method)
    const second = await connect(http(listening.url), { prior, tap })
    expect(second.revision).toBe('2026-07-28')
    expect(second.server?.name).toBe('calculator')
    expect(sent).toEqual([])
    await second.callTool('two')
    expect(sent).toEqual(['tools/call'])
    await second.close()
    const stale = { ...(prior as Prior), date: dated(2 * hour) }
    const third = await connect(http(listening.url), { prior: stale, tap })
    expect(sent).toEqual(['tools/call', 'server/discover'])
    await third.close()
  })

  it('a server that has become another one is met as it is, and the refused call is sent again', async () => {
    const memoryClient = await connect(memory(calculator(hour)))
    const { prior } = memoryClient
    await memoryClient.close()
    const { url, received } = await scripted(({ method, message }, response) => {
      if (method === 'GET') return void response.writeHead(405).end()
      if (message.method === 'initialize')
        return json(
          response,
          200,
          result(message.id, {
            protocolVersion: '2025-06-18',
            capabilities: { tools: {}, resources: { subscribe: true } },
            serverInfo: { name: 'old', version: '1' },
          }),
        )
      if (message.params?.['_meta'] !== undefined) return void response.writeHead(400).end('bad')
      if (message.id === undefined) return void response.writeHead(202).end()
      json(response, 200, result(message.id, { content: [{ type: 'text', text: 'ok' }] }))
    })
    const client = await connect(http(url), { prior })
    const results = await Promise.all([client.callTool('two'), client.callTool('two')])
    expect(results).toMatchObject([{ content: [{ text: 'ok' }] }, { content: [{ text: 'ok' }] }])
    expect(client.revision).toBe('2025-06-18')
    expect(client.server?.name).toBe('old')
    expect(received.filter(({ message }) => message.method === 'initialize')).toHaveLength(1)
    await client.close()
    const other = await connect(http(url), { prior })
    await other.subscribe('x:1', () => {})
    expect(other.revision).toBe('2025-06-18')
    await other.close()
  })

  it('HTTP+SSE is opened at once', async () => {
    let send: (message: object) => void = () => {}
    const { url, received } = await scripted(({ method, message }, response) => {
      if (method === 'GET') {
        stream(response, 'event: endpoint\ndata: /post\n\n')
        closing.push(() => Promise.resolve(response.end()))
        send = (each) => response.write(event(each))
        return
      }
      response.writeHead(202).end()
      if (message.method === 'initialize')
        send(
          result(message.id, {
            protocolVersion: '2024-11-05',
            capabilities: {},
            serverInfo: { name: 'sse', version: '1' },
          }),
        )
    })
    const prior = { version: 1, date: dated(hour), revision: '2024-11-05', transport: 'http+sse' }
    const client = await connect(http(url), { prior })
    expect(client.prior).toMatchObject({ transport: 'http+sse', revision: '2024-11-05' })
    expect(received.map(({ method }) => method).slice(0, 2)).toEqual(['GET', 'POST'])
    await client.close()
  })

  it('a prior of HTTP+SSE does not break a server of Streamable HTTP', async () => {
    const listening = await listen(calculator(0), { port: 0, ...quiet })
    closing.push(() => listening.close(0))
    const prior = { version: 1, date: dated(hour), revision: '2024-11-05', transport: 'http+sse' }
    const client = await connect(http(listening.url), { prior })
    expect(client.revision).toBe('2026-07-28')
    await client.close()
  })
})
