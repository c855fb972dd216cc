import { connect } from 'node:net'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type Listening, listen } from '../../src/http.js'
import {
  InitializedSession,
  META,
  POST,
  type Sending,
  statelessRequest,
  message,
  send,
} from './caller.js'
import { proves } from '../requirements/proves.js'
import { servedOverHttp } from './served.js'

/*
 * What no honest client sends. Every answer is written down, word for word, in
 * bad-input.txt (`npx vitest run --update test/http/bad-input.test.ts`), and
 * after each of them the next request is served.
 */

const MAX_BODY = 100_000
const ping = message('ping', undefined, 1)
const post = (body: string | Uint8Array, headers: Record<string, string> = {}): Sending => ({
  headers: { ...POST, ...headers },
  body,
})
const envelope = (meta: unknown, method = 'server/discover'): Sending =>
  post(JSON.stringify({ jsonrpc: '2.0', id: 1, method, params: { _meta: meta } }), {
    'mcp-protocol-version': '2026-07-28',
    'mcp-method': method,
  })
const without = (key: string) =>
  Object.fromEntries(Object.entries(META).filter(([name]) => name !== key))
const withMeta = (key: string, value: unknown) => envelope({ ...META, [key]: value })
const modern = (body: string) => post(body, { 'mcp-protocol-version': '2026-07-28' })

