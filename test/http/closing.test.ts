import { type EventEmitter, once } from 'node:events'
import { Server as HttpServer } from 'node:http'
import { type AddressInfo, type Socket, connect, createServer as createNetServer } from 'node:net'
import { describe, expect, it, vi } from 'vitest'
import { freePort } from '../../scripts/free-port.mjs'
import { extension } from '../../src/extensions.js'
import { type Listening, httpHandler, listen, nodeHandler } from '../../src/http.js'
import { createServer } from '../../src/index.js'
import { onStillClock } from '../clock.js'
import { POST, begin, message, open, send, serving, statelessRequest } from './caller.js'
import { onNode } from './embedding.js'
import { servedOverHttp } from './served.js'

const REQUESTS = {
  'a stateless request': statelessRequest('tools/call', { name: 'echo', arguments: { text: 'x' } }),
  initialize: {
    headers: POST,
    body: message(
      'initialize',
      {
        protocolVersion: '2025-11-25',
        capabilities: {},
        clientInfo: { name: 'test', version: '1' },
      },
      1,
    ),
  },
}

describe('a request whose body is complete only after close was called', () => {
  it.each(Object.entries(REQUESTS))('gets 503: %s', async (_, { headers, body }) => {
    const { server } = servedOverHttp()
    let served = 0
    server.use((_call, next) => {
      served++
      return next()
    })
    const mcp = nodeHandler(server, { logLevel: 'error' })
    let arrived = () => {}
    const arrival = new Promise<void>((resolve) => (arrived = resolve))
    const listener: Parameters<typeof onNode>[0] = (request, response) => {
      mcp(request, response)
      arrived()
    }
    await onNode(listener, async (origin) => {
      const { request, response } = begin(origin, { headers })
      const text = body.toString()
      request.write(text.slice(0, 30))
      await arrival
      const closed = mcp.close(10_000)
      request.end(text.slice(30))
      const stream = await response
      await stream.ended()
      expect([stream.status, served, mcp.sessions]).toEqual([503, 0, 0])
      expect(stream.text).toContain('shutting down')
      await closed
    })
  })
})

describe('a server that listens, while it closes', () => {
  /** Calls a tool that waits, and begins to close. Resolves when no connection is accepted any more. */
  async function whileClosing(
    use: (listening: Listening) => Promise<void>,
    prepare: (listening: Listening) => Promise<void> = async () => {},
  ): Promise<void> {
    const { server, gate } = servedOverHttp()
    await serving(server, { port: await freePort(), logLevel: 'error' }, async (listening) => {
      const params = { name: 'steps', arguments: { gate: 'g' }, _meta: { progressToken: 1 } }
      const running = await open(listening.url, statelessRequest('tools/call', params))
      await running.message()
      await prepare(listening)
      const closed = listening.close(60_000)
      await use(listening).finally(() => gate.open('g'))
      await running.has('passed g')
      await closed
      await expect(send(listening.url, REQUESTS.initialize)).rejects.toThrow('ECONNREFUSED')
    })
  }
  const health = ({ url }: Listening) => new URL('/healthz', url).href

  it.each(Object.entries(REQUESTS))('refuses with 503: %s', (_, request) =>
    whileClosing(async ({ url }) => {
      const { status, headers, text } = await send(url, request)
      expect([status, headers['connection'], headers['retry-after']]).toEqual([503, 'close', '5'])
      expect(text).toContain('shutting down')
    }),
  )

  it('responds to /healthz with 503', () =>
    whileClosing(async (listening) => {
      const { status, headers, json } = await send(health(listening), { method: 'GET' })
      expect([status, headers['connection'], json]).toEqual([503, 'close', { status: 'closing' }])
    }))

  it('lets a client read the response to a long body', () =>
    whileClosing(async ({ url }) => {
      const body = ' '.repeat(20_000_000)
      expect((await send(url, { headers: POST, body })).status).toBe(503)
    }))

  it('survives clients that disconnect within a body', () =>
    whileClosing(async (listening) => {
      const { request, response } = begin(listening.url, { headers: POST })
      const failed = expect(response).rejects.toThrow()
      request.write('{')
      await send(health(listening), { method: 'GET' })
      request.destroy()
      await failed
      expect((await send(health(listening), { method: 'GET' })).status).toBe(503)
    }))

  it('serves connections that were idle, and closes them', async () => {
    let socket: Socket | undefined
    await whileClosing(
      async () =>
        expect(await exchange(socket)).toMatch(/^HTTP\/1.1 503 [^]*\r\nConnection: close\r/),
      async (listening) => {
        socket = await idleConnection(listening)
      },
    )
    expect(socket?.errored).toBeNull()
  })
})

