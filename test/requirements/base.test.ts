import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { type JsonSchema, RpcError, createServer, prompt, resource, tool } from '../../src/index.js'
import { newestHandshakeRevision } from '../../src/protocol/revisions/index.js'
import { answers, drive, initialize } from '../drive.js'
import { proves } from './proves.js'
import { type Answer, Wire, handshakes, ids, listOf, modern } from './wire.js'

/* https://modelcontextprotocol.io/specification/2026-07-28/basic and the lifecycle pages */

const thrown: Record<string, unknown> = {
  integer: new RpcError(-5, 'own'),
  fraction: new RpcError(1.5, 'x'),
  nan: new RpcError(Number.NaN, 'x'),
  text: new RpcError('oops' as unknown as number, 'x'),
}
const server = () =>
  createServer({
    name: 'base',
    version: '1',
    title: 'Base',
    tools: [
      tool({ name: 'echo', input: { type: 'object' }, run: (input) => JSON.stringify(input) }),
      tool({
        name: 'wait',
        run: (_, { signal }) => new Promise((resolve) => signal.addEventListener('abort', resolve)),
      }),
      tool({
        name: 'who',
        run: (_, { client }) =>
          JSON.stringify([client.info?.name, client.capabilities, client.revision]),
      }),
      ...Object.entries(thrown).map(([name, error]) =>
        tool({
          name,
          run() {
            throw error
          },
        }),
      ),
    ],
    resources: [resource({ uri: 'a://b', read: () => 'x' })],
    prompts: [prompt({ name: 'p', build: () => 'x' })],
  })
const call = (wire: Wire, name: string, id?: unknown) =>
  wire.request('tools/call', { name, arguments: {} }, id)
const textOf = (answer: Answer) => listOf<{ text: string }>(answer, 'content')[0]?.text

