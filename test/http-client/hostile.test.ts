import type { Socket } from 'node:net'
import { brotliCompressSync, deflateSync, gzipSync } from 'node:zlib'
import { describe, expect, it } from 'vitest'
import {
  CHUNKED,
  EVENTS,
  JSON_BODY,
  LAST_CHUNK,
  type RawRespond,
  chunk,
  endless,
  events,
  ok,
  rawServer,
  response,
} from './raw-server.js'
import { STATELESS, peerTo } from './scripted.js'

/*
 * Servers that do what they must not. Each gets a request `bad`, which ends with a clear error or is tolerated; the
 * client's memory is bounded by `maxMessage`, and the next request works.
 */

const MAX = 64 * 1024
const done = (id: unknown, value: object = { fine: true }) =>
  JSON.stringify({ jsonrpc: '2.0', id, result: value })
const data = (text: string) => `data: ${text}\n\n`
const FINE = { fine: true }

/** The bytes of a response, or a function that writes them. */
type Answer = (id: unknown, socket: Socket) => Buffer | string | void
/** An error by its code, the result, or `stalls`: the request is cancelled and its connection closed. */
type Outcome = string | number | object
type Row = [name: string, outcome: Outcome, answer: Answer]

const good = (message: { id?: unknown; method?: string }): Buffer | undefined =>
  message.method === 'bad' ? undefined : ok(done(message.id, { good: true }))

/** Answers every request well, except `bad`. */
const badly =
  (answer: Answer): RawRespond =>
  ({ message }, socket) => {
    const bytes = good(message) ?? answer(message.id, socket)
    if (bytes !== undefined) socket.write(bytes)
  }

async function check(outcome: Outcome, answer: Answer): Promise<void> {
  const { url, received, open } = await rawServer(badly(answer))
  const { peer } = await peerTo(url, { open: false, maxMessage: MAX })
  const controller = new AbortController()
  const options = { ...STATELESS, signal: controller.signal }
  const request = peer.request('bad', {}, options).catch((error: unknown) => error)
  if (outcome === 'stalls') {
    await expect.poll(() => received.length).toBe(1)
    controller.abort(new Error('stalls'))
    expect(await request).toMatchObject({ message: 'stalls' })
    await expect.poll(open).toBe(0)
  } else if (typeof outcome === 'object') expect(await request).toEqual(outcome)
  else expect(await request).toMatchObject({ code: outcome })
  expect(await peer.request('good', {}, STATELESS)).toEqual({ good: true })
}

const json = (outcome: Outcome, name: string, body: (id: unknown) => string | Uint8Array): Row => [
  name,
  outcome,
  (id) => ok(body(id)),
]
const status = (code: number, outcome: Outcome, body = 'x'): Row => [
  `HTTP ${code}`,
  outcome,
  (id) => response(code, [JSON_BODY], body === 'x' ? done(id) : body),
]
const typed = (type: string, outcome: Outcome): Row => [
  type.slice(0, 60),
  outcome,
  (id) => response(200, [type], done(id)),
]
const encoded = (
  name: string,
  encoding: string,
  outcome: Outcome,
  body: (id: unknown) => Uint8Array,
): Row => [
  name,
  outcome,
  (id) => response(200, [JSON_BODY, `Content-Encoding: ${encoding}`], body(id)),
]
const sse = (outcome: Outcome, name: string, body: (id: unknown) => string | Uint8Array): Row => [
  name,
  outcome,
  (id) => Buffer.concat([events(body(id)), Buffer.from(LAST_CHUNK)]),
]
const redirect = (name: string, location: string, code = 307): Row => [
  name,
  'HTTP_STATUS',
  () => response(code, [`Location: ${location}`]),
]
const INVALID = 'INVALID_RESPONSE'
const rpc = (id: unknown, members: object) => JSON.stringify({ jsonrpc: '2.0', id, ...members })
const note = (method: string, params: object = {}) =>
  data(JSON.stringify({ jsonrpc: '2.0', method, params }))