describe('a server that listens, when it closes', () => {
  it('ends idle connections, and does not reset them', async () => {
    const listening = await listen(servedOverHttp().server, { port: 0, logLevel: 'error' })
    const socket = await idleConnection(listening)
    const ended = once(socket, 'end')
    await listening.close()
    await ended
    expect(socket.errored).toBeNull()
  })

  it.each(['an idle connection', 'a new connection'])(
    'responds to a request that has arrived before on %s',
    async (kind) => {
      const listening = await listen(servedOverHttp().server, { port: 0, logLevel: 'error' })
      const isIdle = kind === 'an idle connection'
      const socket = await (isIdle ? idleConnection(listening) : connected(listening))
      const answered = exchange(socket)
      // In the same turn of the event loop: the server has not read the request.
      const closed = listening.close()
      expect(await answered).toMatch(/^HTTP\/1.1 503 [^]*\r\nConnection: close\r/)
      await closed
    },
  )

  async function connected({ port }: Listening): Promise<Socket> {
    const socket = connect(port, '127.0.0.1')
    await once(socket, 'connect')
    return socket
  }
})

/** A connection that has had a response. */
async function idleConnection({ port }: Listening): Promise<Socket> {
  const socket = connect(port, '127.0.0.1')
  await once(socket, 'connect')
  socket.write(HEALTH)
  const [response] = (await once(socket, 'data')) as [Buffer]
  expect(response.toString()).toMatch(/^HTTP\/1.1 200 /)
  return socket
}
const HEALTH = 'GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n'

/** What comes until the end of a connection, after another request. */
async function exchange(socket: Socket | undefined): Promise<string> {
  socket?.write(HEALTH)
  let text = ''
  for await (const chunk of socket ?? []) text += String(chunk)
  return text
}

it('close does not take longer than its deadline, also with a session store that does not resolve', () =>
  onStillClock(async (pass) => {
    const { server } = servedOverHttp()
    const sessionStore = {
      get: () => undefined,
      set: () => new Promise<boolean>(() => {}),
      delete: () => {},
    }
    const handler = httpHandler(server, { sessionStore })
    const post = (body: string, headers: Record<string, string> = {}) =>
      handler(
        new Request('http://localhost/mcp', {
          method: 'POST',
          headers: { ...POST, ...headers },
          body,
        }),
      )
    const opened = post(REQUESTS.initialize.body)
    while (vi.getTimerCount() < 2) await new Promise(setImmediate)
    await pass(2000)
    const id = (await opened).headers.get('mcp-session-id') ?? ''
    const params = { name: 'quiet', arguments: { gate: 'never' } }
    void post(message('tools/call', params, 2), { 'mcp-session-id': id })
    await new Promise(setImmediate)
    let closed = false
    const closing = handler.close(1000).then(() => (closed = true))
    await pass(1050)
    expect(closed).toBe(true)
    await closing
  }))

it('reports an error of the listening server, and goes on', async () => {
  let log = ''
  const spy = vi.spyOn(HttpServer.prototype, 'listen')
  const listening = await listen(servedOverHttp().server, {
    port: 0,
    log: { write: (line) => (log += line) },
  })
  const [server] = spy.mock.contexts as EventEmitter[] // `this` of the call
  spy.mockRestore()
  server?.emit('error', Object.assign(new Error('too many open files'), { code: 'EMFILE' }))
  expect(log).toContain('too many open files')
  await listening.close(0)
})

describe('extensions of a server', () => {
  function extended() {
    const events: string[] = []
    const server = createServer({
      name: 'extended',
      version: '1',
      extensions: [
        extension({
          id: 'com.example/x',
          revisions: ['2026-07-28'],
          start: () => void events.push('start'),
          stop: () => void events.push('stop'),
        }),
      ],
    })
    return { server, events }
  }

  it('are stopped if the port is in use', async () => {
    const { server, events } = extended()
    const other = createNetServer()
    await once(other.listen(0, '127.0.0.1'), 'listening')
    const { port } = other.address() as AddressInfo
    await expect(listen(server, { port })).rejects.toMatchObject({ code: 'EADDRINUSE' })
    expect(events).toEqual(['start', 'stop'])
    other.close()
  })

  it.each([
    ['a certificate', { tls: { cert: 'x', key: 'x' } }, ['start', 'stop']],
    ['a host', { hosts: ['https://x/'] }, []],
    ['an origin', { origins: ['x'] }, []],
  ] as const)('are not left started by %s that is invalid', async (_, options, expected) => {
    const { server, events } = extended()
    await expect(listen(server, { port: 0, ...options })).rejects.toThrow()
    expect(events).toEqual(expected)
  })
})
