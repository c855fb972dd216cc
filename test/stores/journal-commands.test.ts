import fs, {
  chmodSync,
  existsSync,
  linkSync,
  mkdirSync,
  mkdtempSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { JournalTaskStore } from '../../src/journal.js'
import { sendCommand } from '../../src/stores/journal/journal-commands.js'
import { thisProcess } from '../../src/stores/journal/journal-owner.js'
import type { TaskCommand } from '../../src/tasks.js'

/* The file by which `ccmcp tasks` sends commands: whatever it is, the server lives and obeys nobody else. */

const NAME = 'x'.repeat(43)
let folder = ''
let stop = () => {}
const received: TaskCommand[] = []
const path = () => join(folder, 'tasks.journal')
const file = () => `${path()}.command`
const textOf = (more: object = {}) =>
  JSON.stringify({ command: 'cancel', name: NAME, process: thisProcess(), ...more })

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] })
  folder = mkdtempSync(join(tmpdir(), 'ccmcp-commands-'))
  received.length = 0
  stop = new JournalTaskStore(path()).receiveCommands((command) => received.push(command))
})
afterEach(() => {
  stop()
  vi.useRealTimers()
  vi.restoreAllMocks()
  rmSync(folder, { recursive: true, force: true })
})
const look = () => vi.advanceTimersByTime(1000)

it('passes a command on, once, and removes its file', async () => {
  const sent = sendCommand(path(), { command: 'retry', name: NAME }, thisProcess())
  expect(fs.statSync(file()).mode & 0o777).toBe(0o600)
  look()
  expect(await sent).toBe(true)
  look()
  expect(received).toEqual([{ command: 'retry', name: NAME }])
  expect(fs.readdirSync(folder)).toEqual([])
})

it('withdraws a command that nobody takes, and waits for one that was there before', async () => {
  stop()
  expect(await sendCommand(path(), { command: 'cancel', name: NAME }, 'x', 1)).toBe(false)
  writeFileSync(file(), textOf(), { mode: 0o600 })
  expect(await sendCommand(path(), { command: 'retry', name: NAME }, 'x', 1)).toBe(false)
  expect(fs.readdirSync(folder)).toEqual(['tasks.journal.command'])
})

it('looks no more after it was ended', () => {
  stop()
  writeFileSync(file(), textOf(), { mode: 0o600 })
  look()
  expect(received).toEqual([])
})

describe('ignores and removes', () => {
  it.each([
    ['an empty file', ''],
    ['a file that is not JSON', '{'],
    ['a file with bytes that are not UTF-8', Buffer.from([0xff, 0xfe, 0])],
    ['null', 'null'],
    ['a list', '[]'],
    ['an unknown command', textOf({ command: 'rm -rf' })],
    ['a name that is no string', textOf({ name: { a: 1 } })],
    ['a command for another process', textOf({ process: '1 1' })],
    ['a command without a process', JSON.stringify({ command: 'cancel', name: NAME })],
    ['a large file', textOf({ more: 'x'.repeat(2000) })],
    ['a prototype', '{"__proto__":{"command":"cancel"},"name":"x"}'],
  ])('%s', (_, content) => {
    writeFileSync(file(), content, { mode: 0o600 })
    look()
    expect(received).toEqual([])
    expect(existsSync(file())).toBe(false)
  })

  it.skipIf(process.platform === 'win32').each([0o644, 0o660, 0o606, 0o777])(
    'a file with the mode %o',
    (mode) => {
      writeFileSync(file(), textOf())
      chmodSync(file(), mode)
      look()
      expect(received).toEqual([])
      expect(existsSync(file())).toBe(false)
    },
  )

  it.skipIf(process.getuid?.() !== 0)('a file of another user', () => {
    writeFileSync(file(), textOf(), { mode: 0o600 })
    fs.chownSync(file(), 12345, 12345)
    look()
    expect(received).toEqual([])
    expect(existsSync(file())).toBe(false)
  })

  it('a symbolic link, not what it names', () => {
    const other = join(folder, 'other')
    writeFileSync(other, textOf(), { mode: 0o600 })
    symlinkSync(other, file())
    look()
    expect(received).toEqual([])
    expect(fs.readdirSync(folder)).toEqual(['other'])
  })
})

it('lives with a directory in place of the file, and with errors of the file system', () => {
  mkdirSync(file())
  look()
  rmSync(file(), { recursive: true })
  writeFileSync(file(), textOf(), { mode: 0o600 })
  vi.spyOn(fs, 'openSync').mockImplementationOnce(() => {
    throw new Error('EIO')
  })
  look()
  expect(received).toEqual([])
  linkSync(file(), `${file()}.2`)
  look()
  expect(received).toHaveLength(1)
})
