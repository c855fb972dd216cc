import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterAll, beforeEach, describe, expect, it } from 'vitest'
import { connect, stdio } from '../../src/client.js'
import { unwrap, wrap } from '../../src/cli/wrap.js'
import { ROOT, TOOLS } from '../stdio/child.js'
import { CLI, type Outcome, cli } from './command.js'

/* ccmcp wrap and unwrap, with the files of a home directory. */

const folder = mkdtempSync(join(tmpdir(), 'ccmcp-wrap-'))
const home = join(folder, 'home')
const project = join(folder, 'project')
const environment = {
  PATH: process.env['PATH'] ?? '',
  HOME: home,
  XDG_STATE_HOME: join(folder, 'state'),
  XDG_CONFIG_HOME: '',
}
afterAll(() => rmSync(folder, { recursive: true, force: true }))
beforeEach(() => {
  rmSync(folder, { recursive: true, force: true })
  for (const each of [home, project]) mkdirSync(each, { recursive: true })
})

const run = (...args: string[]): Promise<Outcome> =>
  cli(args, '', { cwd: project, env: environment })

function write(path: string, content: unknown): string {
  mkdirSync(dirname(path), { recursive: true })
  writeFileSync(
    path,
    typeof content === 'string' ? content : `${JSON.stringify(content, null, 2)}\n`,
  )
  return path
}
const read = (path: string) => readFileSync(path, 'utf8')

interface Config {
  mcpServers: Record<string, { command: string; args: string[] }>
}

it('records a server that the host starts, until it is unwrapped', async () => {
  const server = { command: process.execPath, args: [TOOLS] }
  const path = write(join(home, '.cursor', 'mcp.json'), { mcpServers: { offer: server } })
  const before = read(path)
  const wrapped = await run('wrap', 'offer', '--host', 'cursor')
  expect(wrapped).toEqual({
    code: 0,
    stderr: '',
    stdout: `offer: wrapped in ${path}\nRestart the host; "ccmcp view -f" then shows what is recorded.\n`,
  })
  const { offer } = (JSON.parse(read(path)) as Config).mcpServers
  expect(offer).toEqual({
    command: process.execPath,
    args: [CLI, 'tap', '--', process.execPath, TOOLS],
  })
  const client = await connect(stdio(offer?.command ?? '', offer?.args ?? [], { env: environment }))
  expect(client.server?.name).toBeDefined()
  await client.close()
  expect(readdirSync(join(folder, 'state', 'ccmcp', 'captures'))).toHaveLength(1)

  const unwrapped = await run('unwrap', '--all', '--host', 'cursor')
  expect(unwrapped).toEqual({ code: 0, stderr: '', stdout: `offer: unwrapped in ${path}\n` })
  expect(read(path)).toBe(before)
})

it('shows a diff with --dry-run, and changes nothing', async () => {
  const path = write(join(project, '.mcp.json'), { mcpServers: { a: { command: 'x', args: [] } } })
  const before = read(path)
  const { stdout, code } = await run('wrap', 'a', '--host', 'claude-code', '--dry-run')
  expect(code).toBe(0)
  expect(stdout).toBe(
    `--- ${path}
+++ ${path}
@@ -1,8 +1,8 @@
 {
   "mcpServers": {
     "a": {
-      "command": "x",
-      "args": []
+      "command": ${JSON.stringify(process.execPath)},
+      "args": [${JSON.stringify(CLI)}, "tap", "--", "x"]
     }
   }
 }
a: would be wrapped in ${path}
`,
  )
  expect(read(path)).toBe(before)
  expect(readdirSync(folder).toSorted()).toEqual(['home', 'project'])
})

