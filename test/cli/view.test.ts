import { spawnSync } from 'node:child_process'
import {
  appendFileSync,
  mkdirSync,
  mkdtempSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import {
  type CaptureRecord,
  type Direction,
  captureHeader,
  chunkRecord,
  encodeRecord,
} from '../../src/capture/format.js'
import { Child, killAll } from '../stdio/child.js'
import { CLI, cli } from './command.js'

let folder = ''
let file = ''
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'ccmcp-view-'))
  file = join(folder, 'x.ndjson')
})
afterEach(async () => {
  await killAll()
  rmSync(folder, { recursive: true, force: true })
})

const START = new Date('2026-01-02T03:04:05.000Z')
const ESC = '\u001b[31m\u202e'

function lines(...all: readonly [Direction, string][]): CaptureRecord[] {
  const offsets = { in: 0, out: 0 }
  return all.map(([dir, text], index) => {
    const bytes = new TextEncoder().encode(`${text}\n`)
    const record = chunkRecord(dir, (index + 1) * 1_500_000, offsets[dir], bytes)
    offsets[dir] += bytes.length
    return record
  })
}
const SESSION = lines(
  [
    'in',
    '{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}',
  ],
  [
    'out',
    '{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}}',
  ],
  ['in', '{"jsonrpc":"2.0","method":"notifications/initialized"}'],
  ['in', '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"add"}}'],
  ['out', `Listening ${ESC}`],
  ['out', '{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"two\\nlines"}}'],
)
const EXIT: CaptureRecord = { type: 'event', event: 'exit', ns: 20_000_000, code: 0 }

function writeCapture(records: readonly CaptureRecord[], path = file): void {
  mkdirSync(dirname(path), { recursive: true })
  writeFileSync(path, [captureHeader(START, 'test'), ...records].map(encodeRecord).join(''))
}
const environment = () => ({ TZ: 'UTC', XDG_STATE_HOME: folder })
const view = (...args: string[]) => cli(['view', ...args], '', { env: environment() })

