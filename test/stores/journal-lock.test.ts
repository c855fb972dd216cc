import { type ChildProcessWithoutNullStreams, spawn, spawnSync } from 'node:child_process'
import fs, {
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { JournalTaskStore, type JournalTaskStoreOptions } from '../../src/journal.js'
import { thisProcess } from '../../src/stores/journal/journal-owner.js'
import { newTask } from './task-store-contract.js'

/* One process uses a journal, also if processes of several containers or machines share its folder. */

/** How a process of another container names itself. */
const ELSEWHERE = '1 1234 0f0f0f0f-0000-4000-8000-000000000000/pid:[4026530000]'

let folder = ''
const path = () => join(folder, 'tasks.journal')
const lock = () => `${path()}.lock`
const opened: JournalTaskStore[] = []
const children: ChildProcessWithoutNullStreams[] = []

function openStore(options?: JournalTaskStoreOptions, file = path()): JournalTaskStore {
  const store = new JournalTaskStore(file, options)
  store.open()
  opened.push(store)
  return store
}
const locked = (message = '') =>
  expect.objectContaining({ code: 'JOURNAL_LOCKED', message: expect.stringContaining(message) })
const lost = (message = '') =>
  expect.objectContaining({ code: 'JOURNAL_LOST', message: expect.stringContaining(message) })

/** Makes the time pass while a lock is watched, and does something meanwhile. */
function watching(meanwhile: () => void = () => {}) {
  return vi.spyOn(Atomics, 'wait').mockImplementation((_, __, ___, milliseconds = 0) => {
    vi.advanceTimersByTime(milliseconds)
    meanwhile()
    return 'timed-out'
  })
}
let touches = 0
function touch(): void {
  const date = new Date(Date.now() + 1000 * ++touches)
  utimesSync(lock(), date, date)
}

/** Lets a process elsewhere take the lock. */
function takeAway(): void {
  writeFileSync(join(folder, 'theirs'), ELSEWHERE)
  renameSync(join(folder, 'theirs'), lock())
}

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['Date', 'performance', 'setInterval', 'clearInterval'] })
  folder = mkdtempSync(join(tmpdir(), 'ccmcp-lock-'))
})
afterEach(async () => {
  for (const store of opened.splice(0)) await store.close()
  expect(vi.getTimerCount()).toBe(0)
  vi.useRealTimers()
  vi.restoreAllMocks()
  for (const child of children.splice(0)) {
    const ended = new Promise((resolve) => child.once('close', resolve))
    child.kill('SIGKILL')
    if (child.exitCode === null && child.signalCode === null) await ended
  }
  rmSync(folder, { recursive: true })
})

/** Starts a process; returns a function that sends it a line, if any, and resolves with the next line it prints. */
function start(command: string, args: readonly string[]) {
  const child = spawn(command, args)
  children.push(child)
  child.stdin.on('error', () => {})
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
  return async (line?: string): Promise<unknown> => {
    if (line !== undefined) child.stdin.write(`${line}\n`)
    const { value = 'null' } = (await lines.next()) as { value?: string }
    return JSON.parse(value)
  }
}

