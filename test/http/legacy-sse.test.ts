import { once } from 'node:events'
import { request as httpRequest } from 'node:http'
import express from 'express'
import { describe, expect, it, vi } from 'vitest'
import { connect, http } from '../../src/client.js'
import {
  type TokenVerifier,
  type ListenOptions,
  type Listening,
  httpHandler,
  listen,
  nodeHandler,
  tokens,
} from '../../src/http.js'
import { createServer, tool } from '../../src/index.js'
import { proves } from '../requirements/proves.js'
import { InitializedSession, META, POST, message, open, send, serving } from './caller.js'
import { onNode } from './embedding.js'
import { Gate, servedOverHttp } from './served.js'
import { SseCaller } from './sse-caller.js'

/* HTTP+SSE, the transport of 2024-11-05, on a real port. */

const quiet = { write: () => true }

interface Served {
  listening: Listening
  origin: string
  sse: string
  gate: Gate
  ended: Map<string, string>
  server: ReturnType<typeof servedOverHttp>['server']
}

async function servingSse(
  use: (served: Served) => Promise<void>,
  options: ListenOptions = {},
): Promise<void> {
  const { server, gate, ended } = servedOverHttp()
  await serving(server, { legacySse: true, log: quiet, ...options }, async (listening) => {
    const { origin } = new URL(listening.url)
    await use({ listening, origin, sse: `${origin}/sse`, gate, ended, server })
  })
}

const initialize = (revision: string) =>
  message(
    'initialize',
    { protocolVersion: revision, capabilities: {}, clientInfo: { name: 'x', version: '1' } },
    1,
  )
const GET = { method: 'GET', headers: { accept: 'text/event-stream' } }
const text = (value: string) => ({ result: { content: [{ type: 'text', text: value }] } })

