import { describe, expect, it } from 'vitest'
import { connect } from '../../src/client.js'
import { truncate, truncateJson } from '../../src/jsonrpc/truncate.js'
import { createServer, prompt, resource, tool } from '../../src/index.js'
import { connectInMemory, memoryChannels } from '../../src/testing.js'
import { logTo } from '../../src/transports/stdio-log.js'
import { hostileServers } from '../official/hostile.js'
import { META, POST, statelessRequest, message, send, serving } from '../http/caller.js'

/* Long text of a peer is truncated in error messages and in the log. */

const HUGE = '😀x'.repeat(30_000)
const MOST = 6000

const schema = {
  type: 'object',
  properties: { n: { type: 'number' }, list: { type: 'array', items: { type: 'string' } } },
  additionalProperties: false,
} as const
const full = {
  ...schema,
  anyOf: [{ required: ['n'] }, { required: ['list'] }],
  propertyNames: { maxLength: 5 },
} as const
const serverOf = (options: object = {}) =>
  createServer({
    name: 'echo',
    version: '1',
    tools: [
      tool({ name: 'it', input: schema, run: () => 'done' }),
      tool({ name: 'full', input: full, run: () => 'done' }),
      tool({
        name: 'output',
        input: { type: 'object' },
        output: schema,
        run: () => ({ [HUGE]: HUGE, n: HUGE }) as never,
      }),
    ],
    resources: [
      resource({ uri: 'note://one', read: () => 'one' }),
      resource({ uri: 'page://{name}', read: () => undefined, complete: { name: () => [] } }),
    ],
    prompts: [prompt({ name: 'p', arguments: { a: { values: ['x'] } }, build: () => 'built' })],
    ...options,
  })

const REQUESTS: readonly (readonly [method: string, params: Readonly<Record<string, unknown>>])[] =
  [
    [HUGE, {}],
    ['tools/call', { name: HUGE }],
    ['tools/call', { name: { toString: HUGE, valueOf: 1 } }],
    ['tools/call', { name: 'it', arguments: HUGE }],
    ['tools/call', { name: 'it', arguments: { n: HUGE } }],
    ['tools/call', { name: 'it', arguments: { [HUGE]: 1 } }],
    ['tools/call', { name: 'it', arguments: { list: Array.from({ length: 1000 }, (_, n) => n) } }],
    ['tools/call', { name: 'full', arguments: { [HUGE]: HUGE } }],
    ['tools/call', { name: 'full', arguments: { n: [HUGE] } }],
    ['tools/call', { name: 'output' }],
    ['tools/call', { name: 'it', requestState: HUGE }],
    ['tools/call', { name: { toString: 1 }, requestState: 'x' }],
    ['tools/list', { cursor: HUGE }],
    ['resources/read', { uri: `note://${HUGE}` }],
    ['resources/read', { uri: `page://${HUGE}` }],
    ['prompts/get', { name: HUGE }],
    ['prompts/get', { name: 'p', arguments: { [HUGE]: 'x' } }],
    ['prompts/get', { name: 'p', arguments: { a: HUGE } }],
    [
      'prompts/get',
      {
        name: 'p',
        arguments: Object.fromEntries(
          Array.from({ length: 30 }, (_, n) => [`${n}${HUGE.slice(0, 9000)}`, 'x']),
        ),
      },
    ],
    ['completion/complete', { ref: { type: HUGE }, argument: { name: 'a', value: '' } }],
    [
      'completion/complete',
      { ref: { type: 'ref/prompt', name: HUGE }, argument: { name: 'a', value: '' } },
    ],
    [
      'completion/complete',
      { ref: { type: 'ref/prompt', name: { toString: HUGE } }, argument: { name: 'a', value: '' } },
    ],
    [
      'completion/complete',
      { ref: { type: 'ref/prompt', name: 'p' }, argument: { name: HUGE, value: HUGE } },
    ],
    [
      'completion/complete',
      { ref: { type: 'ref/resource', uri: HUGE }, argument: { name: 'a', value: '' } },
    ],
    [
      'completion/complete',
      {
        ref: { type: 'ref/resource', uri: 'page://{name}' },
        argument: { name: HUGE, value: HUGE },
      },
    ],
    ['logging/setLevel', { level: HUGE }],
    ['logging/setLevel', { level: [[HUGE]] }],
    ['initialize', { protocolVersion: HUGE, capabilities: {} }],
    [
      'initialize',
      { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: HUGE, version: '1' } },
    ],
  ]

/** Everything that is sent and logged for these frames. */
async function told(
  server: ReturnType<typeof serverOf>,
  frames: readonly string[],
): Promise<{ sent: string[]; logged: string[] }> {
  const sent: string[] = []
  const logged: string[] = []
  const report = logTo({ write: (line) => logged.push(line) }, 'debug')
  const channel = connectInMemory(server, { report })
  const done = new Promise<void>((resolve) =>
    channel.receive({
      frame: (frame) => (frame.includes('"the last"') ? resolve() : void sent.push(frame)),
      malformed: () => {},
      closed: () => {},
    }),
  )
  for (const frame of frames) channel.send(frame)
  channel.send(message('server/discover', { _meta: META }, 'the last'))
  await done
  await new Promise((resolve) => setImmediate(resolve))
  await channel.close()
  return { sent, logged }
}

const initialize = message(
  'initialize',
  { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'c', version: '1' } },
  'init',
)

function check(lines: readonly string[]): void {
  for (const line of lines) {
    expect(line.length, line.slice(0, 200)).toBeLessThan(MOST)
    expect(line).not.toMatch(/\\ud[89a-f]/)
  }
}

