import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { request as httpsRequest } from 'node:https'
import { type Socket, connect } from 'node:net'
import { connect as tlsConnect } from 'node:tls'
import { describe, expect, it, vi } from 'vitest'
import { MemoryEventStore, listen } from '../../src/http.js'
import { createServer, tool } from '../../src/index.js'
import { onStillClock } from '../clock.js'
import {
  InitializedSession,
  POST,
  type Sending,
  Stream,
  statelessRequest,
  message,
  open,
  send,
  serving,
} from './caller.js'
import { proves } from '../requirements/proves.js'
import { servedOverHttp } from './served.js'

const until = (condition: () => void) => vi.waitFor(condition, { timeout: 60_000, interval: 5 })
const echo = (text: string, id: string | number = 1) =>
  statelessRequest('tools/call', { name: 'echo', arguments: { text } }, id)
const withHeaders = (sending: Sending, headers: Record<string, string>): Sending => ({
  ...sending,
  headers: { ...(sending.headers as Record<string, string>), ...headers },
})

describe('web pages', () => {
  const ROUTES: [string, string, Sending][] = [
    ['POST', '/mcp', echo('x')],
    ['GET', '/mcp', { method: 'GET', headers: { accept: 'text/event-stream' } }],
    ['DELETE', '/mcp', { method: 'DELETE', headers: {} }],
    ['OPTIONS', '/mcp', { method: 'OPTIONS', headers: {} }],
    ['GET', '/healthz', { method: 'GET', headers: {} }],
    ['GET', '/.well-known/oauth-protected-resource', { method: 'GET', headers: {} }],
    ['GET', '/anything', { method: 'GET', headers: {} }],
  ]
  const STRANGERS: Record<string, string>[] = [
    { host: 'evil.example' },
    { host: 'evil.example:80', origin: 'http://evil.example' },
    { origin: 'http://evil.example' },
    { origin: 'https://localhost.evil.example' },
    { origin: 'null' },
    { origin: 'file://' },
    { origin: 'http://127.0.0.1:1' },
  ]

  it('of other origins get 403, with any Host', async () => {
    proves('http.origin', 'http.origin-403')
    await serving(servedOverHttp().server, {}, async ({ url }) => {
      for (const [, path, sending] of ROUTES) {
        for (const headers of STRANGERS) {
          const { status, headers: answered } = await send(
            new URL(path, url).href,
            withHeaders(sending, headers),
          )
          expect([path, headers, status]).toEqual([path, headers, 403])
          expect(Object.keys(answered).filter((name) => name.startsWith('access-control'))).toEqual(
            [],
          )
        }
      }
    })
  })

  it('of the same origin are allowed', async () => {
    await serving(servedOverHttp().server, {}, async ({ url, port }) => {
      for (const host of [`localhost:${port}`, `127.0.0.1:${port}`, 'LOCALHOST', '[::1]:80'])
        expect(
          (
            await send(
              url,
              withHeaders(echo('x'), { host, origin: `http://${host.toLowerCase()}` }),
            )
          ).status,
        ).toBe(200)
    })
  })

  it('of allowed origins get CORS headers', async () => {
    const origin = 'https://app.example.com'
    await serving(
      servedOverHttp().server,
      { origins: [`${origin}/`], hosts: ['mcp.example.com'] },
      async ({ url }) => {
        const asked = await send(url, {
          method: 'OPTIONS',
          headers: { origin, host: 'mcp.example.com', 'access-control-request-method': 'POST' },
        })
        expect([asked.status, asked.text]).toEqual([204, ''])
        expect(asked.headers).toMatchObject({
          'access-control-allow-origin': origin,
          vary: 'Origin',
        })
        expect(asked.headers['access-control-allow-headers']).toBe('*, Authorization')
        const answered = await send(
          url,
          withHeaders(echo('x'), { origin, host: 'mcp.example.com:443' }),
        )
        expect([answered.status, answered.headers['access-control-allow-origin']]).toEqual([
          200,
          origin,
        ])
        const params = {
          protocolVersion: '2025-11-25',
          capabilities: {},
          clientInfo: { name: 'page', version: '1' },
        }
        const opened = await send(url, {
          headers: { ...POST, origin },
          body: message('initialize', params, 1),
        })
        expect(opened.headers['access-control-expose-headers']).toContain('Mcp-Session-Id')
        const refused = await send(
          url,
          withHeaders(echo('x'), { origin: 'https://other.example.com' }),
        )
        expect([refused.status, refused.headers['access-control-allow-origin']]).toEqual([
          403,
          undefined,
        ])
      },
    )
  })

  it('of allowed origins can read metadata and every error response', async () => {
    const headers = { origin: 'https://app.example.com' }
    const auth = { resource: 'http://localhost/mcp', verify: () => ({ id: 'x', scopes: [] }) }
    await serving(
      servedOverHttp().server,
      { origins: [headers.origin], auth, limits: { bodyBytes: 1000 } },
      async ({ url }) => {
        const document = new URL('/.well-known/oauth-protected-resource/mcp', url).href
        const asking = {
          ...headers,
          'access-control-request-method': 'GET',
          'access-control-request-headers': 'mcp-protocol-version',
        }
        const asked = await send(document, { method: 'OPTIONS', headers: asking })
        expect([asked.status, asked.headers['access-control-allow-origin']]).toEqual([
          204,
          headers.origin,
        ])
        const more = {
          ...POST,
          ...headers,
          authorization: 'Bearer x',
          'transfer-encoding': 'chunked',
        }
        const refused = await send(url, { headers: more, body: 'x'.repeat(2000) })
        expect([refused.status, refused.headers['access-control-allow-origin']]).toEqual([
          413,
          headers.origin,
        ])
      },
    )
  })

  it.each([
    'https://mcp.example.com',
    'mcp.example.com/mcp',
    'me@mcp.example.com',
    '*:x',
    '::1',
    '',
  ])('call by names, and %j is none', async (name) => {
    await expect(listen(servedOverHttp().server, { port: 0, hosts: [name] })).rejects.toThrow(
      '"hosts" must list names',
    )
  })

  it.each(['MCP.example.com', 'mcp.example.com:8080', '10.1.2.3', '[fd00::1]'])(
    'call by a name that was told: %s',
    async (host) => {
      await serving(servedOverHttp().server, { hosts: [host] }, async ({ url }) => {
        expect((await send(url, withHeaders(echo('x'), { host: host.toLowerCase() }))).status).toBe(
          200,
        )
        expect(
          (await send(url, withHeaders(echo('x'), { host: 'other.example.com' }))).status,
        ).toBe(403)
      })
    },
  )

  it.each([{ origins: ['app.example.com'] }, { origins: ['*'] }])(
    'must be named rightly: %j',
    async (options) => {
      await expect(listen(servedOverHttp().server, { port: 0, ...options })).rejects.toThrow(
        '"origins" must list origins',
      )
    },
  )
})