describe('an HTTP+SSE stream', () => {
  it('begins with the URI for POST, and has the responses', async () => {
    proves('sse.endpoints', 'sse.endpoint-event')
    await servingSse(async ({ sse, listening }) => {
      const stream = await open(sse, GET)
      expect([
        stream.status,
        stream.headers['content-type'],
        stream.headers['cache-control'],
      ]).toEqual([200, 'text/event-stream', 'no-cache, no-transform'])
      const first = await stream.next()
      expect(first).toEqual({
        event: 'endpoint',
        data: expect.stringMatching(/^\/messages\?sessionId=[\w-]{32}$/),
      })
      const endpoint = new URL(first?.data ?? '', sse).href
      const post = (body: string) =>
        send(endpoint, { headers: { 'content-type': 'application/json' }, body })
      expect(await post(initialize('2024-11-05'))).toMatchObject({ status: 202, text: 'Accepted' })
      const event = await stream.next()
      expect(event).toEqual({
        event: 'message',
        data: expect.stringContaining('"protocolVersion":"2024-11-05"'),
      })
      expect((await post(message('notifications/initialized'))).status).toBe(202)
      await post(message('tools/call', { name: 'echo', arguments: { text: 'hi' } }, 'a'))
      expect(await stream.message()).toMatchObject({ id: 'a', ...text('hi') })
      expect([listening.sessions, listening.openResponses]).toEqual([1, 1])
      stream.disconnect()
      await expect.poll(() => [listening.sessions, listening.openResponses]).toEqual([0, 0])
    })
  })

  it.each([
    ['2024-11-05', '2024-11-05'],
    ['2025-03-26', '2025-03-26'],
    ['2025-06-18', '2025-06-18'],
    ['2025-11-25', '2025-11-25'],
    ['2026-07-28', '2025-11-25'],
  ])('negotiates for %s the revision %s', async (requested, negotiated) => {
    await servingSse(async ({ sse }) => {
      const caller = await SseCaller.open(sse)
      expect(await caller.initialize(requested)).toMatchObject({
        result: { protocolVersion: negotiated },
      })
      // Sent by clients of later revisions.
      const headers = { 'mcp-protocol-version': negotiated, accept: 'application/json' }
      expect((await caller.post(message('ping', undefined, 2), headers)).status).toBe(202)
      expect(await caller.stream.message()).toEqual({ jsonrpc: '2.0', id: 2, result: {} })
      caller.stream.disconnect()
    })
  })

  it('has change notifications, progress, and requests of the server', async () => {
    await servingSse(async ({ sse, gate, server }) => {
      const caller = await SseCaller.initialized(sse, '2025-11-25', {
        capabilities: { elicitation: {} },
      })
      const { stream } = caller
      expect(await caller.request('resources/subscribe', { uri: 'note://one' })).toMatchObject({
        result: {},
      })
      server.updated('note://one')
      expect(await stream.message()).toMatchObject({ method: 'notifications/resources/updated' })
      server.tools.disable('big')
      expect(await stream.message()).toMatchObject({ method: 'notifications/tools/list_changed' })
      const params = { name: 'steps', arguments: { gate: 'g' }, _meta: { progressToken: 't' } }
      await caller.post(message('tools/call', params, 'steps'))
      expect(await stream.message()).toMatchObject({
        method: 'notifications/progress',
        params: { progress: 1 },
      })
      gate.open('g')
      expect(await stream.message()).toMatchObject({ params: { progress: 2 } })
      expect(await stream.message()).toMatchObject({ id: 'steps', ...text('passed g') })
      await caller.call('ask', {}, 'ask')
      const question = (await stream.message()) as { id: number; method: string }
      expect(question.method).toBe('elicitation/create')
      const result = { action: 'accept', content: { name: 'Ada' } }
      const answered = await caller.post(
        JSON.stringify({ jsonrpc: '2.0', id: question.id, result }),
      )
      expect(answered.status).toBe(202)
      expect(await stream.message()).toMatchObject({ id: 'ask', ...text('It is Ada') })
      stream.disconnect()
    })
  })

  it('has the responses to a batch of 2025-03-26 in one message', async () => {
    await servingSse(async ({ sse }) => {
      const caller = await SseCaller.initialized(sse, '2025-03-26')
      const pings = [message('ping', undefined, 1), message('ping', undefined, 2)]
      expect((await caller.post(`[${pings.join()}]`)).status).toBe(202)
      expect(await caller.stream.message()).toMatchObject([{ id: 1 }, { id: 2 }])
      caller.stream.disconnect()
    })
  })

  it('has many large responses at once, for a client that reads', async () => {
    const gate = new Gate()
    const large = tool({
      name: 'large',
      async run() {
        await gate.wait('g')
        return 'x'.repeat(500_000)
      },
    })
    const server = createServer({ name: 'x', version: '1', tools: [large] })
    await serving(server, { legacySse: true }, async ({ url }) => {
      const caller = await SseCaller.initialized(new URL('/sse', url).href)
      for (let id = 0; id < 20; id++) await caller.call('large', {}, id)
      gate.open('g')
      for (let id = 0; id < 20; id++) expect(await caller.stream.message()).toMatchObject({ id })
      caller.stream.disconnect()
    })
  })

  it('has the responses to queued calls when a slow client reads again', async () => {
    await servingSse(async ({ sse }) => {
      const caller = await SseCaller.initialized(sse)
      const { stream } = caller
      await caller.call('quiet', { gate: 'never' }, 'never')
      stream.pause()
      // While responses are buffered, further calls are queued behind the one in progress.
      for (let id = 0; id < 40; id++) await caller.call('big', { size: 500_000 }, id)
      stream.resume()
      for (let id = 0; id < 40; id++) expect(await stream.message()).toMatchObject({ id })
      stream.disconnect()
    })
  })

  it('has keep-alive comments', async () => {
    await servingSse(
      async ({ sse }) => {
        const caller = await SseCaller.initialized(sse)
        await caller.stream.has('\n:\n\n')
        caller.stream.disconnect()
      },
      { keepAlive: 10 },
    )
  })

  it('gives each call the headers of its POST', async () => {
    const tenant = tool({
      name: 'tenant',
      run: (_, call) => JSON.stringify(call.http?.headers['x-tenant']),
    })
    await serving(
      createServer({ name: 'x', version: '1', tools: [tenant] }),
      { legacySse: true },
      async ({ url }) => {
        const caller = await SseCaller.initialized(new URL('/sse', url).href)
        await caller.post(message('tools/call', { name: 'tenant' }, 1), { 'x-tenant': 'blue' })
        expect(await caller.stream.message()).toMatchObject(text('"blue"'))
        caller.stream.disconnect()
      },
    )
  })
})

