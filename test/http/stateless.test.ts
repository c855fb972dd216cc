import { describe, expect, it, vi } from 'vitest'
import { createServer, form, tool } from '../../src/index.js'
import {
  type Answer,
  META,
  POST,
  statelessRequest,
  message,
  open,
  send,
  serving,
} from './caller.js'
import { proves } from '../requirements/proves.js'
import { servedOverHttp } from './served.js'

const call = (name: string, args: object = {}, more: object = {}) =>
  statelessRequest('tools/call', { name, arguments: args, ...more })
const text = (words: string) => ({
  result: { resultType: 'complete', content: [{ type: 'text', text: words }] },
})
const progressing = { _meta: { progressToken: 'p' } }
const until = (condition: () => void) => vi.waitFor(condition, { timeout: 60_000, interval: 5 })
const base64 = (words: string) => `=?base64?${Buffer.from(words).toString('base64')}?=`

/** The same request with other headers; undefined leaves one out. */
function headed(sending: ReturnType<typeof call>, headers: Record<string, string | undefined>) {
  const all = { ...(sending.headers as Record<string, string>), ...headers }
  return {
    ...sending,
    headers: Object.fromEntries(Object.entries(all).filter(([, value]) => value !== undefined)),
  }
}

describe('a stateless request', () => {
  it('gets a JSON response, and leaves no open response', async () => {
    proves('http.endpoint-post')
    const { server } = servedOverHttp()
    await serving(server, {}, async (listening) => {
      const { status, headers, json } = await send(listening.url, call('echo', { text: 'Grüße' }))
      expect([status, headers['content-type'], headers['mcp-session-id']]).toEqual([
        200,
        'application/json',
        undefined,
      ])
      expect(json).toMatchObject({ id: 1, ...text('Grüße') })
      expect([listening.sessions, listening.openResponses]).toEqual([0, 0])
    })
  })

  it('gets a stream without event ids if other messages precede the response', async () => {
    proves('http.notifications-relate', 'http.no-requests', 'http.buffering')
    const { server, gate } = servedOverHttp()
    await serving(server, {}, async (listening) => {
      const stream = await open(listening.url, call('steps', { gate: 'a' }, progressing))
      expect(stream.headers).toMatchObject({
        'content-type': 'text/event-stream',
        'x-accel-buffering': 'no',
      })
      expect(await stream.message()).toMatchObject({ params: { progress: 1 } })
      gate.open('a')
      await stream.ended()
      expect(stream.text).toContain('passed a')
      expect(stream.text).not.toMatch(/^(?:id|retry):/m)
      expect(listening.openResponses).toBe(0)
    })
  })

  it('is kept alive while a step beside a question runs, which runs once', async () => {
    const { gate } = servedOverHttp()
    let charged = 0
    const schema = {
      type: 'object',
      properties: { ok: { type: 'boolean' } },
      required: ['ok'],
    } as const
    const charge = tool({
      name: 'charge',
      async run(_, current) {
        const charging = current.step('charge', async () => {
          await gate.wait('charged')
          return ++charged
        })
        const [times] = await Promise.all([
          charging,
          current.ask({ sure: form({ message: 'Sure?', schema }) }),
        ])
        return `charged ${times}`
      },
    })
    const _meta = { 'io.modelcontextprotocol/clientCapabilities': { elicitation: {} } }
    await serving(
      createServer({ name: 'shop', version: '1', tools: [charge] }),
      { keepAlive: 10 },
      async ({ url }) => {
        const stream = await open(url, call('charge', {}, { _meta }))
        await stream.has(':\n')
        gate.open('charged')
        const asked = (await stream.message()) as {
          result: { resultType: string; requestState: string }
        }
        expect(asked.result.resultType).toBe('input_required')
        const inputResponses = { sure: { action: 'accept', content: { ok: true } } }
        const { json } = await send(
          url,
          call('charge', {}, { _meta, inputResponses, requestState: asked.result.requestState }),
        )
        expect([json].flat()).toMatchObject([text('charged 1')])
        expect(charged).toBe(1)
      },
    )
  })

  it.each([true, false])(
    'is cancelled by whoever closes it (told something before: %s)',
    async (told) => {
      proves('http.close-cancels', 'cancellation.http')
      const { server, ended } = servedOverHttp()
      await serving(server, {}, async (listening) => {
        const asked = open(
          listening.url,
          call(told ? 'steps' : 'quiet', { gate: 'b' }, progressing),
        )
        if (told) {
          const stream = await asked
          await stream.message()
          stream.disconnect()
        } else {
          asked.catch(() => {})
          await until(() => expect(listening.openResponses).toBe(1))
          // Nothing has come yet, so the connection itself is all there is to break.
          const { port } = listening
          expect(port).toBeGreaterThan(0)
          const controller = new AbortController()
          const { headers, body, method } = call('quiet', { gate: 'c' })
          const second = fetch(listening.url, {
            method,
            headers: headers as Record<string, string>,
            body: String(body),
            signal: controller.signal,
          })
          second.catch(() => {})
          await until(() => expect(listening.openResponses).toBe(2))
          controller.abort()
        }
        await until(() => expect(ended.get(told ? 'b' : 'c')).toMatch(/^stopped/))
      })
    },
  )

  it.each(['by the reason', 'by an error that says so', 'by one that has it as its cause'])(
    'is not a failure if it stops as it was told to, %s',
    async (how) => {
      const log: string[] = []
      const server = createServer({ name: 'stopping', version: '1' })
      let begun = 0
      server.tools.add(
        tool({
          name: 'wait',
          run: (_, { signal }) =>
            new Promise((__, reject) => {
              begun++
              signal.addEventListener('abort', () => {
                const reason = signal.reason as Error
                if (how.endsWith('reason')) reject(reason)
                else if (how.endsWith('cause')) reject(new Error('stopped', { cause: reason }))
                else reject(new DOMException('stopped', 'AbortError'))
              })
            }),
        }),
      )
      await serving(
        server,
        { log: { write: (line) => log.push(line) }, logLevel: 'debug' },
        async ({ url }) => {
          const controller = new AbortController()
          const gone = expect(
            fetch(url, {
              ...call('wait'),
              headers: call('wait').headers as Record<string, string>,
              signal: controller.signal,
            }),
          )
          await until(() => expect(begun).toBe(1))
          controller.abort()
          await gone.rejects.toThrow()
          await until(() => expect(log.join('')).toContain('Tool wait was aborted by its signal'))
          expect(log.join('')).not.toContain('error')
        },
      )
    },
  )

  it('may have the same id as others in progress', async () => {
    const { server, gate } = servedOverHttp()
    await serving(server, {}, async ({ url }) => {
      const one = open(url, call('steps', { gate: 'one' }, progressing))
      const other = open(url, call('steps', { gate: 'other' }, progressing))
      gate.open('other')
      gate.open('one')
      const answers = await Promise.all([(await one).ended(), (await other).ended()]).then(
        async () => [(await one).text, (await other).text],
      )
      expect(answers[0]).toContain('passed one')
      expect(answers[0]).not.toContain('other')
      expect(answers[1]).toContain('passed other')
    })
  })

  it('ignores Mcp-Session-Id and Last-Event-ID', async () => {
    proves('http.earlier')
    const { server } = servedOverHttp()
    await serving(server, {}, async ({ url }) => {
      const { status, headers } = await send(
        url,
        headed(call('echo', { text: 'x' }), { 'mcp-session-id': 'unknown', 'last-event-id': '5' }),
      )
      expect([status, headers['mcp-session-id']]).toEqual([200, undefined])
      for (const method of ['GET', 'DELETE'])
        expect((await send(url, { method, headers: {} })).status).toBe(405)
    })
  })

  it('may be a notification, which gets 202', async () => {
    const { server } = servedOverHttp()
    await serving(server, {}, async ({ url }) => {
      const headers = { ...POST, 'mcp-protocol-version': '2026-07-28' }
      const { status, text: body } = await send(url, {
        headers,
        body: message('notifications/cancelled', { requestId: 1 }),
      })
      expect([status, body]).toEqual([202, ''])
    })
  })
})

