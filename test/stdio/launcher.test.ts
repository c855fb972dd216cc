import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { CCMCP, Child, HANDSHAKE, ROOT, call, ping, pong, text } from './child.js'

const { version } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as {
  version: string
}
const greeting = `{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-11-25","capabilities":{"logging":{},"prompts":{"listChanged":true},"resources":{"subscribe":true,"listChanged":true},"tools":{"listChanged":true},"completions":{}},"serverInfo":{"name":"ccmcp","version":"${version}"}}}`
/** Without the log messages that this server sends. */
const answers = (lines: readonly string[]) =>
  lines.filter((line) => !line.includes('"notifications/message"'))
const quiet = ['--log-level', 'warning']
const framed = (message: string) =>
  `Content-Length: ${Buffer.byteLength(message)}\r\n\r\n${message}`

let home = ''
beforeAll(() => {
  home = mkdtempSync(join(tmpdir(), 'ccmcp launcher-')) // with a space
})
afterAll(() => rmSync(home, { recursive: true, force: true }))

/** Runs ./ccmcp without input until it exits. */
async function run(...args: string[]): Promise<Child> {
  const child = new Child(CCMCP, args)
  child.end()
  await child.closed()
  return child
}

describe('./ccmcp as a server', () => {
  it('responds to a ping in lines', async () => {
    const server = new Child(CCMCP)
    server.send(ping(1))
    expect(await server.line(0)).toBe(pong(1))
    server.end()
    await server.closed()
    expect(server.stdout.toString()).toBe(`${pong(1)}\n`)
    expect(server.stderr).toBe('')
    expect(server.code).toBe(0)
  })

  it('responds to a ping in Content-Length framing', async () => {
    const server = new Child(CCMCP)
    server.write(framed(ping(1)) + framed(ping(2)))
    server.end()
    await server.closed()
    expect(server.stdout.toString()).toBe(framed(pong(1)) + framed(pong(2)))
    expect(server.stderr).toBe('')
    expect(server.code).toBe(0)
  })

  it('uses the framing of --framing', async () => {
    const server = new Child(CCMCP, ['serve', '--framing=lines', ...quiet])
    server.write(`${ping(1)}\n`)
    server.end()
    await server.closed()
    expect(server.stdout.toString()).toBe(`${pong(1)}\n`)
    expect(server.code).toBe(0)
  })

  it.each([[[...quiet]], [['serve', ...quiet]]])(
    'serves its tools when started with %j',
    async (args) => {
      const server = new Child(CCMCP, args)
      server.end(
        ...HANDSHAKE,
        call(1, 'hello', { name: 'MCP' }),
        call(2, 'add', { a: 10, b: 32 }),
        call(3, 'echo', { message: 'Grüße, 世界' }),
      )
      await server.closed()
      expect(answers(server.lines)).toEqual([
        greeting,
        text(1, 'Hello, MCP!'),
        text(2, '42'),
        text(3, 'Grüße, 世界'),
      ])
      expect(server.stderr).toBe('')
      expect(server.code).toBe(0)
    },
  )

  it('serves with a closed stderr', async () => {
    const child = new Child('sh', ['-c', `'${CCMCP}' 2>&-`])
    child.send(ping(1))
    expect(await child.line(0)).toBe(pong(1))
    child.end()
    await child.closed()
    expect(child.code).toBe(0)
  })

  it('logs JSON lines to stderr', async () => {
    const server = new Child(CCMCP)
    server.end(...HANDSHAKE)
    await server.closed()
    expect(server.lines).toEqual([greeting])
    expect(JSON.parse(server.stderr)).toEqual({
      time: expect.any(String),
      level: 'info',
      message: 'Initialized by test, protocol 2025-11-25',
      requestId: 0,
    })
  })

  it('reads from a file and writes to a file', async () => {
    const input = join(home, 'input.txt')
    const output = join(home, 'output.txt')
    writeFileSync(input, [...HANDSHAKE, call(1, 'add', { a: 1, b: 2 }), ping(2)].join('\n'))
    const child = new Child('sh', [
      '-c',
      '"$0" --log-level warning <"$1" >"$2"',
      CCMCP,
      input,
      output,
    ])
    await child.closed()
    expect(answers(readFileSync(output, 'utf8').split('\n'))).toEqual([
      greeting,
      text(1, '3'),
      pong(2),
      '',
    ])
    expect(child.stdout.toString()).toBe('')
    expect(child.stderr).toBe('')
    expect(child.code).toBe(0)
  })

  it('appends to a file', async () => {
    const output = join(home, 'appended.txt')
    writeFileSync(output, 'before\n')
    const child = new Child('sh', ['-c', '"$0" >>"$1"', CCMCP, output])
    child.end(ping(1), ping(2))
    await child.closed()
    expect(readFileSync(output, 'utf8')).toBe(`before\n${pong(1)}\n${pong(2)}\n`)
  })

  it('exits immediately on /dev/null', async () => {
    const child = new Child('sh', ['-c', '"$0" </dev/null', CCMCP])
    await child.closed()
    expect(child.stdout.toString()).toBe('')
    expect(child.stderr).toBe('')
    expect(child.code).toBe(0)
  })

  it('works through symbolic links, from another directory', async () => {
    mkdirSync(join(home, 'bin'))
    symlinkSync(CCMCP, join(home, 'bin', 'first'))
    symlinkSync('first', join(home, 'bin', 'second'))
    const server = new Child(join(home, 'bin', 'second'), [], { cwd: home })
    server.end(ping(1))
    await server.closed()
    expect(server.stdout.toString()).toBe(`${pong(1)}\n`)
    expect(server.code).toBe(0)
  })

  it('works by a relative path', async () => {
    const server = new Child('sh', ['-c', './ccmcp'], { cwd: ROOT })
    server.end(ping(1))
    await server.closed()
    expect(server.stdout.toString()).toBe(`${pong(1)}\n`)
    expect(server.code).toBe(0)
  })
})

