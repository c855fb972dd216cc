import { mkdtempSync, readFileSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { JournalTaskStore } from '../../src/journal.js'
import { newTask, taskStoreContract } from './task-store-contract.js'

const advance = (milliseconds: number) => void vi.setSystemTime(Date.now() + milliseconds)

let folder = ''
let count = 0
const opened: JournalTaskStore[] = []
const path = () => join(folder, `${count}.journal`)

async function openStore(options?: Parameters<typeof JournalTaskStore.open>[1]) {
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
  taskStoreContract(() => {
    count++
    return openStore()
  }, advance)

  it('has its tasks after it was opened again, unclaimed', async () => {
    const store = await openStore()
    await store.create(newTask('a', { claimed: true }))
    await store.create(newTask('b', { owner: '語' }))
    await store.create(newTask('gone', { expires: Date.now() + 1 }))
    await store.change('a', 1, { state: 'two', runnable: true, append: ['second'] })
    await store.change('b', 1, { state: 'done', runnable: false, clear: true })
    advance(1)
    const after = await reopen()
    expect(await after.get('b')).toMatchObject({ owner: '語', version: 2, state: 'done' })
    expect(await after.get('gone')).toBeUndefined()
    expect(after.claim(9)).toMatchObject([
      { name: 'a', version: 2, state: 'two', entries: ['first', 'second'] },
    ])
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
    const handle = await open(join(folder, 'any'), 'w')
    const sync = vi.spyOn(Object.getPrototypeOf(handle) as typeof handle, 'datasync')
    await handle.close()
    const names = Array.from({ length: 100 }, (_, index) => `task ${index}`)
    await Promise.all(names.map((name) => store.create(newTask(name))))
    expect(sync.mock.calls.length).toBeLessThan(5)
    expect((await reopen()).size).toBe(100)
  })

  it('undoes what could not be written, and goes on when it can', async () => {
    const store = await openStore()
    await store.create(newTask('a'))
    const handle = await open(join(folder, 'any'), 'w')
    const prototype = Object.getPrototypeOf(handle) as typeof handle
    await handle.close()
    vi.spyOn(prototype, 'datasync').mockRejectedValueOnce(new Error('ENOSPC'))
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
    await expect(smaller.create(newTask('c'))).rejects.toThrow('closed')
  })
})