describe('the end of an HTTP+SSE stream', () => {
  it('cancels the calls in progress, and ends the session', async () => {
    await servingSse(async ({ sse, listening, ended }) => {
      const caller = await SseCaller.initialized(sse)
      await caller.call('quiet', { gate: 'never' }, 1)
      expect(listening.openResponses).toBe(2)
      caller.stream.disconnect()
      await expect.poll(() => ended.get('never')).toContain('stopped')
      expect([listening.sessions, listening.openResponses]).toEqual([0, 0])
      expect(await caller.post(message('ping', undefined, 2))).toMatchObject({
        status: 404,
        json: { error: { message: expect.stringContaining('unknown session') } },
      })
    })
  })

  it('while a body is read: the POST gets 404', async () => {
    await servingSse(async ({ sse, listening }) => {
      const caller = await SseCaller.initialized(sse)
      const body = message('ping', undefined, 7)
      const request = httpRequest(caller.endpoint, {
        method: 'POST',
        headers: { 'content-type': 'application/json', 'content-length': body.length },
      })
      request.write(body.slice(0, 10))
      // The server has the first part: a later request was served.
      await send(listening.url, GET)
      caller.stream.disconnect()
      await expect.poll(() => listening.sessions).toBe(0)
      request.end(body.slice(10))
      const [response] = (await once(request, 'response')) as [
        { statusCode: number; resume(): void },
      ]
      expect(response.statusCode).toBe(404)
      response.resume()
    })
  })

  it('is after the calls in progress if the server closes', async () => {
    await servingSse(async ({ sse, listening, gate }) => {
      const caller = await SseCaller.initialized(sse)
      await caller.call('quiet', { gate: 'g' }, 'slow')
      const closed = listening.close()
      gate.open('g')
      expect(await caller.stream.message()).toMatchObject({ id: 'slow', ...text('passed g') })
      await caller.stream.ended()
      await closed
    })
  })

  it('is after an error for calls that do not end in time', async () => {
    await servingSse(async ({ sse, listening }) => {
      const caller = await SseCaller.initialized(sse)
      await caller.call('quiet', { gate: 'never' }, 'slow')
      void listening.close(1)
      expect(await caller.stream.message()).toMatchObject({ id: 'slow', error: { code: -32603 } })
      await caller.stream.ended()
    })
  })

  it('comes for a client that does not read many responses', async () => {
    await servingSse(
      async ({ sse, listening }) => {
        const caller = await SseCaller.initialized(sse)
        caller.stream.pause()
        let status = 202
        // The buffers of the system hold a few of them.
        for (let id = 0; id < 100 && status === 202; id++)
          status = (await caller.call('big', { size: 1_000_000 }, id)).status
        expect(status).toBe(404)
        expect([listening.sessions, listening.openResponses]).toEqual([0, 0])
        const next = await SseCaller.initialized(sse)
        expect(await next.request('ping')).toMatchObject({ result: {} })
        next.stream.disconnect()
      },
      { limits: { unsentBytesPerStream: 100_000, pendingBytes: 4_000_000 } },
    )
  })

  it('comes for a client that has read nothing between two keep-alives', async () => {
    await servingSse(
      async ({ sse, listening, ended }) => {
        const caller = await SseCaller.initialized(sse)
        await caller.call('quiet', { gate: 'never' }, 'slow')
        caller.stream.pause()
        await caller.post(message('tools/call', { name: 'flood' }, 'flood'))
        const posted = caller.call('big', { size: 20_000_000 }, 'big')
        await expect.poll(() => listening.sessions, { timeout: 60_000 }).toBe(0)
        expect(ended.get('never')).toContain('stopped')
        // Otherwise it could be reset when the server closes.
        await posted
      },
      { keepAlive: 50 },
    )
  })

  it('comes for a client that does not initialize in time', async () => {
    await servingSse(
      async ({ sse, listening }) => {
        const silent = await SseCaller.open(sse)
        await silent.stream.ended()
        expect(listening.sessions).toBe(0)
      },
      { limits: { sessionIdleTimeout: 50 } },
    )
  })

  it('does not come for a client that has initialized and waits', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'Date'] })
    try {
      await servingSse(async ({ sse, listening }) => {
        const silent = await SseCaller.open(sse)
        const caller = await SseCaller.initialized(sse)
        await vi.advanceTimersByTimeAsync(24 * 3_600_000)
        await silent.stream.ended()
        expect([listening.sessions, caller.stream.isOpen]).toEqual([1, true])
        expect(await caller.request('ping')).toMatchObject({ result: {} })
        caller.stream.disconnect()
      })
    } finally {
      vi.useRealTimers()
    }
  })
})

