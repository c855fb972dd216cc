import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { CCMCP, Child, HANDSHAKE, ROOT, heldTimers } from '../stdio/child.js'
import { CLI, OFFER, ccmcp, server } from './command.js'

let folder = ''
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'ccmcp-talk-'))
})
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const node = (...args: string[]) => ['--', process.execPath, ...args]
const odd = (result: unknown) => node(server('odd'), JSON.stringify(result))

describe('ccmcp list', () => {
  it('shows the tools, resources and prompts of a server', async () => {
    const { stdout, stderr, code } = await ccmcp(['list', OFFER])
    expect(stdout).toBe(`offer 1.0.0, protocol 2026-07-28

  Ask me.

Tools
  sum
      Add two numbers.
      - a (number): The first
      - b (number)
      - style ("plain" | "fancy", optional)
      - more ((number | string)[], optional)
  fail
  blocks
  repeat
      - text (string)
      - times (number)
  variable
  hang
  die
  print

Resources
  text://note
      note, text/plain: A note
  bytes://all
      application/octet-stream

Resource templates
  name://{name}

Prompts
  greet
      Greet somebody.
      - name: Whom
      - tone (optional)
`)
    expect([stderr, code]).toEqual(['', 0])
  })
  it('prints JSON in the requested revision', async () => {
    const { stdout, code } = await ccmcp(['list', OFFER, '--json', '--revision', '2024-11-05'])
    expect(JSON.parse(stdout)).toMatchObject({
      server: { name: 'offer', version: '1.0.0' },
      revision: '2024-11-05',
      capabilities: { tools: {} },
      instructions: 'Ask me.',
      tools: { length: 8, 0: { name: 'sum', inputSchema: { type: 'object' } } },
      resources: [{ uri: 'text://note' }, { uri: 'bytes://all' }],
      resourceTemplates: [{ uriTemplate: 'name://{name}' }],
      prompts: [{ name: 'greet' }],
    })
    expect(code).toBe(0)
  })
  it.each([
    [[], 'ccmcp '],
    [['grammar'], 'minimcp-grammar 0.1.0'],
    [node(CLI, 'serve', 'text'), 'demo-server 0.1.0'],
    [['--', CCMCP, 'serve', '--framing', 'lines'], 'ccmcp '],
  ])('finds the server of %j', async (args, name) => {
    const { stdout, code } = await ccmcp(['list', ...args])
    expect(stdout.startsWith(name)).toBe(true)
    expect(code).toBe(0)
  })
  it('speaks Content-Length framing', async () => {
    const { stdout, code } = await ccmcp([
      'list',
      '--framing',
      'content-length',
      '--',
      CCMCP,
      '--framing',
      'content-length',
    ])
    expect(stdout).toContain('hello')
    expect(code).toBe(0)
  })
  it('survives a server with invalid results', async () => {
    const nonsense = {
      tools: [{ name: 'x\ny', description: 5, inputSchema: 7 }],
      resources: [{ name: 'r' }],
      resourceTemplates: [],
      prompts: [
        { name: 'p', arguments: 5 },
        { name: 'q', arguments: [null, {}] },
      ],
    }
    const { stdout, code } = await ccmcp(['list', ...odd(nonsense)])
    expect(stdout).toContain('Tools\n  x y\n      5\n')
    expect(code).toBe(0)
    const broken = await ccmcp([
      'list',
      ...odd({ tools: 5, resources: [], resourceTemplates: [], prompts: [{ name: 'p' }] }),
    ])
    expect(broken).toEqual({
      code: 1,
      stdout: 'odd 1, protocol 2025-11-25\n\nPrompts\n  p\n',
      stderr: 'ccmcp: tools/list failed: The response to tools/list has no array "tools"\n',
    })
  })
})

