import { gzipSync } from 'node:zlib'
import {
  type CaptureRecord,
  type Direction,
  captureHeader,
  chunkRecord,
  encodeRecord,
} from '../../src/capture/format.js'

/* Captures for tests and screenshots. */

export const START = new Date('2026-01-02T03:04:05.000Z')

/** Method and target, or status and reason; headers; body. */
type HttpMessage<First = string> = readonly [
  First,
  string,
  Readonly<Record<string, string>>,
  string | Uint8Array,
]
/** Bytes of a chunk of a body. */
const PIECE = 50

/** Builds the records of a capture, message by message. */
export class CaptureBuilder {
  readonly records: CaptureRecord[] = [captureHeader(START, 'ccmcp 0.1.0')]
  readonly #offsets = { in: 0, out: 0 }
  #ns = 0
  #exchanges = 0

  /** Adds bytes, milliseconds after the last ones. */
  bytes(dir: Direction, bytes: Uint8Array, wait = 1): this {
    this.#ns += Math.round(wait * 1e6)
    this.records.push(chunkRecord(dir, this.#ns, this.#offsets[dir], bytes))
    this.#offsets[dir] += bytes.length
    return this
  }

  line(dir: Direction, text: string, wait = 1): this {
    return this.bytes(dir, new TextEncoder().encode(`${text}\n`), wait)
  }

  message(dir: Direction, message: object, wait = 1): this {
    return this.line(dir, JSON.stringify({ jsonrpc: '2.0', ...message }), wait)
  }

  event(event: string, members: object = {}): this {
    this.records.push({ type: 'event', event, ns: this.#ns, ...members })
    return this
  }

  handshake(revision = '2025-11-25'): this {
    return this.message('in', {
      id: 0,
      method: 'initialize',
      params: {
        protocolVersion: revision,
        capabilities: { roots: { listChanged: true }, elicitation: {} },
        clientInfo: { name: 'example-host', version: '2.1.0' },
      },
    })
      .message(
        'out',
        {
          id: 0,
          result: {
            protocolVersion: revision,
            capabilities: { tools: { listChanged: true }, resources: {}, logging: {} },
            serverInfo: { name: 'notes', version: '1.4.2' },
            instructions: 'Search before you read.',
          },
        },
        38,
      )
      .message('in', { method: 'notifications/initialized' })
  }

  call(id: number | string, name: string, args: object, result: object, wait = 5): this {
    return this.message(
      'in',
      { id, method: 'tools/call', params: { name, arguments: args } },
      2,
    ).message('out', { id, ...result }, wait)
  }

  /** Adds an HTTP request and its response; its bodies are cut into pieces. */
  exchange(
    [method, target, requestHeaders, requestBody]: HttpMessage,
    [status, reason, responseHeaders, responseBody]: HttpMessage<number>,
    wait = 5,
  ): this {
    const exchange = ++this.#exchanges
    const heads = (headers: Readonly<Record<string, string>>) => Object.entries(headers)
    this.event('request', {
      exchange,
      connection: 1,
      method,
      target,
      headers: heads(requestHeaders),
    })
    this.#body('in', exchange, requestBody)
    this.#ns += wait * 1e6
    this.event('response', { exchange, status, reason, headers: heads(responseHeaders) })
    this.#body('out', exchange, responseBody)
    return this
  }

  #body(dir: Direction, exchange: number, content: string | Uint8Array): void {
    const bytes = typeof content === 'string' ? new TextEncoder().encode(content) : content
    for (let offset = 0; offset < bytes.length; offset += PIECE) {
      const piece = bytes.slice(offset, offset + PIECE)
      this.records.push({ ...chunkRecord(dir, this.#ns++, offset, piece), exchange })
    }
    this.event('end', { exchange, dir })
  }

  exit(): this {
    return this.event('exit', { code: 0, signal: null })
  }

  toString(): string {
    return this.records.map(encodeRecord).join('')
  }
}

export const text = (content: string) => ({
  result: { content: [{ type: 'text', text: content }] },
})

const JSON_TYPE = { 'Content-Type': 'application/json' }

/** The same over HTTP: a login, a compressed body, and events. */
export function httpCapture(): CaptureBuilder {
  const capture = new CaptureBuilder()
  const call = (id: number, name: string) =>
    JSON.stringify({ jsonrpc: '2.0', id, method: 'tools/call', params: { name } })
  const answer = (id: number, content: string) =>
    JSON.stringify({ jsonrpc: '2.0', id, ...text(content) })
  const initialize = JSON.stringify({
    jsonrpc: '2.0',
    id: 0,
    method: 'initialize',
    params: {
      protocolVersion: '2025-11-25',
      capabilities: {},
      clientInfo: { name: 'example-host', version: '1' },
    },
  })
  const initialized = JSON.stringify({
    jsonrpc: '2.0',
    id: 0,
    result: {
      protocolVersion: '2025-11-25',
      capabilities: { tools: {} },
      serverInfo: { name: 'remote', version: '3' },
    },
  })
  const session = { 'Mcp-Session-Id': 's1', 'Mcp-Protocol-Version': '2025-11-25' }
  const events = { 'Content-Type': 'text/event-stream' }
  return capture
    .event('listen', { url: 'http://127.0.0.1:2/mcp', target: 'http://127.0.0.1:1/mcp' })
    .exchange(
      ['POST', '/mcp', JSON_TYPE, initialize],
      [401, 'Unauthorized', { 'WWW-Authenticate': 'Bearer' }, ''],
    )
    .exchange(
      ['GET', '/.well-known/oauth-protected-resource', {}, ''],
      [200, 'OK', JSON_TYPE, '{"resource":"http://127.0.0.1:1/mcp"}'],
    )
    .exchange(
      ['POST', '/mcp', JSON_TYPE, initialize],
      [200, 'OK', { ...JSON_TYPE, 'Mcp-Session-Id': 's1' }, initialized],
    )
    .exchange(
      ['POST', '/mcp', { ...JSON_TYPE, ...session }, call(1, 'small')],
      [
        200,
        'OK',
        { ...JSON_TYPE, 'Content-Encoding': 'gzip' },
        gzipSync(answer(1, 'compressed é')),
      ],
    )
    .exchange(
      ['POST', '/mcp', { ...JSON_TYPE, ...session }, call(2, 'stream')],
      [
        200,
        'OK',
        events,
        `: ping\n\nid: 1\nevent: message\ndata: ${answer(2, 'streamed é').replace(',"result"', ',\ndata: "result"')}\n\n`,
      ],
    )
    .exit()
}

/** A session with a bit of everything. */
export function sampleCapture(): CaptureBuilder {
  const capture = new CaptureBuilder()
  capture.event('spawn', {
    argv: ['npx', 'notes-server'],
    cwd: '/home/user',
    pid: 4711,
    ppid: 4710,
  })
  capture.handshake()
  capture.line('out', 'Listening on stdio', 3)
  capture.message('in', { id: 1, method: 'tools/list' })
  capture.message(
    'out',
    {
      id: 1,
      result: {
        tools: [
          {
            name: 'search',
            description: 'Searches notes.',
            inputSchema: {
              type: 'object',
              properties: { query: { type: 'string' } },
              required: ['query'],
            },
          },
          {
            name: 'read_note',
            description: 'Reads a note.',
            inputSchema: { type: 'object', properties: { path: { type: 'string' } } },
          },
          { name: 'summarize', description: 'Summarizes notes.', inputSchema: { type: 'object' } },
        ],
      },
    },
    6,
  )
  const durations = [4, 6, 3, 12, 5, 7, 48, 6, 4, 9, 5, 130, 6, 8]
  let id = 2
  for (const [round, took] of durations.entries()) {
    capture.call(
      id++,
      'search',
      { query: `budget ${round}`, limit: 10 },
      text(`${round + 1} notes: "Budget 2026", "Café — 日本語"`),
      took,
    )
    capture.call(
      id++,
      'read_note',
      { path: `notes/2026/budget-${round}.md` },
      round % 5 === 3
        ? { error: { code: -32602, message: 'Unknown note: notes/2026/budget-3.md' } }
        : text(`# Budget ${round}\n\n- rent: 1200\n- food: 430\n`),
      took / 2,
    )
    if (round % 4 !== 1) continue
    const token = id
    capture.message(
      'in',
      {
        id: id++,
        method: 'tools/call',
        params: {
          name: 'summarize',
          arguments: { since: '2026-01-01' },
          _meta: { progressToken: token },
        },
      },
      2,
    )
    for (const progress of [1, 2, 3])
      capture.message(
        'out',
        { method: 'notifications/progress', params: { progressToken: token, progress, total: 3 } },
        14,
      )
    capture.message(
      'out',
      {
        method: 'notifications/message',
        params: { level: 'info', logger: 'notes', data: 'summarized 12 notes' },
      },
      4,
    )
    capture.message('out', { id: `ask-${round}`, method: 'roots/list' }, 2)
    capture.message(
      'in',
      {
        id: `ask-${round}`,
        result: { roots: [{ uri: 'file:///home/user/notes', name: 'notes' }] },
      },
      9,
    )
    capture.message('out', { id: token, ...text('Spending rose by 4 %.') }, 22)
  }
  capture.message('out', { id: 9999, result: {} }, 3)
  capture.message('out', { method: 'notifications/message', params: { level: 'loud', data: 1 } }, 3)
  capture.event('stderr', { text: 'notes: index rebuilt in 12 ms\n' })
  capture.line('out', '{"jsonrpc":"2.0","id":1,"id":2,"big":12345678901234567890,"result":{}}', 4)
  capture.message('in', { id, method: 'resources/read', params: { uri: 'note://2026/budget' } }, 2)
  return capture.exit()
}
