import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { type ClientRequest, createServer } from 'node:http'
import { type AddressInfo, Socket } from 'node:net'
import { describe, expect, it, vi } from 'vitest'
import { connect, http } from '../../src/client.js'
import { type SendRequest, webRequest } from '../../src/transports/http/client/http-request.js'
import { nodeRequest } from '../../src/transports/http/client/node-request.js'
import { onStillClock } from '../clock.js'
import { STATELESS, failed, json, peerTo, result, scripted, stream } from './scripted.js'

/* The two ways to send requests, `fetch` and node:http: what silence, an early end and a browser do to them. */

const send = (given: (input: unknown, init?: RequestInit) => Promise<unknown>): SendRequest =>
  webRequest(given as typeof fetch) // a test's own

const FINE = result(1, { fine: true })
const answered = () => Promise.resolve(Response.json(FINE))

describe('a fetch', () => {
  it('that is redirected in a browser fails: the target is hidden', async () => {
    const opaque = { type: 'opaqueredirect', status: 0, headers: new Headers(), body: null }
    const fetch = () => Promise.resolve(opaque as Response) // as in a browser
    await expect(connect(http('http://localhost/mcp', { fetch }))).rejects.toThrow(
      'a browser hides the target. Connect to the final URL instead',
    )
  })

  it('that fails without a reason leads to initialize: CORS may not allow the headers', async () => {
    const methods: unknown[] = []
    const fetch: typeof globalThis.fetch = (_input, init) => {
      const body = typeof init?.body === 'string' ? init.body : '{}'
      const { id, method } = JSON.parse(body) as Record<string, unknown>
      methods.push(method)
      if (method === 'server/discover') return Promise.reject(new TypeError('Failed to fetch'))
      if (method === 'initialize')
        return Promise.resolve(
          Response.json(
            result(id, {
              protocolVersion: '2025-11-25',
              capabilities: {},
              serverInfo: { name: 'x', version: '1' },
            }),
          ),
        )
      return Promise.resolve(new Response(null, { status: 202 }))
    }
    const client = await connect(http('http://localhost/mcp', { fetch }))
    expect(client.revision).toBe('2025-11-25')
    await client.close()
    expect(methods.slice(0, 2)).toEqual(['server/discover', 'initialize'])
  })

  it.each<[string, unknown]>([
    ['an object without a prototype', Object.create(null)],
    [
      'an object whose toString throws',
      {
        toString() {
          throw new Error('no')
        },
      },
    ],
    ...['message', 'cause', 'name', 'code'].map((name): [string, unknown] => [
      `an error whose ${name} throws`,
      Object.defineProperty(new Error('odd'), name, {
        get() {
          throw new Error('no')
        },
      }),
    ]),
  ])('that rejects with %s fails the request', async (_, odd) => {
    // oxlint-disable-next-line prefer-promise-reject-errors -- a fetch of a user may do so
    const fetch = () => Promise.reject(odd)
    await expect(connect(http('http://localhost/mcp', { fetch }))).rejects.toThrow(
      'The request failed: ',
    )
  })

  it('that ignores its signal does not keep a cancelled request, nor its late response', async () => {
    let cancelled = false
    let respond: (response: Response) => void = () => {}
    const { peer } = await peerTo('http://localhost/mcp', {
      open: false,
      send: send(() => new Promise((resolve) => (respond = resolve))),
    })
    const controller = new AbortController()
    const request = failed(peer.request('x', {}, { ...STATELESS, signal: controller.signal }))
    controller.abort(new Error('enough'))
    expect((await request).message).toBe('enough')
    respond(new Response(new ReadableStream({ cancel: () => void (cancelled = true) })))
    await expect.poll(() => cancelled).toBe(true)
  })

  it('whose stream goes on after the response is cancelled', async () => {
    await onStillClock(async (pass) => {
      let cancelled = false
      const body = new ReadableStream({
        start: (controller) =>
          controller.enqueue(new TextEncoder().encode(`data: ${JSON.stringify(FINE)}\n\n`)),
        cancel: () => void (cancelled = true),
      })
      const response = new Response(body, { headers: { 'content-type': 'text/event-stream' } })
      const { peer } = await peerTo('http://localhost/mcp', {
        open: false,
        send: send(() => Promise.resolve(response)),
      })
      expect(await peer.request('x', {}, STATELESS)).toEqual({ fine: true })
      await pass(2000)
      await expect.poll(() => cancelled).toBe(true)
    })
  })

  it('is silent for an hour, and the response still counts', async () => {
    await onStillClock(async (pass) => {
      let respond: (response: Response) => void = () => {}
      const { peer } = await peerTo('http://localhost/mcp', {
        open: false,
        send: send(() => new Promise((resolve) => (respond = resolve))),
      })
      const request = peer.request('x', {}, STATELESS)
      await pass(3_600_000)
      respond(await answered())
      expect(await request).toEqual({ fine: true })
    })
  })
})

