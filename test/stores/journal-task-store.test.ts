import fs, {
  mkdtempSync,
  readFileSync,
  readdirSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { JournalTaskStore, type JournalTaskStoreOptions } from '../../src/journal.js'
import { readJournal } from '../../src/stores/journal/journal-task-store.js'
import { newTask, taskStoreContract } from './task-store-contract.js'

const advance = (milliseconds: number) => void vi.advanceTimersByTime(milliseconds)

let folder = ''
let count = 0
const opened: JournalTaskStore[] = []
const path = () => join(folder, `${count}.journal`)

async function openStore(options?: JournalTaskStoreOptions) {
  const store = await JournalTaskStore.open(path(), options)
  opened.push(store)
  return store
}
async function reopen(): Promise<JournalTaskStore> {
  for (const store of opened.splice(0)) await store.close()
  return openStore()
}

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['Date', 'performance'] })
  folder = mkdtempSync(join(tmpdir(), 'ccmcp-journal-'))
})
afterEach(async () => {
  vi.useRealTimers()
  vi.restoreAllMocks()
  for (const store of opened.splice(0)) await store.close()
  rmSync(folder, { recursive: true })
})

describe('JournalTaskStore', () => {
  taskStoreContract({
    create: (limits) => {
      count++
      return openStore(limits)
    },
    advance,
    restart: () => reopen(),
  })

  it('cuts an incomplete last line, wherever it ends, and keeps everything before it', async () => {
    const store = await openStore()
    await store.create(newTask('a'))
    const { size } = statSync(path())
    await store.change('a', 1, { state: 'two', runnable: true })
    await store.close()
    opened.splice(0)
    const whole = readFileSync(path())
    for (let length = size; length < whole.length; length++) {
      writeFileSync(path(), whole.subarray(0, length))
      const cut = await reopen()
      expect(await cut.get('a')).toMatchObject({ version: 1 })
      expect(statSync(path()).size).toBe(size)
      await cut.change('a', 1, { state: 'again', runnable: true })
      expect(await (await reopen()).get('a')).toMatchObject({ version: 2, state: 'again' })
    }
  })

  it('refuses a file that was changed in the middle, and one that is not a journal', async () => {
    const store = await openStore()
    for (const name of ['a', 'b', 'c']) await store.create(newTask(name))
    await store.close()
    opened.splice(0)
    const text = readFileSync(path(), 'utf8')
    writeFileSync(path(), text.replace('"name":"b"', '"name":"x"'))
    await expect(openStore()).rejects.toMatchObject({ code: 'JOURNAL_CORRUPT' })
    writeFileSync(path(), 'precious notes\n')
    await expect(openStore()).rejects.toMatchObject({ code: 'JOURNAL_CORRUPT' })
    expect(readFileSync(path(), 'utf8')).toBe('precious notes\n')
    expect(readdirSync(folder)).toHaveLength(1)
  })

  it.each(['', 'precious notes\n'])(
    'does not read a large file that is not a journal',
    async (text) => {
      writeFileSync(path(), text)
      fs.truncateSync(path(), 3 * 1024 ** 3)
      const read = vi.spyOn(fs, 'readSync')
      await expect(openStore()).rejects.toMatchObject({ code: 'JOURNAL_CORRUPT' })
      expect(read).toHaveBeenCalledTimes(1)
    },
  )

  it('writes what is changed at the same time together', async () => {
    const store = await openStore()
    const sync = vi.spyOn(fs, 'fdatasync')
    const names = Array.from({ length: 100 }, (_, index) => `task ${index}`)
    await Promise.all(names.map((name) => store.create(newTask(name))))
    expect(sync.mock.calls.length).toBeLessThan(5)
    expect((await reopen()).size).toBe(100)
  })

  it('undoes what could not be written, and goes on when it can', async () => {
    const store = await openStore()
    await store.create(newTask('a'))
    vi.spyOn(fs, 'fdatasync').mockImplementationOnce((_, done) => done(new Error('ENOSPC')))
    const failed = [
      store.change('a', 1, { state: 'lost', runnable: true }),
      store.change('a', 2, { state: 'lost as well', runnable: true }),
      store.create(newTask('b')),
    ]
    const read = store.get('a')
    for (const each of failed) await expect(each).rejects.toThrow('ENOSPC')
    expect(await read).toMatchObject({ version: 1 })
    expect(await store.get('b')).toBeUndefined()
    expect(await store.change('a', 1, { state: 'kept', runnable: true })).toBe('changed')
    expect(await store.create(newTask('b'))).toBe(true)
    const after = await reopen()
    expect(await after.get('a')).toMatchObject({ version: 2, state: 'kept' })
    expect(after.size).toBe(2)
  })

  it('is compacted when most of the file is obsolete', async () => {
    const store = await openStore()
    await store.create(newTask('a', { entries: ['kept'] }))
    const state = 'x'.repeat(100_000)
    let largest = 0
    for (let version = 1; version <= 100; version++) {
      await store.change('a', version, { state: `${version}${state}`, runnable: true })
      largest = Math.max(largest, statSync(path()).size)
    }
    expect(largest).toBeLessThan(6 * 1024 * 1024)
    const after = await reopen()
    expect(await after.get('a')).toMatchObject({ version: 101, state: `100${state}` })
    expect(after.claim(1)).toMatchObject([{ entries: ['kept'] }])
  })

  /** Makes functions of `fs` fail with an error, the first `times` times. */
  function failing(
    names: readonly ('fsync' | 'fdatasync' | 'ftruncate' | 'ftruncateSync' | 'rename')[],
    times = 1,
  ) {
    for (const name of names) {
      const spy = vi.spyOn(fs, name)
      for (let each = 0; each < times; each++)
        spy.mockImplementationOnce((...args: unknown[]) => {
          if (name === 'ftruncateSync') throw new Error('EIO')
          const done = args.at(-1) as (error: Error) => void // as all functions of fs with callbacks
          done(new Error('EIO'))
        })
    }
  }

  it('writes what a full disk has cut again, in the same place', async () => {
    const store = await openStore()
    await store.create(newTask('a'))
    const { size } = statSync(path())
    failing(['ftruncateSync', 'ftruncate'])
    const { write } = fs
    vi.spyOn(fs, 'write').mockImplementationOnce(((
      fd: number,
      bytes: Buffer,
      offset: number,
      length: number,
      position: number,
      done: (error: Error | null, written: number) => void,
    ) =>
      write(fd, bytes, offset, Math.floor(length / 2), position, () =>
        done(new Error('ENOSPC'), 0),
      )) as never)
    await expect(store.change('a', 1, { state: 'lost', runnable: true })).rejects.toThrow('ENOSPC')
    expect(statSync(path()).size).toBeGreaterThan(size)
    await expect(store.create(newTask('b'))).rejects.toThrow('EIO')
    expect(await store.create(newTask('b'))).toBe(true)
    const after = await reopen()
    expect(await after.get('a')).toMatchObject({ version: 1 })
    expect(after.size).toBe(2)
  })

  describe('a change that was written, and could not be synced', () => {
    const failed = async () => {
      const store = await openStore()
      await store.create(newTask('a'))
      const { size } = statSync(path())
      return { store, size }
    }

    it('is cut at once', async () => {
      const { store, size } = await failed()
      failing(['fdatasync'])
      await expect(store.create(newTask('b'))).rejects.toThrow('EIO')
      expect(statSync(path()).size).toBe(size)
      // As after a crash: the file was not closed.
      const bytes = readFileSync(path())
      await store.close()
      writeFileSync(path(), bytes)
      expect((await reopen()).size).toBe(1)
    })

    it('is cut when the journal is closed, if that has failed', async () => {
      const { store, size } = await failed()
      failing(['fdatasync', 'ftruncateSync'])
      await expect(store.create(newTask('b'))).rejects.toThrow('EIO')
      expect(statSync(path()).size).toBeGreaterThan(size)
      expect((await reopen()).size).toBe(1)
      expect(statSync(path()).size).toBe(size)
    })

    it('does not keep the journal from closing, if it cannot be cut', async () => {
      const { store } = await failed()
      failing(['fdatasync'])
      failing(['ftruncateSync'], 2)
      await expect(store.create(newTask('b'))).rejects.toThrow('EIO')
      await store.close()
      expect(readdirSync(folder)).toHaveLength(1)
    })
  })

  /** Changes tasks all the time: there are always changes that wait for those which are being written. */
  async function keepBusy(
    store: JournalTaskStore,
    { tasks, changes, length }: { tasks: number; changes: number; length: number },
  ): Promise<Map<string, number>> {
    const versions = new Map<string, number>()
    const work = async (name: string) => {
      while (!(await store.create(newTask(name)).catch(() => false)));
      let version = 1
      for (let each = 0; each < changes; each++) {
        const state = `${version} ${'x'.repeat(length)}`
        const done = await store.change(name, version, { state, runnable: true }).catch(() => '')
        if (done === 'changed') version++
      }
      versions.set(name, version)
    }
    const works: Promise<void>[] = []
    for (let each = 0; each < tasks; each++) {
      works.push(work(`task ${each}`))
      await new Promise(setImmediate)
    }
    await Promise.all(works)
    return versions
  }

  it('is compacted while it is never idle', async () => {
    const compactBytes = 50_000
    const store = await openStore({ compactBytes })
    let largest = 0
    const { fdatasync } = fs
    vi.spyOn(fs, 'fdatasync').mockImplementation((fd, done) => {
      largest = Math.max(largest, statSync(path()).size)
      setImmediate(() => fdatasync(fd, done))
    })
    await keepBusy(store, { tasks: 10, changes: 60, length: 1000 })
    // 10 tasks count 4096 bytes each; one batch may come on top.
    expect(largest).toBeLessThan(3 * 10 * 4096 + 15_000)
    expect(largest).toBeGreaterThan(compactBytes)
    expect((await reopen()).size).toBe(10)
  })

  it('is compacted by what its tasks have, not by what they are charged', async () => {
    const count = 100
    const store = await openStore({ compactBytes: 1000 })
    const names = Array.from({ length: count }, (_, each) => `task ${each}`)
    await Promise.all(names.map((name) => store.create(newTask(name))))
    const { size } = statSync(path())
    let largest = 0
    for (let version = 1; version <= 60; version++) {
      await Promise.all(
        names.map((name) => store.change(name, version, { state: `${version}`, runnable: true })),
      )
      largest = Math.max(largest, statSync(path()).size)
    }
    expect(size).toBeLessThan(300 * count)
    // One batch may come on top.
    expect(largest).toBeLessThan(4 * 300 * count)
  })

  it('is compacted without changes that are not acknowledged yet', async () => {
    const store = await openStore({ compactBytes: 20_000 })
    for (const name of ['a', 'b']) await store.create(newTask(name))
    await store.change('a', 1, { state: 'x'.repeat(50_000), runnable: true })
    const { fdatasync, rename } = fs
    const waiting: Promise<unknown>[] = []
    vi.spyOn(fs, 'fdatasync').mockImplementationOnce((fd, done) => {
      waiting.push(
        store.change('b', 1, { state: 'lost', runnable: true }),
        store.create(newTask('c')),
      )
      fdatasync(fd, done)
    })
    const renamed = vi.spyOn(fs, 'rename').mockImplementationOnce((from, to, done) => {
      failing(['fdatasync'])
      rename(from, to, done)
    })
    await store.change('a', 2, { state: 'kept', runnable: true })
    for (const each of waiting) await expect(each).rejects.toThrow('EIO')
    expect(renamed).toHaveBeenCalled()
    const after = await reopen()
    expect(await after.get('a')).toMatchObject({ version: 3 })
    expect(await after.get('b')).toMatchObject({ version: 1 })
    expect(after.size).toBe(2)
  })

  it('has exactly what was acknowledged after compactions between failed writes', async () => {
    const store = await openStore({ compactBytes: 5000 })
    const { fdatasync } = fs
    let count = 0
    vi.spyOn(fs, 'fdatasync').mockImplementation((fd, done) => {
      if (++count % 3 === 0) setImmediate(done, new Error('EIO'))
      else setImmediate(() => fdatasync(fd, done))
    })
    const rename = vi.spyOn(fs, 'rename')
    const versions = await keepBusy(store, { tasks: 8, changes: 50, length: 3000 })
    expect(rename.mock.calls.length).toBeGreaterThan(5)
    vi.restoreAllMocks()
    const after = await reopen()
    for (const [name, version] of versions) expect(await after.get(name)).toMatchObject({ version })
    expect(versions.size).toBe(8)
  })

  it('is not compacted in vain if tasks are larger in the file than in memory', async () => {
    const store = await openStore({ compactBytes: 5000 })
    const rename = vi.spyOn(fs, 'rename')
    await store.create(newTask('a', { entries: ['\u0001'.repeat(50_000)] }))
    for (let version = 1; version <= 50; version++)
      await store.change('a', version, { state: 'x', runnable: true })
    expect(rename.mock.calls.length).toBeLessThan(3)
  })

  it('is read in chunks, without tasks that have expired, and compacted when it is opened', async () => {
    const store = await openStore({ compactBytes: 1e9 })
    await store.create(
      newTask('a', { state: 'y'.repeat(2_500_000), entries: ['語'.repeat(700_000)] }),
    )
    await store.create(newTask('gone', { expires: Date.now() + 1, state: 'x'.repeat(1_000_000) }))
    await store.create(newTask('b'))
    for (let version = 1; version <= 20; version++)
      await store.change('b', version, {
        state: `${version} ${'x'.repeat(version * 77_777)}`,
        runnable: true,
      })
    await store.change('b', 21, { state: 'small', runnable: true })
    advance(1)
    await store.close()
    opened.splice(0)
    const { size } = statSync(path())
    expect(size).toBeGreaterThan(20_000_000)
    expect([...readJournal(path()).keys()]).toEqual(['a', 'b'])
    const whole = vi.spyOn(fs, 'readFileSync')
    const chunks = vi.spyOn(fs, 'readSync')
    const after = await openStore()
    expect(whole.mock.calls.filter(([file]) => file === path())).toEqual([])
    for (const [, bytes] of chunks.mock.calls)
      expect(bytes.byteLength).toBeLessThanOrEqual(1024 * 1024)
    expect(after.size).toBe(2)
    expect(await after.get('b')).toMatchObject({ version: 22, state: 'small' })
    expect(after.claim(1)).toMatchObject([{ name: 'a', entries: ['語'.repeat(700_000)] }])
    await after.close()
    expect(statSync(path()).size).toBeLessThan(6_000_000)
    expect((await reopen()).size).toBe(2)
  })

  it('writes large changes in several lines, each with a few of them', async () => {
    const store = await openStore({ maxBytes: 1e9, maxBytesPerOwner: 1e9 })
    const names = Array.from({ length: 20 }, (_, index) => `task ${index}`)
    const state = 'x'.repeat(1_000_000)
    await Promise.all(names.map((name) => store.create(newTask(name, { state }))))
    const lines = readFileSync(path(), 'latin1').split('\n')
    for (const line of lines) expect(line.length).toBeLessThan(10_000_000)
    expect((await reopen()).size).toBe(20)
  })

  it.each([['fsync'], ['rename']] as const)(
    'uses the old file further if it cannot be compacted (%s), and tries again later',
    async (name) => {
      const store = await openStore({ compactBytes: 20_000 })
      await store.create(newTask('a', { entries: ['kept'] }))
      failing([name])
      const state = 'x'.repeat(1000)
      for (let version = 1; version <= 100; version++)
        await store.change('a', version, { state: `${version}${state}`, runnable: true })
      expect(readdirSync(folder).filter((file) => file.endsWith('.new'))).toEqual([])
      expect(statSync(path()).size).toBeLessThan(60_000)
      const after = await reopen()
      expect(await after.get('a')).toMatchObject({ version: 101, state: `100${state}` })
      expect(after.claim(1)).toMatchObject([{ entries: ['kept'] }])
    },
  )

  it('uses the new file after its rename, and acknowledges nothing before the directory is synced', async () => {
    const store = await openStore({ compactBytes: 20_000 })
    await store.create(newTask('a'))
    const state = 'x'.repeat(1000)
    const { fsync } = fs
    const syncs = vi.spyOn(fs, 'fsync').mockImplementation((fd, done) => {
      // The first one is that of the new file, the others are those of the directory.
      const count = syncs.mock.calls.length
      if (count === 1 || count > 4) fsync(fd, done)
      else done(new Error('EIO'))
    })
    let version = 1
    let failed = 0
    while (syncs.mock.calls.length < 5) {
      try {
        await store.change('a', version, { state: `${version}${state}`, runnable: true })
        version++
      } catch {
        failed++
      }
    }
    expect(failed).toBe(2)
    expect(await (await reopen()).get('a')).toMatchObject({ version })
  })

  it('takes its lock when it is opened, and not before', async () => {
    const first = new JournalTaskStore(path())
    const second = new JournalTaskStore(path())
    expect(readdirSync(folder)).toEqual([])
    first.open()
    expect(() => second.open()).toThrow(
      expect.objectContaining({ code: 'JOURNAL_LOCKED', message: expect.stringContaining(path()) }),
    )
    await first.create(newTask('a'))
    await expect(second.get('a')).rejects.toThrow('not open')
    await first.close()
    second.open()
    expect(await second.get('a')).toMatchObject({ version: 1 })
    await second.close()
    expect(readdirSync(folder)).toHaveLength(1)
  })

  it('stays open if it is opened again while it closes, and writes what is pending first', async () => {
    const store = await openStore()
    const created = store.create(newTask('a'))
    const closing = store.close()
    store.open()
    await closing
    expect(await created).toBe(true)
    expect(await store.get('a')).toMatchObject({ version: 1 })
  })

  it('is used by one process; the lock of one that has ended is taken over', async () => {
    await openStore()
    await expect(JournalTaskStore.open(path())).rejects.toMatchObject({ code: 'JOURNAL_LOCKED' })
    await (await reopen()).close()
    opened.splice(0)
    const lock = `${path()}.lock`
    for (const stale of ['2147483646 1', `${process.pid} 1`, 'garbage', '']) {
      writeFileSync(lock, stale)
      await (await openStore()).close()
      opened.splice(0)
    }
    writeFileSync(lock, `${process.ppid} `)
    await expect(openStore()).rejects.toMatchObject({ code: 'JOURNAL_LOCKED' })
    rmSync(lock)
    expect(readdirSync(folder)).toHaveLength(1)
  })

  it('applies its limits, but keeps what is stored when they become smaller', async () => {
    const store = await openStore({ maxTasks: 2 })
    await store.create(newTask('a'))
    await store.create(newTask('b'))
    expect(await store.create(newTask('c'))).toBe(false)
    await store.close()
    opened.splice(0)
    const smaller = await openStore({ maxTasks: 1 })
    expect(smaller.size).toBe(2)
    expect(await smaller.create(newTask('c'))).toBe(false)
    await smaller.close()
    await expect(smaller.create(newTask('c'))).rejects.toThrow('not open')
  })
})