describe('an HTTP+SSE request that is refused', () => {
  it.each([
    ['POST to the event stream', 'POST', '/sse', 'GET'],
    ['DELETE of the event stream', 'DELETE', '/sse/', 'GET'],
    ['HEAD of the event stream', 'HEAD', '/sse', 'GET'],
    ['GET of the messages', 'GET', '/messages?sessionId=x', 'POST'],
    ['OPTIONS of the messages', 'OPTIONS', '/messages', 'POST'],
  ])('%s', async (_case, method, path, allow) => {
    await servingSse(async ({ origin }) => {
      const { status, headers } = await send(origin + path, { method, headers: POST })
      expect([status, headers['allow']]).toEqual([405, allow])
    })
  })

  it.each([
    ['without a session id', '/messages', 400, 'sessionId must be sent exactly once'],
    ['with an empty session id', '/messages?sessionId=', 404, 'unknown session'],
    ['with an unknown session id', '/messages?sessionId=x', 404, 'unknown session'],
    [
      'with two session ids',
      '/messages?sessionId=x&sessionId=y',
      400,
      'sessionId must be sent exactly once',
    ],
  ])('POST %s', async (_case, path, status, words) => {
    await servingSse(async ({ origin }) => {
      expect(
        await send(origin + path, { headers: POST, body: initialize('2024-11-05') }),
      ).toMatchObject({
        status,
        json: { error: { message: expect.stringContaining(words) } },
      })
    })
  })

  it.each([
    ['that is not JSON', '{', {}, 400, -32700],
    ['that is not UTF-8', new Uint8Array([0x22, 0xff, 0x22]), {}, 400, -32700],
    ['that is no message', '{"jsonrpc":"2.0","id":5}', {}, 400, -32600],
    ['with invalid params', '{"jsonrpc":"2.0","id":5,"method":"x","params":1}', {}, 400, -32602],
    ['with an invalid response', '{"jsonrpc":"2.0","id":5,"result":1,"error":2}', {}, 400, -32600],
    ['with a batch', `[${message('ping', undefined, 1)}]`, {}, 400, -32600],
    ['that is too long', `"${'x'.repeat(2000)}"`, {}, 413, -32600],
    [
      'with another content type',
      message('ping', undefined, 1),
      { 'content-type': 'text/plain' },
      415,
      -32600,
    ],
    [
      'that is compressed',
      message('ping', undefined, 1),
      { 'content-encoding': 'gzip' },
      415,
      -32600,
    ],
  ])('a body %s, and the next one is served', async (_case, body, headers, status, code) => {
    await servingSse(
      async ({ sse }) => {
        const caller = await SseCaller.initialized(sse)
        expect(await caller.post(body, headers)).toMatchObject({
          status,
          json: { error: { code } },
        })
        expect(await caller.request('ping')).toMatchObject({ result: {} })
        caller.stream.disconnect()
      },
      { limits: { bodyBytes: 1000 } },
    )
  })

  it('a request with an id that is in progress', async () => {
    await servingSse(async ({ sse, gate }) => {
      const caller = await SseCaller.initialized(sse)
      expect((await caller.call('quiet', { gate: 'g' }, 1)).status).toBe(202)
      expect(await caller.call('echo', { text: 'no' }, 1)).toMatchObject({
        status: 400,
        json: {
          id: 1,
          error: { code: -32600, message: expect.stringContaining('still in progress') },
        },
      })
      gate.open('g')
      expect(await caller.stream.message()).toMatchObject({ id: 1, ...text('passed g') })
      caller.stream.disconnect()
    })
  })

  it('a stateless request, alone and in a batch', async () => {
    await servingSse(async ({ sse }) => {
      const caller = await SseCaller.initialized(sse, '2025-03-26')
      const stateless = message('tools/list', { _meta: META }, 1)
      for (const body of [stateless, `[${stateless}]`])
        expect(await caller.post(body)).toMatchObject({
          status: 400,
          json: {
            error: {
              code: -32022,
              data: { supported: ['2024-11-05', '2025-03-26', '2025-06-18', '2025-11-25'] },
            },
          },
        })
      caller.stream.disconnect()
    })
  })

  it('a stream that the client does not accept', async () => {
    await servingSse(async ({ sse }) => {
      expect((await send(sse, { method: 'GET', headers: { accept: 'text/html' } })).status).toBe(
        406,
      )
    })
  })

  it('another Host and another Origin', async () => {
    await servingSse(async ({ sse, origin }) => {
      for (const headers of [{ host: 'evil.example' }, { origin: 'https://evil.example' }])
        for (const [url, method] of [
          [sse, 'GET'],
          [`${origin}/messages?sessionId=x`, 'POST'],
        ] as const)
          expect((await send(url, { method, headers })).status).toBe(403)
    })
  })
})

