import { afterEach, describe, expect, it } from 'vitest'
import { type Call, createServer, form, tool } from '../../src/index.js'
import { MemoryTaskStore, type TasksOptions, tasks } from '../../src/tasks.js'
import { RawClient, accept } from './raw-client.js'

/* Tasks that are stored encrypted. */

const NAME = {
  type: 'object',
  properties: { name: { type: 'string' } },
  required: ['name'],
} as const
const OLD = 'an old secret of the server, which all processes have'
const NEW = 'a new secret of the server, which all processes have'

const clients: RawClient[] = []
afterEach(async () => {
  for (const client of clients.splice(0)) await client.close()
})

const work = tool({
  name: 'work',
  input: { type: 'object', properties: { text: { type: 'string' } } },
  task: 'must',
  async run(input: unknown, call: Call) {
    await call.step('step', () => 'SECRET step')
    call.progress(1, 2, 'SECRET status')
    const { who } = await call.ask({ who: form({ message: 'SECRET question', schema: NAME }) })
    return `SECRET result for ${who.name} of ${JSON.stringify(input)}`
  },
})

/** A client of a server with its own secrets. */
function start(store: MemoryTaskStore, keys: readonly string[], options: TasksOptions = {}) {
  const client = new RawClient(
    createServer({
      name: 'x',
      version: '1',
      tools: [work],
      state: { keys },
      extensions: [tasks({ store, seal: true, ...options })],
    }),
  )
  clients.push(client)
  return client
}
const stored = (store: MemoryTaskStore) => JSON.stringify([...store.entries()])

/** A task that waits for its answer: its id, and what answers it. */
async function park(client: RawClient) {
  const taskId = await client.create('work', { text: 'SECRET argument' })
  const { inputRequests = {} } = await client.until(taskId, 'input_required')
  const answer = Object.fromEntries(
    Object.keys(inputRequests).map((key) => [key, accept({ name: 'SECRET name' })]),
  )
  return { taskId, answer, inputRequests }
}

describe('tasks({ seal: true })', () => {
  it('stores nothing that the client, the handler or its result says', async () => {
    const store = new MemoryTaskStore()
    const client = start(store, [OLD])
    const { taskId, answer, inputRequests } = await park(client)
    expect(JSON.stringify(inputRequests)).toContain('SECRET question')
    expect(stored(store)).not.toContain('SECRET')
    await client.update(taskId, answer)
    const { result } = await client.until(taskId, 'completed')
    expect(result?.content).toMatchObject([
      { text: 'SECRET result for SECRET name of {"text":"SECRET argument"}' },
    ])
    expect(stored(store)).not.toContain('SECRET')
    expect(stored(store)).toContain('completed')
  })

  it('is opened with any of the keys', async () => {
    const store = new MemoryTaskStore()
    const first = start(store, [OLD])
    const { taskId, answer } = await park(first)
    await first.close()
    const rotated = start(store, [NEW, OLD])
    await rotated.update(taskId, answer)
    await rotated.until(taskId, 'completed')
    const newest = start(store, [NEW])
    expect(await newest.get(taskId)).toMatchObject({ status: 'completed' })
  })

  it('says so where there is no key for a task; it can be cancelled', async () => {
    const store = new MemoryTaskStore()
    const { taskId, answer } = await park(start(store, [OLD]))
    const other = start(store, [NEW])
    const sealed = { code: -32603, message: expect.stringContaining('cannot be opened') as string }
    expect(await other.error('tasks/get', { taskId })).toMatchObject(sealed)
    const update = { taskId, inputResponses: answer }
    expect(await other.error('tasks/update', update)).toMatchObject(sealed)
    await other.request('tasks/cancel', { taskId })
    expect(await other.get(taskId)).toMatchObject({ status: 'cancelled' })
  })

  it.each([
    ['with another key', { seal: true }],
    ['sealed, where it is not expected', { seal: false }],
  ])('fails a task that was stored %s when it is to be run', async (_, options) => {
    const store = new MemoryTaskStore()
    const first = start(store, [OLD])
    const { taskId, answer } = await park(first)
    // Answered, but not run yet.
    store.claim = () => []
    await first.update(taskId, answer)
    await first.close()
    Reflect.deleteProperty(store, 'claim')
    const other = start(store, [NEW], options)
    // Of a server that has started, not of a request.
    await other.request('tools/list')
    expect(await failed(other, taskId)).toMatchObject({
      error: { code: -32603, message: expect.stringContaining('"state.keys"') as string },
    })
  })

  it('reads nothing that is not sealed', async () => {
    const store = new MemoryTaskStore()
    const { taskId } = await park(start(store, [OLD], { seal: false }))
    const error = await start(store, [OLD]).error('tasks/get', { taskId })
    expect(error.message).toContain('cannot be opened')
  })

  it('needs keys that outlive the process', () => {
    expect(() => start(new MemoryTaskStore(), [])).toThrow('"seal" needs "state: { keys: [ … ] }"')
    expect(() => tasks({ seal: 'yes' } as object)).toThrow('"seal" must be true or false')
  })
})

/** The task when it has failed; it cannot be read before. */
async function failed(client: RawClient, taskId: string) {
  for (const end = performance.now() + 60_000; performance.now() < end;) {
    const { result } = await client.send('tasks/get', { taskId }).response
    if (result?.status === 'failed') return result
    await new Promise((resolve) => setImmediate(resolve))
  }
  throw new Error('the task did not fail')
}
