import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { MemoryTaskStore } from '../../src/tasks.js'
import { newTask, taskStoreContract } from './task-store-contract.js'

const advance = (milliseconds: number) => void vi.setSystemTime(Date.now() + milliseconds)

describe('MemoryTaskStore', () => {
  beforeEach(() => void vi.useFakeTimers({ toFake: ['Date'] }))
  afterEach(() => void vi.useRealTimers())

  taskStoreContract(() => new MemoryTaskStore(), advance)

  it('refuses tasks beyond the maximum number, of all and of an owner', () => {
    const store = new MemoryTaskStore({ maxTasks: 3, maxTasksPerOwner: 2 })
    const create = (name: string, owner: string) => store.create(newTask(name, { owner }))
    expect([create('a', 'ada'), create('b', 'ada'), create('c', 'ada')]).toEqual([
      true,
      true,
      false,
    ])
    expect([create('c', 'bob'), create('d', 'bob'), create('d', 'eve')]).toEqual([
      true,
      false,
      false,
    ])
    expect(store.size).toBe(3)
  })

  it('refuses tasks and changes beyond the maximum bytes, of all and of an owner', () => {
    const store = new MemoryTaskStore({ maxBytes: 40_000, maxBytesPerOwner: 30_000 })
    const large = 'x'.repeat(20_000)
    expect(store.create(newTask('a', { state: large }))).toBe(true)
    expect(store.create(newTask('b', { state: large }))).toBe(false)
    expect(store.create(newTask('b', { state: large, owner: 'bob' }))).toBe(false)
    expect(store.create(newTask('b', { owner: 'bob' }))).toBe(true)
    const append = [large]
    expect(store.change('a', 1, { state: large, runnable: true, append })).toBe('full')
    expect(store.change('b', 1, { state: large, runnable: true })).toBe('full')
    expect(store.get('b')).toMatchObject({ version: 1 })
    // A small state always fits, because every task is charged some bytes.
    expect(store.change('b', 1, { state: 'y'.repeat(2000), runnable: true })).toBe('changed')
    expect(store.change('a', 1, { state: 'small', runnable: false, clear: true })).toBe('changed')
    expect(store.create(newTask('c', { state: large, owner: 'eve' }))).toBe(true)
  })

  it('counts strings beyond Latin-1 twice, and entries', () => {
    const store = new MemoryTaskStore()
    store.create(newTask('a', { state: '語'.repeat(10_000), entries: ['x'.repeat(5000)] }))
    expect(store.bytes).toBeGreaterThan(25_000)
    store.change('a', 1, { state: 'x', runnable: false, clear: true })
    expect(store.bytes).toBeLessThan(5000)
  })

  it('deletes expired tasks to make room', () => {
    const store = new MemoryTaskStore({ maxTasks: 2 })
    store.create(newTask('a', { expires: Date.now() + 1000 }))
    store.create(newTask('b', { expires: Date.now() + 5000 }))
    advance(1000)
    expect(store.create(newTask('c'))).toBe(true)
    expect(store.size).toBe(2)
  })
})
