import type { ServerResponse } from 'node:http'
import { describe, expect, it } from 'vitest'
import { RequestFailed, RpcError } from '../../src/jsonrpc/errors.js'
import { STATELESS, event, inSession, json, peerTo, result, scripted, stream } from './scripted.js'

const failed = (promise: Promise<unknown>): Promise<RequestFailed> =>
  promise.then(
    () => Promise.reject(new Error('it did not fail')),
    (error: unknown) => error as RequestFailed,
  )

describe('headers', () => {
  it('of a stateless request: version, method, name and parameters', async () => {
    const { url, received } = await scripted(({ message }, response) =>
      json(response, 200, result(message.id)),
    )
    const { peer } = await peerTo(url, { open: false, headers: { 'x-extra': '1' } })
    const headerParams = { Region: 'Zürich', Count: 3, Flag: false, Empty: '' }
    await peer.request('tools/call', { name: 'add' }, { ...STATELESS, headerParams })
    await peer.request('resources/read', { uri: ' note://ü ' }, STATELESS)
    await peer.request('tools/list', {}, STATELESS)
    const headers = received.map((each) =>
      Object.fromEntries(
        Object.entries(each.headers).filter(
          ([name]) => name.startsWith('mcp-') || name.startsWith('x-'),
        ),
      ),
    )
    expect(headers).toEqual([
      {
        'x-extra': '1',
        'mcp-protocol-version': '2026-07-28',
        'mcp-method': 'tools/call',
        'mcp-name': 'add',
        'mcp-param-region': '=?base64?WsO8cmljaA==?=',
        'mcp-param-count': '3',
        'mcp-param-flag': 'false',
        'mcp-param-empty': '',
      },
      {
        'x-extra': '1',
        'mcp-protocol-version': '2026-07-28',
        'mcp-method': 'resources/read',
        'mcp-name': '=?base64?IG5vdGU6Ly/DvCA=?=',
      },
      { 'x-extra': '1', 'mcp-protocol-version': '2026-07-28', 'mcp-method': 'tools/list' },
    ])
    expect(received[0]?.headers).toMatchObject({
      accept: 'application/json, text/event-stream',
      'content-type': 'application/json',
    })
  })

  it('of a session: its id and the negotiated version, in every message after initialize', async () => {
    const { url, received } = await scripted(
      inSession(({ message }, response) => json(response, 200, result(message.id))),
    )
    const { peer } = await peerTo(url)
    await peer.request('tools/list')
    await peer.close()
    const seen = received.map(({ method, headers }) => [
      method,
      headers['mcp-session-id'],
      headers['mcp-protocol-version'],
      headers['mcp-method'],
    ])
    expect(seen.filter(([method]) => method !== 'GET')).toEqual([
      ['POST', undefined, undefined, undefined],
      ['POST', 's-1', '2025-11-25', undefined],
      ['POST', 's-1', '2025-11-25', undefined],
      ['DELETE', 's-1', '2025-11-25', undefined],
    ])
  })
})

describe('the handshake', () => {
  it('sends nothing else before the response to initialize and the 202 to initialized', async () => {
    const held: (() => void)[] = []
    const { url, received } = await scripted(({ message, method }, response) => {
      if (method === 'GET') return void response.writeHead(405).end()
      const answer = () =>
        message.id === undefined
          ? response.writeHead(202).end()
          : json(response, 200, result(message.id, { protocolVersion: '2025-11-25' }))
      if (message.method === 'tools/list') answer()
      else held.push(answer)
    })
    const { peer } = await peerTo(url, { open: false })
    const seen = () => received.map(({ message }) => message.method)
    const opened = peer.request('initialize', {})
    const early = peer.request('tools/list')
    await expect.poll(seen).toEqual(['initialize'])
    peer.notify('notifications/initialized')
    held.shift()?.()
    await opened
    await early
    await expect.poll(seen).toContain('notifications/initialized')
    const late = peer.request('tools/list')
    await new Promise((resolve) => setTimeout(resolve, 50))
    expect(seen().filter((method) => method === 'tools/list')).toHaveLength(1)
    held.shift()?.()
    await late
  })

  it.each([400, 404, 405, 406])('succeeds where GET is answered with %i', async (status) => {
    const { url, received } = await scripted((each, response, count) =>
      each.method === 'GET'
        ? void response.writeHead(status).end()
        : inSession(({ message }, answer) => json(answer, 200, result(message.id)))(
            each,
            response,
            count,
          ),
    )
    const { peer } = await peerTo(url)
    await peer.request('tools/list')
    await expect.poll(() => received.some(({ method }) => method === 'GET')).toBe(true)
    expect(await peer.request('tools/list')).toEqual({})
  })

  it('succeeds where GET is never answered', async () => {
    const { url } = await scripted(
      inSession(
        ({ message, method }, response) =>
          method === 'POST' && json(response, 200, result(message.id)),
        { get: true },
      ),
    )
    const { peer } = await peerTo(url)
    expect(await peer.request('tools/list')).toEqual({})
  })

  it('does not wait for the end of the stream with the response to initialize', async () => {
    let open = false
    const order: string[] = []
    const { url } = await scripted(({ message, method }, response) => {
      if (method === 'GET') return void response.writeHead(405).end()
      order.push(`${message.method} while the stream is ${open ? 'open' : 'closed'}`)
      if (message.id === undefined) return void response.writeHead(202).end()
      stream(response, event(result(message.id, { protocolVersion: '2025-11-25' })))
      open = true
      response.on('close', () => (open = false))
    })
    const { peer } = await peerTo(url)
    await peer.request('tools/list')
    expect(order.slice(0, 2)).toEqual([
      'initialize while the stream is closed',
      'notifications/initialized while the stream is open',
    ])
  })

  it('rejects a session id with characters other than visible ASCII', async () => {
    const { url } = await scripted(inSession(() => {}, { session: 'a b' }))
    expect(await failed(peerTo(url))).toMatchObject({ code: 'INVALID_RESPONSE' })
  })
})

