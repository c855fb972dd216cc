import { describe, expect, it, vi } from 'vitest'
import { RpcError } from '../../src/client.js'
import type { TaskStatus } from '../../src/tasks.js'
import { proves } from '../requirements/proves.js'
import { settle } from '../requirements/scripted-server.js'
import { DONE, TASK, TaskServer, asking, question, until } from './scripted-tasks.js'

/* What a client does with tasks, against a server whose every message is scripted. */

const ADA = { action: 'accept' as const, content: { name: 'Ada' } }

/** With fake timers; `pass` advances the clock. */
async function onClock(test: (pass: (milliseconds: number) => Promise<unknown>) => Promise<void>) {
  vi.useFakeTimers({
    toFake: ['Date', 'setTimeout', 'clearTimeout', 'setInterval', 'clearInterval', 'performance'],
  })
  try {
    await test(async (milliseconds) => {
      await vi.advanceTimersByTimeAsync(milliseconds)
      await settle()
    })
  } finally {
    vi.useRealTimers()
  }
}

/** Advances the clock in small steps. Digests of questions are computed outside of it. */
async function passUntil(pass: (milliseconds: number) => Promise<unknown>, holds: () => boolean) {
  for (let step = 0; step < 10_000 && !holds(); step++) await pass(10)
  expect(holds()).toBe(true)
}

/** What a promise has become, without waiting for it. */
function watched<Value>(promise: Promise<Value>) {
  const outcome: { value?: Value; error?: unknown } = {}
  promise.then(
    (value) => (outcome.value = value),
    (error: unknown) => (outcome.error = error),
  )
  return outcome
}

describe('polls', () => {
  it('come after the interval that the server has proposed last', () =>
    onClock(async (pass) => {
      proves('tasks.poll-interval', 'tasks.poll-frequency', 'tasks.poll-until-terminal')
      const task = new TaskServer()
      task.created = { pollIntervalMs: 400 }
      task.state = { pollIntervalMs: 50 }
      const client = await task.connect()
      const outcome = watched(client.callTool('x'))
      await pass(399)
      expect(task.count('tasks/get')).toBe(0)
      await pass(1)
      expect(task.count('tasks/get')).toBe(1)
      await pass(49)
      expect(task.count('tasks/get')).toBe(1)
      await pass(1)
      expect(task.count('tasks/get')).toBe(2)
      task.state = { pollIntervalMs: 50, ...DONE }
      await pass(50)
      expect(outcome.value?.content).toEqual([{ type: 'text', text: 'done' }])
      await pass(10_000)
      expect(task.count('tasks/get')).toBe(3)
    }))

  it.each([
    [0, 1000],
    [-5, 1000],
    ['fast', 1000],
    [undefined, 1000],
    [0.001, 10],
    [1e12, 60_000],
  ])('come after a sane time where the server proposes %s', (pollIntervalMs, expected) =>
    onClock(async (pass) => {
      const task = new TaskServer()
      task.created = { pollIntervalMs }
      const client = await task.connect()
      watched(client.callTool('x'))
      await settle()
      await pass(expected - 1)
      expect(task.count('tasks/get')).toBe(0)
      await pass(1)
      expect(task.count('tasks/get')).toBe(1)
    }),
  )

  it('are repeated while the server does not respond, then given up without cancelling the task', () =>
    onClock(async (pass) => {
      const task = new TaskServer()
      let broken = true
      task.reply = ({ method }) =>
        method === 'tasks/get' && broken ? { error: { code: -32603, message: 'disk' } } : undefined
      const client = await task.connect()
      const first = watched(client.callTool('x'))
      await pass(2000)
      expect(task.count('tasks/get')).toBeGreaterThan(2)
      broken = false
      task.state = DONE
      await pass(20_000)
      expect(first.value?.content).toHaveLength(1)
      broken = true
      const second = watched(client.callTool('x'))
      await pass(120_000)
      expect(second.error).toMatchObject({ code: -32603 })
      expect(task.count('tasks/cancel')).toBe(0)
    }))

  it('end with the connection', async () => {
    const task = new TaskServer()
    const client = await task.connect()
    const failed = expect(client.callTool('x')).rejects.toMatchObject({ code: 'CHANNEL_CLOSED' })
    await until(() => task.count('tasks/get') > 0)
    await task.server.exit()
    await failed
  })

  it('continue on the next connection', async () => {
    const task = new TaskServer()
    const client = await task.connect({ reconnect: { delay: 1 } })
    const result = client.callTool('x')
    await until(() => task.count('tasks/get') > 0)
    await task.server.exit()
    await until(() => task.server.connections === 2)
    task.state = DONE
    expect((await result).content).toHaveLength(1)
    expect(task.count('tools/call')).toBe(1)
  })
})