describe('ccmcp call', () => {
  const sum = ['call', 'sum', OFFER]
  const arguments_ = '{"a":2,"b":40}'
  it('prints the result', async () => {
    expect(await ccmcp([...sum, '--args', arguments_])).toEqual({
      code: 0,
      stdout: '{"sum":42}\n',
      stderr: '',
    })
    const { stdout } = await ccmcp([...sum, '--args', arguments_, '--json'])
    expect(JSON.parse(stdout)).toMatchObject({ structuredContent: { sum: 42 }, isError: false })
  })
  it('reads arguments from a file and from stdin', async () => {
    writeFileSync(join(folder, 'args.json'), arguments_)
    expect((await ccmcp([...sum, '--args', `@${folder}/args.json`])).stdout).toBe('{"sum":42}\n')
    expect((await ccmcp([...sum, '--args', '-'], arguments_)).stdout).toBe('{"sum":42}\n')
  })
  it('passes any text', async () => {
    const text = 'Grüße 👋\n\u2028"\\ $HOME `x` 世界'
    expect(
      (await ccmcp(['call', 'repeat', OFFER, '--args', JSON.stringify({ text, times: 1 })])).stdout,
    ).toBe(`${text}\n`)
  })
  it('summarizes content other than text', async () => {
    expect((await ccmcp(['call', 'blocks', OFFER])).stdout).toBe(
      '[image image/png, 3 bytes]\nand \u001b[31mred\n',
    )
    const strange = {
      content: [
        null,
        { type: 'hologram' },
        { type: 'resource' },
        { type: 'resource_link', uri: 'a://b', name: 'c' },
      ],
    }
    expect((await ccmcp(['call', 'x', ...odd(strange)])).stdout).toBe(
      'null\n{"type":"hologram"}\n{"type":"resource"}\n[resource a://b c]\n',
    )
  })
  it("writes a tool's error result to stderr", async () => {
    expect(await ccmcp(['call', 'fail', OFFER])).toEqual({
      code: 1,
      stdout: '',
      stderr: 'ccmcp: fail failed: As planned.\n',
    })
    const { code, stdout } = await ccmcp(['call', 'fail', OFFER, '--json'])
    expect([code, JSON.parse(stdout)]).toMatchObject([1, { isError: true }])
  })
  it('reports an error with a suggestion', async () => {
    const problem = 'The server returned error -32602: Unknown tool: sun; did you mean sum?'
    expect(await ccmcp(['call', 'sun', OFFER])).toEqual({
      code: 1,
      stdout: '',
      stderr: `ccmcp: ${problem}\n`,
    })
    const { stdout, code } = await ccmcp(['call', 'sun', OFFER, '--json'])
    expect(JSON.parse(stdout)).toEqual({
      error: { code: -32602, message: 'Unknown tool: sun; did you mean sum?' },
    })
    expect(code).toBe(1)
  })
  it('passes the environment to the server, except CCMCP_WIRE', async () => {
    const { stdout } = await ccmcp(['call', 'variable', OFFER], '', {
      env: { OFFER: 'yes', CCMCP_WIRE: '' },
    })
    expect(stdout).toBe('yes\n')
    expect(
      (await ccmcp(['call', 'variable', OFFER], '', { env: { CCMCP_WIRE: '7,8' } })).stdout,
    ).toBe('not set\n')
  })
  it('shows the messages and the log with --verbose', async () => {
    const { stdout, stderr } = await ccmcp([
      'call',
      'sum',
      OFFER,
      '--args',
      arguments_,
      '--verbose',
    ])
    expect(stdout).toBe('{"sum":42}\n')
    expect(stderr).toContain('> {"jsonrpc":"2.0","id":1,"method":"server/discover"')
    expect(stderr).toContain('< {"jsonrpc":"2.0","id":2,"result"')
    expect(stderr).toContain('printed while loading')
  })
  it('prints a long result to a pipe completely and stops when it is closed', async () => {
    const big = ['call', 'repeat', OFFER, '--args', '{"text":"0123456789","times":2000000}']
    const { stdout, code } = await ccmcp(big)
    expect([stdout.length, code]).toEqual([20_000_001, 0])
    const child = new Child('sh', ['-c', '"$0" "$@" | head -c 5', CCMCP, ...big])
    await child.closed()
    expect([child.stdout.toString(), child.stderr]).toEqual(['01234', ''])
  })
  it.runIf(existsSync('/dev/full')).each([[['list', 'text']], [['revisions']], [['serve']]])(
    'reports a full disk in one line: %j',
    async (command) => {
      const child = new Child('sh', ['-c', '"$0" "$@" >/dev/full', CCMCP, ...command], {
        env: { CCMCP_LOG_LEVEL: 'error' },
      })
      child.write(`${HANDSHAKE[0]}\n`)
      child.end()
      await child.closed()
      expect(child.stderr).toMatch(/^ccmcp: .*ENOSPC: no space left on device, write\n$/)
      expect(child.code).toBe(1)
    },
  )
  it.each([
    [
      ['--args', 'nope'],
      /^--args is not valid JSON \(.*\); expected an object such as '\{"name":"value"\}'/,
    ],
    [['--args', ''], /^--args is not valid JSON/],
    [['--args', '[1]'], /^--args must be a JSON object/],
    [['--args', 'null'], /^--args must be a JSON object/],
    [
      ['--args', '@/no/such/file'],
      /^--args @\/no\/such\/file: cannot read \/no\/such\/file: ENOENT/,
    ],
    [['--args', `@${ROOT}`], /cannot read .*: EISDIR/],
    [['--args'], /^--args needs a value: JSON/],
    [['--timeout', '-1'], /^--timeout must be a number of seconds, not "-1"/],
    [['--timeout', ''], /^--timeout must be a number of seconds, not ""/],
    [['--timeout', '1e99'], /^--timeout must be a number of seconds/],
    [
      ['--revision', '2025-06-19'],
      /^--revision: invalid value "2025-06-19"; expected 2024-11-05, 2025-03-26, [-, \d]+ \(see/,
    ],
    [['--'], /^Both a server \(".*"\) and a command after "--" were given; pass only one/],
  ])('rejects %j', async (args, problem) => {
    const { stdout, stderr, code } = await ccmcp([...sum, ...args])
    expect(stderr.replace(/^ccmcp: /, '')).toMatch(problem)
    expect(stderr).toContain('(see "ccmcp call --help")\n')
    expect([stdout, code]).toEqual(['', 2])
  })
  it.each([
    [
      ['call'],
      'Missing TOOL; usage: ccmcp call TOOL [SERVER | -- COMMAND] [name=value …] [options]',
    ],
    [['call', 'sum', '--'], 'Missing command after "--"'],
    [
      ['call', 'sum', './no-such.mjs'],
      "Cannot load ./no-such.mjs: ENOENT: no such file or directory, stat './no-such.mjs'",
    ],
    [['call', 'sum', 'gramar'], 'Unknown server "gramar"; did you mean grammar?'],
  ])('rejects %j', async (args, problem) => {
    expect(await ccmcp(args)).toEqual({
      code: 2,
      stdout: '',
      stderr: `ccmcp: ${problem} (see "ccmcp call --help")\n`,
    })
  })
})

describe('ccmcp read', () => {
  it('prints text and bytes unchanged', async () => {
    expect(await ccmcp(['read', 'text://note', OFFER])).toEqual({
      code: 0,
      stdout: 'Grüße 👋',
      stderr: '',
    })
    const child = new Child('sh', [
      '-c',
      '"$0" read bytes://all "$1" >"$2"',
      CCMCP,
      OFFER,
      join(folder, 'bytes'),
    ])
    await child.closed()
    expect([...readFileSync(join(folder, 'bytes'))]).toEqual(
      Array.from({ length: 256 }, (_, i) => i),
    )
    expect((await ccmcp(['read', 'name://世界', OFFER])).stdout).toBe('I am 世界')
    expect(
      JSON.parse((await ccmcp(['read', 'text://note', OFFER, '--json'])).stdout),
    ).toMatchObject({ contents: [{ text: 'Grüße 👋' }] })
  })
  it('prints a title above each of several contents', async () => {
    const contents = [
      { uri: 'a://1', text: 'one' },
      { uri: 'a://2', mimeType: 'text/plain', text: 'two\n' },
    ]
    expect((await ccmcp(['read', 'a://', ...odd({ contents })])).stdout).toBe(
      'a://1 (unknown type)\none\na://2 (text/plain)\ntwo\n',
    )
  })
  it('reports a missing resource', async () => {
    const { stderr, code } = await ccmcp(['read', 'text://other', OFFER])
    expect(stderr).toBe(
      'ccmcp: The server returned error -32602: Resource not found: text://other; did you mean text://note?\n{\n  "uri": "text://other"\n}\n',
    )
    expect(code).toBe(1)
    expect(await ccmcp(['read', 'x', ...odd({})])).toEqual({
      code: 1,
      stdout: '',
      stderr: 'ccmcp: The response for x has no "contents"\n',
    })
  })
})

describe('ccmcp prompt', () => {
  it('prints the messages', async () => {
    const { stdout, code } = await ccmcp(['prompt', 'greet', OFFER, '--args', '{"name":"世界"}'])
    expect([stdout, code]).toEqual(['user: Give 世界 a warm welcome\n\nassistant: Gladly.\n', 0])
    const { stdout: json } = await ccmcp([
      'prompt',
      'greet',
      OFFER,
      '--args',
      '{"name":"x","tone":"cold"}',
      '--json',
    ])
    expect(JSON.parse(json)).toMatchObject({ messages: { length: 2 } })
    expect((await ccmcp(['prompt', 'x', ...odd({ messages: [null, 5] })])).stdout).toBe(
      'null\n\n5\n',
    )
  })
  it('reports invalid arguments', async () => {
    expect((await ccmcp(['prompt', 'greet', OFFER])).stderr).toContain(
      'error -32602: Invalid arguments for prompt greet: name is required',
    )
    expect(await ccmcp(['prompt', 'greet', OFFER, '--args', '{"name":5}'])).toMatchObject({
      code: 2,
      stderr:
        'ccmcp: --args: prompt arguments must be strings; write "name":"…" (see "ccmcp prompt --help")\n',
    })
  })
})

describe('no connection', () => {
  it.each([
    [
      'a command that is not there',
      ['--', 'no-such-command'],
      ['It could not be started: spawn no-such-command ENOENT', 'Use an absolute path'],
    ],
    ['a command that cannot be', ['--', 'a\u0001b'], ['It could not be started']],
    ['a folder', ['--', ROOT], ['It could not be started', 'EACCES']],
    [
      'a server that exits',
      node('-e', 'console.error("no database"); process.exit(7)'),
      ['It exited with code 7', '  no database\n'],
    ],
    [
      'a command that ends',
      node('-e', '0'),
      ['It exited with code 0', 'the command exits immediately'],
    ],
    [
      'a module that throws',
      [server('throws')],
      ['It exited with code 1', 'Cannot load ', 'no such thing'],
    ],
    [
      'a server that prints and is silent',
      ['--timeout', '60', ...node(server('garbage'))],
      [
        'No response within 60000 ms to initialize',
        'First line on stdout that is not JSON: "Listening on \\u001b[31mstdio…"',
        '  ready\n',
      ],
    ],
    [
      'a server of another revision',
      ['--revision', '2026-07-28', ...odd({})],
      ['The server does not serve 2026-07-28'],
    ],
  ])('%s', async (_, args, parts) => {
    // The silent server ends each wait for a response.
    const { stdout, stderr, code } = await ccmcp(['list', ...args], '', { env: heldTimers(2000) })
    for (const part of parts) expect(stderr).toContain(part)
    expect([stdout, code]).toEqual(['', 3])
  })
  it('a server that exits during a call', async () => {
    const { stderr, code } = await ccmcp(['call', 'die', OFFER])
    for (const part of ['It exited with code 9', '  My last words\n'])
      expect(stderr).toContain(part)
    expect(code).toBe(3)
  })
  it('a call that times out', async () => {
    const args = ['call', 'hang', OFFER, '--timeout', '60', '--verbose']
    const child = new Child(CCMCP, args, { env: heldTimers(60_000) })
    await child.said('hanging')
    child.give('SIGUSR2')
    await child.closed()
    expect([child.code, child.stdout.toString()]).toEqual([3, ''])
    expect(child.stderr).toMatch(/\nccmcp: No response within 60000 ms to tools\/call\n$/)
  })
})

describe('Ctrl-C', () => {
  const stubborn = `process.on('SIGTERM', () => {}); console.error('I am ' + process.pid + '.'); setInterval(() => {}, 1000)`

  it('stops a call and its server', async () => {
    const child = new Child(process.execPath, [CLI, 'call', 'hang', OFFER, '--verbose'])
    await child.said('hanging')
    child.give('SIGINT')
    await child.closed()
    expect(child.code).toBe(130)
    expect(child.stderr).toContain('"method":"notifications/cancelled"')
    expect(child.stderr.endsWith('ccmcp: Interrupted\n')).toBe(true)
  })
  it('stops a server that ignores signals, immediately the second time', async () => {
    const child = new Child(process.execPath, [
      CLI,
      'list',
      '--verbose',
      '--',
      process.execPath,
      '-e',
      stubborn,
    ])
    await child.said('.\n')
    const pid = Number(/I am (\d+)\./.exec(child.stderr)?.[1])
    expect(isAlive(pid)).toBe(true)
    child.give('SIGTERM')
    child.give('SIGINT')
    await child.closed()
    expect([130, 143]).toContain(child.code)
    await vi.waitFor(() => expect(isAlive(pid)).toBe(false), { timeout: 60_000 })
  })
})

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
  } catch {
    return false
  }
  // A zombie counts as exited.
  try {
    return !/^\d+ \(.*\) Z/s.test(readFileSync(`/proc/${pid}/stat`, 'utf8'))
  } catch {
    return process.platform !== 'linux'
  }
}

describe.runIf(process.platform !== 'win32')('a server that writes to stderr and exits', () => {
  it('has its output in the error, whether or not its stdin was still open', async () => {
    const runs = Array.from({ length: 12 }, () =>
      ccmcp(['list', '--', 'sh', '-c', 'echo hello; exit 3']),
    )
    for (const { stderr, code } of await Promise.all(runs)) {
      expect(stderr).toContain('First line on stdout that is not JSON: "hello"')
      expect(code).toBe(3)
    }
  })
})