describe('the GET stream', () => {
  it('delivers notifications and requests, and is resumed after the last event', async () => {
    const streams: ServerResponse[] = []
    const { url, received } = await scripted(
      inSession(
        ({ method, message }, response) => {
          if (method !== 'GET')
            return message.id === undefined || message.method === undefined
              ? void response.writeHead(202).end()
              : json(response, 200, result(message.id))
          stream(response, 'retry: 1\n\n')
          streams.push(response)
        },
        { get: true },
      ),
    )
    const { notifications } = await peerTo(url)
    await expect.poll(() => streams.length).toBe(1)
    streams[0]?.write(event({ jsonrpc: '2.0', method: 'notifications/a' }, 'e1'))
    streams[0]?.end(event({ jsonrpc: '2.0', id: 9, method: 'roots/list' }, 'e2'))
    await expect.poll(() => streams.length).toBe(2)
    streams[1]?.write(event({ jsonrpc: '2.0', method: 'notifications/b' }))
    await expect.poll(() => notifications).toEqual(['notifications/a', 'notifications/b'])
    await expect
      .poll(() => received.find(({ message }) => message.id === 9)?.message)
      .toMatchObject({ result: { echoed: 'roots/list' } })
    expect(
      received
        .filter(({ method }) => method === 'GET')
        .map(({ headers }) => headers['last-event-id']),
    ).toEqual([undefined, 'e2'])
  })
})

describe('a stream that breaks before the response', () => {
  it('is resumed in a handshake revision, not before `retry`', async () => {
    let broke = 0
    let resumed = 0
    const { url, received } = await scripted(
      inSession(
        ({ method, message, headers }, response) => {
          if (method === 'GET' && headers['last-event-id'] === undefined) return
          if (method === 'GET') {
            resumed = performance.now()
            stream(response)
            return void response.end(event(result(2, { late: true }), 'e3'))
          }
          stream(response, `id: e2\nretry: 60\ndata:\n\n`)
          broke = performance.now()
          expect(message.method).toBe('tools/call')
          response.end()
        },
        { get: true },
      ),
    )
    const { peer } = await peerTo(url)
    expect(await peer.request('tools/call', {})).toEqual({ late: true })
    expect(received.at(-1)?.headers['last-event-id']).toBe('e2')
    expect(resumed - broke).toBeGreaterThanOrEqual(59)
  })

  it.each([
    ['in a handshake revision without an event id', {}, 'data:\n\n'],
    ['in a stateless revision', STATELESS, 'id: e1\ndata:\n\n'],
  ])('fails %s, and says that the request may have been executed', async (_case, options, text) => {
    const { url, received } = await scripted(
      inSession((_received, response) => {
        stream(response, text)
        response.end()
      }),
    )
    const { peer } = await peerTo(url)
    expect(await failed(peer.request('tools/call', {}, options))).toMatchObject({
      code: 'STREAM_ENDED',
      executed: 'maybe',
    })
    expect(received.filter(({ headers }) => headers['last-event-id'] !== undefined)).toEqual([])
  })
})