const REQUESTS: Record<string, Sending> = {
  // The method of HTTP.
  PUT: { ...post(ping), method: 'PUT' },
  PATCH: { ...post(ping), method: 'PATCH' },
  HEAD: { method: 'HEAD', headers: {} },
  OPTIONS: { method: 'OPTIONS', headers: { origin: 'http://localhost' } },
  PROPFIND: { method: 'PROPFIND', headers: {} },
  'GET without a session': { method: 'GET', headers: { accept: 'text/event-stream' } },
  'GET, as Codex begins': {
    method: 'GET',
    headers: { accept: '*/*', 'mcp-protocol-version': '2024-11-05' },
  },
  'DELETE without a session': { method: 'DELETE', headers: {} },
  'GET of an unknown session': {
    method: 'GET',
    headers: { accept: 'text/event-stream', 'mcp-session-id': 'x' },
  },
  'DELETE of an unknown session': { method: 'DELETE', headers: { 'mcp-session-id': 'x' } },
  // Types.
  'no type': { headers: { accept: POST.accept }, body: ping },
  'plain text': post(ping, { 'content-type': 'text/plain' }),
  'a form': post('a=b', { 'content-type': 'application/x-www-form-urlencoded' }),
  'several parts': post(ping, { 'content-type': 'multipart/form-data; boundary=x' }),
  XML: post('<a/>', { 'content-type': 'application/xml' }),
  'nearly JSON': post(ping, { 'content-type': 'application/jsonx' }),
  'JSON and more': post(ping, { 'content-type': 'application/json, text/plain' }),
  'JSON in Latin-1': post(ping, { 'content-type': 'application/json; charset=iso-8859-1' }),
  'JSON in Latin-1, and more': post(ping, {
    'content-type': 'application/json; v=1; charset=iso-8859-1; charset=utf-8',
  }),
  compressed: post(ping, { 'content-encoding': 'gzip' }),
  'compressed on its way': post(ping, { 'transfer-encoding': 'gzip, chunked' }),
  'accepts JSON only': post(ping, { accept: 'application/json' }),
  'accepts streams only': post(ping, { accept: 'text/event-stream' }),
  'accepts pages': post(ping, { accept: 'text/html' }),
  'accepts streams with no weight': post(ping, {
    accept: 'application/json, text/event-stream;q=0',
  }),
  'accepts another type with the same start': post(ping, {
    accept: 'application/json-patch+json, text/event-stream',
  }),
  'accepts any type but JSON': post(ping, { accept: 'application/json;q=0, */*' }),
  'accepts nothing': post(ping, { accept: '' }),
  // Names and pages.
  'another name': post(ping, { host: 'evil.example.com' }),
  'a name that begins alike': post(ping, { host: 'localhost.evil.example.com' }),
  'a name with a user': post(ping, { host: 'localhost@evil.example.com' }),
  'an address of elsewhere': post(ping, { host: '10.0.0.1' }),
  'a page of elsewhere': post(ping, { origin: 'http://evil.example.com' }),
  'a page of another port': post(ping, { origin: 'http://localhost:1' }),
  'a page of nowhere': post(ping, { origin: 'null' }),
  'a page that is none': post(ping, { origin: 'localhost' }),
  // Bodies.
  'no body': post(''),
  spaces: post('  \n '),
  'a brace': post('{'),
  'half a message': post('{"jsonrpc":"2.0","id":1,"method":"pi'),
  'two messages': post(`${ping}\n${ping}`),
  'more behind it': post(`${ping}x`),
  'a comma too much': post('{"jsonrpc":"2.0","id":1,"method":"ping",}'),
  'single quotes': post("{'jsonrpc':'2.0','id':1,'method':'ping'}"),
  'no JSON at all': post('hello'),
  'a header of Content-Length': post('Content-Length: 5\r\n\r\nhello'),
  'bytes that are no UTF-8': post(Buffer.from([0x7b, 0xff, 0xfe, 0x7d])),
  'UTF-16': post(Buffer.from(ping, 'utf16le')),
  'a NUL byte': post('\0'),
  'a string': post('"ping"'),
  'a number': post('42'),
  null: post('null'),
  true: post('true'),
  'too deep': post('['.repeat(600) + ']'.repeat(600)),
  'deep in params': post(
    `{"jsonrpc":"2.0","id":8,"method":"x","params":{"a":${'['.repeat(600)}${']'.repeat(600)}}}`,
  ),
  'too long': post(
    `{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":"${'x'.repeat(MAX_BODY)}"}}`,
  ),
  // Messages without a session.
  'ping without a session': post(ping),
  'a list without a session': post(message('tools/list', {}, 'a')),
  'a notification without a session': post(message('notifications/initialized')),
  'an answer without a session': post('{"jsonrpc":"2.0","id":1,"result":{}}'),
  'an unknown method without a session': post(message('nope', {}, 1)),
  'a batch without a session': post(`[${ping}]`),
  'an empty batch without a session': post('[]'),
  'initialize in a batch': post(`[${message('initialize', { protocolVersion: '2025-03-26' }, 1)}]`),
  'initialize with nothing': post(message('initialize', undefined, 1)),
  'initialize with a number': post(message('initialize', { protocolVersion: 1 }, 1)),
  'initialize without an id': post(message('initialize', { protocolVersion: '2025-11-25' })),
  'initialize of an older JSON-RPC': post(
    '{"jsonrpc":"1.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}',
  ),
  'a session that never was': post(ping, { 'mcp-session-id': 'nobody' }),
  'a session with a strange name': post(ping, { 'mcp-session-id': '../../etc/passwd' }),
  // Requests that describe themselves.
  'no description': envelope(undefined),
  'a description that is a list': envelope([]),
  'an empty description': envelope({}),
  'no version': envelope(without('io.modelcontextprotocol/protocolVersion')),
  'no capabilities': envelope(without('io.modelcontextprotocol/clientCapabilities')),
  'a version that is a number': withMeta('io.modelcontextprotocol/protocolVersion', 2026),
  'capabilities that are a list': withMeta('io.modelcontextprotocol/clientCapabilities', []),
  'a client that is a text': withMeta('io.modelcontextprotocol/clientInfo', 'me'),
  'an unknown log level': withMeta('io.modelcontextprotocol/logLevel', 'loud'),
  'a version of the future': {
    ...withMeta('io.modelcontextprotocol/protocolVersion', '2999-01-01'),
    headers: { ...POST, 'mcp-protocol-version': '2999-01-01', 'mcp-method': 'server/discover' },
  },
  'a version of the future in the body only': withMeta(
    'io.modelcontextprotocol/protocolVersion',
    '2999-01-01',
  ),
  'a version of the past in both': {
    ...withMeta('io.modelcontextprotocol/protocolVersion', '2025-11-25'),
    headers: { ...POST, 'mcp-protocol-version': '2025-11-25', 'mcp-method': 'server/discover' },
  },
  'a batch of the newest': modern(`[${ping}]`),
  'an answer in the newest': modern('{"jsonrpc":"2.0","id":1,"result":{}}'),
  'garbage in the newest': modern('{'),
  'an id that is null in the newest': modern(
    '{"jsonrpc":"2.0","id":null,"method":"server/discover","params":{}}',
  ),
  'params that are a list in the newest': modern(
    '{"jsonrpc":"2.0","id":5,"method":"server/discover","params":[]}',
  ),
  'initialize in the newest': statelessRequest('initialize', { protocolVersion: '2026-07-28' }),
  'ping in the newest': statelessRequest('ping'),
  'setLevel in the newest': statelessRequest('logging/setLevel', { level: 'info' }),
  'subscribe in the newest': statelessRequest('resources/subscribe', { uri: 'note://one' }),
  'unsubscribe in the newest': statelessRequest('resources/unsubscribe', { uri: 'note://one' }),
  'an unknown method in the newest': statelessRequest('unknown/method'),
  'a method of Object': statelessRequest('__proto__'),
  'an unknown tool in the newest': statelessRequest('tools/call', { name: 'constructor' }),
  'a tool without a name': statelessRequest('tools/call'),
  'arguments that are a list': statelessRequest('tools/call', { name: 'echo', arguments: [] }),
  'wrong arguments in the newest': statelessRequest('tools/call', {
    name: 'echo',
    arguments: { text: 5 },
  }),
  'an unknown resource in the newest': statelessRequest('resources/read', {
    uri: 'note://nowhere',
  }),
  'an unknown prompt in the newest': statelessRequest('prompts/get', { name: 'x' }),
  'a cursor of somebody else': statelessRequest('tools/list', { cursor: 'AAAA' }),
  'a listening for nothing': statelessRequest('subscriptions/listen'),
}