describe('notifications', () => {
  const SLOW = { pollIntervalMs: 5000 }

  it('replace polls where the server accepts the task in subscriptions/listen', () =>
    onClock(async (pass) => {
      proves('tasks.listen')
      const task = new TaskServer()
      task.created = SLOW
      task.state = SLOW
      task.accepts = (taskIds) => ({ taskIds })
      const client = await task.connect()
      const outcome = watched(client.callTool('x'))
      await pass(0)
      expect(task.streams.map(({ params }) => params?.['notifications'])).toEqual([
        { taskIds: ['t-1'] },
      ])
      // Once, for what happened before the stream.
      expect(task.count('tasks/get')).toBe(1)
      await pass(29_000)
      expect(task.count('tasks/get')).toBe(1)
      // A server that says nothing is still asked from time to time.
      await pass(2000)
      expect(task.count('tasks/get')).toBe(2)
      task.notify({ ...SLOW, ...DONE, lastUpdatedAt: '2026-07-28T10:00:31.000Z' })
      await pass(0)
      expect(outcome.value?.content).toHaveLength(1)
      expect(task.count('tasks/get')).toBe(2)
      await pass(0)
      expect(
        task.server.methods.filter((method) => method === 'notifications/cancelled'),
      ).toHaveLength(1)
    }))

  it('are not missed between the creation and the stream', () =>
    onClock(async (pass) => {
      const task = new TaskServer()
      task.created = SLOW
      task.state = { ...SLOW, ...DONE }
      task.accepts = (taskIds) => ({ taskIds })
      const client = await task.connect()
      const outcome = watched(client.callTool('x'))
      await pass(0)
      expect(outcome.value?.content).toHaveLength(1)
    }))

  it.each([
    ['refuses the method', undefined],
    ['accepts no tasks', () => ({})],
    ['accepts other tasks', () => ({ taskIds: ['t-2'] })],
  ])('are replaced by polls where the server %s; it is not asked again', (_, accepts) =>
    onClock(async (pass) => {
      const task = new TaskServer()
      task.created = SLOW
      task.state = SLOW
      task.accepts = accepts
      const client = await task.connect()
      const first = watched(client.callTool('x'))
      await pass(4999)
      expect(task.count('tasks/get')).toBe(0)
      await pass(1)
      expect(task.count('tasks/get')).toBe(1)
      task.state = { ...SLOW, ...DONE }
      await pass(5000)
      expect(first.value?.content).toHaveLength(1)
      watched(client.callTool('x'))
      await pass(5000)
      expect(task.streams).toHaveLength(1)
    }),
  )

  it('are replaced by polls when the stream ends, until there is a new one', () =>
    onClock(async (pass) => {
      const task = new TaskServer()
      task.created = SLOW
      task.state = SLOW
      task.accepts = (taskIds) => ({ taskIds })
      const client = await task.connect({ reconnect: { delay: 20_000, attempts: 3 } })
      const outcome = watched(client.callTool('x'))
      await pass(0)
      const [stream] = task.streams
      if (stream !== undefined) task.server.reply(stream, {})
      await pass(0)
      const polls = task.count('tasks/get')
      await pass(5000)
      expect(task.count('tasks/get')).toBe(polls + 1)
      await pass(20_000)
      expect(task.streams).toHaveLength(2)
      task.notify({ ...DONE, lastUpdatedAt: '2026-07-28T10:01:00.000Z' })
      await pass(0)
      expect(outcome.value?.content).toHaveLength(1)
    }))

  it('that are older than what is known, unreadable or about others do not matter', () =>
    onClock(async (pass) => {
      const task = new TaskServer()
      const seen: TaskStatus['status'][] = []
      const NOW = { ...SLOW, lastUpdatedAt: '2026-07-28T10:05:00.000Z' }
      task.created = SLOW
      task.state = NOW
      task.accepts = (taskIds) => ({ taskIds })
      const client = await task.connect({ onStatus: ({ status }) => seen.push(status) })
      const outcome = watched(client.callTool('x'))
      await pass(0)
      task.notify({ status: 'cancelled', lastUpdatedAt: '2026-07-28T10:04:00.000Z' })
      task.notify({ ...DONE, taskId: 't-2' })
      await pass(0)
      expect(outcome).toEqual({})
      const polls = task.count('tasks/get')
      task.notify({ status: 'paused' })
      await pass(0)
      expect(task.count('tasks/get')).toBe(polls + 1)
      expect(new Set(seen)).toEqual(new Set(['working']))
    }))
})

