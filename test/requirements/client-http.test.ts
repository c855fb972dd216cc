import type { ServerResponse } from 'node:http'
import { describe, expect, it } from 'vitest'
import { type Client, type ConnectOptions, connect, http } from '../../src/client.js'
import { onStillClock } from '../clock.js'
import {
  type Received,
  type Respond,
  closing,
  event,
  json,
  result,
  scripted,
  stream,
} from '../http-client/scripted.js'
import { proves } from './proves.js'
import { collect, textResult } from './scripted-server.js'
import { ids, modern } from './wire.js'

/* A client over HTTP. */

/** Revisions with sessions: Streamable HTTP with a handshake. */
const stateful = ['2025-03-26', '2025-06-18', '2025-11-25']
const withVersionHeader = stateful.slice(1)
const CACHED = { ttlMs: 0, cacheScope: 'private' }

async function open(url: string, revision: string, options: ConnectOptions = {}): Promise<Client> {
  const client = await connect(http(url), { revision, ...options })
  closing.push(() => client.close())
  return client
}

/** Opens a connection of the revision, refuses GET unless `get` serves it, and leaves the rest to `respond`. */
function serving(revision: string, respond: Respond, get?: Respond): Respond {
  return (received, response, count) => {
    const { method, message } = received
    if (method === 'GET') return get ? get(received, response, count) : refuse(response, 405)
    if (method === 'DELETE') return refuse(response, 204)
    if (message.method === 'server/discover')
      return json(response, 200, result(message.id, discovered))
    if (message.method === 'initialize')
      return json(response, 200, result(message.id, initialized(revision)), {
        'mcp-session-id': 'session-1',
      })
    if (message.id === undefined) return refuse(response, 202)
    respond(received, response, count)
  }
}

const refuse = (response: ServerResponse, status: number) => void response.writeHead(status).end()
const discovered = {
  resultType: 'complete',
  supportedVersions: [modern],
  capabilities: {},
  ...CACHED,
}
const initialized = (protocolVersion: string) => ({
  protocolVersion,
  capabilities: {},
  serverInfo: { name: 'x', version: '1' },
})
const text = (words: string) => ({ resultType: 'complete', ...textResult(words) })
const methodsOf = (received: readonly Received[]) =>
  received.flatMap(({ message }) => (message.method === undefined ? [] : [message.method]))
/** Waits until the client listens with GET, on a connection of its own. */
const listened = (received: readonly Received[]) =>
  expect.poll(() => received.map(({ method }) => method)).toContain('GET')
const answered =
  (value: object): Respond =>
  ({ message }, response) =>
    json(response, 200, result(message.id, value))

/* https://modelcontextprotocol.io/specification/2026-07-28/basic/transports/streamable-http */
describe.each(ids.filter((id) => id !== '2024-11-05'))('a client over HTTP in %s', (revision) => {
  it('posts each message by itself, and accepts JSON and event streams', async () => {
    proves('http.each-post', 'http.content-type-clients')
    const { url, received } = await scripted(
      serving(revision, ({ message }, response) => {
        if (message.params?.['name'] === 'json')
          return json(response, 200, result(message.id, text('as JSON')))
        stream(response, event(result(message.id, text('as a stream'))))
        response.end()
      }),
    )
    const client = await open(url, revision)
    const results = await Promise.all([client.callTool('json'), client.callTool('stream')])
    expect(results).toMatchObject([textResult('as JSON'), textResult('as a stream')])
    const posts = received.filter(({ method }) => method === 'POST')
    expect(posts.length).toBeGreaterThan(2)
    for (const { headers, message } of posts) {
      expect(Array.isArray(message)).toBe(false)
      expect(headers.accept).toContain('application/json')
      expect(headers.accept).toContain('text/event-stream')
      expect(headers['content-type']).toBe('application/json')
    }
  })
})

