import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { MemorySessionStore } from '../../src/http.js'
import { sessionStoreContract } from './session-store-contract.js'

const advance = (milliseconds: number) => void vi.advanceTimersByTime(milliseconds)
const record = (state: string) => ({ generation: 0, state })

describe('MemorySessionStore', () => {
  beforeEach(() => void vi.useFakeTimers({ toFake: ['Date', 'performance'] }))
  afterEach(() => void vi.useRealTimers())

  sessionStoreContract(() => new MemorySessionStore(), advance)

  it('evicts the session that was stored longest ago beyond the maximum number', () => {
    const store = new MemorySessionStore({ maxSessions: 3 })
    for (const name of ['a', 'b', 'c', 'a', 'd']) store.set(name, record(name), 1000)
    expect(['a', 'b', 'c', 'd'].map((name) => store.get(name)?.state)).toEqual([
      'a',
      undefined,
      'c',
      'd',
    ])
    expect(store.size).toBe(3)
  })

  it('keeps sessions and deletions for their time, whatever the date says', () => {
    const store = new MemorySessionStore()
    store.set('a', record('a'), 1000)
    store.delete('b', 1000)
    vi.setSystemTime(Date.now() + 7_200_000)
    expect([store.get('a')?.state, store.set('b', record('b'), 1000)]).toEqual(['a', false])
    vi.setSystemTime(Date.now() - 14_400_000)
    advance(1000)
    expect([store.get('a'), store.set('b', record('b'), 1000)]).toEqual([undefined, true])
  })

  it('evicts by bytes as well', () => {
    const store = new MemorySessionStore({ maxBytes: 3000 })
    for (const name of ['a', 'b', 'c']) store.set(name, record('x'.repeat(1000)), 1000)
    expect(['a', 'b', 'c'].map((name) => store.get(name)?.state.length)).toEqual([
      undefined,
      1000,
      1000,
    ])
  })

  it('removes expired sessions when another one is stored, and does not count deleted ones', () => {
    const store = new MemorySessionStore()
    for (const name of ['a', 'd']) store.set(name, record(name), 1000)
    advance(600)
    store.set('c', record('c'), 1000)
    advance(600)
    store.set('e', record('e'), 1000)
    expect(store.size).toBe(2)
    store.delete('c', 1000)
    store.delete('c', 1000)
    expect(store.size).toBe(1)
  })

  it('does not evict sessions for deleted ones', () => {
    const store = new MemorySessionStore({ maxSessions: 2 })
    store.set('a', record('a'), 1000)
    for (const name of ['x', 'y', 'z']) store.delete(name, 1000)
    expect([store.size, store.get('a')]).toEqual([1, record('a')])
    // Only the last two deletions are remembered.
    expect(['x', 'y', 'z'].map((name) => store.set(name, record(name), 1000))).toEqual([
      true,
      false,
      false,
    ])
  })
})