describe('questions', () => {
  it('are asked and answered once, however often they are repeated', async () => {
    proves(
      'tasks.client-fulfills',
      'tasks.client-observes',
      'tasks.client-deduplicates',
      'tasks.client-answers-once',
    )
    const task = new TaskServer()
    const elicit = vi.fn(() => ADA)
    const client = await task.connect({ elicit })
    task.state = asking({ 'who.1': question('Who?') })
    const result = client.callTool('x')
    await until(() => task.count('tasks/update') > 0)
    const polls = task.count('tasks/get')
    await until(() => task.count('tasks/get') > polls + 3)
    task.state = DONE
    await result
    expect(elicit).toHaveBeenCalledTimes(1)
    expect(task.server.paramsOf('tasks/update')).toMatchObject([
      { taskId: 't-1', inputResponses: { 'who.1': ADA } },
    ])
  })

  it('are answered one by one, as the answers come; polls go on meanwhile', async () => {
    proves('tasks.client-keys')
    const task = new TaskServer()
    const given = new Map<string, (answer: typeof ADA) => void>()
    const elicit = ({ message }: { message: string }) =>
      new Promise<typeof ADA>((resolve) => given.set(message, resolve))
    const client = await task.connect({ elicit })
    task.state = asking({ a: question('A?'), b: question('B?') })
    const result = client.callTool('x')
    await until(() => given.size === 2)
    const polls = task.count('tasks/get')
    await until(() => task.count('tasks/get') > polls)
    given.get('B?')?.(ADA)
    await until(() => task.count('tasks/update') === 1)
    task.state = asking({ a: question('A?') })
    given.get('A?')?.(ADA)
    await until(() => task.count('tasks/update') === 2)
    task.state = DONE
    await result
    expect(task.server.paramsOf('tasks/update').map((params) => params['inputResponses'])).toEqual([
      { b: ADA },
      { a: ADA },
    ])
  })

  it('that are answered at the same time are sent together', async () => {
    const task = new TaskServer()
    const client = await task.connect({ elicit: () => ADA })
    task.state = asking({ a: question('A?'), ['__proto__']: question('B?') })
    const result = client.callTool('x')
    await until(() => task.count('tasks/update') > 0)
    task.state = DONE
    await result
    const [update] = task.server.paramsOf('tasks/update')
    expect(Object.keys(update?.['inputResponses'] ?? {}).toSorted()).toEqual(['__proto__', 'a'])
  })

  it('are no longer asked when the server does not need the answer', async () => {
    const task = new TaskServer()
    const reasons: unknown[] = []
    const elicit = (_: unknown, { signal }: { signal: AbortSignal }) =>
      new Promise<never>((_resolve, reject) =>
        signal.addEventListener('abort', () => {
          reasons.push(signal.reason)
          reject(signal.reason as Error)
        }),
      )
    const client = await task.connect({ elicit })
    task.state = asking({ a: question('A?'), b: question('B?') })
    const result = client.callTool('x')
    const polls = () => task.count('tasks/get')
    await until(() => polls() > 1)
    task.state = asking({ b: question('B?') })
    await until(() => reasons.length === 1)
    task.state = DONE
    expect((await result).content).toHaveLength(1)
    await until(() => reasons.length === 2)
    expect(task.count('tasks/update')).toBe(0)
  })

  it('are not sent to the user with more trust than others: by the handlers of the client', async () => {
    proves('tasks.client-trust')
    const task = new TaskServer()
    const client = await task.connect({ elicit: () => ADA })
    task.state = asking({ a: { method: 'sampling/createMessage', params: { messages: [] } } })
    await expect(client.callTool('x')).rejects.toThrow('cannot give')
    await until(() => task.count('tasks/cancel') === 1)
  })

  it('whose answer gets no response are sent again; the user is not asked again', () =>
    onClock(async (pass) => {
      const task = new TaskServer()
      const elicit = vi.fn(() => ADA)
      task.reply = ({ method }) =>
        method === 'tasks/update' && task.count('tasks/update') < 3
          ? { error: { code: -32603, message: 'disk' } }
          : undefined
      const client = await task.connect({ elicit })
      task.state = asking({ a: question('A?') })
      const outcome = watched(client.callTool('x'))
      await passUntil(pass, () => task.count('tasks/update') === 3)
      task.state = DONE
      await passUntil(pass, () => 'value' in outcome)
      expect(outcome.value?.content).toHaveLength(1)
      expect(elicit).toHaveBeenCalledTimes(1)
    }))

  it('that the server refuses an answer to fail the call, and cancel the task', async () => {
    const task = new TaskServer()
    task.reply = ({ method }) =>
      method === 'tasks/update' ? { error: { code: -32602, message: 'wrong' } } : undefined
    const client = await task.connect({ elicit: () => ADA })
    task.state = asking({ a: question('A?') })
    await expect(client.callTool('x')).rejects.toMatchObject({ code: -32602, message: 'wrong' })
    await until(() => task.count('tasks/cancel') === 1)
  })

  it.each([
    ['another question with the same key', [{ a: question('A?') }, { a: question('B?') }]],
    ['more than 1000 questions', [many(1001, 'q')]],
    ['more than 1000 questions in all', [many(600, 'a'), many(600, 'b')]],
    ['a key of more than 1024 characters', [{ ['k'.repeat(1025)]: question('A?') }]],
    ['no "inputRequests"', [[] as never]],
  ])('fail the call, and cancel the task, where there are %s', async (problem, [first, second]) => {
    const task = new TaskServer()
    const client = await task.connect({ elicit: () => ADA })
    task.state = asking(first ?? {})
    const failed = expect(client.callTool('x')).rejects.toMatchObject({
      code: 'INVALID_RESPONSE',
      message: expect.stringContaining(
        problem.replace(' with the same', ' with the').replace(' in all', ''),
      ),
    })
    if (second !== undefined) {
      await until(() => task.count('tasks/update') > 0)
      task.state = asking(second)
    }
    await failed
    await until(() => task.count('tasks/cancel') === 1)
  })
})