it('changes a server where the host finds it first', async () => {
  const entry = { command: 'x', args: ['1'] }
  const user = write(join(home, '.claude.json'), {
    mcpServers: { a: entry, b: entry, c: entry },
    projects: { [project]: { mcpServers: { a: entry } } },
  })
  const own = write(join(project, '.mcp.json'), { mcpServers: { b: entry } })
  const before = [user, own].map(read)
  const { stdout } = await run('wrap', 'a', 'b', 'c', '--host', 'claude-code')
  expect(stdout.split('\n').slice(0, 3)).toEqual([
    `a: wrapped in ${user}`,
    `b: wrapped in ${own}`,
    `c: wrapped in ${user}`,
  ])
  const { mcpServers, projects } = JSON.parse(read(user)) as Config & {
    projects: Record<string, Config>
  }
  expect(mcpServers['a']).toEqual(entry)
  expect(mcpServers['b']).toEqual(entry)
  expect(mcpServers['c']?.args).toContain('tap')
  expect(projects[project]?.mcpServers['a']?.args).toContain('tap')
  await run('unwrap', '--all', '--host', 'claude-code')
  expect([user, own].map(read)).toEqual(before)
})

it('says so if nothing is to be done', async () => {
  const path = write(join(project, 'x.toml'), '[mcp_servers.a]\ncommand = "x"\n')
  await run('wrap', 'a', '--host', 'x.toml')
  expect(await run('wrap', 'a', '--host', 'x.toml')).toEqual({
    code: 0,
    stderr: '',
    stdout: 'a: is wrapped already\n',
  })
  await run('unwrap', 'a', '--host', './x.toml')
  expect(await run('unwrap', 'a', '--host', path)).toEqual({
    code: 0,
    stderr: '',
    stdout: 'a: is not wrapped\n',
  })
})

it('wraps once if it is started several times at once', async () => {
  const servers = Object.fromEntries(['a', 'b', 'c'].map((name) => [name, { command: name }]))
  const path = write(join(project, 'mcp.json'), { mcpServers: servers })
  const before = read(path)
  const outcomes = await Promise.all(
    ['a', 'b', 'c', 'a'].map((name) => run('wrap', name, '--host', 'mcp.json')),
  )
  expect(outcomes.map(({ code, stderr }) => [code, stderr])).toEqual(outcomes.map(() => [0, '']))
  const { mcpServers } = JSON.parse(read(path)) as Config
  for (const { args } of Object.values(mcpServers))
    expect(args.filter((word) => word === 'tap')).toHaveLength(1)
  await run('unwrap', '--all', '--host', 'mcp.json')
  expect(read(path)).toBe(before)
})

describe('is refused', () => {
  beforeEach(() => {
    write(join(home, '.gemini', 'settings.json'), {
      mcpServers: {
        web: { httpUrl: 'https://example.com/mcp?key=secret' },
        local: { command: 'x' },
      },
    })
  })
  it.each<[what: string, args: string[], code: number, message: RegExp]>([
    ['without a host', ['a'], 2, /Missing --host: claude-code, .*goose, or the path of a file/],
    [
      'for an unknown host',
      ['a', '--host', 'gemni'],
      2,
      /Unknown host "gemni"; did you mean gemini\?/,
    ],
    [
      'without names',
      ['--host', 'gemini'],
      2,
      /Name the servers, or pass --all; .*settings.json has web, local/,
    ],
    [
      'with names and --all',
      ['a', '--all', '--host', 'gemini'],
      2,
      /Pass names or --all, not both/,
    ],
    [
      'for an unknown server',
      ['lokal', '--host', 'gemini'],
      1,
      /There is no server "lokal": .* has web, local/,
    ],
    [
      'for a host that is not configured',
      ['a', '--host', 'zed'],
      1,
      /There is no configuration of zed: .*settings\.json/,
    ],
    [
      'for a server at a URL',
      ['local', 'web', '--host', 'gemini'],
      1,
      /"web" is at a URL; only commands can be wrapped\. To record it, run "ccmcp tap URL".*Nothing was changed/,
    ],
  ])('%s', async (_, args, code, message) => {
    const before = read(join(home, '.gemini', 'settings.json'))
    const outcome = await run('wrap', ...args)
    expect(outcome.stderr).toMatch(message)
    expect([outcome.code, outcome.stdout]).toEqual([code, ''])
    expect(outcome.stderr).not.toContain('secret')
    expect(read(join(home, '.gemini', 'settings.json'))).toBe(before)
  })

  it('only with a warning for those at a URL if all servers are meant', async () => {
    const { code, stdout, stderr } = await run('wrap', '--all', '--host', 'gemini')
    expect(code).toBe(0)
    expect(stdout).toContain('local: wrapped')
    expect(stderr).toContain('"web" is at a URL')
  })

  it('for a file with an error, which is not changed', async () => {
    const path = write(
      join(project, '.cursor', 'mcp.json'),
      '{ "mcpServers": { "a": { "command": "x" } }\n',
    )
    const before = read(path)
    const { code, stderr } = await run('wrap', 'a', '--host', 'cursor')
    expect(stderr).toBe(
      `ccmcp: ${path}: it is not valid JSON: line 2, column 1: expected "," or "}". It was not changed\n`,
    )
    expect(code).toBe(1)
    expect(read(path)).toBe(before)
  })
})

