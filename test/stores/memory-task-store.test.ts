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
