import { afterEach, describe, expect, it, vi } from 'vitest'
import { type Call, createServer, resource, tool } from '../../src/index.js'
import {
  type ListenOptions,
  type Listening,
  MemorySessionStore,
  type SessionStore,
  listen,
  tokens,
} from '../../src/http.js'
import {
  InitializedSession,
  POST,
  begin,
  message,
  open,
  send,
  statelessRequest,
  withHeaders,
} from './caller.js'

/* What clients can make a server keep is limited in bytes. */

const NEWEST = '2025-11-25'
const KEY = { ada: 'ada-0123456789abcdef', bob: 'bob-0123456789abcdef' }
const bearer = (name: keyof typeof KEY) => ({ authorization: `Bearer ${KEY[name]}` })
const auth = tokens(Object.entries(KEY).map(([id, token]) => ({ token, id, scopes: [] })))
const until = (condition: () => void | Promise<void>) =>
  vi.waitFor(condition, { timeout: 60_000, interval: 5 })

const started: Listening[] = []
afterEach(async () => {
  await Promise.all(started.splice(0).map((each) => each.close(0)))
})

/** A server that shows what it knows of its client, and has a tool that takes as long as it is told. */
async function start(options: ListenOptions = {}) {
  const running: (() => void)[] = []
  const server = createServer({
    name: 'kept',
    version: '1',
    tools: [
      tool({
        name: 'who',
        run: (_, { client }: Call) => JSON.stringify([client.info, client.capabilities]),
      }),
      // Does not care whether it was cancelled.
      tool({
        name: 'slow',
        input: { type: 'object' },
        run: () => new Promise<string>((resolve) => running.push(() => resolve('done'))),
      }),
    ],
    resources: [resource({ uri: 'note://one', read: () => 'one' })],
  })
  const listening = await listen(server, { port: 0, ...options })
  started.push(listening)
  return { server, listening, url: listening.url, running }
}

const initialize = (url: string, params: object, more: Record<string, string> = {}) =>
  send(url, {
    headers: { ...POST, ...more },
    body: message('initialize', { protocolVersion: NEWEST, capabilities: {}, ...params }, 1),
  })
const textOf = ({ json }: { json: unknown }) =>
  (json as { result: { content: { text: string }[] } }).result.content[0]?.text ?? ''

describe('initialize params', () => {
  const icons = [{ src: `data:image/png;base64,${'A'.repeat(100_000)}` }]
  const capabilities = {
    elicitation: { form: {}, url: {} },
    roots: { listChanged: true },
    sampling: { tools: Object.fromEntries(Array.from({ length: 10_000 }, (_, i) => [i, {}])) },
    experimental: { short: { a: [1, 'two'] } },
    unknown: Object.fromEntries(Array.from({ length: 10_000 }, (_, i) => [i, {}])),
  }
  const kept = {
    elicitation: { form: {}, url: {} },
    roots: { listChanged: true },
    sampling: {},
    experimental: { short: { a: [1, 'two'] } },
  }

  it('are retained only as far as they are known and short', async () => {
    const sessions = new MemorySessionStore()
    const set = vi.spyOn(sessions, 'set')
    const { url } = await start({ sessionStore: sessions })
    const clientInfo = {
      name: 'wordy',
      version: '1',
      title: 'x'.repeat(1000),
      description: 'It talks',
      icons,
      motto: 'x',
    }
    const answer = await initialize(url, { capabilities, clientInfo })
    expect(answer.status).toBe(200)
    const session = { ...POST, 'mcp-session-id': String(answer.headers['mcp-session-id']) }
    const who = { headers: session, body: message('tools/call', { name: 'who', arguments: {} }, 2) }
    const known = [{ name: 'wordy', version: '1', description: 'It talks' }, kept]
    expect(JSON.parse(textOf(await send(url, who)))).toEqual(known)
    expect(
      set.mock.calls.map(([, record]) => record.state.length).every((length) => length < 1000),
    ).toBe(true)
    // A process that takes the session up knows the same.
    const next = await start({ sessionStore: sessions })
    expect(JSON.parse(textOf(await send(next.url, who)))).toEqual(known)
  })

  it('are refused with a name that is too long', async () => {
    const { url, listening } = await start()
    for (const params of [
      { clientInfo: { name: 'x'.repeat(257), version: '1' } },
      { clientInfo: { name: 'x', version: '1'.repeat(257) } },
      { protocolVersion: 'x'.repeat(257) },
    ])
      expect((await initialize(url, params)).json).toMatchObject({
        error: { code: -32602, message: expect.stringMatching(/^Invalid params/) as string },
      })
    expect(listening.sessions).toBe(0)
  })

  it('follow the same rules in a stateless request', async () => {
    const { url } = await start()
    const { elicitation, unknown } = capabilities
    const meta = {
      'io.modelcontextprotocol/clientInfo': { name: 'wordy', version: '1', icons },
      'io.modelcontextprotocol/clientCapabilities': { elicitation, unknown },
    }
    const answer = await send(
      url,
      statelessRequest('tools/call', { name: 'who', arguments: {}, _meta: meta }),
    )
    expect(JSON.parse(textOf(answer))).toEqual([{ name: 'wordy', version: '1' }, { elicitation }])
  })
})