describe('a session that the server has ended', () => {
  it("fails the refused request with executed: 'no', and the others with 'maybe'", async () => {
    const { url } = await scripted(
      inSession(({ message }, response) =>
        message.method === 'slow' ? stream(response) : void response.writeHead(404).end(),
      ),
    )
    const { peer } = await peerTo(url)
    const slow = failed(peer.request('slow'))
    const refused = failed(peer.request('tools/list'))
    expect(await refused).toMatchObject({ code: 'SESSION_EXPIRED', executed: 'no' })
    expect(await slow).toMatchObject({ code: 'SESSION_EXPIRED', executed: 'maybe' })
  })

  it('is followed by a new one without the old id', async () => {
    const { url, received } = await scripted(
      inSession((_received, response) => void response.writeHead(404).end()),
    )
    const { peer } = await peerTo(url)
    await failed(peer.request('tools/list'))
    await peer.request('initialize', {})
    const last = received.findLast(({ message }) => message.method === 'initialize')
    expect([last?.headers['mcp-session-id'], last?.headers['mcp-protocol-version']]).toEqual([
      undefined,
      undefined,
    ])
  })
})

describe('cancelling', () => {
  it('closes the stream of a stateless request, and sends no notification', async () => {
    let closed = false
    const { url, received } = await scripted((_received, response) => {
      stream(response)
      response.on('close', () => (closed = true))
    })
    const { peer } = await peerTo(url, { open: false })
    const controller = new AbortController()
    const request = failed(
      peer.request('tools/call', {}, { ...STATELESS, signal: controller.signal }),
    )
    await expect.poll(() => received.length).toBe(1)
    controller.abort(new Error('enough'))
    expect((await request).message).toBe('enough')
    await expect.poll(() => closed).toBe(true)
    expect(received).toHaveLength(1)
  })

  it('sends a notification in a session, before the stream is closed', async () => {
    const order: string[] = []
    const { url } = await scripted(
      inSession(({ message }, response) => {
        if (message.method === 'notifications/cancelled') {
          order.push('notified')
          return void response.writeHead(202).end()
        }
        stream(response)
        response.on('close', () => order.push('closed'))
        order.push('called')
      }),
    )
    const { peer } = await peerTo(url)
    const controller = new AbortController()
    const request = failed(peer.request('tools/call', {}, { signal: controller.signal }))
    await expect.poll(() => order).toEqual(['called'])
    controller.abort(new Error('enough'))
    await request
    await expect.poll(() => order).toEqual(['called', 'notified', 'closed'])
  })

  it('never sends notifications/cancelled for initialize', async () => {
    const { url, received } = await scripted(() => {})
    const { peer } = await peerTo(url, { open: false })
    const controller = new AbortController()
    const request = failed(peer.request('initialize', {}, { signal: controller.signal }))
    await expect.poll(() => received.length).toBe(1)
    controller.abort(new Error('enough'))
    await request
    await peer.close()
    expect(received).toHaveLength(1)
  })
})

describe('errors', () => {
  it.each([
    [
      400,
      {
        jsonrpc: '2.0',
        id: 1,
        error: { code: -32022, message: 'version', data: { supported: ['x'] } },
      },
      { code: -32022, data: { supported: ['x'] } },
    ],
    [400, { jsonrpc: '2.0', error: { code: -32020, message: 'header' } }, { code: -32020 }],
    [404, { jsonrpc: '2.0', id: 1, error: { code: -32601, message: 'method' } }, { code: -32601 }],
    [200, { jsonrpc: '2.0', id: 1, error: { code: -32602, message: 'params' } }, { code: -32602 }],
  ])('HTTP %i with a JSON-RPC error is that error: %j', async (status, body, error) => {
    const { url } = await scripted((_received, response) => json(response, status, body))
    const { peer } = await peerTo(url, { open: false })
    const thrown = await failed(peer.request('server/discover', {}, STATELESS))
    expect(thrown).toBeInstanceOf(RpcError)
    expect(thrown).toMatchObject(error)
  })

  it.each([
    [400, 'no'],
    [401, 'no'],
    [403, 'no'],
    [404, 'no'],
    [429, 'no'],
    [500, 'maybe'],
    [502, 'maybe'],
    [503, 'maybe'],
  ])('HTTP %i without one says so; executed: %s', async (status, executed) => {
    const { url } = await scripted(
      (_received, response) =>
        void response.writeHead(status, { 'content-type': 'text/plain' }).end('go away'),
    )
    const { peer } = await peerTo(url, { open: false })
    expect(await failed(peer.request('x'))).toMatchObject({
      code: 'HTTP_STATUS',
      status,
      executed,
      message: `The server answered HTTP ${status}: go away`,
    })
  })

  it("a refused connection fails with executed: 'no'", async () => {
    const { url, cut } = await scripted(() => {})
    cut()
    const { peer } = await peerTo(url.replace(/:\d+/, ':1'), { open: false })
    expect(await failed(peer.request('x'))).toMatchObject({ code: 'NETWORK', executed: 'no' })
  })

  it.each([
    ['no body', 202, 'text/plain', ''],
    ['HTML', 200, 'text/html', '<html>'],
    ['JSON that is no message', 200, 'application/json', '{"hello":1}'],
    ['broken JSON', 200, 'application/json', '{'],
    [
      'the response to another request',
      200,
      'application/json',
      '{"jsonrpc":"2.0","id":99,"result":{}}',
    ],
  ])(
    'an answer with %s fails the request, and the next one works',
    async (_case, status, type, text) => {
      const { url } = await scripted(({ message }, response, count) =>
        count === 0
          ? void response.writeHead(status, { 'content-type': type }).end(text)
          : json(response, 200, result(message.id)),
      )
      const { peer } = await peerTo(url, { open: false })
      expect(await failed(peer.request('x'))).toMatchObject({
        code: 'INVALID_RESPONSE',
        executed: 'maybe',
      })
      expect(await peer.request('x')).toEqual({})
    },
  )

  it.each([
    [
      'a body',
      (response: ServerResponse) => json(response, 200, result(1, { text: 'x'.repeat(5000) })),
    ],
    [
      'an event',
      (response: ServerResponse) => stream(response, event(result(1, { text: 'x'.repeat(5000) }))),
    ],
    [
      'a line without an end',
      (response: ServerResponse) => stream(response, `data: ${'x'.repeat(5000)}`),
    ],
  ])('%s that is too long fails the request', async (_case, respond) => {
    const { url } = await scripted((_received, response) => respond(response))
    const { peer } = await peerTo(url, { open: false, maxMessage: 1000 })
    expect(await failed(peer.request('x'))).toMatchObject({ code: 'TOO_LARGE', executed: 'maybe' })
  })
})