it('has its options in docs/tap.md', () => {
  const page = readFileSync(`${ROOT}docs/tap.md`, 'utf8')
  for (const { options } of [wrap, unwrap])
    for (const [name, option] of Object.entries(options)) {
      if (name === 'help') continue
      const shown = 'value' in option ? ` ${String(option.value)}` : ''
      expect(page).toContain(`\n- \`--${name}${shown}\`: ${option.description}\n`)
    }
})

describe('a configuration that is read-only', () => {
  const config = { mcpServers: { b: { command: 'x', args: [] } } }

  it.each([[[]], [['--dry-run']]])('is refused: %j', async (options) => {
    const path = write(join(project, '.mcp.json'), config)
    const before = read(path)
    chmodSync(path, 0o444)
    const { code, stdout, stderr } = await run('wrap', 'b', '--host', 'claude-code', ...options)
    expect(code).toBe(1)
    expect(stdout).toBe('')
    expect(stderr).toContain(`${path}: it is read-only`)
    expect(read(path)).toBe(before)
  })

  it('is refused before another file is changed, unless it need not be changed', async () => {
    const other = write(join(home, '.claude.json'), {
      mcpServers: {},
      projects: { [project]: { mcpServers: { a: { command: 'x', args: [] } } } },
    })
    const path = write(join(project, '.mcp.json'), config)
    const before = [other, path].map(read)
    chmodSync(path, 0o444)
    const both = await run('wrap', 'a', 'b', '--host', 'claude-code')
    expect(both.code).toBe(1)
    expect(both.stderr).toContain(`${path}: it is read-only`)
    expect([other, path].map(read)).toEqual(before)
    const { code, stdout } = await run('wrap', 'a', '--host', 'claude-code')
    expect([code, stdout.split('\n')[0]]).toEqual([0, `a: wrapped in ${other}`])
    expect(read(path)).toBe(before[1])
  })
})

it('names both hosts that "claude" may mean, and each file once', async () => {
  expect((await run('wrap', 'a', '--host', 'claude')).stderr).toContain(
    'Unknown host "claude"; did you mean claude-code or claude-desktop?',
  )
  const { stderr } = await run('wrap', 'a', '--host', 'claude-code')
  const paths =
    /: (.*)/
      .exec(stderr.split('claude-code')[1] ?? '')?.[1]
      ?.trim()
      .split(', ') ?? []
  expect(paths).toHaveLength(2)
  expect(new Set(paths).size).toBe(2)
})

it('shows names, paths and the diff of a hostile project without their control characters', async () => {
  const name = 'a\u001b]0;owned\u0007\u009b31m\u202e\nfine: wrapped in /etc/hosts'
  const path = write(
    join(project, '.mcp.json'),
    JSON.stringify({ mcpServers: { [name]: { command: 'x', args: ['\u001b[2J'] } } })
      // As it is, not escaped: JSON allows it.
      .replaceAll('\\u001b', '\u009b'),
  )
  for (const args of [
    ['wrap', '--all', '--dry-run'],
    ['wrap', 'other'],
    ['wrap', '--all'],
    ['wrap', '--all'],
    ['unwrap', '--all'],
  ]) {
    const { stdout, stderr } = await run(...args, '--host', 'claude-code')
    expect(stdout + stderr, args.join(' ')).not.toMatch(
      // oxlint-disable-next-line no-control-regex -- these must not be there
      /[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u202e]|^fine/mu,
    )
    expect(stdout + stderr).toContain('\\nfine: wrapped')
  }
  expect(read(path)).toContain('\u009b')
})
