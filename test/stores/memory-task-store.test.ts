import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { MemoryTaskStore } from '../../src/tasks.js'
import { newTask, taskStoreContract } from './task-store-contract.js'

const advance = (milliseconds: number) => void vi.setSystemTime(Date.now() + milliseconds)

describe('MemoryTaskStore', () => {
  beforeEach(() => void vi.useFakeTimers({ toFake: ['Date'] }))
  afterEach(() => void vi.useRealTimers())

  taskStoreContract({ create: (limits) => new MemoryTaskStore(limits), advance })

  it('counts strings beyond Latin-1 twice, and entries', () => {
    const store = new MemoryTaskStore()
    store.create(newTask('a', { state: '語'.repeat(10_000), entries: ['x'.repeat(5000)] }))
    expect(store.bytes).toBeGreaterThan(25_000)
    store.change('a', 1, { state: 'x', runnable: false, clear: true })
    expect(store.bytes).toBeLessThan(5000)
  })
})
