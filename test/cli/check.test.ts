import { mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { createServer as createHttp } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import {
  CaptureReader,
  type ChunkRecord,
  captureHeader,
  chunkRecord,
  encodeRecord,
} from '../../src/capture/format.js'
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
  ['info', `${PONG}\n`, [], 0],
  ['info', `${PONG}\n`, ['--fail-on', 'info'], 1],
  ['info', `${PONG}\n`, ['--fail-on', 'warning'], 0],
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
  expect(stdout).toContain('errors: 1, warnings: 0, info: 0\n')
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

it('ccmcp check rejects a directory', async () => {
  const { code, stdout, stderr } = await cli(['check', folder])
  expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
  expect(stderr).toContain(`Cannot read ${folder}: it is a directory; name a capture in it`)
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
  expect(stdout).toContain('errors: 0, warnings: 0, info: 0, known: 1\n')
  expect(code).toBe(0)
})

/** A session in which a host lists some of what the server has. */
function writeSession(...messages: readonly (readonly [dir: 'in' | 'out', message: object])[]) {
  const version = '2025-11-25'
  const clientInfo = { name: 'c', version: '1' }
  const capabilities = { tools: {}, prompts: {} }
  const all: typeof messages = [
    [
      'in',
      {
        id: 0,
        method: 'initialize',
        params: { protocolVersion: version, capabilities: {}, clientInfo },
      },
    ],
    ['out', { id: 0, result: { protocolVersion: version, capabilities, serverInfo: clientInfo } }],
    ['in', { method: 'notifications/initialized' }],
    ...messages,
  ]
  const offsets = { in: 0, out: 0 }
  const chunks = all.map(([dir, message], ns) => {
    const bytes = new TextEncoder().encode(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`)
    offsets[dir] += bytes.length
    return chunkRecord(dir, ns, offsets[dir] - bytes.length, bytes)
  })
  const exit = { type: 'event', event: 'exit', ns: 100, code: 0 } as const
  const records = [captureHeader(new Date(0), 'test'), ...chunks, exit]
  writeFileSync(file, records.map(encodeRecord).join(''))
}
const tool = (name: string, description = '') => ({
  name,
  description,
  inputSchema: { type: 'object' },
})
const listTools = ['in', { id: 1, method: 'tools/list' }] as const

it('ccmcp check of a capture does not report as removed what the host did not list', async () => {
  const lock = join(folder, 'lock.json')
  const args = ['check', file, '--lock', lock]
  const prompts = ['in', { id: 2, method: 'prompts/list' }] as const
  const all = { id: 1, result: { tools: [tool('a'), tool('b')] } }
  writeSession(listTools, ['out', all], prompts, [
    'out',
    { id: 2, result: { prompts: [{ name: 'p' }] } },
  ])
  expect(await cli([...args, '--update-lock'])).toMatchObject({ code: 0, stderr: '' })
  expect(await cli(args)).toMatchObject({ code: 0, stderr: '' })

  writeSession(listTools, ['out', all])
  const unlisted = await cli([...args, '--expect-tool', 'a'])
  expect(unlisted.stderr).toContain(
    `${file} does not contain the complete list of prompts; missing ones`,
  )
  expect(unlisted.stderr.split('\n').length).toBe(2)
  expect(unlisted.code).toBe(0)
  const missing = await cli(['check', file, '--expect-tool', 'c'])
  expect(missing.stdout).toContain('expected-tool')
  expect(missing.code).toBe(1)

  writeSession(['in', { id: 1, method: 'tools/call', params: { name: 'a' } }])
  const nothing = await cli([...args, '--expect-tool', 'a'])
  expect(nothing.stderr).toContain(
    'does not contain the complete list of tools, prompts; missing ones',
  )
  expect(nothing.code).toBe(0)

  const page = { id: 1, result: { tools: [tool('a', 'Changed.')], nextCursor: 'c' } }
  writeSession(listTools, ['out', page])
  const partial = await cli([...args, '--expect-tool', 'b'])
  expect(partial.stdout).toContain('tool "a" /description: "" → "Changed."')
  expect(partial.stdout).not.toContain('"b"')
  expect(partial.stderr).toContain('does not contain the complete list of tools, prompts')
  const updated = await cli([...args, '--update-lock'])
  expect(updated.stderr).toBe(
    `ccmcp: ${file} does not contain the complete list of tools; the lock file contains only those that were listed\n`,
  )
})

it('ccmcp check says that a capture lacks something', async () => {
  writeCapture(PONG)
  writeFileSync(file, `${readFileSync(file, 'utf8')}{"type":"chunk","dir":"ou`)
  const { stderr, code } = await cli(['check', file, '--format', 'json'])
  expect(stderr).toContain('part of the traffic was not recorded')
  expect(code).toBe(0)
})

it.each([
  [['check'], 'Missing CAPTURE or SERVER'],
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

const RESULTS: Readonly<Record<string, object>> = {
  initialize: {
    protocolVersion: '2025-11-25',
    capabilities: {},
    serverInfo: { name: 'x', version: '1' },
  },
  ping: {},
}

/** A server that responds with JSON to a ping, else with an event stream; it has a wrong error code. */
async function serveBadly(): Promise<{ url: string; close(): void }> {
  const server = createHttp(async (request, response) => {
    const text = Buffer.concat(await request.toArray()).toString()
    if (request.method !== 'POST') return void response.writeHead(405).end()
    const [, id, method = ''] = /"id":(-?\d+|"(?:[^"\\]|\\.)*"),"method":"([^"]*)"/.exec(text) ?? []
    if (id === undefined) return void response.writeHead(202).end()
    const result = RESULTS[method]
    const answer = result === undefined ? { error: { code: -1, message: 'no' } } : { result }
    const message = JSON.stringify({ jsonrpc: '2.0', id: JSON.parse(id) as unknown, ...answer })
    const isStream = method !== 'ping'
    response.writeHead(200, { 'content-type': isStream ? 'text/event-stream' : 'application/json' })
    response.end(isStream ? `: first\n\nid: 7\ndata: ${message}\n\n` : message)
  })
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve)
  })
  const { port } = server.address() as AddressInfo // it listens on a port
  return {
    url: `http://127.0.0.1:${port}/mcp`,
    close() {
      server.close()
      server.closeAllConnections()
    },
  }
}

it('ccmcp check of a URL keeps captures; findings have their bytes, and headers of the user are not recorded', async () => {
  const { url, close } = await serveBadly()
  const captures = join(folder, 'captures')
  const { stdout } = await cli([
    'check',
    url,
    '--captures',
    captures,
    '--header',
    'X-Key: secret',
    '--format',
    'sarif',
    '--timeout',
    '60',
  ])
  close()
  const path = join(captures, 'unknown-method-2025-11-25.ndjson')
  const content = readFileSync(path, 'utf8')
  expect(content).not.toContain('secret')
  expect(content).toContain('["x-key","(not recorded)"]')
  const reader = new CaptureReader()
  const records = [...reader.push(readFileSync(path)), ...reader.end()]
  expect(records[0]).toMatchObject({ type: 'capture', transport: 'http' })
  expect(records.at(-1)).toMatchObject({ type: 'event', event: 'exit' })
  const { runs } = JSON.parse(stdout) as {
    runs: {
      results: {
        ruleId: string
        locations: { physicalLocation: { region: { startLine: number } } }[]
        properties: { startByte: number; endByte: number }
      }[]
    }[]
  } // SARIF
  const found = runs[0]?.results.find(({ ruleId }) => ruleId === 'unknown-method-code')
  const line = found?.locations[0]?.physicalLocation.region.startLine ?? 0
  const chunk = records[line - 1] as ChunkRecord // a record is a line
  expect(chunk).toMatchObject({ type: 'chunk', dir: 'out' })
  const { startByte = 0, endByte } = found?.properties ?? {}
  expect(chunk.text?.slice(startByte - chunk.offset, endByte)).toMatch(
    /^\{"jsonrpc":"2.0","id":\d,"error":\{"code":-1,"message":"no"\}\}$/,
  )
  const checked = await cli(['check', path, '--fail-on', 'info'])
  expect(checked.stdout).toContain('errors: 0, warnings: 0, info: 0\n')
  expect(checked.stderr).toBe('')
})
