import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { MemoryTaskStore } from '../../src/tasks.js'
import { newTask, taskStoreContract } from './task-store-contract.js'

const advance = (milliseconds: number) => void vi.advanceTimersByTime(milliseconds)

describe('MemoryTaskStore', () => {
  beforeEach(() => void vi.useFakeTimers({ toFake: ['Date', 'performance'] }))
  afterEach(() => {
    vi.restoreAllMocks()
    vi.useRealTimers()
  })

  taskStoreContract({ create: (limits) => new MemoryTaskStore(limits), advance })

  it('counts strings beyond Latin-1 twice, and entries', () => {
    const store = new MemoryTaskStore()
    store.create(newTask('a', { state: '語'.repeat(10_000), entries: ['x'.repeat(5000)] }))
    expect(store.bytes).toBeGreaterThan(25_000)
    store.change('a', 1, { state: 'x', runnable: false, clear: true })
    expect(store.bytes).toBeLessThan(5000)
  })

  it('looks for expired tasks only when one may have expired, however often it is full', () => {
    const maxTasks = 1000
    const store = new MemoryTaskStore({ maxTasks, maxTasksPerOwner: maxTasks })
    const expires = Date.now() + 60_000
    for (let each = 0; each < maxTasks; each++)
      store.create(newTask(`task ${each}`, { expires: expires + 1000 * each }))
    const clock = vi.spyOn(performance, 'now')
    const refusals = () => {
      clock.mockClear()
      for (let each = 0; each < 10; each++) expect(store.create(newTask('late'))).toBe(false)
      return clock.mock.calls.length
    }
    expect(refusals()).toBeLessThan(100)
    advance(60_000)
    expect(store.create(newTask('in time', { expires: expires + 1 }))).toBe(true)
    expect(refusals()).toBeLessThan(100)
    advance(1)
    expect(store.create(newTask('in time again'))).toBe(true)
    expect(store.size).toBe(maxTasks)
  })

  it('has the entries of each version, also after one was undone', () => {
    const store = new MemoryTaskStore()
    const append = (version: number, ...entries: string[]) =>
      store.change('a', version, { state: 'x', runnable: true, append: entries })
    const texts = () => store.entry('a')?.entries.texts
    store.create(newTask('a', { entries: ['1'] }))
    append(1, '2')
    const before = store.entry('a')
    const { bytes } = store
    append(2, 'x'.repeat(10_000))
    expect(before?.entries.texts).toEqual(['1', '2'])
    store.restore('a', before)
    expect([texts(), store.bytes]).toEqual([['1', '2'], bytes])
    append(2, '3')
    append(3)
    append(4, '4', '5')
    expect(texts()).toEqual(['1', '2', '3', '4', '5'])
    expect(store.claim(1)).toMatchObject([{ entries: ['1', '2', '3', '4', '5'] }])
    expect(before?.entries.texts).toEqual(['1', '2'])
    store.restore('a', undefined)
    expect([store.bytes, store.text, store.size]).toEqual([0, 0, 0])
  })

  it('keeps tasks for their time, whatever the date says', () => {
    const store = new MemoryTaskStore()
    store.create(newTask('a', { expires: Date.now() + 1000 }))
    vi.setSystemTime(Date.now() + 7_200_000)
    expect(store.claim(1)).toMatchObject([{ name: 'a', timeLeft: 1000 }])
    vi.setSystemTime(Date.now() - 14_400_000)
    advance(999)
    expect(store.get('a')).toMatchObject({ name: 'a' })
    advance(1)
    expect(store.get('a')).toBeUndefined()
  })

  it('does not put a task back that expires while room is made for it', () => {
    const store = new MemoryTaskStore({ maxBytes: 10_000 })
    const now = performance.now()
    const expires = Date.now() + 1000
    store.create(newTask('a', { expires }))
    store.create(newTask('b', { expires }))
    // The clock passes the expiry after the task was found.
    advance(1000)
    vi.spyOn(performance, 'now').mockReturnValueOnce(now + 999)
    const state = 'x'.repeat(7000)
    expect(store.change('a', 1, { state, runnable: true })).toBe('conflict')
    expect([store.bytes, store.size]).toEqual([0, 0])
    expect(store.claim(1)).toEqual([])
  })
})
