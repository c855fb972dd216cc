import { describe, expect, it } from 'vitest'
import { Analysis, type Row } from '../../src/capture/analysis.js'
import { type CaptureRecord, type Direction, chunkRecord } from '../../src/capture/format.js'
import { revisions } from '../../src/protocol/revisions/index.js'
import { fc, runs } from '../fast-check.js'
import {
  EVENTS,
  JSON_TYPE,
  POST,
  Recording,
  encode,
  event,
  inSession,
  openSession,
  initialize as initializeOverHttp,
  initialized as initializedOverHttp,
  request as message,
  result as response,
} from './http-recording.js'
import { META, asked, handshake, request, result, schemas } from './lines.js'

/* A capture may lack what was sent. Nothing is concluded from that: a correct conversation has no findings. */

const DROPPED = { reason: 'the disk is too slow', in: 1, out: 1, stderr: 0, events: 0 }
const dropped: CaptureRecord = { type: 'event', event: 'dropped', ns: 0, ...DROPPED }
const damaged: CaptureRecord = { type: 'unreadable' }

function rowsOf(records: readonly CaptureRecord[]): Row[] {
  const analysis = new Analysis(schemas)
  return [...records.flatMap((record) => analysis.add(record)), ...analysis.end()]
}

const findingsOf = (records: readonly CaptureRecord[]) =>
  rowsOf(records).flatMap(({ findings, dir, id, method }) =>
    findings.map(({ rule, detail }) => [rule, dir, id, method, detail].join(' ')),
  )

/** The records of lines; each one is a chunk, or two if `cut` says where. */
function recordsOf(
  lines: readonly string[],
  cut: (index: number) => number = () => 0,
  encoded: (line: string, index: number) => Uint8Array = encode,
) {
  const offsets = { in: 0, out: 0 }
  const records = lines.flatMap((line, index): CaptureRecord[] => {
    const dir: Direction = line.startsWith('>') ? 'in' : 'out'
    const bytes = encoded(`${line.slice(2)}\n`, index)
    const at = cut(index) % bytes.length
    return [bytes.subarray(0, at), bytes.subarray(at)]
      .filter(({ length }) => length > 0)
      .map((piece) => {
        const record = chunkRecord(dir, index, offsets[dir], piece)
        offsets[dir] += piece.length
        return record
      })
  })
  return [...records, { type: 'event', event: 'exit', ns: 1000, code: 0 } as const]
}

/** Without some records, and with what says so: `dropped` once until something is recorded again, or damaged lines. */
function without(
  records: readonly CaptureRecord[],
  isLost: (index: number) => boolean,
  how: 'dropped' | 'damaged',
): CaptureRecord[] {
  let isDropping = false
  return records.flatMap((record, index) => {
    const mayBeLost =
      record.type === 'chunk' || (record.type === 'event' && record['exchange'] !== undefined)
    if (!mayBeLost) return [record]
    const wasDropping = isDropping
    isDropping = isLost(index)
    if (!isDropping) return [record]
    if (how === 'damaged') return [damaged]
    return wasDropping ? [] : [dropped]
  })
}

const notification = (method: string, params: object, mark = '<') =>
  `${mark} ${JSON.stringify({ jsonrpc: '2.0', method, params })}`
const progress = (progressToken: unknown, value: number, mark = '<') =>
  notification('notifications/progress', { progressToken, progress: value }, mark)
const text = 'a "quoted" {"jsonrpc":"2.0"} text\nü𝄞 content-length: 5'
const tool = (name: string, member = 'n') => ({
  name,
  description: text,
  inputSchema: { type: 'object' },
  outputSchema: { type: 'object', properties: { [member]: {} }, required: [member] },
})
const output = (member: string) => ({
  content: [{ type: 'text', text }],
  structuredContent: { [member]: 1 },
})
const call = (id: unknown, more: object = {}) =>
  request(id, 'tools/call', { name: 'a', arguments: { text }, ...more })