describe('a body that is not the response', () => {
  it.each<Row>([
    json(INVALID, 'empty', () => ''),
    json(INVALID, 'null', () => 'null'),
    json(INVALID, 'a number', () => '1'),
    json(INVALID, 'a string', () => '"x"'),
    json(INVALID, 'an empty array', () => '[]'),
    json(INVALID, 'a batch, which the revision does not have', (id) => `[${done(id)}]`),
    json(INVALID, 'a result and an error', (id) =>
      rpc(id, { result: {}, error: { code: 1, message: 'x' } }),
    ),
    json(INVALID, 'without jsonrpc', (id) => `{"id":${String(id)},"result":{}}`),
    json(INVALID, 'with id null', () => done(null)),
    json(INVALID, 'with id true', () => done(true)),
    json(INVALID, 'with the id as a string', (id) => done(String(id))),
    json(INVALID, 'with the id of no request', () => done(99)),
    json(INVALID, 'with an infinite id', () => '{"jsonrpc":"2.0","id":1e999,"result":{}}'),
    json(INVALID, 'an error without a code', (id) => rpc(id, { error: { message: 'x' } })),
    json(INVALID, 'an error that is null', (id) => rpc(id, { error: null })),
    json(INVALID, 'an error with a code in text', (id) =>
      rpc(id, { error: { code: '1', message: 'x' } }),
    ),
    json(INVALID, 'a notification', () => rpc(undefined, { method: 'notifications/x' })),
    json(INVALID, 'a request', () => rpc(7, { method: 'ping' })),
    json(INVALID, 'nested too deeply', (id) =>
      rpc(id, { result: '@' }).replace('"@"', `${'['.repeat(9000)}${']'.repeat(9000)}`),
    ),
    json(INVALID, 'cut JSON', (id) => done(id).slice(0, -1)),
    json(INVALID, 'two responses in a row', (id) => done(id) + done(id)),
    json(INVALID, 'NUL bytes', (id) => `\0${done(id)}`),
    json(INVALID, 'bytes that are not UTF-8', () => Buffer.from([0x7b, 0xff, 0xfe, 0x7d])),
    json(INVALID, 'UTF-16', (id) => Buffer.from(done(id), 'utf16le')),
    json(INVALID, 'Latin-1', (id) => Buffer.from(done(id, { text: 'ü' }), 'latin1')),
    json(FINE, 'with a byte order mark is tolerated', (id) => `\uFEFF${done(id)}`),
    json(FINE, 'with white space around is tolerated', (id) => `\r\n ${done(id)}\r\n`),
    json(-32603, 'a long error', (id) =>
      rpc(id, { error: { code: -32603, message: 'x'.repeat(MAX - 200) } }),
    ),
    json('TOO_LARGE', 'too long', (id) => done(id, { text: 'x'.repeat(MAX) })),
    [
      'endless',
      'TOO_LARGE',
      (_id, socket) => {
        socket.write(response(200, [JSON_BODY, CHUNKED]))
        endless(socket, chunk(' '.repeat(4096)))
      },
    ],
    [
      'drip-fed is tolerated',
      FINE,
      (id, socket) => {
        for (const byte of ok(done(id))) socket.write(Buffer.of(byte))
      },
    ],
  ])('%s', (_name, outcome, answer) => check(outcome, answer))

  it('with __proto__ keys changes no prototype', async () => {
    const { url } = await rawServer(
      badly((id) => ok(`{"jsonrpc":"2.0","id":${String(id)},"result":{"__proto__":{"bad":1}}}`)),
    )
    const { peer } = await peerTo(url, { open: false })
    const result = (await peer.request('bad', {}, STATELESS)) as object
    expect(Object.getPrototypeOf(result)).toBe(Object.prototype)
    expect(({} as { bad?: number }).bad).toBeUndefined()
  })
})

describe('a status or a content type', () => {
  it.each<Row>([
    status(201, FINE),
    status(206, FINE),
    ['HTTP 204', INVALID, () => response(204, [], '')],
    ['HTTP 202 without a body', INVALID, () => response(202, [])],
    status(300, 'HTTP_STATUS'),
    ['HTTP 304', 'HTTP_STATUS', () => response(304, [])],
    status(418, 'HTTP_STATUS'),
    status(599, 'HTTP_STATUS'),
    status(999, 'HTTP_STATUS'),
    status(400, 'HTTP_STATUS', '{"error":{"code":1,"message":2}}'),
    status(400, 'HTTP_STATUS', '['.repeat(60_000)),
    status(400, 'HTTP_STATUS', `"${'x'.repeat(70_000)}"`),
    status(400, -32000, '{"error":{"code":-32000,"message":"no"}}'),
    [
      'an endless error body',
      'HTTP_STATUS',
      (_id, socket) => {
        socket.write(response(500, [JSON_BODY, CHUNKED]))
        endless(socket, chunk('x'.repeat(4096)))
      },
    ],
    typed('Content-Type: text/html', INVALID),
    typed('Content-Type: text/plain', INVALID),
    typed('Content-Type: application/jsonx', INVALID),
    typed('Content-Type:', INVALID),
    typed('X: no Content-Type', INVALID),
    typed(`Content-Type: ${'x'.repeat(8000)}`, INVALID),
    typed('Content-Type: Application/JSON ; charset=iso-8859-1', FINE),
  ])('%s', (_name, outcome, answer) => check(outcome, answer))
})