describe('the paths of HTTP+SSE', () => {
  it('do not exist by default', async () => {
    await servingSse(
      async ({ origin }) => {
        expect((await send(`${origin}/sse`, GET)).status).toBe(404)
        expect((await send(`${origin}/messages`, { headers: POST, body: '{}' })).status).toBe(404)
      },
      { legacySse: false },
    )
  })

  it('can be chosen', async () => {
    const legacySse = { path: '/mcp/old', messagesPath: '/mcp/old-messages' }
    await servingSse(
      async ({ origin }) => {
        const caller = await SseCaller.initialized(`${origin}/mcp/old`)
        expect(new URL(caller.endpoint).pathname).toBe('/mcp/old-messages')
        expect((await send(`${origin}/sse`, GET)).status).toBe(404)
        caller.stream.disconnect()
      },
      { legacySse },
    )
  })

  it('can be relative, for a proxy that removes a prefix', async () => {
    await servingSse(
      async ({ origin }) => {
        const stream = await open(`${origin}/v1/sse`, GET)
        const { data = '' } = (await stream.next()) ?? {}
        expect(data).toMatch(/^messages\?sessionId=/)
        expect(new URL(data, 'https://example.com/api/v1/sse').pathname).toBe('/api/v1/messages')
        const url = new URL(data, `${origin}/v1/sse`).href
        expect((await send(url, { headers: POST, body: initialize('2024-11-05') })).status).toBe(
          202,
        )
        stream.disconnect()
      },
      { legacySse: { path: '/v1/sse', messagesPath: 'messages' } },
    )
  })

  it.each([
    ['without a slash', { path: 'sse' }, '"path" must be a path such as /sse'],
    ['with a slash at the end', { path: '/sse/' }, '"path"'],
    ['with a query', { path: '/sse?x' }, '"path"'],
    ['of another host', { messagesPath: '//example.com/messages' }, '"messagesPath"'],
    ['that is a URL', { messagesPath: 'https://example.com/messages' }, '"messagesPath"'],
    ['with a fragment', { messagesPath: '/messages#x' }, '"messagesPath"'],
    ['that are equal', { path: '/x', messagesPath: '/x' }, 'different paths'],
    ['that are the endpoint', { path: '/mcp' }, 'different paths'],
    ['with a typo', { mesagesPath: '/x' }, 'did you mean "messagesPath"'],
    ['that are a string', '/sse', '"legacySse" must be'],
    ['that are numbers', { path: 1 }, '"path"'],
  ])('%s are an error', async (_case, legacySse, words) => {
    const { server } = servedOverHttp()
    await expect(listen(server, { port: 0, legacySse: legacySse as object })).rejects.toThrow(words)
  })

  it('are below the prefix of an Express mount', async () => {
    const mcp = nodeHandler(servedOverHttp().server, { legacySse: true })
    await onNode(express().use('/api', mcp), async (origin) => {
      const caller = await SseCaller.initialized(`${origin}/api/sse`)
      expect(caller.endpoint).toContain(`${origin}/api/messages?`)
      expect(await caller.request('ping')).toMatchObject({ result: {} })
      await mcp.close(0)
      await caller.stream.ended()
    })
  })

  it('are served by an Express middleware beside other routes', async () => {
    const mcp = nodeHandler(servedOverHttp().server, { path: '/mcp', legacySse: true })
    const app = express()
      .use(mcp)
      .get('/other', (_request, response) => void response.send('other'))
    await onNode(app, async (origin) => {
      expect((await send(`${origin}/other`, { method: 'GET' })).text).toBe('other')
      const caller = await SseCaller.initialized(`${origin}/sse`)
      caller.stream.disconnect()
      await InitializedSession.open(`${origin}/mcp`, '2025-11-25')
      await mcp.close(0)
    })
  })

  it('are served by a fetch handler', async () => {
    const handler = httpHandler(servedOverHttp().server, { legacySse: true })
    const response = await handler(new Request('http://localhost/sse', GET))
    const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader()
    const first = await reader?.read()
    const [, endpoint = ''] = /^event: endpoint\ndata: (\S+)\n\n$/.exec(first?.value ?? '') ?? []
    const post = await handler(
      new Request(new URL(endpoint, 'http://localhost/sse'), {
        method: 'POST',
        headers: POST,
        body: initialize('2025-06-18'),
      }),
    )
    expect([post.status, await post.text()]).toEqual([202, 'Accepted'])
    expect((await reader?.read())?.value).toContain('"protocolVersion":"2025-06-18"')
    await handler.close(0)
    expect((await reader?.read())?.done).toBe(true)
  })
})