describe.each(ids)('messages in %s', (revision) => {
  it('follow JSON-RPC 2.0', async () => {
    proves(
      'base.json-rpc',
      'base.components',
      'base.result-or-error',
      'base.result',
      'base.error',
      'base.error-code',
    )
    const wire = await Wire.open(server(), revision)
    const came = [
      await call(wire, 'echo'),
      await call(wire, 'nope'),
      ...(await Promise.all(Object.keys(thrown).map((name) => call(wire, name)))),
    ]
    for (const answer of came) {
      expect(answer.jsonrpc).toBe('2.0')
      expect(Object.keys(answer).toSorted()).toEqual(
        answer.error === undefined ? ['id', 'jsonrpc', 'result'] : ['error', 'id', 'jsonrpc'],
      )
      if (answer.error !== undefined)
        expect([Number.isInteger(answer.error.code), typeof answer.error.message]).toEqual([
          true,
          'string',
        ])
    }
    expect(came.map(({ error }) => error?.code)).toEqual([
      undefined,
      -32602,
      -5,
      -32603,
      -32603,
      -32603,
    ])
  })

  it('get a response with exactly the id of the request', async () => {
    proves('base.response-id', 'base.error-id', 'base.request-id')
    const wire = await Wire.open(server(), revision)
    for (const id of [0, -1, 7, '7', '', 'ä', 2 ** 53 - 1]) {
      expect((await call(wire, 'echo', id)).id).toBe(id)
      expect((await call(wire, 'nope', id)).id).toBe(id)
    }
    const params =
      revision === modern ? `,"params":{"_meta":${JSON.stringify(wire.description)}}` : ''
    void wire.raw(
      `{"jsonrpc":"2.0","id":9007199254740993,"method":"tools/list"${params}}`,
      undefined,
    )
    await wire.settle()
    expect(wire.frames.at(-1)).toContain('"id":9007199254740993,')
  })

  it('with an id that is null, a fraction or of another type are invalid requests', async () => {
    proves('base.request-id', 'base.request-id-null')
    const wire = await Wire.open(server(), revision)
    const method = 'tools/list'
    await wire.request(method)
    for (const id of [null, 1.5, true, {}, [1]]) {
      wire.frames.length = 0
      void wire.request(method, {}, id)
      await wire.settle()
      expect(wire.frames.map((frame) => (JSON.parse(frame) as Answer).error?.code)).toEqual([
        -32600,
      ])
    }
  })

  it('that are notifications get no response', async () => {
    proves('base.notification-unanswered')
    const wire = await Wire.open(server(), revision)
    await wire.settle()
    wire.frames.length = 0
    for (const method of [
      'notifications/initialized',
      'notifications/unknown',
      'tools/list',
      'tools/call',
      'initialize',
      'nope',
    ])
      for (const params of [undefined, {}, { name: 'echo', requestId: 99 }])
        wire.notify(method, params)
    void wire.raw('{"jsonrpc":"2.0","method":"notifications/cancelled","params":"x"}', undefined)
    await wire.settle()
    expect(wire.frames).toEqual([])
  })

  it('that the server sends on its own are notifications without an id', async () => {
    proves(
      'base.notification-id',
      'patterns.no-server-requests',
      'stdio.no-requests',
      'lifecycle.server-waits',
      'transports.directions',
    )
    const one = server()
    const wire = await Wire.open(one, revision, { ready: false })
    one.tools.disable('echo')
    one.log.error('x')
    expect((await wire.settle()).filter(({ id }) => id !== undefined)).toEqual([])
    if (revision === modern)
      void wire.request('subscriptions/listen', { notifications: { toolsListChanged: true } })
    else wire.notify('notifications/initialized')
    await wire.settle()
    one.tools.enable('echo')
    const meta = { progressToken: 1, 'io.modelcontextprotocol/logLevel': 'debug' }
    await wire.request('tools/call', { name: 'echo', arguments: {}, _meta: meta })
    const heard = await wire.settle()
    expect(heard.map(({ method }) => method)).toContain('notifications/tools/list_changed')
    for (const message of heard) expect(message).not.toHaveProperty('id')
  })

  it('may reuse an id after the response, not before', async () => {
    proves('base.request-id-free')
    const wire = await Wire.open(server(), revision)
    void call(wire, 'wait', 'same')
    expect((await call(wire, 'echo', 'same')).error).toMatchObject({ code: -32600 })
    wire.notify('notifications/cancelled', { requestId: 'same' })
    expect((await call(wire, 'echo', 'same')).result).toBeDefined()
    expect((await call(wire, 'echo', 'same')).result).toBeDefined()
  })

  it('get a response also with invalid values of reserved _meta keys', async () => {
    proves('base.meta-values')
    const wire = await Wire.open(server(), revision, { judged: false })
    for (const token of [1.5, null, {}, [], true]) {
      const { result } = await wire.request('tools/call', {
        name: 'echo',
        arguments: {},
        _meta: { progressToken: token },
      })
      expect(result).toBeDefined()
    }
    for (const key of ['protocolVersion', 'clientCapabilities', 'clientInfo']) {
      const { error } = await wire.request('tools/list', {
        _meta: { ...wire.description, [`io.modelcontextprotocol/${key}`]: 5 },
      })
      expect(error?.code).toBe(-32602)
    }
    expect(
      (await wire.raw({ jsonrpc: '2.0', id: 'm', method: 'tools/list', params: { _meta: 5 } }, 'm'))
        .id,
    ).toBe('m')
  })
})

it('batches are accepted if the revision has them', async () => {
  proves('base.batches')
  const batch =
    '[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","method":"x"},{"jsonrpc":"2.0","id":2,"method":"tools/list"}]'
  const came = await answers(server(), [...initialize('2025-03-26'), batch])
  expect(came[1]).toMatchObject([
    { id: 1, result: {} },
    { id: 2, result: { tools: expect.any(Array) as unknown } },
  ])
})

