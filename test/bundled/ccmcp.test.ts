import { mkdirSync, readFileSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it, vi } from 'vitest'
import { type CcmcpOptions, ccmcpServer } from '../../src/bundled/ccmcp.js'
import { Files } from '../../src/bundled/files.js'
import { ToolFile } from '../../src/bundled/tool-file.js'
import { connect, memory } from '../../src/client.js'
import { matrix } from '../../src/testing.js'
import { VERSION } from '../../src/version.js'
import { answers, call, drive, initialize } from '../drive.js'
import { temporaryFolder } from './folder.js'

const folder = temporaryFolder()
let count = 0
function root(): string {
  const directory = join(folder, String(++count))
  mkdirSync(join(directory, 'sub'), { recursive: true })
  writeFileSync(join(directory, 'a.txt'), 'text')
  return directory
}
const server = (options: CcmcpOptions = {}) => ccmcpServer({ roots: [folder], ...options })
const TOOLS = [
  'hello',
  'add',
  'echo',
  'read_file',
  'write_file',
  'list_directory',
  'register_tool',
  'unregister_tool',
]

interface Answer {
  id?: unknown
  method?: string
  params?: { level: string; logger: string; data: string }
  result?: {
    content?: { text: string }[]
    isError?: boolean
    structuredContent?: unknown
    contents?: { text: string }[]
  }
  error?: { code: number; message: string }
}
const request = (method: string, params: object = {}, id: unknown = 1) =>
  JSON.stringify({ jsonrpc: '2.0', id, method, params })
const read = (uri: string, id: unknown = 1) => request('resources/read', { uri }, id)

/** All messages after the response to `initialize`. */
async function said(
  lines: readonly string[],
  options?: CcmcpOptions,
  revision = '2025-11-25',
): Promise<Answer[]> {
  return ((await answers(server(options), [...initialize(revision), ...lines])) as Answer[]).slice(
    1,
  )
}
const answered = async (...args: Parameters<typeof said>) =>
  (await said(...args)).filter(({ method }) => method === undefined)
const logged = async (...args: Parameters<typeof said>) =>
  (await said(...args))
    .filter(({ method }) => method === 'notifications/message')
    .map(({ params }) => params)

async function toolNames(options?: CcmcpOptions): Promise<string[]> {
  const client = await connect(memory(server(options)))
  const names: string[] = []
  for await (const { name } of client.tools()) names.push(name)
  await client.close()
  return names
}

describe('options', () => {
  it('select the tools', async () => {
    expect(await toolNames()).toEqual(TOOLS)
    expect(await toolNames({ readOnly: true })).toEqual(
      TOOLS.filter((name) => name !== 'write_file'),
    )
    expect(await toolNames({ tools: ['echo', 'hello'] })).toEqual(['hello', 'echo'])
    expect(await toolNames({ excludeTools: ['register_tool', 'unregister_tool'] })).toEqual(
      TOOLS.slice(0, 6),
    )
    expect(await toolNames({ tools: ['write_file', 'read_file'], readOnly: true })).toEqual([
      'read_file',
    ])
  })
  it('that are invalid throw a TypeError with an explanation', () => {
    expect(() => server({ roots: [join(folder, 'nope')] })).toThrow(
      /^root: ".*nope" is not a directory; create it, or choose another$/,
    )
    expect(() => server({ tools: ['hallo'] })).toThrow(
      'tools: unknown tool "hallo"; expected hello, add',
    )
    expect(() => server({ excludeTools: ['x'] })).toThrow('excludeTools: unknown tool "x"')
    expect(() => new ToolFile(join(folder, 'nope', 'tools.json'), { warn: () => {} })).toThrow(
      /^persist: the directory of /,
    )
    expect(() => new ToolFile(folder, { warn: () => {} })).toThrow(/is not a regular file$/)
  })
  it('rejects a tools/call whose name is not a string with -32602', async () => {
    const calls = ['5', 'null', '{"toString":1}', '["a"]', '{"__proto__":null}'].map(
      (name, id) => `{"jsonrpc":"2.0","id":${id},"method":"tools/call","params":{"name":${name}}}`,
    )
    for (const each of await answered(calls))
      expect(each).toMatchObject({ error: { code: -32602 } })
  })
  it('are passed to createServer', async () => {
    expect(
      await answered([call('add', { a: 'x', b: 1 })], { invalidArguments: 'protocol' }),
    ).toMatchObject([{ error: { code: -32602 } }])
    expect(await answered([call('add', { a: 'x', b: 1 })])).toMatchObject([
      { result: { isError: true } },
    ])
  })
})

