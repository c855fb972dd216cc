import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterEach, beforeEach, describe, expect, it, onTestFinished } from 'vitest'
import { Analysis, type Row } from '../../src/capture/analysis.js'
import {
  CaptureReader,
  type CaptureRecord,
  type Direction,
  type EventRecord,
  bytesOf,
} from '../../src/capture/format.js'
import { loadSchemaChecks } from '../../src/capture/schema-check.js'
import { connect, stdio } from '../../src/client.js'
import { revisions } from '../../src/protocol/revisions/index.js'
import { CLI } from '../cli/command.js'
import { Child, killAll } from '../stdio/child.js'

/* `ccmcp tap` as a host starts it. */

const SCRIPT = fileURLToPath(new URL('servers/script.mjs', import.meta.url))
let folder = ''
let file = ''
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'ccmcp-tap-'))
  file = join(folder, 'x.ndjson')
})
afterEach(async () => {
  await killAll()
  rmSync(folder, { recursive: true, force: true })
})

const tapArgs = (...server: string[]) => [
  'tap',
  '--capture',
  file,
  '--',
  process.execPath,
  ...server,
]
const tap = (...script: string[]) =>
  new Child(process.execPath, [CLI, ...tapArgs(SCRIPT, ...script)])

/** Without a reader of its output. */
function spawned(...script: string[]): ChildProcessWithoutNullStreams {
  const child = spawn(process.execPath, [CLI, ...tapArgs(SCRIPT, ...script)])
  onTestFinished(() => void child.kill('SIGKILL'))
  return child
}

function recordsOf(path = file): CaptureRecord[] {
  const reader = new CaptureReader()
  const records = [...reader.push(readFileSync(path)), ...reader.end()]
  expect(reader.unreadable).toBe(0)
  return records
}
function recorded(dir: Direction, path = file): Buffer {
  return Buffer.concat(
    recordsOf(path).flatMap((record) =>
      record.type === 'chunk' && record.dir === dir ? [bytesOf(record)] : [],
    ),
  )
}
const events = (path = file) =>
  recordsOf(path).filter((record): record is EventRecord => record.type === 'event')
const eventNames = () =>
  events()
    .map(({ event }) => event)
    .filter((event) => event !== 'stderr')
async function rowsOf(path = file): Promise<Row[]> {
  const analysis = new Analysis(await loadSchemaChecks())
  return [...recordsOf(path).flatMap((record) => analysis.add(record)), ...analysis.end()]
}