describe('schemas', () => {
  const refused = (input: unknown) => {
    try {
      createServer({
        name: 's',
        version: '1',
        tools: [{ name: 't', input: input as JsonSchema, run: () => '' }],
      })
    } catch (error) {
      return (error as Error).message
    }
    return 'taken'
  }
  const served = async (input: JsonSchema, value: object) => {
    const one = createServer({
      name: 's',
      version: '1',
      tools: [{ name: 't', input, run: () => '' }],
    })
    return (
      await (await Wire.open(one, modern)).request('tools/call', { name: 't', arguments: value })
    ).result?.['isError']
  }
  const draft7 = { $schema: 'http://json-schema.org/draft-07/schema#', type: 'object' } as const

  it('are JSON Schema 2020-12 by default, and draft-07 by $schema', async () => {
    proves('schemas.supported-dialects', 'schemas.default-dialect', 'schemas.dialects')
    // The dialects differ: `prefixItems` is 2020-12, an array of `items` is draft-07.
    const properties = { a: { type: 'array', prefixItems: [{ type: 'string' }] } }
    expect(await served({ type: 'object', properties }, { a: [5] })).toBe(true)
    expect(
      await served(
        { $schema: 'https://json-schema.org/draft/2020-12/schema', type: 'object', properties },
        { a: [5] },
      ),
    ).toBe(true)
    expect(await served({ ...draft7, properties }, { a: [5] })).toBe(false)
    expect(
      await served({ ...draft7, properties: { a: { items: [{ type: 'string' }] } } }, { a: [5] }),
    ).toBe(true)
    for (const $schema of [
      'http://json-schema.org/draft-04/schema#',
      'https://json-schema.org/draft/2019-09/schema',
      'x',
      5,
    ])
      expect(refused({ $schema, type: 'object' })).toContain(
        'is not supported; use JSON Schema 2020-12 (the default) or draft-07',
      )
  })

  it('are documented', () => {
    proves('schemas.documented', 'schemas.supported-dialects')
    const readme = readFileSync(new URL('../../README.md', import.meta.url), 'utf8')
    expect(readme).toMatch(/2020-12.*draft-07/)
  })

  it('are rejected when they are invalid', () => {
    proves('schemas.valid')
    for (const part of [
      { type: 'nope' },
      { minimum: 'x' },
      { required: 'a' },
      { properties: [] },
      { pattern: '(' },
      { enum: 5 },
      { anyOf: {} },
    ])
      expect(refused({ type: 'object', properties: { a: part } })).toContain(
        'Tool "t": its input schema',
      )
  })

  it('never cause a network request, and reject a $ref that cannot be resolved', async () => {
    proves('schemas.no-fetching', 'schemas.fetching-off', 'schemas.unresolved')
    const fetched: unknown[] = []
    const { fetch } = globalThis
    globalThis.fetch = (...args: unknown[]) => {
      fetched.push(args)
      return Promise.reject(new Error('no'))
    }
    try {
      for (const $ref of [
        'https://example.com/s.json',
        'http://127.0.0.1:1/s',
        '//example.com/s',
        's.json',
      ])
        expect(refused({ type: 'object', properties: { a: { $ref } } })).toContain(
          'nothing is fetched',
        )
      for (const $ref of ['#/$defs/none', '#none'])
        expect(refused({ type: 'object', properties: { a: { $ref } } })).toContain('Tool "t"')
      await new Promise((resolve) => setImmediate(resolve))
    } finally {
      globalThis.fetch = fetch
    }
    expect(fetched).toEqual([])
  })

  it('are limited in depth, size and validation time', async () => {
    proves('schemas.bounds')
    let deep: JsonSchema = {}
    for (let level = 0; level < 100; level++) deep = { anyOf: [deep] }
    expect(refused({ type: 'object', properties: { a: deep } })).toContain('too large')
    expect(
      refused({ type: 'object', allOf: Array.from({ length: 20_000 }, () => ({})) }),
    ).toContain('too large')
    const before = process.hrtime.bigint()
    expect(
      await served(
        { type: 'object', properties: { a: { type: 'string', pattern: '^(a+)+$' } } },
        { a: `${'a'.repeat(50_000)}!` },
      ),
    ).toBe(true)
    // Not a measure of speed: without the limit, validation would never end.
    expect(Number(process.hrtime.bigint() - before) / 1e9).toBeLessThan(20)
  })
})

describe(`results in ${modern}`, () => {
  const requests: Record<string, Record<string, unknown>> = {
    'server/discover': {},
    'tools/list': {},
    'tools/call': { name: 'echo', arguments: {} },
    'resources/list': {},
    'resources/templates/list': {},
    'resources/read': { uri: 'a://b' },
    'prompts/list': {},
    'prompts/get': { name: 'p' },
  }

  it.each(Object.entries(requests))(
    '%s has a resultType and serverInfo',
    async (method, params) => {
      proves('base.result-type', 'base.result-types', 'meta.server-info')
      const { result } = await (await Wire.open(server(), modern)).request(method, params)
      expect(result?.['resultType']).toBe('complete')
      expect(result?.['_meta']).toEqual({
        'io.modelcontextprotocol/serverInfo': { name: 'base', version: '1', title: 'Base' },
      })
    },
  )
})

