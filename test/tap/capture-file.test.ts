import { mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it, onTestFinished, vi } from 'vitest'
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
