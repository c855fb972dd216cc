import { mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { captureHeader, chunkRecord, encodeRecord } from '../../src/capture/format.js'
import { FAULTY } from '../check/live.js'
import { cli } from './command.js'

let folder = ''
let file = ''
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'ccmcp-check-'))
  file = join(folder, 'x.ndjson')
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

/** What a server wrote, and that it has exited. */
function writeCapture(output: string): void {
  const records = [
    captureHeader(new Date(0), 'test'),
    chunkRecord('out', 1, 0, new TextEncoder().encode(output)),
    { type: 'event', event: 'exit', ns: 2, code: 0 } as const,
  ]
  writeFileSync(file, records.map(encodeRecord).join(''))
}
const PONG = '{"jsonrpc":"2.0","method":"notifications/x"}\n'

it.each([
  ['nothing', PONG, [], 0],
  ['a note', `${PONG}\n`, [], 0],
  ['a note', `${PONG}\n`, ['--fail-on', 'info'], 1],
  ['a note', `${PONG}\n`, ['--fail-on', 'warning'], 0],
  ['an error', 'hello\n', [], 1],
  ['an error', 'hello\n', ['--fail-on', 'info'], 1],
])('ccmcp check of a capture with %s %# exits as documented', async (_, output, args, code) => {
  writeCapture(output)
  expect((await cli(['check', file, ...args])).code).toBe(code)
})

it('ccmcp check prints findings as text', async () => {
  writeCapture('hello\n')
  const { stdout, stderr } = await cli(['check', file])
  expect(stdout).toContain('    error stray-text, bytes 0-5\n')
  expect(stdout).toContain('errors: 1, warnings: 0, notes: 0\n')
  expect(stderr).toBe(`ccmcp: ${file}: 1 finding of severity error\n`)
})

it('ccmcp check prints findings as JSON', async () => {
  writeCapture('hello\n')
  const { stdout } = await cli(['check', file, '--format', 'json'])
  expect(JSON.parse(stdout)).toMatchObject({
    capture: file,
    complete: true,
    counts: { error: 1, warning: 0, info: 0 },
    findings: [
      { rule: 'stray-text', severity: 'error', dir: 'out', start: 0, end: 5, fix: /stderr/ },
    ].map((finding) => ({ ...finding, fix: expect.stringMatching(finding.fix) as string })),
  })
})

it('ccmcp check rejects what is no capture', async () => {
  writeFileSync(file, 'x\n')
  const { stderr, code } = await cli(['check', file])
  expect(stderr).toContain('it is not a capture')
  expect(code).toBe(2)
})

it('ccmcp check of a capture prints SARIF with the line of the chunk', async () => {
  writeCapture(`${PONG}hello\n`)
  const { stdout, code } = await cli(['check', file, '--format', 'sarif'])
  expect(code).toBe(1)
  expect(JSON.parse(stdout)).toMatchObject({
    runs: [
      {
        results: [
          {
            ruleId: 'stray-text',
            locations: [
              { physicalLocation: { artifactLocation: { uri: file }, region: { startLine: 2 } } },
            ],
            properties: { direction: 'out', startByte: PONG.length, endByte: PONG.length + 5 },
          },
        ],
      },
    ],
  })
})

it('ccmcp check hides the findings of a baseline', async () => {
  writeCapture('hello\n')
  const baseline = join(folder, 'baseline.json')
  const missing = await cli(['check', file, '--baseline', baseline])
  expect(missing.stderr).toContain(`Create it with --baseline ${baseline} --update-baseline`)
  expect(missing.code).toBe(2)
  expect((await cli(['check', file, '--baseline', baseline, '--update-baseline'])).code).toBe(0)
  const { code, stdout } = await cli(['check', file, '--baseline', baseline])
  expect(stdout).toContain('errors: 0, warnings: 0, notes: 0, known: 1\n')
  expect(code).toBe(0)
})

it.each([
  [['check'], 'Missing CAPTURE or SERVER'],
  [['check', 'http://127.0.0.1:9/mcp', '--captures', 'x'], '--captures is for servers on stdio'],
  [['check', 'x.ndjson', '--allow-calls'], '--allow-calls is for a server'],
  [['check', 'x.ndjson', '--p95', 'fast'], '--p95 must be a number'],
  [['check', 'ccmcp', '--header', 'a: b'], '--header is for a server at a URL'],
  [['check', 'x.ndjson', '--', 'node'], 'Both a server'],
])('ccmcp %j is refused', async (args, message) => {
  const { stderr, code } = await cli(args)
  expect(stderr).toContain(message)
  expect(code).toBe(2)
})

it('ccmcp check of a server that cannot be started exits with 3 and says why', async () => {
  const { stderr, code } = await cli(['check', '--', process.execPath, FAULTY, 'does not start'])
  expect(stderr).toContain('no configuration')
  expect(code).toBe(3)
})

it('ccmcp check of a server locks its definitions, keeps captures and writes JUnit', async () => {
  const lock = join(folder, 'lock.json')
  const captures = join(folder, 'captures')
  const server = ['--', process.execPath, FAULTY]
  const first = await cli([
    'check',
    '--lock',
    lock,
    '--update-lock',
    '--captures',
    captures,
    '--fail-on',
    'info',
    ...server,
  ])
  expect(first.stderr).toBe('')
  expect(first.code).toBe(0)
  expect(first.stdout).toMatch(/^initialize 2024-11-05 +ok, \d+ ms \(negotiated 2024-11-05\)$/m)
  expect(first.stdout).toContain('tools: 2, ')
  expect(readdirSync(captures)).toContain('initialize-2025-11-25.ndjson')
  const capture = await cli([
    'check',
    join(captures, 'initialize-2025-11-25.ndjson'),
    '--lock',
    lock,
  ])
  expect(capture.code).toBe(0)
  writeFileSync(lock, readFileSync(lock, 'utf8').replace('"look"', '"hook"'))
  const changed = await cli([
    'check',
    '--lock',
    lock,
    '--format',
    'junit',
    '--expect-tool',
    'look',
    ...server,
  ])
  expect(changed.code).toBe(1)
  expect(changed.stdout).toContain('<testcase ')
  expect(changed.stdout).toContain('tool &quot;hook&quot; was removed')
  expect(changed.stdout).not.toContain('expected-tool')
})
