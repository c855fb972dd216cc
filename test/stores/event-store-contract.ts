import { expect, it } from 'vitest'
import type { EventStore } from '../../src/http.js'

/** Milliseconds: long enough for any test. */
const TTL = 60_000

/** What every `EventStore` must do. Call it within `describe`; `create` makes an empty store. */
export function eventStoreContract(create: () => EventStore | Promise<EventStore>): void {
  const filled = async (count: number) => {
    const store = await create()
    for (let number = 1; number <= count; number++)
      await store.append('a', { number, frame: `a${number}` }, TTL)
    return store
  }
  /** All events after a number, also of a store that returns them in several parts. */
  const readAll = async (store: EventStore, stream: string, after: number) => {
    const frames: string[] = []
    for (let last = after; ;) {
      const events = await store.read(stream, last)
      const newest = events.at(-1)
      if (newest === undefined) return frames
      expect(newest.number).toBeGreaterThan(last)
      frames.push(...events.map(({ frame }) => frame))
      last = newest.number
    }
  }

  it('reads events after a number, in order', async () => {
    const store = await filled(12)
    expect(await readAll(store, 'a', 9)).toEqual(['a10', 'a11', 'a12'])
    expect(await readAll(store, 'a', 0)).toHaveLength(12)
    expect(await store.read('a', 12)).toEqual([])
  })

  it('returns number and frame unchanged', async () => {
    const store = await create()
    const event = { number: 1, frame: '{"text":"語 \\u0000 \\n ü 😀"}' }
    await store.append('a', event, TTL)
    expect(await store.read('a', 0)).toEqual([event])
  })

  it('keeps streams apart', async () => {
    const store = await filled(2)
    await store.append('a/b', { number: 1, frame: 'other' }, TTL)
    expect(await readAll(store, 'a/b', 0)).toEqual(['other'])
    expect(await readAll(store, 'a', 0)).toEqual(['a1', 'a2'])
  })

  it('returns nothing of an unknown stream', async () => {
    expect(await (await create()).read('unknown', 0)).toEqual([])
  })

  it('ignores an event that is appended again', async () => {
    const store = await filled(2)
    await store.append('a', { number: 2, frame: 'a2' }, TTL)
    await store.append('a', { number: 3, frame: 'a3' }, TTL)
    expect(await readAll(store, 'a', 0)).toEqual(['a1', 'a2', 'a3'])
  })

  it('reads event 0 only where it is asked for', async () => {
    const store = await create()
    await store.append('a', { number: 0, frame: '[1]' }, TTL)
    await store.append('a', { number: 1, frame: 'a1' }, TTL)
    expect(await readAll(store, 'a', 0)).toEqual(['a1'])
    expect(await readAll(store, 'a', -1)).toEqual(['[1]', 'a1'])
  })

  it('accepts gaps in the numbers', async () => {
    const store = await filled(1)
    await store.append('a', { number: 5, frame: 'a5' }, TTL)
    expect(await readAll(store, 'a', 1)).toEqual(['a5'])
  })

  it('deletes a stream, and an unknown one without an error', async () => {
    const store = await filled(2)
    await store.append('b', { number: 1, frame: 'b1' }, TTL)
    await store.delete('a')
    await store.delete('a')
    expect(await store.read('a', 0)).toEqual([])
    expect(await readAll(store, 'b', 0)).toEqual(['b1'])
  })

  it('has an event as soon as append has resolved, with appends in parallel', async () => {
    const store = await create()
    const numbers = Array.from({ length: 20 }, (_, index) => index + 1)
    await Promise.all(
      numbers.map(async (number) => store.append('a', { number, frame: String(number) }, TTL)),
    )
    expect(await readAll(store, 'a', 0)).toEqual(numbers.map(String))
  })
}
