import { afterEach, expect, it } from 'vitest'
import { tool } from '../../src/index.js'
import { MemoryTaskStore, type TaskStore } from '../../src/tasks.js'
import { RawClient } from './raw-client.js'
import { serverOf } from './task-server.js'

/* A store that fails to create a task: the client is told what has become of it. */

const clients: RawClient[] = []
afterEach(async () => {
  for (const client of clients.splice(0)) await client.close()
})

/** A client of a server with tools for tasks, whose store is changed first, and the calls of their handlers. */
function start(change: (store: TaskStore) => void) {
  const runs: string[] = []
  const of = (mode: 'must' | 'may') =>
    tool({
      name: mode,
      task: { mode, after: 0 },
      run: () => void runs.push(mode),
    })
  const store: TaskStore = new MemoryTaskStore()
  change(store)
  const client = new RawClient(serverOf([of('must'), of('may')], { store }))
  clients.push(client)
  return { client, runs, store }
}
const failed = (more = {}) => Object.assign(new Error('the reply was lost'), more)
const missing = (): undefined => undefined
const unread = (): Promise<undefined> => Promise.reject(failed())
const called = (name: string) => ({ name, arguments: {} })
const notStored = { message: expect.stringContaining('could not be stored') as string }
const notKnown = { message: expect.stringContaining('It is not known') as string }

it('the task, if it is stored nevertheless', async () => {
  const { client, runs } = start((store) => {
    const create = store.create.bind(store)
    store.create = (task) => {
      void create(task)
      throw failed()
    }
  })
  for (const name of ['must', 'may']) await client.until(await client.create(name), 'completed')
  expect(runs).toEqual(['must', 'may'])
})

it.each([
  ['it is not there', {}, missing],
  ['the store knows that', { stored: false }, unread],
])('that it was not stored, or nothing if it may be called plainly: %s', async (_, more, get) => {
  const { client, runs } = start((store) => {
    store.create = () => Promise.reject(failed(more))
    store.get = get
  })
  expect(await client.error('tools/call', called('must'))).toMatchObject(notStored)
  expect(runs).toEqual([])
  expect(await client.call('may')).toMatchObject({ resultType: 'complete' })
  expect(runs).toEqual(['may'])
})

it.each([
  ['it cannot be read', {}, unread],
  ['the store does not know', { stored: 'unknown' }, missing],
])('that nobody knows: %s', async (_, more, get) => {
  const { client, runs } = start((store) => {
    store.create = () => Promise.reject(failed(more))
    store.get = get
  })
  for (const name of ['must', 'may'])
    expect(await client.error('tools/call', called(name))).toMatchObject(notKnown)
  expect(runs).toEqual([])
})
