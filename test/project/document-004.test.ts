import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, describe, expect, it } from 'vitest'
import { VERSION } from '../../src/version.js'
import { SchemaValidator } from '../official/schema-validator.js'

/*
 * The validation lines of the document that describes the default server,
 * verbatim: `printf … | ./ccmcp 2>/dev/null`.
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
const folder = mkdtempSync(join(tmpdir(), 'ccmcp-004-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const printf = (text: string, options = '') => {
  const { lines, status } = sh(`printf '${text}' | ./ccmcp ${options} 2>/dev/null`)
  const violations: string[] = []
  const validator = new SchemaValidator((violation) => violations.push(violation))
  for (const line of text.split('\\n').filter(Boolean)) validator.add('received', line)
  for (const line of lines) validator.add('sent', JSON.stringify(line))
  expect(violations).toEqual([])
  return { lines, status }
}
interface Message {
  id?: unknown
  method?: string
  params?: { level: string; logger: string; data: string }
  result?: Record<string, unknown> & { content?: { text: string }[]; contents?: { text: string }[] }
  error?: { code: number; message: string }
}
/** The messages after the handshake. */
const after = (messages: readonly string[], options = '') =>
  printf(
    INITIALIZE + INITIALIZED + messages.map((message) => `${message}\\n`).join(''),
    options,
  ).lines.slice(1) as Message[]
/** The responses among them, ordered by id. */
const answersTo = (messages: readonly string[], options = '') =>
  after(messages, options)
    .filter(({ method }) => method === undefined)
    .toSorted((one, other) => Number(one.id) - Number(other.id))
const request = (id: number, method: string, params = '{}') =>
  `{"jsonrpc":"2.0","id":${id},"method":"${method}","params":${params}}`
const toolCall = (id: number, name: string, input: string) =>
  request(id, 'tools/call', `{"name":"${name}","arguments":${input}}`)
const opened = {
  jsonrpc: '2.0',
  id: 1,
  result: {
    protocolVersion: '2025-03-26',
    serverInfo: { name: 'ccmcp', version: VERSION },
    capabilities: {
      logging: {},
      tools: { listChanged: true },
      resources: { listChanged: true },
      prompts: { listChanged: true },
    },
  },
}

describe('Q1: transport', () => {
  const ping = `{"jsonrpc":"2.0","id":1,"method":"ping"}\\n`
  it('responds to a message', () =>
    expect(printf(ping)).toEqual({ lines: [{ jsonrpc: '2.0', id: 1, result: {} }], status: 0 }))
  it('reads messages in sequence', () => expect(printf(ping.repeat(3)).lines).toHaveLength(3))
  it('skips empty lines', () => expect(printf(`\\n\\n${ping}\\n`).lines).toHaveLength(1))
  it('exits at end of input', () => expect(printf('')).toEqual({ lines: [], status: 0 }))
})

