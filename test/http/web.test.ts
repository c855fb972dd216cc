import { describe, expect, it, vi } from 'vitest'
import { type HttpHandlerOptions, httpHandler, listen } from '../../src/http.js'
import { type Sending, POST, statelessRequest, message } from './caller.js'
import { servedOverHttp } from './served.js'

/* The same endpoint by the web's Request and Response, without a server. */

function handler(options: HttpHandlerOptions = {}) {
  const served = servedOverHttp()
  const handle = httpHandler(served.server, options)
  const send = (sending: Sending, url = 'http://localhost:8080/mcp', signal?: AbortSignal) =>
    handle(
      new Request(url, {
        method: sending.method ?? 'POST',
        headers: sending.headers as Record<string, string>,
        ...(sending.body === undefined ? {} : { body: String(sending.body) }),
        ...(signal === undefined ? {} : { signal }),
      }),
    )
  return { ...served, handle, send }
}
const call = (name: string, args: object = {}, more: object = {}) =>
  statelessRequest('tools/call', { name, arguments: args, ...more })

describe('httpHandler', () => {
  it('responds with JSON', async () => {
    const { send } = handler()
    const response = await send(call('echo', { text: 'hi' }))
    expect([response.status, response.headers.get('content-type')]).toEqual([
      200,
      'application/json',
    ])
    expect(await response.json()).toMatchObject({ id: 1, result: { content: [{ text: 'hi' }] } })
  })

  it('responds with a stream', async () => {
    const { send, gate } = handler()
    const response = await send(call('steps', { gate: 'a' }, { _meta: { progressToken: 1 } }))
    expect(response.headers.get('content-type')).toBe('text/event-stream')
    gate.open('a')
    const text = await response.text()
    expect(text.match(/^data: /gm)).toHaveLength(3)
    expect(text).toContain('passed a')
  })

  const params = {
    protocolVersion: '2025-06-18',
    capabilities: {},
    clientInfo: { name: 'x', version: '1' },
  }

  it('serves sessions', async () => {
    const { send } = handler()
    const opened = await send({ headers: POST, body: message('initialize', params, 1) })
    const headers = { ...POST, 'mcp-session-id': opened.headers.get('mcp-session-id') ?? '' }
    const noted = await send({ headers, body: message('notifications/initialized') })
    expect([noted.status, await noted.text()]).toEqual([202, ''])
    expect(await (await send({ headers, body: message('ping', undefined, 2) })).json()).toEqual({
      jsonrpc: '2.0',
      id: 2,
      result: {},
    })
    const ended = await send({ method: 'DELETE', headers })
    expect([ended.status, await ended.text()]).toEqual([204, ''])
    expect((await send({ headers, body: message('ping', undefined, 2) })).status).toBe(404)
  })

  it('holds nothing for a client that disconnects after the response', async () => {
    const { send, gate } = handler({ limits: { pendingBytes: 256 * 1024 } })
    const opened = await send({ headers: POST, body: message('initialize', params, 1) })
    const headers = { ...POST, 'mcp-session-id': opened.headers.get('mcp-session-id') ?? '' }
    for (let id = 2; id < 50; id++) {
      const called = { name: 'quiet', arguments: { gate: `${id}` } }
      const body = message('tools/call', called, id)
      const controller = new AbortController()
      const asked = send({ headers, body }, undefined, controller.signal)
      gate.open(`${id}`)
      const result = { content: [{ text: `passed ${id}` }] }
      expect(await (await asked).json()).toMatchObject({ id, result })
      controller.abort()
    }
  })

  it.each(['before', 'after'])(
    'cancels the call of whoever goes away %s the first event',
    async (when) => {
      const { send, ended } = handler()
      const controller = new AbortController()
      const asked = send(
        call(when === 'before' ? 'quiet' : 'steps', { gate: 'b' }, { _meta: { progressToken: 1 } }),
        undefined,
        controller.signal,
      )
      if (when === 'before') controller.abort()
      else await (await asked).body?.cancel()
      await expect.poll(() => ended.get('b')).toMatch(/^stopped/)
      // Whatever stands around the handler is not left waiting.
      expect((await asked).status).toBe(when === 'before' ? 499 : 200)
    },
  )

  it('disconnects a client that does not read', async () => {
    const { send, server } = handler({ keepAlive: 10 })
    const response = await send(
      statelessRequest('subscriptions/listen', {
        notifications: { resourceSubscriptions: ['note://one'] },
      }),
    )
    server.updated('note://one')
    const reader = response.body?.getReader()
    await expect(reader?.closed).rejects.toThrow('does not read')
  })

  it('sends a keep-alive within ten seconds, after which Bun closes a response', async () => {
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] })
    try {
      const { send, server } = handler()
      const response = await send(
        statelessRequest('subscriptions/listen', {
          notifications: { resourceSubscriptions: ['note://one'] },
        }),
      )
      const reader = response.body?.getReader()
      const read = async () => new TextDecoder().decode((await reader?.read())?.value as Uint8Array)
      expect(await read()).toContain('acknowledged')
      server.updated('note://one')
      expect(await read()).toContain('updated')
      const next = read()
      vi.advanceTimersByTime(9000)
      expect(await next).toBe(':\n\n')
      await reader?.cancel()
    } finally {
      vi.useRealTimers()
    }
  })

  it('does not disconnect a client that reads slowly', async () => {
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] })
    try {
      const { send, server } = handler({ keepAlive: 1000 })
      const response = await send(
        statelessRequest('subscriptions/listen', {
          notifications: { resourceSubscriptions: ['note://one'] },
        }),
      )
      const reader = response.body?.getReader()
      const tell = async () => {
        server.updated('note://one')
        await new Promise(setImmediate)
      }
      for (let i = 0; i < 10; i++) {
        await tell()
        await tell()
        vi.advanceTimersByTime(1000)
        expect((await reader?.read())?.done).toBe(false)
      }
      // From here on nobody reads: what is told meanwhile makes no difference.
      for (let i = 0; i < 2; i++) {
        await tell()
        vi.advanceTimersByTime(1000)
      }
      await expect(reader?.closed).rejects.toThrow('does not read')
    } finally {
      vi.useRealTimers()
    }
  })

  it('checks the Host header', async () => {
    const { send } = handler({ hosts: ['mcp.example.com'] })
    expect((await send(call('echo', { text: 'x' }), 'https://mcp.example.com/')).status).toBe(200)
    expect((await send(call('echo', { text: 'x' }), 'https://other.example.com/')).status).toBe(403)
    const any = handler({ hosts: 'any' })
    expect((await any.send(call('echo', { text: 'x' }), 'https://other.example.com/')).status).toBe(
      200,
    )
  })

  it('serves every path, or only `path`', async () => {
    const { send } = handler({ path: '/here' })
    expect((await send(call('echo', { text: 'x' }), 'http://localhost/here')).status).toBe(200)
    expect((await send(call('echo', { text: 'x' }), 'http://localhost/here/')).status).toBe(200)
    expect((await send(call('echo', { text: 'x' }), 'http://localhost/there')).status).toBe(404)
    expect((await send({ method: 'GET', headers: {} }, 'http://localhost/healthz')).status).toBe(
      200,
    )
  })

  it('has limits', async () => {
    const { send } = handler({ limits: { bodyBytes: 100 } })
    expect((await send(call('echo', { text: 'x'.repeat(200) }))).status).toBe(413)
    expect((await send({ headers: POST })).status).toBe(400)
  })

  it.each<[string, (request: Request) => unknown]>([
    ['was read', (request) => request.json()],
    ['is being read', (request) => request.body?.getReader()],
  ])('responds with 500 to a body that %s by other code, and logs what to do', async (_, read) => {
    const log: string[] = []
    const { handle } = handler({ log: { write: (line) => log.push(line) } })
    const { body, headers } = call('echo', { text: 'x' })
    const init = { method: 'POST', headers: headers as Record<string, string>, body: String(body) }
    const request = new Request('http://localhost/mcp', init)
    const copy = request.clone()
    await read(request)
    const response = await handle(request)
    expect([response.status, await response.text()]).toEqual([
      500,
      expect.stringContaining('Internal error (reference'),
    ])
    expect(log.join('')).toContain('The request body was read before httpHandler')
    expect((await handle(copy)).status).toBe(200)
  })

  it.each<[string, object, string]>([
    [
      'logLevel',
      { logLevel: 'warn' },
      '"logLevel" must be one of debug, info, warning, error, not "warn"; did you mean "warning"?',
    ],
    [
      'logLevel',
      { logLevel: 'silent' },
      '"logLevel" must be one of debug, info, warning, error, not "silent"',
    ],
    [
      'log',
      { log: () => {} },
      '"log" must be an object with write(line), or a logger such as that of pino',
    ],
    ['log', { log: {} }, '"log" must be'],
    [
      'hosts',
      { hosts: 'mcp.example.com' },
      '"hosts" must be an array such as ["mcp.example.com"], or "any" to turn the check off, not "mcp.example.com"',
    ],
    ['hosts', { hosts: [5] }, '"hosts" must be an array such as'],
    [
      'hosts',
      { hosts: ['*'] },
      '"hosts" must list names without wildcards, not "*"; hosts: "any" turns the check off',
    ],
    ['hosts', { hosts: ['*.example.com'] }, '"hosts" must list names without wildcards'],
    [
      'origins',
      { origins: '*' },
      '"origins" must be an array such as ["https://app.example.com"], not "*"',
    ],
    ['origins', { origins: 'any' }, '"origins" must be an array such as'],
    [
      'eventStore',
      { eventStore: { storeEvent() {}, replayEventsAfter() {} } },
      '"eventStore" must have the methods append, read, delete of EventStore, such as new MemoryEventStore() of ccmcp/http; it has no "append"',
    ],
    [
      'sessionStore',
      { sessionStore: { get() {}, set() {} } },
      '"sessionStore" must have the methods get, set, delete of SessionStore, such as new MemorySessionStore() of ccmcp/http; it has no "delete"',
    ],
    ['sessionStore', { sessionStore: new Map() }, '; it is a Map'],
    ['stores', { stores: { events: {} } }, '"stores.events" must have the methods'],
    ['stores', { stores: { sessions: new Set() } }, '"stores.sessions" must have the methods'],
  ])('rejects an invalid value of "%s", as listen does: %o', async (_, options, problem) => {
    const { server } = servedOverHttp()
    expect(() => httpHandler(server, options)).toThrow(problem)
    await expect(listen(server, { port: 0, ...options })).rejects.toThrow(problem)
  })

  it('accepts loggers and streams as "log"', () => {
    const { server } = servedOverHttp()
    for (const log of [console, process.stderr, { write() {} }])
      expect(() => httpHandler(server, { log })).not.toThrow()
  })

  it('rejects repeated headers, which the runtime has joined', async () => {
    const { handle } = handler()
    const { body, headers } = call('echo', { text: 'x' })
    const twice = new Headers(headers as Record<string, string>)
    twice.append('mcp-name', 'echo')
    expect(
      (
        await handle(
          new Request('http://localhost/mcp', {
            method: 'POST',
            headers: twice,
            body: String(body),
          }),
        )
      ).status,
    ).toBe(400)
  })

  it('closes', async () => {
    const { send, handle } = handler()
    const response = await send(
      statelessRequest('subscriptions/listen', { notifications: {} }, 'l'),
    )
    await handle.close()
    expect(await response.text()).toContain('"id":"l","result"')
    expect((await send(call('echo', { text: 'x' }))).status).toBe(503)
  })
})