describe.each(matrix({ memory: memory(server()) }))('$name', (cell) => {
  it('calls hello, add and echo', async () => {
    const client = await cell.connect()
    expect(await client.callTool('hello', { name: 'World' })).toMatchObject({
      content: [{ text: 'Hello, World!' }],
      isError: false,
    })
    expect(await client.callTool('add', { a: 2, b: 3 })).toMatchObject({ content: [{ text: '5' }] })
    expect(await client.request('resources/read', { uri: 'config://server' })).toMatchObject({
      contents: [{ mimeType: 'application/json' }],
    })
    expect(
      await client.request('prompts/get', { name: 'greet', arguments: { name: 'Alice' } }),
    ).toMatchObject({
      messages: [{ role: 'user', content: { type: 'text', text: 'Please greet Alice warmly' } }],
    })
    await client.close()
  })
})

describe('files', () => {
  const one = async (name: string, input: object, options: CcmcpOptions, revision?: string) =>
    (await answered([call(name, input)], options, revision))[0]?.result

  it('are read, written and listed', async () => {
    const top = root()
    const options = { roots: [top] }
    expect(await one('read_file', { path: 'a.txt' }, options)).toEqual({
      content: [{ type: 'text', text: 'text' }],
      isError: false,
    })
    expect(await one('read_file', { path: join(top, 'a.txt') }, options)).toMatchObject({
      content: [{ text: 'text' }],
    })
    expect(await one('write_file', { path: 'sub/ü.txt', content: 'ü' }, options)).toMatchObject({
      content: [{ text: 'Wrote 2 bytes to sub/ü.txt' }],
      isError: false,
    })
    expect(readFileSync(join(top, 'sub/ü.txt'), 'utf8')).toBe('ü')
    expect(await one('list_directory', { path: '.' }, options)).toEqual({
      content: [{ type: 'text', text: 'F a.txt\nD sub' }],
      structuredContent: {
        entries: [
          { type: 'F', name: 'a.txt' },
          { type: 'D', name: 'sub' },
        ],
        more: false,
      },
      isError: false,
    })
    for (const revision of ['2024-11-05', '2025-03-26'])
      expect(await one('list_directory', { path: '.' }, options, revision)).toEqual({
        content: [{ type: 'text', text: 'F a.txt\nD sub' }],
        isError: false,
      })
  })
  it('are read at most eight at a time', async () => {
    let [running, most] = [0, 0]
    const read = vi.spyOn(Files.prototype, 'read').mockImplementation(async () => {
      most = Math.max(most, ++running)
      await new Promise((resolve) => setImmediate(resolve))
      running--
      return 'text'
    })
    const reads = Array.from({ length: 50 }, (_, id) => call('read_file', { path: 'a.txt' }, id))
    expect(await answered(reads, { roots: [root()] })).toHaveLength(50)
    expect(most).toBe(8)
    read.mockRestore()
  })
  it('that are missing or inaccessible are error results', async () => {
    const top = root()
    const options = { roots: [top] }
    for (const [name, input] of [
      ['read_file', { path: 'nope' }],
      ['list_directory', { path: 'nope' }],
      ['read_file', { path: '../etc/passwd' }],
      ['write_file', { path: '/etc/passwd', content: 'x' }],
      ['list_directory', { path: '/' }],
    ] as const)
      expect(await one(name, input, options)).toMatchObject({
        isError: true,
        content: [{ text: expect.stringContaining(input.path) as unknown }],
      })
  })
  it('are not written with readOnly', async () => {
    const directory = root()
    expect(
      await answered([call('write_file', { path: 'x', content: 'x' })], {
        roots: [directory],
        readOnly: true,
      }),
    ).toMatchObject([{ error: { code: -32602, message: 'Unknown tool: write_file' } }])
    expect(readdirSync(directory)).toEqual(['a.txt', 'sub'])
  })
})

