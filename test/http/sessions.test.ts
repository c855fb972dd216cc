import { describe, expect, it, vi } from 'vitest'
import {
  InitializedSession,
  META,
  POST,
  type Stream,
  message,
  open,
  send,
  serving,
} from './caller.js'
import { freePort } from '../../scripts/free-port.mjs'
import { form, tool } from '../../src/index.js'
import { proves } from '../requirements/proves.js'
import { servedOverHttp } from './served.js'

const HANDSHAKES = ['2024-11-05', '2025-03-26', '2025-06-18', '2025-11-25']
const text = (words: string) => ({ result: { content: [{ type: 'text', text: words }] } })
const call = (name: string, args: object = {}, more: object = {}) => ({
  name,
  arguments: args,
  ...more,
})
const progressing = { _meta: { progressToken: 'p' } }

/** Waits until a condition holds, without sleeping longer than needed. */
const until = (condition: () => void) => vi.waitFor(condition, { timeout: 60_000, interval: 5 })

describe.each(HANDSHAKES)('a session of %s', (revision) => {
  it('is created, used and deleted', async () => {
    proves('http.endpoint', 'http.session-id', 'http.session-ended', 'http.content-type')
    const { server } = servedOverHttp()
    await serving(server, {}, async (listening) => {
      const client = await InitializedSession.open(listening.url, revision)
      expect(client.session).toMatch(/^[\u0021-\u007e]{24,}$/)
      expect(listening.sessions).toBe(1)
      const { status, headers, json } = await client.request(
        'tools/call',
        call('echo', { text: 'hi' }),
      )
      expect([status, headers['content-type'], headers['mcp-session-id']]).toEqual([
        200,
        'application/json',
        undefined,
      ])
      expect(json).toMatchObject(text('hi'))
      expect((await client.end()).status).toBe(204)
      expect(listening.sessions).toBe(0)
      for (const gone of [await client.request('ping'), await client.listen(), await client.end()])
        expect(gone.status).toBe(404)
    })
  })

  it('gets progress in the stream of its request, with event ids', async () => {
    proves(
      'http.stream-answers',
      'http.stream-relates',
      'http.stream-ends',
      'http.stream-priming',
      'http.event-ids',
    )
    const { server, gate } = servedOverHttp()
    await serving(server, {}, async ({ url }) => {
      const client = await InitializedSession.open(url, revision)
      const stream = await client.stream('tools/call', {
        ...call('steps', { gate: 'a' }),
        ...progressing,
      })
      expect(stream.headers).toMatchObject({
        'content-type': 'text/event-stream',
        'cache-control': 'no-cache, no-transform',
        'x-accel-buffering': 'no',
      })
      expect(await stream.message()).toMatchObject({ params: { progress: 1 } })
      gate.open('a')
      expect(await stream.message()).toMatchObject({ params: { progress: 2 } })
      expect(await stream.message()).toMatchObject(text('passed a'))
      expect(await stream.message()).toBeUndefined()
      const ids = stream.seen.map(({ id }) => id)
      expect(new Set(ids).size).toBe(ids.length)
      // Only the newest of these has events that prime.
      const primed = stream.seen.filter(({ data }) => data === '')
      expect(primed).toEqual(
        revision === '2025-11-25' ? [{ id: '0p.0', retry: 1000, data: '' }] : [],
      )
    })
  })

  it('gets change notifications on its GET stream only', async () => {
    proves(
      'http.get',
      'http.get-unrelated',
      'http.get-no-answers',
      'http.get-retry',
      'http.one-stream',
    )
    const { server, gate } = servedOverHttp()
    await serving(server, {}, async ({ url }) => {
      const client = await InitializedSession.open(url, revision)
      const other = await InitializedSession.open(url, revision)
      const own = await client.listen()
      const others = await other.listen()
      if (revision === '2025-11-25')
        expect(await own.next()).toEqual({ id: 'g.0', retry: 1000, data: '' })
      expect(own.headers['content-type']).toBe('text/event-stream')
      const running = await client.stream('tools/call', {
        ...call('steps', { gate: 'c' }),
        ...progressing,
      })
      await client.request('resources/subscribe', { uri: 'note://one' })
      server.updated('note://one')
      expect(await own.message()).toMatchObject({
        method: 'notifications/resources/updated',
        params: { uri: 'note://one' },
      })
      server.tools.disable('big')
      expect(await own.message()).toMatchObject({ method: 'notifications/tools/list_changed' })
      expect(await others.message()).toMatchObject({ method: 'notifications/tools/list_changed' })
      gate.open('c')
      await running.ended()
      expect(running.text).not.toContain('list_changed')
      // One is enough.
      expect((await client.listen()).status).toBe(409)
      own.disconnect()
      others.disconnect()
    })
  })

  it('resumes a stream with Last-Event-ID', async () => {
    proves('http.event-ids-stream', 'http.replay')
    const { server, gate, ended } = servedOverHttp()
    await serving(server, {}, async ({ url }) => {
      const client = await InitializedSession.open(url, revision)
      const stream = await client.stream(
        'tools/call',
        { ...call('steps', { gate: 'b' }), ...progressing },
        7,
      )
      await stream.message()
      const last = stream.seen.at(-1)?.id ?? ''
      stream.disconnect()
      gate.open('b')
      await until(() => expect(ended.get('b')).toBe('done'))
      const rest = await client.listen(last)
      expect(await rest.message()).toMatchObject({ params: { progress: 2 } })
      expect(await rest.message()).toMatchObject({ id: 7, ...text('passed b') })
      expect(await rest.next()).toBeUndefined()
      // Again, for who lost that as well; and only what came behind.
      const again = await client.listen(rest.seen.at(-2)?.id)
      expect(await again.message()).toMatchObject({ id: 7 })
      expect(await again.next()).toBeUndefined()
    })
  })

  it('gets missed messages of its GET stream later', async () => {
    const { server } = servedOverHttp()
    await serving(server, {}, async (listening) => {
      const client = await InitializedSession.open(listening.url, revision)
      const own = await client.listen()
      server.log.info('one')
      expect(await own.message()).toMatchObject({ params: { data: 'one' } })
      const last = own.seen.at(-1)?.id
      own.disconnect()
      await until(() => expect(listening.openResponses).toBe(0))
      server.log.info('two')
      server.log.info('three')
      const rest = await client.listen(last)
      expect(await rest.message()).toMatchObject({ params: { data: 'two' } })
      expect(await rest.message()).toMatchObject({ params: { data: 'three' } })
      server.log.info('four')
      expect(await rest.message()).toMatchObject({ params: { data: 'four' } })
      // Whoever comes back takes the place of a connection that is still thought to live.
      const back = await client.listen(rest.seen.at(-1)?.id)
      await rest.ended()
      server.log.info('five')
      expect(await back.message()).toMatchObject({ params: { data: 'five' } })
      back.disconnect()
    })
  })

  it('hears of what it may have missed if it opens its GET stream again without Last-Event-ID', async () => {
    const { server } = servedOverHttp()
    await serving(server, {}, async (listening) => {
      const client = await InitializedSession.open(listening.url, revision)
      const reopened = async () => {
        await until(() => expect(listening.openResponses).toBe(0))
        return client.listen()
      }
      const first = await client.listen()
      first.disconnect()
      const second = await reopened()
      // Nothing was sent meanwhile.
      server.log.info('one')
      expect(await second.message()).toMatchObject({ params: { data: 'one' } })
      second.disconnect()
      const third = await reopened()
      expect(await third.message()).toMatchObject({
        method: 'notifications/tools/list_changed',
      })
      third.disconnect()
    })
  })

  it.runIf(revision === '2025-11-25')(
    'can resume its GET stream again before there is a new event',
    async () => {
      const { server } = servedOverHttp()
      await serving(server, {}, async (listening) => {
        const client = await InitializedSession.open(listening.url, revision)
        const first = await client.listen()
        server.log.info('one')
        await first.message()
        const last = first.seen.at(-1)?.id
        first.disconnect()
        const second = await client.listen(last)
        expect(await second.next()).toMatchObject({ id: last, data: '' })
        second.disconnect()
      })
    },
  )

  it('cancels with notifications/cancelled', async () => {
    const { server, ended } = servedOverHttp()
    await serving(server, {}, async ({ url }) => {
      const client = await InitializedSession.open(url, revision)
      const started = await client.stream(
        'tools/call',
        { ...call('steps', { gate: 'x' }), ...progressing },
        'x',
      )
      await started.message()
      expect(
        (
          await client.post(
            message('notifications/cancelled', { requestId: 'x', reason: 'enough' }),
          )
        ).status,
      ).toBe(202)
      await started.ended()
      expect(ended.get('x')).toBe('stopped: enough')
      expect(started.text).not.toContain('"id":"x"')
      // One that has not been told anything ends as well.
      const quiet = client.stream('tools/call', call('quiet', { gate: 'y' }), 'y')
      await until(async () => {
        await client.post(message('notifications/cancelled', { requestId: 'y' }))
        expect(ended.get('y')).toBeDefined()
      })
      const answer = await quiet
      await answer.ended()
      expect([answer.status, answer.text]).toEqual([200, ''])
    })
  })
})