describe('ccmcp tap', () => {
  it('forwards and records every byte in both directions', async () => {
    const child = tap('echo')
    const pieces = [
      Buffer.from('{"a":1}\r\n\n\ufeff'),
      Buffer.from([0xff, 0x00, 0xc3]),
      Buffer.from([0xbc, 0x0a]),
      Buffer.alloc(300_000, 'ü\n'),
    ]
    for (const piece of pieces) child.write(piece)
    child.end()
    await child.closed()
    const sent = Buffer.concat(pieces)
    expect(child.stdout.equals(sent)).toBe(true)
    expect(recorded('in').equals(sent)).toBe(true)
    expect(recorded('out').equals(sent)).toBe(true)
    expect(child.code).toBe(0)
    expect(eventNames()).toEqual(expect.arrayContaining(['spawn', 'end', 'exit']))
  })

  it('passes on stderr and the exit code and records both', async () => {
    const child = tap('bytes')
    await child.until(() => child.stdout.length === 256, 'its output')
    await child.said('e\ufffd')
    child.end()
    await child.closed()
    expect([...child.stdout]).toEqual(Array.from({ length: 256 }, (_, i) => i))
    expect(child.code).toBe(7)
    const errors = events().filter(({ event }) => event === 'stderr')
    expect(Buffer.concat(errors.map((each) => bytesOf(each)))).toEqual(Buffer.from([0x65, 0xff]))
    expect(events().find(({ event }) => event === 'exit')).toMatchObject({ code: 7, signal: null })
    const spawn = events().find(({ event }) => event === 'spawn')
    expect(spawn).toMatchObject({ argv: [process.execPath, SCRIPT, 'bytes'] })
    expect(spawn?.['env']).toContain('PATH')
    expect(JSON.stringify(spawn)).not.toContain(JSON.stringify(process.env['PATH']))
  })

  it('passes on signals, once, and records them', async () => {
    const child = tap('signals')
    await child.line(0)
    child.give('SIGUSR2')
    expect(await child.line(1)).toBe('SIGUSR2')
    child.give('SIGTERM')
    await child.closed()
    expect(child.lines.slice(1)).toEqual(['SIGUSR2', 'SIGTERM'])
    expect(child.code).toBe(5)
    expect(events().flatMap(({ event, signal }) => (event === 'signal' ? [signal] : []))).toEqual([
      'SIGUSR2',
      'SIGTERM',
    ])
  })

  it('ends by the signal that has killed the server', async () => {
    const child = tap('killed')
    await child.closed()
    expect([child.code, child.signal]).toEqual([null, 'SIGKILL'])
    expect(events().find(({ event }) => event === 'exit')).toMatchObject({ signal: 'SIGKILL' })
  })

  it('closes stdout when the server does, while it runs', async () => {
    const child = spawned('closes')
    await once(child.stdout.resume(), 'end')
    expect(child.exitCode).toBeNull()
    child.stdin.end()
    await once(child, 'close')
    expect(child.exitCode).toBe(0)
  })

  it('closes stdin when the server does', async () => {
    const child = spawned('deaf')
    await once(child.stdout, 'data')
    child.stdin.on('error', () => {})
    // Each write makes the broken pipe visible one process further up.
    const written = () => {
      child.stdin.write('x'.repeat(1000))
      return child.stdin.errored
    }
    await expect.poll(written).not.toBeNull()
    child.kill('SIGTERM')
    await once(child, 'close')
    expect(child.signalCode).toBe('SIGTERM')
  })

  it('writes everything that the server has written before it exited', async () => {
    const size = 3_000_000
    const child = spawned('flood', String(size))
    // Read late: until then, the output waits in pipes.
    await once(child.stderr, 'data')
    let length = 0
    child.stdout.on('data', (chunk: Buffer) => (length += chunk.length))
    await once(child, 'close')
    expect(length).toBe(size)
    expect(recorded('out').length).toBe(size)
    expect(child.exitCode).toBe(3)
  })

  it('ends with the server, also if a child of it keeps the pipes open', async () => {
    const child = tap('parent')
    const pid = Number(await child.line(0))
    await child.exited()
    expect(child.code).toBe(4)
    process.kill(pid, 'SIGKILL')
  })

  it('ends after a signal, also if the client does not read what the server has written', async () => {
    const child = spawned('stuck')
    await once(child.stdout, 'readable')
    child.kill('SIGTERM')
    await once(child, 'exit')
    expect([child.exitCode, child.signalCode]).toEqual([3, null])
  })

  it('ends on a signal after the exit of the server, also if the client does not read', async () => {
    const child = spawned('stuck')
    await once(child.stdout, 'readable')
    // This one does not ask the tap to end.
    child.kill('SIGUSR2')
    await expect.poll(eventNames, { timeout: 30_000 }).toContain('exit')
    expect(child.exitCode).toBeNull()
    child.kill('SIGTERM')
    await once(child, 'exit')
    expect([child.exitCode, child.signalCode]).toEqual([3, null])
  })

  it('ends on a signal, also if a child of the server goes on writing', async () => {
    const child = tap('chatter')
    await child.line(0)
    await expect.poll(eventNames, { timeout: 30_000 }).toContain('exit')
    child.give('SIGTERM')
    await child.exited()
    expect(child.code).toBe(4)
  })

  it('reports a server that cannot be started', async () => {
    const child = new Child(process.execPath, [
      CLI,
      'tap',
      '--capture',
      file,
      '--',
      '/no/such/file',
    ])
    await child.closed()
    expect(child.stderr).toContain('ccmcp: Cannot start the server: spawn /no/such/file ENOENT')
    expect(child.code).toBe(3)
    // The end of its stdout may be seen before or after the capture is closed.
    expect(eventNames().filter((event) => event !== 'end')).toEqual(['spawn', 'error'])
  })
})