describe(`errors in ${modern}`, () => {
  it('use no codes of earlier revisions and none from reserved ranges for other purposes', async () => {
    proves('errors.legacy-range', 'errors.reserved-range', 'errors.retired')
    const wire = await Wire.open(server(), modern)
    const requests: [string, Record<string, unknown>][] = [
      ['nope', {}],
      ['ping', {}],
      ['initialize', { protocolVersion: modern }],
      ['logging/setLevel', { level: 'info' }],
      ['tools/call', { name: 'nope' }],
      ['tools/call', {}],
      ['resources/read', { uri: 'nope://x' }],
      ['resources/read', {}],
      ['resources/subscribe', { uri: 'a://b' }],
      ['prompts/get', { name: 'nope' }],
      ['completion/complete', {}],
      ['tools/list', { cursor: 'x' }],
      ['subscriptions/listen', {}],
      ['tools/list', { _meta: { 'io.modelcontextprotocol/logLevel': 'loud' } }],
    ]
    for (const [method, params] of requests) {
      const { error } = await wire.request(method, params)
      expect([method, [-32601, -32602].includes(error?.code ?? 0)]).toEqual([method, true])
    }
    const { error } = await wire.request('tools/list', {
      _meta: { 'io.modelcontextprotocol/protocolVersion': '2099-01-01' },
    })
    expect(error?.code).toBe(-32022)
  })
})

describe(`stateless requests in ${modern}`, () => {
  const describing = (name: string, capabilities: object, more = {}) => ({
    'io.modelcontextprotocol/protocolVersion': modern,
    'io.modelcontextprotocol/clientCapabilities': capabilities,
    'io.modelcontextprotocol/clientInfo': { name, version: '1' },
    ...more,
  })
  const who = (meta: object, id: unknown) => ({
    jsonrpc: '2.0',
    id,
    method: 'tools/call',
    params: { name: 'who', arguments: {}, _meta: meta },
  })

  it('are served by their own metadata, whatever came before', async () => {
    proves('stateless.no-context', 'stateless.many-conversations', 'stateless.any-connection')
    const one = server()
    const wire = await Wire.open(one, '2025-06-18')
    const ask = async (meta: object, id: unknown, over = wire) =>
      JSON.parse(textOf(await over.raw(who(meta, id), id)) ?? '') as unknown
    expect(await ask(describing('a', { sampling: {} }), 'r1')).toEqual([
      'a',
      { sampling: {} },
      modern,
    ])
    expect(await ask(describing('b', {}), 'r2')).toEqual(['b', {}, modern])
    const { ['io.modelcontextprotocol/clientInfo']: _, ...unnamed } = describing('c', {})
    expect(await ask(unnamed, 'r3')).toEqual([null, {}, modern])
    expect(await ask({}, 'r4')).toEqual(['wire', {}, '2025-06-18'])
    expect(await ask(describing('d', {}), 'r5', new Wire(one, modern))).toEqual(['d', {}, modern])
  })

  it('carry all state between requests themselves', async () => {
    proves('stateless.handles')
    const many = createServer({
      name: 's',
      version: '1',
      pageSize: 1,
      tools: ['a', 'b'].map((name) => tool({ name, run: () => '' })),
    })
    const { result } = await (await Wire.open(many, modern)).request('tools/list')
    const next = await (
      await Wire.open(many, modern)
    ).request('tools/list', { cursor: result?.['nextCursor'] })
    expect(next.result?.['tools']).toMatchObject([{ name: 'b' }])
  })

  it('with incomplete metadata are rejected', async () => {
    proves('meta.incomplete')
    const wire = new Wire(server(), modern)
    const whole = describing('a', {})
    for (const key of [
      'io.modelcontextprotocol/protocolVersion',
      'io.modelcontextprotocol/clientCapabilities',
    ] as const) {
      const { [key]: _, ...rest } = whole
      expect((await wire.raw(who(rest, key), key)).error?.code).toBe(-32602)
    }
    // A method that only the stateless revision has, without metadata.
    expect(
      (await wire.raw({ jsonrpc: '2.0', id: 'd', method: 'server/discover' }, 'd')).error?.code,
    ).toBe(-32602)
  })

  it('are served alike, whatever clientInfo says', async () => {
    proves('meta.not-for-behaviour')
    const one = server()
    const [a, b] = [
      await Wire.open(one, modern, { name: 'claude-ai' }),
      await Wire.open(one, modern, { name: 'x' }),
    ]
    for (const method of ['server/discover', 'tools/list', 'resources/list', 'prompts/list'])
      expect((await a.request(method)).result).toEqual((await b.request(method)).result)
  })

  it('with an unsupported protocol version are rejected with the supported ones', async () => {
    proves('versioning.unsupported')
    const wire = await Wire.open(server(), modern)
    for (const requested of ['2099-01-01', '2025-11-25', '', 'draft']) {
      const { error } = await wire.request('tools/list', {
        _meta: { 'io.modelcontextprotocol/protocolVersion': requested },
      })
      expect(error).toMatchObject({ code: -32022, data: { supported: [modern], requested } })
    }
  })

  it('get no extensions by default: the server declares none, and serves clients that declare some by the core protocol', async () => {
    proves('versioning.extension-names', 'versioning.extension-fallback')
    const wire = await Wire.open(server(), modern, {
      capabilities: { extensions: { 'com.example/fancy': { level: 9 } } },
    })
    const { result } = await wire.request('server/discover')
    expect(result?.['capabilities']).not.toHaveProperty('extensions')
    const answer = await call(wire, 'who')
    expect(answer.result).toMatchObject({ resultType: 'complete', isError: false })
    expect(textOf(answer)).toContain('com.example/fancy')
  })

  it('include server/discover', async () => {
    proves('versioning.discover')
    const { result } = await (await Wire.open(server(), modern)).request('server/discover')
    expect(result).toMatchObject({
      supportedVersions: [modern],
      capabilities: { tools: {}, resources: {}, prompts: {}, logging: {} },
    })
  })
})

