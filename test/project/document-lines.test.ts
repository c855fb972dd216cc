import { spawnSync } from 'node:child_process'
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, describe, expect, it } from 'vitest'

/*
 * Every command line of the five documents, verbatim (document-lines.txt), with
 * only its `...` placeholders filled in. docs/seed-documents.md lists those that
 * cannot be run as written, with the reasons.
 */

const root = fileURLToPath(new URL('../../', import.meta.url))
const folder = mkdtempSync(join(tmpdir(), 'ccmcp-lines-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

/** Lines by title. */
const LINES = new Map(
  readFileSync(new URL('document-lines.txt', import.meta.url), 'utf8')
    .split(/^## /m)
    .slice(1)
    .map((part) => {
      const [title = '', ...lines] = part.trimEnd().split('\n')
      return [title, lines.join('\n')] as const
    }),
)
const INITIALIZE = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-03-26","capabilities":{},"clientInfo":{"name":"test","version":"1.0"}}}`
const INITIALIZED = `{"jsonrpc":"2.0","method":"notifications/initialized"}`

/** Installs a substitute for a program that the documents name into PATH. */
function standIn(name: string, script: string): void {
  writeFileSync(join(folder, name), `#!/bin/sh\n${script}\n`)
  chmodSync(join(folder, name), 0o755)
}

/** Runs the lines of a title in a shell, in the root of the repository. */
function run(
  title: string,
  { input = '', cwd = root } = {},
): { stdout: string; status: number | null; messages: Message[] } {
  const line = (LINES.get(title) ?? '')
    .replaceAll(/\.\.\.init(?:ialize)?\.\.\./g, INITIALIZE)
    .replaceAll('...initialized...', INITIALIZED)
  expect(line).not.toMatch(/^$|\.\.\./)
  const { TMPDIR, ...env } = process.env
  void TMPDIR // the documents' folder for temporary files is the system's own
  const PATH = `${folder}${delimiter}${env['PATH'] ?? ''}`
  // --norc: with a socket as its stdin, bash may read ~/.bashrc, which may change PATH.
  const { stdout, status } = spawnSync('bash', ['--norc', '-c', line], {
    cwd,
    input,
    encoding: 'utf8',
    env: { ...env, PATH },
  })
  return {
    stdout,
    status,
    messages: stdout.startsWith('{') ? parsed(stdout.trim().split('\n')) : [],
  }
}

interface Message {
  id?: number | null
  method?: string
  result?: {
    tools?: { name: string }[]
    resources?: { uri: string }[]
    messages?: unknown[]
    content?: { text: string }[]
    contents?: { text: string }[]
  }
  error?: { code: number }
}
const parsed = (lines: readonly string[]) => lines.map((line) => JSON.parse(line) as Message)
const answer = (messages: readonly Message[], id: number) =>
  messages.find((message) => message.id === id)?.result
const text = (messages: readonly Message[], id: number) => answer(messages, id)?.content?.[0]?.text

describe('document 004', () => {
  it('testing: initialize, list tools, call a tool, close', () => {
    const { messages, status } = run('004: testing')
    expect(messages[0]).toMatchObject({ id: 1, result: { protocolVersion: '2025-03-26' } })
    expect(answer(messages, 2)?.tools?.map(({ name }) => name)).toEqual(
      expect.arrayContaining(['hello', 'add', 'echo']),
    )
    expect(text(messages, 3)).toBe('Hello, World!')
    expect(status).toBe(0)
  })
  it('Q3: outputs one line', () => {
    const { stdout, status } = run('004: Q3')
    expect(stdout).toMatch(
      /^\{"jsonrpc":"2.0","id":1,"result":\{"protocolVersion":"2025-03-26",.*\}\}\n$/,
    )
    expect(status).toBe(0)
  })
  it('Q4: the second line of output has hello, add and echo', () => {
    const { messages } = run('004: Q4')
    expect(messages[1]).toMatchObject({
      id: 2,
      result: { tools: [{ name: 'hello' }, { name: 'add' }, { name: 'echo' }, {}, {}, {}, {}, {}] },
    })
  })
  it('Q5: includes "Hello, World!"', () =>
    expect(text(run('004: Q5').messages, 2)).toBe('Hello, World!'))
  it.runIf(process.platform === 'linux')(
    'Q6: returns "test content" from the system\'s temporary folder, with no root given',
    () => {
      // The file name is fixed, so a concurrent run of this test may remove the file.
      for (let attempt = 1; ; attempt++) {
        run('004: Q6, echo')
        const { messages } = run('004: Q6, printf')
        rmSync('/tmp/mcp_test.txt', { force: true })
        const read = messages.find(({ id }) => id === 2)?.result
        if (attempt < 5 && read?.content?.[0]?.text.includes('does not exist') === true) continue
        expect(read).toEqual({
          content: [{ type: 'text', text: 'test content\n' }],
          isError: false,
        })
        return
      }
    },
  )
  it('Q7: lists resources and reads the configuration', () => {
    const { messages } = run('004: Q7')
    expect(answer(messages, 2)?.resources?.map(({ uri }) => uri)).toEqual([
      'config://server',
      'stats://usage',
      'help://commands',
    ])
    expect(JSON.parse(answer(messages, 3)?.contents?.[0]?.text ?? '')).toMatchObject({
      name: 'ccmcp',
      tools: 8,
    })
  })
  it('Q8: has "Alice" in its messages', () =>
    expect(answer(run('004: Q8').messages, 2)?.messages).toEqual([
      { role: 'user', content: { type: 'text', text: 'Please greet Alice warmly' } },
    ]))
  it('Q10: includes the text of the new tool', () =>
    expect(text(run('004: Q10').messages, 3)).toBe(
      'Dear Professor Smith, it is a pleasure to meet you.',
    ))
  it('Q11: a parse error, then an unknown method', () =>
    expect(run('004: Q11').messages).toMatchObject([
      { error: { code: -32700 } },
      { id: 1, error: { code: -32601 } },
    ]))
})

// The other documents run a Python module; here `python` is a substitute that starts ccmcp.
describe('document 000', () => {
  const smoke = readFileSync(
    new URL('../bundled/transcripts/smoke.txt', import.meta.url),
    'utf8',
  ).split('\n')
  const framed = (mark: string) =>
    smoke
      .filter((line) => line.startsWith(mark))
      .map((line) => `Content-Length: ${Buffer.byteLength(line.slice(2))}\r\n\r\n${line.slice(2)}`)
      .join('')
  standIn(
    'python',
    `case "$*" in '-m miniagent.mcp_server' | '-m src.minimcp.server') exec ${root}ccmcp serve grammar;; *) exec ${root}ccmcp serve text;; esac`,
  )
  writeFileSync(join(folder, 'input.bin'), framed('> '))
  const inFolder = (name: string) => readFileSync(join(folder, name), 'utf8')

  it('run it: reads and writes frames and exits at end of input', () =>
    expect(run('000: run it', { input: framed('> '), cwd: folder })).toMatchObject({
      stdout: framed('< '),
      status: 0,
    }))
  it('manual.sh: input.bin to output.bin without an error in stderr.log', () => {
    expect(run('000: manual.sh', { cwd: folder })).toMatchObject({ stdout: '', status: 0 })
    expect(inFolder('output.bin')).toBe(framed('< '))
    expect(inFolder('stderr.log')).toContain('"level":"info"')
    expect(inFolder('stderr.log')).not.toContain('"level":"error"')
  })
  it('stop condition 1: runs cleanly, with exit code 0', () => {
    writeFileSync(join(folder, 'output.bin'), '')
    expect(run('000: stop condition 1', { cwd: folder }).status).toBe(0)
    expect(inFolder('output.bin')).toBe(framed('< '))
  })
})

describe('document 001', () => {
  it('usage: responds to the lines of its round trip', () => {
    const input = [
      '{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2024-11-05","capabilities":{},"clientInfo":{"name":"test","version":"0.1"}}}',
      '{"jsonrpc":"2.0","method":"notifications/initialized"}',
      '{"jsonrpc":"2.0","id":1,"method":"tools/list"}',
      '{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"conjugate","arguments":{"verb":"eat","tense":"past simple","person":"3rd singular"}}}',
    ]
    const { messages, status } = run('001: usage', { input: `${input.join('\n')}\n` })
    expect(messages).toMatchObject([
      {
        id: 0,
        result: {
          protocolVersion: '2024-11-05',
          serverInfo: { name: 'minimcp-grammar', version: '0.1.0' },
        },
      },
      { id: 1, result: { tools: [{ name: 'conjugate' }, {}, {}, {}] } },
      { id: 2, result: { content: [{ type: 'text', text: 'ate' }], isError: false } },
    ])
    expect(status).toBe(0)
  })
})

/** Starts the server of a host configuration as a host does: command and arguments, without a shell. */
function start(configuration: string, name: string, messages: readonly string[]): Message[] {
  const { mcpServers } = JSON.parse(configuration) as {
    mcpServers: Record<string, { command: string; args: string[] }>
  }
  const { command = '', args = [] } = mcpServers[name] ?? {}
  const { stdout } = spawnSync(command, args, {
    input: [INITIALIZE, INITIALIZED, ...messages].map((message) => `${message}\n`).join(''),
    encoding: 'utf8',
    env: { ...process.env, PATH: `${folder}${delimiter}${process.env['PATH'] ?? ''}` },
  })
  return parsed(stdout.trim().split('\n'))
}
const toolCall = (name: string, input: object) =>
  JSON.stringify({
    jsonrpc: '2.0',
    id: 2,
    method: 'tools/call',
    params: { name, arguments: input },
  })

describe('host configurations', () => {
  it('document 002: python with the path of the server', () => {
    const configuration =
      '{"mcpServers":{"demo-server":{"command":"python","args":["/absolute/path/to/server.py"]}}}'
    expect(
      text(
        start(configuration, 'demo-server', [toolCall('word_count', { text: 'one two three' })]),
        2,
      ),
    ).toBe('3')
  })
  it('document 003: a program of its own that serves with --mcp', () => {
    const program = join(folder, 'my-app-binary')
    writeFileSync(
      `${program}.mjs`,
      `import { createServer } from '${root}dist/index.js'
import { serveStdio } from '${root}dist/stdio.js'
if (!process.argv.includes('--mcp')) process.exit(1)
const msg = { type: 'string', description: 'message to echo' }
await serveStdio(createServer({
  name: 'my-app-mcp',
  version: '1.0.0',
  tools: [{ name: 'echo', description: 'Echoes the input message back', input: { type: 'object', properties: { msg }, required: ['msg'] } }],
  handle: (name, { msg }) => ({ result: msg }),
}))`,
    )
    standIn('my-app-binary', `exec "${process.execPath}" "${program}.mjs" "$@"`)
    const configuration =
      '{"mcpServers":{"my-app":{"command":"/path/to/my-app-binary","args":["--mcp"]}}}'
    const messages = start(configuration.replace('/path/to/my-app-binary', program), 'my-app', [
      toolCall('echo', { msg: 'hi' }),
    ])
    expect(messages[0]).toMatchObject({
      result: { serverInfo: { name: 'my-app-mcp', version: '1.0.0' } },
    })
    expect(text(messages, 2)).toBe('{"result":"hi"}')
  })
})

it('every line has a test', () => {
  const source = readFileSync(new URL(import.meta.url), 'utf8')
  expect([...LINES.keys()].filter((title) => !source.includes(`run('${title}'`))).toEqual([])
  expect(LINES.size).toBe(14)
})