describe.each(
  REQUESTS.map(([method, params], index) => ({
    title: `${index} ${method.slice(0, 30)} ${JSON.stringify(params).slice(0, 60)}`,
    method,
    params,
  })),
)('$title', ({ method, params }) => {
  it.each([
    ['a handshake', [...(method === 'initialize' ? [] : [initialize]), message(method, params, 1)]],
    ['a handshake and too early', [message(method, params, 1)]],
    ['a self-description', [message(method, { ...params, _meta: META }, 1)]],
    [
      'an unknown revision in _meta',
      [
        message(
          method,
          { ...params, _meta: { ...META, 'io.modelcontextprotocol/protocolVersion': HUGE } },
          1,
        ),
      ],
    ],
    [
      'a notification',
      [
        initialize,
        message(method, params),
        message('notifications/cancelled', { requestId: 'x', reason: HUGE }),
      ],
    ],
  ])('by %s', async (_, frames) => {
    for (const options of [
      {},
      { invalidArguments: 'protocol', unexpectedErrors: 'protocol', unsupportedRevision: 'reject' },
    ]) {
      const { sent, logged } = await told(serverOf(options), frames)
      check(sent)
      check(logged)
      // An error of the client.
      if (params['name'] !== 'output') expect(sent.join('\n')).not.toContain('-32603')
    }
  })
})

describe('over HTTP', () => {
  it('errors and log lines truncate long text', async () => {
    const logged: string[] = []
    await serving(
      serverOf(),
      { log: { write: (line) => logged.push(line) }, logLevel: 'debug' },
      async ({ url }) => {
        const text = 'x'.repeat(500_000)
        const meta = { ...META, 'io.modelcontextprotocol/protocolVersion': text }
        const answers = [
          await send(url, {
            ...statelessRequest(text),
            headers: { ...(statelessRequest('ping').headers as object) },
          }),
          await send(url, { headers: POST, body: message(text, { _meta: META }, 1) }),
          await send(url, { headers: POST, body: message('ping', { _meta: meta }, 1) }),
          await send(url, {
            headers: { ...POST, 'mcp-protocol-version': '2026-07-28' },
            body: message('ping', { _meta: meta }, 1),
          }),
          await send(url, {
            headers: { ...POST, 'mcp-protocol-version': 'x'.repeat(8000) },
            body: message(text, {}, 1),
          }),
          await send(`${url}/${'y'.repeat(8000)}`, { method: 'GET', headers: {} }),
          await send(url, {
            headers: [
              'Host',
              'localhost',
              ...Object.entries(POST).flat(),
              `Mcp-${'z'.repeat(6000)}`,
              '1',
              `Mcp-${'z'.repeat(6000)}`,
              '2',
            ],
            body: '{}',
          }),
        ]
        for (const answer of answers) expect(answer.status).toBeGreaterThanOrEqual(400)
        check(answers.map((answer) => answer.text))
        check(logged)
        expect(logged.length).toBeGreaterThanOrEqual(answers.length)
      },
    )
  })
})

describe('a client', () => {
  it('truncates text from the server', async () => {
    const sent: string[] = []
    const open = () => {
      const [client, server] = memoryChannels()
      hostileServers.add(client).add(server)
      server.receive({
        frame(frame) {
          const { id, method } = JSON.parse(frame) as { id?: number; method?: string }
          if (method === undefined) return void sent.push(frame)
          if (id === undefined) return
          if (method === 'server/discover') server.send(message(HUGE, {}, HUGE.slice(0, 500)))
          const result =
            method === 'server/discover'
              ? { supportedVersions: ['2026-07-28'], capabilities: {}, resultType: 'complete' }
              : method === 'tools/list'
                ? { tools: [], nextCursor: HUGE }
                : {
                    resultType: method === 'prompts/list' ? HUGE : 'input_required',
                    inputRequests: { [HUGE]: { method: HUGE } },
                  }
          server.send(JSON.stringify({ jsonrpc: '2.0', id, result }))
        },
        malformed: () => {},
        closed: () => {},
      })
      return client
    }
    const reports: string[] = []
    await using client = await connect(
      { open },
      { report: ({ message: text }) => void reports.push(text) },
    )
    const failures: unknown[] = []
    for (const items of [client.tools(), client.prompts()])
      try {
        for await (const _ of items);
      } catch (error) {
        failures.push(error)
      }
    failures.push(await client.callTool('it').catch((error: unknown) => error))
    expect(failures).toHaveLength(3)
    expect(sent.length).toBeGreaterThan(0)
    check([
      ...failures.map((error) => (error instanceof Error ? error.message : 'no error')),
      ...reports,
      ...sent,
    ])
  })
})

describe('truncate', () => {
  it('keeps surrogate pairs and appends the length', () => {
    expect(truncate('short')).toBe('short')
    expect(truncate('abcdef', 6)).toBe('abcdef')
    expect(truncate('abcdefg', 3)).toBe('abc… (7 characters)')
    expect(truncate('ab😀cd', 3)).toBe('ab… (6 characters)')
    expect(truncate('ab😀cd', 4)).toBe('ab😀… (6 characters)')
    expect(truncateJson({ a: 1 })).toBe('{"a":1}')
    expect(truncateJson(undefined)).toBe('undefined')
    expect(truncateJson('x'.repeat(1000), 50)).toBe(`"${'x'.repeat(50)}… (1000 characters)"`)
    expect(truncateJson([['x'.repeat(1000)]], 50)).toBe(`[["${'x'.repeat(97)}… (1006 characters)`)
  })
})