describe('the lock of a process in another container', () => {
  const args = ['-pf', '--kill-child', '--mount-proc']
  const hasNamespaces = spawnSync('unshare', [...args, 'true']).status === 0

  it.skipIf(!hasNamespaces)('keeps one with the same id out', async () => {
    const program = fileURLToPath(new URL('journal-process.mjs', import.meta.url))
    const container = () => start('unshare', [...args, process.execPath, program, path()])
    const first = container()
    expect(await first()).toEqual({ opened: 0, pid: 1 })
    expect(await first('a')).toEqual({ created: true })
    const second = container()
    expect(await second()).toMatchObject({ code: 'JOURNAL_LOCKED', pid: 1 })
    expect(await first('b')).toEqual({ created: true })
    expect(() => openStore()).toThrow(locked('process 1 of another container or machine'))
  })

  it('keeps others out while it is touched', async () => {
    writeFileSync(lock(), ELSEWHERE)
    const touching = `const fs = require('node:fs')
      let count = 0
      setInterval(() => fs.utimesSync(process.argv[1], ++count, count), 20)
      setTimeout(() => console.log('true'), 20)`
    expect(await start(process.execPath, ['-e', touching, lock()])()).toBe(true)
    expect(() => openStore()).toThrow(locked('another container or machine'))
    expect(readdirSync(folder)).toEqual(['tasks.journal.lock'])
  })

  it('is watched once, for as long as it takes to see that it is touched', () => {
    writeFileSync(lock(), ELSEWHERE)
    const wait = watching(() => {
      if (wait.mock.calls.length >= 20) touch()
    })
    expect(() => openStore()).toThrow(locked())
    expect(wait).toHaveBeenCalledTimes(20)
    // A server that tries again does not stop for it.
    for (let each = 0; each < 10; each++) {
      vi.advanceTimersByTime(1000)
      touch()
      expect(() => openStore()).toThrow(locked())
    }
    vi.advanceTimersByTime(4999)
    expect(() => openStore()).toThrow(locked())
    expect(wait).toHaveBeenCalledTimes(20)
    vi.advanceTimersByTime(1)
    openStore()
  })

  it('is taken over if it is not touched, with all tasks', async () => {
    const before = openStore()
    await before.create(newTask('a'))
    await before.close()
    writeFileSync(lock(), ELSEWHERE)
    const began = performance.now()
    const wait = watching()
    const store = openStore()
    expect(performance.now() - began).toBeGreaterThanOrEqual(5000)
    expect(wait.mock.calls.length).toBeLessThan(200)
    expect(await store.get('a')).toMatchObject({ version: 1 })
    expect(await store.create(newTask('b'))).toBe(true)
  })

  it('is taken at once when it is released', () => {
    writeFileSync(lock(), ELSEWHERE)
    const wait = watching(() => rmSync(lock(), { force: true }))
    openStore()
    expect(wait).toHaveBeenCalledTimes(1)
  })

  it('is put back if it is touched in the last moment', () => {
    writeFileSync(lock(), ELSEWHERE)
    const { ino } = statSync(lock())
    watching()
    const { renameSync: rename } = fs
    vi.spyOn(fs, 'renameSync').mockImplementationOnce((from, to) => {
      touch()
      rename(from, to)
    })
    expect(() => openStore()).toThrow(locked())
    expect(readdirSync(folder)).toEqual(['tasks.journal.lock'])
    expect(statSync(lock()).ino).toBe(ino)
  })

  it.each(['a line', 'an earlier line', 'a new version'])(
    'may be that of a process that was stopped while it wrote %s: that goes nowhere',
    async (what) => {
      const before = openStore()
      await before.create(newTask('a'))
      await before.close()
      const { size } = statSync(path())
      const written = readFileSync(path())
      const aside = `${path()}.${crypto.randomUUID()}.new`
      writeFileSync(lock(), ELSEWHERE)
      if (what === 'a new version') writeFileSync(aside, written)
      const fd = fs.openSync(path(), 'r+')
      watching()
      const store = openStore()
      if (what === 'an earlier line') fs.writeSync(fd, 'x'.repeat(500), size)
      expect(await store.create(newTask('b'))).toBe(true)
      if (what === 'a new version') expect(() => renameSync(aside, path())).toThrow('ENOENT')
      if (what === 'a line') fs.writeSync(fd, 'x'.repeat(500), size)
      fs.closeSync(fd)
      await store.close()
      expect(openStore().size).toBe(2)
    },
  )

  it('remains so if the process that took it over is killed at once', async () => {
    await openStore().close()
    writeFileSync(lock(), `2147483646 1 ${thisProcess().split(' ')[2]} taken-over`)
    const { ino } = statSync(path())
    const store = openStore()
    await store.create(newTask('a'))
    expect(statSync(path()).ino).not.toBe(ino)
  })
})