const hasScript = process.platform === 'linux' && spawnSync('script', ['--version']).status === 0

/** Runs the command in a terminal, which echoes what is typed. */
// `exec`: otherwise some shells stay in between and are ended by the signal themselves.
const terminal = (command: string) =>
  new Child('script', ['-qec', command, '/dev/null'], { group: true })

describe.runIf(hasScript)('./ccmcp at a terminal', () => {
  it('prints that it waits for a client', async () => {
    const child = terminal(`exec "${CCMCP}"`)
    await child.until(() => child.lines.length > 0, 'the greeting')
    expect(child.lines[0]).toBe(
      'ccmcp: ccmcp is waiting for an MCP client on stdin (one JSON message per line). "ccmcp demo" shows a server at work; press Ctrl-D to quit.\r',
    )
    child.write('\u0004')
    await child.exited()
  })

  it('shows control characters of a server as escapes', async () => {
    const child = terminal(
      `"${CCMCP}" call echo ccmcp --args '{"message":"a\\u001b[31mb\\u009bc"}'`,
    )
    await child.closed()
    expect(child.lines).toEqual(['a\\u001b[31mb\\u009bc\r'])
  })

  it('exits on Ctrl-D', async () => {
    const child = terminal(`exec "${CCMCP}"`)
    child.write(`${ping(1)}\n`)
    await child.until(() => child.lines.includes(`${pong(1)}\r`), 'the answer')
    child.write('\u0004')
    await child.exited()
    expect(child.code).toBe(0)
  })

  it('exits on Ctrl-C', async () => {
    const child = terminal(`exec "${CCMCP}"`)
    child.write(`${ping(1)}\n`)
    await child.until(() => child.lines.includes(`${pong(1)}\r`), 'the answer')
    child.write('\u0003')
    await child.exited()
    expect(child.code).toBe(0)
  })
})

describe('./ccmcp as a command', () => {
  it.each([['--help'], ['-h'], ['help']])('prints its help to stdout with %s', async (option) => {
    const child = await run(option)
    expect(child.lines[0]).toBe(`ccmcp ${version}: a Model Context Protocol toolkit`)
    expect(child.lines).toContain('Usage: ccmcp [command] [options]')
    expect(child.stderr).toBe('')
    expect(child.code).toBe(0)
  })

  it.each([
    [['serve', '--help']],
    [['--log-level', 'info', '--help']],
    [['serve', 'grammar', '-h']],
    [['help', 'serve']],
  ])('shows the help of serve on stdout with %j', async (args) => {
    const child = await run(...args)
    expect(child.lines[0]).toMatch(/^Usage: ccmcp serve \[NAME \| FILE\]/)
    expect(child.stderr).toBe('')
    expect(child.code).toBe(0)
  })

  it.each([['--version'], ['-v']])('prints its version to stdout with %s', async (option) => {
    const child = await run(option)
    expect(child.stdout.toString()).toBe(`${version}\n`)
    expect(child.stderr).toBe('')
    expect(child.code).toBe(0)
  })

  it.each([
    [['--framming', 'lines'], 'Unknown argument "--framming"; did you mean --framing?', 'serve '],
    [
      ['serve', '--log-levle', 'info'],
      'Unknown argument "--log-levle"; did you mean --log-level?',
      'serve ',
    ],
    [
      ['serve', '--log-levle=info'],
      'Unknown argument "--log-levle=info"; did you mean --log-level?',
      'serve ',
    ],
    [['--hlep'], 'Unknown argument "--hlep"; did you mean --help?', 'serve '],
    [['--zzzzzzzzzzzzzzzz'], 'Unknown argument "--zzzzzzzzzzzzzzzz"', 'serve '],
    [
      ['--framing', 'line'],
      '--framing: invalid value "line"; expected auto, lines, content-length; did you mean lines?',
      'serve ',
    ],
    [['--framing'], '--framing needs a value: auto, lines, content-length', 'serve '],
    [['--max-message', '1.5'], '--max-message must be a number of bytes, not "1.5"', 'serve '],
    [['sevre'], 'Unknown command "sevre"; did you mean serve?', ''],
    [['dmo'], 'Unknown command "dmo"; did you mean demo?', ''],
    [['help', 'dmo'], 'Unknown command "dmo"; did you mean demo?', ''],
    [['constructor'], 'Unknown command "constructor"', ''],
    [['grammar'], 'Unknown command "grammar"; did you mean ccmcp serve grammar?', ''],
    [['./server.js'], 'Unknown command "./server.js"; did you mean ccmcp serve ./server.js?', ''],
    [['demo', 'more'], 'Unknown argument "more"', 'demo '],
  ])('rejects %j with exit code 2 and a hint', async (args, problem, command) => {
    const child = await run(...args)
    expect(child.stderr).toBe(`ccmcp: ${problem} (see "ccmcp ${command}--help")\n`)
    expect(child.stdout.toString()).toBe('')
    expect(child.code).toBe(2)
  })

  it('plays the demo', async () => {
    const child = await run('demo', '--wire')
    expect(
      child.lines.filter((line) => line.startsWith('< ') && line.includes('"text":"42"')),
    ).toHaveLength(1)
    expect(child.lines.at(-1)).toMatch(/^The server has exited/)
    expect(child.stderr).toBe('')
    expect(child.code).toBe(0)
  })
})