describe('a stateless client over HTTP', () => {
  it('sends the version, the method and the name in headers', async () => {
    proves('http.metadata-headers', 'http.header', 'http.name-encoding')
    const answers: Record<string, object> = {
      'tools/call': text(''),
      'resources/read': { resultType: 'complete', contents: [], ...CACHED },
      'prompts/get': { resultType: 'complete', messages: [] },
    }
    const { url, received } = await scripted(
      serving(modern, ({ message }, response) =>
        json(response, 200, result(message.id, answers[message.method ?? ''])),
      ),
    )
    const client = await open(url, modern)
    await client.callTool('add')
    await client.callTool('grüßen')
    await client.readResource('note://a b/ü')
    await client.getPrompt(' padded ')
    const sent = received.map(({ headers }) => [
      headers['mcp-protocol-version'],
      headers['mcp-method'],
      headers['mcp-name'],
    ])
    const base64 = (name: string) => `=?base64?${Buffer.from(name).toString('base64')}?=`
    expect(sent).toEqual([
      [modern, 'server/discover', undefined],
      [modern, 'tools/call', 'add'],
      [modern, 'tools/call', base64('grüßen')],
      [modern, 'resources/read', base64('note://a b/ü')],
      [modern, 'prompts/get', base64(' padded ')],
    ])
    for (const { message } of received)
      expect(message.params?.['_meta']).toHaveProperty(
        'io.modelcontextprotocol/protocolVersion',
        modern,
      )
  })

  const annotated = (properties: object) => ({
    name: 'query',
    inputSchema: { type: 'object', properties },
  })
  const header = (name: string, type = 'string') => ({ type, 'x-mcp-header': name })

  it('repeats annotated parameters in headers, encoded if necessary', async () => {
    proves('http.param-headers', 'http.encode', 'http.client-params', 'http.param-table-clients')
    const properties = {
      plain: header('Plain'),
      accented: header('Accented'),
      padded: header('Padded'),
      lines: header('Lines'),
      encoded: header('Encoded'),
      empty: header('Empty'),
      count: header('Count', 'integer'),
      flag: header('Flag', 'boolean'),
      none: header('None'),
      missing: header('Missing'),
      other: { type: 'string' },
      nested: { type: 'object', properties: { deep: header('Deep') } },
    }
    const tools = { resultType: 'complete', tools: [annotated(properties)], ...CACHED }
    const { url, received } = await scripted(
      serving(modern, ({ message }, response) =>
        json(response, 200, result(message.id, message.method === 'tools/list' ? tools : text(''))),
      ),
    )
    const client = await open(url, modern)
    await collect(client.tools())
    await client.callTool('query', {
      plain: 'two words',
      accented: 'Hello, 世界',
      padded: ' padded ',
      lines: 'line1\nline2',
      encoded: '=?base64?literal?=',
      empty: '',
      count: 42,
      flag: false,
      none: null,
      other: 'not sent',
      nested: { deep: 'down' },
    })
    const { headers } = received.at(-1) ?? { headers: {} }
    const parameters = Object.entries(headers).filter(([name]) => name.startsWith('mcp-param-'))
    expect(Object.fromEntries(parameters)).toEqual({
      'mcp-param-plain': 'two words',
      'mcp-param-accented': '=?base64?SGVsbG8sIOS4lueVjA==?=',
      'mcp-param-padded': '=?base64?IHBhZGRlZCA=?=',
      'mcp-param-lines': '=?base64?bGluZTEKbGluZTI=?=',
      'mcp-param-encoded': '=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?=',
      'mcp-param-empty': '',
      'mcp-param-count': '42',
      'mcp-param-flag': 'false',
      'mcp-param-deep': 'down',
    })
  })

  it('lists the tools after a header mismatch, and sends the call again with the headers', async () => {
    proves('http.client-params')
    const tools = {
      resultType: 'complete',
      tools: [annotated({ region: header('Region') })],
      ...CACHED,
    }
    const { url, received } = await scripted(
      serving(modern, ({ message, headers }, response) => {
        const { id, method } = message
        if (method === 'tools/list') return json(response, 200, result(id, tools))
        if (headers['mcp-param-region'] === 'eu') return json(response, 200, result(id, text('ok')))
        json(response, 400, { jsonrpc: '2.0', id, error: { code: -32_020, message: 'Mismatch' } })
      }),
    )
    const client = await open(url, modern)
    expect(await client.callTool('query', { region: 'eu' })).toMatchObject(textResult('ok'))
    expect(methodsOf(received).slice(1)).toEqual(['tools/call', 'tools/list', 'tools/call'])
  })

  it('leaves out tools with an invalid x-mcp-header, and reports them', async () => {
    proves('tools.header-rejected')
    const schema = (properties: object) => ({ type: 'object', properties })
    const invalid: Record<string, object> = {
      empty: schema({ a: header('') }),
      space: schema({ a: header('My Region') }),
      control: schema({ a: header('a\r\nb') }),
      number: schema({ a: header('A', 'number') }),
      object: schema({ a: header('A', 'object') }),
      duplicate: schema({ a: header('A'), b: header('a') }),
      items: schema({ a: { type: 'array', items: header('A') } }),
    }
    const tools = Object.entries({ ...invalid, valid: schema({ a: header('A') }) }).map(
      ([name, inputSchema]) => ({ name, inputSchema }),
    )
    const { url } = await scripted(
      serving(modern, answered({ resultType: 'complete', tools, ...CACHED })),
    )
    const reports: string[] = []
    const client = await open(url, modern, { report: ({ message }) => reports.push(message) })
    expect((await collect(client.tools())).map(({ name }) => name)).toEqual(['valid'])
    for (const name of Object.keys(invalid))
      expect(reports).toContainEqual(expect.stringContaining(`"${name}"`))
  })

  it('reads the body of a 400 before it falls back to initialize', async () => {
    proves('http.fallback')
    const handshake = serving('2025-11-25', answered({ tools: [] }))
    const refusing =
      (code: number, data?: object): Respond =>
      (received, response, count) => {
        const { id, method } = received.message
        if (method !== 'server/discover') return handshake(received, response, count)
        json(response, 400, { jsonrpc: '2.0', id, error: { code, message: 'no', data } })
      }
    const legacy = await scripted(refusing(-32_000))
    const client = await connect(http(legacy.url))
    closing.push(() => client.close())
    expect(client.revision).toBe('2025-11-25')
    const current = await scripted(
      refusing(-32_022, { requested: modern, supported: ['2099-01-01'] }),
    )
    await expect(connect(http(current.url))).rejects.toThrow('2099-01-01')
    expect(methodsOf(current.received)).toEqual(['server/discover'])
  })
})

