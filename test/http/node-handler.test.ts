import { once } from 'node:events'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { createServer as createHttp2Server, connect as http2Connect } from 'node:http2'
import { type AddressInfo, connect as netConnect } from 'node:net'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import express, { type ErrorRequestHandler } from 'express'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { type HttpHandlerOptions, type NodeHandler, nodeHandler, tokens } from '../../src/http.js'
import {
  InitializedSession,
  POST,
  begin,
  statelessRequest,
  open,
  send,
  withHeaders,
} from './caller.js'
import { onNode, parsed, unparsed } from './embedding.js'
import { servedOverHttp } from './served.js'

/* The endpoint within HTTP servers of other code. */

const handlers: NodeHandler[] = []
afterEach(async () => {
  vi.useRealTimers()
  for (const handler of handlers.splice(0)) await handler.close(0)
})

function embedded(options: HttpHandlerOptions = {}) {
  const served = servedOverHttp()
  let log = ''
  const mcp = nodeHandler(served.server, { log: { write: (line) => (log += line) }, ...options })
  handlers.push(mcp)
  return { ...served, mcp, log: () => log }
}
const call = (name: string, args: object = {}, more: object = {}) =>
  statelessRequest('tools/call', { name, arguments: args, ...more })
const withId = (id: string) => ({
  ...call('echo', { text: 'hi' }),
  body: call('echo', { text: 'hi' }).body.toString().replace('"id":1', `"id":${id}`),
})

const fail = (): never => {
  throw new Error('hook failed')
}

describe.each(Object.entries({ ...unparsed, ...parsed }))('%s', (_, embed) => {
  it('serves sessions and stateless requests', async () => {
    const { mcp, gate } = embedded()
    await embed(mcp, async (origin) => {
      const url = `${origin}/mcp`
      expect(await send(url, call('echo', { text: 'hi' }))).toMatchObject({
        status: 200,
        json: { id: 1, result: { content: [{ text: 'hi' }] } },
      })
      const client = await InitializedSession.open(url, '2025-11-25')
      const stream = await client.stream('tools/call', {
        name: 'steps',
        arguments: { gate: 'a' },
        _meta: { progressToken: 1 },
      })
      expect(await stream.message()).toMatchObject({ method: 'notifications/progress' })
      gate.open('a')
      await stream.has('passed a')
      expect(mcp.sessions).toBe(1)
      expect((await client.end()).status).toBe(204)
      expect(mcp.sessions).toBe(0)
    })
  })

  it('serves the client of the official SDK', async () => {
    const { mcp } = embedded()
    await embed(mcp, async (origin) => {
      const client = new Client({ name: 'sdk', version: '1' })
      await client.connect(new StreamableHTTPClientTransport(new URL(`${origin}/mcp`)))
      expect(await client.callTool({ name: 'echo', arguments: { text: 'hi' } })).toMatchObject({
        content: [{ text: 'hi' }],
      })
      await client.close()
    })
  })

  it('notices that a client disconnects', async () => {
    const { mcp, ended } = embedded()
    await embed(mcp, async (origin) => {
      const stream = await open(
        `${origin}/mcp`,
        call('steps', { gate: 'never' }, { _meta: { progressToken: 1 } }),
      )
      await stream.message()
      stream.disconnect()
      await expect.poll(() => ended.get('never')).toMatch(/^stopped/)
      await expect.poll(() => mcp.openResponses).toBe(0)
    })
  })

  it('has the same guards as listen', async () => {
    const { mcp } = embedded({ limits: { bodyBytes: 1000 } })
    await embed(mcp, async (origin) => {
      const url = `${origin}/mcp`
      const echo = call('echo', { text: 'hi' })
      const statusWith = async (headers: Record<string, string>) =>
        (await send(url, withHeaders(echo, headers))).status
      expect(await statusWith({ host: 'evil.example' })).toBe(403)
      expect(await statusWith({ origin: 'https://evil.example' })).toBe(403)
      expect(await statusWith({ 'mcp-method': 'tools/list' })).toBe(400)
      expect((await send(url, call('echo', { text: 'x'.repeat(1000) }))).status).toBe(413)
      expect(
        (
          await send(
            url,
            withHeaders(call('echo', { text: 'x'.repeat(1000) }), {
              'transfer-encoding': 'chunked',
            }),
          )
        ).status,
      ).toBe(413)
      for (const method of ['GET', 'HEAD', 'OPTIONS', 'DELETE', 'PUT'])
        expect((await send(url, { method })).status).toBe(405)
    })
  })

  it('ends streams after their responses when it is closed, also twice', async () => {
    const { mcp } = embedded()
    await embed(mcp, async (origin) => {
      const stream = await open(
        `${origin}/mcp`,
        statelessRequest('subscriptions/listen', { notifications: {} }, 'l'),
      )
      await stream.has('acknowledged')
      await Promise.all([mcp.close(), mcp.close()])
      await stream.has('"id":"l","result"')
      expect((await send(`${origin}/mcp`, call('echo', { text: 'x' }))).status).toBe(503)
    })
  })
})

