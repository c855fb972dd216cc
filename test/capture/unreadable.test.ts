import { describe, expect, it } from 'vitest'
import { Analysis } from '../../src/capture/analysis.js'
import { type CaptureRecord, type Direction, chunkRecord } from '../../src/capture/format.js'
import { FrameParser } from '../../src/capture/frames.js'
import { EventStreamBody, WholeBody } from '../../src/capture/http-body.js'
import { outlineOf } from '../../src/capture/outline.js'
import {
  EVENTS,
  JSON_TYPE,
  POST,
  Recording,
  encode,
  request as message,
  result as response,
} from './http-recording.js'
import { handshake, request, result, schemas } from './lines.js'

/* One message of a complete capture cannot be read in full: only what depends on it is left out. */

/** `\u00fc` is written as the byte 0xFC, which is not UTF-8. */
const bytesOfText = (text: string) => Uint8Array.from(Buffer.from(text, 'latin1'))
const DEEP = '['.repeat(600) + ']'.repeat(600)
const LARGE = `[${'0,'.repeat(500_000)}0]`

function check(lines: readonly string[]): { found: string[]; kinds: string[]; hasLoss: boolean } {
  const analysis = new Analysis(schemas)
  const offsets = { in: 0, out: 0 }
  const records = lines.map((line, index): CaptureRecord => {
    const dir: Direction = line.startsWith('>') ? 'in' : 'out'
    const bytes = bytesOfText(`${line.slice(2)}\n`)
    const record = chunkRecord(dir, index, offsets[dir], bytes)
    offsets[dir] += bytes.length
    return record
  })
  const rows = [
    ...[...records, { type: 'event', event: 'exit', ns: 1000 } as const].flatMap((record) =>
      analysis.add(record),
    ),
    ...analysis.end(),
  ]
  return {
    found: rows.flatMap(({ findings, id }) => findings.map(({ rule }) => `${rule} ${id ?? ''}`)),
    kinds: rows.map(({ kind, method }) => `${kind} ${method ?? ''}`.trim()),
    hasLoss: analysis.hasLoss,
  }
}

const tool = {
  name: 'a',
  inputSchema: { type: 'object' },
  outputSchema: { type: 'object', properties: { n: {} }, required: ['n'] },
}
const call = (id: number, more: object = {}) =>
  request(id, 'tools/call', { name: 'a', arguments: {}, ...more })
const bad = (id: number) => result(id, { content: [], structuredContent: {} })
const progress = (progressToken: string) =>
  `< ${JSON.stringify({ jsonrpc: '2.0', method: 'notifications/progress', params: { progressToken, progress: 1 } })}`
const open = [...handshake('2025-06-18'), request(1, 'tools/list'), result(1, { tools: [tool] })]
const faults = [call(2), bad(2), bad(2), bad(77), progress('unknown'), call(3)]
const FOUND = [
  'output-schema 2',
  'duplicate-response 2',
  'orphan-response 77',
  'progress ',
  'unanswered-request 3',
]

