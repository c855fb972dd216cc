import { describe, expect, it } from 'vitest'
import { type Call, type Tool, createServer, prompt, resource, tool } from '../../src/index.js'
import { answers, call as lineOf, drive, initialize } from '../drive.js'
import { proves } from './proves.js'
import { Wire, handshakes, ids, modern } from './wire.js'

const SUBSCRIPTION = 'io.modelcontextprotocol/subscriptionId'
const streamOf = (params: Record<string, unknown> = {}) =>
  (params['_meta'] as Record<string, unknown>)[SUBSCRIPTION]
const serverOf = (...tools: Tool[]) => createServer({ name: 'patterns', version: '1', tools })
const turn = () => new Promise((resolve) => setImmediate(resolve))

/* https://modelcontextprotocol.io/specification/2026-07-28/basic/patterns/cancellation */
describe.each(ids)('cancellation in %s', (revision) => {
  it('fires call.signal, frees the concurrency slot and sends nothing more for the request', async () => {
    proves('cancellation.stop', 'stdio.cancel')
    const ended: string[] = []
    const talk = async (_: unknown, call: Call) => {
      await new Promise((resolve) => call.signal.addEventListener('abort', resolve))
      ended.push((call.signal.reason as Error).message)
      call.progress(1)
      call.log.emergency('still here')
      await turn()
      return 'too late'
    }
    const wire = await Wire.open(
      serverOf(tool({ name: 'talk', concurrency: 1, run: talk })),
      revision,
    )
    const meta = {
      progressToken: 't',
      ...(revision === modern ? { 'io.modelcontextprotocol/logLevel': 'debug' } : {}),
    }
    for (const id of ['one', 'two'])
      void wire.request('tools/call', { name: 'talk', arguments: {}, _meta: meta }, id)
    await wire.settle()
    wire.frames.length = 0
    wire.notify('notifications/cancelled', { requestId: 'one', reason: 'enough' })
    await wire.settle()
    // The second call has the slot now.
    wire.notify('notifications/cancelled', { requestId: 'two', reason: 'enough again' })
    await wire.settle()
    expect(ended).toEqual(['enough', 'enough again'])
    expect(wire.frames).toEqual([])
  })

  it('is ignored for unknown or completed requests, and when malformed', async () => {
    proves('cancellation.invalid', 'cancellation.races')
    const wire = await Wire.open(serverOf(tool({ name: 'quick', run: () => 'done' })), revision)
    expect(
      (await wire.request('tools/call', { name: 'quick', arguments: {} }, 'done')).result,
    ).toBeDefined()
    wire.frames.length = 0
    for (const requestId of ['done', 'unknown', 99, null, {}, [], true])
      wire.notify('notifications/cancelled', { requestId })
    wire.notify('notifications/cancelled', { requestId: 'done', reason: 5 })
    wire.notify('notifications/cancelled', {})
    wire.notify('notifications/cancelled')
    await wire.settle()
    expect(wire.frames).toEqual([])
    expect(
      (await wire.request('tools/call', { name: 'quick', arguments: {} }, 'done')).result,
    ).toBeDefined()
  })

  it('may cross the response', async () => {
    proves('cancellation.races')
    let finish: () => void = () => {}
    const slow = tool({
      name: 'slow',
      run: () => new Promise((resolve) => (finish = () => resolve('done'))),
    })
    const wire = await Wire.open(serverOf(slow), revision)
    const answer = wire.request('tools/call', { name: 'slow', arguments: {} }, 'x')
    await wire.settle()
    finish()
    wire.notify('notifications/cancelled', { requestId: 'x' })
    await wire.settle()
    // At most one response, and the connection still works.
    expect(wire.frames.filter((frame) => frame.includes('"id":"x"')).length).toBeLessThanOrEqual(1)
    expect((await wire.request('tools/list')).result).toBeDefined()
    void answer
  })
})

