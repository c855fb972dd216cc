import type { ServerResponse } from 'node:http'
import { describe, expect, it } from 'vitest'
import { connect, http } from '../../src/client.js'
import {
  type Received,
  type Respond,
  closing,
  event,
  failed,
  inSession,
  json,
  peerTo,
  result,
  scripted,
  stream,
} from './scripted.js'

/* Servers of the handshake revisions that do what they must not: sessions, GET streams, requests, endpoints, pages. */

/** Answers requests; what else comes is accepted. */
const answer = ({ message }: Received, response: ServerResponse) =>
  message.method === undefined || message.id === undefined
    ? void response.writeHead(202).end()
    : json(response, 200, result(message.id, { good: true }))

describe('a session id', () => {
  it.each([
    ['with a space', 'a b'],
    ['with a character beyond ASCII', 'ä'],
    ['that is empty', ' '],
  ])('%s fails the handshake', async (_case, session) => {
    const { url } = await scripted(inSession(answer, { session }))
    expect(await failed(peerTo(url))).toMatchObject({ code: 'INVALID_RESPONSE' })
  })

  it('beyond the limit of headers fails the handshake', async () => {
    const { url } = await scripted(inSession(answer, { session: 'x'.repeat(20_000) }))
    expect(await failed(peerTo(url))).toMatchObject({ code: 'NETWORK' })
  })

  it('counts in the response to initialize only', async () => {
    const { url, received } = await scripted(
      inSession(({ message }, response) =>
        json(response, 200, result(message.id), { 'mcp-session-id': 'other' }),
      ),
    )
    const { peer } = await peerTo(url)
    await peer.request('a')
    await peer.request('b')
    expect(received.at(-1)?.headers['mcp-session-id']).toBe('s-1')
  })

  it('that the server never accepts does not loop', async () => {
    const { url, received } = await scripted((each, response, count) =>
      each.message.method === 'initialize'
        ? inSession(answer)(each, response, count)
        : void response.writeHead(404).end(),
    )
    const client = await connect(http(url), { revision: '2025-11-25' })
    closing.push(() => client.close())
    await expect(client.request('ping')).rejects.toMatchObject({ code: 'SESSION_EXPIRED' })
    const handshakes = received.filter(({ message }) => message.method === 'initialize')
    expect(handshakes.length).toBeLessThan(4)
  })
})

describe('a flood of requests', () => {
  it('is responded to with a bounded number of messages at a time', async () => {
    const count = 3000
    let open = 0
    let most = 0
    let answered = 0
    const { url } = await scripted(
      inSession(({ message }, response) => {
        if (message.method === 'bad') {
          stream(response)
          for (let id = 0; id < count; id++)
            response.write(event({ jsonrpc: '2.0', id: `q${id}`, method: 'ping' }))
          return void response.end(event(result(message.id, { good: true })))
        }
        open++
        most = Math.max(most, open)
        answered++
        setImmediate(() => {
          open--
          response.writeHead(202).end()
        })
      }),
    )
    const { peer } = await peerTo(url)
    expect(await peer.request('bad')).toEqual({ good: true })
    await expect.poll(() => answered).toBe(count)
    expect(most).toBeLessThanOrEqual(16)
  })

  it('whose responses the server does not accept stops its stream only', async () => {
    let sent = 0
    const { url } = await scripted(
      inSession(({ message }, response) => {
        if (message.method === 'good')
          return json(response, 200, result(message.id, { good: true }))
        if (message.method !== 'bad') return
        stream(response)
        const write = () => {
          while (sent < 200_000 && !response.destroyed)
            if (!response.write(event({ jsonrpc: '2.0', id: `q${sent++}`, method: 'ping' }))) return
        }
        response.on('drain', write)
        write()
      }),
    )
    const { peer } = await peerTo(url)
    const controller = new AbortController()
    const bad = failed(peer.request('bad', {}, { signal: controller.signal }))
    await expect.poll(() => sent).toBeGreaterThan(80)
    expect(await peer.request('good')).toEqual({ good: true })
    controller.abort(new Error('enough'))
    expect((await bad).message).toBe('enough')
    expect(sent).toBeLessThan(200_000)
    expect(await peer.request('good')).toEqual({ good: true })
  })
})