describe('a process that has the lock', () => {
  it('touches it every second while it is open', async () => {
    const store = openStore()
    // From here on, it has times of the clock of this test, which does not run by itself.
    vi.advanceTimersByTime(1000)
    for (let each = 0; each < 3; each++) {
      const { mtimeMs } = statSync(lock())
      vi.advanceTimersByTime(1000)
      expect(statSync(lock()).mtimeMs).toBeGreaterThan(mtimeMs)
    }
    await store.close()
    expect(readdirSync(folder)).toEqual(['tasks.journal'])
  })

  it('touches it while it reads a large file', async () => {
    const before = openStore()
    for (let each = 0; each < 10; each++) await before.create(newTask(`task ${each}`))
    await before.close()
    let now = performance.now()
    vi.spyOn(performance, 'now').mockImplementation(() => (now += 1000))
    const touched = vi.spyOn(fs, 'futimesSync')
    expect(openStore().size).toBe(10)
    expect(touched.mock.calls.length).toBeGreaterThanOrEqual(2)
  })

  describe('touches it while the process', () => {
    /** Opens a journal, runs something in which time passes but no timer runs, and returns when its lock was touched. */
    function touchesDuring(blocked: (pass: (milliseconds: number) => void) => void): number[] {
      const before = openStore({}, join(folder, 'other.journal'))
      const { ino } = statSync(`${join(folder, 'other.journal')}.lock`)
      let now = performance.now()
      const began = now
      vi.spyOn(performance, 'now').mockImplementation(() => now)
      const touched: number[] = []
      const { futimesSync } = fs
      vi.spyOn(fs, 'futimesSync').mockImplementation((fd, ...times) => {
        if (fs.fstatSync(fd).ino === ino) touched.push(now - began)
        futimesSync(fd, ...times)
      })
      blocked((milliseconds) => (now += milliseconds))
      expect(before.size).toBe(0)
      return touched
    }

    it('waits for another journal', () => {
      writeFileSync(lock(), ELSEWHERE)
      const touched = touchesDuring((pass) => {
        vi.spyOn(Atomics, 'wait').mockImplementation((_, __, ___, milliseconds = 0) => {
          pass(milliseconds)
          return 'timed-out'
        })
        openStore()
      })
      expect(touched).toEqual([2550])
    })

    it('reads another journal', async () => {
      const large = openStore()
      for (let each = 0; each < 10; each++) await large.create(newTask(`task ${each}`))
      await large.close()
      const { parse } = JSON
      const touched = touchesDuring((pass) => {
        vi.spyOn(JSON, 'parse').mockImplementation((text, reviver) => {
          pass(1000)
          return parse(text, reviver) as unknown
        })
        openStore()
      })
      expect(touched.length).toBeGreaterThanOrEqual(3)
    })
  })

  it('acknowledges nothing that it wrote when it lost the lock, also if another journal was used meanwhile', async () => {
    const store = openStore()
    const other = openStore({}, join(folder, 'other.journal'))
    const { fdatasync } = fs
    vi.spyOn(fs, 'fdatasync').mockImplementationOnce((fd, done) => {
      takeAway()
      const now = performance.now() + 6000
      vi.spyOn(performance, 'now').mockImplementation(() => now)
      void other.create(newTask('b')).then(() => fdatasync(fd, done))
    })
    await expect(store.create(newTask('a'))).rejects.toThrow(lost())
  })

  it('looks at it once for each write', async () => {
    const store = openStore()
    const stat = vi.spyOn(fs, 'statSync')
    for (let each = 0; each < 10; each++) await store.create(newTask(`task ${each}`))
    expect(stat.mock.calls.filter(([name]) => name === lock())).toHaveLength(10)
  })

  it('looks at it before a step only if it was stopped', async () => {
    const store = openStore()
    vi.advanceTimersByTime(1000)
    const stat = vi.spyOn(fs, 'statSync')
    expect(store.holds()).toBe(true)
    expect(stat).not.toHaveBeenCalled()
    const now = performance.now() + 6000
    vi.spyOn(performance, 'now').mockImplementation(() => now)
    expect(store.holds()).toBe(true)
    takeAway()
    // It was touched just now: nobody can have taken it.
    expect(store.holds()).toBe(true)
    vi.spyOn(performance, 'now').mockImplementation(() => now + 6000)
    expect(() => store.holds()).toThrow(lost('process 1 of another container or machine'))
  })

  it.each([
    ['taken over', takeAway, 'taken over by process 1 of another container'],
    ['removed', () => rmSync(lock()), 'its lock was removed'],
  ])('writes nothing more when it was %s', async (how, take, message) => {
    const reports: unknown[] = []
    const store = new JournalTaskStore(path())
    store.open((entry) => reports.push(entry))
    opened.push(store)
    await store.create(newTask('a'))
    const bytes = readFileSync(path())
    vi.spyOn(Atomics, 'wait').mockReturnValue('timed-out')
    take()
    await expect(store.create(newTask('b'))).rejects.toThrow(lost(message))
    await expect(store.change('a', 1, { state: 'x', runnable: true })).rejects.toThrow(lost())
    await expect(store.get('a')).rejects.toThrow(lost())
    expect(() => store.claim(1)).toThrow(lost())
    expect(reports).toEqual([{ level: 'error', message: expect.any(String), error: lost(message) }])
    await store.close()
    expect(readFileSync(path())).toEqual(bytes)
    expect(readdirSync(folder)).toHaveLength(how === 'removed' ? 1 : 2)
    rmSync(lock(), { force: true })
    store.open()
    expect(await store.get('a')).toMatchObject({ version: 1 })
  })

  it('notices that it was taken over without writing, and tells its subscribers once', () => {
    const store = openStore()
    const missed = vi.fn()
    store.subscribe(() => {}, missed)
    store.subscribe(() => {})
    store.subscribe(() => {}, missed)()
    takeAway()
    vi.advanceTimersByTime(1000)
    expect(() => store.claim(1)).toThrow(lost())
    vi.advanceTimersByTime(5000)
    expect(missed).toHaveBeenCalledTimes(1)
  })

  it('does not mistake a lock that is being put back for a lost one', async () => {
    const store = openStore()
    renameSync(lock(), `${lock()}.aside`)
    watching(() => renameSync(`${lock()}.aside`, lock()))
    expect(await store.create(newTask('a'))).toBe(true)
  })

  it.each([
    ['the write has ended', () => {}],
    ['the next touch is due', () => void vi.advanceTimersByTime(1000)],
  ])('acknowledges nothing that it wrote when it lost the lock, seen when %s', async (_, first) => {
    const store = openStore()
    const { fdatasync } = fs
    vi.spyOn(fs, 'fdatasync').mockImplementationOnce((fd, done) => {
      takeAway()
      // The process was stopped: its timers have not run.
      const now = performance.now() + 6000
      vi.spyOn(performance, 'now').mockImplementation(() => now)
      first()
      fdatasync(fd, done)
    })
    await expect(store.create(newTask('a'))).rejects.toThrow(lost())
  })

  it('touches the lock before it writes when it was stopped', async () => {
    const store = openStore()
    const { mtimeMs } = statSync(lock())
    const now = performance.now() + 4000
    vi.spyOn(performance, 'now').mockReturnValue(now)
    vi.setSystemTime(Date.now() + 4000)
    expect(await store.create(newTask('a'))).toBe(true)
    expect(statSync(lock()).mtimeMs).toBeGreaterThan(mtimeMs)
  })

  it('does not replace the file when the lock is taken over during a compaction', async () => {
    const store = openStore({ compactBytes: 10_000 })
    await store.create(newTask('a'))
    const { fsync } = fs
    vi.spyOn(fs, 'fsync').mockImplementationOnce((fd, done) => {
      takeAway()
      fsync(fd, done)
    })
    const { ino } = statSync(path())
    const state = 'x'.repeat(20_000)
    for (let version = 1; store.size > 0 && version < 9; version++)
      await store.change('a', version, { state, runnable: true }).catch(() => {})
    expect(statSync(path()).ino).toBe(ino)
    expect(readdirSync(folder).toSorted()).toEqual(['tasks.journal', 'tasks.journal.lock'])
  })
})