describe('a message that cannot be read in full', () => {
  it.each([
    ['> {"jsonrpc":"2.0","method":"notifications/x","params":{"a":"\u00fc"}}', 'invalid-utf8 '],
    [
      '< {"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"\u00fc"}}',
      'invalid-utf8 ',
    ],
    ['< \u00fcber', 'invalid-utf8 '],
    ['< {"level":"info","text":"\u00fc"}', 'invalid-utf8 '],
    [`> {"jsonrpc":"2.0","method":"notifications/x","params":{"a":${DEEP}}}`, 'deep-nesting '],
    [`> {"jsonrpc":"2.0","method":"notifications/x","params":{"a":${LARGE}}}`, 'deep-nesting '],
    [`< ${DEEP.slice(0, 700)}`, 'deep-nesting '],
  ])('hides nothing else: %#', (line, finding) => {
    const { found, hasLoss } = check([...open, line, ...faults])
    expect(found).toEqual([finding, ...FOUND])
    expect(hasLoss).toBe(false)
  })

  it.each([
    ['"\u00fc"', 'invalid-utf8'],
    [DEEP, 'deep-nesting'],
    [LARGE, 'deep-nesting'],
    [`{"text":"\\"]}","b":${DEEP}}`, 'deep-nesting'],
  ])('is linked: %#', (value, rule) => {
    const { found, kinds, hasLoss } = check([
      ...open,
      `> {"jsonrpc":"2.0","id":8,"method":"tools/call","params":{"name":"a","arguments":{"a":${value}},"_meta":{"progressToken":"t"}}}`,
      progress('t'),
      `< {"result":{"content":[],"structuredContent":{"a":${value}}},"jsonrpc":"2.0","id":8}`,
      `< {"result":{"a":${value}},"jsonrpc":"2.0","id":8}`,
      `< {"jsonrpc":"2.0","id":99,"error":{"code":1,"message":"m","data":${value}}}`,
      ...faults,
    ])
    expect(found).toEqual([
      `${rule} 8`,
      `${rule} 8`,
      `${rule} 8`,
      'duplicate-response 8',
      `${rule} 99`,
      'orphan-response 99',
      ...FOUND,
    ])
    expect(kinds.slice(5, 8)).toEqual([
      'request tools/call',
      'notification notifications/progress',
      'response tools/call',
    ])
    expect(hasLoss).toBe(false)
  })

  it('may be a list', () => {
    const prompts = [...handshake('2025-06-18', { tools: {}, prompts: {} }), ...open.slice(3)]
    const calls = Array.from({ length: 10 }, (_, i) => [
      call(20 + i),
      result(20 + i, { content: [], structuredContent: { n: 1 } }),
    ]).flat()
    const unread = (id: number) =>
      `< {"jsonrpc":"2.0","id":${id},"result":{"tools":[{"name":"b","description":"\u00fc"}]}}`
    const again = [...open, request(4, 'tools/list'), unread(4)]
    const { found, hasLoss } = check([...again, ...faults, ...calls])
    expect(found).toEqual(['invalid-utf8 4', ...FOUND.slice(1)])
    expect(hasLoss).toBe(true)
    const listed = [...again, request(5, 'tools/list'), result(5, { tools: [tool] })]
    expect(check([...listed, ...faults]).found).toEqual(['invalid-utf8 4', ...FOUND])
    const others = [
      '< {"jsonrpc":"2.0","id":4,"error":{"code":1,"message":"\u00fc"}}',
      '< {"jsonrpc":"2.0","id":4,"result":{"prompts":[{"name":"b","description":"\u00fc"}]}}',
    ]
    for (const [index, line] of others.entries()) {
      const method = index === 0 ? 'tools/list' : 'prompts/list'
      const rules = check([...prompts, request(4, method), line, ...faults]).found
      expect(rules).toEqual(['invalid-utf8 4', ...FOUND])
    }
  })

  it.each([
    [
      '> {"jsonrpc":"2.0","id":"\u00fc","method":"ping"}',
      '< {"jsonrpc":"2.0","id":"x","result":{}}',
    ],
    [
      '> {"jsonrpc":"2.0","id":8,"method":"tools/call","params":{"name":"a","_meta":{"progressToken":"\u00fc"}}}',
      progress('x'),
      '< {"jsonrpc":"2.0","id":8,"result":{"content":[],"structuredContent":{"n":1}}}',
    ],
    // A backslash is the second byte of a character in other encodings.
    [
      '> {"jsonrpc":"2.0","method":"ping","params":{"a":"\u0095\\"},"id":8}',
      '< {"jsonrpc":"2.0","id":8,"result":{}}',
    ],
  ])('may not say to what it belongs: %#', (...lines) => {
    const { found, hasLoss } = check([...open, ...lines])
    expect(found).toEqual(['invalid-utf8 '])
    expect(hasLoss).toBe(true)
  })
})

describe('a message that is too long', () => {
  const fill = 'x'.repeat(3000)
  const messages: readonly (readonly [string, string, boolean])[] = [
    [`{"jsonrpc":"2.0","id":5,"result":{"text":"${fill}"}}`, 'response 5', true],
    [`{"result":{"text":"${fill}"},"jsonrpc":"2.0","id":5}`, 'response 5', true],
    [
      `{"result":{"id":4,"text":"${fill}"},"id":"a\\"b", "jsonrpc": "2.0" }`,
      'response "a\\"b"',
      true,
    ],
    [`{"error":{"code":1,"message":"${fill}"},"id":5}`, 'response 5', true],
    [`{"result":{"text":"${fill}","b":{"id":5}}}`, '', false],
    [`{"result":{"text":"${fill},\\"id\\":5"}}`, '', false],
    [`{"result":{"text":"${fill}","x,\\"id":5}}`, '', false],
    [`{"method":"tools/call","params":{"a":"${fill}"},"id":5}`, 'request 5', false],
    [`{"method":"notifications/x","params":{"a":"${fill}"}}`, '', false],
    [`{"params":{"a":"${fill}"},"method":"ping","id":5}`, '', false],
    [`[{"id":5,"result":{"a":"${fill}"}}]`, '', false],
    [fill, '', true],
  ]

  it.each(messages)('is linked if its id is at one of its ends: %#', (text, shown, isCertain) => {
    const max = 2000
    const bytes = encode(text)
    const pieces = [bytes.subarray(0, 10), bytes.subarray(10, 2500), bytes.subarray(2500)]
    const push = (
      parser: FrameParser | WholeBody | EventStreamBody,
      all: readonly Uint8Array[],
    ) => {
      let offset = 0
      return all.flatMap((piece) => {
        offset += piece.length
        return parser.push(piece, offset - piece.length, 0)
      })
    }
    const body = new WholeBody('out', () => true, max)
    const frames = [
      ...push(new FrameParser('out', max), [...pieces, encode('\n')]),
      ...push(new FrameParser('out', max), [
        encode(`Content-Length: ${bytes.length}\n\n`),
        ...pieces,
      ]),
      ...push(body, pieces),
      ...body.end(true),
      ...push(new EventStreamBody('out', max), [encode('data: '), ...pieces, encode('\n\n')]),
    ]
    expect(frames.length).toBe(4)
    for (const frame of frames) {
      const outline = outlineOf(frame)
      const found = outline.messages.map(({ kind, id }) => `${kind} ${id?.text ?? ''}`).join()
      expect([found, outline.isCertain]).toEqual([shown, isCertain])
    }
  })

  it('is linked also if other fields of its event are too long', () => {
    const body = new EventStreamBody('out', 100)
    const text = encode(`data: {"jsonrpc":"2.0",\ndata: "id":5,"result":{}}\n:${fill}\n\n`)
    const [outline] = body.push(text, 0, 0).map(outlineOf)
    expect(outline?.isCertain).toBe(false)
    const [short] = body.push(encode(`data: {"id":5,"result":{}}\n:${fill}\n\n`), text.length, 0)
    expect(short && outlineOf(short).messages.map(({ kind }) => kind)).toEqual(['response'])
  })
})