describe('notifications/cancelled', () => {
  it.each(handshakes)('for initialize is ignored in %s', async (revision) => {
    proves('cancellation.initialize')
    const [opening = '', ready = ''] = initialize(revision)
    const cancel =
      '{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"init"}}'
    expect(
      await answers(serverOf(), [
        opening,
        cancel,
        ready,
        '{"jsonrpc":"2.0","id":1,"method":"ping"}',
      ]),
    ).toMatchObject([
      { id: 'init', result: { protocolVersion: revision } },
      { id: 1, result: {} },
    ])
  })

  it('is logged with its reason', async () => {
    proves('cancellation.log')
    const wait = tool({
      name: 'wait',
      run: (_, { signal }) => new Promise((resolve) => signal.addEventListener('abort', resolve)),
    })
    const cancel =
      '{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7,"reason":"the user went home"}}'
    const { log } = await drive(
      serverOf(wait),
      [...initialize('2025-11-25'), lineOf('wait', {}, 7), cancel].join('\n'),
      {
        logLevel: 'debug',
      },
    )
    const lines = log.split('\n').filter((line) => line.includes('the user went home'))
    expect(lines.map((line) => JSON.parse(line) as unknown)).toMatchObject([
      { level: 'debug', requestId: 7 },
    ])
  })

  it(`is sent by a server of ${modern} for subscription streams that it closes, after their results, and for nothing else`, async () => {
    proves(
      'cancellation.teardown',
      'cancellation.by-servers',
      'cancellation.by-servers-reference',
      'listen.result',
    )
    const meta = {
      'io.modelcontextprotocol/protocolVersion': modern,
      'io.modelcontextprotocol/clientCapabilities': {},
    }
    const line = (id: unknown, method: string, params: object) =>
      JSON.stringify({ jsonrpc: '2.0', id, method, params: { ...params, _meta: meta } })
    const slow = tool({ name: 'slow', timeout: 20, run: () => new Promise(() => {}) })
    const came = (await answers(serverOf(slow), [
      line('a', 'subscriptions/listen', { notifications: { toolsListChanged: true } }),
      line(2, 'subscriptions/listen', { notifications: {} }),
      line(3, 'tools/call', { name: 'slow' }),
      line(4, 'subscriptions/listen', { notifications: {} }),
      '{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":4}}',
    ])) as { id?: unknown; method?: string; params?: { requestId: unknown }; result?: object }[]
    const ends = came.flatMap(({ id, method, params, result }, at) =>
      method === 'notifications/cancelled'
        ? [[params?.requestId, at]]
        : result !== undefined
          ? [[`result ${String(id)}`, at]]
          : [],
    )
    const at = Object.fromEntries(ends) as Record<string, number>
    expect(Object.keys(at).toSorted()).toEqual(['2', 'a', 'result 2', 'result 3', 'result a'])
    for (const id of ['a', '2']) expect(at[id]).toBeGreaterThan(at[`result ${id}`] ?? Infinity)
  })
})

/* https://modelcontextprotocol.io/specification/2026-07-28/basic/patterns/progress */
describe.each(ids)('progress in %s', (revision) => {
  const work = tool({
    name: 'work',
    async run(_, call) {
      for (const done of [1, 2, 2, 1.5, Number.NaN, 3]) {
        call.progress(done, 3)
        await turn()
      }
      for (let done = 4; done < 1000; done++) call.progress(done)
      await turn()
      setImmediate(() => call.progress(5000))
      return 'done'
    },
  })
  const values = async (wire: Wire) =>
    (await wire.settle())
      .filter(({ method }) => method === 'notifications/progress')
      .map(({ params }) => params)
  const run = (wire: Wire, token: unknown) =>
    wire.request('tools/call', { name: 'work', arguments: {}, _meta: { progressToken: token } })

  it('increases, is sent at most once per turn of the event loop, and ends with the response', async () => {
    proves('progress.increases', 'progress.rate', 'progress.stops')
    const wire = await Wire.open(serverOf(work), revision)
    await run(wire, 0)
    const answered = wire.frames.length
    expect((await values(wire)).map((params) => params?.['progress'])).toEqual([1, 2, 3, 999])
    expect(wire.frames.length).toBe(answered)
  })

  it('of a synchronous handler is not sent after its response', async () => {
    proves('progress.stops')
    const quick = tool({
      name: 'quick',
      run(_, call) {
        call.progress(1)
        return 'done'
      },
    })
    const wire = await Wire.open(serverOf(quick), revision)
    await wire.request('tools/call', { name: 'quick', arguments: {}, _meta: { progressToken: 1 } })
    await wire.settle()
    expect(wire.frames.at(-1)).toContain('"result"')
  })

  it('carries the progress token of its request', async () => {
    proves('progress.token', 'progress.active', 'progress.track')
    const wire = await Wire.open(serverOf(work), revision)
    await Promise.all([
      run(wire, 'a'),
      run(wire, 0),
      wire.request('tools/call', { name: 'work', arguments: {} }),
    ])
    const tokens = (await values(wire)).map((params) => params?.['progressToken'])
    expect([
      tokens.filter((token) => token === 'a').length,
      tokens.filter((token) => token === 0).length,
      tokens.length,
    ]).toEqual([4, 4, 8])
    const odd = await Wire.open(serverOf(work), revision, { judged: false })
    for (const token of [1.5, null, true, {}, [1]]) await run(odd, token)
    expect(await values(odd)).toEqual([])
  })
})

/* https://modelcontextprotocol.io/specification/2025-11-25/basic/utilities/ping */
it.each(handshakes)(
  'ping gets a response immediately in %s, also while other requests wait',
  async (revision) => {
    proves('ping.answer')
    const stuck = tool({ name: 'stuck', run: () => new Promise(() => {}) })
    const wire = await Wire.open(serverOf(stuck), revision)
    // More than the concurrency limit: the last ones wait.
    for (let many = 0; many < 500; many++)
      void wire.request('tools/call', { name: 'stuck', arguments: {} })
    expect(await wire.request('ping', {}, 'p')).toEqual({ jsonrpc: '2.0', id: 'p', result: {} })
  },
)