describe('other machines', () => {
  it.each(['0.0.0.0', '::', '192.168.1.5', 'mcp.example.com'])(
    'are not served on %s by accident',
    async (host) => {
      proves('http.localhost', 'http.authentication')
      await expect(listen(servedOverHttp().server, { port: 0, host })).rejects.toThrow(
        'allowUnauthenticated: true',
      )
    },
  )

  it('are served with allowUnauthenticated, by address but not by any name', async () => {
    await serving(
      servedOverHttp().server,
      { host: '0.0.0.0', allowUnauthenticated: true },
      async ({ port }) => {
        const url = `http://127.0.0.1:${port}/mcp`
        expect((await send(url, withHeaders(echo('x'), { host: '10.1.2.3:80' }))).status).toBe(200)
        expect((await send(url, withHeaders(echo('x'), { host: 'evil.example' }))).status).toBe(403)
      },
    )
  })
})

describe('slow clients', () => {
  const ended = (socket: Socket) =>
    new Promise<void>((resolve) =>
      socket
        .on('close', () => resolve())
        .on('error', () => {})
        .resume(),
    )

  /** Connections with a request that is never complete: half of them never end their head, the others never end their body. */
  const incomplete = (port: number) =>
    [...Array(50).keys()].map((i) => {
      const head =
        'POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n'
      const socket = connect(port, '127.0.0.1').on('error', () => {})
      socket.write(i % 2 === 0 ? head : `${head}\r\n{`)
      return socket
    })

  it('do not keep others from being served', async () => {
    await serving(servedOverHttp().server, {}, async ({ url, port }) => {
      const slow = incomplete(port)
      expect((await send(url, echo('x'))).status).toBe(200)
      for (const socket of slow) socket.destroy()
    })
  })

  it('are disconnected by the request timeouts', async () => {
    await serving(
      servedOverHttp().server,
      { headersTimeout: 1000, requestTimeout: 1500 },
      async ({ port }) => void (await Promise.all(incomplete(port).map(ended))),
    )
  })

  it('have the request timeout for the headers if it is shorter', async () => {
    await serving(servedOverHttp().server, { requestTimeout: 1000 }, async ({ url, port }) => {
      // Again if the process stood still for longer than the timeout.
      await until(async () => expect((await send(url, echo('x'))).status).toBe(200))
      const socket = connect(port, '127.0.0.1')
      socket.write('POST /mcp HTTP/1.1\r\n')
      await ended(socket)
    })
  })

  const piped = (count: number) =>
    [...Array(count).keys()].map((i) => {
      const { headers, body } = statelessRequest(
        'tools/call',
        { name: 'quiet', arguments: { gate: `piped ${i}` } },
        i,
      )
      const lines = Object.entries({
        host: 'localhost',
        'content-length': body.length,
        ...(headers as object),
      }).map((line) => line.join(': '))
      return `POST /mcp HTTP/1.1\r\n${lines.join('\r\n')}\r\n\r\n${body.toString()}`
    })

  it('with pipelined requests are served one after the other', async () => {
    const { server, gate, ended: left } = servedOverHttp()
    await serving(server, { keepAlive: 0 }, async (listening) => {
      const socket = connect(listening.port, '127.0.0.1')
      let text = ''
      socket.on('data', (chunk) => (text += chunk.toString()))
      socket.write(piped(20).join(''))
      gate.open('piped 0')
      gate.open('piped 2')
      await until(() => expect(text).toContain('passed piped 0'))
      expect([listening.openResponses, text.includes('passed piped 2')]).toEqual([1, false])
      gate.open('piped 1')
      await until(() => expect(text).toContain('passed piped 2'))
      expect(text.indexOf('passed piped 1')).toBeLessThan(text.indexOf('passed piped 2'))
      expect(listening.openResponses).toBe(1)
      socket.destroy()
      await until(() =>
        expect([listening.openResponses, [...left.keys()]]).toEqual([0, ['piped 3']]),
      )
    })
  })

  it('with too many pipelined requests are disconnected', async () => {
    await serving(servedOverHttp().server, {}, async ({ url, port }) => {
      const socket = connect(port, '127.0.0.1')
      socket.write(piped(200).join(''))
      await ended(socket)
      expect((await send(url, echo('x'))).status).toBe(200)
    })
  })

  it('that do not read get fewer log messages, and their response', async () => {
    const { server, ended: outcome } = servedOverHttp()
    await serving(server, { limits: { unsentBytesPerStream: 500_000 } }, async (listening) => {
      const level = { _meta: { 'io.modelcontextprotocol/logLevel': 'debug' } }
      const stream = await open(
        listening.url,
        statelessRequest('tools/call', { name: 'flood', ...level }),
      )
      stream.pause()
      await until(() => expect(outcome.get('flood')).toBe('done'))
      stream.resume()
      await stream.ended()
      expect(stream.text).toContain('flooded')
      // What the systems between them hold has come, and little more. All of it would be 20 MB.
      expect(stream.text.length).toBeLessThan(15_000_000)
    })
  })

  const uri = `note://${'x'.repeat(8_000)}`
  /** 50 MB of changes, and more until the client is cut off: how much the system buffers for a connection is not known. */
  const flood = async (
    server: ReturnType<typeof servedOverHttp>['server'],
    cutOff: () => boolean = () => true,
  ) => {
    const deadline = Date.now() + 60_000
    for (let i = 0; i < 6250 || (!cutOff() && Date.now() < deadline); i++) {
      server.updated(uri)
      // Changes of one turn are told as one.
      await new Promise(setImmediate)
    }
  }

  it('that do not read get one change notification, and are disconnected', async () => {
    const { server } = servedOverHttp()
    await serving(server, { keepAlive: 50 }, async (listening) => {
      const stream = await open(
        listening.url,
        statelessRequest('subscriptions/listen', {
          notifications: { resourceSubscriptions: [uri] },
        }),
      )
      await stream.message()
      stream.pause()
      await flood(server, () => listening.openResponses === 0)
      expect(listening.openResponses).toBe(0)
      stream.resume()
      await stream.ended()
      // All of it would be 50 MB.
      expect(stream.text.length).toBeLessThan(20_000_000)
    })
  })

  it('that do not read the GET stream are disconnected; their stored events are bounded', async () => {
    const { server } = servedOverHttp()
    const eventStore = new MemoryEventStore({ maxBytesPerStream: 1_000_000 })
    await serving(server, { keepAlive: 50, eventStore }, async (listening) => {
      const client = await InitializedSession.open(listening.url, '2025-11-25')
      await client.request('resources/subscribe', { uri })
      const own = await client.listen()
      own.pause()
      await flood(server, () => listening.openResponses === 0)
      expect(listening.openResponses).toBe(0)
      own.disconnect()
      // Nobody listens now: all of it is kept, as far as there is room.
      await flood(server)
      expect(eventStore.size).toBeLessThanOrEqual(1_001_000)
      expect(eventStore.size).toBeGreaterThan(500_000)
      const rest = await client.listen('g.0')
      for (let i = 0; i < 15; i++)
        expect(await rest.message()).toMatchObject({ method: 'notifications/resources/updated' })
      rest.disconnect()
      await client.end()
      expect(eventStore.size).toBe(0)
    })
  })

  describe('unsent responses', () => {
    const size = 20_000_000
    const server = createServer({
      name: 'big',
      version: '1',
      tools: [
        tool({
          name: 'big',
          async run(_, call) {
            call.progress(1, 2)
            await new Promise(setImmediate)
            return 'x'.repeat(size)
          },
        }),
      ],
    })

    /** Whether three that do not read at first get all of it in the end. */
    const complete = async (ask: () => Promise<Stream>) => {
      const streams: Stream[] = []
      for (let i = 0; i < 3; i++) {
        const stream = await ask()
        stream.pause()
        streams.push(stream)
      }
      const all = []
      for (const stream of streams) {
        stream.resume()
        await stream.ended()
        all.push(stream.text.length > size)
      }
      return all
    }

    it('are destroyed beyond the limit, oldest first', async () => {
      await serving(server, { limits: { unsentBytes: 2.5 * size } }, async ({ url }) => {
        const big = statelessRequest('tools/call', { name: 'big' })
        expect(await complete(() => open(url, big))).toEqual([false, true, true])
        // What has been read counts no more.
        for (let i = 0; i < 3; i++) expect((await send(url, big)).text.length).toBeGreaterThan(size)
      })
    })

    it('count also when they are replayed', async () => {
      await serving(server, { limits: { unsentBytes: 2.5 * size } }, async ({ url }) => {
        const client = await InitializedSession.open(url, '2025-11-25')
        const first = await client.stream('tools/call', {
          name: 'big',
          _meta: { progressToken: 1 },
        })
        await first.ended()
        expect(await complete(() => client.listen(first.seen[0]?.id))).toEqual([false, true, true])
      })
    })
  })

  it('without traffic are disconnected', async () => {
    const { server } = servedOverHttp()
    await serving(server, { inactivityTimeout: 60 }, async (listening) => {
      const socket = connect(listening.port, '127.0.0.1')
      const { headers, body } = statelessRequest('tools/call', {
        name: 'big',
        arguments: { size: 30_000_000 },
      })
      const lines = Object.entries(headers as Record<string, string>).map(
        ([name, value]) => `${name}: ${value}\r\n`,
      )
      socket.pause()
      socket.write(
        `POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: ${Buffer.byteLength(body)}\r\n${lines.join('')}\r\n${String(body)}`,
      )
      let closed = false
      socket.on('close', () => (closed = true)).on('error', () => {})
      // Who does not read learns that the connection is gone by writing.
      const write = () => {
        socket.write('\r\n')
        expect(closed).toBe(true)
      }
      // Not too often: that would be a sign of life.
      await vi.waitFor(write, { timeout: 60_000, interval: 300 })
      expect(socket.bytesRead).toBe(0)
    })
  })
})

