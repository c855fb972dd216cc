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
import { newTask, taskStoreContract } from './task-store-contract.js'

const advance = (milliseconds: number) => void vi.setSystemTime(Date.now() + milliseconds)

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
  vi.useFakeTimers({ toFake: ['Date'] })
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
  function failing(names: readonly ('fsync' | 'fdatasync' | 'ftruncate' | 'rename')[], times = 1) {
    for (const name of names) {
      const spy = vi.spyOn(fs, name)
      for (let each = 0; each < times; each++)
        spy.mockImplementationOnce((...args: unknown[]) => {
          const done = args.at(-1) as (error: Error) => void // as all functions of fs
          done(new Error('EIO'))
        })
    }
  }

  it('writes what a full disk has cut again, in the same place', async () => {
    const store = await openStore()
    await store.create(newTask('a'))
    const { size } = statSync(path())
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
    failing(['ftruncate'])
    await expect(store.create(newTask('b'))).rejects.toThrow('EIO')
    expect(await store.create(newTask('b'))).toBe(true)
    const after = await reopen()
    expect(await after.get('a')).toMatchObject({ version: 1 })
    expect(after.size).toBe(2)
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
