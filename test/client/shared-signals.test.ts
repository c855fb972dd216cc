import { PassThrough } from 'node:stream'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { type Target, connect, http, memory } from '../../src/client.js'
import { listen } from '../../src/http.js'
import { type Call, createServer, form, tool } from '../../src/index.js'
import { serve } from '../../src/stdio.js'
import { MemoryTaskStore, clientTasks, tasks } from '../../src/tasks.js'
import { until } from '../extensions/task-server.js'
import { extensionNames } from '../official/schema-validator.js'

/* Node 20 warns of a leak when a signal has more than ten listeners. Many operations at a time are no leak. */

extensionNames.add('task').add('notifications/tasks')

const MANY = Array.from({ length: 24 }, (_, index) => index)
const SCHEMA = { type: 'object', properties: { ok: { type: 'boolean' } } } as const

const warnings: string[] = []
const warned = ({ message }: Error) => void warnings.push(message)
const closes: (() => unknown)[] = []
beforeEach(() => {
  process.on('warning', warned)
})
afterEach(async () => {
  for (const close of closes.splice(0).toReversed()) await close()
  // Warnings are emitted in a later turn.
  await new Promise((resolve) => setImmediate(resolve))
  process.off('warning', warned)
  expect(warnings.splice(0)).toEqual([])
})

/** A tool whose calls wait for their signals. */
function waiting(task: 'never' | 'must') {
  const calls: Call[] = []
  const run = (_: unknown, call: Call) =>
    new Promise<string>((resolve) => {
      calls.push(call)
      call.signal.addEventListener('abort', () => resolve('aborted'))
    })
  return { calls, slow: tool({ name: 'slow', task: { mode: task, poll: 20 }, run }) }
}

describe.each(['memory', 'http'] as const)('over %s', (transport) => {
  async function connected(tools: Parameters<typeof createServer>[0]['tools'] = []) {
    const server = createServer({ name: 'x', version: '1', tools, extensions: [tasks()] })
    let target: Target = memory(server)
    if (transport === 'http') {
      const listening = await listen(server, { port: 0 })
      closes.push(() => listening.close())
      target = http(listening.url)
    }
    const client = await connect(target, {
      extensions: [clientTasks()],
      elicit: () => ({ action: 'accept', content: { ok: true } }),
    })
    closes.push(() => client.close())
    return client
  }

  it.each(['never', 'must'] as const)(
    'calls share the signal of the caller (task: %s)',
    async (task) => {
      const { slow, calls } = waiting(task)
      const client = await connected([slow])
      const controller = new AbortController()
      const { signal } = controller
      const results = MANY.map(() => client.callTool('slow', {}, { signal }).catch(String))
      await until(() => calls.length === MANY.length)
      controller.abort(new Error('enough'))
      expect(new Set(await Promise.all(results))).toEqual(new Set(['Error: enough']))
      await until(() => calls.every((call) => call.signal.aborted))
    },
  )

  it('tasks share a connection, which ends them all', async () => {
    const { slow, calls } = waiting('must')
    const client = await connected([slow])
    const results = MANY.map(() =>
      client.callTool('slow').catch((error: { code?: unknown }) => error.code),
    )
    await until(() => calls.length === MANY.length)
    await client.close()
    expect(new Set(await Promise.all(results))).toEqual(new Set(['CHANNEL_CLOSED']))
  })

  it('questions and steps share a call', async () => {
    const asks = tool({
      name: 'asks',
      task: { mode: 'must', poll: 20 },
      async run(_, call) {
        await Promise.all(MANY.map((key) => call.step(`step ${key}`, () => Promise.resolve(key))))
        const one = (key: number) =>
          call.ask({ [`q${key}`]: form({ message: `${key}?`, schema: SCHEMA }) })
        await Promise.all(MANY.map(one))
        return 'done'
      },
    })
    const client = await connected([asks])
    const { content } = await client.callTool('asks')
    expect(content).toEqual([{ type: 'text', text: 'done' }])
  })
})

it('questions of one call share it in earlier revisions', async () => {
  const asks = tool({
    name: 'asks',
    concurrency: 1,
    async run(_, call) {
      await Promise.all(
        MANY.map((key) => call.ask({ [`q${key}`]: form({ message: `${key}?`, schema: SCHEMA }) })),
      )
      return 'done'
    },
  })
  const server = createServer({ name: 'x', version: '1', tools: [asks] })
  const client = await connect(memory(server), {
    revision: '2025-11-25',
    elicit: () => ({ action: 'accept', content: { ok: true } }),
  })
  closes.push(() => client.close())
  await Promise.all(MANY.map(() => client.callTool('asks')))
})

it('subscriptions share the signal of the caller', async () => {
  const server = createServer({
    name: 'x',
    version: '1',
    resources: MANY.map((key) => ({ uri: `x:${key}`, name: `x${key}`, read: () => 'x' })),
  })
  const client = await connect(memory(server))
  closes.push(() => client.close())
  const { signal } = new AbortController()
  await Promise.all(MANY.map((key) => client.subscribe(`x:${key}`, () => {}, { signal })))
})

it('servers share the signal that stops them', async () => {
  const server = createServer({ name: 'x', version: '1' })
  const controller = new AbortController()
  const { signal } = controller
  const served = MANY.map(() => {
    const [input, output] = [new PassThrough(), new PassThrough()]
    return serve(server, { input, output, signal })
  })
  const listening = await Promise.all(MANY.map(() => listen(server, { port: 0, signal })))
  controller.abort()
  await Promise.all(served)
  await Promise.all(listening.map((each) => each.close()))
})

it('writes to a store that fails share the end of the server', async () => {
  const store = new MemoryTaskStore()
  const change = store.change.bind(store)
  let failures = 0
  store.change = (...given) => {
    if (++failures <= MANY.length) throw new Error('Disk full')
    return change(...given)
  }
  const quick = tool({ name: 'quick', task: { mode: 'must', poll: 20 }, run: () => 'done' })
  const extensions = [tasks({ store })]
  const server = createServer({ name: 'x', version: '1', tools: [quick], extensions })
  const client = await connect(memory(server), { extensions: [clientTasks()] })
  closes.push(() => client.close())
  await Promise.all(MANY.map(() => client.callTool('quick')))
  expect(failures).toBeGreaterThan(MANY.length)
})
