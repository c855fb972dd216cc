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

export interface Limits {
  maxTasks?: number
  maxBytes?: number
  maxTasksPerOwner?: number
  maxBytesPerOwner?: number
}

export interface ContractOptions {
  /** Makes an empty store, ready to be used. */
  create(limits?: Limits): TaskStore | Promise<TaskStore>
  /** Moves the clock of the store by milliseconds. */
  advance(milliseconds: number): void | Promise<void>
  /** For a store that survives its process: the store after the process was killed and started again. */
  restart?(store: TaskStore): TaskStore | Promise<TaskStore>
  /** For a store that several processes share: the same store in another process. */
  another?(store: TaskStore): TaskStore | Promise<TaskStore>
}

const namesOf = (tasks: readonly { name: string }[]) => tasks.map(({ name }) => name)

/** What every `TaskStore` must do. Call it within `describe`. */
export function taskStoreContract({ create, advance, restart, another }: ContractOptions): void {
  it('returns a task as it was stored', async () => {
    const store = await create()
    const given = newTask('a')
    const { claimed: _, entries: __, ...task } = given
    expect(await store.get('a')).toBeUndefined()
    expect(await store.create(given)).toBe(true)
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

  it('keeps the place of a task in the queue, unless its claim has ended', async () => {
    const store = await create()
    for (const name of ['a', 'b', 'c']) await store.create(newTask(name))
    await store.change('a', 1, change('changed while it waits'))
    const [first] = await store.claim(1)
    expect(first).toMatchObject({ name: 'a', version: 2 })
    await store.change('a', 2, change('again', { release: true, append: ['second'] }))
    const all = await store.claim(9)
    expect(namesOf(all)).toEqual(['b', 'c', 'a'])
    expect(all[2]).toMatchObject({ version: 3, state: 'again', entries: ['first', 'second'] })
    expect(await store.claim(9)).toEqual([])
  })

  it('claims nothing without room, and a task that is not runnable only when it becomes so', async () => {
    const store = await create()
    await store.create(newTask('a'))
    await store.create(newTask('parked', { runnable: false, claimed: true }))
    expect(await store.claim(0)).toEqual([])
    expect(namesOf(await store.claim(9))).toEqual(['a'])
    await store.change('parked', 1, change('answered'))
    expect(namesOf(await store.claim(9))).toEqual(['parked'])
  })

  it('passes over the tasks of owners that have their share, and keeps their places', async () => {
    const store = await create()
    for (const [name, owner] of [
      ['a1', 'ada'],
      ['a2', 'ada'],
      ['a3', 'ada'],
      ['n1', 'nobody'],
      ['b1', 'bob'],
      ['n2', 'nobody'],
      ['b2', 'bob'],
    ] as const)
      await store.create(newTask(name, { owner }))
    const shares = (taken: Record<string, number>) => ({
      anybody: 'nobody',
      most: 2,
      taken: new Map(Object.entries(taken)),
    })
    const claim = async (limit: number, taken: Record<string, number>) =>
      namesOf(await store.claim(limit, shares(taken)))
    expect(await claim(2, { ada: 1, nobody: 9 })).toEqual(['a1', 'n1'])
    expect(await claim(9, { ada: 2, nobody: 9 })).toEqual(['b1', 'n2', 'b2'])
    expect(await claim(9, { ada: 7 })).toEqual([])
    expect(await claim(1, { ada: 1 })).toEqual(['a2'])
    expect(namesOf(await store.claim(9))).toEqual(['a3'])
  })

  it('gives each task to one of several claims at the same time', async () => {
    const store = await create()
    const names = Array.from({ length: 20 }, (_, index) => `task ${index}`)
    for (const name of names) await store.create(newTask(name))
    const claims = await Promise.all(Array.from({ length: 8 }, async () => await store.claim(3)))
    expect(namesOf(claims.flat()).toSorted()).toEqual(names.toSorted())
  })

  it('has what was changed as soon as the change has returned', async () => {
    const store = await create()
    for (let each = 0; each < 20; each++) {
      await store.create(newTask(`task ${each}`))
      expect(await store.get(`task ${each}`)).toMatchObject({ version: 1 })
      await store.change(`task ${each}`, 1, change('two'))
      expect(await store.get(`task ${each}`)).toMatchObject({ version: 2, state: 'two' })
    }
  })

  it('lets one of many changes at the same time win, without losing an entry', async () => {
    const store = await create()
    await store.create(newTask('a', { entries: [] }))
    const append = async (entry: string) => {
      for (;;) {
        const version = (await store.get('a'))?.version ?? 0
        const outcome = await store.change('a', version, change('x', { append: [entry] }))
        if (outcome === 'changed') return
        expect(outcome).toBe('conflict')
      }
    }
    const entries = Array.from({ length: 10 }, (_, index) => `entry ${index}`)
    await Promise.all(entries.map(append))
    const [claimed] = await store.claim(1)
    expect(claimed?.version).toBe(11)
    expect(claimed?.entries.toSorted()).toEqual(entries.toSorted())
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
    await store.create(newTask('a', { expires: Date.now() + TTL }))
    await advance(TTL / 2)
    expect(await store.get('a')).toBeDefined()
    await advance(TTL / 2)
    expect(await store.get('a')).toBeUndefined()
    expect(await store.change('a', 1, change('x'))).toBe('conflict')
    expect(await store.claim(9)).toEqual([])
    expect(await store.create(newTask('a'))).toBe(true)
  })

  it('does not extend the life of a task that is changed or claimed', async () => {
    const store = await create()
    const expires = Date.now() + TTL
    await store.create(newTask('a', { expires }))
    await advance(TTL / 2)
    await store.claim(1)
    await store.change('a', 1, change('x'))
    expect(await store.get('a')).toMatchObject({ expires })
    await advance(TTL / 2)
    expect(await store.get('a')).toBeUndefined()
    await store.release()
    expect(await store.claim(9)).toEqual([])
  })

  it('refuses tasks beyond the maximum number, of all and of an owner', async () => {
    const store = await create({ maxTasks: 3, maxTasksPerOwner: 2 })
    const make = (name: string, owner: string) => store.create(newTask(name, { owner }))
    expect([await make('a', 'ada'), await make('b', 'ada')]).toEqual([true, true])
    expect(await make('c', 'ada')).toBe(false)
    expect(await store.get('c')).toBeUndefined()
    expect([await make('c', 'bob'), await make('d', 'bob')]).toEqual([true, false])
    expect(await make('d', 'eve')).toBe(false)
    expect(namesOf(await store.claim(9))).toEqual(['a', 'b', 'c'])
  })

  it('refuses tasks and changes beyond the maximum bytes, of all and of an owner', async () => {
    const store = await create({ maxBytes: 40_000, maxBytesPerOwner: 30_000 })
    const large = 'x'.repeat(20_000)
    expect(await store.create(newTask('a', { state: large }))).toBe(true)
    expect(await store.create(newTask('b', { state: large }))).toBe(false)
    expect(await store.create(newTask('b', { state: large, owner: 'bob' }))).toBe(false)
    expect(await store.create(newTask('b', { owner: 'bob' }))).toBe(true)
    expect(await store.change('a', 1, change(large, { append: [large] }))).toBe('full')
    expect(await store.change('b', 1, change(large))).toBe('full')
    expect(await store.get('b')).toMatchObject({ version: 1 })
    expect((await store.claim(1))[0]).toMatchObject({ version: 1, entries: ['first'] })
    // A task can always end: a small state fits, and so does a smaller one.
    expect(await store.change('b', 1, change('y'.repeat(1900)))).toBe('changed')
    expect(await store.change('a', 1, change('small', { runnable: false, clear: true }))).toBe(
      'changed',
    )
    expect(await store.create(newTask('c', { state: large, owner: 'eve' }))).toBe(true)
  })

  it('has room again when tasks have expired', async () => {
    const store = await create({ maxTasks: 2, maxTasksPerOwner: 2, maxBytesPerOwner: 30_000 })
    const state = 'x'.repeat(20_000)
    await store.create(newTask('a', { expires: Date.now() + TTL, state }))
    await store.create(newTask('b', { expires: Date.now() + 2 * TTL }))
    expect(await store.create(newTask('c'))).toBe(false)
    await advance(TTL)
    expect(await store.create(newTask('c', { state }))).toBe(true)
  })

  it('has room for a change when tasks have expired', async () => {
    const store = await create({ maxBytes: 50_000, maxBytesPerOwner: 30_000 })
    const state = 'x'.repeat(20_000)
    await store.create(newTask('a', { expires: Date.now() + TTL, state }))
    await store.create(newTask('b', { expires: Date.now() + 3 * TTL }))
    await store.create(newTask('c', { expires: Date.now() + 3 * TTL, owner: 'bob' }))
    expect(await store.change('b', 1, change(state))).toBe('full')
    await advance(TTL)
    expect(await store.change('b', 1, change(state))).toBe('changed')
    expect(await store.change('c', 1, change(state, { append: [state] }))).toBe('full')
    expect(await store.change('c', 1, change(state))).toBe('changed')
  })

  it('has the name of a task again when it has expired', async () => {
    const store = await create()
    await store.create(newTask('a', { expires: Date.now() + TTL }))
    expect(await store.create(newTask('a'))).toBe(false)
    await advance(TTL)
    expect(await store.create(newTask('a', { state: 'new' }))).toBe(true)
    expect(await store.get('a')).toMatchObject({ version: 1, state: 'new' })
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

  it('can be opened and closed repeatedly, with several listeners', async () => {
    const store = await create()
    await store.create(newTask('a'))
    const ends = [store.subscribe(() => {}), store.subscribe(() => {})]
    for (const end of ends) end()
    for (const end of ends) end()
    await store.release()
    await store.release()
    await store.close?.()
    await store.open?.()
    await store.open?.()
    expect(await store.get('a')).toMatchObject({ version: 1 })
    expect(namesOf(await store.claim(9))).toEqual(['a'])
  })

  if (restart !== undefined) {
    it('has everything after the process was killed, unclaimed', async () => {
      const store = await create()
      await store.create(newTask('a', { claimed: true, entries: ['', '語 ü 😀'] }))
      await store.create(newTask('b', { owner: '語' }))
      await store.create(newTask('gone', { expires: Date.now() + 1 }))
      await store.change('a', 1, change('two', { append: ['second'] }))
      await store.change('b', 1, change('done', { runnable: false, clear: true }))
      await advance(1)
      const after = await restart(store)
      expect(await after.get('b')).toMatchObject({ owner: '語', version: 2, state: 'done' })
      expect(await after.get('gone')).toBeUndefined()
      const claimed = await after.claim(9)
      expect(claimed).toMatchObject([
        { name: 'a', version: 2, state: 'two', entries: ['', '語 ü 😀', 'second'] },
      ])
      expect(await after.change('a', 2, change('three'))).toBe('changed')
      expect(await after.create(newTask('b'))).toBe(false)
    })
  }

  if (another !== undefined) {
    it('gives a task to one of several processes, and tells all of its changes', async () => {
      const store = await create()
      const other = await another(store)
      const changed = new Promise<string>(
        (resolve) => void other.subscribe(resolve, () => resolve('any')),
      )
      for (const name of ['a', 'b']) await store.create(newTask(name))
      const claims = [...(await store.claim(1)), ...(await other.claim(9))]
      expect(namesOf(claims).toSorted()).toEqual(['a', 'b'])
      await store.change('a', 1, change('x'))
      expect(await changed).not.toBe('')
      expect(await other.change('a', 1, change('lost'))).toBe('conflict')
      expect(await other.get('a')).toMatchObject({ version: 2, state: 'x' })
      await other.release()
      expect(namesOf(await store.claim(9))).toHaveLength(1)
    })
  }
}
