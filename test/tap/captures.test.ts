import { mkdtempSync, readdirSync, rmSync, utimesSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import {
  captureFolder,
  newCapturePath,
  newestCapture,
  pruneCaptures,
} from '../../src/tap/captures.js'

let folder = ''
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'ccmcp-captures-'))
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

/** No process has this id. */
const PID = 2 ** 22 + 1
const DAY = 24 * 60 * 60 * 1000
function capture(day: number, size: number, pid = PID): string {
  const name = `2026010${day}T000000000Z-server-${pid}.ndjson`
  writeFileSync(join(folder, name), 'x'.repeat(size))
  utimesSync(join(folder, name), day * 86_400, day * 86_400)
  return name
}

it('deletes captures that are too old', () => {
  capture(1, 10)
  const kept = capture(3, 10)
  pruneCaptures(folder, { now: 5 * DAY, maxAge: 3 * DAY })
  expect(readdirSync(folder)).toEqual([kept])
})

it('deletes the oldest captures if all together are too large', () => {
  capture(1, 10)
  const kept = [capture(2, 10), capture(3, 10)]
  pruneCaptures(folder, { now: 5 * DAY, maxTotal: 25 })
  expect(readdirSync(folder)).toEqual(kept)
})

it('keeps captures that are being written, and other files', () => {
  const running = capture(1, 10, process.pid)
  writeFileSync(join(folder, 'notes.txt'), '')
  pruneCaptures(folder, { now: 50 * DAY })
  expect(readdirSync(folder)).toEqual([running, 'notes.txt'])
})

it('finds the newest capture', () => {
  expect(newestCapture(join(folder, 'missing'))).toBeUndefined()
  expect(newestCapture(folder)).toBeUndefined()
  capture(1, 1)
  const newest = capture(2, 1)
  writeFileSync(join(folder, 'z.ndjson'), '')
  expect(newestCapture(folder)).toBe(join(folder, newest))
})

it('names captures after the time and the command', () => {
  const path = newCapturePath(join(folder, 'new'), '/usr/bin/my server')
  expect(path).toMatch(/new.\d{8}T\d{9}Z-my_server-\d+\.ndjson$/)
})

it('uses XDG_STATE_HOME if it is absolute', () => {
  expect(captureFolder({ XDG_STATE_HOME: '/state' })).toBe(join('/state', 'ccmcp', 'captures'))
  expect(captureFolder({ XDG_STATE_HOME: 'state' })).toBe(captureFolder({}))
})
