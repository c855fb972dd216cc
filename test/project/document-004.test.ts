import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { Judge } from '../official/judge.js'

/*
 * The validation lines of the document that ccmcp's default server comes from,
 * as they stand there: `printf … | ./ccmcp 2>/dev/null`.
 */
const root = fileURLToPath(new URL('../../', import.meta.url))

function sh(line: string): { lines: unknown[]; status: number | null } {
  const { stdout, status } = spawnSync('sh', ['-c', line], { cwd: root, encoding: 'utf8' })
  return {
    lines: stdout
      .split('\n')
      .filter(Boolean)
      .map((each) => JSON.parse(each) as unknown),
    status,
  }
}

const INITIALIZE = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-03-26","capabilities":{},"clientInfo":{"name":"test","version":"1.0"}}}\\n`
const INITIALIZED = `{"jsonrpc":"2.0","method":"notifications/initialized"}\\n`
const printf = (text: string) => {
  const { lines, status } = sh(`printf '${text}' | ./ccmcp 2>/dev/null`)
  const violations: string[] = []
  const judge = new Judge((violation) => violations.push(violation))
  for (const line of text.split('\\n').filter(Boolean)) judge.hear('received', line)
  for (const line of lines) judge.hear('sent', JSON.stringify(line))
  expect(violations).toEqual([])
  return { lines, status }
}
const opened = {
  jsonrpc: '2.0',
  id: 1,
  result: { protocolVersion: '2025-03-26', serverInfo: { name: 'ccmcp' }, capabilities: { logging: {}, tools: { listChanged: true } } },
}

describe('Q1: transport', () => {
  const ping = `{"jsonrpc":"2.0","id":1,"method":"ping"}\\n`
  it('answers what it reads', () => expect(printf(ping)).toEqual({ lines: [{ jsonrpc: '2.0', id: 1, result: {} }], status: 0 }))
  it('reads messages in sequence', () => expect(printf(ping.repeat(3)).lines).toHaveLength(3))
  it('skips empty lines', () => expect(printf(`\\n\\n${ping}\\n`).lines).toHaveLength(1))
  it('ends with the input', () => expect(printf('')).toEqual({ lines: [], status: 0 }))
})

describe('Q2: JSON-RPC', () => {
  it('answers requests and not notifications', () =>
    expect(printf(`{"jsonrpc":"2.0","method":"x"}\\n{"jsonrpc":"2.0","id":7,"method":"ping"}\\n`).lines).toEqual([
      { jsonrpc: '2.0', id: 7, result: {} },
    ]))
  it('keeps ids that are strings', () =>
    expect(printf(`{"jsonrpc":"2.0","id":"abc","method":"ping"}\\n`).lines).toEqual([{ jsonrpc: '2.0', id: 'abc', result: {} }]))
  it('formats errors', () =>
    expect(printf(`{"jsonrpc":"2.0","id":1,"method":"x"}\\n`).lines).toEqual([
      { jsonrpc: '2.0', id: 1, error: { code: -32601, message: 'Method not found: x' } },
    ]))
})