describe('sessions', () => {
  const clientInfo = { name: 'x'.repeat(200), version: '1' }

  it('are refused beyond the memory limit, of a principal and in total', async () => {
    const { url, listening } = await start({
      auth,
      limits: { retainedBytes: 30_000, retainedBytesPerPrincipal: 15_000 },
    })
    const statuses = async (name: keyof typeof KEY) => {
      const found: number[] = []
      while (found.length < 20 && !found.includes(503))
        found.push((await initialize(url, { clientInfo }, bearer(name))).status)
      return found
    }
    const [ada, bob] = [await statuses('ada'), await statuses('bob')]
    expect(ada).toEqual([200, 200, 503])
    expect(bob).toEqual(ada)
    expect(listening.sessions).toBe(4)
  })

  it('release their memory when they end', async () => {
    const { url } = await start({ limits: { retainedBytes: 10_000 } })
    for (let i = 0; i < 10; i++) {
      const client = await InitializedSession.open(url, NEWEST)
      await client.request('resources/subscribe', { uri: `note://${'x'.repeat(500)}` })
      await client.end()
    }
  })

  it('that are idle are evicted for a new one', async () => {
    vi.useFakeTimers({ toFake: ['Date', 'performance'] })
    try {
      const { url, listening } = await start({
        auth,
        limits: { retainedBytesPerPrincipal: 16_000 },
      })
      const bob = await InitializedSession.open(url, NEWEST, {}, bearer('bob'))
      for (let i = 0; i < 2; i++) await InitializedSession.open(url, NEWEST, {}, bearer('bob'))
      for (let i = 0; i < 2; i++)
        expect((await initialize(url, { clientInfo }, bearer('ada'))).status).toBe(200)
      expect((await initialize(url, { clientInfo }, bearer('ada'))).status).toBe(503)
      vi.advanceTimersByTime(120_000)
      expect((await initialize(url, { clientInfo }, bearer('ada'))).status).toBe(200)
      expect(listening.sessions).toBe(5)
      // It has been idle for longer, and its principal has more of them.
      expect((await bob.request('ping')).status).toBe(200)
    } finally {
      vi.useRealTimers()
    }
  })

  it('of other principals are not evicted for a new one of the principal that has most', async () => {
    vi.useFakeTimers({ toFake: ['Date', 'performance'] })
    try {
      const { url, listening } = await start({ auth, limits: { sessions: 4 } })
      const bob = await InitializedSession.open(url, NEWEST, {}, bearer('bob'))
      for (let i = 0; i < 3; i++)
        expect((await initialize(url, {}, bearer('ada'))).status).toBe(200)
      vi.advanceTimersByTime(120_000)
      for (let i = 0; i < 3; i++)
        expect((await initialize(url, {}, bearer('ada'))).status).toBe(200)
      // All of its own were used now.
      expect((await initialize(url, {}, bearer('ada'))).status).toBe(503)
      expect([listening.sessions, (await bob.request('ping')).status]).toEqual([4, 200])
    } finally {
      vi.useRealTimers()
    }
  })
})

