import type { ServerResponse } from 'node:http'
import { describe, expect, it } from 'vitest'
import {
  type ConnectOptions,
  ConnectionError,
  type HttpClientOptions,
  type Target,
  connect,
  http,
} from '../../src/client.js'
import {
  type Received,
  type Respond,
  closing,
  event,
  inSession,
  json,
  result,
  scripted,
  stream,
} from './scripted.js'

/* How connect(http(…)) finds the revision and the transport of a server. */

const NEWEST = '2026-07-28'

async function open(target: Target, options: ConnectOptions = {}) {
  const client = await connect(target, options)
  closing.push(() => client.close())
  return client
}

const discovered = ({ message }: Received, response: ServerResponse) =>
  json(
    response,
    200,
    result(message.id, {
      resultType: 'complete',
      supportedVersions: [NEWEST],
      capabilities: {},
      ttlMs: 0,
      cacheScope: 'public',
    }),
  )
const failing = (response: ServerResponse, status: number, code: number, data?: unknown) =>
  json(response, status, { jsonrpc: '2.0', id: null, error: { code, message: 'no', data } })

/** A server that only knows `initialize`; `discover` responds to the probe. */
const legacy = (discover: (received: Received, response: ServerResponse) => void): Respond =>
  inSession((received, response) => {
    if (received.message.method === 'server/discover') discover(received, response)
    else json(response, 200, result(received.message.id))
  })
const methods = (received: readonly Received[]) =>
  received.flatMap(({ message }) => (message.method === undefined ? [] : [message.method]))

describe('server/discover', () => {
  it('is the first request, with the headers of its revision', async () => {
    const { url, received } = await scripted(discovered)
    expect((await open(http(url))).revision).toBe(NEWEST)
    expect(methods(received)).toEqual(['server/discover'])
    expect(received[0]?.headers).toMatchObject({
      'mcp-protocol-version': NEWEST,
      'mcp-method': 'server/discover',
    })
  })

  it.each([400, 404, 405, 406, 410, 415, 422])(
    'refused with HTTP %i leads to initialize',
    async (status) => {
      const { url, received } = await scripted(
        legacy((_, response) => void response.writeHead(status).end('<p>no</p>')),
      )
      const client = await open(http(url))
      expect(client.revision).toBe('2025-11-25')
      await client.request('ping')
      expect(methods(received)).toEqual([
        'server/discover',
        'initialize',
        'notifications/initialized',
        'ping',
      ])
      expect(received[1]?.headers['mcp-protocol-version']).toBeUndefined()
      expect(received[1]?.headers['mcp-method']).toBeUndefined()
    },
  )

  it.each([
    [
      'an error of an earlier revision',
      (response: ServerResponse) => failing(response, 400, -32000),
    ],
    ['an unknown method', (response: ServerResponse) => failing(response, 200, -32601)],
    [
      'a refused version, where only handshake revisions are listed',
      (response: ServerResponse) => failing(response, 400, -32022, { supported: ['2025-11-25'] }),
    ],
    [
      'a page',
      (response: ServerResponse) =>
        void response.writeHead(200, { 'content-type': 'text/html' }).end('<p>'),
    ],
  ])('answered with %s leads to initialize', async (_, discover) => {
    const { url } = await scripted(legacy((_received, response) => discover(response)))
    expect((await open(http(url))).revision).toBe('2025-11-25')
  })

  it.each([401, 403, 407, 408, 429, 500, 502, 503])(
    'answered with HTTP %i decides nothing and is not remembered',
    async (status) => {
      const { url, received } = await scripted((each, response, count) => {
        if (count === 0) response.writeHead(status).end()
        else discovered(each, response)
      })
      const target = http(url)
      await expect(connect(target)).rejects.toThrow(
        new ConnectionError(`The server responded with HTTP ${status}\nThe URL is ${url}`),
      )
      expect(methods(received)).toEqual(['server/discover'])
      expect((await open(target)).revision).toBe(NEWEST)
    },
  )

  it('without a response fails, without initialize', async () => {
    const sent: string[] = []
    // It never responds; with a server, the time for the connection would count.
    const fetch: typeof globalThis.fetch = (_input, init) => {
      sent.push((JSON.parse(init?.body as string) as { method: string }).method) // a message
      return new Promise((_resolve, reject) =>
        init?.signal?.addEventListener('abort', () => reject(new Error('aborted'))),
      )
    }
    const target = http('http://127.0.0.1:1/mcp', { fetch })
    await expect(connect(target, { timeout: 50, probeTimeout: 5 })).rejects.toThrow(
      'within 50 ms to server/discover',
    )
    expect(sent).toEqual(['server/discover'])
  })

  it.each([-32020, -32021])('rejected with %i means a stateless server', async (code) => {
    const { url, received } = await scripted((_, response) => failing(response, 400, code))
    await expect(connect(http(url))).rejects.toThrow(`error ${code}`)
    expect(methods(received)).toEqual(['server/discover'])
  })

  it('is sent once more if the refused version is listed', async () => {
    const refuse = (response: ServerResponse) =>
      failing(response, 400, -32022, { supported: [NEWEST] })
    const once = await scripted((each, response, count) =>
      count === 0 ? refuse(response) : discovered(each, response),
    )
    expect((await open(http(once.url))).revision).toBe(NEWEST)
    expect(once.received).toHaveLength(2)
    const always = await scripted((_, response) => refuse(response))
    await expect(connect(http(always.url))).rejects.toThrow(NEWEST)
    expect(methods(always.received)).toEqual(['server/discover', 'server/discover'])
  })

  it('is left out if the server is known to need initialize', async () => {
    const { url, received } = await scripted(
      legacy((_, response) => void response.writeHead(404).end()),
    )
    const target = http(url)
    await (await open(target)).request('ping')
    received.length = 0
    await (await open(target)).request('ping')
    expect(methods(received)).toEqual(['initialize', 'notifications/initialized', 'ping'])
  })
})

