import fs, {
  copyFileSync,
  existsSync,
  linkSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { JournalTaskStore, type JournalTaskStoreOptions } from '../../src/journal.js'
import { newTask } from './task-store-contract.js'

/* A journal that something else deletes, replaces or changes while it is used, or that a crash has cut. */

let folder = ''
const path = () => join(folder, 'tasks.journal')
const aside = () => join(folder, 'aside')
const opened: JournalTaskStore[] = []
const report = vi.fn()

function openStore(options?: JournalTaskStoreOptions) {
  const store = new JournalTaskStore(path(), options)
  store.open(report)
  opened.push(store)
  return store
}

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'ccmcp-replaced-'))
})
afterEach(async () => {
  vi.restoreAllMocks()
  report.mockReset()
  for (const store of opened.splice(0)) await store.close()
  rmSync(folder, { recursive: true })
})

/** What something else does to the file, and how the error names it. */
const faults: Readonly<Record<string, () => void>> = {
  deleted: () => rmSync(path()),
  replaced: () => {
    copyFileSync(path(), aside())
    renameSync(aside(), path())
  },
  changed: () => writeFileSync(path(), ''),
}
const lost = (what: string) =>
  expect.objectContaining({
    code: 'JOURNAL_LOST',
    message: expect.stringMatching(
      new RegExp(`was ${what} by something else .* put it back .* restart this process$`),
    ),
  })

describe.each(Object.keys(faults))('a journal that is %s while it is used', (what) => {
  it('takes no more changes, and says why', async () => {
    const store = openStore()
    const missed = vi.fn()
    store.subscribe(() => {}, missed)
    await store.create(newTask('a'))
    faults[what]?.()
    const left = existsSync(path()) ? readFileSync(path()) : undefined
    for (const name of ['b', 'c'])
      await expect(store.create(newTask(name))).rejects.toThrow(lost(what))
    await expect(store.change('a', 1, { state: 'x', runnable: true })).rejects.toThrow(lost(what))
    await expect(store.get('a')).rejects.toThrow(lost(what))
    expect(() => store.holds()).toThrow(lost(what))
    expect(missed).toHaveBeenCalledOnce()
    expect(report.mock.calls).toEqual([
      [
        {
          level: 'error',
          message: 'The journal of tasks cannot be used any more',
          error: lost(what),
        },
      ],
    ])
    await store.close()
    // What somebody else has put there is as it was, and the lock is gone.
    expect(existsSync(path()) ? readFileSync(path()) : undefined).toEqual(left)
    expect(existsSync(`${path()}.lock`)).toBe(false)
    const again = openStore()
    expect(again.size).toBe(what === 'replaced' ? 1 : 0)
    expect(await again.create(newTask('d'))).toBe(true)
  })

  it('acknowledges nothing that is being written at that moment', async () => {
    const store = openStore()
    await store.create(newTask('a'))
    const { fdatasync } = fs
    vi.spyOn(fs, 'fdatasync').mockImplementationOnce((fd, done) => {
      faults[what]?.()
      fdatasync(fd, done)
    })
    const written = await Promise.allSettled([
      store.create(newTask('b')),
      store.create(newTask('c')),
    ])
    expect(written).toEqual([
      { status: 'rejected', reason: lost(what) },
      { status: 'rejected', reason: lost(what) },
    ])
  })

  it('is not put into the place of the other one when it is compacted', async () => {
    const store = openStore({ compactBytes: 20_000 })
    await store.create(newTask('a'))
    const { fsync } = fs
    const renamed = vi.spyOn(fs, 'rename')
    let compacting = 0
    vi.spyOn(fs, 'fsync').mockImplementation((fd, done) => {
      if (compacting++ === 0) faults[what]?.()
      fsync(fd, done)
    })
    const fill = async () => {
      for (let version = 1; version < 1000; version++)
        await store.change('a', version, { state: 'x'.repeat(9000), runnable: true })
    }
    await expect(fill()).rejects.toThrow(lost(what))
    expect(compacting).toBe(1)
    expect(renamed).not.toHaveBeenCalled()
  })
})

it('is not lost on a file system whose inode numbers change', async () => {
  const store = openStore()
  const { statSync: stat } = fs
  let more = 0n
  vi.spyOn(fs, 'statSync').mockImplementation((...given: Parameters<typeof stat>) => {
    const found = stat(...given)
    return found?.ino === undefined ? found : Object.assign(found, { ino: ++more })
  })
  for (const name of ['a', 'b']) expect(await store.create(newTask(name))).toBe(true)
  expect(report).not.toHaveBeenCalled()
})

it('is lost if another file of its size is in its place', async () => {
  const store = openStore()
  await store.create(newTask('a'))
  linkSync(path(), join(folder, 'backup'))
  faults['replaced']?.()
  await expect(store.create(newTask('b'))).rejects.toThrow(lost('replaced'))
})

it('looks at the file twice for each write, however many changes it has', async () => {
  const store = openStore()
  const stat = vi.spyOn(fs, 'statSync')
  for (let each = 0; each < 5; each++)
    await Promise.all(
      Array.from({ length: 20 }, (_, index) => store.create(newTask(`task ${each} ${index}`))),
    )
  expect(stat.mock.calls.filter(([name]) => name === path())).toHaveLength(10)
})

it('says how many bytes of an incomplete end were cut', async () => {
  const before = openStore()
  await before.create(newTask('a'))
  const { size } = statSync(path())
  await before.create(newTask('b'))
  await before.close()
  const written = readFileSync(path())
  expect(report).not.toHaveBeenCalled()
  writeFileSync(path(), written.subarray(0, written.length - 7))
  expect(openStore().size).toBe(1)
  expect(statSync(path()).size).toBe(size)
  expect(report.mock.calls).toEqual([
    [
      {
        level: 'warning',
        message: expect.stringContaining(`: ${written.length - 7 - size} bytes were cut`),
      },
    ],
  ])
})