describe('the capture', () => {
  it('can be read by its owner only, in a folder that is created', async () => {
    const child = new Child(
      process.execPath,
      [CLI, 'tap', '--', process.execPath, SCRIPT, 'echo'],
      {
        env: { XDG_STATE_HOME: folder },
      },
    )
    child.end()
    await child.closed()
    const captures = join(folder, 'ccmcp', 'captures')
    const [name = ''] = readdirSync(captures)
    expect(child.stderr).toBe(`ccmcp: recording to ${join(captures, name)}\n`)
    expect(name).toMatch(/^\d{8}T\d{9}Z-node-\d+\.ndjson$/)
    expect(statSync(join(captures, name)).mode & 0o777).toBe(0o600)
    expect(statSync(captures).mode & 0o777).toBe(0o700)
  })

  it('does not replace an existing file', async () => {
    writeFileSync(file, 'mine')
    const child = tap('echo')
    child.end()
    await child.closed()
    expect(readFileSync(file, 'utf8')).toBe('mine')
    expect(recordsOf(join(folder, 'x-2.ndjson')).length).toBeGreaterThan(2)
  })

  it.runIf(process.platform === 'linux').each([
    ['a full disk', '/dev/full'],
    ['a missing folder', '/no/such/folder/x.ndjson'],
  ])('that fails because of %s does not affect the traffic', async (_, path) => {
    const child = new Child(process.execPath, [
      CLI,
      'tap',
      '--capture',
      path,
      '--',
      process.execPath,
      SCRIPT,
      'echo',
    ])
    child.send('{"a":1}')
    expect(await child.line(0)).toBe('{"a":1}')
    await child.said('cannot write the capture')
    child.send('{"a":2}')
    expect(await child.line(1)).toBe('{"a":2}')
    child.end()
    await child.closed()
    expect(child.code).toBe(0)
    expect(child.stderr.match(/cannot write the capture/g)).toHaveLength(1)
  })

  it('has a maximum size, and says what was dropped', async () => {
    const child = new Child(process.execPath, [
      CLI,
      'tap',
      '--max-capture',
      '2000',
      ...tapArgs(SCRIPT, 'echo').slice(1),
    ])
    const line = `${'x'.repeat(999)}\n`
    for (let i = 0; i < 10; i++) {
      child.write(line)
      await child.line(i)
    }
    child.end()
    await child.closed()
    expect(child.lines).toHaveLength(10)
    const dropped = events().filter(({ event }) => event === 'dropped')
    expect(dropped[0]).toMatchObject({ reason: 'the maximum size' })
    expect(dropped.at(-1)?.['out']).toBe(10_000 - recorded('out').length)
    expect(eventNames().at(-1)).toBe('dropped')
    expect(eventNames()).toContain('exit')
    expect(statSync(file).size).toBeLessThan(8000)
  })
})

describe('real sessions', () => {
  it.each(revisions.map(({ id }) => [id]))('of %s have no findings', async (revision) => {
    const client = await connect(
      // The tap must not be killed before it has written the capture.
      stdio(process.execPath, [CLI, ...tapArgs(CLI, 'serve')], {
        env: process.env,
        exitTimeout: 60_000,
      }),
      { revision },
    )
    for await (const { name } of client.tools()) expect(name).not.toBe('')
    for await (const { name } of client.resources()) expect(name).not.toBe('')
    for await (const { name } of client.prompts()) expect(name).not.toBe('')
    await client.callTool('add', { a: 1, b: 2 }, { onProgress() {} })
    expect((await client.callTool('add', { a: 'x' })).isError).toBe(true)
    await client.close()
    const rows = await rowsOf()
    expect(rows.flatMap(({ findings }) => findings)).toEqual([])
    expect(new Set(rows.flatMap(({ revision: each }) => each ?? []))).toContain(revision)
    expect(
      rows.filter(({ kind, target }) => kind === 'response' && target === 'add'),
    ).toMatchObject([{ status: 'ok', method: 'tools/call', revision }, { status: 'error' }])
  })

  it('of the official SDK on both sides have no findings', async () => {
    const { Client } = await import('@modelcontextprotocol/sdk/client/index.js')
    const { StdioClientTransport } = await import('@modelcontextprotocol/sdk/client/stdio.js')
    const client = new Client({ name: 'sdk', version: '1' })
    const args = [CLI, ...tapArgs(fileURLToPath(new URL('servers/sdk.mjs', import.meta.url)))]
    await client.connect(
      new StdioClientTransport({ command: process.execPath, args, stderr: 'ignore' }),
    )
    await client.setLoggingLevel('debug')
    expect((await client.listTools()).tools).toHaveLength(1)
    expect((await client.listPrompts()).prompts).toHaveLength(1)
    for (const fail of [false, true])
      await client.callTool({ name: 'work', arguments: { fail } }, undefined, { onprogress() {} })
    await client.ping()
    await client.close()
    const rows = await rowsOf()
    expect(rows.flatMap(({ findings }) => findings)).toEqual([])
    expect(
      rows.filter(({ method, kind }) => method === 'tools/call' && kind === 'response'),
    ).toMatchObject([
      { target: 'work', status: 'ok', progress: 1, revision: '2025-11-25' },
      { target: 'work', status: 'error', text: 'failed' },
    ])
  })
})