describe('subscriptions', () => {
  const long = (name: string | number) => `note://${name}/${'x'.repeat(8000)}`

  it('reject URIs that are too long', async () => {
    const { url } = await start()
    const client = await InitializedSession.open(url, NEWEST)
    expect(
      (await client.request('resources/subscribe', { uri: 'x'.repeat(8193) })).json,
    ).toMatchObject({ error: { code: -32602 } })
    const notifications = { resourceSubscriptions: ['x'.repeat(8193)] }
    expect(
      (await send(url, statelessRequest('subscriptions/listen', { notifications }))).json,
    ).toMatchObject({ error: { code: -32602 } })
  })

  it('of a session have a memory limit', async () => {
    const { url } = await start({ limits: { retainedBytesPerSession: 300_000 } })
    const client = await InitializedSession.open(url, NEWEST)
    const subscribe = async (i: number) =>
      (await client.request('resources/subscribe', { uri: long(i) })).json
    let count = 0
    while (count < 100 && 'result' in ((await subscribe(count)) as object)) count++
    expect(count).toBeGreaterThan(3)
    expect(count).toBeLessThan(30)
    expect(await subscribe(count)).toMatchObject({
      error: { code: -32603, message: expect.stringMatching(/^Too many subscriptions/) as string },
    })
    expect(await subscribe(0)).toMatchObject({ result: {} })
    await client.request('resources/unsubscribe', { uri: long(0) })
    expect(await subscribe(count)).toMatchObject({ result: {} })
  })

  it('of subscriptions/listen count until they are closed', async () => {
    const { url, listening } = await start({ limits: { retainedBytes: 120_000 } })
    const listening3 = () =>
      open(
        url,
        statelessRequest('subscriptions/listen', {
          notifications: { resourceSubscriptions: [long(1), long(2), long(3)] },
        }),
      )
    const first = await listening3()
    await first.has('acknowledged')
    const second = await listening3()
    expect(await second.ended().then(() => second.text)).toContain('Too many subscriptions')
    first.disconnect()
    await until(() => expect(listening.openResponses).toBe(0))
    const third = await listening3()
    await third.has('acknowledged')
    third.disconnect()
  })
})

describe('incomplete bodies', () => {
  it('of one principal leave half of the memory to others', async () => {
    const limits = { bodyBytes: 100_000, incompleteBodyBytes: 500_000 }
    const { url, listening } = await start({ auth, limits })
    const stalled = Array.from({ length: 8 }, () => {
      const { request, response } = begin(url, {
        headers: { ...POST, ...bearer('ada'), 'content-length': 90_000 },
      })
      response.catch(() => {})
      request.on('error', () => {}).write('x'.repeat(89_000))
      return request
    })
    const status = async (name: keyof typeof KEY) => {
      const who = statelessRequest('tools/call', { name: 'who', arguments: {} })
      const body = `${String(who.body)}${' '.repeat(80_000)}`
      return (await send(url, { ...withHeaders(who, bearer(name)), body })).status
    }
    await until(async () => expect(await status('ada')).toBe(503))
    expect(await status('bob')).toBe(200)
    for (const request of stalled) request.destroy()
    await until(async () => expect(await status('ada')).toBe(200))
    expect(listening.openResponses).toBe(0)
  })

  it('of one principal may be one of the longest', async () => {
    const limits = { bodyBytes: 100_000, incompleteBodyBytes: 100_000 }
    const { url } = await start({ auth, limits })
    const who = statelessRequest('tools/call', { name: 'who', arguments: {} })
    const body = String(who.body).padEnd(100_000)
    expect((await send(url, { ...withHeaders(who, bearer('ada')), body })).status).toBe(200)
  })
})

