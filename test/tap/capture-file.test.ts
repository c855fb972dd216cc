import { execFileSync, spawnSync } from 'node:child_process'
import {
  closeSync,
  constants,
  mkdtempSync,
  openSync,
  readFileSync,
  readSync,
  rmSync,
  statSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { CaptureReader, type CaptureRecord } from '../../src/capture/format.js'
import { CaptureFile } from '../../src/tap/capture-file.js'

function made(maxBytes = 1 << 30) {
  const folder = mkdtempSync(join(tmpdir(), 'ccmcp-capture-'))
  const path = join(folder, 'x.ndjson')
  const capture = new CaptureFile(path, { transport: 'http', maxBytes, failed: () => {} })
  onTestFinished(async () => {
    await capture.close()
    rmSync(folder, { recursive: true, force: true })
  })
  const records = (): CaptureRecord[] => {
    const reader = new CaptureReader()
    return [...reader.push(readFileSync(path)), ...reader.end()]
  }
  return { capture, records, size: () => statSync(path).size }
}

const MEGABYTE = 1024 * 1024

it(
  'writes each record soon, also while another one is being written',
  { timeout: 60_000 },
  async () => {
    const { capture, records } = made()
    for (let count = 1; count <= 5; count++) {
      capture.body(count, 'in', 0, Buffer.alloc(MEGABYTE, 'x'))
      capture.event('first', { count })
      await new Promise(setImmediate)
      capture.event('second', { count })
    }
    await expect.poll(() => records().length, { timeout: 60_000 }).toBe(16)
    expect(records().filter(({ type }) => type === 'chunk')).toHaveLength(5)
  },
)

/** No record is written before the timer has fired, which is under the control of the test. */
function withFakeTimer() {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval'] })
  onTestFinished(() => void vi.useRealTimers())
}

it('writes large records one after the other, without waiting in between', async () => {
  withFakeTimer()
  const { capture, size } = made()
  for (let count = 0; count < 6; count++)
    capture.body(count, 'in', 0, Buffer.alloc(5 * MEGABYTE, 'x'))
  vi.advanceTimersToNextTimer()
  while (size() <= 25 * MEGABYTE && vi.getTimerCount() === 0) await new Promise(setImmediate)
  // The last one is collected for a while.
  expect(size()).toBeGreaterThan(25 * MEGABYTE)
})

it('counts bytes once against the maximum size while they are being written', async () => {
  withFakeTimer()
  const { capture, records } = made(MEGABYTE)
  capture.body(1, 'in', 0, Buffer.alloc(600_000, 'x'))
  vi.advanceTimersToNextTimer()
  capture.body(2, 'in', 0, Buffer.alloc(100_000, 'x'))
  await capture.close()
  expect(records().filter(({ type }) => type === 'chunk')).toHaveLength(2)
})

it('writes the rest at the end, also if the process stood still meanwhile', async () => {
  withFakeTimer()
  const { capture, records } = made()
  for (let count = 0; count < 6; count++)
    capture.body(count, 'in', 0, Buffer.alloc(5 * MEGABYTE, 'x'))
  const closed = capture.close()
  // A timer is due, however long the process stood still.
  vi.advanceTimersToNextTimer()
  await closed
  expect(records().filter(({ type }) => type === 'chunk')).toHaveLength(6)
})

it('keeps the order of records over several batches', async () => {
  const { capture, records } = made()
  for (let count = 0; count < 2000; count++) {
    capture.body(count, 'in', 0, Buffer.alloc(count % 3 === 0 ? 16 * 1024 : 10, 'x'))
    capture.httpEvent('end', { exchange: count, dir: 'in' })
    if (count % 100 === 0) await new Promise(setImmediate)
  }
  await capture.close()
  const exchanges = records().flatMap((record) => ('exchange' in record ? [record.exchange] : []))
  expect(exchanges).toEqual(Array.from({ length: 4000 }, (_, i) => i >> 1))
})

it.each([
  ['bodies', 'in'],
  ['headers', 'events'],
])('limits the bytes of %s that wait for the disk', async (what, kind) => {
  const { capture, records, size } = made()
  for (let count = 0; count < 50; count++)
    if (what === 'bodies') capture.body(count, 'in', 0, Buffer.alloc(MEGABYTE, 'x'))
    else capture.httpRecord({ type: 'event', event: 'request', ns: 0, exchange: count }, MEGABYTE)
  // A busy machine may need longer than `close` waits.
  if (what === 'bodies') await expect.poll(size).toBeGreaterThan(32 * MEGABYTE)
  await capture.close()
  const dropped = records().filter(
    (record) => record.type === 'event' && record.event === 'dropped',
  )
  expect(dropped[0]).toMatchObject({ reason: 'the disk is too slow' })
  const total = Number(Object.entries(dropped.at(-1) ?? {}).find(([name]) => name === kind)?.[1])
  expect(total).toBeGreaterThanOrEqual(kind === 'in' ? 18 * MEGABYTE : 18)
  expect(records().filter((record) => 'exchange' in record).length).toBeLessThanOrEqual(32)
})

it('writes what waits when the process exits', () => {
  const folder = mkdtempSync(join(tmpdir(), 'ccmcp-capture-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  const path = join(folder, 'x.ndjson')
  const program = `
    import { CaptureFile } from ${JSON.stringify(new URL('../../dist/capture-file.js', import.meta.url).href)}
    const capture = new CaptureFile(${JSON.stringify(path)}, { maxBytes: 1e9, failed() {} })
    for (let count = 0; count < 10; count++) capture.bytes('in', Buffer.alloc(1e6, 'x'))
    process.exit()
  `
  // A file of at most 32 MiB: a program that does not stop writing fails, and fills no disk.
  const limited = 'ulimit -f 65536; exec "$@"'
  const { status } = spawnSync(
    'sh',
    ['-c', limited, 'sh', process.execPath, '--input-type=module', '-e', program],
    { stdio: 'ignore', timeout: 60_000 },
  )
  expect(status).toBe(0)
  const reader = new CaptureReader()
  const records = [...reader.push(readFileSync(path)), ...reader.end()]
  expect(reader.unreadable).toBe(0)
  const chunks = records.filter((record) => record.type === 'chunk')
  expect(chunks.reduce((sum, { text = '' }) => sum + text.length, 0)).toBe(1e7)
})

describe('a pipe', () => {
  const at = (mode: string) => {
    const folder = mkdtempSync(join(tmpdir(), 'ccmcp-capture-'))
    const path = join(folder, 'pipe')
    execFileSync('mkfifo', ['-m', mode, path])
    // Opening it for writing fails without a reader.
    const reader = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK)
    onTestFinished(() => {
      closeSync(reader)
      rmSync(folder, { recursive: true, force: true })
    })
    return { path, reader }
  }
  const openAt = async (path: string) => {
    const failed = vi.fn<(error: Error) => void>()
    const capture = new CaptureFile(path, { maxBytes: 1e6, failed })
    capture.event('exit')
    await capture.close()
    return failed.mock.calls.map(([{ message }]) => message)
  }

  it('that only its owner can read is written to', async () => {
    const { path, reader } = at('600')
    expect(await openAt(path)).toEqual([])
    const bytes = Buffer.alloc(10_000)
    expect(bytes.toString('utf8', 0, readSync(reader, bytes))).toContain('"event":"exit"')
  })

  it.each(['640', '604', '644', '666'])('of mode %s is refused', async (mode) => {
    const { path, reader } = at(mode)
    expect(await openAt(path)).toEqual([expect.stringContaining('mkfifo -m 600')])
    // Its writers are gone: nothing was written.
    expect(readSync(reader, Buffer.alloc(10))).toBe(0)
  })

  it('of another user is refused', async () => {
    const { path } = at('600')
    vi.spyOn(process, 'geteuid').mockReturnValue(statSync(path).uid + 1)
    onTestFinished(() => void vi.restoreAllMocks())
    expect(await openAt(path)).toEqual([expect.stringContaining('belongs to another user')])
  })

  it('is no matter if it is a device', async () => {
    expect(await openAt('/dev/null')).toEqual([])
  })
})
