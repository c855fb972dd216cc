import { describe, expect, it } from 'vitest'
import { Analysis } from '../../src/capture/analysis.js'
import { chunkRecord } from '../../src/capture/format.js'
import { PROBE_RULES } from '../../src/capture/probe-rules.js'
import { RULES, type RuleId, clauseUrl } from '../../src/capture/rules.js'
import { revisions } from '../../src/protocol/revisions/index.js'
import {
  META,
  asked,
  findingsOf,
  handshake,
  ping,
  pong,
  request,
  result,
  rowsOf,
  schemas,
} from './lines.js'

/** Rules about captures; the others need a server. */
type CaptureRule = Exclude<RuleId, keyof typeof PROBE_RULES>
/** A conversation that breaks the rule, the findings, and a similar one that does not. */
type Example = readonly [lines: readonly string[], findings: string[], correct?: readonly string[]]

const NEWEST = '2026-07-28'
const VERSION_KEY = 'io.modelcontextprotocol/protocolVersion'
const CAPABILITIES_KEY = 'io.modelcontextprotocol/clientCapabilities'
const TOOL = { name: 'add', inputSchema: { type: 'object' } }
const withOutput = {
  ...TOOL,
  outputSchema: { type: 'object', properties: { n: { type: 'number' } } },
}
const cancelled = (id: number) =>
  `> {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":${id}}}`
const progress = (progressToken: string, value: number) =>
  `< ${JSON.stringify({ jsonrpc: '2.0', method: 'notifications/progress', params: { progressToken, progress: value } })}`
const listChanged = '< {"jsonrpc":"2.0","method":"notifications/tools/list_changed"}'
const log =
  '< {"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":1}}'
const listed = (...tools: readonly object[]) => [
  ...handshake('2025-11-25'),
  request(1, 'tools/list'),
  result(1, { tools }),
]
const called = (value: object, id = 2) => [
  request(id, 'tools/call', { name: 'add' }),
  result(id, value),
]
const TEN_CALLS = Array.from({ length: 10 }, (_, i) => called({ content: [] }, i + 2)).flat()
/** A pattern of so many classes, whose compilation is expensive. */
const costlyTool = (classes: number) => ({
  name: 'add',
  inputSchema: { type: 'object', properties: { a: { pattern: '\\p'.repeat(classes) } } },
})
const HINTS = { resultType: 'complete', ttlMs: 0, cacheScope: 'private' }
const discovered = [
  request(1, 'server/discover', { _meta: META }),
  result(1, {
    ...HINTS,
    supportedVersions: [NEWEST],
    capabilities: { tools: { listChanged: true }, prompts: { listChanged: true }, logging: {} },
  }),
]
const listResult = (id: number) => result(id, { ...HINTS, tools: [] })
const listen = request('listen', 'subscriptions/listen', {
  _meta: META,
  notifications: { toolsListChanged: true },
})
const subscribed = (id: string, method: string, params: object = {}) =>
  `< ${JSON.stringify({ jsonrpc: '2.0', method, params: { _meta: { 'io.modelcontextprotocol/subscriptionId': id }, ...params } })}`
const acknowledged = subscribed('listen', 'notifications/subscriptions/acknowledged', {
  notifications: { toolsListChanged: true },
})
const changed = (id: string) => subscribed(id, 'notifications/tools/list_changed')
const asking = (id: number, params: object = {}) =>
  request(id, 'tools/call', { name: 'ask', _meta: META, ...params })
const asks = (id: number, requestState: string) =>
  result(id, { resultType: 'input_required', requestState, inputRequests: {} })
const done = (id: number) => result(id, { resultType: 'complete', content: [] })
const failed = (id: unknown, code: number) =>
  `< ${JSON.stringify({ jsonrpc: '2.0', id, error: { code, message: 'no' } })}`