const PATHS = [
  '/',
  '/mcp2',
  '/mcp/x',
  '//mcp',
  '/MCP',
  '/sse',
  '/healthz/x',
  '/.well-known/oauth-authorization-server',
  '/.well-known/openid-configuration',
  '/.well-known/oauth-protected-resource',
  '/.well-known/oauth-protected-resource/mcp',
  '/../mcp',
]

const long = 'x'.repeat(2000)
const IN_SESSION: Record<string, string> = {
  'an id that is null': '{"jsonrpc":"2.0","id":null,"method":"ping"}',
  'an id with a fraction': '{"jsonrpc":"2.0","id":1.5,"method":"ping"}',
  'an id that is an object': '{"jsonrpc":"2.0","id":{},"method":"ping"}',
  'an id that is true': '{"jsonrpc":"2.0","id":true,"method":"ping"}',
  'an id beyond all numbers': '{"jsonrpc":"2.0","id":1e999,"method":"ping"}',
  'an id that is too long': `{"jsonrpc":"2.0","id":"${long}","method":"ping"}`,
  'a method that is a number': '{"jsonrpc":"2.0","id":1,"method":1}',
  'no method': '{"jsonrpc":"2.0","id":1}',
  'an empty object': '{}',
  'no version of JSON-RPC': '{"id":1,"method":"ping"}',
  'params that are a list': '{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}',
  'params that are a text': '{"jsonrpc":"2.0","id":1,"method":"ping","params":"x"}',
  'keys in capitals': '{"jsonrpc":"2.0","ID":1,"Method":"ping"}',
  'a notification with a list': '{"jsonrpc":"2.0","method":"notifications/x","params":[]}',
  'an answer with both': '{"jsonrpc":"2.0","id":1,"result":{},"error":{"code":1,"message":"x"}}',
  'an answer without an id': '{"jsonrpc":"2.0","result":{}}',
  'an error without a code': '{"jsonrpc":"2.0","id":1,"error":{}}',
  'initialize again': message('initialize', { protocolVersion: '2025-11-25' }, 1),
  'discover without a description': message('server/discover', {}, 1),
  'an unknown method': message('nope', {}, 1),
  'an unknown tool': message('tools/call', { name: 'nope' }, 1),
  'a tool named by a number': message('tools/call', { name: 5 }, 1),
  'wrong arguments': message('tools/call', { name: 'echo', arguments: {} }, 1),
  'an unknown resource': message('resources/read', { uri: 'note://nowhere' }, 1),
  'an unknown level': message('logging/setLevel', { level: 'loud' }, 1),
  'a batch': `[${ping}]`,
  'an empty batch': '[]',
}