describe('subscriptions/listen', () => {
  const listen = (notifications: object, id: string | number = 'l') =>
    statelessRequest('subscriptions/listen', { notifications }, id)
  const tag = (id: string | number) => ({
    params: { _meta: { 'io.modelcontextprotocol/subscriptionId': id } },
  })

  it('acknowledges the subscription, and sends the requested notifications', async () => {
    const { server } = servedOverHttp()
    await serving(server, {}, async (listening) => {
      const tools = await open(
        listening.url,
        listen({ toolsListChanged: true, resourceSubscriptions: ['note://one'] }, 1),
      )
      const prompts = await open(listening.url, listen({ promptsListChanged: true }, 1))
      expect(await tools.message()).toMatchObject({
        method: 'notifications/subscriptions/acknowledged',
        ...tag(1),
      })
      expect(await prompts.message()).toMatchObject({
        method: 'notifications/subscriptions/acknowledged',
      })
      server.tools.disable('big')
      expect(await tools.message()).toMatchObject({
        method: 'notifications/tools/list_changed',
        ...tag(1),
      })
      server.updated('note://two')
      server.updated('note://one')
      expect(await tools.message()).toMatchObject({
        method: 'notifications/resources/updated',
        params: { uri: 'note://one' },
      })
      server.prompts.disable('hello')
      expect(await prompts.message()).toMatchObject({
        method: 'notifications/prompts/list_changed',
      })
      expect(prompts.seen).toHaveLength(2)
      expect(listening.openResponses).toBe(2)
      tools.disconnect()
      prompts.disconnect()
      await until(() => expect(listening.openResponses).toBe(0))
    })
  })

  it('sends keep-alive comments', async () => {
    const { server } = servedOverHttp()
    await serving(server, { keepAlive: 10 }, async ({ url }) => {
      const stream = await open(url, listen({ toolsListChanged: true }))
      await stream.has('\n:\n\n:\n\n')
      expect(stream.seen).toHaveLength(1)
      stream.disconnect()
    })
  })

  it('ends with a response when the server closes', async () => {
    const { server } = servedOverHttp()
    await serving(server, {}, async (listening) => {
      const stream = await open(listening.url, listen({ toolsListChanged: true }, 'last'))
      await stream.message()
      await listening.close(5000)
      expect(await stream.message()).toMatchObject({
        id: 'last',
        result: {
          resultType: 'complete',
          _meta: { 'io.modelcontextprotocol/subscriptionId': 'last' },
        },
      })
      expect(await stream.next()).toBeUndefined()
    })
  })
})