function handshakeLines(version: string): string[] {
  const [initialize = '', initialized = '', confirmed = ''] = handshake(version, {
    tools: { listChanged: true },
    logging: {},
  })
  return [
    initialize.replace('"capabilities":{}', '"capabilities":{"roots":{}}'),
    asked('early', 'ping'),
    '> {"jsonrpc":"2.0","id":"early","result":{}}',
    initialized,
    confirmed,
    request(1, 'tools/list'),
    result(1, { tools: [tool('a')], nextCursor: 'c' }),
    request(2, 'tools/list', { cursor: 'c' }),
    result(2, { tools: [tool('b')] }),
    call(3, { _meta: { progressToken: 't' } }),
    progress('t', 1),
    asked(1, 'roots/list', { _meta: { progressToken: 's' } }),
    progress('s', 1, '>'),
    `> ${JSON.stringify({ jsonrpc: '2.0', id: 1, result: { roots: [] } })}`,
    progress('t', 2),
    result(3, output('n')),
    notification('notifications/tools/list_changed', {}),
    request(4, 'tools/list'),
    result(4, { tools: [tool('b', 'm')], nextCursor: 'c' }),
    request(5, 'tools/list', { cursor: 'c' }),
    result(5, { tools: [tool('a', 'm')] }),
    call(6, { _meta: { progressToken: 't' } }),
    progress('t', 1),
    notification('notifications/message', { level: 'info', data: text }),
    result(6, output('m')),
    ...Array.from({ length: 10 }, (_, i) => [call(10 + i), result(10 + i, output('m'))]).flat(),
    request(7, 'tools/call', { name: 'b', arguments: {} }),
    notification('notifications/cancelled', { requestId: 7 }, '>'),
    call(8),
    result(8, output('m')),
  ]
}

const HINTS = { resultType: 'complete', ttlMs: 0, cacheScope: 'private' }
const SUBSCRIPTION = 'io.modelcontextprotocol/subscriptionId'
const LOG_LEVEL = 'io.modelcontextprotocol/logLevel'
const done = (member: string) => ({ resultType: 'complete', ...output(member) })
const discovery = [
  request('d', 'server/discover', { _meta: META }),
  result('d', {
    ...HINTS,
    supportedVersions: ['2026-07-28'],
    capabilities: { tools: { listChanged: true }, logging: {} },
  }),
]
const changes = { toolsListChanged: true }
const ofSubscription = (method: string, params: object = {}) =>
  notification(method, { ...params, _meta: { [SUBSCRIPTION]: 'l' } })
const asks = { resultType: 'input_required', requestState: 's', inputRequests: {} }
/** Ids and tokens are used again, as stateless requests may. */
const stateless = [
  ...discovery,
  request(1, 'tools/list', { _meta: META }),
  result(1, { ...HINTS, tools: [tool('a')], nextCursor: 'c' }),
  request(1, 'tools/list', { _meta: META, cursor: 'c' }),
  result(1, { ...HINTS, tools: [tool('b')] }),
  request('l', 'subscriptions/listen', { _meta: META, notifications: changes }),
  ofSubscription('notifications/subscriptions/acknowledged', { notifications: changes }),
  call(1, { _meta: { ...META, progressToken: 0 } }),
  progress(0, 1),
  progress(0, 2),
  result(1, done('n')),
  call(1, { _meta: { ...META, progressToken: 0, [LOG_LEVEL]: 'info' } }),
  progress(0, 1),
  notification('notifications/message', { level: 'info', data: 1 }),
  result(1, done('n')),
  ofSubscription('notifications/tools/list_changed'),
  request(1, 'tools/list', { _meta: META }),
  result(1, { ...HINTS, tools: [tool('a', 'm')] }),
  call(1, { _meta: META }),
  result(1, done('m')),
  request(1, 'tools/call', { name: 'ask', _meta: META }),
  result(1, asks),
  request(2, 'tools/call', { name: 'ask', _meta: META, requestState: 's', inputResponses: {} }),
  result(2, { ...asks, requestState: 's2' }),
  request(1, 'tools/call', { name: 'ask', _meta: META, requestState: 's2', inputResponses: {} }),
  result(1, { resultType: 'complete', content: [] }),
]