describe('JSON', () => {
  it.each([
    'application/json;charset=UTF-8',
    'Application/JSON ; charset="utf-8"',
    'application/json;',
    'application/json; v=1; charset=utf-8',
  ])('may be said in other words: %s', async (type) => {
    await serving(servedOverHttp().server, {}, async ({ url }) => {
      expect((await send(url, withHeaders(echo('x'), { 'content-type': type }))).status).toBe(200)
    })
  })
})

describe('limits', () => {
  it('of open responses', async () => {
    await serving(servedOverHttp().server, { limits: { openResponses: 2 } }, async ({ url }) => {
      const streams = []
      for (const id of [1, 2])
        streams.push(
          await open(url, statelessRequest('subscriptions/listen', { notifications: {} }, id)),
        )
      const { status, headers, json } = await send(url, echo('x'))
      expect([status, headers['retry-after']]).toEqual([503, '5'])
      expect(json).toMatchObject({ id: 1, error: { code: -32603 } })
      for (const stream of streams) stream.disconnect()
      await until(async () => expect((await send(url, echo('x'))).status).toBe(200))
    })
  })

  it('of open responses, also for batches and initialize', async () => {
    const { server, gate } = servedOverHttp()
    await serving(server, { limits: { openResponses: 1 } }, async ({ url }) => {
      const client = await InitializedSession.open(url, '2025-03-26')
      const stream = await open(
        url,
        statelessRequest('subscriptions/listen', { notifications: {} }),
      )
      const { status, json } = await client.post(
        `[${message('tools/call', { name: 'quiet', arguments: { gate: 'batch' } }, 1)}]`,
      )
      expect([status, json]).toMatchObject([503, { error: { code: -32603 } }])
      await expect(InitializedSession.open(url, '2025-11-25')).rejects.toThrow('503')
      stream.disconnect()
      gate.open('batch')
    })
  })

  it('of sessions, also while initialize is in progress', async () => {
    const opening: (() => void)[] = []
    const server = createServer({ name: 'slow to open', version: '1' })
    server.use(async (_, next) => {
      await new Promise<void>((resolve) => opening.push(resolve))
      return await next()
    })
    await serving(server, { limits: { sessions: 2 } }, async (listening) => {
      const params = {
        protocolVersion: '2025-11-25',
        capabilities: {},
        clientInfo: { name: 'test', version: '1' },
      }
      const sending = { headers: POST, body: message('initialize', params, 1) }
      const controller = new AbortController()
      const gone = expect(
        fetch(listening.url, { method: 'POST', ...sending, signal: controller.signal }),
      ).rejects.toThrow()
      await until(() => expect(opening).toHaveLength(1))
      controller.abort()
      await gone
      await until(() => expect(listening.openResponses).toBe(0))
      const answer = send(listening.url, sending)
      await until(() => expect(opening).toHaveLength(2))
      expect((await send(listening.url, sending)).status).toBe(503)
      for (const go of opening) go()
      expect((await answer).status).toBe(200)
      await until(() => expect(listening.sessions).toBe(1))
    })
  })

  it('of sessions, with eviction of idle ones', () =>
    onStillClock(async (pass) => {
      await serving(
        servedOverHttp().server,
        { limits: { sessions: 2, sessionIdleTimeout: 600_000 } },
        async (listening) => {
          const first = await InitializedSession.open(listening.url, '2025-11-25')
          const own = await first.listen()
          await InitializedSession.open(listening.url, '2025-11-25')
          await pass(59_000)
          await expect(InitializedSession.open(listening.url, '2025-11-25')).rejects.toThrow('503')
          await pass(2_000)
          expect(listening.sessions).toBe(2)
          const third = await InitializedSession.open(listening.url, '2025-11-25')
          expect((await third.request('ping')).status).toBe(200)
          expect((await first.request('ping')).status).toBe(200)
          expect(listening.sessions).toBe(2)
          own.disconnect()
        },
      )
    }))

  it('of idle time: an idle session ends, one with an open stream does not', () =>
    onStillClock(async (pass) => {
      await serving(
        servedOverHttp().server,
        { limits: { sessionIdleTimeout: 60_000 } },
        async (listening) => {
          const idle = await InitializedSession.open(listening.url, '2025-11-25')
          const busy = await InitializedSession.open(listening.url, '2025-11-25')
          const own = await busy.listen()
          await pass(59_000)
          expect(listening.sessions).toBe(2)
          await pass(61_000)
          expect(listening.sessions).toBe(1)
          expect((await idle.request('ping')).status).toBe(404)
          expect((await busy.request('ping')).status).toBe(200)
          own.disconnect()
          await until(() => expect(listening.openResponses).toBe(0))
          await pass(120_000)
          expect(listening.sessions).toBe(0)
        },
      )
    }))

  it.each([-2, 2])('of idle time, whatever the date says (%i hours)', (hours) =>
    onStillClock(async (pass) => {
      const limits = { sessionIdleTimeout: 600_000 }
      await serving(servedOverHttp().server, { limits }, async (listening) => {
        const client = await InitializedSession.open(listening.url, '2025-11-25')
        vi.setSystemTime(Date.now() + hours * 3_600_000)
        await pass(300_000)
        expect((await client.request('ping')).status).toBe(200)
        await pass(900_000)
        expect(listening.sessions).toBe(0)
      })
    }),
  )

  it('of idle time: a session whose client has disconnected ends despite calls in progress', () =>
    onStillClock(async (pass) => {
      const { server, ended } = servedOverHttp()
      await serving(server, { limits: { sessionIdleTimeout: 60_000 } }, async (listening) => {
        const client = await InitializedSession.open(listening.url, '2025-06-18', {
          elicitation: {},
        })
        const asked = await client.stream('tools/call', { name: 'ask', arguments: {} })
        const socket = connect(listening.port, '127.0.0.1')
        const body = message('tools/call', { name: 'quiet', arguments: { gate: 'never' } }, 7)
        const lines = Object.entries({
          host: 'localhost',
          'content-length': body.length,
          ...POST,
          ...client.headers,
        })
        socket.write(
          `POST /mcp HTTP/1.1\r\n${lines.map((line) => line.join(': ')).join('\r\n')}\r\n\r\n${body}`,
        )
        await until(() => expect(listening.openResponses).toBe(2))
        asked.disconnect()
        socket.destroy()
        await until(() => expect(listening.openResponses).toBe(0))
        expect(listening.sessions).toBe(1)
        await pass(120_000)
        expect(listening.sessions).toBe(0)
        await until(() => expect(ended.get('never')).toMatch(/^stopped/))
      })
    }))

  it('of a body without Content-Length', async () => {
    await serving(
      servedOverHttp().server,
      { limits: { bodyBytes: 1000 } },
      async ({ url, port }) => {
        const socket = connect(port, '127.0.0.1')
        socket.write(
          'POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n',
        )
        const piece = `1f4\r\n${'x'.repeat(500)}\r\n`
        socket.write(piece.repeat(10))
        const answer = await new Promise<string>((resolve) =>
          socket.once('data', (chunk: Buffer) => resolve(chunk.toString())),
        )
        expect(answer).toMatch(/^HTTP\/1\.1 413 /)
        socket.destroy()
        expect((await send(url, echo('x'))).status).toBe(200)
      },
    )
  })

  it('of incomplete bodies', async () => {
    await serving(
      servedOverHttp().server,
      { limits: { bodyBytes: 100_000, incompleteBodyBytes: 500_000 } },
      async ({ url, port }) => {
        const head =
          'POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 90000\r\n\r\n'
        const stalled = [...Array(8).keys()].map(() => {
          const socket = connect(port, '127.0.0.1')
          socket.on('error', () => {}).write(head + 'x'.repeat(89_000))
          return socket
        })
        const large = echo('x'.repeat(80_000))
        await until(async () => expect((await send(url, large)).status).toBe(503))
        expect((await send(url, large)).json).toMatchObject({ error: { code: -32603 } })
        for (const socket of stalled) socket.destroy()
        await until(async () => expect((await send(url, large)).status).toBe(200))
      },
    )
  })

  it('of how much of a refused body is discarded', async () => {
    await serving(servedOverHttp().server, { limits: { bodyBytes: 1000 } }, async ({ port }) => {
      const socket = connect(port, '127.0.0.1')
      let closed = false
      socket.on('close', () => (closed = true)).on('error', () => {})
      socket.write(
        'POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n',
      )
      await until(() => {
        socket.write(`1f4\r\n${'x'.repeat(500)}\r\n`)
        expect(closed).toBe(true)
      })
    })
  })

  it.each([{ limits: { bodyBytes: Number.NaN } }, { limits: { sessions: -1 } }, { keepAlive: -5 }])(
    'must be numbers: %j',
    async (options) => {
      await expect(listen(servedOverHttp().server, { port: 0, ...options })).rejects.toThrow(
        'must be a number',
      )
    },
  )
})

