import { describe, expect, it } from 'vitest'
import type { TaskState } from '../../src/extensions/tasks/task-record.js'
import { TaskRecords } from '../../src/extensions/tasks/task-records.js'
import { TaskStream } from '../../src/extensions/tasks/task-stream.js'
import { MemoryTaskStore, type StoredTask } from '../../src/tasks.js'

/* What a client that listens to tasks is told, and when the store is read for that. */

const state = (statusMessage: string, status: TaskState['status'] = 'working'): TaskState => ({
  tool: 'x',
  status,
  statusMessage,
  createdAt: 0,
  updatedAt: 0,
  ttl: 1000,
  key: 'key',
  attempt: 1,
  started: true,
  bytes: 0,
  questions: 0,
  open: {},
})

/** A read of the store that has not returned. */
interface Read {
  readonly name: string
  readonly stored: Promise<StoredTask | undefined>
  resolve(state: TaskState | undefined): void
  reject(error: Error): void
}

function read(name: string): Read {
  let settle: (task: StoredTask | undefined) => void = () => {}
  let reject: (error: Error) => void = () => {}
  const stored = new Promise<StoredTask | undefined>((...both) => ([settle, reject] = both))
  const task = { name, owner: '', expires: 1e15, runnable: true, version: 1 }
  const resolve = (its: TaskState | undefined) =>
    settle(its && { ...task, state: JSON.stringify(its) })
  return { name, stored, resolve, reject }
}

/** A stream of tasks, in a store whose reads return when they are told to. */
function listening(...names: string[]) {
  const reads: Read[] = []
  const sent: string[] = []
  const told: { changed: (name: string) => void; missed: () => void } = {
    changed: () => {},
    missed: () => {},
  }
  const store = Object.assign(new MemoryTaskStore(), {
    get: (name: string) => {
      const reading = read(name)
      reads.push(reading)
      return reading.stored as never // a store may return a promise
    },
    subscribe: (changed: (name: string) => void, missed: () => void) => {
      Object.assign(told, { changed, missed })
      return () => Object.assign(told, { changed: () => {}, missed: () => {} })
    },
  })
  const ids = new Map(names.map((name) => [name, `id of ${name}`]))
  const stream = new TaskStream(ids, new TaskRecords(store, 4096))
  stream.start((method, params) => {
    const { taskId, status, statusMessage } = params as Record<string, string>
    sent.push(`${method} ${taskId}: ${status} ${statusMessage}`)
  })
  return { stream, reads, sent, told }
}
const line = (name: string, text: string) => `notifications/tasks id of ${name}: ${text}`
const turn = () => new Promise((resolve) => setImmediate(resolve))

describe('a stream of tasks', () => {
  it('reads one task at a time, and merges what changes meanwhile', async () => {
    const { reads, sent, told } = listening('a', 'b')
    expect(reads).toHaveLength(1)
    for (let each = 0; each < 5; each++) {
      told.changed('a')
      told.changed('b')
      told.missed()
      await turn()
    }
    expect(reads).toHaveLength(1)
    reads[0]?.resolve(state('1'))
    await turn()
    expect(reads.map(({ name }) => name)).toEqual(['a', 'b'])
    reads[1]?.resolve(state('1'))
    await turn()
    // Once more, as it has changed after it was read; `b` was not read before its changes.
    expect(reads.map(({ name }) => name)).toEqual(['a', 'b', 'a'])
    reads[2]?.resolve(state('6'))
    await turn()
    expect(reads).toHaveLength(3)
    expect(sent).toEqual([line('a', 'working 1'), line('b', 'working 1'), line('a', 'working 6')])
    told.changed('b')
    await turn()
    expect(reads).toHaveLength(4)
  })

  it('never sends an older state after a newer one', async () => {
    const { reads, sent, told } = listening('a')
    // What is read when it has changed again: the later read may return first.
    const states = [state('1'), state('2'), state('3', 'completed')]
    for (let round = 0; round < 3; round++) {
      told.changed('a')
      await turn()
      for (let each = reads.length - 1; each >= 0; each--) reads[each]?.resolve(states[each])
      await turn()
    }
    expect(sent).toEqual([line('a', 'working 1'), line('a', 'working 2'), line('a', 'completed 3')])
  })

  it.each([
    ['has ended', state('done', 'completed'), [line('a', 'completed done')]],
    ['is unknown', undefined, []],
  ])('reads a task no more that %s', async (_, last, notifications) => {
    const { reads, sent, told } = listening('a')
    reads[0]?.resolve(last)
    await turn()
    told.changed('a')
    told.missed()
    await turn()
    expect(reads).toHaveLength(1)
    expect(sent).toEqual(notifications)
  })

  it('goes on with the others when one has ended that has changed again', async () => {
    const { reads, sent, told } = listening('a', 'b')
    told.changed('a')
    reads[0]?.resolve(state('done', 'completed'))
    await turn()
    told.changed('b')
    for (let each = 1; each < 4; each++) {
      reads[each]?.resolve(reads[each]?.name === 'a' ? state('done', 'completed') : state('1'))
      await turn()
    }
    const b = line('b', 'working 1')
    expect(sent).toEqual([line('a', 'completed done'), b, b])
  })

  it('is not told of other tasks', async () => {
    const { reads, told } = listening('a')
    reads[0]?.resolve(state('1'))
    await turn()
    told.changed('b')
    await turn()
    expect(reads).toHaveLength(1)
  })

  it('reads again after the store has failed', async () => {
    const { reads, sent, told } = listening('a', 'b')
    reads[0]?.reject(new Error('EIO'))
    await turn()
    expect(reads).toHaveLength(1)
    told.changed('a')
    for (let each = 1; each < 3; each++) {
      await turn()
      reads[each]?.resolve(state('1'))
    }
    await turn()
    expect(sent.toSorted()).toEqual([line('a', 'working 1'), line('b', 'working 1')])
  })

  it('sends nothing after it was stopped, also of what is being read', async () => {
    const { stream, reads, sent, told } = listening('a', 'b')
    told.changed('a')
    stream.stop()
    reads[0]?.resolve(state('1'))
    await turn()
    expect(reads).toHaveLength(1)
    expect(sent).toEqual([])
  })
})
