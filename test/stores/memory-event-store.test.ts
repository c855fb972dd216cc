import { describe, expect, it } from 'vitest'
import { MemoryEventStore, type StoredEvent } from '../../src/http.js'
import { eventStoreContract } from './event-store-contract.js'

const numbers = (events: readonly StoredEvent[]) => events.map(({ number }) => number)

describe('MemoryEventStore', () => {
  eventStoreContract(() => new MemoryEventStore())

  it('evicts the oldest events of a full stream, never its newest', () => {
    const store = new MemoryEventStore({ maxBytesPerStream: 1000 })
    for (let number = 1; number <= 20; number++)
      store.append('a', { number, frame: 'x'.repeat(100) })
    expect(numbers(store.read('a', 0))).toEqual([16, 17, 18, 19, 20])
    // The newest stays, however large, until the next one.
    store.append('a', { number: 21, frame: 'x'.repeat(2000) })
    expect([numbers(store.read('a', 0)), store.size]).toEqual([[21], 2500])
    store.append('a', { number: 22, frame: 'x' })
    expect([numbers(store.read('a', 0)), store.size]).toEqual([[22], 501])
  })

  it('keeps event 0 of a full stream', () => {
    const store = new MemoryEventStore({ maxBytesPerStream: 500 })
    for (let number = 0; number <= 9; number++)
      store.append('a', { number, frame: 'x'.repeat(100) })
    expect(numbers(store.read('a', -1))).toEqual([0, 9])
  })

  it('does not store an event that is larger than the whole store', () => {
    const store = new MemoryEventStore({ maxBytesPerStream: 1000, maxBytes: 1900 })
    store.append('a', { number: 1, frame: 'x'.repeat(2000) })
    expect([store.read('a', 0), store.size]).toEqual([[], 0])
  })

  it('evicts the streams with the oldest last event at the total limit', () => {
    const store = new MemoryEventStore({ maxBytes: 2200 })
    for (const [index, stream] of ['a', 'b', 'c', 'a', 'd'].entries())
      store.append(stream, { number: index + 1, frame: 'x'.repeat(150) })
    expect(['a', 'b', 'c', 'd'].map((stream) => store.read(stream, 0).length)).toEqual([2, 0, 1, 1])
    expect(store.size).toBeLessThanOrEqual(2200)
  })

  it('counts two bytes per character beyond Latin-1', () => {
    const size = (frame: string) => {
      const store = new MemoryEventStore()
      store.append('a', { number: 1, frame })
      return store.size
    }
    expect([size('ü'.repeat(1000)) - size(''), size('語'.repeat(1000)) - size('')]).toEqual([
      1000, 2000,
    ])
  })

  it('uses no bytes after a stream was deleted', () => {
    const store = new MemoryEventStore()
    store.append('a', { number: 1, frame: 'x' })
    expect(store.size).toBe(501)
    store.delete('a')
    store.delete('a')
    expect(store.size).toBe(0)
  })
})