describe('a client that disconnects', () => {
  it('cancels nothing', async () => {
    proves('http.disconnect')
    const { server, gate, ended } = servedOverHttp()
    await serving(server, {}, async (listening) => {
      const client = await InitializedSession.open(listening.url, '2025-11-25')
      const stream = await client.stream('tools/call', {
        ...call('steps', { gate: 's' }),
        ...progressing,
      })
      await stream.message()
      stream.disconnect()
      await until(() => expect(listening.openResponses).toBe(0))
      expect(ended.has('s')).toBe(false)
      gate.open('s')
      await until(() => expect(ended.get('s')).toBe('done'))
    })
  })
})

describe('polling', () => {
  const begin = async (client: InitializedSession, name: string): Promise<Stream> =>
    client.stream('tools/call', call('polled', { gate: name }), 9)

  it('is supported in 2025-11-25', async () => {
    proves('http.stream-retry')
    const { server, gate } = servedOverHttp()
    await serving(server, { retryInterval: 20 }, async ({ url }) => {
      const client = await InitializedSession.open(url, '2025-11-25')
      const stream = await begin(client, 'a')
      await stream.ended()
      expect(stream.seen).toEqual([{ id: '0p.0', retry: 20, data: '' }])
      const polled = await client.listen('0p.0')
      gate.open('a')
      expect(await polled.message()).toMatchObject({ id: 9, ...text('polled a') })
      expect(await polled.next()).toBeUndefined()
    })
  })

  it('returns a large response', async () => {
    const { server } = servedOverHttp()
    server.tools.add(
      tool({
        name: 'large',
        run(_, running) {
          running.releaseStream()
          return 'x'.repeat(2 * 1024 * 1024)
        },
      }),
    )
    await serving(server, {}, async ({ url }) => {
      const client = await InitializedSession.open(url, '2025-11-25')
      await (await client.stream('tools/call', call('large'), 7)).ended()
      expect(await (await client.listen('0p.0')).message()).toMatchObject({
        id: 7,
        result: { content: [{ type: 'text' }] },
      })
    })
  })

  it('returns a response that was stored before', async () => {
    const { server, gate } = servedOverHttp()
    await serving(server, {}, async ({ url }) => {
      const client = await InitializedSession.open(url, '2025-11-25')
      gate.open('b')
      await (await begin(client, 'b')).ended()
      expect(await (await client.listen('0p.0')).message()).toMatchObject({
        id: 9,
        ...text('polled b'),
      })
    })
  })

  it.each(['2024-11-05', '2025-03-26', '2025-06-18'])('does not happen in %s', async (revision) => {
    proves('http.stream-stays')
    const { server, gate } = servedOverHttp()
    await serving(server, {}, async ({ url }) => {
      const client = await InitializedSession.open(url, revision)
      gate.open('c')
      const stream = await begin(client, 'c')
      await stream.ended()
      expect(JSON.parse(stream.text)).toMatchObject({ id: 9, ...text('polled c') })
    })
  })
})