describe('resources', () => {
  it('are listed with their types', async () => {
    const [answer] = await answered([request('resources/list')])
    expect(answer?.result).toEqual({
      resources: [
        {
          uri: 'config://server',
          name: 'config',
          description: expect.any(String) as unknown,
          mimeType: 'application/json',
        },
        {
          uri: 'stats://usage',
          name: 'stats',
          description: expect.any(String) as unknown,
          mimeType: 'text/plain',
        },
        {
          uri: 'help://commands',
          name: 'help',
          description: expect.any(String) as unknown,
          mimeType: 'text/plain',
        },
      ],
    })
  })
  it('config://server returns name, version and tool count as JSON', async () => {
    const [answer] = await answered([read('config://server')], { readOnly: true })
    expect(JSON.parse(answer?.result?.contents?.[0]?.text ?? '')).toEqual({
      name: 'ccmcp',
      version: VERSION,
      tools: 7,
      readOnly: true,
    })
  })
  it('stats://usage changes with every read', async () => {
    const found = await answered([
      read('stats://usage', 1),
      call('hello', { name: 'x' }, 2),
      read('stats://usage', 3),
      read('stats://usage', 4),
    ])
    const texts = [1, 3, 4].map(
      (id) => found.find((each) => each.id === id)?.result?.contents?.[0]?.text ?? '',
    )
    expect(texts.map((text) => /^requests: (\d+)\nuptime: \d+\.\d{3} s$/.exec(text)?.[1])).toEqual([
      '2',
      '4',
      '5',
    ])
  })
  it('help://commands lists every tool with its description', async () => {
    const [answer] = await answered([read('help://commands')])
    const lines = answer?.result?.contents?.[0]?.text.split('\n') ?? []
    expect(lines.map((line) => line.split(': ')[0])).toEqual(TOOLS)
    expect(lines[0]).toBe('hello: Say hello to someone')
  })
  it('that are unknown return the error code of the revision', async () => {
    const revisions = ['2025-03-26', '2025-11-25']
    for (const revision of revisions)
      expect(await answered([read('nope://x')], {}, revision)).toMatchObject([
        { error: { code: -32002 } },
      ])
    const client = await connect(memory(server()), { revision: '2026-07-28' })
    await expect(client.request('resources/read', { uri: 'nope://x' })).rejects.toMatchObject({
      code: -32602,
    })
    await client.close()
  })
})

describe('prompts', () => {
  const get = async (name: string, given: object) =>
    (await answered([request('prompts/get', { name, arguments: given })]))[0]
  const saying = (text: string) => ({
    result: { messages: [{ role: 'user', content: { type: 'text', text } }] },
  })

  it('are listed with their arguments', async () => {
    const [answer] = await answered([request('prompts/list')])
    const { prompts } = (answer?.result ?? {}) as unknown as {
      prompts: { name: string; arguments: { name: string; required: boolean }[] }[]
    }
    expect(
      prompts.map((each) => [
        each.name,
        each.arguments.map(({ name, required }) => `${name}${required ? '' : '?'}`),
      ]),
    ).toEqual([
      ['greet', ['name']],
      ['summarize', ['text']],
      ['code_review', ['code', 'language?']],
    ])
  })
  it('return their messages', async () => {
    expect(await get('greet', { name: 'Alice' })).toMatchObject(saying('Please greet Alice warmly'))
    expect(await get('summarize', { text: 'Long.' })).toMatchObject(
      saying('Please summarize this text:\nLong.'),
    )
    expect(await get('code_review', { code: 'fn main() {}' })).toMatchObject(
      saying('Please review this code:\nfn main() {}'),
    )
    expect(await get('code_review', { code: 'x', language: 'zig' })).toMatchObject(
      saying('Please review this zig code:\nx'),
    )
  })
  it('that are unknown or lack an argument return -32602', async () => {
    expect(await get('nope', {})).toMatchObject({
      error: { code: -32602, message: 'Unknown prompt: nope' },
    })
    expect(await get('greet', {})).toMatchObject({
      error: { code: -32602, message: expect.stringContaining('name is required') as unknown },
    })
  })
  it('complete the language argument', async () => {
    const params = {
      ref: { type: 'ref/prompt', name: 'code_review' },
      argument: { name: 'language', value: 'Ja' },
    }
    expect(await answered([request('completion/complete', params)])).toMatchObject([
      { result: { completion: { values: ['java', 'javascript'] } } },
    ])
  })
})