describe('messages', () => {
  it('are given to tap, in both directions', async () => {
    const seen: string[] = []
    const tap = ({ direction, frame }: { direction: string; frame: string }) =>
      seen.push(`${direction} ${frame.slice(0, 60)}`)
    const { server, gate } = servedOverHttp()
    gate.open('t')
    await serving(server, { tap }, async ({ url }) => {
      await send(
        url,
        statelessRequest('tools/call', {
          name: 'steps',
          arguments: { gate: 't' },
          _meta: { progressToken: 1 },
        }),
      )
      const client = await InitializedSession.open(url, '2025-06-18')
      const own = await client.listen()
      server.tools.disable('big')
      await own.message()
      own.disconnect()
    })
    expect(
      seen.map((each) => each.replace(/^(\w+) .*?"(method|result)":?"?([\w/]*).*$/, '$1 $2 $3')),
    ).toEqual([
      'in method tools/call',
      'out method notifications/progress',
      'out result ',
      'in method initialize',
      'out result ',
      'in method notifications/initialized',
      'out method notifications/tools/list_changed',
    ])
  })

  it('that are refused are logged at level debug', async () => {
    const log: string[] = []
    await serving(
      servedOverHttp().server,
      { log: { write: (line) => log.push(line) }, logLevel: 'debug' },
      async ({ url }) => {
        await send(url, withHeaders(echo('x'), { 'mcp-name': 'other' }))
      },
    )
    expect(log.join('')).toContain(
      'POST /mcp was refused with status 400: Header mismatch: the header Mcp-Name',
    )
  })
})

describe('internal errors', () => {
  it('have a reference, which is logged with the reason', async () => {
    const log: string[] = []
    await serving(
      servedOverHttp().server,
      { log: { write: (line) => log.push(line) } },
      async ({ url }) => {
        const { text } = await send(url, statelessRequest('tools/call', { name: 'broken' }))
        expect(text).not.toContain('secret')
        const [, reference = '?'] =
          /Tool broken failed \(reference ([0-9a-f]{8})\)/.exec(text) ?? []
        expect(log.join('')).toContain(`(reference ${reference})`)
        expect(log.join('')).toContain('secret /etc/passwd')
        const read = await send(url, statelessRequest('resources/read', { uri: 'note://broken' }))
        expect(read.json).toMatchObject({
          error: {
            code: -32603,
            message: expect.stringMatching(/^Internal error \(reference [0-9a-f]{8}\)$/) as string,
          },
        })
      },
    )
  })
})

describe('many clients', () => {
  it('of one server never get the messages of another', async () => {
    const { server } = servedOverHttp()
    await serving(server, {}, async ({ url }) => {
      const each = <Value>(count: number, make: (index: number) => Promise<Value>) =>
        Promise.all([...Array(count).keys()].map(make))
      const clients = await each(150, () => InitializedSession.open(url, '2025-11-25'))
      expect(new Set(clients.map(({ session }) => session)).size).toBe(150)
      // All of them use the same ids, at the same time.
      const sessions = each(150, async (index) => {
        for (const id of [1, 2, 3]) {
          const secret = `s${index}-${id}`
          const { json } =
            (await clients[index]?.post(
              message('tools/call', { name: 'echo', arguments: { text: secret } }, id),
            )) ?? {}
          expect(json).toMatchObject({ id, result: { content: [{ text: secret }] } })
        }
      })
      const alone = each(300, async (index) => {
        const { json } = await send(url, echo(`m${index}`, 1))
        expect(json).toMatchObject({ id: 1, result: { content: [{ text: `m${index}` }] } })
      })
      await Promise.all([sessions, alone])
      // Events of one session are none of another.
      const own = (await clients[0]?.listen()) ?? expect.unreachable()
      await clients[0]?.request('resources/subscribe', { uri: 'note://one' })
      server.updated('note://one')
      await own.message()
      const stolen = await clients[1]?.listen(own.seen.at(-1)?.id)
      server.updated('note://one')
      await own.message()
      expect(stolen?.text).not.toContain('note://one')
      stolen?.disconnect()
      own.disconnect()
    })
  })
})

describe('closing', () => {
  it('does not wait for connections without a request', async () => {
    const listening = await listen(servedOverHttp().server, { port: 0 })
    const silent = connect(listening.port, '127.0.0.1').on('error', () => {})
    await once(silent, 'connect')
    expect((await send(listening.url, echo('x'))).status).toBe(200)
    // Without a deadline: if it waited, this would never end.
    await listening.close(2 ** 31 - 1)
    silent.destroy()
  })
})

describe('https', () => {
  const pem = (name: string) => readFileSync(new URL(`tls/${name}.pem`, import.meta.url))

  it('limits the time of the TLS handshake', async () => {
    await serving(
      servedOverHttp().server,
      { tls: { cert: pem('cert'), key: pem('key') }, headersTimeout: 50 },
      async ({ port }) => {
        const silent = connect(port, '127.0.0.1')
        silent.resume()
        await once(silent, 'close')
      },
    )
  })

  it('closes connections within the TLS handshake', async () => {
    const listening = await listen(servedOverHttp().server, {
      port: 0,
      tls: { cert: pem('cert'), key: pem('key') },
    })
    const silent = connect(listening.port, '127.0.0.1').on('error', () => {})
    await once(silent, 'connect')
    // A second one is let in after the first: by then the server knows of that.
    const second = tlsConnect({
      port: listening.port,
      host: '127.0.0.1',
      ca: pem('cert'),
      servername: 'localhost',
    }).on('error', () => {})
    await once(second, 'secureConnect')
    await listening.close(20)
    silent.destroy()
    second.destroy()
  })

  it('keeps a call alive that takes longer than the keep-alive interval', async () => {
    const { server, gate } = servedOverHttp()
    const options = { tls: { cert: pem('cert'), key: pem('key') }, keepAlive: 50 }
    await serving(server, options, async ({ url }) => {
      const { headers, body, method } = statelessRequest('tools/call', {
        name: 'quiet',
        arguments: { gate: 'slow' },
      })
      const stream = await new Promise<Stream>((resolve, reject) => {
        const settings = { method, headers, ca: pem('cert'), agent: false }
        const request = httpsRequest(url, settings, (response) =>
          resolve(new Stream(request, response)),
        )
        request.on('error', reject).end(body)
      })
      await stream.has(':\n\n')
      gate.open('slow')
      await stream.has('passed slow')
      await stream.ended()
    })
  })

  it('is served with a certificate and key', async () => {
    await serving(
      servedOverHttp().server,
      { tls: { cert: pem('cert'), key: pem('key') } },
      async ({ url }) => {
        expect(url).toMatch(/^https:/)
        const { headers, body, method } = echo('safe')
        const text = await new Promise<string>((resolve, reject) => {
          const request = httpsRequest(
            url,
            { method, headers, ca: pem('cert'), agent: false },
            (response) => {
              let all = ''
              response
                .on('data', (chunk: Buffer) => (all += chunk.toString()))
                .on('end', () => resolve(all))
            },
          )
          request.on('error', reject).end(body)
        })
        expect(text).toContain('safe')
      },
    )
  })
})

describe('/healthz', () => {
  it('responds with the state of the server', async () => {
    await serving(servedOverHttp().server, {}, async ({ url }) => {
      const health = new URL('/healthz', url).href
      expect(await send(health, { method: 'GET', headers: {} })).toMatchObject({
        status: 200,
        json: { status: 'ok' },
      })
      expect((await send(health, { method: 'POST', headers: {} })).status).toBe(404)
    })
  })
})