/** Raw bytes, for what no library sends. */
const RAW: Record<string, (port: number) => string> = {
  'no HTTP': () => 'hello\r\n\r\n',
  'no Host': () => 'POST /mcp HTTP/1.1\r\nContent-Length: 0\r\n\r\n',
  'two Hosts': (port) =>
    `POST /mcp HTTP/1.1\r\nHost: localhost:${port}\r\nHost: evil.example\r\nContent-Length: 0\r\n\r\n`,
  'two lengths': (port) =>
    `POST /mcp HTTP/1.1\r\nHost: localhost:${port}\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabcd`,
  'a length and chunks': (port) =>
    `POST /mcp HTTP/1.1\r\nHost: localhost:${port}\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`,
  'a length that is none': (port) =>
    `POST /mcp HTTP/1.1\r\nHost: localhost:${port}\r\nContent-Length: -1\r\n\r\n`,
  'a chunk that is none': (port) =>
    `POST /mcp HTTP/1.1\r\nHost: localhost:${port}\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n`,
  'a header over two lines': (port) =>
    `POST /mcp HTTP/1.1\r\nHost: localhost:${port}\r\nX: a\r\n b\r\nContent-Length: 0\r\n\r\n`,
  'a header without a name': (port) =>
    `POST /mcp HTTP/1.1\r\nHost: localhost:${port}\r\n: x\r\n\r\n`,
  'a NUL in a header': (port) => `POST /mcp HTTP/1.1\r\nHost: localhost:${port}\r\nX: a\0b\r\n\r\n`,
  'headers without end': (port) =>
    `POST /mcp HTTP/1.1\r\nHost: localhost:${port}\r\nX: ${'a'.repeat(40_000)}\r\n\r\n`,
  'two sessions': (port) =>
    `POST /mcp HTTP/1.1\r\nHost: localhost:${port}\r\nMcp-Session-Id: a\r\nmcp-session-id: b\r\nContent-Length: 0\r\n\r\n`,
  'two methods': (port) =>
    `POST /mcp HTTP/1.1\r\nHost: localhost:${port}\r\nMcp-Method: a\r\nMcp-Method: a\r\nContent-Length: 0\r\n\r\n`,
  'two parameters': (port) =>
    `POST /mcp HTTP/1.1\r\nHost: localhost:${port}\r\nMcp-Param-X: a\r\nMCP-PARAM-X: b\r\nContent-Length: 0\r\n\r\n`,
  'two origins': (port) =>
    `POST /mcp HTTP/1.1\r\nHost: localhost:${port}\r\nOrigin: http://localhost:${port}\r\nOrigin: http://evil.example\r\nContent-Length: 0\r\n\r\n`,
  'two types': (port) =>
    `POST /mcp HTTP/1.1\r\nHost: localhost:${port}\r\nContent-Type: application/json\r\nContent-Type: text/plain\r\nContent-Length: 0\r\n\r\n`,
  'two tokens': (port) =>
    `POST /mcp HTTP/1.1\r\nHost: localhost:${port}\r\nAuthorization: Bearer a\r\nAuthorization: Bearer b\r\nContent-Length: 0\r\n\r\n`,
  'a page of elsewhere behind very many headers': (port) =>
    `POST /mcp HTTP/1.1\r\nHost: localhost:${port}\r\n${'a:\r\n'.repeat(2100)}Origin: http://evil.example\r\nContent-Length: 0\r\n\r\n`,
  'two names, with very many headers between them': (port) =>
    `POST /mcp HTTP/1.1\r\nHost: localhost:${port}\r\nMcp-Name: a\r\n${'a:\r\n'.repeat(2100)}Mcp-Name: b\r\nContent-Length: 0\r\n\r\n`,
  'a target that names another host': (port) =>
    `GET http://evil.example/mcp HTTP/1.1\r\nHost: localhost:${port}\r\n\r\n`,
  'a target that names its host': (port) =>
    `GET http://LOCALHOST:${port}/mcp?x=1 HTTP/1.1\r\nHost: localhost:${port}\r\n\r\n`,
  'a target that is a host alone': (port) =>
    `GET http://localhost:${port} HTTP/1.1\r\nHost: localhost:${port}\r\n\r\n`,
  'an older HTTP': () => 'GET /mcp HTTP/1.0\r\n\r\n',
  TRACE: (port) => `TRACE /mcp HTTP/1.1\r\nHost: localhost:${port}\r\n\r\n`,
  CONNECT: (port) => `CONNECT /mcp HTTP/1.1\r\nHost: localhost:${port}\r\n\r\n`,
}

