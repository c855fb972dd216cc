import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { Analysis, type Row } from '../../src/capture/analysis.js'
import { type Direction, chunkRecord } from '../../src/capture/format.js'
import { RULES, type RuleId, clauseUrl } from '../../src/capture/rules.js'
import { loadSchemaChecks } from '../../src/capture/schema-check.js'
import { revisions } from '../../src/protocol/revisions/index.js'

const schemas = await loadSchemaChecks()

/** Lines with their direction: `>` from the client, `<` from the server. A newline is added, unless the line ends with `$`. */
function rowsOf(...lines: readonly string[]): Row[] {
  const analysis = new Analysis(schemas)
  const offsets = { in: 0, out: 0 }
  const rows = lines.flatMap((line, index) => {
    const dir: Direction = line.startsWith('>') ? 'in' : 'out'
    const text = line.endsWith('$') ? line.slice(2, -1) : `${line.slice(2)}\n`
    const bytes = new TextEncoder().encode(text)
    const record = chunkRecord(dir, (index + 1) * 1_000_000, offsets[dir], bytes)
    offsets[dir] += bytes.length
    return analysis.add(record)
  })
  rows.push(...analysis.add({ type: 'event', event: 'exit', ns: 1 }).slice(1))
  return [...rows, ...analysis.end()]
}

/** `rule: the bytes that it names` of each finding. */
function findingsOf(...lines: readonly string[]): string[] {
  const sent = (mark: string) =>
    new TextEncoder().encode(
      lines
        .filter((line) => line.startsWith(mark))
        .map((line) => (line.endsWith('$') ? line.slice(2, -1) : `${line.slice(2)}\n`))
        .join(''),
    )
  const streams = { in: sent('>'), out: sent('<') }
  return rowsOf(...lines).flatMap(({ findings }) =>
    findings.map(({ rule, dir, start, end }) => {
      const bytes = new TextDecoder('utf-8', { ignoreBOM: true }).decode(
        streams[dir].subarray(start, end),
      )
      return `${rule}: ${bytes}`
    }),
  )
}

const request = (id: unknown, method: string, params?: object) =>
  `> ${JSON.stringify({ jsonrpc: '2.0', id, method, params })}`
const asked = (id: unknown, method: string, params?: object) =>
  `< ${JSON.stringify({ jsonrpc: '2.0', id, method, params })}`
const result = (id: unknown, value: object) =>
  `< ${JSON.stringify({ jsonrpc: '2.0', id, result: value })}`
const handshake = (version: string, capabilities: object = { tools: {} }) => [
  request(0, 'initialize', {
    protocolVersion: version,
    capabilities: {},
    clientInfo: { name: 'c', version: '1' },
  }),
  result(0, { protocolVersion: version, capabilities, serverInfo: { name: 's', version: '1' } }),
  '> {"jsonrpc":"2.0","method":"notifications/initialized"}',
]
const META = {
  'io.modelcontextprotocol/protocolVersion': '2026-07-28',
  'io.modelcontextprotocol/clientCapabilities': {},
}
const ping = '> {"jsonrpc":"2.0","id":1,"method":"ping"}'
const pong = '< {"jsonrpc":"2.0","id":1,"result":{}}'

const EXAMPLES: Readonly<Record<RuleId, readonly [lines: readonly string[], findings: string[]]>> =
  {
    'stray-text': [['< Listening…'], ['stray-text: Listening…']],
    'partial-line': [['< {"jsonrpc":"2.0","me$'], ['partial-line: ']],
    // Over HTTP only: see http.test.ts.
    'partial-event': [[], []],
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
    batch: [
      [...handshake('2025-06-18'), `> [${ping.slice(2)}]`, pong],
      [`batch: ${ping.slice(2)}`],
    ],
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
  }

describe('findings', () => {
  it.each(Object.entries(EXAMPLES))('%s names the exact bytes', (_, [lines, expected]) => {
    expect(findingsOf(...lines)).toEqual(expected)
  })

  it('invalid-utf8 names the exact byte', () => {
    const analysis = new Analysis(schemas)
    const bytes = Uint8Array.of(0x7b, 0xff, 0x7d, 0x0a)
    const [row] = analysis.add(chunkRecord('in', 1, 0, bytes))
    expect(row?.findings).toMatchObject([{ rule: 'invalid-utf8', start: 1, end: 2 }])
  })

  it('link to the specification of the revision of the message', () => {
    const [finding] = rowsOf(
      ...handshake('2025-03-26'),
      request(1, 'tools/call', { name: 7 }),
    ).flatMap(({ findings }) => findings)
    expect(finding?.clause).toBe('https://modelcontextprotocol.io/specification/2025-03-26/schema')
    for (const rule of Object.keys(RULES) as RuleId[])
      for (const revision of revisions) expect(clauseUrl(rule, revision)).toMatch(/^https:\/\//)
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
      ...handshake('2025-06-18'),
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
        request(1, 'tools/call', {
          name: 'ask',
          _meta: META,
          requestState: 's',
          inputResponses: {},
        }),
        result(1, { resultType: 'complete', content: [] }),
        request('listen', 'subscriptions/listen', {
          _meta: META,
          notifications: { toolsListChanged: true },
        }),
        '< {"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":"listen"},"notifications":{"toolsListChanged":true}}}',
      ),
    ).toEqual([])
  })
})

