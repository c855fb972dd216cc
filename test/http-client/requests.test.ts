import type { ServerResponse } from 'node:http'
import { describe, expect, it } from 'vitest'
import { onStillClock } from '../clock.js'
import { RpcError } from '../../src/jsonrpc/errors.js'
import {
  STATELESS,
  event,
  failed,
  inSession,
  json,
  peerTo,
  result,
  scripted,
  stream,
} from './scripted.js'

/* One request over Streamable HTTP: its headers, its cancellation, its errors. */

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
    // DELETE has two seconds.
    await onStillClock(() => peer.close())
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
    // After two seconds, the stream would be closed without a response to the notification.
    await onStillClock(async () => {
      controller.abort(new Error('enough'))
      await request
      await expect.poll(() => order).toEqual(['called', 'notified', 'closed'])
    })
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
    [401, 'no'],
    [403, 'no'],
    [407, 'no'],
    [408, 'no'],
    [429, 'no'],
    [500, 'maybe'],
    [503, 'maybe'],
  ])(
    'HTTP %i with a JSON-RPC error says something of the connection or the caller; executed: %s',
    async (status, executed) => {
      const { url } = await scripted(({ message }, response) =>
        json(response, status, {
          jsonrpc: '2.0',
          id: message.id,
          error: { code: -32601, message: 'go away' },
        }),
      )
      const { peer } = await peerTo(url, { open: false })
      expect(await failed(peer.request('server/discover', {}, STATELESS))).toMatchObject({
        code: 'HTTP_STATUS',
        status,
        executed,
        message: `The server responded with HTTP ${status}: go away`,
        cause: { code: -32601, message: 'go away' },
      })
    },
  )

  it.each([
    [400, 'HTTP_STATUS'],
    [404, 'HTTP_STATUS'],
    [405, 'HTTP_STATUS'],
    [402, -32601],
    [406, -32601],
    [410, -32601],
    [422, -32601],
  ])('HTTP %i with a JSON-RPC error to initialize is %s', async (status, code) => {
    const { url } = await scripted(({ message }, response) =>
      json(response, status, {
        jsonrpc: '2.0',
        id: message.id,
        error: { code: -32601, message: 'no' },
      }),
    )
    const { peer } = await peerTo(url, { open: false })
    expect(await failed(peer.request('initialize', {}))).toMatchObject({ code })
  })

  it.each([
    [400, 'no'],
    [401, 'no'],
    [407, 'no'],
    [408, 'no'],
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
      message: `The server responded with HTTP ${status}: go away`,
    })
  })

  it("a refused connection fails with executed: 'no'", async () => {
    const { url, disconnect } = await scripted(() => {})
    disconnect()
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

  it('an error body that stalls does not hide the status', async () => {
    await onStillClock(async (pass) => {
      const { url, received } = await scripted((_received, response) => {
        response.writeHead(500, { 'content-type': 'text/plain' })
        response.write('wait')
      })
      const { peer } = await peerTo(url, { open: false })
      const request = failed(peer.request('x'))
      await expect.poll(() => received).toHaveLength(1)
      const passing = async () => {
        await pass(2000)
        return await Promise.race([request, Promise.resolve(undefined)])
      }
      await expect.poll(passing).toMatchObject({ code: 'HTTP_STATUS', status: 500 })
    })
  })
})