describe.each(Object.entries(unparsed))('%s', (_, embed) => {
  it('keeps every digit of an id, and reports an invalid body', async () => {
    const { mcp } = embedded()
    await embed(mcp, async (origin) => {
      expect((await send(`${origin}/mcp`, withId('12345678901234567890'))).text).toContain(
        '"id":12345678901234567890',
      )
      if (_ === 'express.json() with rawBody') return // it has answered itself
      const broken = await send(`${origin}/mcp`, { ...call('echo'), body: '{"jsonrpc":' })
      expect(broken).toMatchObject({ status: 400, json: { error: { code: -32700 } } })
      expect(await send(`${origin}/mcp`, { ...call('echo'), body: '' })).toMatchObject({
        status: 400,
        json: { error: { code: -32700 } },
      })
    })
  })
})

describe.each(Object.entries(parsed))('%s', (_, embed) => {
  it('responds with 500 to an id that the body parser has rounded, and logs what to do', async () => {
    const { mcp, log } = embedded()
    await embed(mcp, async (origin) => {
      expect((await send(`${origin}/mcp`, withId('12345678901234567890'))).status).toBe(500)
      expect(log()).toContain('Register nodeHandler before the body parser')
      expect((await send(`${origin}/mcp`, withId('9007199254740991'))).text).toContain(
        '"id":9007199254740991',
      )
    })
  })

  it('responds with 400 to a body that can be parsed but not serialized', async () => {
    const { mcp } = embedded()
    await embed(mcp, async (origin) => {
      const deep = `{"jsonrpc":"2.0","id":1,"method":"ping","params":${'['.repeat(40_000)}${']'.repeat(40_000)}}`
      expect((await send(`${origin}/mcp`, { headers: POST, body: deep })).status).toBe(400)
      expect((await send(`${origin}/mcp`, { headers: POST, body: '[]' })).status).toBe(400)
      expect((await send(`${origin}/mcp`, { headers: POST, body: '[null,1]' })).status).toBe(400)
      expect((await send(`${origin}/mcp`, call('echo', { text: 'hi' }))).status).toBe(200)
    })
  })
})

describe('paths', () => {
  const app = (mcp: NodeHandler) =>
    express()
      .use(mcp)
      .get('/healthz', (_, res) => void res.send('mine'))
      .use((_, res) => void res.status(404).send('nothing'))

  it('with `path`, passes other paths to next, whatever their Host', async () => {
    const { mcp } = embedded({ path: '/mcp' })
    await onNode(app(mcp), async (origin) => {
      for (const path of ['/mcp', '/mcp/', '/mcp?a=1'])
        expect((await send(origin + path, call('echo', { text: 'x' }))).status).toBe(200)
      for (const path of ['/', '/mcp2', '/MCP', '/x/mcp'])
        expect((await send(origin + path, call('echo', { text: 'x' }))).text).toBe('nothing')
      expect(
        (await send(`${origin}/healthz`, { method: 'GET', headers: { host: 'app.example' } })).text,
      ).toBe('mine')
    })
  })

  it('without next, responds with 404', async () => {
    const { mcp } = embedded({ path: '/mcp' })
    await onNode(
      (req, res) => mcp(req, res),
      async (origin) => {
        expect((await send(`${origin}/other`, call('echo', { text: 'x' }))).status).toBe(404)
        expect((await send(`${origin}/healthz`, { method: 'GET' })).status).toBe(200)
      },
    )
  })

  it('below a mount, `path` is relative to it', async () => {
    const { mcp } = embedded({ path: '/mcp' })
    await onNode(express().use('/api', mcp), async (origin) => {
      expect((await send(`${origin}/api/mcp`, call('echo', { text: 'x' }))).status).toBe(200)
      expect((await send(`${origin}/mcp`, call('echo', { text: 'x' }))).status).toBe(404)
    })
  })

  it('serves the protected resource metadata at the root', async () => {
    const auth = {
      ...tokens([{ token: 'a-token-of-sixteen', id: 'ada' }]),
      resource: 'https://mcp.example/api/mcp',
    }
    const document = '/.well-known/oauth-protected-resource/api/mcp'
    const { mcp } = embedded({ path: '/api/mcp', auth })
    await onNode(app(mcp), async (origin) => {
      expect(await send(origin + document, { method: 'GET' })).toMatchObject({
        status: 200,
        json: { resource: auth.resource },
      })
      expect((await send(`${origin}/api/mcp`, call('echo', { text: 'x' }))).status).toBe(401)
      expect((await send(`${origin}/other`)).text).toBe('nothing')
    })
  })
})