function many(count: number, prefix: string) {
  return Object.fromEntries(
    Array.from({ length: count }, (_, index) => [`${prefix}.${index}`, question('?')]),
  )
}

describe('the end', () => {
  it.each([
    ['no id', { taskId: 7 }, '"taskId"'],
    ['a long id', { taskId: 'x'.repeat(9000) }, '"taskId"'],
    ['an unknown status', { status: 'paused' }, '"status"'],
  ])('is an invalid response with %s', async (_, created, message) => {
    const task = new TaskServer()
    task.created = created
    const client = await task.connect()
    await expect(client.callTool('x')).rejects.toMatchObject({
      code: 'INVALID_RESPONSE',
      message: expect.stringContaining(message),
    })
  })

  it.each([
    ['no result', { status: 'completed' }, 'no "result"', 0],
    [
      'another type',
      { status: 'completed', result: { resultType: 'task' } },
      'resultType "task"',
      0,
    ],
    ['another task', { taskId: 't-2' }, 'another task', 1],
    ['no content', { status: 'completed', result: {} }, 'no "content"', 0],
  ])('is an invalid response with %s', async (_, state, message, cancelled) => {
    const task = new TaskServer()
    task.state = state
    const client = await task.connect()
    await expect(client.callTool('x')).rejects.toThrow(message)
    await settle()
    expect(task.count('tasks/cancel')).toBe(cancelled)
    await expect(client.task('t-1').result()).rejects.toThrow(cancelled === 0 ? message : TypeError)
  })

  it('is polled for where a task has ended, or asks, when it is created', () =>
    onClock(async (pass) => {
      const task = new TaskServer()
      task.created = { status: 'completed', pollIntervalMs: 400 }
      task.state = DONE
      const client = await task.connect()
      const outcome = watched(client.callTool('x'))
      await pass(0)
      expect(outcome.value?.content).toHaveLength(1)
    }))

  it('of a failed task is an error with its code', async () => {
    const task = new TaskServer()
    const client = await task.connect()
    const error = { code: -32042, message: 'Out of order', data: { part: 7 } }
    task.state = { status: 'failed', statusMessage: 'broken', error }
    const thrown = await client.callTool('x').catch((reason: unknown) => reason)
    expect(thrown).toBeInstanceOf(RpcError)
    expect(thrown).toMatchObject(error)
    task.state = { status: 'failed', statusMessage: 'broken', error: { code: 1.5 } }
    await expect(client.callTool('x')).rejects.toMatchObject({ code: -32603, message: 'broken' })
    task.state = { status: 'failed' }
    await expect(client.callTool('x')).rejects.toThrow('The task failed')
    expect(task.count('tasks/cancel')).toBe(0)
  })

  it('of a result with isError is that result', async () => {
    proves('tasks.client-polymorphic')
    const task = new TaskServer()
    const client = await task.connect()
    task.state = { status: 'completed', result: { content: [], isError: true } }
    expect(await client.callTool('x')).toMatchObject({ content: [], isError: true })
    task.reply = ({ method }) => (method === 'tools/call' ? { content: [] } : undefined)
    expect(await client.callTool('x')).toMatchObject({ content: [] })
  })

  it('of a cancelled task is an error', async () => {
    const task = new TaskServer()
    task.state = { status: 'cancelled', statusMessage: 'by the operator' }
    const client = await task.connect()
    await expect(client.callTool('x')).rejects.toMatchObject({
      code: 'CANCELLED',
      message: 'The task was cancelled: by the operator',
    })
  })

  it('of a task that the server has forgotten is its expiry', async () => {
    const task = new TaskServer()
    task.reply = ({ method }) =>
      method === 'tasks/get' ? { error: { code: -32602, message: 'not found' } } : undefined
    const client = await task.connect()
    await expect(client.callTool('x')).rejects.toMatchObject({ code: 'TASK_EXPIRED' })
    await expect(client.task('t-1').result()).rejects.toMatchObject({ code: -32602 })
    expect(task.count('tasks/cancel')).toBe(0)
  })

  it('comes after the ttl, though the server goes on', () =>
    onClock(async (pass) => {
      const task = new TaskServer()
      task.created = { ttlMs: 1000 }
      task.state = { ttlMs: 2000, pollIntervalMs: 400 }
      const client = await task.connect()
      const outcome = watched(client.callTool('x'))
      await pass(61_000)
      expect(outcome).toEqual({})
      await pass(2000)
      expect(outcome.error).toMatchObject({ code: 'TASK_EXPIRED' })
      await settle()
      expect(task.count('tasks/cancel')).toBe(1)
    }))

  it('comes after maxWait, though the server goes on for ever', () =>
    onClock(async (pass) => {
      const task = new TaskServer()
      task.state = { ttlMs: null, pollIntervalMs: 1e12 }
      const client = await task.connect({ maxWait: 90_000 })
      const outcome = watched(client.callTool('x'))
      await pass(89_000)
      expect(outcome).toEqual({})
      await pass(1100)
      expect(outcome.error).toMatchObject({ code: 'TIMEOUT' })
      await settle()
      expect(task.count('tasks/cancel')).toBe(1)
    }))
})

