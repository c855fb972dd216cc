import {
  type CaptureRecord,
  type Direction,
  captureHeader,
  chunkRecord,
  encodeRecord,
} from '../../src/capture/format.js'

/* Captures for tests and screenshots. */

export const START = new Date('2026-01-02T03:04:05.000Z')

/** Builds the records of a capture, message by message. */
export class CaptureBuilder {
  readonly records: CaptureRecord[] = [captureHeader(START, 'ccmcp 0.1.0')]
  readonly #offsets = { in: 0, out: 0 }
  #ns = 0

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