describe.each(handshakes)('the initialize handshake in %s', (revision) => {
  it('comes before any other request except ping', async () => {
    proves('lifecycle.first')
    const wire = new Wire(server(), revision)
    for (const method of [
      'tools/list',
      'tools/call',
      'resources/read',
      'prompts/list',
      'logging/setLevel',
    ])
      expect((await wire.request(method)).error).toMatchObject({
        code: -32002,
        message: expect.stringContaining('initialize') as string,
      })
    expect((await wire.request('ping')).result).toEqual({})
    expect((await wire.initialize()).result).toBeDefined()
    expect((await wire.request('tools/list')).result).toBeDefined()
    expect((await wire.initialize()).error?.code).toBe(-32600)
  })

  it('returns protocolVersion, capabilities and serverInfo', async () => {
    proves('lifecycle.answer', 'lifecycle.version')
    const { result } = await new Wire(server(), revision).initialize()
    expect(result).toMatchObject({
      protocolVersion: revision,
      capabilities: { tools: {}, resources: {}, prompts: {}, logging: {} },
      serverInfo: { name: 'base', version: '1' },
    })
  })

  it('fixes the revision and the capabilities for the session', async () => {
    proves('lifecycle.operation', 'lifecycle.operation-strict')
    const one = createServer({
      name: 's',
      version: '1',
      tools: [
        tool({
          name: 'audio',
          run: () => ({ type: 'audio', data: 'AAAA', mimeType: 'audio/wav' }),
        }),
      ],
    })
    const wire = await Wire.open(one, revision)
    for (const method of [
      'server/discover',
      'subscriptions/listen',
      'resources/list',
      'tasks/list',
    ])
      expect((await wire.request(method)).error?.code).toBe(-32601)
    const [content] = listOf<{ type: string }>(await call(wire, 'audio'), 'content')
    expect(content?.type).toBe(revision === '2024-11-05' ? 'text' : 'audio')
    // The capability `prompts` was not declared to this client: it gets no list_changed for prompts either.
    one.prompts.add(prompt({ name: 'new', build: () => '' }))
    expect(await wire.settle()).toEqual([])
  })
})

describe('version negotiation', () => {
  it.each(['2099-01-01', '2024-10-07', modern, 'latest', ''])(
    'returns the newest handshake revision when a client proposes %j',
    async (proposed) => {
      proves('lifecycle.version', 'lifecycle.errors', 'versioning.name-versions')
      const { result } = await new Wire(server(), newestHandshakeRevision.id).initialize(proposed)
      expect(result?.['protocolVersion']).toBe(newestHandshakeRevision.id)
    },
  )

  it('can reject an unknown version instead, with the supported ones', async () => {
    proves('lifecycle.errors')
    const strict = createServer({ name: 's', version: '1', unsupportedRevision: 'reject' })
    const wire = new Wire(strict, '2025-11-25')
    expect((await wire.initialize('2099-01-01')).error).toMatchObject({
      code: -32602,
      data: { supported: handshakes, requested: '2099-01-01' },
    })
    // The client can try again.
    expect((await wire.initialize()).result).toBeDefined()
  })
})

it('initialize is rejected in a batch', async () => {
  proves('lifecycle.not-in-batch')
  const [opening = ''] = initialize('2025-03-26')
  const { output } = await drive(server(), `[${opening}]\n${opening}\n`)
  const [refusal, answer] = output
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Answer)
  expect([refusal?.error?.code, answer?.result?.['protocolVersion']]).toEqual([
    -32600,
    '2025-03-26',
  ])
})