describe('Q2: JSON-RPC', () => {
  it('responds to requests but not to notifications', () =>
    expect(
      printf(`{"jsonrpc":"2.0","method":"x"}\\n{"jsonrpc":"2.0","id":7,"method":"ping"}\\n`).lines,
    ).toEqual([{ jsonrpc: '2.0', id: 7, result: {} }]))
  it('preserves string ids', () =>
    expect(printf(`{"jsonrpc":"2.0","id":"abc","method":"ping"}\\n`).lines).toEqual([
      { jsonrpc: '2.0', id: 'abc', result: {} },
    ]))
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
  it('returns -32002 before initialize', () =>
    expect(printf(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}\\n`).lines).toMatchObject([
      { id: 1, error: { code: -32002 } },
    ]))
  it('rejects a second initialize', () =>
    expect(printf(INITIALIZE + INITIALIZE).lines).toMatchObject([
      opened,
      { error: { code: -32600 } },
    ]))
  it('is completed by notifications/initialized', () =>
    // Sent only to an initialized client.
    expect(after([request(2, 'ping')])).toMatchObject([
      { id: 2, result: {} },
      { method: 'notifications/message' },
    ]))
  it('rejects an unsupported version with --unsupported-revision reject', () => {
    const { lines } = sh(
      `printf '${INITIALIZE.replace('2025-03-26', '1999-01-01')}' | ./ccmcp --unsupported-revision reject 2>/dev/null`,
    )
    expect(lines).toMatchObject([
      {
        id: 1,
        error: {
          code: -32602,
          data: { supported: expect.arrayContaining(['2024-11-05', '2025-11-25']) as unknown },
        },
      },
    ])
  })
  it('echoes an unsupported version with --unsupported-revision echo', () => {
    const { lines } = sh(
      `printf '${INITIALIZE.replace('2025-03-26', '1999-01-01')}' | ./ccmcp serve --unsupported-revision=echo 2>/dev/null`,
    )
    expect(lines).toMatchObject([{ id: 1, result: { protocolVersion: '1999-01-01' } }])
  })
})

describe('Q4: tools', () => {
  it('lists hello, add and echo on the second line', () => {
    const { lines } = printf(
      `${INITIALIZE}${INITIALIZED}{"jsonrpc":"2.0","id":2,"method":"tools/list"}\\n`,
    )
    const { tools } = (
      lines[1] as {
        result: { tools: { name: string; description: string; inputSchema: object }[] }
      }
    ).result
    expect(tools.map(({ name }) => name)).toEqual([
      'hello',
      'add',
      'echo',
      'read_file',
      'write_file',
      'list_directory',
      'register_tool',
      'unregister_tool',
    ])
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
  const call = (params: string) => answersTo([request(2, 'tools/call', params)])[0]
  const text = (value: string, isError = false) => ({
    jsonrpc: '2.0',
    id: 2,
    result: { content: [{ type: 'text', text: value }], isError },
  })
  it('says hello', () =>
    expect(call('{"name":"hello","arguments":{"name":"World"}}')).toEqual(text('Hello, World!')))
  it('adds', () => expect(call('{"name":"add","arguments":{"a":2,"b":3}}')).toEqual(text('5')))
  it('echoes', () =>
    expect(call('{"name":"echo","arguments":{"message":"hi"}}')).toEqual(text('hi')))
  it('reports an unknown name', () =>
    expect(call('{"name":"nope"}')).toEqual({
      jsonrpc: '2.0',
      id: 2,
      error: { code: -32602, message: 'Unknown tool: nope' },
    }))
  it('lists and calls in one line, as in the background section', () => {
    const [listed, called] = answersTo([
      request(2, 'tools/list'),
      toolCall(3, 'hello', '{"name":"World"}'),
    ])
    expect(listed?.result?.['tools']).toHaveLength(8)
    expect(called).toEqual({ ...text('Hello, World!'), id: 3 })
  })
  it('reports a missing argument', () =>
    expect(call('{"name":"hello","arguments":{}}')).toEqual(
      text('Invalid arguments for hello: name is required', true),
    ))
})

describe('Q6: files', () => {
  writeFileSync(join(folder, 'mcp_test.txt'), 'test content\n')
  mkdirSync(join(folder, 'sub'))
  const call = (name: string, input: object, options = `--root ${folder}`) =>
    answersTo([toolCall(2, name, JSON.stringify(input))], options)[0]?.result as {
      content: { text: string }[]
      isError: boolean
    }

  it('reads a file by its absolute path', () =>
    expect(call('read_file', { path: join(folder, 'mcp_test.txt') })).toMatchObject({
      content: [{ text: 'test content\n' }],
      isError: false,
    }))
  it('takes the root from the environment', () => {
    const { lines } = sh(
      `printf '${INITIALIZE}${INITIALIZED}${toolCall(2, 'read_file', '{"path":"mcp_test.txt"}')}\\n' | CCMCP_ROOT=${folder} ./ccmcp 2>/dev/null`,
    )
    expect(lines).toContainEqual({
      jsonrpc: '2.0',
      id: 2,
      result: { content: [{ type: 'text', text: 'test content\n' }], isError: false },
    })
  })
  it('reports a missing file', () =>
    expect(call('read_file', { path: 'nope.txt' })).toMatchObject({ isError: true }))
  it('rejects files over 1 MB', () => {
    writeFileSync(join(folder, 'large'), 'x'.repeat(1024 * 1024 + 1))
    expect(call('read_file', { path: 'large' })).toMatchObject({ isError: true })
  })
  it('writes a file that can be read back', () => {
    expect(call('write_file', { path: 'new.txt', content: 'héllo' })).toMatchObject({
      content: [{ text: 'Wrote 6 bytes to new.txt' }],
      isError: false,
    })
    expect(readFileSync(join(folder, 'new.txt'), 'utf8')).toBe('héllo')
    expect(call('read_file', { path: 'new.txt' })).toMatchObject({ content: [{ text: 'héllo' }] })
  })
  it('lists files and directories', () => {
    const lines = call('list_directory', { path: '.' }).content[0]?.text.split('\n')
    expect(lines).toEqual(expect.arrayContaining(['F mcp_test.txt', 'D sub']))
  })
  it('reports a missing directory', () =>
    expect(call('list_directory', { path: 'nope' })).toMatchObject({ isError: true }))
  it('rejects paths outside of the root', () => {
    expect(call('read_file', { path: '../etc/passwd' })).toMatchObject({
      isError: true,
      content: [{ text: expect.stringContaining('".."') as unknown }],
    })
    expect(call('read_file', { path: '/etc/passwd' })).toMatchObject({ isError: true })
  })
})

describe('Q7: resources', () => {
  it('lists three and reads the configuration, in one line', () => {
    const [listed, config] = answersTo([
      request(2, 'resources/list'),
      request(3, 'resources/read', '{"uri":"config://server"}'),
    ])
    const resources = listed?.result?.['resources'] as {
      uri: string
      name: string
      mimeType: string
    }[]
    expect(resources.map(({ uri }) => uri)).toEqual([
      'config://server',
      'stats://usage',
      'help://commands',
    ])
    for (const { name, mimeType } of resources) expect([name, mimeType]).not.toContain(undefined)
    expect(JSON.parse(config?.result?.contents?.[0]?.text ?? '')).toMatchObject({
      name: 'ccmcp',
      tools: 8,
    })
  })
  it('counts requests for each read', () => {
    const read = (id: number) => request(id, 'resources/read', '{"uri":"stats://usage"}')
    const [one, other] = answersTo([read(2), read(3)]).map(
      (answer) => answer.result?.contents?.[0]?.text ?? '',
    )
    expect(one).toMatch(/^requests: \d+\nuptime: /)
    expect(other).not.toBe(one)
  })
  it('reports an unknown name', () =>
    expect(answersTo([request(2, 'resources/read', '{"uri":"nope://x"}')])).toMatchObject([
      { id: 2, error: { code: -32002 } },
    ]))
})

describe('Q8: prompts', () => {
  const get = (params: string) => answersTo([request(2, 'prompts/get', params)])[0]
  it('lists three with their arguments', () => {
    const prompts = answersTo([request(2, 'prompts/list')])[0]?.result?.['prompts'] as {
      name: string
      arguments: { name: string }[]
    }[]
    expect(
      prompts.map(({ name, arguments: given }) => [name, ...given.map((each) => each.name)]),
    ).toEqual([
      ['greet', 'name'],
      ['summarize', 'text'],
      ['code_review', 'code', 'language'],
    ])
  })
  it('greets Alice', () =>
    expect(get('{"name":"greet","arguments":{"name":"Alice"}}')).toMatchObject({
      result: {
        messages: [{ role: 'user', content: { type: 'text', text: 'Please greet Alice warmly' } }],
      },
    }))
  it('reviews code without a language', () =>
    expect(get('{"name":"code_review","arguments":{"code":"fn main() {}"}}')).toMatchObject({
      result: { messages: [{ content: { text: 'Please review this code:\nfn main() {}' } }] },
    }))
  it('reports an unknown name', () =>
    expect(get('{"name":"nope"}')).toMatchObject({ error: { code: -32602 } }))
  it('reports a missing argument', () =>
    expect(get('{"name":"greet","arguments":{}}')).toMatchObject({ error: { code: -32602 } }))
})

describe('Q9: log messages', () => {
  const message = (level: string, data: unknown) => ({
    jsonrpc: '2.0',
    method: 'notifications/message',
    params: { level, logger: 'ccmcp', data },
  })
  it('are sent between the responses', () =>
    expect(after([request(2, 'tools/list'), toolCall(3, 'hello', '{"name":"x"}')])).toEqual([
      expect.objectContaining({ id: 2 }),
      message('info', 'Server initialized'),
      message('debug', 'Calling tool: hello'),
      expect.objectContaining({ id: 3 }),
    ]))
  it('report errors', () =>
    expect(after([toolCall(2, 'read_file', '{"path":"../x"}')])).toContainEqual(
      message('error', expect.stringContaining('Tool read_file failed')),
    ))
  it('are also written to stderr as structured lines', () => {
    const { stderr } = spawnSync(
      'sh',
      [
        '-c',
        `printf '${INITIALIZE}${INITIALIZED}${toolCall(7, 'hello', '{"name":"x"}')}\\n' | ./ccmcp --log-level debug`,
      ],
      { cwd: root, encoding: 'utf8' },
    )
    const lines = stderr
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as unknown)
    expect(lines).toContainEqual(
      expect.objectContaining({ level: 'debug', message: 'Calling tool: hello', requestId: 7 }),
    )
  })
})

describe('Q10: tools at run time', () => {
  const register = toolCall(
    2,
    'register_tool',
    '{"name":"greet_formal","description":"Formal greeting","template":"Dear {name}, it is a pleasure to meet you."}',
  )
  const text = ({ result }: Message = {}) => result?.content?.[0]?.text
  it('registers one and calls it, in one line', () =>
    expect(
      text(answersTo([register, toolCall(3, 'greet_formal', '{"name":"Professor Smith"}')])[1]),
    ).toBe('Dear Professor Smith, it is a pleasure to meet you.'))
  it('lists it until it is removed', () => {
    const remove = toolCall(4, 'unregister_tool', '{"name":"greet_formal"}')
    const found = answersTo([register, request(3, 'tools/list'), remove, request(5, 'tools/list')])
    const names = [found[1], found[3]].map((answer) =>
      ((answer?.result?.['tools'] ?? []) as { name: string }[]).map(({ name }) => name),
    )
    expect(names[0]).toContain('greet_formal')
    expect(names[1]).not.toContain('greet_formal')
  })
  it('does not remove a built-in tool', () =>
    expect(answersTo([toolCall(2, 'unregister_tool', '{"name":"hello"}')])).toMatchObject([
      { result: { isError: true } },
    ]))
  it('sends notifications/tools/list_changed', () =>
    expect(after([register])).toContainEqual({
      jsonrpc: '2.0',
      method: 'notifications/tools/list_changed',
    }))
})

describe('Q11: errors', () => {
  it('reports invalid JSON and an unknown method', () => {
    const { lines, status } = printf(
      `not valid json\\n{"jsonrpc":"2.0","id":1,"method":"unknown_method"}\\n`,
    )
    expect(lines).toMatchObject([
      { id: null, error: { code: -32700 } },
      { id: 1, error: { code: -32601 } },
    ])
    expect(status).toBe(0)
  })
  it('reports a missing jsonrpc or method', () =>
    expect(printf(`{"id":1,"method":"ping"}\\n{"jsonrpc":"2.0","id":2}\\n`).lines).toMatchObject([
      { id: 1, error: { code: -32600 } },
      { id: 2, error: { code: -32600 } },
    ]))
  it('ignores an unknown notification', () =>
    expect(
      printf(
        `{"jsonrpc":"2.0","method":"notifications/unknown"}\\n{"jsonrpc":"2.0","id":1,"method":"ping"}\\n`,
      ),
    ).toEqual({
      lines: [{ jsonrpc: '2.0', id: 1, result: {} }],
      status: 0,
    }))
  it('exits cleanly at end of input', () => expect(printf(INITIALIZE + INITIALIZED).status).toBe(0))
  it('explains invalid parameters', () =>
    expect(
      answersTo([request(2, 'tools/call', '{"name":5}'), request(3, 'resources/read')]),
    ).toMatchObject([
      { error: { code: -32602, message: expect.stringContaining('"name"') as unknown } },
      { error: { code: -32602, message: expect.stringContaining('"uri"') as unknown } },
    ]))
  it('checks the types of arguments', () => {
    const wrong = `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"hello","arguments":{"name":5}}}\\n{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"add","arguments":{"a":"2","b":3}}}\\n`
    expect(
      printf(INITIALIZE + INITIALIZED + wrong)
        .lines.filter((line) => 'result' in (line as Message))
        .slice(1),
    ).toMatchObject([{ result: { isError: true } }, { result: { isError: true } }])
  })
  it('rejects lines over 1 MB and continues', () => {
    const { lines } = sh(
      `{ head -c 1048577 /dev/zero | tr '\\0' x; printf '\\n{"jsonrpc":"2.0","id":1,"method":"ping"}\\n'; } | ./ccmcp 2>/dev/null`,
    )
    expect(lines).toMatchObject([
      {
        id: null,
        error: {
          code: -32600,
          message: 'Invalid Request: the message has 1048577 bytes; the limit is 1048576',
        },
      },
      { id: 1, result: {} },
    ])
  })
  it('handles many rapid messages without loss', () => {
    const { lines } = sh(
      `{ printf '${INITIALIZE}'; for i in $(seq 2 1001); do printf '{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"add","arguments":{"a":%d,"b":1}}}\\n' $i $i; done; } | ./ccmcp 2>/dev/null`,
    )
    expect(lines.map((line) => (line as { id: number }).id)).toEqual(
      Array.from({ length: 1001 }, (_, i) => i + 1),
    )
  })
})
