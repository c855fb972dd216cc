import { brotliCompressSync, deflateSync, gzipSync } from 'node:zlib'
import { fc, runs } from '../fast-check.js'
import { describe, expect, it } from 'vitest'
import { Analysis, type Row } from '../../src/capture/analysis.js'
import {
  EVENTS,
  JSON_TYPE,
  META,
  POST,
  Recording,
  encode,
  event,
  initialize,
  initialized,
  inSession,
  openSession,
  request,
  result,
} from './http-recording.js'
import { schemas } from './lines.js'

const summary = ({ kind, method, id, status, revision }: Row) =>
  [kind, method, id, status, revision].filter((each) => each !== undefined).join(' ')

describe('a capture over HTTP', () => {
  it('has the heads, and links the messages of each session, whatever ids they use', () => {
    const recording = new Recording()
    for (const session of ['a', 'b']) openSession(recording, session)
    const [one, two] = ['a', 'b'].map((session) =>
      recording.request(
        'POST',
        { ...POST, ...inSession(session) },
        JSON.stringify(request(1, 'ping')),
      ),
    )
    recording.response(two ?? 0, 200, JSON_TYPE, JSON.stringify(result(1)))
    recording.response(one ?? 0, 200, EVENTS, event(result(1)))
    expect(recording.findings()).toEqual([])
    const rows = recording.rows()
    expect(rows.slice(1, 7).map(summary)).toEqual([
      'http POST',
      'request initialize 0 2025-11-25',
      'http POST',
      'response initialize 0 ok 2025-11-25',
      'http POST',
      'notification notifications/initialized 2025-11-25',
    ])
    expect(rows[3]).toMatchObject({
      text: '200, content-type: application/json, mcp-session-id: a',
    })
    expect(
      rows.filter(({ method }) => method === 'ping').map(({ kind, exchange }) => [kind, exchange]),
    ).toEqual([
      ['request', 5],
      ['request', 6],
      ['response', 6],
      ['response', 5],
    ])
  })

  it('finds what is wrong within an exchange', () => {
    const recording = new Recording()
    openSession(recording, 'a')
    recording.call(inSession('a'), request(1, 'ping'), result(2))
    recording.call(inSession('a'), request(1, 'ping'), result(1))
    const { exchange } = {
      exchange: recording.request('POST', { ...POST, ...inSession('a') }, 'x{'),
    }
    recording.response(exchange, 400)
    expect(recording.findings()).toEqual([
      '3 orphan-response id 2',
      '4 reused-id id 1',
      '5 invalid-json unexpected "x"',
    ])
  })

  it('gives stateless requests of several clients their own ids', () => {
    const recording = new Recording()
    const params = { _meta: META }
    const headers = { 'Mcp-Protocol-Version': '2026-07-28', 'Mcp-Method': 'tools/list' }
    const body = JSON.stringify(request(1, 'tools/list', params))
    const list = result(1, { resultType: 'complete', tools: [], ttlMs: 0, cacheScope: 'private' })
    const one = recording.request('POST', { ...POST, ...headers }, body)
    const two = recording.request('POST', { ...POST, ...headers }, body)
    recording.response(two, 200, JSON_TYPE, JSON.stringify(list))
    recording.response(one, 200, JSON_TYPE, JSON.stringify(result(3)))
    expect(recording.messages().map(summary)).toEqual([
      'request tools/list 1 2026-07-28',
      'request tools/list 1 2026-07-28',
      'response tools/list 1 ok 2026-07-28',
      'response 3 ok 2026-07-28',
      'unanswered tools/list 1 2026-07-28',
    ])
    expect(recording.findings()).toContain('1 orphan-response id 3')
  })

  it('shows which request a retry in another exchange continues', () => {
    const recording = new Recording()
    const headers = { 'Mcp-Protocol-Version': '2026-07-28' }
    const call = (id: number, more: object) =>
      request(id, 'tools/call', { name: 'x', arguments: {}, _meta: META, ...more })
    const asks = { resultType: 'input_required', requestState: 's', inputRequests: {} }
    recording.call(headers, call(1, {}), result(1, asks))
    const done = { resultType: 'complete', content: [] }
    recording.call(headers, call(1, { requestState: 's', inputResponses: {} }), result(1, done))
    expect(recording.messages().map(({ text }) => text)).toEqual([
      '',
      '',
      'continues request 1',
      '',
    ])
  })

  it('takes the revision from the header, or from the only handshake, where there is no session', () => {
    const recording = new Recording()
    recording.call({}, initialize('2025-03-26'), initialized('2025-03-26'))
    recording.call({}, request(1, 'ping'), result(1))
    recording.call({ 'MCP-Protocol-Version': '2025-06-18' }, request(1, 'ping'), result(1))
    expect(
      recording
        .messages()
        .filter(({ method }) => method === 'ping')
        .map(({ revision }) => revision),
    ).toEqual(['2025-03-26', '2025-03-26', '2025-06-18', '2025-06-18'])
    expect(recording.findings()).toEqual([])
  })

  it('links a question of the server with the response in another request, also without a session', () => {
    for (const session of [{}, inSession('a')]) {
      const recording = new Recording()
      if ('Mcp-Session-Id' in session) openSession(recording, 'a')
      const headers = { ...POST, ...session }
      const call = recording.request('POST', headers, JSON.stringify(request(1, 'ping')))
      recording.event('response', { exchange: call, status: 200, headers: Object.entries(EVENTS) })
      const question = encode(event(request('q', 'ping')))
      recording.chunk(call, 'out', 0, question)
      const answer = recording.request('POST', headers, JSON.stringify(result('q')))
      recording.response(answer, 202)
      recording.chunk(call, 'out', question.length, encode(event(result(1))))
      recording.event('end', { exchange: call, dir: 'out' })
      expect(
        recording
          .messages()
          .slice(-4)
          .map(summary)
          .map((text) => text.split(' 2025')[0]),
      ).toEqual([
        'request ping 1',
        'request ping "q"',
        'response ping "q" ok',
        'response ping 1 ok',
      ])
      expect(recording.findings()).toEqual([])
    }
  })

  it('follows a stream that is resumed, and does not count what it repeats', () => {
    const recording = new Recording()
    openSession(recording, 'a')
    const headers = { ...POST, ...inSession('a') }
    const call = recording.request('POST', headers, JSON.stringify(request(1, 'ping')))
    recording.event('response', { exchange: call, status: 200, headers: Object.entries(EVENTS) })
    const log = {
      jsonrpc: '2.0',
      method: 'notifications/message',
      params: { level: 'info', data: 'x' },
    }
    recording.chunk(
      call,
      'out',
      0,
      encode(`id: 1\ndata:\n\n${event(log, '2')}${event(result(1), '3')}`),
    )
    recording.event('aborted', { exchange: call, by: 'client' })
    const again = recording.request('GET', { ...inSession('a'), 'Last-Event-ID': '2' })
    recording.response(again, 200, EVENTS, event(result(1), '3') + event(log, '4'))
    const rows = recording.messages().slice(-5)
    expect(rows.map(({ kind, fields, text }) => [kind, fields?.id, text])).toEqual([
      ['other', '1', 'id 1'],
      ['notification', '2', 'x'],
      ['response', '3', ''],
      ['response', '3', 'sent again, in a resumed stream'],
      ['notification', '4', 'x'],
    ])
    expect(recording.findings()).toEqual([])
  })

  it('links HTTP+SSE by the endpoint that the stream names', () => {
    const recording = new Recording('http://127.0.0.1:1/sse')
    for (const session of ['x', 'y']) {
      const stream = recording.request('GET', { Accept: 'text/event-stream' }, '', '/sse')
      recording.event('response', {
        exchange: stream,
        status: 200,
        headers: Object.entries(EVENTS),
      })
      const endpoint = encode(`event: endpoint\ndata: http://127.0.0.1:1/message?id=${session}\n\n`)
      recording.chunk(stream, 'out', 0, endpoint)
      const body = JSON.stringify(initialize('2024-11-05'))
      const post = recording.request('POST', POST, body, `/message?id=${session}`)
      recording.response(post, 202, { 'Content-Type': 'text/plain' }, 'Accepted')
      recording.chunk(
        stream,
        'out',
        endpoint.length,
        encode(`event: message\n${event(initialized('2024-11-05'))}`),
      )
    }
    expect(recording.messages().slice(0, 4).map(summary)).toEqual([
      'other',
      'request initialize 0 2024-11-05',
      'other',
      'response initialize 0 ok 2024-11-05',
    ])
    expect(recording.findings()).toEqual([])
  })

  it('treats HTTP errors as answers, and bodies of other paths as no messages', () => {
    const recording = new Recording()
    const body = JSON.stringify(request(1, 'tools/list', { _meta: META }))
    const headers = { 'Mcp-Protocol-Version': '2026-07-28', 'Mcp-Method': 'tools/list' }
    const refused = recording.request('POST', { ...POST, ...headers }, body)
    recording.response(
      refused,
      401,
      { ...JSON_TYPE, 'WWW-Authenticate': 'Bearer' },
      '{"error":"invalid_token"}',
    )
    const metadata = recording.request('GET', {}, '', '/.well-known/oauth-protected-resource')
    recording.response(metadata, 200, JSON_TYPE, '{"resource":"x"}')
    expect(recording.messages().map(summary)).toEqual([
      'request tools/list 1 2026-07-28',
      'other',
      'other',
    ])
    expect(recording.findings()).toEqual([])
    const [, , , response] = recording.rows()
    expect(response).toMatchObject({
      kind: 'http',
      status: 'error',
      text: expect.stringContaining('401') as string,
    })
  })

  it('takes a closed stream as the cancellation of a stateless request', () => {
    for (const [params, by, unanswered, findings] of [
      [{ _meta: META }, 'client', 0, 0],
      [{ _meta: META }, 'server', 1, 1],
      [undefined, 'client', 1, 0],
      [undefined, 'server', 1, 1],
    ] as const) {
      const recording = new Recording()
      const body = JSON.stringify(request(1, 'tools/list', params))
      const exchange = recording.request('POST', POST, body)
      recording.event('aborted', { exchange, by })
      const rows = recording.rows(false).filter(({ kind }) => kind === 'unanswered')
      expect(rows.length).toBe(unanswered)
      expect(rows.flatMap((row) => row.findings).length).toBe(findings)
    }
  })

  it('decodes compressed bodies, also in pieces', () => {
    const list = event(request('q', 'ping')) + event(result(1))
    for (const [coding, bytes] of [
      ['gzip', gzipSync(list)],
      ['deflate', deflateSync(list)],
      ['br', brotliCompressSync(list)],
    ] as const) {
      const recording = new Recording()
      const exchange = recording.request('POST', POST, JSON.stringify(request(1, 'ping')))
      const headers = Object.entries({ ...EVENTS, 'Content-Encoding': coding })
      recording.event('response', { exchange, status: 200, headers })
      for (const [offset, byte] of bytes.entries())
        recording.chunk(exchange, 'out', offset, Uint8Array.of(byte))
      recording.event('end', { exchange, dir: 'out' })
      const rows = recording.messages().slice(1)
      expect(rows.map(({ kind, id, start, coding: used }) => [kind, id, start, used])).toEqual([
        ['request', '"q"', 0, coding],
        ['response', '1', event(request('q', 'ping')).length, coding],
        ['unanswered', '"q"', 0, undefined],
      ])
    }
  })

  it('says where a body could not be decoded', () => {
    const damaged = gzipSync('x'.repeat(10_000))
    damaged.fill(0xff, 15)
    for (const [coding, bytes] of [
      ['gzip', damaged],
      ['zstd', encode('?')],
      ['br', encode('not brotli at all')],
      ['gzip', gzipSync(Buffer.alloc(200 * 1024 * 1024))],
    ] as const) {
      const recording = new Recording()
      const exchange = recording.request('GET')
      recording.response(exchange, 200, { ...JSON_TYPE, 'Content-Encoding': coding }, bytes)
      expect(recording.messages().find(({ kind }) => kind === 'gap')?.text).toBe(
        `the rest of the body could not be decoded (${coding})`,
      )
    }
  })

  it('finds an event that is not complete', () => {
    const recording = new Recording()
    const exchange = recording.request('GET', inSession('a'))
    recording.response(exchange, 200, EVENTS, 'data: {}\n')
    expect(recording.findings()).toEqual(['1 partial-event'])
  })

  it('names the bytes of findings in data of several lines', () => {
    const recording = new Recording()
    openSession(recording, 'a')
    const exchange = recording.request('GET', inSession('a'))
    const body = 'data: {"jsonrpc":"2.0",\ndata:"ü":1,\ndata: "method":"x","a":1,"a":2}\n\n'
    recording.response(exchange, 200, EVENTS, body)
    const [finding] = recording.rows().flatMap(({ findings }) => findings)
    expect(finding).toMatchObject({ rule: 'duplicate-key', exchange: 3 })
    const { start = 0, end = 0 } = finding ?? {}
    expect(Buffer.from(body).subarray(start, end).toString()).toBe('"a"')
  })

  it('becomes rows without an exception, whatever its records are', () => {
    const small = fc.nat(3)
    const content = fc.constantFrom(
      '{}',
      'data: 1\n\n',
      JSON.stringify(request(1, 'ping')),
      '\u001f\ufffd',
    )
    const headers = fc.array(
      fc.constantFrom(
        ['content-type', 'text/event-stream'],
        ['content-type', 'application/json'],
        ['content-encoding', 'gzip'],
        ['mcp-session-id', 'a'],
        ['last-event-id', '1'],
        ['broken'],
        'x',
        null,
      ),
    )
    const record = fc.oneof(
      fc.record({
        type: fc.constant('event' as const),
        event: fc.constantFrom('request', 'response', 'end', 'aborted', 'listen', 'exit'),
        ns: fc.nat(),
        exchange: small,
        dir: fc.constantFrom('in', 'out', 'x'),
        status: fc.constantFrom(200, 202, 404, 'x'),
        target: fc.constantFrom('/mcp', 'http://x/mcp', '//', 7),
        by: fc.constantFrom('client', 'server', 1),
        headers: fc.oneof(headers, fc.constant('x')),
      }),
      fc.record({
        type: fc.constant('chunk' as const),
        dir: fc.constantFrom('in' as const, 'out' as const),
        ns: fc.nat(),
        offset: fc.nat(30),
        text: content,
        exchange: small,
      }),
    )
    fc.assert(
      fc.property(fc.array(record, { maxLength: 40 }), (records) => {
        const analysis = new Analysis(schemas)
        for (const each of records) analysis.add(each)
        analysis.end()
      }),
      { numRuns: runs(500) },
    )
  })
})

it('a response in a request of its own is linked, unless very many exchanges wait for one', () => {
  const linked = (count: number) => {
    const recording = new Recording()
    for (let index = 0; index < count; index++) {
      const exchange = recording.request('POST', POST, JSON.stringify(request(1, 'tools/call')))
      recording.event('response', { exchange, status: 200, headers: Object.entries(EVENTS) })
      const asking = encode(event(request(`ask ${index}`, 'roots/list')))
      recording.chunk(exchange, 'out', 0, asking)
    }
    const answer = recording.request('POST', POST, JSON.stringify(result('ask 7', { roots: [] })))
    recording.response(answer, 202)
    return recording.messages().find(({ kind }) => kind === 'response')?.method
  }
  expect(linked(300)).toBe('roots/list')
  expect(linked(301)).toBeUndefined()
})
