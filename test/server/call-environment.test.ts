import { expect, it } from 'vitest'
import { connect, memory } from '../../src/client.js'
import { extension } from '../../src/extensions.js'
import { type Call, createServer, form } from '../../src/index.js'
import type { Asking } from '../../src/server/ask.js'
import { Suspended } from '../../src/server/ask.js'
import { type CallEnvironment, ServedCall } from '../../src/server/call.js'
import { checkServer } from '../../src/server/context.js'
import { runTool } from '../../src/server/features/tools.js'

/** Runs stored calls, as a queue would: there is no connection, and questions park the call. */
class QueuedCall implements CallEnvironment {
  readonly id = 'job-1'
  readonly method = 'tools/call'
  readonly params = { _meta: { from: 'queue' } }
  readonly client = { info: undefined, capabilities: {}, revision: 'none' }
  readonly http = undefined
  readonly controller = new AbortController()
  readonly open = true
  readonly events: unknown[] = []
  answers: Record<string, unknown> = {}
  readonly steps = new Map<string, unknown>()
  attempts = 0

  get signal(): AbortSignal {
    return this.controller.signal
  }
  log({ level, data }: { level: string; data: unknown }): void {
    this.events.push([level, data])
  }
  progress(progress: object): void {
    this.events.push(progress)
  }
  releaseStream(): void {}
  park<Value>(promise: Promise<Value>): Promise<Value> {
    return promise
  }
  asking(): Promise<Asking> {
    return this.resume()
  }
  resume(): Promise<Asking> {
    const { steps } = this
    return Promise.resolve({
      key: 'key-of-the-job',
      attempt: ++this.attempts,
      suspended: false,
      ask: (questions) =>
        Object.keys(questions).every((key) => key in this.answers)
          ? Promise.resolve(this.answers)
          : Promise.reject(new Suspended()),
      step: async (key, run) => {
        if (!steps.has(key)) steps.set(key, await run(this.signal))
        return steps.get(key) as never // what the step has returned
      },
    })
  }
}

let charged = 0
const server = checkServer(
  createServer({
    name: 'x',
    version: '1',
    tools: [
      {
        name: 'order',
        input: { type: 'object' },
        timeout: 10_000,
        concurrency: 1,
        async run(_, call) {
          call.log.info('started')
          call.progress(1, 2, 'charging')
          call.progress(1)
          const number = await call.step('charge', () => ++charged)
          const { sure } = await call.ask({
            sure: form({ message: 'Sure?', schema: { type: 'object' } }),
          })
          return { number, sure, key: call.key, id: call.id, meta: call.meta }
        },
      },
    ],
  }),
)

const run = (environment: CallEnvironment) => {
  const tool = server.tools.get('order')
  if (tool === undefined) throw new Error('no tool')
  const call = new ServedCall(environment)
  return runTool(tool, {}, { server, call, report: () => {}, remote: false })
}

it('runs a tool without a connection: parks on a question and resumes with its steps', async () => {
  const environment = new QueuedCall()
  await expect(run(environment)).rejects.toBeInstanceOf(Suspended)
  expect(environment.events).toEqual([
    ['info', 'started'],
    { progress: 1, total: 2, message: 'charging' },
  ])
  environment.answers = { sure: { yes: true } }
  const result = await run(environment)
  expect(JSON.parse((result.content[0] as { text: string }).text)).toEqual({
    number: 1,
    sure: { yes: true },
    key: 'key-of-the-job',
    id: 'job-1',
    meta: { from: 'queue' },
  })
  expect(charged).toBe(1)
})

it('lets an extension run a tool elsewhere', async () => {
  const environment = new QueuedCall()
  const later = extension({
    id: 'com.example/later',
    async callTool(_, run) {
      await run(environment)
      return { content: [{ type: 'text', text: 'queued' }] }
    },
  })
  const run = (_: unknown, call: Call) => call.log.info(`run as ${String(call.id)}`)
  const tool = { name: 'log', input: { type: 'object' }, run } as const
  const extended = createServer({
    name: 'x',
    version: '1',
    extensions: [later],
    tools: [tool],
  })
  const client = await connect(memory(extended))
  expect(await client.callTool('log')).toMatchObject({ content: [{ text: 'queued' }] })
  await client.close()
  expect(environment.events).toEqual([['info', 'run as job-1']])
})

it('is aborted by the signal of its environment', async () => {
  const environment = new QueuedCall()
  environment.controller.abort(new Error('cancelled'))
  const call = new ServedCall(environment)
  expect(call.signal.aborted).toBe(true)
})
