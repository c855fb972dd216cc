import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { escaped, hasColors, render, styled } from '../../src/cli/print.js'
import { CCMCP } from '../stdio/child.js'
import { ccmcp, server } from './command.js'

const node = (...args: string[]) => ['--', process.execPath, ...args]
const EVIL =
  'a\u0007b\u009b31m\u202e\u200e\u200f\u061c\u2067\u007f\u200b\u2028\u2060\ufeff\u{e0041}\rc\td\ne'
const SAFE =
  'a\\u0007b\\u009b31m\\u202e\\u200e\\u200f\\u061c\\u2067\\u007f\\u200b\\u2028\\u2060\\ufeff\\udb40\\udc41\\u000dc\td\ne'
/** Characters that must not reach a terminal. */
// oxlint-disable-next-line no-control-regex -- these are searched for
const CONTROLS =
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff\u{e0000}-\u{e007f}]/u

let folder = ''
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'ccmcp-terminal-'))
})
afterAll(() => rmSync(folder, { recursive: true, force: true }))

describe('text of a server', () => {
  it('is escaped in a terminal and unchanged in a pipe', () => {
    expect(render([EVIL], { isTTY: true }, { NO_COLOR: '1' })).toBe(SAFE)
    expect(render([EVIL], { isTTY: true }, {})).toBe(SAFE)
    expect(render([EVIL], {}, {})).toBe(EVIL)
    expect(render([EVIL], {}, { FORCE_COLOR: '1' })).toBe(SAFE)
    expect(render([styled('name', EVIL)], { isTTY: true }, {})).toBe(`\u001b[36m${SAFE}\u001b[0m`)
  })
  it('keeps its meaning as JSON', () => {
    const json = escaped(JSON.stringify({ [EVIL]: EVIL }))
    expect(json).not.toMatch(CONTROLS)
    expect(JSON.parse(json)).toEqual({ [EVIL]: EVIL })
  })
  it.each([
    [
      'a result',
      [
        'call',
        'x',
        '--json',
        ...node(server('odd'), JSON.stringify({ content: [{ type: 'text', text: EVIL }] })),
      ],
    ],
    ['an error', ['call', 'x', '--json', ...node(server('lists'), 'evil')]],
    ['a list', ['list', '--json', ...node(server('lists'), 'evil')]],
  ])('is escaped in the JSON of %s', async (_, args) => {
    const { stdout } = await ccmcp(args)
    expect(stdout.replaceAll('\n', '')).not.toMatch(CONTROLS)
    expect(JSON.stringify(JSON.parse(stdout))).toContain('\u009b31m\u202e')
  })
  it.runIf(spawnSync('script', ['-qec', 'true', '/dev/null']).status === 0).each([
    ['list', ['list', ...node(server('lists'), 'evil')]],
    ['call', ['call', 'x', ...node(server('lists'), 'evil')]],
    ['call --json', ['call', 'x', '--json', ...node(server('lists'), 'evil')]],
    ['list --verbose', ['list', '--verbose', ...node(server('lists'), 'evil')]],
  ])('is escaped by %s in a real terminal', (_, args) => {
    const line = [CCMCP, ...args].map((word) => `'${word}'`).join(' ')
    const { NO_COLOR, FORCE_COLOR, ...env } = process.env
    void [NO_COLOR, FORCE_COLOR]
    const { stdout } = spawnSync('script', ['-qec', line, '/dev/null'], {
      encoding: 'utf8',
      env: { ...env, TERM: 'xterm' },
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    expect(stdout).toContain('\\u009b31m\\u202e')
    expect(stdout).toContain('\u001b[')
    // oxlint-disable-next-line no-control-regex -- our own colors
    expect(stdout.replaceAll('\r\n', '').replaceAll(/\u001b\[\d+m/g, '')).not.toMatch(CONTROLS)
  })
})

it.each<[string, boolean, NodeJS.ProcessEnv, boolean]>([
  ['a terminal', true, {}, true],
  ['a pipe', false, {}, false],
  ['NO_COLOR', true, { NO_COLOR: '1' }, false],
  ['an empty NO_COLOR', true, { NO_COLOR: '' }, true],
  ['FORCE_COLOR', false, { FORCE_COLOR: '1' }, true],
  ['an empty FORCE_COLOR', false, { FORCE_COLOR: '' }, true],
  ['FORCE_COLOR=0', true, { FORCE_COLOR: '0' }, false],
  ['FORCE_COLOR before NO_COLOR, as Node has it', false, { FORCE_COLOR: '3', NO_COLOR: '1' }, true],
  ['a dumb terminal', true, { TERM: 'dumb' }, false],
])('colors: %s', (_, isTTY, environment, expected) => {
  expect(hasColors({ isTTY }, environment)).toBe(expected)
})

describe('ccmcp list', () => {
  it('prints the lists that succeeded and reports those that failed', async () => {
    const { stdout, stderr, code } = await ccmcp(['list', ...node(server('lists'), 'failing')])
    expect(stdout).toContain('Tools\n  t\n')
    expect(stdout).toContain('Prompts\n  p\n')
    expect(stderr).toBe(
      'ccmcp: resources/list failed: the server returned error -32603: database is down\nresources/templates/list failed: the server returned error -32603: database is down\n',
    )
    expect(code).toBe(1)
    const { stdout: json } = await ccmcp(['list', '--json', ...node(server('lists'), 'failing')])
    expect(JSON.parse(json)).toMatchObject({
      tools: [{ name: 't' }],
      errors: [
        { method: 'resources/list', code: -32603, message: 'database is down' },
        { method: 'resources/templates/list', code: -32603 },
      ],
    })
  })
  const printed = (resourceTemplates: string, errors: string) => `{
  "server": {
    "name": "lists",
    "version": "1"
  },
  "revision": "2026-07-28",
  "capabilities": {
    "tools": {},
    "resources": {},
    "prompts": {}
  },
  "instructions": "Ask me.",
  "tools": [
    {
      "name": "t",
      "inputSchema": {
        "type": "object"
      }
    }
  ],
  "resources": [
    {
      "uri": "a://b",
      "name": "r"
    }
  ],
  "resourceTemplates": ${resourceTemplates},
  "prompts": [
    {
      "name": "p"
    }
  ]${errors}
}
`
  it('prints JSON: exactly these members, in this order', async () => {
    expect(await ccmcp(['list', '--json', ...node(server('lists'), 'full')])).toEqual({
      code: 0,
      stdout: printed(
        '[\n    {\n      "uriTemplate": "a://{b}",\n      "name": "a"\n    }\n  ]',
        '',
      ),
      stderr: '',
    })
  })
  it('prints JSON with the error of the one list that failed', async () => {
    const errors = `,
  "errors": [
    {
      "method": "resources/templates/list",
      "code": -32603,
      "message": "database is down",
      "data": {
        "retry": 5
      }
    }
  ]`
    expect(await ccmcp(['list', '--json', ...node(server('lists'), 'partial')])).toEqual({
      code: 1,
      stdout: printed('[]', errors),
      stderr:
        'ccmcp: resources/templates/list failed: the server returned error -32603: database is down\n',
    })
  })
  it('prints what was received before the connection was lost', async () => {
    const { stdout, stderr, code } = await ccmcp(['list', ...node(server('lists'), 'dying')])
    expect(stdout).toContain('Tools\n  t\n')
    expect(stderr).toContain('resources/list failed: The connection broke: ')
    expect(code).toBe(3)
  })
  it('with hundreds of thousands of arguments is printed', async () => {
    const { stdout, stderr, code } = await ccmcp(['list', ...node(server('lists'), 'wide')])
    expect([stderr, code]).toEqual(['', 0])
    expect(stdout).toContain('tool999')
  })
  it('stops reading an endless list', async () => {
    const { stdout, stderr, code } = await ccmcp(['list', ...node(server('lists'), 'endless')])
    expect(stderr).toBe(
      'ccmcp: tools/list failed: tools/list does not end: the server returned more than 10000 pages\n',
    )
    expect(stdout).toContain('Prompts\n  p\n')
    expect(code).toBe(1)
  })
  it('truncates very long names and texts', async () => {
    const { stdout, code } = await ccmcp(['list', ...node(server('lists'), 'long')])
    expect(stdout).toContain(`  ${'x'.repeat(200)}… (1000000 characters)\n`)
    expect(stdout.length).toBeLessThan(20_000)
    expect(code).toBe(0)
  })
  it('rejects a message that is too large', async () => {
    const { stderr, code } = await ccmcp([
      'list',
      '--max-message',
      '100000',
      ...node(server('lists'), 'long'),
    ])
    expect(stderr).toMatch(/tools\/list failed: Invalid response: .* bytes; the limit is 100000\n/)
    expect(code).toBe(1)
  })
})

describe.each([['list'], ['call x']])('%s warns about invalid lines on stdout', (command) => {
  it('and shows them', async () => {
    const { stderr } = await ccmcp([...command.split(' '), ...node(server('lists'), 'noisy')])
    const warning = (line: string, reason: string) =>
      `ccmcp: the server wrote a line to stdout that is not a protocol message: ${line} (${reason})\n`
    expect(stderr).toContain(
      warning('"Listening on stdio"', 'Parse error: unexpected "L" at position 0'),
    )
    expect(stderr).toContain(
      warning('"{\\"level\\":\\"info\\"}"', 'Invalid Request: "method" is missing'),
    )
    expect(stderr).toContain(
      'ccmcp: stdout is reserved for protocol messages; servers must log to stderr\n',
    )
    expect(stderr.match(/not a protocol message/g)).toHaveLength(5)
    expect(stderr).toContain('further such lines are not shown')
  })
})

describe('a module with a syntax error', () => {
  it.each([
    ['in it', 'bad.mjs', 'bad.mjs:2\n'],
    ['in what it imports', 'imports.mjs', 'bad.mjs:2\n'],
  ])('%s shows the error and its position', async (_, file, place) => {
    writeFileSync(join(folder, 'bad.mjs'), 'export const a = 1\nexport const b = { ;\n')
    writeFileSync(join(folder, 'imports.mjs'), "import './bad.mjs'\nexport default 1\n")
    const { stderr, code } = await ccmcp(['list', join(folder, file)])
    for (const part of [place, 'export const b = { ;', "SyntaxError: Unexpected token ';'"])
      expect(stderr).toContain(part)
    expect(stderr).not.toContain('newer Node')
    expect(code).toBe(3)
  })
  it('also when it is started by node', async () => {
    writeFileSync(join(folder, 'bad.mjs'), 'export const a = 1\nexport const b = { ;\n')
    const { stderr } = await ccmcp(['list', ...node(join(folder, 'bad.mjs'))])
    for (const part of ['bad.mjs:2\n', 'export const b = { ;', "SyntaxError: Unexpected token ';'"])
      expect(stderr).toContain(part)
    expect(stderr).not.toContain('newer Node')
  })
})