describe('HTTP+SSE with allowed origins', () => {
  it('has CORS headers', async () => {
    const origin = 'https://app.example.com'
    await servingSse(
      async ({ sse }) => {
        const preflight = await send(sse, { method: 'OPTIONS', headers: { origin } })
        expect(preflight).toMatchObject({
          status: 204,
          headers: { 'access-control-allow-origin': origin },
        })
        const caller = await SseCaller.open(sse, { origin })
        expect(caller.stream.headers['access-control-allow-origin']).toBe(origin)
        const posted = await caller.post(initialize('2024-11-05'))
        expect(posted).toMatchObject({
          status: 202,
          headers: { 'access-control-allow-origin': origin },
        })
        const refused = await caller.post('{')
        expect(refused).toMatchObject({
          status: 400,
          headers: { 'access-control-allow-origin': origin },
        })
        caller.stream.disconnect()
      },
      { origins: [origin] },
    )
  })
})

describe('HTTP+SSE with authorization', () => {
  const bearer = (token: string) => ({ authorization: `Bearer ${token}` })
  const auth = tokens([
    { token: 'alice-token-0123456789', id: 'alice', scopes: [] },
    { token: 'bob-token-01234567890', id: 'bob', scopes: [] },
  ])
  const alice = bearer('alice-token-0123456789')
  const bob = bearer('bob-token-01234567890')

  it('needs a token for both paths, and the same principal', async () => {
    await servingSse(
      async ({ sse }) => {
        expect((await send(sse, GET)).status).toBe(401)
        const caller = await SseCaller.initialized(sse, '2024-11-05', { headers: alice })
        const ping = message('ping', undefined, 9)
        expect((await send(caller.endpoint, { headers: POST, body: ping })).status).toBe(401)
        expect((await caller.post(ping, bob)).status).toBe(404)
        expect(await caller.request('ping')).toMatchObject({ result: {} })
        caller.stream.disconnect()
      },
      { auth },
    )
  })

  it('responds with 403 and a challenge to a request that needs another scope', async () => {
    const server = createServer({
      name: 'x',
      version: '1',
      tools: [tool({ name: 'admin', scopes: ['admin'], run: () => 'done' })],
    })
    await serving(server, { legacySse: true, auth }, async ({ url }) => {
      const caller = await SseCaller.initialized(new URL('/sse', url).href, '2025-11-25', {
        headers: alice,
      })
      expect(await caller.call('admin', {}, 1)).toMatchObject({
        status: 403,
        headers: { 'www-authenticate': expect.stringContaining('insufficient_scope') },
        json: { id: 1 },
      })
      caller.stream.disconnect()
    })
  })

  describe('and tokens that expire', () => {
    /** Tokens are the number of milliseconds for which they are valid. */
    async function expiring(
      use: (served: Served & { pass(milliseconds: number): void }) => Promise<void>,
    ): Promise<void> {
      vi.useFakeTimers({ toFake: ['Date'] })
      const start = Date.now()
      const timed: TokenVerifier = {
        verify: (token) => ({ id: 'alice', scopes: [], expires: start + Number(token) }),
      }
      const pass = (milliseconds: number) => void vi.setSystemTime(Date.now() + milliseconds)
      try {
        await servingSse((served) => use({ ...served, pass }), { auth: timed, keepAlive: 10 })
      } finally {
        vi.useRealTimers()
      }
    }

    it('ends the stream when the token expires', async () => {
      await expiring(async ({ sse, pass, listening }) => {
        const caller = await SseCaller.initialized(sse, '2024-11-05', { headers: bearer('60000') })
        pass(60_000)
        await caller.stream.ended()
        expect(listening.sessions).toBe(0)
      })
    })

    it('refuses a POST with a token that has expired', async () => {
      await expiring(async ({ sse, pass }) => {
        const caller = await SseCaller.initialized(sse, '2024-11-05', { headers: bearer('120000') })
        pass(60_000)
        const expired = await caller.post(message('ping', undefined, 1), bearer('60000'))
        expect(expired.status).toBe(401)
        expect(
          (await send(sse, { ...GET, headers: { ...GET.headers, ...bearer('1') } })).status,
        ).toBe(401)
        caller.stream.disconnect()
      })
    })

    it('keeps the stream of a client that sends a newer token', async () => {
      await expiring(async ({ sse, pass }) => {
        const caller = await SseCaller.initialized(sse, '2024-11-05', { headers: bearer('60000') })
        await caller.post(message('ping', undefined, 1), bearer('120000'))
        await caller.stream.message()
        pass(60_000)
        await caller.stream.has(':\n\n')
        await caller.post(message('ping', undefined, 2), bearer('120000'))
        expect(await caller.stream.message()).toMatchObject({ id: 2 })
        caller.stream.disconnect()
      })
    })

    it('sends the response to a call that outlasts its token, and no notification', async () => {
      await expiring(async ({ sse, pass, gate, server }) => {
        const caller = await SseCaller.initialized(sse, '2024-11-05', { headers: bearer('60000') })
        await caller.call('quiet', { gate: 'g' }, 'slow')
        pass(60_000)
        server.tools.disable('big')
        expect((await caller.post(message('ping', undefined, 3), bearer('120000'))).status).toBe(
          404,
        )
        gate.open('g')
        expect(await caller.stream.message()).toMatchObject({ id: 'slow', ...text('passed g') })
        await caller.stream.ended()
      })
    })
  })
})