/* https://modelcontextprotocol.io/specification/2026-07-28/basic/patterns/subscriptions */
describe('subscriptions/listen', () => {
  const server = () =>
    createServer({
      name: 'changes',
      version: '1',
      tools: [tool({ name: 'one', run: () => '' })],
      resources: [
        resource({ uri: 'a://b', read: () => 'x' }),
        resource({ uri: 'a://c', read: () => 'x' }),
      ],
    })
  const everything = {
    toolsListChanged: true,
    resourcesListChanged: true,
    promptsListChanged: true,
    resourceSubscriptions: ['a://b'],
  }
  const change = (one: ReturnType<typeof server>) => {
    one.tools.update('one', { description: 'New' })
    one.resources.disable('a://c')
    one.prompts.add(prompt({ name: `p${one.prompts.size}`, build: () => '' }))
    one.updated('a://b')
    one.updated('a://c')
  }

  it('sends the requested notifications after the acknowledgment, each with the subscription id', async () => {
    proves('listen.only-requested', 'listen.acknowledged', 'meta.subscription-id')
    const one = server()
    const wire = await Wire.open(one, modern)
    const filters = {
      s1: { toolsListChanged: true },
      s2: { resourceSubscriptions: ['a://b'] },
      3: {},
    }
    for (const [id, notifications] of Object.entries(filters))
      void wire.request('subscriptions/listen', { notifications }, id === '3' ? 3 : id)
    change(one)
    await wire.settle().then((heard) => wire.heard.push(...heard))
    change(one)
    const heard = await wire.settle()
    const of = (id: unknown) => heard.filter(({ params }) => streamOf(params) === id)
    expect(of('s1').length + of('s2').length + of(3).length).toBe(heard.length)
    const methods = (id: unknown) => [...new Set(of(id).map(({ method }) => method))]
    expect(methods('s1')).toEqual([
      'notifications/subscriptions/acknowledged',
      'notifications/tools/list_changed',
    ])
    expect(methods('s2')).toEqual([
      'notifications/subscriptions/acknowledged',
      'notifications/resources/updated',
    ])
    expect(methods(3)).toEqual(['notifications/subscriptions/acknowledged'])
    expect(
      of('s2')
        .slice(1)
        .map(({ params }) => params?.['uri']),
    ).toEqual(expect.arrayContaining(['a://b']))
    expect(of('s2').some(({ params }) => params?.['uri'] === 'a://c')).toBe(false)
  })

  it('acknowledges only what the server supports', async () => {
    proves('listen.acknowledged', 'listen.only-requested')
    const one = server()
    const wire = await Wire.open(one, modern)
    void wire.request('subscriptions/listen', { notifications: everything }, 1)
    const [acknowledged] = await wire.settle()
    expect(acknowledged?.params?.['notifications']).toEqual({
      toolsListChanged: true,
      resourcesListChanged: true,
      resourceSubscriptions: ['a://b'],
    })
    const bare = await Wire.open(createServer({ name: 'bare', version: '1' }), modern)
    void bare.request('subscriptions/listen', { notifications: everything }, 1)
    expect((await bare.settle())[0]?.params?.['notifications']).toEqual({})
  })

  it('does not block other requests, however many streams are open', async () => {
    const wire = await Wire.open(server(), modern)
    const streams = Array.from({ length: 300 }, (_, id) =>
      wire.request('subscriptions/listen', { notifications: {} }, `s${id}`),
    )
    expect((await wire.request('tools/list')).result).toBeDefined()
    expect((await wire.settle()).length).toBe(100)
    expect((await streams[299])?.error).toMatchObject({
      code: -32603,
      message: expect.stringContaining('100 subscription streams') as string,
    })
  })

  it('is rejected without valid notifications', async () => {
    const wire = await Wire.open(server(), modern)
    for (const notifications of [
      undefined,
      null,
      [],
      'tools',
      { resourceSubscriptions: 'a://b' },
      { resourceSubscriptions: [5] },
    ])
      expect((await wire.request('subscriptions/listen', { notifications })).error?.code).toBe(
        -32602,
      )
    expect(await wire.settle()).toEqual([])
  })

  it('ends without a response when the client cancels it', async () => {
    proves('cancellation.stop')
    const one = server()
    const wire = await Wire.open(one, modern)
    void wire.request('subscriptions/listen', { notifications: everything }, 'gone')
    await wire.settle()
    wire.notify('notifications/cancelled', { requestId: 'gone' })
    await wire.settle()
    wire.frames.length = 0
    change(one)
    await wire.settle()
    expect(wire.frames).toEqual([])
  })
})