describe('log messages', () => {
  it('are sent at initialization, for calls and for errors', async () => {
    const lines = [
      request('ping', {}, 0),
      call('hello', { name: 'x' }, 1),
      call('read_file', { path: '../x' }, 2),
    ]
    expect(await logged(lines)).toEqual([
      { level: 'info', logger: 'ccmcp', data: 'Server initialized' },
      { level: 'debug', logger: 'ccmcp', data: 'Calling tool: hello' },
      { level: 'debug', logger: 'ccmcp', data: 'Calling tool: read_file' },
      {
        level: 'error',
        logger: 'ccmcp',
        data: expect.stringMatching(/^Tool read_file failed: "..\/x" contains ".."/) as unknown,
      },
    ])
  })
  it('are sent for protocol errors as well', async () => {
    const lines = [
      request('ping', {}, 0),
      call('nope', {}, 1),
      call('add', { a: 'x', b: 1 }, 2),
      read('nope://x', 3),
      request('prompts/get', { name: 'greet' }, 4),
    ]
    const errors = (await logged(lines)).filter((params) => params?.level === 'error')
    expect(errors.map((params) => String(params?.data)).toSorted()).toEqual([
      'Tool add failed: Invalid arguments for add: a must be a number, not "x"',
      'prompts/get failed: Invalid arguments for prompt greet: name is required',
      'resources/read failed: Resource not found: nope://x',
      'tools/call failed: Unknown tool: nope',
    ])
  })
  it('"Server initialized" is sent once, after the first response', async () => {
    const found = await said([
      request('tools/list', {}, 1),
      request('ping', {}, 2),
      request('ping', {}, 3),
    ])
    expect(found.map(({ id, params }) => id ?? params?.data)).toEqual([
      1,
      'Server initialized',
      2,
      3,
    ])
  })
  it('respect logging/setLevel', async () => {
    const lines = [
      request('logging/setLevel', { level: 'error' }, 0),
      call('hello', { name: 'x' }, 1),
      call('read_file', { path: '' }, 2),
    ]
    expect((await logged(lines)).map((params) => params?.level)).toEqual(['error'])
  })
  it('respect the logLevel option', async () => {
    expect(await logged([call('hello', { name: 'x' })], { logLevel: 'warning' })).toEqual([])
  })
  it('are not sent before notifications/initialized', async () => {
    const [open = ''] = initialize('2025-11-25')
    expect(await answers(server(), [open, call('hello', { name: 'x' })])).toHaveLength(2)
  })
  it('are sent for stateless requests only if they set a level', async () => {
    const heard: string[] = []
    const client = await connect(memory(server()), {
      revision: '2026-07-28',
      tap: ({ direction, frame }) => {
        if (direction === 'in') heard.push(frame)
      },
    })
    await client.callTool('hello', { name: 'x' })
    await client.close()
    expect(heard.filter((frame) => frame.includes('notifications/message'))).toEqual([])
  })
  it('are written to stderr as structured lines with the request id', async () => {
    const { log } = await drive(
      server(),
      [...initialize('2025-11-25'), call('hello', { name: 'x' }, 7), ''].join('\n'),
      {
        logLevel: 'debug',
      },
    )
    const lines = log
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as unknown)
    expect(lines).toContainEqual(
      expect.objectContaining({ level: 'debug', message: 'Calling tool: hello', requestId: 7 }),
    )
    expect(lines).toContainEqual(
      expect.objectContaining({ level: 'info', message: 'Server initialized' }),
    )
  })
})