describe('the limits of HTTP+SSE', () => {
  const tooMany = { status: 503, headers: { 'retry-after': '5' } }

  it('count the sessions of both transports', async () => {
    await servingSse(
      async ({ sse, listening }) => {
        const first = await SseCaller.initialized(sse)
        await InitializedSession.open(listening.url, '2025-11-25')
        expect(await send(sse, GET)).toMatchObject(tooMany)
        const refused = await send(listening.url, { headers: POST, body: initialize('2025-11-25') })
        expect(refused).toMatchObject(tooMany)
        first.stream.disconnect()
        await expect.poll(() => listening.sessions).toBe(1)
        const second = await SseCaller.initialized(sse)
        second.stream.disconnect()
      },
      { limits: { sessions: 2 } },
    )
  })

  it('count streams and calls in progress', async () => {
    await servingSse(
      async ({ sse, gate }) => {
        const caller = await SseCaller.initialized(sse)
        await caller.call('quiet', { gate: 'g' }, 1)
        expect(await send(sse, GET)).toMatchObject(tooMany)
        expect(await caller.call('echo', { text: 'x' }, 2)).toMatchObject(tooMany)
        gate.open('g')
        expect(await caller.stream.message()).toMatchObject({ id: 1 })
        await caller.call('echo', { text: 'x' }, 2)
        expect(await caller.stream.message()).toMatchObject({ id: 2, ...text('x') })
        caller.stream.disconnect()
      },
      { limits: { openResponses: 2 } },
    )
  })

  it('bound the memory of streams per principal', async () => {
    const auth: TokenVerifier = { verify: (token) => ({ id: token, scopes: [] }) }
    await servingSse(
      async ({ sse }) => {
        const as = (id: string) => ({ authorization: `Bearer ${id}` })
        const open = [
          await SseCaller.open(sse, as('alice')),
          await SseCaller.open(sse, as('alice')),
        ]
        expect(await send(sse, { method: 'GET', headers: as('alice') })).toMatchObject(tooMany)
        open.push(await SseCaller.open(sse, as('bob')))
        for (const { stream } of open) stream.disconnect()
      },
      { auth, limits: { retainedBytes: 80_000, retainedBytesPerPrincipal: 30_000 } },
    )
  })

  it('bound the memory of initialize', async () => {
    await servingSse(
      async ({ sse, listening }) => {
        const caller = await SseCaller.open(sse)
        const clientInfo = { name: 'x'.repeat(200), version: '1', description: 'y'.repeat(1000) }
        const params = { protocolVersion: '2024-11-05', capabilities: {}, clientInfo }
        expect(await caller.post(message('initialize', params, 1))).toMatchObject(tooMany)
        expect(await caller.initialize('2024-11-05')).toMatchObject({ result: {} })
        caller.stream.disconnect()
        await expect.poll(() => listening.sessions).toBe(0)
      },
      { limits: { retainedBytes: 16_000 } },
    )
  })

  it('bound the memory of calls in progress, with their headers', async () => {
    await servingSse(
      async ({ sse, gate }) => {
        const caller = await SseCaller.initialized(sse)
        const headers = { 'x-long': 'x'.repeat(10_000) }
        const call = (id: number) =>
          caller.post(
            message('tools/call', { name: 'quiet', arguments: { gate: 'g' } }, id),
            headers,
          )
        // Each call takes 3 KiB, and its headers 20 KB.
        const statuses: number[] = []
        for (let id = 0; id < 10; id++) statuses.push((await call(id)).status)
        expect(statuses).toEqual([202, 202, 202, 202, 202, 503, 503, 503, 503, 503])
        gate.open('g')
        for (let id = 0; id < 5; id++) expect(await caller.stream.message()).toMatchObject({ id })
        expect((await call(10)).status).toBe(202)
        caller.stream.disconnect()
      },
      { limits: { pendingBytes: 100_000, pendingBytesPerClient: 1_000_000 } },
    )
  })

  it('bound many streams in number', async () => {
    await servingSse(
      async ({ sse, listening }) => {
        const streams = await Promise.all(Array.from({ length: 60 }, () => open(sse, GET)))
        const statuses = streams.map(({ status }) => status)
        expect(statuses.filter((status) => status === 200)).toHaveLength(20)
        expect(statuses.filter((status) => status === 503)).toHaveLength(40)
        expect(listening.sessions).toBe(20)
        for (const stream of streams) stream.disconnect()
        await expect.poll(() => [listening.sessions, listening.openResponses]).toEqual([0, 0])
      },
      { limits: { sessions: 20 } },
    )
  })
})