describe('requests to the client', () => {
  const answer = (id: unknown) =>
    JSON.stringify({ jsonrpc: '2.0', id, result: { action: 'accept', content: { name: 'Ada' } } })

  it('are sent in the stream of the call', async () => {
    const { server } = servedOverHttp()
    await serving(server, {}, async ({ url }) => {
      const client = await InitializedSession.open(url, '2025-06-18', { elicitation: {} })
      const own = await client.listen()
      const stream = await client.stream('tools/call', call('ask'))
      const question = (await stream.message()) as { id: number; method: string }
      expect(question).toMatchObject({ method: 'elicitation/create', params: { message: 'Who?' } })
      expect((await client.post(answer(question.id))).status).toBe(202)
      expect(await stream.message()).toMatchObject(text('It is Ada'))
      expect(own.text).toBe('')
      own.disconnect()
    })
  })

  it('are sent on the GET stream if that of the call is disconnected', async () => {
    const { server, gate } = servedOverHttp()
    await serving(server, {}, async (listening) => {
      const client = await InitializedSession.open(listening.url, '2025-06-18', { elicitation: {} })
      const own = await client.listen()
      const stream = await client.stream('tools/call', call('ask', { gate: 'go' }), 5)
      await stream.message()
      stream.disconnect()
      await until(() => expect(listening.openResponses).toBe(1))
      gate.open('go')
      const question = (await own.message()) as { id: number; method: string }
      expect(question.method).toBe('elicitation/create')
      await client.post(answer(question.id))
      // The answer to the call waits on the call's own stream.
      expect(await (await client.listen(stream.seen.at(-1)?.id)).message()).toMatchObject({
        id: 5,
        ...text('It is Ada'),
      })
      own.disconnect()
    })
  })

  it('fail at once if the client has disconnected and has no GET stream', async () => {
    const { server, gate } = servedOverHttp()
    let failure: unknown
    server.tools.add(
      tool({
        name: 'ask_later',
        async run(_, call) {
          await gate.wait('later')
          const schema = { type: 'object', properties: {} } as const
          await call.ask({ who: form({ message: 'Who?', schema }) }).catch((error: unknown) => {
            failure = error
          })
          return ''
        },
      }),
    )
    await serving(server, {}, async (listening) => {
      const client = await InitializedSession.open(listening.url, '2025-06-18', { elicitation: {} })
      const disconnect = new AbortController()
      const posted = fetch(listening.url, {
        method: 'POST',
        headers: { ...POST, ...client.headers },
        body: message('tools/call', call('ask_later'), 5),
        signal: disconnect.signal,
      })
      await until(() => expect(listening.openResponses).toBe(1))
      disconnect.abort()
      await expect(posted).rejects.toThrow()
      await until(() => expect(listening.openResponses).toBe(0))
      gate.open('later')
      await until(() => expect(failure).toMatchObject({ code: 'CHANNEL_CLOSED' }))
    })
  })

  it('cannot be responded to by another client', async () => {
    const { server } = servedOverHttp()
    await serving(server, {}, async ({ url }) => {
      const client = await InitializedSession.open(url, '2025-11-25', { elicitation: {} })
      const other = await InitializedSession.open(url, '2025-11-25', { elicitation: {} })
      const stream = await client.stream('tools/call', call('ask'))
      const question = (await stream.message()) as { id: number }
      expect((await other.post(answer(question.id).replace('Ada', 'Eve'))).status).toBe(202)
      await client.post(answer(question.id))
      expect(await stream.message()).toMatchObject(text('It is Ada'))
    })
  })
})

