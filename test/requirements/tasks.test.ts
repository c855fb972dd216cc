import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, describe, expect, it } from 'vitest'
import { connect, http } from '../../src/client.js'
import { listen } from '../../src/http.js'
import { type Call, RpcError, type Tool, createServer, form, tool } from '../../src/index.js'
import { JournalTaskStore } from '../../src/journal.js'
import { type TasksOptions, clientTasks, tasks } from '../../src/tasks.js'
import { onStillClock } from '../clock.js'
import { RawClient, TASKS, accept } from '../extensions/raw-client.js'
import { until } from '../extensions/task-server.js'
import { extensionNames } from '../official/schema-validator.js'
import { proves } from './proves.js'
import { tasks as rows } from './rows/tasks.js'

/* https://github.com/modelcontextprotocol/ext-tasks: the rules for servers. Those for clients are in test/extensions/. */

for (const name of ['tasks/get', 'tasks/update', 'tasks/cancel']) extensionNames.add(name)

const NAME = {
  type: 'object',
  properties: { name: { type: 'string' } },
  required: ['name'],
} as const
const who = (message: string) => form({ message, schema: NAME })
const ADA = accept({ name: 'Ada' })

/** Handlers that wait until they are told what to do. */
class Waiting {
  readonly calls: Call[] = []
  readonly #ends: ((value: unknown) => void)[] = []
  readonly run = (_: unknown, call: Call) =>
    new Promise<unknown>((resolve, reject) => {
      call.signal.addEventListener('abort', () => reject(call.signal.reason as Error))
      this.calls.push(call)
      this.#ends.push(resolve)
    })

  async begun(): Promise<Call> {
    await until(() => this.calls.length > 0)
    return this.calls[0] as Call // it has begun
  }