describe('a GET stream', () => {
  const get = (respond: (response: ServerResponse, received: Received) => void): Respond =>
    inSession(
      (received, response) =>
        received.method === 'GET' ? respond(response, received) : answer(received, response),
      { get: true },
    )

  it.each<[string, (response: ServerResponse) => void]>([
    [
      'HTML',
      (response) => void response.writeHead(200, { 'content-type': 'text/html' }).end('<p>'),
    ],
    ['JSON', (response) => json(response, 200, {})],
    [
      'a redirect elsewhere',
      (response) => void response.writeHead(302, { location: 'http://localhost:1/' }).end(),
    ],
    [
      'a redirect to a file',
      (response) => void response.writeHead(302, { location: 'file:///' }).end(),
    ],
    ['418', (response) => void response.writeHead(418).end()],
    ['500', (response) => void response.writeHead(500).end()],
    ['a closed connection', (response) => void response.destroy()],
    [
      'responses to no request',
      (response) => stream(response, event(result(1000, { stolen: true })).repeat(100)),
    ],
    ['garbage', (response) => stream(response, 'data: {\n\n'.repeat(100))],
    ['an event that does not end', (response) => stream(response, `data: ${'x'.repeat(50_000)}`)],
  ])('that is %s affects no request', async (_case, respond) => {
    const { url, received } = await scripted(get(respond))
    const { peer } = await peerTo(url, { maxMessage: 10_000 })
    await expect.poll(() => received.some(({ method }) => method === 'GET')).toBe(true)
    expect(await peer.request('good')).toHaveProperty('good')
    expect(await peer.request('good')).toEqual({ good: true })
  })

  it('that always replays one event with retry: 0 is opened at most ten times a second', async () => {
    const times: number[] = []
    const { url } = await scripted(
      get((response) => {
        times.push(performance.now())
        stream(response, 'retry: 0\n\n')
        response.end(event({ jsonrpc: '2.0', method: 'notifications/again' }, 'e1'))
      }),
    )
    const { peer } = await peerTo(url)
    await expect.poll(() => times.length).toBeGreaterThan(3)
    const shortest = Math.min(...times.slice(1).map((time, at) => time - (times[at] ?? 0)))
    expect(shortest).toBeGreaterThan(90)
    expect(await peer.request('good')).toEqual({ good: true })
  })
})

describe('an endpoint of HTTP+SSE', () => {
  it.each([
    ['of another origin', 'event: endpoint\ndata: http://localhost:1/x\n\n', 'another origin'],
    ['that is a script', 'event: endpoint\ndata: javascript:alert(1)\n\n', 'javascript:'],
    ['that is a file', 'event: endpoint\ndata: file:///etc/passwd\n\n', 'file:'],
    ['that is long', `event: endpoint\ndata: /${'x'.repeat(9000)}\n\n`, 'longer than 8192'],
    ['that is not a URL', 'event: endpoint\ndata: http://\n\n', 'not a URL'],
    ['with credentials', 'event: endpoint\ndata: http://a:b@HOST/x\n\n', 'credentials'],
    ['after another event', 'data: {}\n\nevent: endpoint\ndata: /x\n\n', 'must be "endpoint"'],
  ])('%s is refused', async (_case, first, reason) => {
    const { url, received } = await scripted(({ method, headers }, response) =>
      method === 'GET'
        ? stream(response, first.replace('HOST', headers.host ?? ''))
        : void response.writeHead(404).end(),
    )
    await expect(connect(http(url))).rejects.toThrow(reason)
    expect(received.every(({ path }) => path === '/mcp')).toBe(true)
  })

  it('is not changed by a second one', async () => {
    let events: ServerResponse | undefined
    const { url, received } = await scripted(({ method, path, message }, response) => {
      if (method === 'GET') {
        events = response
        return stream(
          response,
          'event: endpoint\ndata: /first\n\nevent: endpoint\ndata: http://localhost:1/second\n\n',
        )
      }
      response.writeHead(path === '/mcp' ? 404 : 202).end()
      if (path === '/mcp' || message.id === undefined) return
      const opening = {
        protocolVersion: '2024-11-05',
        capabilities: {},
        serverInfo: { name: 'x', version: '1' },
      }
      events?.write(event(result(message.id, opening)))
    })
    const client = await connect(http(url))
    closing.push(() => client.close())
    await client.request('ping')
    expect(received.at(-1)?.path).toBe('/first')
  })
})

describe('pages', () => {
  it.each<[string, (page: number) => unknown]>([
    ['of which one leads to itself', () => 'same'],
    ['that lead in a circle', (page) => `cursor ${page % 7}`],
    ['with a cursor that is no string', () => 5],
  ])('%s end with an error', async (_case, nextCursor) => {
    let page = 0
    const { url } = await scripted(
      inSession(({ message }, response) =>
        message.method === 'tools/list'
          ? json(response, 200, result(message.id, { tools: [], nextCursor: nextCursor(page++) }))
          : json(response, 200, result(message.id)),
      ),
    )
    const client = await connect(http(url), { revision: '2025-11-25' })
    closing.push(() => client.close())
    const list = async () => {
      for await (const tool of client.tools()) expect(tool).toBeUndefined()
    }
    await expect(list()).rejects.toThrow(/does not end|not a string/)
    expect(page).toBeLessThan(30)
    expect(await client.request('ping')).toEqual({})
  })
})