describe('Q3: handshake', () => {
  it('outputs one line', () => {
    const { lines, status } = printf(INITIALIZE)
    expect(lines).toMatchObject([opened])
    expect(status).toBe(0)
  })
  it('answers -32002 before it', () =>
    expect(printf(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}\\n`).lines).toMatchObject([{ id: 1, error: { code: -32002 } }]))
  it('refuses a second one', () => expect(printf(INITIALIZE + INITIALIZE).lines).toMatchObject([opened, { error: { code: -32600 } }]))
  it('refuses an unsupported version where asked', () => {
    const { lines } = sh(`printf '${INITIALIZE.replace('2025-03-26', '1999-01-01')}' | ./ccmcp --unsupported-revision reject 2>/dev/null`)
    expect(lines).toMatchObject([
      { id: 1, error: { code: -32602, data: { supported: expect.arrayContaining(['2024-11-05', '2025-11-25']) as unknown } } },
    ])
  })
  it('echoes it where asked', () => {
    const { lines } = sh(
      `printf '${INITIALIZE.replace('2025-03-26', '1999-01-01')}' | ./ccmcp serve --unsupported-revision=echo 2>/dev/null`,
    )
    expect(lines).toMatchObject([{ id: 1, result: { protocolVersion: '1999-01-01' } }])
  })
})

describe('Q4: tools', () => {
  it('lists hello, add and echo on the second line', () => {
    const { lines } = printf(`${INITIALIZE}${INITIALIZED}{"jsonrpc":"2.0","id":2,"method":"tools/list"}\\n`)
    expect(lines).toHaveLength(2)
    const { tools } = (lines[1] as { result: { tools: { name: string; description: string; inputSchema: object }[] } }).result
    expect(tools.map(({ name }) => name)).toEqual(['hello', 'add', 'echo'])
    for (const { description, inputSchema } of tools) {
      expect(description).not.toBe('')
      expect(inputSchema).toMatchObject({
        type: 'object',
        properties: expect.any(Object) as unknown,
        required: expect.any(Array) as unknown,
      })
    }
  })
})

describe('Q5: calls', () => {
  const call = (params: string) =>
    printf(`${INITIALIZE}${INITIALIZED}{"jsonrpc":"2.0","id":2,"method":"tools/call","params":${params}}\\n`).lines[1]
  const text = (value: string, isError = false) => ({
    jsonrpc: '2.0',
    id: 2,
    result: { content: [{ type: 'text', text: value }], isError },
  })
  it('says hello', () => expect(call('{"name":"hello","arguments":{"name":"World"}}')).toEqual(text('Hello, World!')))
  it('adds', () => expect(call('{"name":"add","arguments":{"a":2,"b":3}}')).toEqual(text('5')))
  it('echoes', () => expect(call('{"name":"echo","arguments":{"message":"hi"}}')).toEqual(text('hi')))
  it('does not know others', () =>
    expect(call('{"name":"nope"}')).toEqual({ jsonrpc: '2.0', id: 2, error: { code: -32602, message: 'Unknown tool: nope' } }))
  it('misses an argument', () =>
    expect(call('{"name":"hello","arguments":{}}')).toEqual(text('Invalid arguments for hello: name is required', true)))
})

describe('Q11: errors', () => {
  it('answers text and an unknown method', () => {
    const { lines, status } = printf(`not valid json\\n{"jsonrpc":"2.0","id":1,"method":"unknown_method"}\\n`)
    expect(lines).toMatchObject([
      { id: null, error: { code: -32700 } },
      { id: 1, error: { code: -32601 } },
    ])
    expect(status).toBe(0)
  })
  it('misses jsonrpc and method', () =>
    expect(printf(`{"id":1,"method":"ping"}\\n{"jsonrpc":"2.0","id":2}\\n`).lines).toMatchObject([
      { id: 1, error: { code: -32600 } },
      { id: 2, error: { code: -32600 } },
    ]))
  it('checks types', () => {
    const wrong = `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"hello","arguments":{"name":5}}}\\n{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"add","arguments":{"a":"2","b":3}}}\\n`
    expect(printf(INITIALIZE + INITIALIZED + wrong).lines.slice(1)).toMatchObject([
      { result: { isError: true } },
      { result: { isError: true } },
    ])
  })
  it('refuses lines over 1 MB and goes on', () => {
    const { lines } = sh(
      `{ head -c 1048577 /dev/zero | tr '\\0' x; printf '\\n{"jsonrpc":"2.0","id":1,"method":"ping"}\\n'; } | ./ccmcp 2>/dev/null`,
    )
    expect(lines).toMatchObject([
      { id: null, error: { code: -32600, message: 'Invalid Request: the message has 1048577 bytes; at most 1048576 are taken' } },
      { id: 1, result: {} },
    ])
  })
  it('loses none of many rapid messages', () => {
    const { lines } = sh(
      `{ printf '${INITIALIZE}'; for i in $(seq 2 1001); do printf '{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"add","arguments":{"a":%d,"b":1}}}\\n' $i $i; done; } | ./ccmcp 2>/dev/null`,
    )
    expect(lines.map((line) => (line as { id: number }).id)).toEqual(Array.from({ length: 1001 }, (_, i) => i + 1))
  })
})