describe('rows', () => {
  it('have method, target, status and duration of both sides of a call', () => {
    const rows = rowsOf(
      ...handshake('2025-11-25'),
      request(1, 'tools/call', { name: 'add' }),
      result(1, { content: [{ type: 'text', text: 'too large' }], isError: true }),
      request(2, 'tools/call', { name: 'add' }),
      '< {"jsonrpc":"2.0","id":2,"error":{"code":-32602,"message":"no"}}',
    ).slice(3)
    expect(rows).toMatchObject([
      { kind: 'request', dir: 'in', method: 'tools/call', target: 'add', revision: '2025-11-25' },
      {
        kind: 'response',
        dir: 'out',
        method: 'tools/call',
        target: 'add',
        status: 'error',
        duration: 1_000_000,
        text: 'too large',
      },
      { kind: 'request' },
      { kind: 'response', status: 'error', text: '-32602 no' },
    ])
  })

  it('of open requests and incomplete lines are no findings while the server runs', () => {
    const analysis = new Analysis(schemas)
    const bytes = new TextEncoder().encode(`${ping.slice(2)}\n{"json`)
    analysis.add(chunkRecord('in', 1, 0, bytes))
    expect(analysis.end()).toMatchObject([{ kind: 'unanswered', method: 'ping', findings: [] }])
  })

  it('of a notification are not linked if two requests have the same progress token', () => {
    const call = (id: number) =>
      request(id, 'tools/call', { name: `t${id}`, _meta: { progressToken: 0 } })
    const progress =
      '< {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":0,"progress":1}}'
    const targets = (...lines: string[]) =>
      rowsOf(...handshake('2025-11-25'), ...lines)
        .filter(({ method }) => method === 'notifications/progress')
        .map(({ target }) => target)
    expect(targets(call(1), progress)).toEqual(['t1'])
    expect(targets(call(1), call(2), progress)).toEqual([undefined])
  })

  it('show which request a retry continues, only if its request state was returned once', () => {
    const call = (id: number) =>
      request(id, 'tools/call', { name: 'ask', _meta: META, requestState: 's', inputResponses: {} })
    const asks = (id: number) =>
      result(id, { resultType: 'input_required', requestState: 's', inputRequests: {} })
    const first = request(1, 'tools/call', { name: 'ask', _meta: META })
    expect(rowsOf(first, asks(1), call(2))[2]?.text).toBe('continues request 1')
    expect(rowsOf(first, asks(1), call(2), asks(2), call(3))[4]?.text).toBe('')
  })

  it('are made of any bytes without an exception', () => {
    const piece = fc.oneof(
      fc.constantFrom(
        ...handshake('2025-11-25').map((line) => `${line.slice(2)}\n`),
        ping.slice(2),
        '\n',
      ),
      fc.json().map((json) => `${json}\n`),
      fc
        .record(
          {
            jsonrpc: fc.constant('2.0'),
            id: fc.jsonValue(),
            method: fc.constantFrom(
              'ping',
              'initialize',
              'tools/list',
              'notifications/progress',
              'notifications/cancelled',
            ),
            params: fc.jsonValue(),
            result: fc.jsonValue(),
            error: fc.jsonValue(),
          },
          { requiredKeys: [] },
        )
        .map((message) => `${JSON.stringify(message)}\n`),
    )
    const chunk = fc.tuple(
      fc.constantFrom<Direction>('in', 'out'),
      fc.oneof(
        piece.map((text) => new TextEncoder().encode(text)),
        fc.uint8Array({ maxLength: 20 }),
      ),
    )
    fc.assert(
      fc.property(fc.array(chunk, { maxLength: 12 }), (chunks) => {
        const analysis = new Analysis(schemas)
        const offsets = { in: 0, out: 0 }
        const rows = chunks.flatMap(([dir, bytes], ns) => {
          const record = chunkRecord(dir, ns, offsets[dir], bytes)
          offsets[dir] += bytes.length
          return analysis.add(record)
        })
        rows.push(...analysis.end())
        for (const { dir, start, end, findings } of rows)
          for (const finding of findings) {
            expect(finding.dir).toBe(dir)
            expect(finding.start).toBeGreaterThanOrEqual(start)
            expect(finding.end).toBeLessThanOrEqual(end)
          }
      }),
      { numRuns: 1000 },
    )
  })
})
