import { createServer as createHttpServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js'
import { SSEServerTransport } from '@modelcontextprotocol/sdk/server/sse.js'
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { type Client, type ConnectOptions, type Target, connect, http } from '../../src/client.js'
import { listen } from '../../src/http.js'
import { createServer, form, tool } from '../../src/index.js'
import type { LogEntry } from '../../src/jsonrpc/log-entry.js'
import { revisions } from '../../src/protocol/revisions/index.js'
import { onStillClock } from '../clock.js'
import { closing, inSession, json, result, scripted } from './scripted.js'

/* A client over http(…): every revision, sessions that expire, arguments in headers, servers of the official SDK. */

async function open(target: Target, options: ConnectOptions = {}): Promise<Client> {
  const client = await connect(target, options)
  closing.push(() => client.close())
  return client
}
const text = ({ content }: { content: readonly object[] }) => (content[0] as { text: string }).text

async function all<Item>(items: AsyncIterable<Item>): Promise<Item[]> {
  const found: Item[] = []
  for await (const item of items) found.push(item)
  return found
}

const server = () =>
  createServer({
    name: 'http',
    version: '1',
    tools: [
      tool({
        name: 'region',
        input: {
          type: 'object',
          properties: {
            region: { type: 'string', 'x-mcp-header': 'Region' },
            n: { type: 'integer', 'x-mcp-header': 'N' },
          },
        },
        run: ({ region = '', n = 0 }) => `${region} ${n}`,
      }),
      tool({
        name: 'ask',
        async run(_, call) {
          call.progress(1)
          const schema = {
            type: 'object',
            properties: { name: { type: 'string' } },
            required: ['name'],
          } as const
          const { who } = await call.ask({ who: form({ message: 'Who?', schema }) })
          return `hello ${who.name}`
        },
      }),
    ],
  })

describe.each([
  ['node:http', undefined],
  ['fetch', fetch],
])('our own server over %s', (_, given) => {
  it.each(revisions.map(({ id }) => id))('%s: calls, progress, elicitation', async (revision) => {
    const listening = await listen(server(), { port: 0, log: { write: () => true } })
    closing.push(() => listening.close(0))
    const target = http(listening.url, given === undefined ? {} : { fetch: given })
    const client = await open(target, {
      revision,
      elicit: () => ({ action: 'accept', content: { name: 'Ada' } }),
    })
    expect(client.revision).toBe(revision)
    for (const region of ['north', '', ' padded ', 'Zürich', '=?base64?=', 'a\nb'])
      expect(text(await client.callTool('region', { region, n: 7 }))).toBe(`${region} 7`)
    expect(text(await client.callTool('region'))).toBe(' 0')
    const progress: number[] = []
    const onProgress = (each: { progress: number }) => progress.push(each.progress)
    const asked = await client.callTool('ask', {}, { onProgress })
    if (revision >= '2025-06-18') expect(text(asked)).toBe('hello Ada')
    expect(progress).toContain(1)
    // It has two seconds to end the session.
    await onStillClock(() => client.close())
    expect(listening.sessions).toBe(0)
  })

  it('finds the newest revision by itself', async () => {
    const listening = await listen(server(), { port: 0, log: { write: () => true } })
    closing.push(() => listening.close(0))
    const target = http(listening.url, given === undefined ? {} : { fetch: given })
    expect((await open(target)).revision).toBe('2026-07-28')
  })
})

describe('a session that the server has ended', () => {
  /** Knows one session at a time, which `expire` ends. */
  async function expiring(accepts: () => boolean = () => true) {
    let number = 1
    const handshake = (session: string) => inSession(() => {}, { session })
    const served = await scripted((received, response, count) => {
      const { method, headers, message } = received
      if (message.method === 'initialize' && !accepts()) return void response.writeHead(503).end()
      if (message.method === 'initialize')
        return handshake(`s-${number}`)(received, response, count)
      if (headers['mcp-session-id'] !== `s-${number}`) return void response.writeHead(404).end()
      if (message.id === undefined || method !== 'POST')
        return handshake('')(received, response, count)
      if (message.params?.['name'] === 'silent') return
      json(
        response,
        200,
        result(message.id, { content: [{ type: 'text', text: `in s-${number}` }] }),
      )
    })
    return { ...served, reports: [] as LogEntry[], expire: () => void number++ }
  }

  it('is replaced, and the refused request is sent again', async () => {
    const { url, received, expire } = await expiring()
    const client = await open(http(url), { revision: '2025-11-25' })
    expect(text(await client.callTool('x'))).toBe('in s-1')
    const silent = client.callTool('silent')
    const outcome = silent.catch((error: unknown) => error)
    await expect.poll(() => received.at(-1)?.message.params?.['name']).toBe('silent')
    expire()
    received.length = 0
    expect(text(await client.callTool('x'))).toBe('in s-2')
    expect(received.flatMap(({ message: { method = [] } }) => method)).toEqual([
      'tools/call',
      'initialize',
      'notifications/initialized',
      'tools/call',
    ])
    expect(
      received.find(({ message }) => message.method === 'initialize')?.headers,
    ).not.toHaveProperty('mcp-session-id')
    expect(await outcome).toMatchObject({ code: 'SESSION_EXPIRED', executed: 'maybe' })
  })

  it('is replaced by one session for all requests that are refused', async () => {
    const { url, received, expire } = await expiring()
    const client = await open(http(url), { revision: '2025-11-25' })
    await client.callTool('x')
    expire()
    const calls = await Promise.allSettled([1, 2, 3].map(() => client.callTool('x')))
    expect(calls.filter(({ status }) => status === 'fulfilled')).not.toEqual([])
    expect(received.filter(({ message }) => message.method === 'initialize')).toHaveLength(2)
    expect(text(await client.callTool('x'))).toBe('in s-2')
  })

  it('is replaced if a notification was refused first', async () => {
    const { url, expire, reports } = await expiring()
    const client = await open(http(url), {
      revision: '2025-11-25',
      report: (entry) => void reports.push(entry),
    })
    await client.callTool('x')
    expire()
    client.notify('notifications/roots/list_changed')
    await expect.poll(() => reports).toHaveLength(1)
    expect(text(await client.callTool('x'))).toBe('in s-2')
  })

  it('is replaced also if report fails', async () => {
    const { url, expire, received } = await expiring()
    const reported: string[] = []
    const client = await open(http(url), {
      revision: '2025-11-25',
      report: ({ message }) => {
        reported.push(message)
        throw new Error('report failed')
      },
    })
    await client.callTool('x')
    expire()
    client.notify('notifications/roots/list_changed')
    await expect.poll(() => reported).toEqual(['The server refused a message with HTTP 404'])
    expect(text(await client.callTool('x'))).toBe('in s-2')
    expect(received.at(-1)?.headers['mcp-session-id']).toBe('s-2')
  })

  it('fails the request if no new session can be opened, and the next one tries again', async () => {
    let accepting = true
    const { url, expire } = await expiring(() => accepting)
    const client = await open(http(url), { revision: '2025-11-25' })
    expire()
    accepting = false
    await expect(client.callTool('x')).rejects.toThrow(
      'The server ended the session and refused a new one: The server responded with HTTP 503',
    )
    accepting = true
    expect(text(await client.callTool('x'))).toBe('in s-2')
  })
})

describe('arguments in headers', () => {
  const annotated = (name: string, header: unknown) => ({
    name,
    inputSchema: {
      type: 'object',
      properties: { region: { type: 'string', 'x-mcp-header': header } },
    },
  })

  /** Wants `Mcp-Param-Region`, where `strict`, and lists the given tools. */
  const stateless = (tools: object[], strict = true) =>
    scripted(({ message, headers }, response) => {
      const base = { resultType: 'complete', ttlMs: 0, cacheScope: 'public' }
      if (message.method === 'server/discover')
        return json(
          response,
          200,
          result(message.id, { ...base, supportedVersions: ['2026-07-28'], capabilities: {} }),
        )
      if (message.method === 'tools/list')
        return json(response, 200, result(message.id, { ...base, tools }))
      const region = headers['mcp-param-region']
      if (strict && region === undefined)
        return json(response, 400, {
          jsonrpc: '2.0',
          id: message.id,
          error: { code: -32020, message: 'Header mismatch' },
        })
      const content = [{ type: 'text', text: String(region) }]
      json(response, 200, result(message.id, { ...base, content }))
    })

  it('are sent as tools/list declared them', async () => {
    const { url, received } = await stateless([annotated('x', 'Region')])
    const client = await open(http(url))
    expect(await all(client.tools())).toHaveLength(1)
    expect(text(await client.callTool('x', { region: 'Zürich' }))).toMatch(/^=\?base64\?.*\?=$/)
    expect(received).toHaveLength(3)
  })

  it('are found by one tools/list and one retry if the server requires them', async () => {
    const { url, received } = await stateless([annotated('x', 'Region')])
    const client = await open(http(url))
    expect(text(await client.callTool('x', { region: 'north' }))).toBe('north')
    await expect(client.callTool('y', { region: 'north' })).rejects.toMatchObject({ code: -32020 })
    expect(received.flatMap(({ message: { method = [] } }) => method)).toEqual([
      'server/discover',
      'tools/call',
      'tools/list',
      'tools/call',
      'tools/call',
      'tools/list',
      'tools/call',
    ])
  })

  it('are known for a bounded amount of schemas, of the last list', async () => {
    const wide = (name: string, length: number) => ({
      name,
      inputSchema: {
        type: 'object',
        properties: { ['p'.repeat(length)]: { type: 'string', 'x-mcp-header': 'Region' } },
      },
    })
    const mebibyte = 1024 * 1024
    const tools = [wide('a', 3 * mebibyte), wide('b', 2 * mebibyte), wide('c', 1)]
    const { url } = await stateless(tools, false)
    const client = await open(http(url))
    for (let round = 0; round < 3; round++) await all(client.tools())
    const region = async (name: string, length: number) =>
      text(await client.callTool(name, { ['p'.repeat(length)]: 'north' }))
    expect(await region('a', 3 * mebibyte)).toBe('north')
    expect(await region('b', 2 * mebibyte)).toBe('undefined')
    expect(await region('c', 1)).toBe('north')
  })

  it('drop and report a tool whose x-mcp-header is not valid', async () => {
    const { url } = await stateless([annotated('bad', 'not a token'), annotated('good', 'Region')])
    const reports: LogEntry[] = []
    const client = await open(http(url), { report: (entry) => void reports.push(entry) })
    expect((await all(client.tools())).map(({ name }) => name)).toEqual(['good'])
    expect(reports).toMatchObject([
      {
        level: 'warning',
        message: 'The tool "bad" was left out: its x-mcp-header is not valid',
      },
    ])
  })
})

describe('a server of the official SDK', () => {
  const sdkServer = () => {
    const sdk = new McpServer({ name: 'sdk', version: '1' })
    sdk.registerTool('add', { inputSchema: { a: z.number(), b: z.number() } }, ({ a, b }) => ({
      content: [{ type: 'text' as const, text: String(a + b) }],
    }))
    return sdk
  }
  const bodyOf = async (request: AsyncIterable<Buffer>) => {
    let body = ''
    for await (const chunk of request) body += chunk.toString()
    return body === '' ? undefined : (JSON.parse(body) as unknown)
  }
  async function serve(handler: Parameters<typeof createHttpServer>[1]): Promise<string> {
    const listening = createHttpServer(handler)
    await new Promise<void>((resolve) => listening.listen(0, '127.0.0.1', resolve))
    closing.push(() => {
      listening.closeAllConnections()
      return new Promise((resolve) => listening.close(resolve))
    })
    return `http://127.0.0.1:${(listening.address() as AddressInfo).port}`
  }

  /** Its own types disagree under exactOptionalPropertyTypes. */
  async function sdkTransport(sessionIdGenerator: (() => string) | undefined) {
    const transport = new StreamableHTTPServerTransport({ sessionIdGenerator } as object)
    await sdkServer().connect(transport)
    return transport
  }

  it.each([
    ['with a session', () => sdkTransport(() => 'session-1')],
    ['without a session', undefined],
  ])('is reached over Streamable HTTP %s', async (_, shared) => {
    const transport = await shared?.()
    const url = await serve((request, response) => {
      const respond = async () => {
        const each = transport ?? (await sdkTransport(undefined))
        await each.handleRequest(request, response, await bodyOf(request))
      }
      void respond()
    })
    const client = await open(http(`${url}/mcp`))
    expect([client.revision, client.server?.name]).toEqual(['2025-11-25', 'sdk'])
    expect(text(await client.callTool('add', { a: 1, b: 2 }))).toBe('3')
  })

  it('is reached over HTTP+SSE', async () => {
    let transport: SSEServerTransport | undefined
    const sdk = sdkServer()
    const url = await serve((request, response) => {
      if (request.method === 'GET' && request.url === '/sse') {
        transport = new SSEServerTransport('/messages', response)
        void sdk.connect(transport)
      } else if (request.method === 'POST' && request.url?.startsWith('/messages') === true)
        void transport?.handlePostMessage(request, response)
      else response.writeHead(404).end()
    })
    const client = await open(http(`${url}/sse`))
    expect(client.revision).toBe('2025-11-25')
    expect(text(await client.callTool('add', { a: 1, b: 2 }))).toBe('3')
    await client.close()
    await sdk.close()
  })
})