const EXAMPLES: Readonly<Record<CaptureRule, Example>> = {
  'stray-text': [['< Listening…'], ['stray-text: Listening…']],
  // Over HTTP only: see http.test.ts.
  'partial-event': [[], []],
  'partial-line': [['< {"jsonrpc":"2.0","me$'], ['partial-line: ']],
  'carriage-return': [
    ['< {"jsonrpc":"2.0","method":"notifications/x"}\r'],
    ['carriage-return: \r'],
  ],
  'byte-order-mark': [
    ['> \ufeff{"jsonrpc":"2.0","method":"notifications/x"}'],
    ['byte-order-mark: \ufeff'],
  ],
  'invalid-utf8': [[], []], // see below
  'content-length': [
    ['> {"jsonrpc":"2.0","method":"notifications/x"}', '> Content-Length: 9'],
    ['content-length: Content-Length: 9'],
  ],
  'invalid-header': [['< Content-Type: x', '< '], ['invalid-header: Content-Type: x\n\n']],
  'blank-line': [['> '], ['blank-line: \n']],
  oversized: [[], []], // see frames.test.ts
  'invalid-json': [['< {"ü":1,}'], ['invalid-json: }']],
  'duplicate-key': [
    ['> {"jsonrpc":"2.0","method":"notifications/x","params":{"ü":1,"ü":2}}'],
    ['duplicate-key: "ü"'],
  ],
  'unsafe-number': [
    ['> {"jsonrpc":"2.0","method":"notifications/x","params":{"n":12345678901234567890}}'],
    ['unsafe-number: 12345678901234567890'],
  ],
  'deep-nesting': [[`> ${'['.repeat(501)}`], ['deep-nesting: [']],
  'wrong-version': [['> {"jsonrpc":"1.0","method":"notifications/x"}'], ['wrong-version: "1.0"']],
  'invalid-message': [
    ['< {"jsonrpc":"2.0"}', '< [7]', '< []', '< {"jsonrpc":"2.0","id":1,"result":{},"error":{}}'],
    [
      'invalid-message: {"jsonrpc":"2.0"}',
      'invalid-message: 7',
      'invalid-message: []',
      'invalid-message: {"jsonrpc":"2.0","id":1,"result":{},"error":{}}',
    ],
  ],
  'invalid-id': [
    [
      '> {"jsonrpc":"2.0","id":null,"method":"ping"}',
      '> {"jsonrpc":"2.0","id":1.5,"method":"ping"}',
      '< {"jsonrpc":"2.0","id":1.5,"result":{}}',
    ],
    ['invalid-id: null', 'invalid-id: 1.5', 'invalid-id: 1.5'],
  ],
  'reused-id': [[ping, pong, ping, pong], [`reused-id: ${ping.slice(2)}`]],
  'orphan-response': [
    [ping, pong.replace('1', '"1"')],
    [
      `orphan-response: ${pong.slice(2).replace('1', '"1"')}`,
      `unanswered-request: ${ping.slice(2)}\n`,
    ],
  ],
  'duplicate-response': [[ping, pong, pong], [`duplicate-response: ${pong.slice(2)}`]],
  'unanswered-request': [[ping], [`unanswered-request: ${ping.slice(2)}\n`]],
  batch: [[...handshake('2025-06-18'), `> [${ping.slice(2)}]`, pong], [`batch: ${ping.slice(2)}`]],
  'unknown-revision': [
    handshake('2030-01-01'),
    ['unknown-revision: "2030-01-01"', 'unknown-revision: "2030-01-01"'],
  ],
  'before-initialized': [
    [request(1, 'tools/list'), result(1, { tools: [] })],
    ['before-initialized: "tools/list"'],
  ],
  'undeclared-capability': [
    [
      ...handshake('2025-06-18'),
      request(1, 'prompts/list'),
      result(1, { prompts: [] }),
      asked(1, 'roots/list'),
      '> {"jsonrpc":"2.0","id":1,"result":{"roots":[]}}',
    ],
    ['undeclared-capability: "prompts/list"', 'undeclared-capability: "roots/list"'],
  ],
  'server-request': [
    [
      request(1, 'tools/list', { _meta: META }),
      asked(1, 'roots/list'),
      result(1, { tools: [], resultType: 'complete', ttlMs: 1, cacheScope: 'public' }),
      '> {"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"no"}}',
    ],
    ['server-request: "roots/list"'],
  ],
  'wrong-revision': [
    [
      ...handshake('2025-06-18'),
      request(1, 'server/discover'),
      '< {"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"no"}}',
    ],
    ['wrong-revision: "server/discover"'],
  ],
  schema: [
    [
      ...handshake('2025-06-18'),
      request(1, 'tools/call', { name: 7 }),
      result(1, { content: [{ type: 'text', text: 'ü' }, { type: 'text' }], isError: 'no' }),
    ],
    ['schema: 7', 'schema: {"type":"text"}', 'schema: "no"'],
  ],
  'long-tool-name': [
    [
      ...handshake('2025-06-18'),
      request(1, 'tools/list'),
      result(1, { tools: [{ name: 'x'.repeat(65), inputSchema: { type: 'object' } }] }),
    ],
    [`long-tool-name: "${'x'.repeat(65)}"`],
  ],
  'invalid-error': [
    [ping, '< {"jsonrpc":"2.0","id":1,"error":{"code":"no","message":"x"}}'],
    ['invalid-error: "no"'],
    [ping, '< {"jsonrpc":"2.0","id":1,"error":{"code":-1,"message":"x"}}'],
  ],
  'late-response': [
    [...handshake('2025-11-25'), ping, cancelled(1), pong],
    [`late-response: ${pong.slice(2)}`],
    [...handshake('2025-11-25'), ping, cancelled(1)],
  ],
  progress: [
    [
      ...handshake('2025-11-25'),
      request(1, 'tools/call', { name: 'a', _meta: { progressToken: 'p' } }),
      progress('x', 1),
      progress('p', 1),
      progress('p', 1),
      result(1, { content: [] }),
      progress('p', 2),
    ],
    ['progress: "x"', 'progress: 1', 'progress: "p"'],
    [
      ...handshake('2025-11-25'),
      request(1, 'tools/call', { name: 'a', _meta: { progressToken: 'p' } }),
      progress('p', 1),
      progress('p', 2.5),
      result(1, { content: [] }),
      request(2, 'tools/call', { name: 'a', _meta: { progressToken: 'p' } }),
      progress('p', 1),
      result(2, { content: [] }),
    ],
  ],
  'undeclared-notification': [
    [
      ...handshake('2025-11-25'),
      listChanged,
      '< {"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":1}}',
      '> {"jsonrpc":"2.0","method":"notifications/roots/list_changed"}',
    ],
    [
      'undeclared-notification: "notifications/tools/list_changed"',
      'undeclared-notification: "notifications/message"',
      'undeclared-notification: "notifications/roots/list_changed"',
    ],
    [...handshake('2025-11-25', { tools: { listChanged: true } }), listChanged],
  ],
  'output-schema': [
    [
      ...listed(withOutput),
      ...called({ content: [], structuredContent: { n: 'x' } }),
      ...called({ content: [] }, 3),
    ],
    ['output-schema: {"n":"x"}', 'output-schema: {"content":[]}'],
    [
      ...listed(withOutput),
      ...called({ content: [], structuredContent: { n: 1 } }),
      ...called({ content: [], isError: true }, 3),
    ],
  ],
  'missing-meta': [
    [
      ...discovered,
      request(2, 'tools/list'),
      listResult(2),
      request(3, 'tools/list', { _meta: { [VERSION_KEY]: NEWEST } }),
      listResult(3),
    ],
    [
      `missing-meta: ${request(2, 'tools/list').slice(2)}`,
      `missing-meta: {"${VERSION_KEY}":"${NEWEST}"}`,
    ],
    [...discovered, request(2, 'tools/list', { _meta: META }), listResult(2)],
  ],
  'result-type': [
    [request(1, 'tools/call', { name: 'a', _meta: META }), result(1, { content: [] })],
    ['result-type: {"content":[]}'],
    [
      request(1, 'tools/call', { name: 'a', _meta: META }),
      result(1, { content: [], resultType: 'complete' }),
    ],
  ],
  'cache-hints': [
    [
      request(1, 'tools/list', { _meta: META }),
      result(1, { tools: [], resultType: 'complete', ttlMs: -1 }),
      request(2, 'resources/read', { uri: 'x:1', _meta: META }),
      result(2, { resultType: 'input_required', inputRequests: {}, ttlMs: 1 }),
    ],
    [
      'cache-hints: -1',
      'cache-hints: {"tools":[],"resultType":"complete","ttlMs":-1}',
      'cache-hints: 1',
    ],
    [
      request(1, 'tools/list', { _meta: META }),
      listResult(1),
      request(2, 'resources/read', { uri: 'x:1', _meta: META }),
      result(2, { resultType: 'input_required', inputRequests: {} }),
    ],
  ],
  acknowledgement: [
    [...discovered, listen, changed('listen')],
    ['acknowledgement: "notifications/tools/list_changed"'],
    [...discovered, listen, acknowledged, changed('listen')],
  ],
  'unrequested-notification': [
    [
      ...discovered,
      listen,
      acknowledged,
      changed('listen').replace('tools/list', 'prompts/list'),
      listChanged,
    ],
    [
      'unrequested-notification: "notifications/prompts/list_changed"',
      'unrequested-notification: "notifications/tools/list_changed"',
    ],
    [...discovered, listen, acknowledged, changed('listen'), changed('listen')],
  ],
  'unrequested-log': [
    [...discovered, log],
    ['unrequested-log: "notifications/message"'],
    [
      ...discovered,
      request(2, 'tools/call', {
        name: 'a',
        _meta: { ...META, 'io.modelcontextprotocol/logLevel': 'info' },
      }),
      log,
      result(2, { content: [], resultType: 'complete' }),
    ],
  ],
  'request-state': [
    [
      asking(1),
      asks(1, 'state'),
      asking(2, { requestState: 'other', inputResponses: {} }),
      done(2),
      asking(3),
      asks(3, 'next'),
      asking(4, { inputResponses: {} }),
      done(4),
    ],
    [
      'request-state: "other"',
      `request-state: ${JSON.stringify({ name: 'ask', _meta: META, inputResponses: {} })}`,
    ],
    [
      asking(1),
      asks(1, 'state'),
      asking(2, { requestState: 'state', inputResponses: {} }),
      done(2),
      // Of an earlier connection.
      asking(3, { requestState: 'earlier', inputResponses: { x: { action: 'decline' } } }),
      done(3),
    ],
  ],
  'retry-id': [
    [
      asking(1),
      asks(1, 'state'),
      asking(1, { requestState: 'state', inputResponses: {} }),
      done(1),
    ],
    ['retry-id: 1'],
    [
      asking(1),
      asks(1, 'state'),
      asking(2, { requestState: 'state', inputResponses: {} }),
      done(2),
    ],
  ],
  'undeclared-input': [
    [
      asking(1),
      result(1, { resultType: 'input_required', inputRequests: { r: { method: 'roots/list' } } }),
    ],
    ['undeclared-input: "roots/list"'],
    [
      asking(1, { _meta: { ...META, [CAPABILITIES_KEY]: { roots: {} } } }),
      result(1, { resultType: 'input_required', inputRequests: { r: { method: 'roots/list' } } }),
    ],
  ],
  'unexpected-input-required': [
    [request(1, 'tools/list', { _meta: META }), asks(1, 's')],
    ['unexpected-input-required: "input_required"'],
    [request(1, 'prompts/get', { name: 'p', _meta: META }), asks(1, 's')],
  ],
  'reserved-error-code': [
    [...discovered, asking(2), failed(2, -32002), asking(3), failed(3, -32050)],
    ['reserved-error-code: -32002', 'reserved-error-code: -32050'],
    [
      // A server of an earlier revision may refuse the first request as it likes.
      request('d', 'server/discover', { _meta: META }),
      failed('d', -32002),
      ...handshake('2025-11-25', { resources: {} }),
      request(1, 'resources/read', { uri: 'x:1' }),
      failed(1, -32002),
    ],
  ],
  'header-mismatch': [[], [], []], // see header-rules.test.ts
  'tool-name': [
    listed({ name: 'add numbers', inputSchema: { type: 'object' } }),
    ['tool-name: "add numbers"'],
    listed({ name: 'Add_1.x-y', inputSchema: { type: 'object' } }),
  ],
  'duplicate-name': [
    listed(TOOL, TOOL),
    ['duplicate-name: "add"'],
    [...listed(TOOL), request(2, 'tools/list'), result(2, { tools: [TOOL] })],
  ],
  'invalid-schema': [
    listed({ name: 'a', inputSchema: { type: 'object', required: 'x' } }),
    ['invalid-schema: {"type":"object","required":"x"}', 'schema: "x"'],
    listed({
      name: 'a',
      inputSchema: {
        $schema: 'http://json-schema.org/draft-04/schema#',
        type: 'object',
        properties: { n: { type: 'number', minimum: 0, exclusiveMinimum: true } },
      },
    }),
  ],
  'refused-schema': [
    [
      ...listed(
        { name: 'a', inputSchema: { type: 'object', anyOf: [] } },
        { name: 'b', inputSchema: { type: 'object', properties: { 'a b': {} } } },
        {
          name: 'c',
          inputSchema: { type: 'object', properties: { a: { $ref: 'https://x.example/s' } } },
        },
        { name: 'd', inputSchema: { type: 'object', properties: { a: { type: 'array' } } } },
      ),
    ],
    [
      'invalid-schema: {"type":"object","anyOf":[]}',
      'refused-schema: {"type":"object","anyOf":[]}',
      'refused-schema: {"type":"object","properties":{"a b":{}}}',
      'refused-schema: {"type":"object","properties":{"a":{"$ref":"https://x.example/s"}}}',
      'refused-schema: {"type":"object","properties":{"a":{"type":"array"}}}',
    ],
    listed({
      name: 'a',
      inputSchema: {
        type: 'object',
        properties: {
          a: { $ref: '#/$defs/a' },
          b: { type: 'array', items: { anyOf: [{ type: 'string' }, { type: 'null' }] } },
          // Not with the flag "u", which JSON Schema only recommends.
          c: { type: 'string', pattern: '^[a-z\\-_]+\\-$' },
        },
        $defs: { a: { type: 'string' } },
      },
    }),
  ],
  'not-validated': [
    listed(costlyTool(25_000)),
    [`not-validated: ${JSON.stringify(costlyTool(25_000).inputSchema)}`],
    listed(costlyTool(1)),
  ],
  'large-definitions': [
    listed({ ...TOOL, description: 'x'.repeat(100_000) }),
    [`large-definitions: [${JSON.stringify({ ...TOOL, description: 'x'.repeat(100_000) })}]`],
    listed({ ...TOOL, description: 'x'.repeat(90_000) }),
  ],
  'unused-tools': [
    [...listed(TOOL, { ...TOOL, name: 'b' }), ...TEN_CALLS],
    [`unused-tools: ${JSON.stringify([TOOL, { ...TOOL, name: 'b' }])}`],
    [...listed(TOOL), ...TEN_CALLS],
  ],
}