  end(value: unknown): void {
    for (const resolve of this.#ends) resolve(value)
  }
}

const simple = (name: string, run: () => unknown) => tool({ name, task: 'must', run })
const TOOLS: readonly Tool[] = [
  simple('echo', () => 'hi'),
  simple('wrong', () => ({ content: [{ type: 'text', text: 'no' }], isError: true })),
  simple('fail', () => {
    throw new RpcError(-32042, 'Out of order', { part: 7 })
  }),
  tool({ name: 'may', task: 'may', run: () => 'plain' }),
  tool({
    name: 'two',
    task: 'must',
    async run(_, call) {
      const { a, b } = await call.ask({ a: who('A?'), b: who('B?') })
      const { again } = await call.ask({ again: who('Again?') })
      return [a, b, again].map(({ name }) => name).join(' ')
    },
  }),
]

const serverOf = (options: TasksOptions = {}, ...more: Tool[]) =>
  createServer({
    name: 'x',
    version: '1',
    tools: [...TOOLS, ...more],
    extensions: [tasks(options)],
  })

const open: RawClient[] = []
function clientOf(...given: ConstructorParameters<typeof RawClient>): RawClient {
  const client = new RawClient(...given)
  open.push(client)
  return client
}
afterEach(async () => {
  for (const client of open.splice(0)) await client.close()
})

/** A waiting task, and its client. */
async function waiting(options: TasksOptions = {}) {
  const handler = new Waiting()
  const slow: Tool = { name: 'slow', input: { type: 'object' }, task: 'must', run: handler.run }
  const server = serverOf(options, slow)
  const client = clientOf(server)
  const taskId = await client.create('slow')
  const call = await handler.begun()
  return { handler, server, client, taskId, call }
}

describe('the requirements of the conformance suite', () => {
  it('are all rows', () => {
    const named = rows.flatMap(({ sep2663 = [] }) => sep2663)
    expect([named.length, new Set(named).size]).toEqual([40, 40])
  })
})

describe('a client that has not declared the extension', () => {
  const MISSING = {
    code: -32021,
    data: { requiredCapabilities: { extensions: { [TASKS]: {} } } },
  }
  const legacy = { tasks: { list: {}, cancel: {}, requests: { tools: { call: {} } } } }

  it.each([{}, { elicitation: {} }, legacy])('gets no task with %j', async (capabilities) => {
    proves('tasks.undeclared', 'tasks.required', 'tasks.required-data', 'tasks.legacy-client')
    const server = serverOf()
    // Whatever was declared with earlier requests.
    const declared = clientOf(server)
    await declared.create('echo')
    const client = clientOf(server, { capabilities })
    expect(await client.call('may')).toMatchObject({ resultType: 'complete' })
    const refused = client.error('tools/call', { name: 'echo', arguments: {} })
    expect(await refused).toMatchObject(MISSING)
  })

  it('can neither use nor listen to a task', async () => {
    proves('tasks.methods-undeclared', 'tasks.listen-undeclared')
    const server = serverOf()
    const taskId = await clientOf(server).create('echo')
    const client = clientOf(server, { capabilities: {} })
    for (const id of [taskId, 'unknown']) {
      expect(await client.error('tasks/get', { taskId: id })).toMatchObject(MISSING)
      expect(await client.error('tasks/cancel', { taskId: id })).toMatchObject(MISSING)
      const update = client.error('tasks/update', { taskId: id, inputResponses: {} })
      expect(await update).toMatchObject(MISSING)
      const listening = client.error('subscriptions/listen', { notifications: { taskIds: [id] } })
      expect(await listening).toMatchObject(MISSING)
    }
  })
})

describe('the experimental tasks of 2025-11-25', () => {
  it('are not declared, their methods do not exist and their param is ignored', async () => {
    proves('tasks.no-result-method', 'tasks.legacy-param', 'tasks.legacy-server')
    const client = clientOf(serverOf())
    const { capabilities } = await client.request('server/discover')
    expect(capabilities).toMatchObject({ extensions: { [TASKS]: {} } })
    expect(capabilities).not.toHaveProperty('tasks')
    const taskId = await client.create('echo')
    expect((await client.error('tasks/result', { taskId })).code).toBe(-32601)
    expect((await client.error('tasks/list')).code).toBe(-32601)
    const task = { ttl: 60_000 }
    const plain = { name: 'may', arguments: {}, task }
    expect(await client.request('tools/call', plain)).toMatchObject({ resultType: 'complete' })
    const undeclared = clientOf(serverOf(), { capabilities: {} })
    const must = { name: 'echo', arguments: {}, task }
    expect((await undeclared.error('tools/call', must)).code).toBe(-32021)
  })
})

describe('a new task', () => {
  it('has the result type "task", as nothing else has, and can be read at once', async () => {
    proves('tasks.result-type', 'tasks.result-type-others', 'tasks.durable', 'tasks.get-status')
    proves('tasks.get-result-type')
    const { client, taskId, handler } = await waiting()
    const created = await client.call('echo')
    expect(created.resultType).toBe('task')
    expect(await client.get(created.taskId ?? '')).toMatchObject({ resultType: 'complete' })
    expect(await client.get(taskId)).toMatchObject({
      taskId,
      status: 'working',
      resultType: 'complete',
    })
    for (const method of ['tools/list', 'server/discover'])
      expect((await client.request(method)).resultType).toBe('complete')
    handler.end('done')
    const ended = await client.until(taskId, 'completed')
    expect([ended.resultType, ended.result?.resultType]).toEqual(['complete', 'complete'])
  })

  it('is created after the questions of the call were answered on the call', async () => {
    proves('tasks.questions-before')
    const handler = new Waiting()
    const asks = tool({
      name: 'asks',
      task: { mode: 'must', after: 60_000 },
      async run(_, call) {
        const { first } = await call.ask({ first: who('First?') })
        await handler.run(undefined, call)
        return first.name
      },
    })
    const server = serverOf({}, asks)
    const client = clientOf(server)
    const { resultType, requestState } = await client.call('asks')
    expect(resultType).toBe('input_required')
    server.tools.update('asks', { task: { mode: 'must', after: 1 } })
    const created = await client.request('tools/call', {
      name: 'asks',
      arguments: {},
      requestState,
      inputResponses: { first: ADA },
    })
    expect(created).toMatchObject({ resultType: 'task', status: 'working' })
    await handler.begun()
    handler.end(undefined)
    const { result } = await client.until(created.taskId ?? '', 'completed')
    expect(result?.content).toEqual([{ type: 'text', text: 'Ada' }])
  })

  it('has an id of at least 128 random bits', async () => {
    proves('tasks.entropy')
    const client = clientOf(serverOf())
    const ids = await Promise.all(Array.from({ length: 200 }, () => client.create('echo')))
    expect(new Set(ids).size).toBe(200)
    for (const id of ids) expect(id).toMatch(/^[\w-]{22,}$/)
    // Each position has many of the 64 characters, the first one of 32; a counter or a time would not.
    for (let place = 0; place < 21; place++)
      expect(new Set(ids.map((id) => id[place])).size).toBeGreaterThan(20)
  })
})

describe('the outcome of a task', () => {
  const withoutMeta = (value: object | undefined) => ({ ...value, _meta: undefined })

  it('is what the call would have got', async () => {
    proves('tasks.get-completed', 'tasks.same-outcome', 'tasks.tool-error')
    const client = clientOf(serverOf())
    const { result, error } = await client.until(await client.create('wrong'), 'completed')
    expect(error).toBeUndefined()
    expect(withoutMeta(result)).toMatchObject({
      resultType: 'complete',
      content: [{ type: 'text', text: 'no' }],
      isError: true,
    })
  })

  it('of a JSON-RPC error is that error and a status message', async () => {
    proves('tasks.get-failed', 'tasks.failed-message', 'tasks.failed-only-errors')
    const client = clientOf(serverOf())
    const failed = await client.until(await client.create('fail'), 'failed')
    expect(failed).toMatchObject({
      statusMessage: 'Out of order',
      error: { code: -32042, message: 'Out of order', data: { part: 7 } },
    })
    expect(failed).not.toHaveProperty('result')
  })

  it('of tasks/cancel is the status "cancelled", without a result or an error', async () => {
    proves('tasks.get-cancelled', 'tasks.cancel-ack', 'tasks.cancel-result-type')
    const { client, taskId, call } = await waiting()
    const acknowledged = await client.request('tasks/cancel', { taskId })
    const { _meta, ...rest } = acknowledged
    expect(rest).toEqual({ resultType: 'complete' })
    const cancelled = await client.until(taskId, 'cancelled')
    expect(call.signal.aborted).toBe(true)
    const { _meta: __, ...task } = cancelled
    expect(Object.keys(task).toSorted()).toEqual(
      ['createdAt', 'lastUpdatedAt', 'pollIntervalMs', 'resultType', 'status', 'taskId', 'ttlMs']
        .concat('statusMessage' in task ? ['statusMessage'] : [])
        .toSorted(),
    )
    expect(await client.request('tasks/cancel', { taskId })).toMatchObject(rest)
    expect(await client.get(taskId)).toEqual(cancelled)
  })

  it('is not changed by notifications/cancelled', async () => {
    proves('tasks.cancel-notification')
    const handler = new Waiting()
    const slow: Tool = { name: 'slow', input: { type: 'object' }, task: 'must', run: handler.run }
    const client = clientOf(serverOf({}, slow))
    const { id, response } = client.send('tools/call', { name: 'slow', arguments: {} })
    const taskId = (await response).result?.taskId ?? ''
    await handler.begun()
    client.notify('notifications/cancelled', { requestId: id })
    client.notify('notifications/cancelled', { requestId: taskId })
    expect((await client.get(taskId)).status).toBe('working')
    handler.end('done')
    await client.until(taskId, 'completed')
  })
})

describe('the questions of a task', () => {
  it('have keys that are never used twice; answers to others are ignored', async () => {
    proves('tasks.get-input-required', 'tasks.unique-keys', 'tasks.no-key-twice')
    proves('tasks.update-ignores', 'tasks.update-ack', 'tasks.update-result-type')
    const client = clientOf(serverOf())
    const taskId = await client.create('two')
    const seen = new Set<string>()
    const asked = async () => {
      const { inputRequests = {} } = await client.until(taskId, 'input_required')
      return new Map(Object.entries(inputRequests))
    }
    const first = await asked()
    expect([...first.values()].map(({ params }) => params['message'])).toEqual(['A?', 'B?'])
    const [a = '', b = ''] = first.keys()
    const { _meta, ...acknowledged } = await client.update(taskId, { [a]: ADA, 'never.9': ADA })
    expect(acknowledged).toEqual({ resultType: 'complete' })
    // What was answered is gone with the acknowledgement; another answer to it changes nothing.
    expect([...(await asked()).keys()]).toEqual([b])
    await client.update(taskId, { [a]: accept({ name: 'Eve' }) })
    expect([...(await asked()).keys()]).toEqual([b])
    for (const key of first.keys()) seen.add(key)
    // An invalid answer is asked again, under another key.
    await client.update(taskId, { [b]: accept({ name: 7 }) })
    const second = await asked()
    const [repeated = ''] = second.keys()
    expect([second.size, seen.has(repeated)]).toEqual([1, false])
    seen.add(repeated)
    await client.update(taskId, { [b]: accept({ name: 'late' }) })
    expect([...(await asked()).keys()]).toEqual([repeated])
    await client.update(taskId, { [repeated]: accept({ name: 'Bob' }) })
    const third = await asked()
    for (const key of third.keys()) {
      expect(seen.has(key)).toBe(false)
      await client.update(taskId, { [key]: accept({ name: 'Cy' }) })
    }
    const { result } = await client.until(taskId, 'completed')
    expect(result?.content).toEqual([{ type: 'text', text: 'Ada Bob Cy' }])
    await client.update(taskId, { [a]: ADA })
    expect((await client.get(taskId)).status).toBe('completed')
  })
})

describe('a task id that is unknown', () => {
  const UNKNOWN = { code: -32602, message: expect.stringMatching(/"taskId"/) }

  it('is −32602 for every method', async () => {
    proves(
      'tasks.get-unknown',
      'tasks.others-unknown',
      'tasks.update-unknown',
      'tasks.cancel-unknown',
    )
    proves('tasks.informative')
    const client = clientOf(serverOf())
    for (const taskId of ['unknown', '', 'A'.repeat(27), 7, null, undefined]) {
      expect(await client.error('tasks/get', { taskId })).toMatchObject(UNKNOWN)
      expect(await client.error('tasks/cancel', { taskId })).toMatchObject(UNKNOWN)
      const update = client.error('tasks/update', { taskId, inputResponses: {} })
      expect(await update).toMatchObject(UNKNOWN)
    }
  })

  it('is that of another principal too, also for listening', async () => {
    proves('tasks.principal')
    const server = serverOf()
    const of = (id: string) => clientOf(server, { principal: { id, scopes: [] } })
    const [ada, eve, anonymous] = [of('ada'), of('eve'), clientOf(server)]
    const taskId = await ada.create('two')
    const { inputRequests = {} } = await ada.until(taskId, 'input_required')
    const [key = ''] = Object.keys(inputRequests)
    for (const other of [eve, anonymous]) {
      expect(await other.error('tasks/get', { taskId })).toMatchObject(UNKNOWN)
      expect(await other.error('tasks/cancel', { taskId })).toMatchObject(UNKNOWN)
      const update = other.error('tasks/update', { taskId, inputResponses: { [key]: ADA } })
      expect(await update).toMatchObject(UNKNOWN)
      other.send('subscriptions/listen', { notifications: { taskIds: [taskId] } })
      await other.notified((all) => all.length > 0)
    }
    expect(await ada.get(taskId)).toMatchObject({ status: 'input_required', inputRequests })
    await ada.request('tasks/cancel', { taskId })
    await ada.until(taskId, 'cancelled')
    for (const { notifications } of [eve, anonymous])
      expect(notifications.map(({ params }) => params?.['notifications'])).toEqual([
        { taskIds: [] },
      ])
  })

  it('is that of a task whose time is over', () =>
    onStillClock(async (pass) => {
      proves('tasks.expiry')
      const handler = new Waiting()
      const slow: Tool = {
        name: 'slow',
        input: { type: 'object' },
        task: { mode: 'must', ttl: 5000 },
        run: handler.run,
      }
      const client = clientOf(serverOf({}, slow))
      const created = await client.call('slow')
      const taskId = created.taskId ?? ''
      expect(created['ttlMs']).toBe(5000)
      const call = await handler.begun()
      await pass(4990)
      expect((await client.get(taskId)).status).toBe('working')
      expect(call.signal.aborted).toBe(false)
      await pass(20)
      expect(call.signal.aborted).toBe(true)
      await pass(60_000)
      expect(await client.error('tasks/get', { taskId })).toMatchObject(UNKNOWN)
      expect(await client.error('tasks/cancel', { taskId })).toMatchObject(UNKNOWN)
    }))
})

describe('notifications', () => {
  it('have the whole task, as tasks/get has it; there is no progress and no log', async () => {
    proves('tasks.listen', 'tasks.no-progress')
    const { client, taskId, call, handler } = await waiting()
    client.send('subscriptions/listen', { notifications: { taskIds: [taskId, 'unknown'] } })
    await client.notified((all) => all.length >= 1)
    call.progress(1, 2, 'half')
    call.log.error('not for clients')
    await client.until(taskId, 'working')
    handler.end('done')
    const isLast = ({ params }: { params?: Record<string, unknown> }) =>
      params?.['status'] === 'completed'
    await client.notified((all) => all.some(isLast))
    const [acknowledged, ...others] = client.notifications
    expect(acknowledged?.params?.['notifications']).toEqual({ taskIds: [taskId] })
    expect(new Set(others.map(({ method }) => method))).toEqual(new Set(['notifications/tasks']))
    const { _meta: _, resultType: __, ...task } = await client.get(taskId)
    expect(client.notifications.find(isLast)?.params).toMatchObject(task)
  })
})

describe('over HTTP', () => {
  it('clients send the id in Mcp-Name, and servers compare it', async () => {
    proves('tasks.client-headers', 'tasks.headers', 'tasks.headers-mismatch')
    await using listening = await listen(serverOf(), { port: 0 })
    const sent: { method: string; name: string | null; body: string; init: RequestInit }[] = []
    const recording: typeof fetch = (url, init = {}) => {
      const headers = new Headers(init.headers)
      const method = headers.get('mcp-method') ?? ''
      sent.push({
        method,
        name: headers.get('mcp-name'),
        body: typeof init.body === 'string' ? init.body : '',
        init,
      })
      return fetch(url, init)
    }
    await using client = await connect(http(listening.url, { fetch: recording }), {
      extensions: [clientTasks()],
      elicit: () => ({ action: 'accept', content: { name: 'Ada' } }),
    })
    expect(await client.callTool('two')).toMatchObject({ content: [{ text: 'Ada Ada Ada' }] })
    const about = sent.filter(({ method }) => method.startsWith('tasks/'))
    expect(new Set(about.map(({ method }) => method))).toEqual(
      new Set(['tasks/get', 'tasks/update']),
    )
    const taskId = about[0]?.name ?? ''
    await client.task(taskId).cancel()
    for (const { method, name, body } of sent.filter((each) => each.method.startsWith('tasks/'))) {
      const { params } = JSON.parse(body) as { params: { taskId: string } }
      expect([method, name]).toEqual([method, params.taskId])
    }
    const init = about[0]?.init ?? {}
    const headers = new Headers(init.headers)
    headers.set('mcp-name', 'another')
    const refused = await fetch(listening.url, { ...init, headers, signal: null })
    expect(await refused.json()).toMatchObject({ error: { code: -32020 } })
    headers.set('mcp-name', taskId)
    const served = await fetch(listening.url, { ...init, headers, signal: null })
    expect(await served.text()).toContain('"completed"')
  })
})

it('survives a restart with its questions', async () => {
  proves('tasks.restart')
  const folder = mkdtempSync(join(tmpdir(), 'ccmcp-tasks-'))
  try {
    const file = join(folder, 'tasks.journal')
    const first = await JournalTaskStore.open(file)
    const before = new RawClient(serverOf({ store: first }))
    const taskId = await before.create('two')
    const { inputRequests = {} } = await before.until(taskId, 'input_required')
    const [a = '', b = ''] = Object.keys(inputRequests)
    await before.update(taskId, { [a]: ADA })
    await before.close()
    await first.close()
    const second = await JournalTaskStore.open(file)
    const after = new RawClient(serverOf({ store: second }))
    const parked = await after.until(taskId, 'input_required')
    expect(parked.inputRequests).toEqual({ [b]: inputRequests[b] })
    await after.update(taskId, { [b]: ADA })
    const [again = ''] = Object.keys(
      (await after.until(taskId, 'input_required')).inputRequests ?? {},
    )
    expect([a, b]).not.toContain(again)
    await after.update(taskId, { [again]: ADA })
    const { result } = await after.until(taskId, 'completed')
    expect(result?.content).toEqual([{ type: 'text', text: 'Ada Ada Ada' }])
    await after.close()
    await second.close()
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
})