describe('redirects', () => {
  it.each([
    [307, '/other'],
    [308, 'other'],
  ])('%i within the origin is followed: %s', async (status, location) => {
    const { url, received } = await scripted(({ path, message }, response) =>
      path === '/other'
        ? json(response, 200, result(message.id))
        : void response.writeHead(status, { location }).end(),
    )
    const { peer } = await peerTo(url, { open: false })
    expect(await peer.request('x', { a: 1 })).toEqual({})
    expect(received.map(({ path, message }) => [path, message.params])).toEqual([
      ['/mcp', { a: 1 }],
      ['/other', { a: 1 }],
    ])
  })

  it.each([
    ['to another origin', 307, 'http://localhost:1/mcp', 'another origin'],
    ['to a file', 307, 'file:///etc/passwd', 'another origin'],
    ['that would turn POST into GET', 302, '/other', 'become a GET'],
    ['without a place', 307, '', 'Location'],
    ['in circles', 307, '/mcp', 'more than 5 times'],
  ])('%s are refused', async (_case, status, location, words) => {
    const { url } = await scripted(
      (_received, response) =>
        void response.writeHead(status, location === '' ? {} : { location }).end(),
    )
    const { peer } = await peerTo(url, { open: false })
    expect((await failed(peer.request('x'))).message).toContain(words)
  })
})

describe('authorization', () => {
  it('asks for headers before each request, and sends a challenged one again', async () => {
    const { url, received } = await scripted(({ headers, message }, response) =>
      headers.authorization === 'Bearer new'
        ? json(response, 200, result(message.id))
        : void response.writeHead(401, { 'www-authenticate': 'Bearer scope="a"' }).end(),
    )
    let token = 'old'
    const challenges: unknown[] = []
    const authorizer = {
      headers: () => Promise.resolve({ authorization: `Bearer ${token}` }),
      challenged: (challenge: { status: number; header: string | undefined }) => {
        challenges.push([challenge.status, challenge.header])
        token = 'new'
        return Promise.resolve(true)
      },
    }
    const { peer } = await peerTo(url, { open: false, authorizer })
    expect(await peer.request('x')).toEqual({})
    expect([challenges, received.length]).toEqual([[[401, 'Bearer scope="a"']], 2])
  })

  it('gives up after three challenges', async () => {
    const { url, received } = await scripted(
      (_received, response) => void response.writeHead(403, { 'www-authenticate': 'Bearer' }).end(),
    )
    const authorizer = {
      headers: () => Promise.resolve({}),
      challenged: () => Promise.resolve(true),
    }
    const { peer } = await peerTo(url, { open: false, authorizer })
    expect(await failed(peer.request('x'))).toMatchObject({ status: 403 })
    expect(received).toHaveLength(4)
  })
})