describe('Streamable HTTP and HTTP+SSE on one server', () => {
  it.each([
    ['/mcp', undefined, '2026-07-28'],
    ['/mcp', '2025-11-25', '2025-11-25'],
    ['/sse', undefined, '2025-11-25'],
    ['/sse', '2024-11-05', '2024-11-05'],
  ] as const)('connect(http(…%s)), revision %s', async (path, revision, negotiated) => {
    await servingSse(async ({ origin }) => {
      const target = http(origin + path)
      const client = await connect(target, revision === undefined ? {} : { revision })
      expect(client.revision).toBe(negotiated)
      expect(await client.callTool('echo', { text: 'hi' })).toMatchObject({
        content: [{ text: 'hi' }],
      })
      await client.close()
    })
  })

  it('refuses a client that wants 2026-07-28 over HTTP+SSE', async () => {
    await servingSse(async ({ sse }) => {
      await expect(connect(http(sse), { revision: '2026-07-28' })).rejects.toThrow('2026-07-28')
    })
  })

  it('shows both messages to the tap', async () => {
    const seen: string[] = []
    await servingSse(
      async ({ sse }) => {
        const caller = await SseCaller.initialized(sse)
        expect(seen.map((frame) => frame.slice(0, 5))).toEqual(['in {"', 'out {', 'in {"'])
        caller.stream.disconnect()
      },
      { tap: ({ direction, frame }) => void seen.push(`${direction} ${frame}`) },
    )
  })
})