describe('broken HTTP', () => {
  it.each<Row>([
    ['no HTTP', 'NETWORK', () => 'SSH-2.0-x\r\n\r\n'],
    ['the preface of HTTP/2', 'NETWORK', () => 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'],
    ['TLS', 'NETWORK', () => Buffer.from([0x15, 3, 1, 0, 2, 2, 70])],
    [
      'a Content-Length that is too long',
      'NETWORK',
      (id, socket) => void socket.end(response(200, [JSON_BODY, 'Content-Length: 5000'], done(id))),
    ],
    [
      'a Content-Length that is too short',
      INVALID,
      (id) => response(200, [JSON_BODY, 'Content-Length: 5'], done(id)),
    ],
    [
      'a negative Content-Length',
      'NETWORK',
      (id) => response(200, [JSON_BODY, 'Content-Length: -1'], done(id)),
    ],
    [
      'two Content-Lengths',
      'NETWORK',
      (id) => response(200, [JSON_BODY, 'Content-Length: 5', 'Content-Length: 6'], done(id)),
    ],
    [
      'Content-Length and chunks',
      'NETWORK',
      (id) => response(200, [JSON_BODY, 'Content-Length: 5', CHUNKED], chunk(done(id))),
    ],
    ['a chunk without a size', 'NETWORK', () => response(200, [JSON_BODY, CHUNKED], 'zz\r\n{}')],
    [
      'a chunk of a size beyond 2^64',
      'NETWORK',
      () => response(200, [JSON_BODY, CHUNKED], `${'f'.repeat(20)}\r\n{}`),
    ],
    [
      'a chunk that is cut',
      'NETWORK',
      (id, socket) =>
        void socket.end(response(200, [JSON_BODY, CHUNKED], chunk(done(id)).subarray(0, 20))),
    ],
    [
      'chunks without a last one',
      'NETWORK',
      (id, socket) => void socket.end(response(200, [JSON_BODY, CHUNKED], chunk(done(id)))),
    ],
    ['the end of the connection', 'NETWORK', (_id, socket) => void socket.end()],
    ['a reset', 'NETWORK', (_id, socket) => void socket.resetAndDestroy()],
    [
      'a reset within the body',
      'NETWORK',
      (id, socket) => {
        socket.write(response(200, [JSON_BODY, 'Content-Length: 5000'], done(id)))
        setImmediate(() => socket.resetAndDestroy())
      },
    ],
    ['a long header', 'NETWORK', () => response(200, [`X: ${'x'.repeat(100_000)}`])],
    [
      'a header that does not end',
      'NETWORK',
      (_id, socket) => {
        socket.write('HTTP/1.1 200 OK\r\nX: ')
        endless(socket, Buffer.alloc(4096, 'x'))
      },
    ],
    ['many headers', 'NETWORK', () => response(200, Array<string>(20_000).fill('X: y'))],
    ['a header with a control character', 'NETWORK', () => response(200, ['X: \u0001\0'])],
    [
      'a flood of 100 Continue is tolerated',
      FINE,
      (id) =>
        Buffer.concat([Buffer.from('HTTP/1.1 100 Continue\r\n\r\n'.repeat(5000)), ok(done(id))]),
    ],
    [
      'a flood of 103 Early Hints is tolerated',
      FINE,
      (id) =>
        Buffer.concat([
          Buffer.from('HTTP/1.1 103 X\r\nLink: <x>\r\n\r\n'.repeat(5000)),
          ok(done(id)),
        ]),
    ],
    [
      '101 Switching Protocols',
      'HTTP_STATUS',
      () => 'HTTP/1.1 101 X\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n',
    ],
    ['no headers', 'stalls', () => undefined],
    ['headers that are cut', 'stalls', () => 'HTTP/1.1 200 OK\r\nContent-Ty'],
    [
      'a body that stalls',
      'stalls',
      (id) => response(200, [JSON_BODY, 'Content-Length: 5000'], done(id)),
    ],
    ['a stream that stalls', 'stalls', () => events(':\n\n')],
    [
      'a response that nobody asked for, before the request',
      FINE,
      (id, socket) => {
        socket.write(ok(done(id)))
        return ok(done(99))
      },
    ],
  ])('%s', (_name, outcome, answer) => check(outcome, answer))

  const codes = (outcome: unknown) => (outcome as { code?: string }).code ?? JSON.stringify(outcome)

  it.each([
    ['a JSON response', (id: unknown) => ok(done(id)), ['NETWORK']],
    [
      'an event stream',
      (id: unknown) =>
        Buffer.concat([events(note('x')), chunk(data(done(id))), Buffer.from(LAST_CHUNK)]),
      ['NETWORK', 'STREAM_ENDED', '{"fine":true}'],
    ],
  ])('cut at every byte of %s', async (_name, bytes, expected) => {
    let cut = 0
    const { url } = await rawServer(
      badly((id, socket) => void socket.end(bytes(id).subarray(0, cut))),
    )
    const { peer } = await peerTo(url, { open: false })
    const length = bytes(1).length
    for (cut = 0; cut < length; cut++) {
      const outcome = await peer.request('bad', {}, STATELESS).catch((error: unknown) => error)
      expect(expected).toContain(codes(outcome))
      if (cut % 10 === 0) expect(await peer.request('good', {}, STATELESS)).toEqual({ good: true })
    }
    cut = Infinity
    expect(await peer.request('bad', {}, STATELESS)).toEqual(FINE)
  })
})

describe('a compressed body', () => {
  const bomb = Buffer.alloc(64 * 1024 * 1024, ' ')
  it.each<Row>([
    encoded('a gzip bomb', 'gzip', 'TOO_LARGE', () => gzipSync(bomb)),
    encoded('a deflate bomb', 'deflate', 'TOO_LARGE', () => deflateSync(bomb)),
    encoded('a brotli bomb', 'br', 'TOO_LARGE', () =>
      brotliCompressSync(bomb, { params: { 1: 1 } }),
    ),
    encoded('garbage as gzip', 'gzip', INVALID, () => Buffer.from('garbage')),
    encoded('garbage as deflate', 'deflate', INVALID, () => Buffer.from('garbage')),
    encoded('garbage as brotli', 'br', INVALID, () => Buffer.from('garbage')),
    encoded('gzip that is cut', 'gzip', INVALID, (id) => gzipSync(done(id)).subarray(0, -12)),
    encoded('an unknown encoding', 'zstd', INVALID, (id) => Buffer.from(done(id))),
    encoded('two encodings', 'gzip, gzip', INVALID, (id) => gzipSync(gzipSync(done(id)))),
    encoded('gzip is read', 'gzip', FINE, (id) => gzipSync(done(id))),
    encoded('brotli is read', 'BR', FINE, (id) => brotliCompressSync(done(id))),
    encoded('identity is read', 'identity', FINE, (id) => Buffer.from(done(id))),
    [
      'a gzip bomb of one event',
      'TOO_LARGE',
      () =>
        response(
          200,
          [EVENTS, 'Content-Encoding: gzip'],
          gzipSync(Buffer.concat([Buffer.from('data:'), bomb])),
        ),
    ],
    [
      'a gzip bomb of comments, then the response',
      FINE,
      (id) =>
        response(
          200,
          [EVENTS, 'Content-Encoding: gzip'],
          gzipSync(`${':x\n'.repeat(1_000_000)}${data(done(id))}`),
        ),
    ],
  ])('%s', (_name, outcome, answer) => check(outcome, answer))
})

describe('an event stream', () => {
  it.each<Row>([
    sse('STREAM_ENDED', 'without an event', () => ''),
    sse('STREAM_ENDED', 'without the response', () => note('notifications/x')),
    sse('STREAM_ENDED', 'whose last event has no end', (id) => `data: ${done(id)}`),
    sse(
      'STREAM_ENDED',
      'with the response in an event of another type',
      (id) => `event: other\n${data(done(id))}`,
    ),
    sse(
      'STREAM_ENDED',
      'with an id in a stateless revision is not resumed',
      () => 'id: 1\ndata:\n\n',
    ),
    sse('TOO_LARGE', 'with an event that is too long', (id) =>
      data(done(id, { text: 'x'.repeat(MAX) })),
    ),
    sse('TOO_LARGE', 'with an event that is too long in bytes', (id) =>
      data(done(id, { text: '€'.repeat(MAX / 2) })),
    ),
    [
      'with an endless line',
      'TOO_LARGE',
      (_id, socket) => {
        socket.write(events('data: '))
        endless(socket, chunk('x'.repeat(4096)))
      },
    ],
    [
      'with endless data lines',
      'TOO_LARGE',
      (_id, socket) => {
        socket.write(events(''.padEnd(1, '\n')))
        endless(socket, chunk('data:\n'.repeat(500)))
      },
    ],
    sse(INVALID, 'with an invalid response', (id) => data(rpc(id, { error: 1 }))),
    sse(INVALID, 'with a response that is nested too deeply', (id) =>
      data(rpc(id, { result: '@' }).replace('"@"', `${'['.repeat(9000)}${']'.repeat(9000)}`)),
    ),
    ['with an invalid response, and no end', INVALID, (id) => events(data(rpc(id, { error: 1 })))],
    ['with the response, and no end', FINE, (id) => events(data(done(id)))],
    sse(
      FINE,
      'with garbage before the response',
      (id) => `${data('{')}${data('x')}${data(done(id))}`,
    ),
    sse(
      FINE,
      'with two responses: the first counts',
      (id) => data(done(id)) + data(done(id, { second: true })),
    ),
    sse(FINE, 'with a response to no request', (id) => data(done(12_345)) + data(done(id))),
    sse(
      FINE,
      'with an error without an id',
      (id) => data(rpc(null, { error: { code: 1, message: 'x' } })) + data(done(id)),
    ),
    sse(FINE, 'with CR LF', (id) => data(done(id)).replaceAll('\n', '\r\n')),
    sse(FINE, 'with CR', (id) => data(done(id)).replaceAll('\n', '\r')),
    sse(FINE, 'with a byte order mark', (id) => `\uFEFF${data(done(id))}`),
    sse(FINE, 'with bytes in a comment that are not UTF-8', (id) =>
      Buffer.concat([Buffer.from([0x3a, 0xff, 0xfe, 0x0a]), Buffer.from(data(done(id)))]),
    ),
    sse(FINE, 'with NUL in an id', (id) => `id: a\0b\n${data(done(id))}`),
    sse(FINE, 'with a long id', (id) => `id: ${'x'.repeat(MAX - 100)}\n${data(done(id))}`),
    sse(
      FINE,
      'with a retry beyond all numbers',
      (id) => `retry: ${'9'.repeat(400)}\n${data(done(id))}`,
    ),
    sse(FINE, 'with fields that do not exist', (id) => `foo: bar\n:\n\n\n\n${data(done(id))}`),
    sse(
      FINE,
      'with a flood of notifications',
      (id) => note('notifications/x', { text: 'x' }).repeat(20_000) + data(done(id)),
    ),
    sse(
      FINE,
      'with progress of no request',
      (id) =>
        note('notifications/progress', { progressToken: 'x', progress: 1 }).repeat(100) +
        data(done(id)),
    ),
    sse(
      FINE,
      'with requests, which the revision does not have',
      (id) => data(rpc('q', { method: 'ping' })).repeat(1000) + data(done(id)),
    ),
    [
      'drip-fed',
      FINE,
      (id, socket) => {
        socket.write(events(':\n\n'))
        for (const byte of Buffer.from(data(done(id, FINE)))) socket.write(chunk(Buffer.of(byte)))
        socket.write(LAST_CHUNK)
      },
    ],
    [
      'with a session id is not a session',
      FINE,
      (id) => Buffer.concat([events(data(done(id)), 'Mcp-Session-Id: s'), Buffer.from(LAST_CHUNK)]),
    ],
  ])('%s', (_name, outcome, answer) => check(outcome, answer))
})

describe('a redirect', () => {
  it.each<Row>([
    redirect('to another port', 'http://127.0.0.1:1/mcp'),
    redirect('to another host', 'http://localhost/mcp'),
    redirect('to https', 'https://127.0.0.1/mcp'),
    redirect('to a relative URL of another host', '//example.com/mcp'),
    redirect('to a file', 'file:///etc/passwd'),
    redirect('to a script', 'javascript:alert(1)'),
    redirect('to data', 'data:application/json,{}'),
    redirect('to no URL', 'http://'),
    redirect('to itself', '/mcp'),
    redirect('of a POST with 301', '/mcp', 301),
    redirect('of a POST with 302', '/mcp', 302),
    redirect('of a POST with 303', '/mcp', 303),
    ['without a Location', 'HTTP_STATUS', () => response(308, [])],
  ])('%s', (_name, outcome, answer) => check(outcome, answer))

  it('within the origin, but with credentials', async () => {
    const { url } = await rawServer(
      badly(() => response(307, [`Location: ${url.replace('//', '//user:secret@')}`])),
    )
    const { peer } = await peerTo(url, { open: false })
    await expect(peer.request('bad', {}, STATELESS)).rejects.toThrow('credentials')
  })
})