/** The first answer to raw bytes: its status and its body. Dates and such are left out. */
function raw(port: number, bytes: string): Promise<string> {
  return new Promise((resolve) => {
    let text = ''
    const finish = () => {
      socket.destroy()
      const [head = '', body = ''] = text.split('\r\n\r\n')
      resolve(
        text === ''
          ? 'the connection is closed'
          : `${/^HTTP\/1\.1 (\d+)/.exec(head)?.[1] ?? '?'} ${body}`.trim(),
      )
    }
    const socket = connect(port, '127.0.0.1', () => socket.write(bytes))
    socket.on('data', (chunk: Buffer) => {
      text += chunk.toString()
      const length = /content-length: (\d+)/i.exec(text)?.[1]
      if (
        text.includes('\r\n\r\n') &&
        (length === undefined || text.length >= text.indexOf('\r\n\r\n') + 4 + Number(length))
      )
        finish()
    })
    socket.on('close', finish).on('error', finish)
  })
}

let listening: Listening
let clients: Record<string, InitializedSession>
const log: string[] = []
beforeAll(async () => {
  listening = await listen(servedOverHttp().server, {
    port: 0,
    limits: { bodyBytes: MAX_BODY },
    log: { write: (line) => log.push(line) },
    logLevel: 'error',
  })
  clients = {}
  for (const revision of ['2025-03-26', '2025-06-18', '2025-11-25'])
    clients[revision] = await InitializedSession.open(listening.url, revision)
})
afterAll(() => listening.close(0))

/** The next request is served as if nothing had been. */
async function stillServes(): Promise<void> {
  const { json } = await send(
    listening.url,
    statelessRequest('tools/call', { name: 'echo', arguments: { text: 'alive' } }),
  )
  expect(json).toMatchObject({ result: { content: [{ text: 'alive' }] } })
}

describe('bad input over HTTP', () => {
  const answers: string[] = []
  const note = (name: string, answer: string) => answers.push(`${name}\n  ${answer}`)

  it('gets an error response, and the next request is served', async () => {
    proves(
      'http.body-today',
      'http.refused',
      'http.session-missing',
      'http.version-default',
      'http.header-unsupported',
      'meta.incomplete-http',
    )
    for (const [name, sending] of Object.entries(REQUESTS)) {
      const { status, text, headers } = await send(listening.url, sending)
      note(
        name,
        `${status} ${text}${headers['allow'] === undefined ? '' : ` (allow ${String(headers['allow'])})`}`,
      )
      await stillServes()
    }
    for (const path of PATHS) {
      const { status, text } = await send(new URL(listening.url).origin + path, {
        method: 'GET',
        headers: {},
      })
      note(`GET ${path}`, `${status} ${text}`)
    }
    for (const [revision, client] of Object.entries(clients)) {
      for (const [name, body] of Object.entries(IN_SESSION)) {
        const { status, text } = await client.post(body)
        note(`${name} (${revision})`, `${status} ${text}`.replaceAll(long, 'x…'))
      }
      for (const last of ['', 'x', 'g.', 'zz.1', '0p.99999999999999999999', '../g.1', 'G.1']) {
        const stream = await client.listen(last)
        note(`Last-Event-ID ${JSON.stringify(last)} (${revision})`, `${stream.status}`)
        stream.disconnect()
      }
      expect((await client.request('ping')).json).toMatchObject({ result: {} })
    }
    for (const [name, bytes] of Object.entries(RAW)) {
      note(`raw: ${name}`, await raw(listening.port, bytes(listening.port)))
      await stillServes()
    }
    // Without a header and a session, what is answered has the form of 2025-03-26: an id that could not be read is null.
    expect(answers).toContainEqual(
      expect.stringMatching(/^no JSON at all\n {2}400 \{"jsonrpc":"2\.0","id":null,/),
    )
    expect(answers.length).toBeGreaterThan(200)
    await expect(`${answers.join('\n')}\n`).toMatchFileSnapshot('bad-input.txt')
    // None of it was our own fault.
    expect(log).toEqual([])
  })
})