describe('a long call', () => {
  it('becomes a stream with keep-alive comments', async () => {
    const { server, gate } = servedOverHttp()
    await serving(server, { keepAlive: 10 }, async ({ url }) => {
      const stream = await open(url, call('quiet', { gate: 'slow' }))
      expect(stream.headers['content-type']).toBe('text/event-stream')
      await stream.has(':\n\n')
      gate.open('slow')
      expect(await stream.message()).toMatchObject(text('passed slow'))
    })
  })
})

describe('call.ask in a stateless request', () => {
  it('returns the questions, and runs the call again with the answers', async () => {
    const { server } = servedOverHttp()
    await serving(server, {}, async ({ url }) => {
      const capabilities = {
        _meta: { 'io.modelcontextprotocol/clientCapabilities': { elicitation: {} } },
      }
      const first = await send(url, call('ask', {}, capabilities))
      const { result } = first.json as { result: { requestState: string } }
      expect(result).toMatchObject({
        resultType: 'input_required',
        inputRequests: { who: { method: 'elicitation/create' } },
      })
      const retry = {
        inputResponses: { who: { action: 'accept', content: { name: 'Ada' } } },
        requestState: result.requestState,
      }
      expect((await send(url, call('ask', {}, { ...capabilities, ...retry }))).json).toMatchObject(
        text('It is Ada'),
      )
      const forged = await send(
        url,
        call('ask', {}, { ...capabilities, ...retry, requestState: `${result.requestState}x` }),
      )
      expect(forged.json).toMatchObject({ error: { code: -32602 } })
    })
  })

  it('needs the client capability', async () => {
    proves('meta.undeclared-http')
    const { server } = servedOverHttp()
    await serving(server, {}, async ({ url }) => {
      const { status, json } = await send(url, call('ask'))
      expect(status).toBe(400)
      expect(json).toMatchObject({
        error: { code: -32021, data: { requiredCapabilities: { elicitation: {} } } },
      })
    })
  })
})