describe('requests in progress', () => {
  const slow = { name: 'slow', arguments: { text: 'x'.repeat(100_000) } }

  it('have a memory limit, also when their clients have disconnected', async () => {
    const { url, running, listening } = await start({ limits: { pendingBytes: 300_000 } })
    const calls = [1, 2].map((id) =>
      open(url, statelessRequest('tools/call', slow, id)).catch(() => undefined),
    )
    await until(() => expect(running.length).toBe(2))
    const refused = await send(url, statelessRequest('tools/call', { name: 'who', arguments: {} }))
    expect([refused.status, refused.headers['retry-after']]).toEqual([503, '5'])
    const client = await send(url, {
      headers: POST,
      body: message('initialize', { protocolVersion: NEWEST, capabilities: {} }, 1),
    })
    expect(client.status).toBe(503)
    for (const finish of running) finish()
    for (const call of await Promise.all(calls)) await call?.ended()
    await until(() => expect(listening.openResponses).toBe(0))
    // The same again, from clients that do not wait.
    for (const id of [3, 4]) {
      const request = statelessRequest('tools/call', slow, id)
      const gone = new AbortController()
      const sent = fetch(url, {
        method: 'POST',
        headers: request.headers as Record<string, string>,
        body: request.body as string,
        signal: gone.signal,
      })
      await until(() => expect(running.length).toBe(id))
      gone.abort()
      await sent.catch(() => {})
    }
    await until(() => expect(listening.openResponses).toBe(0))
    expect(
      (await send(url, statelessRequest('tools/call', { name: 'who', arguments: {} }))).status,
    ).toBe(503)
    for (const finish of running) finish()
    await until(() => expect(running.length).toBe(4))
    expect(
      (await send(url, statelessRequest('tools/call', { name: 'who', arguments: {} }))).status,
    ).toBe(200)
  })

  it('of one principal do not use the limit of another', async () => {
    const { url, running } = await start({ auth, limits: { pendingBytesPerClient: 200_000 } })
    const [ada, bob] = [
      await InitializedSession.open(url, NEWEST, {}, bearer('ada')),
      await InitializedSession.open(url, NEWEST, {}, bearer('bob')),
    ]
    const call = ada.request('tools/call', slow)
    await until(() => expect(running.length).toBe(1))
    const who = { name: 'who', arguments: {} }
    expect([
      (await ada.request('tools/call', who)).status,
      (await bob.request('tools/call', who)).status,
    ]).toEqual([503, 200])
    running[0]?.()
    expect((await call).status).toBe(200)
    expect((await ada.request('tools/call', who)).status).toBe(200)
  })

  it('that wait for a session store count as well', async () => {
    const answers: (() => void)[] = []
    const sessions: SessionStore = {
      set: () => true,
      delete: () => {},
      get: () => new Promise((resolve) => answers.push(() => resolve(undefined))),
    }
    const { url } = await start({ sessionStore: sessions, limits: { pendingBytes: 300_000 } })
    const lost = (id: string) =>
      send(url, {
        headers: { ...POST, 'mcp-session-id': id.padEnd(32, 'x') },
        body: message('tools/call', slow, 1),
      })
    const waiting = [lost('a'), lost('b')]
    await until(() => expect(answers.length).toBe(2))
    expect((await lost('c')).status).toBe(503)
    for (const answer of answers) answer()
    expect((await Promise.all(waiting)).map(({ status }) => status)).toEqual([404, 404])
    const last = lost('d')
    await until(() => expect(answers.length).toBe(4))
    answers[3]?.()
    expect((await last).status).toBe(404)
  })
})
