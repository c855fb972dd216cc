import { expect, it } from 'vitest'
import type { NewTask, TaskChange, TaskStore } from '../../src/tasks.js'

/** Milliseconds: long enough for any test. */
const TTL = 60_000

export const newTask = (name: string, more: Partial<NewTask> = {}): NewTask => ({
  name,
  owner: 'ada',
  expires: Date.now() + TTL,
  runnable: true,
  claimed: false,
  state: '{"text":"語 ü 😀"}',
  entries: ['first'],
  ...more,
})

const change = (state: string, more: Partial<TaskChange> = {}): TaskChange => ({
  state,
  runnable: true,
  ...more,
})

/**
 * What every `TaskStore` must do. Call it within `describe`; `create` makes an empty store, `advance` moves its clock by
 * milliseconds.
 */
export function taskStoreContract(
  create: () => TaskStore | Promise<TaskStore>,
  advance: (milliseconds: number) => void | Promise<void>,
): void {
  it('returns a task as it was stored', async () => {
    const store = await create()
    const { claimed: _, entries: __, ...task } = newTask('a')
    expect(await store.get('a')).toBeUndefined()
    expect(await store.create(newTask('a'))).toBe(true)
    expect(await store.get('a')).toEqual({ ...task, version: 1 })
    expect(await store.create(newTask('a', { state: 'other' }))).toBe(false)
    expect(await store.get('a')).toEqual({ ...task, version: 1 })
    expect(await store.get('b')).toBeUndefined()
  })

  it('changes the version that was read, and no other', async () => {
    const store = await create()
    await store.create(newTask('a'))
    expect(await store.change('a', 1, change('two'))).toBe('changed')
    expect(await store.change('a', 1, change('lost'))).toBe('conflict')
    expect(await store.get('a')).toMatchObject({ version: 2, state: 'two' })
    expect(await store.change('b', 1, change('x'))).toBe('conflict')
    const both = await Promise.all([
      store.change('a', 2, change('three')),
      store.change('a', 2, change('three as well')),
    ])
    expect(both.toSorted()).toEqual(['changed', 'conflict'])
  })

  it('appends entries in order, and deletes them with `clear`', async () => {
    const store = await create()
    await store.create(newTask('a', { runnable: false }))
    await store.change('a', 1, change('x', { append: ['second', 'third'], runnable: false }))
    await store.change('a', 2, change('y', { append: ['fourth'] }))
    const [claimed] = await store.claim(1)
    expect(claimed).toMatchObject({
      name: 'a',
      version: 3,
      state: 'y',
      entries: ['first', 'second', 'third', 'fourth'],
    })
    await store.change('a', 3, change('z', { clear: true, runnable: false }))
    await store.change('a', 4, change('z'))
    expect(await store.claim(1)).toMatchObject([{ entries: [] }])
  })

  it('gives each task that is to be run to one claim, oldest first', async () => {
    const store = await create()
    for (const name of ['a', 'b', 'c']) await store.create(newTask(name))
    await store.create(newTask('claimed', { claimed: true }))
    await store.create(newTask('parked', { runnable: false }))
    const names = async (limit: number) => (await store.claim(limit)).map(({ name }) => name)
    expect(await names(2)).toEqual(['a', 'b'])
    expect(await names(9)).toEqual(['c'])
    expect(await names(9)).toEqual([])
    await store.change('a', 1, change('still running'))
    expect(await names(9)).toEqual([])
    await store.change('b', 1, change('parked', { runnable: false }))
    await store.change('b', 2, change('answered'))
    expect(await names(9)).toEqual(['b'])
    await store.change('parked', 1, change('answered'))
    expect(await names(9)).toEqual(['parked'])
  })

  it('returns claimed tasks again after release', async () => {
    const store = await create()
    await store.create(newTask('a'))
    await store.create(newTask('b', { claimed: true }))
    await store.create(newTask('ended', { claimed: true }))
    await store.change('ended', 1, change('done', { runnable: false }))
    await store.claim(9)
    await store.release()
    const names = (await store.claim(9)).map(({ name }) => name)
    expect(names.toSorted()).toEqual(['a', 'b'])
  })

  it('forgets a task when it expires', async () => {
    const store = await create()
    await store.create(newTask('a', { expires: Date.now() + 1000 }))
    await advance(999)
    expect(await store.get('a')).toBeDefined()
    await advance(1)
    expect(await store.get('a')).toBeUndefined()
    expect(await store.change('a', 1, change('x'))).toBe('conflict')
    expect(await store.claim(9)).toEqual([])
    expect(await store.create(newTask('a'))).toBe(true)
  })

  it('calls subscribers with the name of each task that was changed', async () => {
    const store = await create()
    const changed: string[] = []
    const end = store.subscribe((name) => changed.push(name))
    await store.create(newTask('a'))
    await store.create(newTask('b'))
    await store.change('b', 1, change('x'))
    await store.change('a', 7, change('conflict'))
    await store.change('a', 1, change('x'))
    expect(changed.filter((name) => name !== '')).toEqual(['b', 'a'])
    end()
    await store.change('a', 2, change('y'))
    expect(changed).toEqual(['b', 'a'])
  })

  it('keeps keys such as __proto__ apart', async () => {
    const store = await create()
    expect(await store.get('__proto__')).toBeUndefined()
    expect(await store.create(newTask('__proto__', { owner: 'constructor' }))).toBe(true)
    expect(await store.get('__proto__')).toMatchObject({ owner: 'constructor' })
  })
}
