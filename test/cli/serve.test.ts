import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { Child, HANDSHAKE, ROOT, call, ping, pong, text } from '../stdio/child.js'
import { CLI, OFFER, ccmcp, cli } from './command.js'

const lines = (...messages: string[]) => messages.map((message) => `${message}\n`).join('')
const quiet = { env: { CCMCP_LOG_LEVEL: 'error' } }
const LIST = '{"jsonrpc":"2.0","id":1,"method":"tools/list"}'
const see = (command: string) => ` (see "ccmcp ${command}--help")\n`

let folder = ''
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'ccmcp serve-')) // with a space
})
afterAll(() => rmSync(folder, { recursive: true, force: true }))

function file(name: string, code: string): string {
  writeFileSync(
    join(folder, name),
    code.replaceAll("'ccmcp'", JSON.stringify(pathToFileURL(`${ROOT}dist/index.js`).href)),
  )
  return join(folder, name)
}
const SERVER = `import { createServer, tool } from 'ccmcp'
const made = (name) => createServer({ name, version: '1', tools: [tool({ name: 'hi', run: () => 'hi' })] })\n`
/** The name of the server and its tools. */
async function nameOf(path: string, options = quiet): Promise<string> {
  const { stdout } = await ccmcp(['serve', path], lines(HANDSHAKE[0], call(1, 'hi')), options)
  expect(stdout).toContain(text(1, 'hi'))
  return /"serverInfo":\{"name":"(\w+)"/.exec(stdout)?.[1] ?? ''
}

async function toolsOf(...args: string[]): Promise<string[]> {
  const { stdout } = await ccmcp(['serve', ...args], lines(...HANDSHAKE, LIST), quiet)
  const { result } = JSON.parse(
    stdout.split('\n').find((line) => line.includes('"id":1')) ?? '',
  ) as {
    result: { tools: { name: string }[] }
  }
  return result.tools.map(({ name }) => name)
}

describe('the servers', () => {
  it.each([
    ['ccmcp', 'ccmcp', 'add'],
    ['grammar', 'minimcp-grammar', 'conjugate'],
    ['text', 'demo-server', 'word_count'],
  ])('%s', async (name, server, tool) => {
    const { stdout, stderr, code } = await ccmcp(['serve', name], lines(...HANDSHAKE, LIST), quiet)
    expect(stdout).toContain(`"serverInfo":{"name":"${server}"`)
    expect(stdout).toContain(`"name":"${tool}"`)
    expect([stderr, code]).toEqual(['', 0])
  })
  it('accepts messages up to 1 MiB by default for ccmcp, and more for others', async () => {
    const long = lines(call(1, 'x', { text: 'x'.repeat(1_100_000) }))
    expect((await ccmcp([], long, quiet)).stdout).toContain('the limit is 1048576')
    expect((await ccmcp(['serve', 'text'], long, quiet)).stdout).toContain('-32002')
    expect((await ccmcp(['serve', 'text', '--max-message', '100'], long, quiet)).stdout).toContain(
      'the limit is 100',
    )
  })
  it.runIf(process.platform === 'linux')('explains why its files are not usable', async () => {
    symlinkSync('loop', join(folder, 'loop'))
    for (const path of [join(folder, 'loop'), join(folder, 'x'.repeat(300)), '']) {
      const { code, stderr } = await ccmcp(['--persist', path])
      expect(stderr).toMatch(/^ccmcp: Cannot create the ccmcp server: .*\n$/)
      expect(code).toBe(2)
    }
    const removed = join(folder, 'removed')
    mkdirSync(removed)
    const start = 'rmdir "$1" && exec "$2" "$3" serve'
    const child = new Child('sh', ['-c', start, 'sh', removed, process.execPath, CLI], {
      cwd: removed,
    })
    child.end()
    await child.closed()
    expect(child.stderr).toContain(
      'Cannot create the ccmcp server: root: the working directory has been removed',
    )
    expect(child.code).toBe(2)
  })
  it('accepts several roots by options or a variable', async () => {
    for (const name of ['one', 'two']) {
      mkdirSync(join(folder, name))
      writeFileSync(join(folder, name, 'file'), `content of ${name}`)
    }
    const [one, two] = [join(folder, 'one'), join(folder, 'two')]
    const reads = lines(
      ...HANDSHAKE,
      call(1, 'read_file', { path: 'file' }),
      call(2, 'read_file', { path: join(two, 'file') }),
      call(3, 'read_file', { path: `${ROOT}package.json` }),
    )
    const runs = [
      await ccmcp(['--root', one, '--root', two], reads),
      await ccmcp([], reads, { env: { CCMCP_ROOT: `${one}${delimiter}${two}` } }),
      await ccmcp(['--root', one, `--root=${two}`], reads, { env: { CCMCP_ROOT: ROOT } }),
    ]
    for (const { stdout } of runs) {
      expect(stdout).toContain(text(1, 'content of one'))
      expect(stdout).toContain(text(2, 'content of two'))
      expect(stdout).toContain('is outside of the directories of this server')
    }
  })
  it('protects its own files from the file tools', async () => {
    const log = join(folder, 'own.log')
    const { stdout } = await ccmcp(
      ['--root', folder, '--log-file', log],
      lines(...HANDSHAKE, call(1, 'read_file', { path: 'own.log' })),
    )
    expect(stdout).toContain('belongs to the server itself')
  })
  it('protects the tokens of ccmcp login from the file tools, with options and without', async () => {
    const tokens = join(folder, 'ccmcp', 'tokens.json')
    mkdirSync(join(folder, 'ccmcp'))
    writeFileSync(tokens, 'secret')
    const calls = lines(
      ...HANDSHAKE,
      call(1, 'read_file', { path: tokens }),
      call(2, 'write_file', { path: tokens, content: '' }),
    )
    const env = { XDG_CONFIG_HOME: folder, APPDATA: folder }
    for (const args of [['--root', folder], []]) {
      const { stdout } = await cli(args, calls, { env, cwd: folder })
      expect(stdout.match(/belongs to the server itself.*"isError":true/g)).toHaveLength(2)
    }
    expect(readFileSync(tokens, 'utf8')).toBe('secret')
  })
  it('protects its captures, which contain tokens, from the file tools', async () => {
    for (const path of ['own.ndjson', 'own-2.ndjson']) {
      const { stdout } = await ccmcp(
        ['--root', folder, '--capture', join(folder, 'own.ndjson')],
        lines(
          ...HANDSHAKE,
          call(1, 'read_file', { path }),
          call(2, 'write_file', { path, content: '' }),
        ),
      )
      expect(stdout.match(/belongs to the server itself.*"isError":true/g)).toHaveLength(2)
      expect(readFileSync(join(folder, path), 'utf8')).toContain('tools/call')
    }
  })
  it('offers only the selected tools', async () => {
    expect(await toolsOf('--tools', 'add,hello')).toEqual(['hello', 'add'])
    expect(await toolsOf('--exclude-tools=add')).not.toContain('add')
    expect(await toolsOf(OFFER, '--tools', 'sum', '--tools', 'fail')).toEqual(['sum', 'fail'])
    expect(await toolsOf(OFFER, '--tools', 'sum,fail', '--exclude-tools', 'fail')).toEqual(['sum'])
  })
})

describe('variables', () => {
  it('set options, which take precedence', async () => {
    const env = { CCMCP_FRAMING: 'lines', CCMCP_LOG_LEVEL: 'error', CCMCP_TOOLS: 'add' }
    const { stdout } = await ccmcp([], lines(...HANDSHAKE, LIST), { env })
    expect([...stdout.matchAll(/"name":"(\w+)","description/g)].map(([, name]) => name)).toEqual([
      'add',
    ])
    const framed = `Content-Length: ${ping(1).length}\r\n\r\n${ping(1)}`
    expect((await ccmcp([], framed, { env })).stdout).toContain('received Content-Length framing')
    expect((await ccmcp(['--framing', 'auto'], framed, { env })).stdout).toBe(
      `Content-Length: ${pong(1).length}\r\n\r\n${pong(1)}`,
    )
  })
  it('of one server are ignored by the others', async () => {
    const { stdout, code } = await ccmcp(['serve', 'text'], lines(ping(1)), {
      env: { CCMCP_ROOT: '/nowhere', CCMCP_READ_ONLY: '1' },
    })
    expect([stdout, code]).toEqual([`${pong(1)}\n`, 0])
  })
  it('with a typo in their names are reported', async () => {
    const { stdout, stderr } = await ccmcp([], lines(ping(1)), {
      env: { CCMCP_FRAMMING: 'lines', CCMCP_WIRE: '' },
    })
    expect(stderr).toBe(
      'ccmcp: ignoring unknown variable CCMCP_FRAMMING; did you mean CCMCP_FRAMING?\n',
    )
    expect(stdout).toBe(`${pong(1)}\n`)
  })
  it('with invalid values are errors', async () => {
    const { stderr, code } = await ccmcp([], '', { env: { CCMCP_FRAMING: 'line' } })
    expect([stderr, code]).toEqual([
      'ccmcp: CCMCP_FRAMING: invalid value "line"; expected auto, lines, content-length; did you mean lines? (see "ccmcp --help")\n',
      2,
    ])
  })
})

describe('--log-file', () => {
  it.skipIf(process.platform !== 'linux')('may be full without stopping the server', async () => {
    const { stdout, code } = await ccmcp(['--log-file', '/dev/full'], lines(...HANDSHAKE))
    expect([stdout.includes('"protocolVersion"'), code]).toEqual([true, 0])
  })

  it('appends the log lines', async () => {
    const path = join(folder, 'server.log')
    for (let i = 0; i < 2; i++) {
      const { stderr } = await ccmcp(['--log-file', path], lines(...HANDSHAKE))
      expect(stderr).toBe('')
    }
    const logged = readFileSync(path, 'utf8').trim().split('\n')
    expect(logged.filter((line) => line.includes('Initialized by test'))).toHaveLength(2)
    for (const line of logged)
      expect(JSON.parse(line)).toMatchObject({ level: expect.any(String) as unknown })
  })
})

describe('a module', () => {
  it.each([
    ['a default export', 'export default made("one")', 'one'],
    ['an export named server', 'export const server = made("two")', 'two'],
    ['a promise', 'export default Promise.resolve(made("three"))', 'three'],
    ['a function', 'export default () => made("four")', 'four'],
    ['an async function', 'export async function server() { return made("five") }', 'five'],
    [
      'something else as default',
      'export default { port: 1 }; export const server = made("six")',
      'six',
    ],
  ])('with %s', async (kind, code, name) => {
    expect(await nameOf(file(`${kind}.mjs`, SERVER + code))).toBe(name)
  })
  it('that is CommonJS', async () => {
    const path = file(
      'common.cjs',
      `exports.server = import('ccmcp').then(({ createServer, tool }) => createServer({ name: 'common', version: '1', tools: [tool({ name: 'hi', run: () => 'hi' })] }))`,
    )
    expect(await nameOf(path)).toBe('common')
  })
  it.each([
    ['the launcher', ccmcp],
    ['npx', cli],
  ])('that prints cannot corrupt the stream, with %s', async (_, run) => {
    const { stdout, stderr } = await run(
      ['serve', OFFER],
      lines(...HANDSHAKE, call(1, 'print')),
      quiet,
    )
    expect(
      stdout
        .split('\n')
        .filter(Boolean)
        .map((line) => (JSON.parse(line) as { id: number }).id),
    ).toEqual([0, 1])
    expect(stderr).toContain('printed while loading\n')
    expect(stderr).toContain('printed by a tool\n')
  })
  it.each([
    ['the launcher', ccmcp],
    ['npx', cli],
  ])('that serves itself also works with %s', async (_, run) => {
    const code = `${SERVER}import { serveStdio } from ${JSON.stringify(pathToFileURL(`${ROOT}dist/stdio.js`).href)}\nconsole.log('loud')\nawait serveStdio(made('self'))`
    const { stdout, stderr } = await run(['serve', file('self.mjs', code)], lines(ping(1)))
    expect([stdout, stderr]).toEqual([`${pong(1)}\n`, expect.stringContaining('loud\n')])
  })
  it('respects the options of serve', async () => {
    const args = [
      '--invalid-arguments',
      'protocol',
      '--unexpected-errors',
      'protocol',
      '--unsupported-revision',
      'reject',
    ]
    const bad = lines(...HANDSHAKE, call(1, 'sum', { a: 'x' }), call(2, 'fail'))
    const { stdout } = await ccmcp(['serve', OFFER, ...args], bad, quiet)
    expect(stdout).toContain('"id":1,"error":{"code":-32602')
    expect(stdout).toContain(
      '"id":2,"result":{"content":[{"type":"text","text":"As planned."}],"isError":true}',
    )
    const unknown = lines(HANDSHAKE[0].replace('2025-11-25', '1999-01-01'))
    expect((await ccmcp(['serve', OFFER, ...args], unknown, quiet)).stdout).toContain(
      '"error":{"code":-32602',
    )
    expect((await ccmcp(['serve', OFFER], unknown, quiet)).stdout).toContain(
      '"protocolVersion":"2025-11-25"',
    )
  })

  const advice =
    'Export what createServer returns, as default or as "server"; if it starts its own transport, run it with node'
  it.each([
    ['nothing.mjs', '', 2, `exports no server (it exports nothing). ${advice}${see('serve ')}`],
    [
      'value.mjs',
      'export default { tools: [] }; export const x = 1',
      2,
      `exports no server (it exports default, x). ${advice}${see('serve ')}`,
    ],
    [
      'class.mjs',
      'export default class Server {}',
      2,
      `exports no server (it exports default). ${advice}${see('serve ')}`,
    ],
    [
      'null.mjs',
      'export default null; export const server = () => undefined',
      2,
      'exports no server',
    ],
    [
      'busy.mjs',
      'setInterval(() => {}, 1000); export const x = 1',
      2,
      'exports no server (it exports x)',
    ],
    ['throws.mjs', 'throw new Error("boom")', 1, 'throws.mjs:\nError: boom\n    at file://'],
    [
      'maker.mjs',
      'export default () => { throw new TypeError("no luck") }',
      1,
      'failed:\nTypeError: no luck\n    at default (file://',
    ],
    ['wrong.mjs', 'const x = {;', 1, 'SyntaxError: Unexpected token'],
    ['needs.mjs', 'import "no-such-package"', 1, "Cannot find package 'no-such-package'"],
    [
      'hangs.mjs',
      'await new Promise(() => {})',
      1,
      'never finishes loading: it awaits a promise that never settles\n',
    ],
    [
      'promises.mjs',
      'export default new Promise(() => {})',
      1,
      'never finishes loading: it awaits a promise that never settles\n',
    ],
    ['data.json', '{}', 1, 'Cannot load '],
    ['notes.txt', 'hello', 2, 'is not a JavaScript module'],
  ])('%s is rejected', async (name, code, exitCode, message) => {
    for (const run of [ccmcp, cli]) {
      const outcome = await run(['serve', file(name, code)])
      expect(outcome).toMatchObject({
        code: exitCode,
        stdout: '',
        stderr: expect.stringContaining(message) as unknown,
      })
      expect(outcome.stderr).not.toContain('node:internal')
      expect(outcome.stderr).not.toContain('/dist/')
    }
  })
  it('that is TypeScript is served, or the error says how', async () => {
    const path = file(
      'typed.ts',
      `${SERVER}const name: string = 'typed'\nexport default made(name)`,
    )
    if ((process.features as { typescript?: unknown }).typescript)
      expect(await nameOf(path)).toBe('typed')
    else {
      const { stderr, code } = await ccmcp(['serve', path])
      expect(stderr).toContain(
        `is TypeScript, which Node ${process.version} cannot run. Use Node 22.18 or later, compile it`,
      )
      expect(code).toBe(2)
    }
  })
  it.each([
    ['is not there', 'missing.mjs', 'ENOENT: no such file or directory'],
    ['is a folder', 'sub', 'is not a file; pass the module that exports the server'],
  ])('that %s is rejected', async (_, name, message) => {
    mkdirSync(join(folder, 'sub'), { recursive: true })
    const { stderr, code } = await ccmcp(['serve', join(folder, name)])
    expect(stderr).toContain(message)
    expect(code).toBe(2)
  })
  it.runIf(process.getuid?.() !== 0)('without read permission is rejected', async () => {
    const path = file('secret.mjs', SERVER)
    rmSync(path)
    writeFileSync(path, SERVER, { mode: 0o000 })
    const { stderr, code } = await ccmcp(['serve', path])
    expect(stderr).toContain('EACCES')
    expect(code).toBe(1)
  })
})

describe('invalid arguments of serve', () => {
  it.each([
    [['serve', 'gramar'], 'Unknown server "gramar"; did you mean grammar?'],
    [
      ['serve', 'zzzzzzzz'],
      'Unknown server "zzzzzzzz"; expected ccmcp, grammar, text, or a file such as ./server.js',
    ],
    [
      ['serve', 'constructor'],
      'Unknown server "constructor"; expected ccmcp, grammar, text, or a file such as ./server.js',
    ],
    [['serve', 'text', 'grammar'], 'Unknown argument "grammar"'],
    [
      ['serve', '--', 'node'],
      expect.stringMatching(/^This command takes no "--"; usage: ccmcp serve/),
    ],
    [['serve', '--tools', 'hell'], 'Unknown tool "hell"; did you mean hello?'],
    [
      ['serve', OFFER, '--exclude-tools', 'zzzzzz'],
      expect.stringContaining('Unknown tool "zzzzzz"; expected sum, fail'),
    ],
    [['serve', '--tools', ','], '--tools needs at least one value'],
    [
      ['serve', '--root', '/no/such/folder'],
      `--root: cannot access "/no/such/folder": ENOENT: no such file or directory, stat '/no/such/folder'`,
    ],
    [
      ['serve', '--root', `${ROOT}package.json`],
      `--root: "${ROOT}package.json" is not a directory`,
    ],
    [['serve', 'text', '--root', '/tmp'], '--root is an option of the ccmcp server only'],
    [['serve', OFFER, '--read-only'], '--read-only is an option of the ccmcp server only'],
    [
      ['serve', '--log-file', '/no/such/file'],
      `--log-file: cannot write to "/no/such/file": ENOENT: no such file or directory, open '/no/such/file'`,
    ],
    [['serve', '--max-message', '0'], '--max-message must be a number of bytes, not "0"'],
    [['serve', '--max-message', '1e6'], '--max-message must be a number of bytes, not "1e6"'],
  ])('%j', async (args, problem: unknown) => {
    const { stdout, stderr, code } = await ccmcp(args)
    expect([stdout, code], stderr).toEqual(['', 2])
    expect(stderr.slice('ccmcp: '.length, -see('serve ').length)).toEqual(problem)
    expect(stderr.endsWith(see('serve ')), stderr).toBe(true)
  })
})