describe('other middleware', () => {
  it('that wraps writeHead without support for arrays gets all headers', async () => {
    const { mcp, gate } = embedded()
    const wrapped = express()
      .use((_, res, next) => {
        const { writeHead } = res
        res.setHeader('Set-Cookie', 'a=1')
        // As in on-headers before 1.1, which is behind compression, morgan and others.
        res.writeHead = function (this: typeof res, status: number, headers?: unknown) {
          if (Array.isArray(headers))
            for (const pair of headers as string[]) this.setHeader(pair[0] ?? '', pair[1] ?? '')
          return writeHead.call(this, status)
        } as typeof res.writeHead
        next()
      })
      .use(mcp)
    await onNode(wrapped, async (origin) => {
      const { headers } = await send(origin, call('echo', { text: 'x' }))
      expect(headers).toMatchObject({ 'content-type': 'application/json', 'set-cookie': ['a=1'] })
      const stream = await open(
        origin,
        call('steps', { gate: 'g' }, { _meta: { progressToken: 1 } }),
      )
      expect(stream.headers['content-type']).toBe('text/event-stream')
      gate.open('g')
      await stream.ended()
    })
  })

  it('that has responded before is left alone', async () => {
    const { mcp, ended } = embedded()
    const answered = express()
      .use((_, res, next) => {
        res.status(418).send('tea')
        next()
      })
      .use(mcp)
    await onNode(answered, async (origin) => {
      expect(await send(origin, call('quiet', { gate: 'q' }))).toMatchObject({
        status: 418,
        text: 'tea',
      })
      expect(mcp.openResponses).toBe(0)
      expect(ended.size).toBe(0)
    })
  })

  it.each<[string, string, (res: ServerResponse) => void]>([
    ['answers', 'quiet', (res) => void res.writeHead(504).end('too slow')],
    ['begins to answer', 'quiet', (res) => void res.writeHead(504).write('too')],
    ['ends the stream', 'steps', (res) => void res.end()],
  ])('that %s while a call runs cancels the call', async (_, name, interfere) => {
    // With a keep-alive before it interferes, the call itself would begin the response.
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] })
    const keepAlive = 600_000
    const { mcp, ended } = embedded({ keepAlive })
    let response: ServerResponse | undefined
    const impatient = express()
      .use((_req, res, next) => {
        response = res
        next()
      })
      .use(mcp)
    await onNode(impatient, async (origin) => {
      const answer = open(origin, call(name, { gate: 'q' }, { _meta: { progressToken: 1 } }))
      await expect.poll(() => mcp.openResponses, { interval: 5 }).toBe(1)
      if (name === 'steps') await (await answer).message()
      if (response !== undefined) interfere(response)
      vi.advanceTimersByTime(keepAlive)
      expect((await answer).status).toBe(name === 'steps' ? 200 : 504)
      await expect.poll(() => ended.get('q')).toMatch(/^stopped/)
      expect(mcp.openResponses).toBe(0)
    })
  })

  it.each<[string, string, 'json' | 'stream', (res: ServerResponse) => void]>([
    ['writeHead of a response', 'quiet', 'json', (res) => (res.writeHead = fail)],
    ['end of a response', 'quiet', 'json', (res) => (res.end = fail)],
    ['writeHead of a stream', 'steps', 'stream', (res) => (res.writeHead = fail)],
    ['flushHeaders', 'steps', 'stream', (res) => (res.flushHeaders = fail)],
    ['write', 'steps', 'stream', (res) => (res.write = fail)],
    ['end of a stream', 'steps', 'stream', (res) => (res.end = fail)],
    [
      'writeHead and destroy',
      'steps',
      'stream',
      (res) => Object.assign(res, { writeHead: fail, destroy: fail }),
    ],
  ])('whose %s throws disconnects the client', async (_, name, kind, wrap) => {
    const { mcp, gate, log } = embedded()
    let failing = true
    const listener = (request: IncomingMessage, response: ServerResponse) => {
      if (failing) wrap(response)
      mcp(request, response)
    }
    await onNode(listener, async (origin) => {
      gate.open('g')
      for (const request of [
        () => send(origin, call(name, { gate: 'g' }, { _meta: { progressToken: 1 } })),
        () => send(origin, call('echo', { text: 'at once' })),
      ]) {
        failing = true
        await request().then(
          // The head of the response may have been sent.
          ({ text }) => expect(text).not.toMatch(/passed g|at once/),
          (error: unknown) => expect(error).toMatchObject({ code: 'ECONNRESET' }),
        )
        failing = false
        await expect.poll(() => mcp.openResponses).toBe(0)
        if (kind === 'stream') break
      }
      expect(log()).toContain('A response could not be written')
      expect(log()).toContain('hook failed')
      expect((await send(origin, call('echo', { text: 'next' }))).status).toBe(200)
    })
  })

  it('whose response throws leaves the result of a call in a session to be resumed', async () => {
    const { mcp, gate } = embedded()
    let failing = false
    const listener = (request: IncomingMessage, response: ServerResponse) => {
      if (failing) response.write = fail
      mcp(request, response)
    }
    await onNode(listener, async (origin) => {
      const client = await InitializedSession.open(origin, '2025-11-25')
      failing = true
      const params = { name: 'steps', arguments: { gate: 'g' }, _meta: { progressToken: 1 } }
      const broken = await client.stream('tools/call', params)
      await broken.ended()
      failing = false
      gate.open('g')
      const resumed = await client.listen('0p.0')
      await resumed.has('passed g')
      resumed.disconnect()
    })
  })

  it('may respond to an invalid body itself', async () => {
    const { mcp } = embedded()
    const failed: ErrorRequestHandler = (_error, _req, res, _next) =>
      void res.status(422).send('unreadable')
    await onNode(express().use(express.json()).use(mcp).use(failed), async (origin) => {
      expect(await send(origin, { ...call('echo'), body: '{"jsonrpc":' })).toMatchObject({
        status: 422,
        text: 'unreadable',
      })
      // Longer than express.json() takes.
      expect((await send(origin, call('echo', { text: 'x'.repeat(200_000) }))).status).toBe(422)
      expect((await send(origin, call('echo', { text: 'x' }))).status).toBe(200)
    })
  })

  it.each(['utf8', 'latin1', 'base64'] as const)(
    'may have set the encoding of the body to %s',
    async (encoding) => {
      const { mcp } = embedded()
      const { headers, body } = call('echo', { text: 'Grüße 🙂' })
      await onNode(
        (request, response) => {
          request.setEncoding(encoding)
          mcp(request, response)
        },
        async (origin) => {
          const text = { result: { content: [{ text: 'Grüße 🙂' }] } }
          expect((await send(origin, { headers, body })).json).toMatchObject(text)
          // In two chunks, divided within a character.
          const bytes = Buffer.from(body)
          const middle = bytes.indexOf('ü') + 1
          const { request, response } = begin(origin, { headers })
          request.write(bytes.subarray(0, middle))
          request.end(bytes.subarray(middle))
          await (await response).has('Grüße 🙂')
        },
      )
    },
  )

  it('may throw while a response is written: the connection is closed, and the error logged', async () => {
    const { mcp, log } = embedded()
    let broken = true
    const listener: Parameters<typeof onNode>[0] = (request, response) => {
      if (broken)
        response.setHeader = () => {
          throw new Error('headers are closed')
        }
      mcp(request, response)
    }
    await onNode(listener, async (origin) => {
      // Refused before its body is read, and served.
      await expect(send(origin, { method: 'PUT', headers: {} })).rejects.toThrow('socket hang up')
      await expect(send(origin, call('echo', { text: 'x' }))).rejects.toThrow('socket hang up')
      expect(log()).toContain('headers are closed')
      broken = false
      expect((await send(origin, call('echo', { text: 'x' }))).status).toBe(200)
      expect(mcp.openResponses).toBe(0)
    })
  })

  it('that has discarded the body is reported in the log', async () => {
    const { mcp, log } = embedded()
    const swallowed = express()
      .use((req, _, next) => void req.resume().on('end', next))
      .use(mcp)
    await onNode(swallowed, async (origin) => {
      expect((await send(origin, call('echo', { text: 'x' }))).status).toBe(500)
      expect(log()).toContain('assign the body to req.body')
    })
  })

  it('that passes invalid arguments gets a TypeError', () => {
    const { mcp } = embedded()
    // @ts-expect-error: the request of Fastify is not the one of Node
    expect(() => mcp({ raw: {}, headers: {} }, { raw: {} })).toThrow(
      'pass request.raw and reply.raw',
    )
  })
})