describe('batches', () => {
  it('get one response in 2025-03-26', async () => {
    proves('http.body', 'http.accepted')
    const { server } = servedOverHttp()
    await serving(server, {}, async ({ url }) => {
      const client = await InitializedSession.open(url, '2025-03-26')
      const batch = `[${message('ping', undefined, 'a')},${message('notifications/x')},${message('tools/call', call('echo', { text: 'b' }), 'b')}]`
      const { status, json } = await client.post(batch)
      expect(status).toBe(200)
      expect(json).toEqual([
        { jsonrpc: '2.0', id: 'a', result: {} },
        {
          jsonrpc: '2.0',
          id: 'b',
          result: { content: [{ type: 'text', text: 'b' }], isError: false },
        },
      ])
      expect((await client.post(`[${message('notifications/x')}]`)).status).toBe(202)
    })
  })
})

describe('a stateless request in a batch', () => {
  it('is refused: its revision has no batches', async () => {
    const { server } = servedOverHttp()
    await serving(server, {}, async (listening) => {
      const client = await InitializedSession.open(listening.url, '2025-03-26')
      const notifications = { toolsListChanged: true }
      const { status, json } = await client.post(
        `[${message('tools/call', { ...call('echo', { text: 'a' }), _meta: META }, 1)},${message('subscriptions/listen', { notifications, _meta: META }, 2)},${message('ping', undefined, 3)}]`,
      )
      expect(status).toBe(200)
      expect(json).toMatchObject([
        { id: 1, error: { code: -32600 } },
        { id: 2, error: { code: -32600 } },
        { id: 3, result: {} },
      ])
      expect(listening.openResponses).toBe(0)
    })
  })
})

