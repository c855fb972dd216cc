import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { captureHeader, chunkRecord, encodeRecord } from '../../src/capture/format.js'
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