describe('HTTP+SSE', () => {
  /** A server of the HTTP+SSE transport: `post` responds to a POST of the SSE endpoint itself. */
  const legacySse = (
    post: (response: ServerResponse) => void,
    first = 'event: endpoint\ndata: /messages\n\n',
  ) => {
    let events: ServerResponse | undefined
    return scripted(({ method, path, message }, response) => {
      if (method === 'GET') {
        events = response
        return stream(response, first)
      }
      if (path !== '/messages') return post(response)
      response.writeHead(202).end()
      if (message.id === undefined) return
      const opening = {
        protocolVersion: '2024-11-05',
        capabilities: {},
        serverInfo: { name: 'old', version: '1' },
      }
      events?.write(event(result(message.id, opening)))
    })
  }

  it.each([
    ['400', (response: ServerResponse) => void response.writeHead(400).end()],
    ['404', (response: ServerResponse) => void response.writeHead(404).end('Cannot POST /sse')],
    ['405', (response: ServerResponse) => void response.writeHead(405).end()],
    [
      '400 and an error that is not modern',
      (response: ServerResponse) => failing(response, 400, -32600),
    ],
  ])('is used if initialize is refused with %s', async (_, post) => {
    const { url, received } = await legacySse(post)
    const client = await open(http(url, { headers: { 'X-Extra': '1' } }))
    expect([client.revision, client.server?.name]).toEqual(['2024-11-05', 'old'])
    await client.request('ping')
    expect(received.map(({ method, path }) => `${method} ${path}`)).toEqual([
      'POST /mcp',
      'POST /mcp',
      'GET /mcp',
      'POST /messages',
      'POST /messages',
      'POST /messages',
    ])
    expect(received.every(({ headers }) => headers['x-extra'] === '1')).toBe(true)
  })

  it.each([
    ['is not "endpoint"', 'event: message\ndata: {}\n\n', 'must be "endpoint"'],
    ['names another origin', 'event: endpoint\ndata: https://a.test/\n\n', 'https://a.test'],
  ])('is not used if the first event %s', async (_, first, reason) => {
    const { url } = await legacySse((response) => void response.writeHead(404).end(), first)
    const failed: unknown = await connect(http(url)).catch((error: unknown) => error)
    expect(failed).toBeInstanceOf(ConnectionError)
    expect((failed as Error).message).toContain('HTTP 404; HTTP+SSE failed too: ')
    expect((failed as Error).message).toContain(reason)
  })

  it('is not used if GET is refused as well', async () => {
    const { url } = await scripted((_, response) => void response.writeHead(404).end())
    await expect(connect(http(url))).rejects.toThrow('The server responded with HTTP 404')
  })

  it('is not tried after a modern error', async () => {
    const { url, received } = await scripted(({ message }, response) =>
      message.method === 'initialize'
        ? failing(response, 400, -32022, { supported: [NEWEST] })
        : void response.writeHead(404).end(),
    )
    await expect(connect(http(url))).rejects.toThrow('HTTP 400')
    expect(received.map(({ method }) => method)).not.toContain('GET')
  })
})

describe('the options of http', () => {
  it.each([
    ['nowhere', {}, 'is not a URL'],
    ['file:///etc/passwd', {}, 'must begin with http: or https:'],
    ['http://user:secret@localhost/', {}, 'must not contain credentials'],
    ['http://localhost/', { headers: { 'Content-Type': 'x' } }, '"content-type" is set'],
    ['http://localhost/', { headers: { 'MCP-Session-Id': 'x' } }, '"mcp-session-id" is set'],
    ['http://localhost/', { headers: { 'a b': 'x' } }, 'a b'],
    ['http://localhost/', { maxMessage: 0 }, '"maxMessage"'],
    ['http://localhost/', { header: {} }, 'did you mean "headers"?'],
  ] as [string, HttpClientOptions, string][])('are checked: %s %o', (url, options, message) => {
    expect(() => http(url, options)).toThrow(message)
  })

  it('has headers, an authorizer and a fetch of its own', async () => {
    const { url, received } = await scripted((each, response) =>
      each.headers.authorization === 'Bearer 2'
        ? discovered(each, response)
        : void response.writeHead(401, { 'www-authenticate': 'Bearer' }).end(),
    )
    let token = 1
    const fetched: string[] = []
    const target = http(url, {
      headers: { 'X-Team': 'a' },
      authorizer: {
        headers: () => Promise.resolve({ authorization: `Bearer ${token}` }),
        challenged: () => Promise.resolve(token++ < 2),
      },
      fetch: (input, init) => (fetched.push(new Request(input).url), fetch(input, init)),
    })
    expect((await open(target)).revision).toBe(NEWEST)
    expect(received.map(({ headers }) => [headers['x-team'], headers.authorization])).toEqual([
      ['a', 'Bearer 1'],
      ['a', 'Bearer 2'],
    ])
    expect(fetched).toEqual([url, url])
  })

  it('limits the bytes of a message', async () => {
    const { url } = await scripted(discovered)
    await expect(connect(http(url, { maxMessage: 10 }))).rejects.toThrow('longer than 10 bytes')
  })
})