describe('findings', () => {
  it('of many messages and definitions in one frame take linear time', () => {
    const tools = Array.from({ length: 150_000 }, () => ({ name: 'é 1' }))
    const lines = [...handshake('2025-11-25'), request(1, 'tools/list'), result(1, { tools })]
    const [, ...found] = findingsOf(...lines).filter((each) => !each.startsWith('schema: '))
    expect(found.length).toBe(2 * tools.length - 1)
    expect(new Set(found)).toEqual(new Set(['duplicate-name: "é 1"', 'tool-name: "é 1"']))
    const batch = Array.from({ length: 150_000 }, () => '{"jsonrpc":"é"}')
    expect(new Set(findingsOf(`< [${batch.join(',')}]`))).toEqual(
      new Set(['wrong-version: "é"', 'invalid-message: {"jsonrpc":"é"}']),
    )
  })

  it('invalid-json names a whole character', () => {
    expect(findingsOf('< {"a":😀}')).toEqual(['invalid-json: 😀'])
  })

  it.each(Object.entries(EXAMPLES))('%s names the exact bytes', (_, [lines, expected]) => {
    expect(findingsOf(...lines)).toEqual(expected)
  })

  it.each(
    Object.entries(EXAMPLES).flatMap(([rule, [, , correct]]) =>
      correct === undefined ? [] : [[rule, correct] as const],
    ),
  )('%s is not reported for a similar, correct conversation', (_, correct) => {
    expect(findingsOf(...correct)).toEqual([])
  })

  it('invalid-utf8 names the exact byte', () => {
    const analysis = new Analysis(schemas)
    const bytes = Uint8Array.of(0x7b, 0xff, 0x7d, 0x0a)
    const [row] = analysis.add(chunkRecord('in', 1, 0, bytes))
    expect(row?.findings).toMatchObject([{ rule: 'invalid-utf8', start: 1, end: 2 }])
  })

  it('link to the specification of the revision of the message', () => {
    const [finding] = rowsOf(
      ...handshake('2025-06-18'),
      request(1, 'tools/call', { name: 7 }),
    ).flatMap(({ findings }) => findings)
    expect(finding?.clause).toBe('https://modelcontextprotocol.io/specification/2025-06-18/schema')
    for (const rule of Object.keys(RULES) as RuleId[])
      for (const revision of revisions)
        expect(clauseUrl(rule, revision)).toMatch(/^(?:https:\/\/|$)/)
  })

  it.each(revisions.filter(({ lifecycle }) => lifecycle === 'handshake').map(({ id }) => [id]))(
    'are none in a correct session of %s',
    (version) => {
      expect(
        findingsOf(
          ...handshake(version, { tools: {}, logging: {} }),
          request(1, 'tools/list'),
          result(1, { tools: [{ name: 'add', inputSchema: { type: 'object' } }] }),
          request('b', 'tools/call', { name: 'add', _meta: { progressToken: 0 } }),
          '< {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":0,"progress":1}}',
          '< {"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":[1]}}',
          result('b', { content: [{ type: 'text', text: 'x' }] }),
          request(3, 'logging/setLevel', { level: 'info' }),
          result(3, {}),
          asked(1, 'ping'),
          '> {"jsonrpc":"2.0","id":1,"result":{}}',
          request(4, 'vendor/method', { anything: 1 }),
          result(4, { anything: 1 }),
          '> x'.replace(
            'x',
            '{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":4}}',
          ),
          '< {"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"Parse error"}}',
        ),
      ).toEqual([])
    },
  )

  it('are none if a client tries server/discover first, and the session is of the negotiated revision', () => {
    const lines = [
      request('d', 'server/discover', { _meta: META }),
      '< {"jsonrpc":"2.0","id":"d","error":{"code":-32601,"message":"Method not found"}}',
      request('p', 'ping'),
      result('p', {}),
      ...handshake('2025-06-18', { tools: { listChanged: true } }),
      request(1, 'tools/list'),
      result(1, { tools: [] }),
      '< {"jsonrpc":"2.0","method":"notifications/tools/list_changed"}',
    ]
    expect(findingsOf(...lines)).toEqual([])
    expect(rowsOf(...lines).map(({ revision }) => revision)).toEqual([
      '2026-07-28',
      '2026-07-28',
      undefined,
      undefined,
      ...Array<string>(6).fill('2025-06-18'),
    ])
  })

  it('are none in a correct stateless session', () => {
    expect(
      findingsOf(
        request(1, 'tools/call', { name: 'ask', _meta: META }),
        result(1, { resultType: 'input_required', requestState: 's', inputRequests: {} }),
        request(2, 'tools/call', {
          name: 'ask',
          _meta: META,
          requestState: 's',
          inputResponses: {},
        }),
        result(2, { resultType: 'complete', content: [] }),
        request('listen', 'subscriptions/listen', {
          _meta: META,
          notifications: { toolsListChanged: true },
        }),
        '< {"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":"listen"},"notifications":{"toolsListChanged":true}}}',
      ),
    ).toEqual([])
  })
})