const CONVERSATIONS: Readonly<Record<string, readonly string[]>> = {
  ...Object.fromEntries(
    revisions
      .filter(({ lifecycle }) => lifecycle === 'handshake')
      .map(({ id }) => [id, handshakeLines(id)]),
  ),
  'stateless requests': stateless,
  'a handshake after stateless requests': [...discovery, ...handshakeLines('2025-06-18')],
}

/** Bytes of a line that are not UTF-8, or nested too deeply. */
const UNREADABLE: readonly ((line: string) => Uint8Array)[] = [
  (line) => Uint8Array.from(Buffer.from(line.replaceAll('𝄞', 'é'), 'latin1')),
  (line) => Uint8Array.from(Buffer.from(line.replaceAll('𝄞', '\u0095\\'), 'latin1')),
  (line) => Uint8Array.from(Buffer.from(line.replace(/"(?=[:,}])/, '\u00ff"'), 'latin1')),
  (line) => encode(line.replace(/("(?:params|result)":\{)(?=")/, `$1"deep":${DEEP},`)),
]
const DEEP = '['.repeat(600) + ']'.repeat(600)
const indexes = fc.uniqueArray(fc.nat(200), { maxLength: 12 })
const hows = fc.constantFrom('dropped' as const, 'damaged' as const)

describe.each(Object.entries(CONVERSATIONS))('on stdio, %s', (_, lines) => {
  it('has no findings', () => {
    expect(findingsOf(recordsOf(lines))).toEqual([])
  })

  it('has no findings without any one message', () => {
    const records = recordsOf(lines)
    for (const index of lines.keys()) {
      const found = findingsOf(without(records, (each) => each === index, 'damaged'))
      expect([index, found]).toEqual([index, []])
    }
  })

  it('has no findings without any parts', () => {
    const cuts = fc.infiniteStream(fc.nat(300)).map((stream) => [...stream.take(100)])
    fc.assert(
      fc.property(cuts, indexes, hows, (at, lost, how) => {
        const records = recordsOf(lines, (index) => at[index] ?? 0)
        expect(findingsOf(without(records, (index) => lost.includes(index), how))).toEqual([])
      }),
      { numRuns: runs(100) },
    )
  })

  it('has no other findings if any messages cannot be read', () => {
    fc.assert(
      fc.property(indexes, fc.constantFrom(...UNREADABLE), (which, unreadable) => {
        const records = recordsOf(
          lines,
          () => 0,
          (line, index) => (which.includes(index % 200) ? unreadable(line) : encode(line)),
        )
        const found = findingsOf(records)
        expect(found.filter((each) => !/^(?:invalid-utf8|deep-nesting) /.test(each))).toEqual([])
      }),
      { numRuns: runs(50) },
    )
  })

  it('has no findings if it is not recorded to the end', () => {
    const records = recordsOf(lines, () => 20)
    for (let size = 0; size < records.length; size += 5)
      expect(findingsOf(without(records, (index) => index >= size, 'dropped'))).toEqual([])
  })
})

describe('after something was not recorded', () => {
  const version = '2025-11-25'
  const open = handshake(version)

  it('the first line after a gap is a message if it is whole', () => {
    const records = recordsOf([...open, call(1), call(2), result(1, {}), result(2, {})])
    const rows = rowsOf(without(records, (index) => index === 3, 'damaged'))
    expect(rows.map(({ kind, method, id }) => [kind, method, id].join(' ')).slice(3)).toEqual([
      'gap  ',
      'request tools/call 2',
      'response  1',
      'response tools/call 2',
      'event exit ',
    ])
  })

  it('a part of a line is no message, and has no findings', () => {
    const records = recordsOf([...open, call(1), result(1, output('n'))], (index) => index * 40)
    const rows = rowsOf(without(records, (index) => index === 8, 'dropped'))
    expect(rows.filter(({ kind }) => kind === 'invalid').length).toBe(1)
    expect(rows.flatMap(({ findings }) => findings)).toEqual([])
  })

  it('what the tap did not record any more is no partial line, and no tool is unused', () => {
    const lines = [
      ...open,
      request(1, 'tools/list'),
      result(1, { tools: [tool('a'), tool('b')] }),
      ...Array.from({ length: 10 }, (_, i) => [call(2 + i), result(2 + i, output('n'))]).flat(),
      call(20),
    ]
    const records = recordsOf([...lines, result(20, output('n'))], (index) => (index > 24 ? 9 : 0))
    expect(findingsOf(records)).toEqual(['unused-tools   unused tools 1 of 2 in 11 calls: b'])
    const last = records.length - 2
    expect(findingsOf(without(records, (index) => index === last, 'dropped'))).toEqual([])
    // Something else was dropped, and the line goes on.
    const cut = recordsOf([...lines, '< {"unfinished":']).slice(0, -2)
    const rest = chunkRecord('out', 1, 0, encode('{"unfinished":'))
    const offset = cut.reduce(
      (end, record) =>
        record.type === 'chunk' && record.dir === 'out'
          ? record.offset + encode(record.text ?? '').length
          : end,
      0,
    )
    const exit: CaptureRecord = { type: 'event', event: 'exit', ns: 1 }
    expect(findingsOf([...cut, dropped, { ...rest, offset }, exit])).toEqual([
      'partial-line out   ',
    ])
  })

  it.each(['dropped', 'damaged'] as const)('%s: what is certain is still found', (how) => {
    const records = recordsOf([
      ...open,
      request(1, 'ping'),
      '< Listening',
      request(2, 'tools/list'),
      result(2, { tools: [{ ...tool('a') }, { name: 'b' }, tool('a')] }),
      request(2, 'ping'),
      call(3, { _meta: { progressToken: 't' } }),
      progress('t', 2),
      progress('t', 1),
      result(3, output('other')),
      '< {"jsonrpc":"2.0","id":9,"result":{}}',
      '< {"id":1',
    ])
    expect(findingsOf(without(records, (index) => index === 3, how))).toEqual([
      'stray-text out   ',
      'duplicate-name out 2 tools/list a',
      'schema out 2 tools/list result.tools[1].inputSchema is required',
      'reused-id in 2 ping id 2',
      'progress out  notifications/progress it was 2 before',
      'output-schema out 3 tools/call n is required',
      'invalid-json out   unexpected the end of the line',
    ])
  })

  it('a message that cannot be read may be a request', () => {
    const [id, deep] = ['{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":', '['.repeat(2000)]
    const hidden = [
      encode(`${id}"`),
      Uint8Array.of(0xff),
      encode('"}}\n'),
      encode(`${id}${deep}${deep.replaceAll('[', ']')}}}\n`),
    ]
    for (const bytes of [Buffer.concat(hidden.slice(0, 3)), hidden[3] ?? encode('')]) {
      const rows = rowsOf([
        chunkRecord('in', 1, 0, bytes),
        chunkRecord('out', 2, 0, encode('{"jsonrpc":"2.0","id":1,"result":{}}\n')),
      ])
      const rules = rows.flatMap(({ findings }) => findings.map(({ rule }) => rule))
      expect(rules.length).toBe(1)
      expect(rules).not.toContain('orphan-response')
    }
  })
})

/** Exchanges of several clients: sessions, stateless requests, streams. */
function overHttp(): Recording {
  const recording = new Recording()
  const logged = {
    jsonrpc: '2.0',
    method: 'notifications/message',
    params: { level: 'info', data: 1 },
  }
  const progressed = (progressToken: string, value: number) => ({
    jsonrpc: '2.0',
    method: 'notifications/progress',
    params: { progressToken, progress: value },
  })
  const calling = (id: number, more: object = {}) =>
    message(id, 'tools/call', { name: 'a', arguments: {}, ...more })
  /** An event stream in several chunks, with something in between. */
  const stream = (
    headers: Record<string, string>,
    body: object,
    events: readonly string[],
    between = () => {},
  ) => {
    const exchange = recording.request('POST', { ...POST, ...headers }, JSON.stringify(body))
    recording.event('response', { exchange, status: 200, headers: Object.entries(EVENTS) })
    let offset = 0
    for (const each of events) {
      const bytes = encode(each)
      recording.chunk(exchange, 'out', offset, bytes.subarray(0, 9))
      recording.chunk(exchange, 'out', offset + 9, bytes.subarray(9))
      offset += bytes.length
      between()
    }
    recording.event('end', { exchange, dir: 'out' })
  }
  for (const [session, member] of [
    ['x', 'n'],
    ['y', 'm'],
  ] as const) {
    openSession(recording, session)
    const list = (id: number, page: object, params?: object) =>
      recording.call(inSession(session), message(id, 'tools/list', params), response(id, page))
    list(1, { tools: [tool('a', member)], nextCursor: 'c' })
    list(2, { tools: [tool('b', member)] }, { cursor: 'c' })
    stream(inSession(session), calling(3, { _meta: { progressToken: 't' } }), [
      event(progressed('t', 1), '1'),
      event(logged, '2'),
      event(response(3, output(member)), '3'),
    ])
  }
  for (const [session, member] of [
    ['x', 'n'],
    ['y', 'm'],
  ] as const)
    recording.call(inSession(session), calling(4), response(4, output(member)))
  // Without a session: a question that the client answers in another request.
  let isAnswered = false
  const noSession = { 'MCP-Protocol-Version': '2025-06-18' }
  recording.call({}, initializeOverHttp('2025-06-18'), initializedOverHttp('2025-06-18'))
  stream(
    noSession,
    calling(1),
    [
      event(message('q', 'ping', { _meta: { progressToken: 's' } })),
      event(response(1, { content: [], structuredContent: {} })),
    ],
    () => {
      const post = (body: object) => {
        const exchange = recording.request('POST', { ...POST, ...noSession }, JSON.stringify(body))
        recording.response(exchange, 202)
      }
      if (!isAnswered) {
        post(progressed('s', 1))
        post(response('q'))
      }
      isAnswered = true
    },
  )
  const newest = (method: string, name?: string) => ({
    'MCP-Protocol-Version': '2026-07-28',
    'Mcp-Method': method,
    ...(name === undefined ? {} : { 'Mcp-Name': name }),
  })
  recording.call(
    newest('tools/list'),
    message(1, 'tools/list', { _meta: META }),
    response(1, { ...HINTS, tools: [tool('a', 'n')] }),
  )
  recording.call(newest('tools/call', 'a'), calling(1, { _meta: META }), response(1, done('m')))
  const filter = { toolsListChanged: true }
  const ofListen = (method: string, params: object = {}) =>
    event({ jsonrpc: '2.0', method, params: { ...params, _meta: { [SUBSCRIPTION]: 1 } } })
  stream(
    newest('subscriptions/listen'),
    message(1, 'subscriptions/listen', { _meta: META, notifications: filter }),
    [
      ofListen('notifications/subscriptions/acknowledged', { notifications: filter }),
      ofListen('notifications/tools/list_changed'),
    ],
  )
  return recording
}

describe('over HTTP, exchanges of several clients', () => {
  const { records: all } = overHttp()
  const records: CaptureRecord[] = [...all, { type: 'event', event: 'exit', ns: 1000 }]

  it('have no findings', () => {
    expect(findingsOf(records)).toEqual([])
  })

  it('have no findings without any one record', () => {
    for (const index of records.keys()) {
      const found = findingsOf(without(records, (each) => each === index, 'dropped'))
      expect([index, found]).toEqual([index, []])
    }
  })

  it('have no findings without any records', () => {
    const lost = fc.uniqueArray(fc.nat(records.length), { maxLength: 20 })
    fc.assert(
      fc.property(lost, hows, (which, how) => {
        expect(findingsOf(without(records, (index) => which.includes(index), how))).toEqual([])
      }),
      { numRuns: runs(100) },
    )
  })

  it('have no findings if they are not recorded to the end', () => {
    for (let size = 0; size < records.length; size += 3)
      expect(findingsOf(without(records, (index) => index >= size, 'dropped'))).toEqual([])
  })
})

describe('over HTTP, after something was not recorded', () => {
  const list = JSON.stringify(response(1, { tools: [tool('a')] }))

  /** A request in a session, whose response is recorded in part. */
  function cut(headers: Record<string, string>, body: string, ...lost: readonly CaptureRecord[]) {
    const recording = new Recording()
    openSession(recording, 'x')
    const asking = JSON.stringify(message(1, 'tools/list'))
    const exchange = recording.request('POST', { ...POST, ...inSession('x') }, asking)
    recording.event('response', { exchange, status: 200, headers: Object.entries(headers) })
    recording.chunk(exchange, 'out', 0, encode(body))
    recording.records.push(...lost)
    recording.event('end', { exchange, dir: 'out' })
    return recording.findings()
  }

  it('a body that was open then is not whole', () => {
    for (const loss of [dropped, damaged]) {
      expect(cut(JSON_TYPE, list.slice(0, 30), loss)).toEqual([])
      expect(cut(EVENTS, 'data: {"json', loss)).toEqual([])
      expect(cut(JSON_TYPE, list, loss)).toEqual([])
    }
    expect(cut(JSON_TYPE, list.slice(0, 30))).toEqual([
      '3 invalid-json unexpected the end of the line',
      '3 unanswered-request',
    ])
    expect(cut(EVENTS, 'data: {"json')).toEqual(['3 partial-event', '3 unanswered-request'])
  })

  it('a body whose head is missing is no message, and its headers are not compared', () => {
    const recording = new Recording()
    const params = { name: 'a', arguments: {}, _meta: META }
    const headers = { 'Mcp-Protocol-Version': '2026-07-28', 'Mcp-Method': 'tools/call' }
    recording.call(
      { ...headers, 'Mcp-Name': 'a' },
      message(1, 'tools/call', params),
      response(1, { resultType: 'complete', content: [] }),
    )
    const isHead = (record: CaptureRecord) =>
      record.type === 'event' && (record.event === 'request' || record.event === 'response')
    const { records } = recording
    expect(findingsOf(records)).toEqual([])
    expect(findingsOf(records.filter((record) => !isHead(record)))).toEqual([])
  })

  it('later exchanges are certain', () => {
    const recording = new Recording()
    recording.records.push(dropped)
    recording.call({}, message(1, 'ping'), response(2))
    openSession(recording, 'x')
    recording.call(inSession('x'), message(1, 'ping'), response(2))
    expect(recording.findings()).toEqual([
      '1 orphan-response id 2',
      '1 unanswered-request',
      '4 orphan-response id 2',
      '4 unanswered-request',
    ])
  })

  it('a body that cannot be decoded may have been the response', () => {
    const recording = new Recording()
    const exchange = recording.request('POST', POST, JSON.stringify(message(1, 'ping')))
    const headers = { ...JSON_TYPE, 'Content-Encoding': 'zstd' }
    recording.response(exchange, 200, headers, 'compressed')
    expect(recording.findings()).toEqual([])
  })
})