/* https://modelcontextprotocol.io/specification/2025-11-25/basic/transports#streamable-http */
describe.each(stateful)('a client with a session in %s', (revision) => {
  it('sends the session id in every request after initialize, and nowhere else', async () => {
    proves('http.session-sent', 'http.session-secure')
    const { url, received } = await scripted(serving(revision, answered(textResult(''))))
    const shown: string[] = []
    const client = await open(url, revision, {
      report: (entry) => shown.push(JSON.stringify(entry)),
      tap: ({ frame }) => shown.push(frame),
    })
    await client.callTool('x')
    await listened(received)
    await client.close()
    const [first, ...others] = received
    expect(first?.headers['mcp-session-id']).toBeUndefined()
    for (const { headers } of others) expect(headers['mcp-session-id']).toBe('session-1')
    expect(shown.filter((each) => each.includes('session-1'))).toEqual([])
    expect(received.filter(({ path }) => path.includes('session-1'))).toEqual([])
  })

  it('starts a new session after 404, without the old id, and deletes it at the end', async () => {
    proves('http.session-restart')
    let sessions = 0
    const { url, received } = await scripted((each, response, count) => {
      const { method, message, headers } = each
      if (message.method === 'initialize') {
        sessions++
        return json(response, 200, result(message.id, initialized(revision)), {
          'mcp-session-id': `s-${sessions}`,
        })
      }
      if (method === 'POST' && headers['mcp-session-id'] === 's-1' && message.id !== undefined)
        return refuse(response, 404)
      serving(revision, answered(textResult('new session')))(each, response, count)
    })
    const client = await open(url, revision)
    expect(await client.callTool('x')).toMatchObject(textResult('new session'))
    await client.close()
    const opened = received.filter(({ message }) => message.method === 'initialize')
    expect(opened.map(({ headers }) => headers['mcp-session-id'])).toEqual([undefined, undefined])
    const deleted = received.filter(({ method }) => method === 'DELETE')
    expect(deleted.map(({ headers }) => headers['mcp-session-id'])).toEqual(['s-2'])
  })

  it('cancels by a notification, not by closing the stream', async () => {
    proves('http.cancel')
    const { url, received } = await scripted(
      serving(revision, (_received, response) => stream(response)),
    )
    const client = await open(url, revision)
    const controller = new AbortController()
    const pending = client.callTool('x', {}, { signal: controller.signal })
    await expect.poll(() => methodsOf(received)).toContain('tools/call')
    controller.abort(new Error('enough'))
    await expect(pending).rejects.toThrow('enough')
    await expect.poll(() => methodsOf(received)).toContain('notifications/cancelled')
    const { message: call } = received.find(({ message }) => message.method === 'tools/call') ?? {}
    const { message: cancel } =
      received.find(({ message }) => message.method === 'notifications/cancelled') ?? {}
    expect(cancel?.params).toMatchObject({ requestId: call?.id })
  })

  it('listens with GET for messages of the server, as an event stream', async () => {
    proves('http.get-accept')
    const { url, received } = await scripted(
      serving(revision, answered(textResult('')), (_received, response) =>
        stream(response, event({ jsonrpc: '2.0', method: 'notifications/tools/list_changed' })),
      ),
    )
    const client = await open(url, revision)
    await new Promise<unknown>((resolve) => client.on('notifications/tools/list_changed', resolve))
    const gets = received.filter(({ method }) => method === 'GET')
    expect(gets.map(({ headers }) => headers.accept)).toEqual(['text/event-stream'])
  })

  it('resumes a stream that ended early by Last-Event-ID, not before the time of retry', async () => {
    proves('http.resume', 'http.stream-polling', 'http.stream-retry-clients')
    let call: Received | undefined
    const { url, received } = await scripted(
      serving(
        revision,
        (each, response) => {
          call = each
          stream(response, 'id: e-1\nretry: 5000\ndata:\n\n')
          response.end()
        },
        ({ headers }, response) => {
          if (headers['last-event-id'] === undefined) return refuse(response, 405)
          stream(response, event(result(call?.message.id, textResult('resumed')), 'e-2'))
          response.end()
        },
      ),
    )
    const client = await open(url, revision)
    const resumed = () => received.filter(({ headers }) => headers['last-event-id'] !== undefined)
    await onStillClock(async (pass) => {
      const pending = client.callTool('x', {}, { timeout: 3_600_000 })
      await waitUntil(() => call !== undefined)
      // The end of the stream arrives by the network, not by the clock.
      for (let count = 0; count < 20; count++) await new Promise((resolve) => setImmediate(resolve))
      await pass(4900)
      for (let count = 0; count < 20; count++) await new Promise((resolve) => setImmediate(resolve))
      expect(resumed()).toEqual([])
      while (resumed().length === 0) {
        await pass(100)
        await new Promise((resolve) => setImmediate(resolve))
      }
      expect(await pending).toMatchObject(textResult('resumed'))
    })
    expect(resumed().map(({ method, headers }) => [method, headers['last-event-id']])).toEqual([
      ['GET', 'e-1'],
    ])
  })
})