describe('a journal with several paths', () => {
  it('has one lock, and stays where it is', async () => {
    mkdirSync(join(folder, 'real'))
    const real = join(folder, 'real', 'tasks.journal')
    const link = join(folder, 'link.journal')
    symlinkSync(join(folder, 'real'), join(folder, 'other'))
    const store = openStore({ compactBytes: 10_000 }, real)
    symlinkSync(real, link)
    for (const each of [link, join(folder, 'other', 'tasks.journal'), `${folder}/./link.journal`])
      expect(() => openStore({}, each)).toThrow(locked(`process ${process.pid}`))
    await store.close()
    const linked = openStore({ compactBytes: 10_000 }, link)
    await linked.create(newTask('a'))
    for (let version = 1; version < 30; version++)
      await linked.change('a', version, { state: 'x'.repeat(2000), runnable: true })
    await linked.close()
    expect(fs.lstatSync(link).isSymbolicLink()).toBe(true)
    expect(await openStore({}, real).get('a')).toMatchObject({ version: 30 })
  })

  it.runIf(process.platform === 'linux')('is not opened by two threads of a process', () => {
    writeFileSync(lock(), thisProcess())
    expect(() => openStore()).toThrow(locked(`process ${process.pid}`))
  })
})

it('removes files of processes that were killed while they took the lock, not those of others', () => {
  const old = `${lock()}.7.${crypto.randomUUID()}`
  const recent = `${lock()}.8.${crypto.randomUUID()}`
  for (const file of [old, recent]) writeFileSync(file, ELSEWHERE)
  const then = new Date(statSync(recent).mtimeMs - 61_000)
  utimesSync(old, then, then)
  openStore()
  expect(fs.existsSync(old)).toBe(false)
  expect(fs.existsSync(recent)).toBe(true)
})