describe('connections', () => {
  it('that close within a body release its bytes', async () => {
    const { mcp } = embedded({ limits: { incompleteBodyBytes: 600, bodyBytes: 500 } })
    await onNode(mcp, async (origin) => {
      const { port, host } = new URL(origin)
      for (let i = 0; i < 5; i++) {
        const socket = netConnect(Number(port), '127.0.0.1')
        socket.write(
          `POST / HTTP/1.1\r\nHost: ${host}\r\nContent-Type: application/json\r\nContent-Length: 450\r\n\r\n${'x'.repeat(400)}`,
        )
        await once(socket, 'connect')
        socket.destroy()
        await once(socket, 'close')
      }
      // What they had sent would not leave enough for this.
      await expect
        .poll(async () => (await send(origin, call('echo', { text: 'x' }))).status)
        .toBe(200)
      expect(mcp.openResponses).toBe(0)
    })
  })

  it('with pipelined requests get the responses in order, one at a time', async () => {
    const { mcp, gate } = embedded()
    await onNode(mcp, async (origin) => {
      const { port, host } = new URL(origin)
      const raw = ({ headers, body }: ReturnType<typeof call>) =>
        `POST / HTTP/1.1\r\nHost: ${host}\r\n${Object.entries(headers)
          .map(([name, value]) => `${name}: ${String(value)}\r\n`)
          .join('')}Content-Length: ${String(body).length}\r\n\r\n${String(body)}`
      const socket = netConnect(Number(port), '127.0.0.1')
      let text = ''
      socket.on('data', (chunk: Buffer) => (text += chunk.toString()))
      socket.write(
        raw(call('quiet', { gate: 'p' })) +
          raw(call('echo', { text: 'second' })) +
          raw(call('echo', { text: 'third' })),
      )
      await expect.poll(() => mcp.openResponses).toBe(1)
      gate.open('p')
      await expect.poll(() => text).toMatch(/passed p[^]*second[^]*third/)
      socket.destroy()
    })
  })

  it('of HTTP/2 are served', async () => {
    const { mcp, ended, gate } = embedded()
    const server = createHttp2Server((req, res) => mcp(req, res))
    await once(server.listen(0, '127.0.0.1'), 'listening')
    const session = http2Connect(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)
    const post = ({ headers, body }: { headers: object; body: unknown }, more = {}) => {
      const stream = session.request({ ':method': 'POST', ':path': '/mcp', ...headers, ...more })
      let text = ''
      stream.setEncoding('utf8').on('data', (chunk: string) => (text += chunk))
      stream.end(String(body))
      const status = new Promise((resolve) =>
        stream.on('response', (head) => resolve(head[':status'])),
      )
      return { stream, status, text: () => text }
    }
    try {
      const one = post(call('echo', { text: 'hi' }))
      const oneEnded = once(one.stream, 'end')
      expect(await one.status).toBe(200)
      await oneEnded
      expect(JSON.parse(one.text())).toMatchObject({ id: 1, result: { content: [{ text: 'hi' }] } })
      expect(
        await post(call('echo', { text: 'hi' }), { ':authority': 'evil.example' }).status,
      ).toBe(403)
      expect(
        await post(call('echo', { text: 'hi' }), {
          ':authority': 'localhost',
          host: 'evil.example',
        }).status,
      ).toBe(400)
      const slow = post(call('steps', { gate: 'never' }, { _meta: { progressToken: 1 } }))
      await expect.poll(() => slow.text()).toContain('notifications/progress')
      slow.stream.close()
      await expect.poll(() => ended.get('never')).toMatch(/^stopped/)
      const quiet = post(call('steps', { gate: 'a' }, { _meta: { progressToken: 1 } }))
      await expect.poll(() => quiet.text()).toContain('notifications/progress')
      gate.open('a')
      await expect.poll(() => quiet.text()).toContain('passed a')
      await expect.poll(() => mcp.openResponses).toBe(0)
    } finally {
      session.destroy()
      server.close()
    }
  })
})

it('rejects unknown options and invalid paths', () => {
  const { server } = servedOverHttp()
  // @ts-expect-error: there is no such option
  expect(() => nodeHandler(server, { paht: '/mcp' })).toThrow('path')
  expect(() => nodeHandler(server, { path: 'mcp' })).toThrow('must start with a slash')
})