describe('node:http', () => {
  it('has no timer while a response or a stream is silent, and TCP keep-alive', async () => {
    const requests: (ClientRequest & { timeout?: number })[] = []
    const started = (message: unknown) =>
      void requests.push((message as { request: ClientRequest }).request) // as Node documents it
    subscribe('http.client.request.start', started)
    const keepAlive = vi.spyOn(Socket.prototype, 'setKeepAlive')
    try {
      await onStillClock(async (pass) => {
        const respond: (() => void)[] = []
        const { url } = await scripted(({ message }, response) => {
          if (message.method === 'stream') stream(response)
          respond.push(() =>
            message.method === 'stream'
              ? response.end(`data: ${JSON.stringify(result(message.id))}\n\n`)
              : json(response, 200, result(message.id)),
          )
        })
        const { peer } = await peerTo(url, { open: false })
        const pending = [
          peer.request('silent', {}, STATELESS),
          peer.request('stream', {}, STATELESS),
        ]
        await expect.poll(() => respond).toHaveLength(2)
        await pass(3_600_000)
        // Others of this process may be those of an earlier test.
        const own = requests.filter((each) => each.getHeader('host') === new URL(url).host)
        expect(own.map(({ timeout, socket }) => [timeout, socket?.timeout])).toEqual([
          [undefined, undefined],
          [undefined, undefined],
        ])
        expect(
          keepAlive.mock.calls.filter(([enable, delay]) => enable && delay === 30_000),
        ).not.toEqual([])
        for (const each of respond) each()
        expect(await Promise.all(pending)).toEqual([{}, {}])
      })
    } finally {
      keepAlive.mockRestore()
      unsubscribe('http.client.request.start', started)
    }
  })

  it('uses a connection again after a 202 and after an error', async () => {
    const ports = new Set<unknown>()
    const { url } = await scripted(({ message }, response) => {
      ports.add(response.socket?.remotePort)
      if (message.method === 'good') return json(response, 200, result(message.id))
      response.writeHead(message.id === undefined ? 202 : 400).end('no')
    })
    const { peer } = await peerTo(url, { open: false })
    await peer.request('good', {}, STATELESS)
    await failed(peer.request('bad', {}, STATELESS))
    await peer.request('good', {}, STATELESS)
    expect(ports.size).toBe(1)
  })
})

describe('a connection of node:http', () => {
  it('is used again, unless it was idle for so long that the server may be closing it', async () => {
    const sockets = new Set<unknown>()
    const server = createServer((request, response) => {
      sockets.add(request.socket)
      response.end()
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    const { port } = server.address() as AddressInfo // it listens on a port
    const request = nodeRequest({})
    const get = async () => {
      const { signal } = new AbortController()
      const url = new URL(`http://127.0.0.1:${port}/`)
      const response = await request({ method: 'GET', url, headers: {}, signal, background: false })
      for await (const _ of response.body ?? []);
      // The connection is free after this turn.
      await new Promise((resolve) => setImmediate(resolve))
    }
    const clock = vi.spyOn(performance, 'now')
    try {
      clock.mockReturnValue(0)
      await get()
      clock.mockReturnValue(3999)
      await get()
      expect(sockets.size).toBe(1)
      clock.mockReturnValue(8000)
      await get()
      expect(sockets.size).toBe(2)
    } finally {
      clock.mockRestore()
      server.closeAllConnections()
      server.close()
    }
  })
})