describe('routing headers', () => {
  const region = (args: object, headers: Record<string, string | undefined>) =>
    headed(call('region', args), headers)
  const uri = 'note://ü/x'
  const good: [string, ReturnType<typeof call>][] = [
    ['plain', region({ region: 'us-west1' }, { 'mcp-param-region': 'us-west1' })],
    [
      'with spaces around',
      region({ region: 'us' }, { 'mcp-param-region': '  us  ', 'mcp-name': '  region ' }),
    ],
    ['in any case', headed(region({ region: 'us' }, {}), { 'MCP-PARAM-REGION': 'us' })],
    ['encoded', region({ region: 'Hello, 世界' }, { 'mcp-param-region': base64('Hello, 世界') })],
    [
      'encoded though it need not be',
      region({ region: 'us' }, { 'mcp-param-region': base64('us') }),
    ],
    [
      'encoded, with a line end',
      region({ region: 'a\nb' }, { 'mcp-param-region': base64('a\nb') }),
    ],
    [
      'that looks half encoded',
      region({ region: '=?base64?SGk=' }, { 'mcp-param-region': '=?base64?SGk=' }),
    ],
    ['the empty text', region({ region: '' }, { 'mcp-param-region': '' })],
    ['a number', region({ level: 42 }, { 'mcp-param-level': '42' })],
    ['a number, written otherwise', region({ level: 42 }, { 'mcp-param-level': '42.0' })],
    ['a negative number', region({ level: -7 }, { 'mcp-param-level': '-7' })],
    ['yes or no', region({ dry: false }, { 'mcp-param-dry': 'false' })],
    [
      'an encoded name',
      headed(statelessRequest('resources/read', { uri }), { 'mcp-name': base64(uri) }),
    ],
    ['a header of somebody else', headed(call('echo', { text: 'x' }), { 'mcp-param-other': 'y' })],
  ]
  const bad: [string, ReturnType<typeof call>][] = [
    ['no method', headed(call('echo', { text: 'x' }), { 'mcp-method': undefined })],
    ['another method', headed(call('echo', { text: 'x' }), { 'mcp-method': 'tools/list' })],
    ['the method in capitals', headed(call('echo', { text: 'x' }), { 'mcp-method': 'TOOLS/CALL' })],
    ['no name', headed(call('echo', { text: 'x' }), { 'mcp-name': undefined })],
    ['another name', headed(call('echo', { text: 'x' }), { 'mcp-name': 'Echo' })],
    [
      'another prompt',
      headed(statelessRequest('prompts/get', { name: 'hello' }), { 'mcp-name': 'goodbye' }),
    ],
    [
      'another resource',
      headed(statelessRequest('resources/read', { uri: 'note://one' }), {
        'mcp-name': 'note://two',
      }),
    ],
    ['no version', headed(call('echo', { text: 'x' }), { 'mcp-protocol-version': undefined })],
    [
      'another version',
      headed(call('echo', { text: 'x' }), { 'mcp-protocol-version': '2025-11-25' }),
    ],
    ['no parameter', region({ region: 'us' }, {})],
    ['another parameter', region({ region: 'us' }, { 'mcp-param-region': 'eu' })],
    ['a parameter that is not there', region({}, { 'mcp-param-region': 'us' })],
    ['a parameter that is null', region({ region: null }, { 'mcp-param-region': 'null' })],
    ['another number', region({ level: 42 }, { 'mcp-param-level': '43' })],
    ['no number', region({ level: 0 }, { 'mcp-param-level': '' })],
    ['a number in hexadecimal', region({ level: 16 }, { 'mcp-param-level': '0x10' })],
    ['yes for no', region({ dry: false }, { 'mcp-param-dry': 'FALSE' })],
    [
      'Base64 without padding',
      region({ region: 'Hello' }, { 'mcp-param-region': '=?base64?SGVsbG8?=' }),
    ],
    [
      'Base64 that nobody writes so',
      region({ region: 'Hello' }, { 'mcp-param-region': '=?base64?SGVsbG9=?=' }),
    ],
    [
      'Base64 with other characters',
      region({ region: 'Hello' }, { 'mcp-param-region': '=?base64?SGVs!!!bG8=?=' }),
    ],
    ['Base64 for the web', region({ region: '??>' }, { 'mcp-param-region': '=?base64?Pz8-?=' })],
    ['Base64 of no UTF-8', region({ region: '\uFFFD' }, { 'mcp-param-region': '=?base64?/w==?=' })],
    [
      'a mark in capitals',
      region({ region: 'Hello' }, { 'mcp-param-region': '=?BASE64?SGVsbG8=?=' }),
    ],
    ['bytes that a header must not have', region({ region: 'ü' }, { 'mcp-param-region': 'ü' })],
  ]

  const use = async (asked: ReturnType<typeof call>): Promise<Answer> => {
    let answer: Answer | undefined
    await serving(servedOverHttp().server, {}, async ({ url }) => {
      answer = await send(url, asked)
    })
    if (answer === undefined) throw new Error('no answer')
    return answer
  }
  it.each(good)('are accepted: %s', async (_, asked) => {
    proves('http.decode', 'http.header-case')
    const { status, json } = await use(asked)
    expect(json).toHaveProperty('result')
    expect(status).toBe(200)
  })
  it.each(bad)('are refused: %s', async (_, asked) => {
    proves(
      'http.header-matches',
      'http.header-missing',
      'http.standard-headers',
      'http.param-characters',
      'http.param-matches',
      'http.param-table',
      'http.headers-match',
    )
    const { status, json, headers } = await use(asked)
    expect([status, headers['content-type']]).toEqual([400, 'application/json'])
    expect(json).toMatchObject({
      jsonrpc: '2.0',
      id: 1,
      error: { code: -32020, message: expect.stringContaining('Header mismatch') as string },
    })
  })
})

describe('one URL', () => {
  it('serves sessions and stateless requests at the same time', async () => {
    proves('http.unknown-method')
    const { server } = servedOverHttp()
    await serving(server, {}, async ({ url }) => {
      const params = {
        protocolVersion: '2025-11-25',
        capabilities: {},
        clientInfo: { name: 'x', version: '1' },
      }
      // As strangers do: with headers of the newest, or of none.
      const headers = { ...POST, 'mcp-protocol-version': '2025-11-25', 'mcp-method': 'initialize' }
      expect(
        (await send(url, { headers, body: message('initialize', params, 1) })).json,
      ).toMatchObject({
        result: { protocolVersion: '2025-11-25' },
      })
      const modern = { ...params, _meta: META }
      expect(await send(url, statelessRequest('initialize', modern))).toMatchObject({
        status: 404,
        json: { error: { code: -32601 } },
      })
      expect((await send(url, statelessRequest('server/discover'))).status).toBe(200)
    })
  })
})