describe.each(withVersionHeader)('the version header of a client in %s', (revision) => {
  it('is the negotiated version, in every request after initialize', async () => {
    proves('http.version-header', 'lifecycle.version-header')
    const { url, received } = await scripted(serving(revision, answered(textResult(''))))
    const client = await open(url, revision)
    await client.callTool('x')
    await listened(received)
    await client.close()
    const [, ...others] = received
    expect(new Set(others.map(({ method }) => method))).toEqual(new Set(['POST', 'GET', 'DELETE']))
    for (const { headers } of others) expect(headers['mcp-protocol-version']).toBe(revision)
  })
})

/* https://modelcontextprotocol.io/specification/2024-11-05/basic/transports#http-with-sse */
describe('a client over HTTP+SSE', () => {
  it('posts its messages to the URI of the endpoint event', async () => {
    proves('sse.post')
    let events: ServerResponse | undefined
    const { url, received } = await scripted(({ method, path, message }, response) => {
      if (method === 'GET') {
        events = response
        return stream(response, 'event: endpoint\ndata: /messages?session=1\n\n')
      }
      if (path !== '/messages?session=1') return refuse(response, 405)
      refuse(response, 202)
      if (message.id === undefined) return
      const answer = message.method === 'initialize' ? initialized('2024-11-05') : textResult('hi')
      events?.write(event(result(message.id, answer)))
    })
    const client = await open(url, '2024-11-05')
    expect(await client.callTool('x')).toMatchObject(textResult('hi'))
    const posted = received.filter(({ path }) => path === '/messages?session=1')
    expect(methodsOf(posted)).toEqual(['initialize', 'notifications/initialized', 'tools/call'])
  })
})

async function waitUntil(condition: () => boolean): Promise<void> {
  while (!condition()) await new Promise((resolve) => setImmediate(resolve))
}