describe('ccmcp view', () => {
  it('shows messages, events and findings', async () => {
    writeCapture([...SESSION, EXIT])
    const { stdout, stderr, code } = await view(file)
    expect(stdout).toBe(`${file}
03:04:05.001 → 2025-11-25 initialize #0 147 bytes
03:04:05.003 ← 2025-11-25 initialize #0 ok 1.5 ms 135 bytes
03:04:05.004 → 2025-11-25 notifications/initialized 55 bytes
03:04:05.006 → 2025-11-25 tools/call add #1 71 bytes
03:04:05.007 ← -          invalid 19 bytes Listening \\u001b[31m\\u202e
    error stray-text, bytes 135-153
      A line is not a JSON-RPC message; stdin and stdout carry nothing else. Write logs to stderr (console.error), never to stdout.
      https://modelcontextprotocol.io/specification/2025-11-25/basic/transports#stdio
03:04:05.009 ← 2025-11-25 tools/call add #1 error 3.0 ms 72 bytes -32602 two\\nlines
03:04:05.020 · exit code 0
6 frames, 1 error, 0 warnings, 0 info
`)
    expect([stderr, code]).toEqual(['', 0])
  })

  it('shows what matches the filter', async () => {
    writeCapture([...SESSION, EXIT])
    const { stdout } = await view(file, '--filter', 'tool:add status:error')
    expect(stdout.split('\n').slice(1, -2)).toEqual([
      '03:04:05.009 ← 2025-11-25 tools/call add #1 error 3.0 ms 72 bytes -32602 two\\nlines',
    ])
    const bad = await view(file, '--filter', 'speed:1')
    expect(bad.stderr).toContain('ccmcp: --filter: unknown field "speed"')
    expect(bad.code).toBe(2)
  })

  it('shows the newest capture', async () => {
    const captures = join(folder, 'ccmcp', 'captures')
    writeCapture([], join(captures, '20260101T000000000Z-old-1.ndjson'))
    writeCapture([...SESSION, EXIT], join(captures, '20260102T000000000Z-new-1.ndjson'))
    expect((await view()).stdout).toContain('new-1.ndjson\n03:04:05.001 →')
    rmSync(captures, { recursive: true })
    const none = await view()
    expect(none.stderr).toContain('There is no capture in')
    expect(none.code).toBe(1)
  })

  it('reads a capture whose writer was killed', async () => {
    writeCapture([...SESSION, EXIT])
    truncateSync(file, 1000)
    const { stdout, stderr, code } = await view(file)
    expect(stdout).toContain('tools/call add #1 71 bytes no response')
    expect(stdout).toContain('5 frames, 1 error')
    expect(stderr).toContain('the capture is incomplete')
    expect(stderr).toContain('damaged lines of the capture that were skipped: 1')
    expect(code).toBe(0)
  })

  it.each([
    ['an empty file', ''],
    ['another file', '{"name":"x"}\n'],
    ['a later version', '{"type":"capture","version":9,"startedAt":"2026-01-01"}\n'],
  ])('rejects %s', async (_, text) => {
    writeFileSync(file, text)
    const { stderr, code } = await view(file)
    expect(stderr).toMatch(/Cannot read .*(?:not a capture|version 9)/)
    expect(code).toBe(2)
  })

  it('rejects a missing file', async () => {
    const { stderr, code } = await view(join(folder, 'none'))
    expect(stderr).toContain('Cannot read')
    expect(code).toBe(2)
  })

  it('ends when its reader does', async () => {
    const pings = Array.from({ length: 20_000 }, (_, id): [Direction, string] => [
      'in',
      JSON.stringify({ jsonrpc: '2.0', id, method: 'ping' }),
    ])
    writeFileSync(file, [captureHeader(START, 'x'), ...lines(...pings)].map(encodeRecord).join(''))
    const { stdout, stderr } = spawnSync(
      'sh',
      [
        '-c',
        '("$@"; echo "exit code $?" >&2) | head -1',
        'sh',
        process.execPath,
        CLI,
        'view',
        file,
      ],
      { encoding: 'utf8' },
    )
    expect(stdout).toBe(`${file}\n`)
    expect(stderr).toBe('exit code 0\n')
  })

  it('follows a capture until the server has exited', async () => {
    writeCapture(SESSION.slice(0, 1))
    const child = new Child(process.execPath, [CLI, 'view', '-f', file], { env: environment() })
    expect(await child.line(1)).toContain('initialize #0')
    const next = encodeRecord(SESSION[1] ?? EXIT)
    appendFileSync(file, next.slice(0, 50))
    appendFileSync(file, next.slice(50))
    expect(await child.line(2)).toContain('← 2025-11-25 initialize #0 ok')
    appendFileSync(file, encodeRecord(EXIT))
    await child.closed()
    expect(child.lines.at(-1)).toContain('2 frames')
  })

  it('waits for captures and follows the newest', async () => {
    const captures = join(folder, 'ccmcp', 'captures')
    const child = new Child(process.execPath, [CLI, 'view', '--follow'], { env: environment() })
    writeCapture([...SESSION.slice(0, 1), EXIT], join(captures, '20260101T000000000Z-a-1.ndjson'))
    expect(await child.line(1)).toContain('initialize #0')
    writeCapture(SESSION.slice(0, 1), join(captures, '20260102T000000000Z-b-1.ndjson'))
    await child.until(() => child.lines.some((line) => line.endsWith('b-1.ndjson')), 'the second')
    writeCapture(SESSION.slice(0, 1), join(captures, '20260103T000000000Z-c-1.ndjson'))
    await child.until(() => child.lines.some((line) => line.endsWith('c-1.ndjson')), 'the third')
    // Whoever reads is gone.
    await child.closeOutput()
    appendFileSync(join(captures, '20260103T000000000Z-c-1.ndjson'), encodeRecord(EXIT))
    await child.exited()
  })

  it('serves the page until it is interrupted', async () => {
    writeCapture([...SESSION, EXIT])
    const args = ['view', file, '--web', '--filter', 'tool:add']
    const child = new Child(process.execPath, [CLI, ...args], { env: environment() })
    const url = new URL(await child.line(0))
    expect(url.hash).toMatch(/^#token=[\w-]{43}&filter=tool%3Aadd$/)
    const token = new URLSearchParams(url.hash.slice(1)).get('token') ?? ''
    const headers = { Authorization: `Bearer ${token}` }
    expect(await (await fetch(url.origin)).text()).toContain('<title>ccmcp</title>')
    const capture = await fetch(`${url.origin}/api/capture`, { headers })
    expect(await capture.json()).toMatchObject({ name: 'x.ndjson', follow: false })
    child.give('SIGINT')
    await child.closed()
    expect([child.code, child.stderr]).toEqual([0, ''])
    await expect(fetch(url.origin)).rejects.toThrow('fetch failed')
  })

  it('shows the newest capture on the page, also one that is recorded later', async () => {
    const child = new Child(process.execPath, [CLI, 'view', '--web', '-f'], { env: environment() })
    const url = new URL(await child.line(0))
    const headers = { Authorization: `Bearer ${url.hash.replace('#token=', '')}` }
    const state = async (query: string) =>
      await (await fetch(`${url.origin}/api/capture${query}`, { headers })).json()
    expect(await state('')).toMatchObject({ id: 0, name: '', follow: true })
    const later = state('?id=0&after=0')
    const captures = join(folder, 'ccmcp', 'captures')
    writeCapture(SESSION, join(captures, '20260101T000000000Z-a-1.ndjson'))
    expect(await later).toMatchObject({ id: 1, name: '20260101T000000000Z-a-1.ndjson' })
  })

  it('rejects what cannot be shown on the page', async () => {
    const outcomes = [await view('--web'), await view('--web', file), await view('--open')]
    expect(outcomes.map(({ code }) => code)).toEqual([1, 2, 2])
    expect(outcomes[0]?.stderr).toContain('There is no capture in')
    expect(outcomes[1]?.stderr).toContain('Cannot read')
    expect(outcomes[2]?.stderr).toContain('--open needs --web')
    writeFileSync(file, '{"name":"x"}\n')
    expect((await view('--web', file)).stderr).toContain('it is not a capture')
  })

  it.runIf(spawnSync('script', ['-qec', 'true', '/dev/null']).status === 0)(
    'uses colors in a terminal, and no control characters of a server',
    () => {
      writeCapture([...SESSION, EXIT])
      const { NO_COLOR, FORCE_COLOR, ...env } = process.env
      void [NO_COLOR, FORCE_COLOR]
      const { stdout } = spawnSync(
        'script',
        ['-qec', `'${process.execPath}' '${CLI}' view '${file}'`, '/dev/null'],
        { encoding: 'utf8', env: { ...env, TERM: 'xterm' }, stdio: ['ignore', 'pipe', 'pipe'] },
      )
      expect(stdout).toContain('\u001b[31merror stray-text\u001b[0m')
      expect(stdout).toContain('Listening \\u001b[31m\\u202e')
      expect(stdout).not.toContain(ESC)
    },
  )
})
