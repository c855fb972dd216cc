import { expect, it } from 'vitest'
import type { SessionStore } from '../../src/http.js'

/** Milliseconds: long enough for any test. */
const TTL = 1_000_000
const record = (state: string, generation = 0) => ({ generation, state })

/**
 * What every `SessionStore` must do. Call it within `describe`; `create` makes an empty store, `advance` moves its
 * clock by milliseconds.
 */
export function sessionStoreContract(
  create: () => SessionStore | Promise<SessionStore>,
  advance: (milliseconds: number) => void | Promise<void>,
): void {
  it('returns what was stored last', async () => {
    const store = await create()
    expect(await store.get('a')).toBeUndefined()
    expect(await store.set('a', record('{"text":"語 ü 😀"}'), TTL)).toBe(true)
    expect(await store.get('a')).toEqual(record('{"text":"語 ü 😀"}'))
    expect(await store.set('a', record('second'), TTL)).toBe(true)
    expect(await store.get('a')).toEqual(record('second'))
    expect(await store.get('b')).toBeUndefined()
  })

  it('expires a session after its time to live, counted from the last set', async () => {
    const store = await create()
    await store.set('a', record('first'), 100_000)
    await advance(60_000)
    await store.set('a', record('second'), 100_000)
    await advance(60_000)
    expect(await store.get('a')).toEqual(record('second'))
    await advance(60_000)
    expect(await store.get('a')).toBeUndefined()
  })

  it('rejects a lower generation than the stored one', async () => {
    const store = await create()
    await store.set('a', record('created'), TTL)
    expect(await store.set('a', record('restored', 7_000_000_000), TTL)).toBe(true)
    expect(await store.set('a', record('stale', 6_999_999_999), TTL)).toBe(false)
    expect(await store.get('a')).toEqual(record('restored', 7_000_000_000))
    expect(await store.set('a', record('changed', 7_000_000_000), TTL)).toBe(true)
    expect(await store.get('a')).toEqual(record('changed', 7_000_000_000))
  })

  it('ignores a set that was overtaken by a newer one of the same generation', async () => {
    const store = await create()
    const set = (state: string, generation: number, sequence?: number) =>
      store.set('a', { ...record(state, generation), ...(sequence && { sequence }) }, TTL)
    expect(await set('second', 1, 10)).toBe(true)
    // Not superseded: the process that has stored it is the same.
    expect(await set('first', 1, 9)).toBe(true)
    expect(await store.get('a')).toMatchObject(record('second', 1))
    expect(await set('again', 1, 10)).toBe(true)
    expect(await store.get('a')).toMatchObject(record('again', 1))
    // Each generation counts anew.
    expect(await set('restored', 2, 3)).toBe(true)
    expect(await set('late', 1, 11)).toBe(false)
    expect(await store.get('a')).toMatchObject(record('restored', 2))
    expect(await set('changed', 2, 4)).toBe(true)
    expect(await store.get('a')).toMatchObject(record('changed', 2))
    expect(await set('not counted', 2)).toBe(true)
    expect(await store.get('a')).toMatchObject(record('not counted', 2))
  })

  it('lets only the highest of parallel generations remain', async () => {
    const store = await create()
    await Promise.all(
      [3, 9, 1, 5].map(async (each) => store.set('a', record(String(each), each), TTL)),
    )
    expect(await store.get('a')).toEqual(record('9', 9))
  })

  it('rejects storing a deleted session again, until the time to live of the deletion', async () => {
    const store = await create()
    await store.set('a', record('first', 1), TTL)
    await store.delete('a', 100_000)
    expect(await store.get('a')).toBeUndefined()
    expect(await store.set('a', record('late', 2), TTL)).toBe(false)
    expect(await store.get('a')).toBeUndefined()
    await advance(110_000)
    expect(await store.set('a', record('new'), TTL)).toBe(true)
  })

  it('deletes a session only for its newest generation, where one is given', async () => {
    const store = await create()
    await store.set('a', record('x', 5), TTL)
    expect(await store.delete('a', TTL, 4)).toBe(false)
    expect(await store.get('a')).toEqual(record('x', 5))
    expect(await store.delete('a', TTL, 5)).not.toBe(false)
    expect(await store.get('a')).toBeUndefined()
    expect(await store.delete('unknown', TTL, 0)).not.toBe(false)
  })

  it('deletes one session only, and an unknown one without an error', async () => {
    const store = await create()
    await store.set('a', record('a'), TTL)
    await store.set('b', record('b'), TTL)
    await store.delete('a', TTL)
    await store.delete('a', TTL)
    await store.delete('unknown', TTL)
    expect([await store.get('a'), await store.get('b')]).toEqual([undefined, record('b')])
  })
}