describe('the version header', () => {
  it('is optional within a session', async () => {
    const { server } = servedOverHttp()
    await serving(server, {}, async ({ url }) => {
      const client = await InitializedSession.open(url, '2025-11-25')
      const headers = { ...POST, 'mcp-session-id': client.session }
      const { json } = await send(url, {
        headers,
        body: message('tools/call', call('echo', { text: 'x' }), 1),
      })
      expect(json).toMatchObject(text('x'))
    })
  })

  it('must be a supported revision', async () => {
    proves('http.version-wrong')
    const { server } = servedOverHttp()
    await serving(server, {}, async ({ url }) => {
      const client = await InitializedSession.open(url, '2025-11-25')
      const { status, json } = await client.post(message('ping', undefined, 3), {
        'mcp-protocol-version': '1999-01-01',
      })
      expect([status, json]).toMatchObject([400, { id: 3, error: { code: -32600 } }])
    })
  })
})

describe('initialize', () => {
  it('with the id of an expired session creates a new one', async () => {
    const { server } = servedOverHttp()
    await serving(server, {}, async ({ url }) => {
      const first = await InitializedSession.open(url, '2025-11-25')
      await first.end()
      const second = await InitializedSession.open(
        url,
        '2025-11-25',
        {},
        { 'mcp-session-id': first.session },
      )
      expect(second.session).not.toBe(first.session)
    })
  })

  it('gets JSON with Mcp-Session-Id also if a middleware sends messages before', async () => {
    const { server } = servedOverHttp()
    let failure: unknown
    server.use(async (call, next) => {
      if (call.method !== 'initialize') return next()
      call.progress(1)
      call.releaseStream()
      const schema = { type: 'object', properties: {} } as const
      await call.ask({ who: form({ message: 'Who?', schema }) }).catch((error: unknown) => {
        failure = error
      })
      return next()
    })
    await serving(server, {}, async (listening) => {
      const params = {
        protocolVersion: '2025-11-25',
        capabilities: { elicitation: {} },
        clientInfo: { name: 'test', version: '1' },
        _meta: { progressToken: 1 },
      }
      const { status, headers, json } = await send(listening.url, {
        headers: POST,
        body: message('initialize', params, 1),
      })
      expect([status, headers['content-type']]).toEqual([200, 'application/json'])
      expect(headers['mcp-session-id']).toBeTypeOf('string')
      expect(json).toMatchObject({ id: 1, result: { protocolVersion: '2025-11-25' } })
      expect(failure).toBeInstanceOf(Error)
      expect(listening.sessions).toBe(1)
    })
  })

  it('that fails creates no session', async () => {
    const { server } = servedOverHttp()
    await serving(server, {}, async (listening) => {
      const { status, headers, json } = await send(listening.url, {
        headers: POST,
        body: message('initialize', {}, 1),
      })
      expect([status, headers['mcp-session-id'], listening.sessions]).toEqual([200, undefined, 0])
      expect(json).toMatchObject({ id: 1, error: { code: -32602 } })
    })
  })
})

describe('closing', () => {
  it('finishes calls, ends streams and refuses new requests', async () => {
    const { server, gate } = servedOverHttp()
    await serving(server, { port: await freePort() }, async (listening) => {
      const client = await InitializedSession.open(listening.url, '2025-11-25')
      const own = await client.listen()
      const running = await client.stream('tools/call', {
        ...call('steps', { gate: 'z' }),
        ...progressing,
      })
      await running.message()
      const closed = listening.close(10_000)
      gate.open('z')
      await running.has('passed z')
      await own.ended()
      await closed
      await expect(
        open(listening.url, { headers: POST, body: message('ping', undefined, 1) }),
      ).rejects.toThrow('ECONNREFUSED')
    })
  })

  it('does not wait beyond the deadline', async () => {
    const { server, ended } = servedOverHttp()
    await serving(server, {}, async (listening) => {
      const client = await InitializedSession.open(listening.url, '2025-11-25')
      const running = await client.stream('tools/call', {
        ...call('steps', { gate: 'never' }),
        ...progressing,
      })
      await running.message()
      await listening.close(20)
      await running.ended()
      expect(running.text).toContain('shutting down')
      expect(ended.get('never')).toContain('shutting down')
    })
  })
})