describe('a client', () => {
  it('cancels a task with tasks/cancel, and never with notifications/cancelled', async () => {
    proves('tasks.cancel-notification')
    const task = new TaskServer()
    const client = await task.connect()
    const controller = new AbortController()
    const { signal } = controller
    const failed = expect(client.callTool('x', {}, { signal })).rejects.toThrow('enough')
    await until(() => task.count('tasks/get') > 0)
    await settle()
    controller.abort(new Error('enough'))
    await failed
    await until(() => task.count('tasks/cancel') === 1)
    expect(task.server.paramsOf('tasks/cancel')).toMatchObject([{ taskId: 't-1' }])
    expect(task.count('notifications/cancelled')).toBe(0)
    const polls = task.count('tasks/get')
    await settle()
    expect(task.count('tasks/get')).toBe(polls)
  })

  it('rejects a task as the response to anything but tools/call', async () => {
    proves('tasks.client-unsupported')
    const task = new TaskServer()
    task.reply = ({ method }) =>
      method === 'tools/call' ? undefined : { ...TASK, resultType: 'task' }
    const client = await task.connect()
    for (const response of [
      client.getPrompt('x'),
      client.readResource('a://b'),
      client.request('tools/list'),
      client.task('t-1').status(),
    ])
      await expect(response).rejects.toMatchObject({
        code: 'INVALID_RESPONSE',
        message: expect.stringContaining('only tools/call'),
      })
    expect(task.count('tasks/cancel')).toBe(0)
  })

  it('declares the extension with each request, and asks for no progress of a task', async () => {
    const task = new TaskServer({})
    task.state = DONE
    const client = await task.connect()
    await client.callTool('x', {}, { onProgress: () => {} })
    for (const method of ['tools/call', 'tasks/get']) {
      const [params] = task.server.paramsOf(method)
      const meta = params?.['_meta'] as Record<string, { extensions?: object }> // as the client sends it
      expect(meta['io.modelcontextprotocol/clientCapabilities']?.extensions).toEqual({
        'io.modelcontextprotocol/tasks': {},
      })
      expect('progressToken' in meta).toBe(method === 'tools/call')
    }
  })

  it('shows at most 2000 characters of a status message, and survives an onStatus that throws', async () => {
    const task = new TaskServer()
    task.state = { statusMessage: 'm'.repeat(10_000_000), secret: 1 }
    const seen: TaskStatus[] = []
    const client = await task.connect({
      onStatus(status) {
        seen.push(status)
        if (seen.length > 2) task.state = DONE
        throw new Error('boom')
      },
    })
    await client.callTool('x')
    expect(seen[1]?.statusMessage?.length).toBeLessThan(2100)
    expect(seen[1]).not.toHaveProperty('secret')
  })

  it('resumes a task by the id that it had stored, with a question that is open', async () => {
    proves('tasks.client-resumes')
    const task = new TaskServer()
    const ids: string[] = []
    const before = await task.connect({ onStatus: ({ taskId }) => ids.push(taskId) })
    watched(before.callTool('x'))
    await until(() => ids.length > 1)
    await before.close()
    task.state = asking({ a: question('A?') })
    const client = await task.connect({ elicit: () => ADA })
    const result = client.task(ids[0] ?? '').result()
    await until(() => task.count('tasks/update') === 1)
    task.state = DONE
    expect((await result).content).toHaveLength(1)
    await client.task('t-1').cancel()
    expect(task.count('tasks/cancel')).toBe(1)
  })
})