describe('without a session', () => {
  const headers = { 'MCP-Protocol-Version': '2025-06-18' }
  const post = { ...POST, ...headers }
  const lists = (recording: Recording) =>
    recording.call(headers, message(1, 'tools/list'), response(1, { tools: [tool] }))
  const calls = (recording: Recording) =>
    recording.call(
      headers,
      message(1, 'tools/call', { name: 'a', arguments: {} }),
      response(1, { content: [], structuredContent: {} }),
    )
  const undecodable = { ...JSON_TYPE, 'Content-Encoding': 'zstd' }
  const outputs = (...exchanges: readonly number[]) =>
    exchanges.map((exchange) => `${exchange} output-schema n is required`)

  it('tools that are listed again after a loss are checked again', () => {
    const recording = new Recording()
    lists(recording)
    calls(recording)
    recording.event('dropped', {})
    calls(recording)
    lists(recording)
    calls(recording)
    expect(recording.findings()).toEqual(outputs(2, 5))
  })

  it('a body on another path says nothing about MCP', () => {
    const recording = new Recording()
    lists(recording)
    const target = '/.well-known/oauth-protected-resource'
    const metadata = recording.request('GET', {}, '', target)
    recording.response(metadata, 200, undecodable, 'compressed')
    const token = recording.request('POST', {}, 'grant_type=x', '/token')
    recording.response(token, 200, undecodable, 'compressed')
    calls(recording)
    expect(recording.findings()).toEqual(outputs(4))
    const analysis = new Analysis(schemas)
    for (const record of recording.records) analysis.add(record)
    expect(analysis.hasLoss).toBe(false)
  })

  it('a result that cannot be read is no list', () => {
    const recording = new Recording()
    lists(recording)
    const body = JSON.stringify(message(1, 'tools/call', { name: 'a', arguments: {} }))
    const unread = recording.request('POST', post, body)
    const text = '{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"\u00fc"}]}}'
    recording.response(unread, 200, JSON_TYPE, bytesOfText(text))
    recording.response(recording.request('POST', post, body), 200, undecodable, 'compressed')
    calls(recording)
    expect(recording.findings()).toEqual(['2 invalid-utf8', ...outputs(4)])
  })

  it('a list that cannot be read may have other tools', () => {
    for (const [type, text] of [
      [JSON_TYPE, '{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"\u00fc"}]}}'],
      [undecodable, 'compressed'],
    ] as const) {
      const recording = new Recording()
      lists(recording)
      const body = JSON.stringify(message(1, 'tools/list'))
      recording.response(recording.request('POST', post, body), 200, type, bytesOfText(text))
      calls(recording)
      lists(recording)
      calls(recording)
      expect(recording.findings().filter((each) => !each.includes('utf8'))).toEqual(outputs(5))
    }
  })

  it('progress in the stream of a request belongs to it', () => {
    const recording = new Recording()
    const progressed = (progressToken: string) =>
      `data: ${JSON.stringify({ jsonrpc: '2.0', method: 'notifications/progress', params: { progressToken, progress: 1 } })}\n\n`
    const params = { name: 'a', arguments: {}, _meta: { progressToken: 'mine' } }
    const calling = recording.request(
      'POST',
      post,
      JSON.stringify(message(1, 'tools/call', params)),
    )
    const done = `data: ${JSON.stringify(response(1, { content: [] }))}\n\n`
    recording.response(calling, 200, EVENTS, progressed('mine') + progressed('other') + done)
    const listening = recording.request('GET', { ...headers, Accept: 'text/event-stream' })
    recording.response(listening, 200, EVENTS, progressed('other'))
    expect(recording.findings()).toEqual(['1 progress no request has this token'])
  })

  it('a name may be repeated on a later page', () => {
    const recording = new Recording()
    recording.call(
      headers,
      message(1, 'tools/list'),
      response(1, { tools: [tool], nextCursor: 'c' }),
    )
    recording.call(
      headers,
      message(2, 'tools/list', { cursor: 'c' }),
      response(2, { tools: [{ ...tool, name: 'b' }, tool] }),
    )
    expect(recording.findings()).toEqual(['2 duplicate-name a'])
  })
})
