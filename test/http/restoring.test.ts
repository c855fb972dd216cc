import { afterEach, describe, expect, it, vi } from 'vitest'
import {
  type ListenOptions,
  type Listening,
  MemoryEventStore,
  MemorySessionStore,
  type SessionRecord,
  type SessionStore,
  httpHandler,
  listen,
  tokens,
} from '../../src/http.js'
import { RpcError, type Server, createServer, resource, tool } from '../../src/index.js'
import { Sessions } from '../../src/transports/http/sessions.js'
import { InitializedSession, POST, message, send } from './caller.js'
import { servedOverHttp } from './served.js'

/* Sessions that outlive the process which has opened them: each `listen` here is one. */

const HANDSHAKES = ['2024-11-05', '2025-03-26', '2025-06-18', '2025-11-25']
const NEWEST = HANDSHAKES.at(-1) ?? ''
const until = (condition: () => void) => vi.waitFor(condition, { timeout: 60_000, interval: 5 })
const said = (text: string) => ({ result: { content: [{ type: 'text', text }] } })
const echo = (text: string) => ({ name: 'echo', arguments: { text } })

const processes: Listening[] = []
afterEach(async () => {
  vi.useRealTimers()
  await Promise.all(processes.splice(0).map((each) => each.close(0)))
})

async function start(server: Server, options: ListenOptions): Promise<Listening> {
  const listening = await listen(server, { port: 0, ...options })
  processes.push(listening)
  return listening
}

/** A server whose resource changes when it is told to, and which says so in the log. */
function watched(more: { prompts?: boolean } = {}): Server {
  const note = resource({ uri: 'note:it', name: 'it', read: () => 'text' })
  const say = tool({
    name: 'say',
    run: (_, call) => {
      call.log.debug('in detail')
      return 'said'
    },
  })
  const prompts = more.prompts === true ? [{ name: 'hello', build: () => 'Hello' }] : []
  return createServer({ name: 'watched', version: '1', tools: [say], resources: [note], prompts })
}

describe.each(HANDSHAKES)('a session of %s', (revision) => {
  it('is restored by the next process, with its state', async () => {
    const sessions = new MemorySessionStore()
    const first = await start(watched(), { sessionStore: sessions })
    const client = await InitializedSession.open(first.url, revision)
    await client.request('resources/subscribe', { uri: 'note:it' })
    await client.request('resources/subscribe', { uri: 'note:other' })
    await client.request('logging/setLevel', { level: 'debug' })
    expect((await client.request('logging/setLevel', { level: 'wrong' })).text).toContain('error')
    await first.close()

    const server = watched()
    const second = await start(server, { sessionStore: sessions })
    const moved = client.at(second.url)
    const answer = await moved.request('tools/call', { name: 'say', arguments: {} })
    expect(answer.status).toBe(200)
    expect(answer.json).toMatchObject([
      { method: 'notifications/message', params: { level: 'debug', data: 'in detail' } },
      said('said'),
    ])
    expect(second.sessions).toBe(1)
    const stream = await moved.listen()
    const updated = (uri: string) => ({
      jsonrpc: '2.0',
      method: 'notifications/resources/updated',
      params: { uri },
    })
    // What has changed since the first process has ended, no process knows.
    expect([
      await stream.message(),
      await stream.message(),
      await stream.message(),
      await stream.message(),
    ]).toEqual([
      { jsonrpc: '2.0', method: 'notifications/tools/list_changed' },
      { jsonrpc: '2.0', method: 'notifications/resources/list_changed' },
      updated('note:it'),
      updated('note:other'),
    ])
    server.updated('note:it')
    expect(await stream.message()).toEqual(updated('note:it'))
    stream.disconnect()
    // Without Last-Event-ID it may have missed some of that.
    await until(() => expect(second.openResponses).toBe(0))
    const again = await moved.listen()
    await again.has('note:other')
    server.updated('note:other')
    await until(() => expect(again.text.split('note:other')).toHaveLength(3))
    again.disconnect()
    expect((await moved.end()).status).toBe(204)
    expect([second.sessions, sessions.size]).toEqual([0, 0])
  })
})

/** A ping in the session of a client. */
function pingOf(client: InitializedSession): Request {
  return new Request('http://localhost/mcp', {
    method: 'POST',
    headers: { ...POST, ...client.headers },
    body: message('ping', {}, 1),
  })
}

describe('stored events', () => {
  it('are sent to a client that reconnects to another process', async () => {
    const shared = { sessionStore: new MemorySessionStore(), eventStore: new MemoryEventStore() }
    const { server, gate } = servedOverHttp()
    const first = await start(server, shared)
    const client = await InitializedSession.open(first.url, NEWEST)
    const own = await client.listen()
    const primed = await own.next()
    const call = await client.stream('tools/call', {
      name: 'steps',
      arguments: { gate: 'a' },
      _meta: { progressToken: 'p' },
    })
    await call.has('"progress":1')
    const last = call.seen.at(-1)?.id ?? ''
    call.disconnect()
    own.disconnect()
    await until(() => expect(first.openResponses).toBe(0))
    server.tools.remove('big')
    gate.open('a')
    await first.close()

    const other = servedOverHttp().server
    const second = await start(other, shared)
    const moved = client.at(second.url)
    const rest = await moved.listen(last)
    expect([await rest.message(), await rest.message()]).toMatchObject([
      { params: { progress: 2 } },
      said('passed a'),
    ])
    expect(await rest.message()).toBeUndefined()
    const ownAgain = await moved.listen(primed?.id)
    expect(await ownAgain.message()).toMatchObject({ method: 'notifications/tools/list_changed' })
    other.tools.remove('big')
    expect(await ownAgain.message()).toMatchObject({ method: 'notifications/tools/list_changed' })
    // The names of its streams are new: nothing is taken for something else.
    const [resumed, stored, ...others] = ownAgain.seen.map(({ id }) => id)
    expect([resumed, stored]).toEqual([primed?.id, 'g.1'])
    expect(others[0]).toMatch(/^g[1-9]\d*\.1$/)
    ownAgain.disconnect()
    for (const never of ['7p.1', 'x.1', 'gg.2'])
      expect((await moved.listen(never)).status).toBe(400)
  })

  it('of different processes have different ids, also if both have the session', async () => {
    vi.useFakeTimers({ toFake: ['Date', 'performance'] })
    try {
      const shared = {
        sessionStore: new MemorySessionStore(),
        eventStore: new MemoryEventStore(),
        limits: { sessionIdleTimeout: 60_000 },
      }
      const first = await start(watched(), shared)
      const client = await InitializedSession.open(first.url, NEWEST)
      const changing = watched()
      const second = await start(changing, shared)
      const stream = await client.at(second.url).listen()
      changing.tools.remove('say')
      await stream.message()
      // The balancer has found the first one again, which knows nothing of the second.
      vi.advanceTimersByTime(20_000)
      await client.request('ping')
      await Promise.all([first.close(), second.close()])
      const other = watched()
      const third = await start(other, shared)
      const again = await client.at(third.url).listen()
      const primed = await again.next()
      other.resources.remove('note:it')
      expect(await again.message()).toMatchObject({ method: 'notifications/tools/list_changed' })
      expect(await again.message()).toMatchObject({
        method: 'notifications/resources/list_changed',
      })
      expect(stream.seen.map(({ id }) => id)).not.toContain(again.seen.at(-1)?.id)
      again.disconnect()
      const resumed = await client.at(third.url).listen(primed?.id)
      expect(await resumed.message()).toMatchObject({ method: 'notifications/tools/list_changed' })
      expect(await resumed.message()).toMatchObject({
        method: 'notifications/resources/list_changed',
      })
      resumed.disconnect()
    } finally {
      vi.useRealTimers()
    }
  })

  it('may be missing: then only new events are sent', async () => {
    const sessions = new MemorySessionStore()
    const first = await start(watched(), { sessionStore: sessions })
    const client = await InitializedSession.open(first.url, NEWEST)
    const own = await client.listen()
    const primed = await own.next()
    await first.close()
    const server = watched()
    const second = await start(server, { sessionStore: sessions })
    const again = await client.at(second.url).listen(primed?.id)
    expect(again.status).toBe(200)
    server.tools.remove('say')
    expect(await again.message()).toMatchObject({ method: 'notifications/tools/list_changed' })
    again.disconnect()
    expect((await client.at(second.url).listen('0p.0')).status).toBe(400)
  })

  it.each(['of the GET stream', 'of a call'])('%s may be out of reach: 503', async (which) => {
    const events = new MemoryEventStore()
    const lines: string[] = []
    const shared = {
      sessionStore: new MemorySessionStore(),
      eventStore: events,
      log: { write: (line: string) => void lines.push(line) },
    }
    const first = await start(watched(), shared)
    const client = await InitializedSession.open(first.url, NEWEST)
    // Then a call sends more than its response.
    await client.request('logging/setLevel', { level: 'debug' })
    const call = { name: 'say', arguments: {} }
    const stream =
      which === 'of a call' ? await client.stream('tools/call', call) : await client.listen()
    const primed = await stream.next()
    expect(primed?.id).toBeDefined()
    stream.disconnect()
    await first.close()
    const second = await start(watched(), shared)
    const moved = client.at(second.url)
    const reading = vi.spyOn(events, 'read').mockImplementation(() => {
      throw new Error('out of reach')
    })
    const refused = await moved.listen(primed?.id)
    expect([refused.status, refused.headers['retry-after']]).toEqual([503, '5'])
    expect(lines.join('')).toContain('The event store failed')
    reading.mockRestore()
    const resumed = await moved.listen(primed?.id)
    expect(resumed.status).toBe(200)
    resumed.disconnect()
  })
})

/** A store on another machine: it takes its time, and can be out of reach. */
class Remote implements SessionStore {
  readonly stored = new Map<string, SessionRecord>()
  readonly asked: string[] = []
  out = false
  slow: Promise<void> | undefined

  /** From here on it takes its time, until the function that this returns is called. */
  hold(): () => void {
    let go = () => {}
    this.slow = new Promise((resolve) => {
      go = resolve
    })
    return go
  }

  async set(name: string, record: SessionRecord): Promise<boolean> {
    await this.#reach('set')
    this.stored.set(name, record)
    return true
  }
  async get(name: string): Promise<SessionRecord | undefined> {
    await this.#reach('get')
    return this.stored.get(name)
  }
  async delete(name: string): Promise<void> {
    await this.#reach('delete')
    this.stored.delete(name)
  }
  async #reach(what: string): Promise<void> {
    this.asked.push(what)
    await this.slow
    if (this.out) throw new Error('out of reach')
  }
}

describe('a session store', () => {
  it('does not get session ids', async () => {
    const sessions = new Remote()
    const { url } = await start(watched(), { sessionStore: sessions, sessionIdPrefix: 'east' })
    const { session } = await InitializedSession.open(url, NEWEST)
    await until(() => expect(sessions.stored.size).toBe(1))
    const [[name, record] = ['', undefined]] = sessions.stored
    expect(session).toMatch(/^east\.[\w-]{32}$/)
    expect(name).toBe(session.slice(0, -20))
    expect(record?.state).toContain(NEWEST)
    expect(record?.state).not.toContain(session.slice(-20))
  })

  it('restores a session only for its id and principal', async () => {
    const sessions = new MemorySessionStore()
    const auth = tokens([
      { token: 'a'.repeat(32), id: 'ann', scopes: [] },
      { token: 'b'.repeat(32), id: 'bob', scopes: [] },
    ])
    const by = (letter: string) => ({ authorization: `Bearer ${letter.repeat(32)}` })
    const first = await start(watched(), { sessionStore: sessions, auth })
    const client = await InitializedSession.open(first.url, NEWEST, {}, by('a'))
    await first.close()
    const second = await start(watched(), { sessionStore: sessions, auth })
    const ping = (session: string, letter: string) =>
      send(second.url, {
        headers: { ...POST, 'mcp-session-id': session, ...by(letter) },
        body: message('ping', {}, 1),
      })
    const { session } = client
    // The right name with another secret, another name, another person, and what is no id at all.
    const changed = session.slice(0, -1) + (session.endsWith('A') ? 'B' : 'A')
    expect((await ping(changed, 'a')).status).toBe(404)
    expect((await ping((session.startsWith('x') ? 'y' : 'x') + session.slice(1), 'a')).status).toBe(
      404,
    )
    expect((await ping(session, 'b')).status).toBe(404)
    for (const wrong of [session.slice(0, -20), '__proto__', `${session}A`, '../../etc/passwd'])
      expect((await ping(wrong, 'a')).status).toBe(404)
    expect(second.sessions).toBe(0)
    const answers = await Promise.all(['b', 'a', 'b', 'a'].map((letter) => ping(session, letter)))
    expect(answers.map(({ status }) => status)).toEqual([404, 200, 404, 200])
    expect(second.sessions).toBe(1)
  })

  it('does not confuse principals while a session is restored', async () => {
    const sessions = new Remote()
    const auth = tokens([
      { token: 'a'.repeat(32), id: 'ann lee', scopes: [] },
      { token: 'b'.repeat(32), id: 'lee', scopes: [] },
    ])
    const by = (letter: string) => ({ authorization: `Bearer ${letter.repeat(32)}` })
    const first = await start(watched(), { sessionStore: sessions, auth })
    const { session } = await InitializedSession.open(first.url, NEWEST, {}, by('a'))
    await first.close()
    const second = await start(watched(), { sessionStore: sessions, auth })
    const go = sessions.hold()
    sessions.asked.length = 0
    const ping = (id: string, letter: string) =>
      send(second.url, {
        headers: { ...POST, 'mcp-session-id': id, ...by(letter) },
        body: message('ping', {}, 1),
      })
    const own = ping(session, 'a')
    await until(() => expect(sessions.asked).toEqual(['get']))
    const other = ping(`${session} ann`, 'b')
    // What is no id is not looked for: the store has not answered yet.
    expect((await other).status).toBe(404)
    go()
    expect((await own).status).toBe(200)
  })

  it('is read once for parallel requests, which are served in order', async () => {
    const sessions = new Remote()
    const first = await start(servedOverHttp().server, { sessionStore: sessions })
    const client = await InitializedSession.open(first.url, NEWEST)
    await first.close()
    const go = sessions.hold()
    const opened: string[] = []
    const { server } = servedOverHttp()
    server.use((call, next) => {
      opened.push(call.method)
      return next()
    })
    const second = await start(server, { sessionStore: sessions })
    sessions.asked.length = 0
    const moved = client.at(second.url)
    const answers = Array.from({ length: 20 }, (_, n) =>
      moved.request('tools/call', echo(String(n))),
    )
    await until(() => expect(sessions.asked).toEqual(['get']))
    go()
    expect((await Promise.all(answers)).map(({ json }) => json)).toMatchObject(
      Array.from({ length: 20 }, (_, n) => said(String(n))),
    )
    expect(opened.filter((method) => method === 'initialize')).toHaveLength(1)
    expect(sessions.asked.filter((what) => what === 'get')).toHaveLength(1)
    expect(second.sessions).toBe(1)
  })

  it('may be unavailable: local sessions are served, others get 503', async () => {
    const sessions = new Remote()
    const lines: string[] = []
    const log = { write: (line: string) => void lines.push(line) }
    const first = await start(servedOverHttp().server, { sessionStore: sessions, log })
    const client = await InitializedSession.open(first.url, NEWEST)
    const kept = await InitializedSession.open(first.url, NEWEST)
    await until(() => expect(sessions.stored.size).toBe(2))
    sessions.out = true
    await client.request('logging/setLevel', { level: 'debug' })
    expect((await client.request('tools/call', echo('here'))).json).toMatchObject(said('here'))
    const second = await start(servedOverHttp().server, { sessionStore: sessions, log })
    const refused = await kept.at(second.url).request('ping')
    expect([refused.status, refused.headers['retry-after']]).toEqual([503, '5'])
    expect(refused.json).toMatchObject({
      error: { message: expect.stringContaining('its store is not available') as string },
    })
    // It has ended here; but another process could take it up, until it is dropped.
    expect((await client.end()).status).toBe(503)
    expect([first.sessions, (await client.request('ping')).status]).toEqual([1, 503])
    sessions.out = false
    expect([(await client.end()).status, (await client.request('ping')).status]).toEqual([204, 404])
    expect((await kept.at(second.url).request('ping')).status).toBe(200)
    expect(lines.join('')).toContain('A session could not be restored from its store')
    expect(lines.join('')).toContain('The session store failed to store or delete a session')
    expect(lines.join('')).not.toContain(client.session)
  })

  it('stores a session again while only a stream is open', async () => {
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval', 'Date', 'performance'] })
    try {
      const sessions = new Remote()
      const limits = { sessionIdleTimeout: 60_000 }
      const { url } = await start(watched(), { sessionStore: sessions, limits, keepAlive: 0 })
      const client = await InitializedSession.open(url, NEWEST)
      const stream = await client.listen()
      await stream.has('data:')
      // With `initialize`, and with `notifications/initialized`.
      await until(() => expect(sessions.asked).toEqual(['set', 'set']))
      sessions.asked.length = 0
      for (let count = 1; count <= 4; count++) {
        await vi.advanceTimersByTimeAsync(30_000)
        await until(() => expect(sessions.asked).toEqual(Array(count).fill('set')))
      }
      stream.disconnect()
    } finally {
      vi.useRealTimers()
    }
  })

  it('may throw, or return an invalid record', async () => {
    const broken = {
      set: () => true,
      get: (): SessionRecord => {
        throw new Error('broken')
      },
      delete: () => {},
    }
    const { url } = await start(watched(), { sessionStore: broken, log: { write: () => {} } })
    const id = 'A'.repeat(32)
    const ping = (to: string) =>
      send(to, { headers: { ...POST, 'mcp-session-id': id }, body: message('ping', {}, 1) })
    expect((await ping(url)).status).toBe(503)
    for (const state of ['', '{', '{}', 'null', '[]', '{"secret":1}']) {
      const other = await start(watched(), {
        sessionStore: { set: () => true, get: () => ({ generation: 0, state }), delete: () => {} },
        log: { write: () => {} },
      })
      expect((await ping(other.url)).status).toBe(404)
    }
  })

  it('deletes a session that ends while it is being stored', async () => {
    const sessions = new Remote()
    const first = await start(watched(), { sessionStore: sessions })
    const go = sessions.hold()
    const client = await InitializedSession.open(first.url, NEWEST)
    const ended = client.end()
    const late = client.request('ping')
    await until(() => expect(first.sessions).toBe(0))
    go()
    expect([(await ended).status, (await late).status]).toEqual([204, 404])
    expect(sessions.stored.size).toBe(0)
    const second = await start(watched(), { sessionStore: sessions })
    expect((await client.at(second.url).request('ping')).status).toBe(404)
  })

  it('responds with 404 to requests that wait for a session that another request ends', async () => {
    const sessions = new Remote()
    const first = await start(watched(), { sessionStore: sessions })
    const client = await InitializedSession.open(first.url, NEWEST)
    await first.close()
    const second = await start(watched(), { sessionStore: sessions })
    const go = sessions.hold()
    sessions.asked.length = 0
    const moved = client.at(second.url)
    const ended = moved.end()
    await until(() => expect(sessions.asked).toEqual(['get']))
    const visits = vi.spyOn(Sessions.prototype, 'find')
    const late = [moved.request('tools/call', { name: 'say', arguments: {} }), moved.listen()]
    await until(() => expect(visits).toHaveBeenCalledTimes(2))
    visits.mockRestore()
    go()
    expect((await ended).status).toBe(204)
    expect((await Promise.all(late)).map(({ status }) => status)).toEqual([404, 404])
    expect([second.sessions, second.openResponses, sessions.stored.size]).toEqual([0, 0, 0])
  })

  it('may return thenables', async () => {
    const stored = new MemorySessionStore()
    const lazy = {
      set: (name: string, record: SessionRecord, ttl: number) => stored.set(name, record, ttl),
      get: (name: string) => {
        const promise = Promise.resolve(stored.get(name))
        return { then: promise.then.bind(promise) } as Promise<SessionRecord | undefined> // a thenable, as some database clients return
      },
      delete: (name: string, ttl: number) => stored.delete(name, ttl),
    }
    const first = await start(watched(), { sessionStore: lazy })
    const client = await InitializedSession.open(first.url, NEWEST)
    await first.close()
    const second = await start(watched(), { sessionStore: lazy })
    expect((await client.at(second.url).request('ping')).status).toBe(200)
  })

  it('may never resolve delete: DELETE gets 503 in time', async () => {
    const sessions = {
      set: () => true,
      get: () => undefined,
      delete: () => new Promise<void>(() => {}),
    }
    const lines: string[] = []
    const handler = httpHandler(watched(), {
      sessionStore: sessions,
      log: { write: (line) => void lines.push(line) },
    })
    const visit = (init: RequestInit) => handler(new Request('http://localhost/mcp', init))
    const params = {
      protocolVersion: NEWEST,
      capabilities: {},
      clientInfo: { name: 'test', version: '1' },
    }
    const opened = await visit({
      method: 'POST',
      headers: POST,
      body: message('initialize', params, 1),
    })
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    try {
      const ended = visit({
        method: 'DELETE',
        headers: { 'mcp-session-id': opened.headers.get('mcp-session-id') ?? '' },
      })
      await vi.advanceTimersByTimeAsync(60_000)
      expect((await ended).status).toBe(503)
      expect(lines.join('')).toContain('The session store did not delete a session within 10000 ms')
    } finally {
      vi.useRealTimers()
    }
    await handler.close(0)
  })

  it('may never resolve get: the next request reads again', async () => {
    const stored = new MemorySessionStore()
    const first = await start(watched(), { sessionStore: stored })
    const client = await InitializedSession.open(first.url, NEWEST)
    await first.close()
    let lost = 0
    const sessions = {
      set: (name: string, record: SessionRecord, ttl: number) => stored.set(name, record, ttl),
      get: (name: string) => (lost++ === 0 ? new Promise<undefined>(() => {}) : stored.get(name)),
      delete: (name: string, ttl: number) => stored.delete(name, ttl),
      inProcess: true,
    }
    const handler = httpHandler(watched(), { sessionStore: sessions })
    const ping = () => handler(pingOf(client))
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    try {
      const asked = ping()
      await until(() => expect(lost).toBe(1))
      await vi.advanceTimersByTimeAsync(60_000)
      expect((await asked).status).toBe(503)
    } finally {
      vi.useRealTimers()
    }
    expect((await ping()).status).toBe(200)
    await handler.close(0)
  })

  it('may have a session that takes too long to restore: the next request reads again', async () => {
    const sessions = new MemorySessionStore()
    const first = await start(watched(), { sessionStore: sessions })
    const client = await InitializedSession.open(first.url, NEWEST)
    await first.close()
    const server = watched()
    let served = 0
    const signals: AbortSignal[] = []
    server.use((call, next) => {
      if (call.method !== 'initialize' || served++ > 0) return next()
      signals.push(call.signal)
      return new Promise(() => {})
    })
    const handler = httpHandler(server, { sessionStore: sessions })
    const ping = () => handler(pingOf(client))
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    try {
      const asked = ping()
      await until(() => expect(served).toBe(1))
      await vi.advanceTimersByTimeAsync(60_000)
      expect((await asked).status).toBe(503)
      expect(signals.map(({ aborted }) => aborted)).toEqual([true])
    } finally {
      vi.useRealTimers()
    }
    expect((await ping()).status).toBe(200)
    await handler.close(0)
  })

  it('may have a session that is restored slowly: each request continues where the last has ended', async () => {
    const sessions = new MemorySessionStore()
    const first = await start(watched(), { sessionStore: sessions })
    const client = await InitializedSession.open(first.url, NEWEST)
    for (let n = 0; n < 3; n++) await client.request('resources/subscribe', { uri: `note:${n}` })
    await first.close()
    const server = watched()
    const served: string[] = []
    server.use(async (call, next) => {
      if (call.method === 'ping') return next()
      await new Promise((resolve) =>
        setTimeout(resolve, call.method === 'initialize' ? 8000 : 4000),
      )
      served.push(call.method)
      return next()
    })
    const handler = httpHandler(server, { sessionStore: sessions, log: { write() {} } })
    const statuses: number[] = []
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'Date', 'performance'] })
    try {
      for (let attempt = 0; attempt < 3; attempt++) {
        const answer = handler(pingOf(client))
        for (let second = 0; second < 20; second++) await vi.advanceTimersByTimeAsync(1000)
        statuses.push((await answer).status)
      }
    } finally {
      vi.useRealTimers()
    }
    expect(statuses).toEqual([503, 503, 200])
    expect(served).toEqual(['initialize', ...Array<string>(3).fill('resources/subscribe')])
    await handler.close(0)
  })

  it('gets a session in use again, to renew its time to live', async () => {
    vi.useFakeTimers({ toFake: ['Date', 'performance'] })
    try {
      const sessions = new Remote()
      const first = await start(watched(), {
        sessionStore: sessions,
        limits: { sessionIdleTimeout: 60_000 },
      })
      const client = await InitializedSession.open(first.url, NEWEST)
      // With `initialize`, and with `notifications/initialized`.
      await until(() => expect(sessions.asked.filter((what) => what === 'set')).toHaveLength(2))
      sessions.asked.length = 0
      await client.request('ping')
      expect(sessions.asked).toEqual([])
      vi.advanceTimersByTime(20_000)
      await client.request('ping')
      await client.request('ping')
      await until(() => expect(sessions.asked).toEqual(['set']))
    } finally {
      vi.useRealTimers()
    }
  })
})

describe('a new session', () => {
  const initialize = (url: string) =>
    send(url, {
      headers: POST,
      body: message(
        'initialize',
        { protocolVersion: NEWEST, capabilities: {}, clientInfo: { name: 'test', version: '1' } },
        1,
      ),
    })

  it('is stored before the response to initialize', async () => {
    const stored = new MemorySessionStore()
    const waiting: (() => void)[] = []
    const shared = {
      get: (name: string) => stored.get(name),
      delete: (name: string, ttl: number) => stored.delete(name, ttl),
    }
    const slow: SessionStore = {
      ...shared,
      set: async (name, record, ttl) => {
        await new Promise<void>((resolve) => waiting.push(resolve))
        return stored.set(name, record, ttl)
      },
    }
    // The time limit of `set` must not expire before the test resolves it.
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    const first = await start(watched(), { sessionStore: slow })
    let answered = false
    const opening = initialize(first.url).then((answer) => {
      answered = true
      return answer
    })
    await until(() => expect(waiting.length).toBe(1))
    await new Promise(setImmediate)
    expect(answered).toBe(false)
    waiting[0]?.()
    const id = String((await opening).headers['mcp-session-id'])
    // The process ends without having been told anything more.
    const second = await start(watched(), {
      sessionStore: { ...shared, set: (...args) => stored.set(...args) },
    })
    const moved = await send(second.url, {
      headers: { ...POST, 'mcp-session-id': id },
      body: message('ping', undefined, 2),
    })
    expect([moved.status, second.sessions]).toEqual([200, 1])
  })

  it('is not deleted while "initialize" is in progress', async () => {
    const sessions = new MemorySessionStore()
    const server = watched()
    const waiting: (() => void)[] = []
    server.use(async (call, next) => {
      if (call.method === 'initialize') await new Promise<void>((resolve) => waiting.push(resolve))
      return next()
    })
    const deleted = vi.spyOn(sessions, 'delete')
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] })
    try {
      const first = await start(server, { sessionStore: sessions })
      const answer = initialize(first.url)
      await vi.waitUntil(() => waiting.length === 1, 60_000)
      await vi.advanceTimersByTimeAsync(120_000)
      for (const go of waiting) go()
      expect((await answer).status).toBe(200)
      expect([sessions.size, deleted.mock.calls]).toEqual([1, []])
    } finally {
      vi.useRealTimers()
    }
  })

  it('gets its response also if the store fails', async () => {
    const broken: SessionStore = {
      set: () => Promise.reject(new Error('no connection')),
      get: () => undefined,
      delete: () => {},
    }
    let log = ''
    const first = await start(watched(), {
      sessionStore: broken,
      log: { write: (line) => void (log += line) },
    })
    expect((await initialize(first.url)).status).toBe(200)
    expect(log).toContain('The session store failed to store or delete a session')
  })

  it('ends if the client disconnects while it is being stored', async () => {
    let stored = () => {}
    const slow: SessionStore = {
      set: () => new Promise((resolve) => (stored = () => resolve(true))),
      get: () => undefined,
      delete: () => {},
    }
    const first = await start(watched(), { sessionStore: slow })
    const disconnect = new AbortController()
    const posted = fetch(first.url, {
      method: 'POST',
      headers: POST,
      body: message(
        'initialize',
        { protocolVersion: NEWEST, capabilities: {}, clientInfo: { name: 'test', version: '1' } },
        1,
      ),
      signal: disconnect.signal,
    })
    await until(() => expect(first.sessions).toBe(1))
    disconnect.abort()
    await expect(posted).rejects.toThrow()
    await until(() => expect(first.sessions).toBe(0))
    stored()
  })

  it('gets its response also if the store does not resolve', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    try {
      let isAsked = false
      const silent: SessionStore = {
        set: () => {
          isAsked = true
          return new Promise(() => {})
        },
        get: () => undefined,
        delete: () => {},
      }
      const handler = httpHandler(watched(), { sessionStore: silent })
      const body = message(
        'initialize',
        { protocolVersion: NEWEST, capabilities: {}, clientInfo: { name: 'test', version: '1' } },
        1,
      )
      const answer = handler(
        new Request('http://localhost/mcp', { method: 'POST', headers: POST, body }),
      )
      await vi.waitFor(() => expect(isAsked).toBe(true), 60_000)
      await vi.advanceTimersByTimeAsync(2000)
      expect((await answer).headers.get('mcp-session-id')).toMatch(/./)
    } finally {
      vi.useRealTimers()
    }
  })
})

describe('a session is not restored', () => {
  const after = async (
    server: Server,
    change: (client: InitializedSession) => Promise<unknown>,
    next: Server = server,
  ) => {
    const sessions = new MemorySessionStore()
    const first = await start(server, { sessionStore: sessions })
    const client = await InitializedSession.open(first.url, NEWEST)
    await change(client)
    await first.close()
    const second = await start(next, { sessionStore: sessions })
    const { status } = await client.at(second.url).request('ping')
    return { status, kept: sessions.size, sessions: second.sessions }
  }

  it('if the server capabilities have changed', async () => {
    expect(await after(watched(), () => Promise.resolve(), watched({ prompts: true }))).toEqual({
      status: 404,
      kept: 0,
      sessions: 0,
    })
  })

  it.each([-32600, -32601, -32602, -32002, -32021, -32022, 401, 403, 404, 410])(
    'if initialize is now refused with %s',
    async (code) => {
      const refusing = watched()
      refusing.use((call, next) => {
        if (call.method === 'initialize') throw new RpcError(code, 'never again')
        return next()
      })
      expect(await after(watched(), () => Promise.resolve(), refusing)).toEqual({
        status: 404,
        kept: 0,
        sessions: 0,
      })
    },
  )

  it.each([
    ['an internal error', new Error('not now')],
    ['429', new RpcError(429, 'Too many requests')],
    ['503', new RpcError(503, 'Maintenance')],
    ['a code of its own', new RpcError(-32050, 'Busy')],
  ])('while initialize fails with %s, but then', async (_, error) => {
    const sessions = new MemorySessionStore()
    const first = await start(watched(), { sessionStore: sessions })
    const client = await InitializedSession.open(first.url, NEWEST)
    await first.close()
    const server = watched()
    let failures = 2
    server.use((call, next) => {
      if (call.method === 'initialize' && failures-- > 0) throw error
      return next()
    })
    const second = await start(server, { sessionStore: sessions, log: { write() {} } })
    const moved = client.at(second.url)
    for (let attempt = 0; attempt < 2; attempt++) {
      const refused = await moved.request('ping')
      expect([refused.status, refused.headers['retry-after']]).toEqual([503, '5'])
      expect([second.sessions, sessions.size]).toEqual([0, 1])
    }
    expect((await moved.request('ping')).status).toBe(200)
  })

  it('if its state is too large', async () => {
    const large = async (client: InitializedSession) => {
      for (let i = 0; i < 10; i++)
        await client.request('resources/subscribe', { uri: `note:${i}${'x'.repeat(7000)}` })
    }
    const notes = createServer({
      name: 'notes',
      version: '1',
      resources: [resource({ uri: 'note:{+name}', name: 'notes', read: () => 'text' })],
    })
    expect(await after(notes, large)).toEqual({ status: 404, kept: 0, sessions: 0 })
    const again = async (client: InitializedSession) => {
      for (let i = 0; i < 50; i++) {
        await client.request('resources/subscribe', { uri: `note:${'x'.repeat(5000)}` })
        await client.request('resources/unsubscribe', { uri: `note:${'x'.repeat(5000)}` })
      }
    }
    expect(await after(notes, again)).toEqual({ status: 200, kept: 1, sessions: 1 })
  })

  it('if the limit of sessions is reached', async () => {
    const sessions = new MemorySessionStore()
    const first = await start(watched(), { sessionStore: sessions })
    const client = await InitializedSession.open(first.url, NEWEST)
    await first.close()
    const second = await start(watched(), { sessionStore: sessions, limits: { sessions: 1 } })
    await InitializedSession.open(second.url, NEWEST)
    expect((await client.at(second.url).request('ping')).status).toBe(503)
  })

  it('if sessions restored at the same time have reached the limit', async () => {
    const sessions = new MemorySessionStore()
    const first = await start(watched(), { sessionStore: sessions })
    const clients = await Promise.all([1, 2].map(() => InitializedSession.open(first.url, NEWEST)))
    await first.close()
    const server = watched()
    const waiting: (() => void)[] = []
    server.use(async (call, next) => {
      if (call.method === 'initialize') await new Promise<void>((resolve) => waiting.push(resolve))
      return next()
    })
    const second = await start(server, { sessionStore: sessions, limits: { sessions: 2 } })
    const opened = InitializedSession.open(second.url, NEWEST)
    await until(() => expect(second.sessions).toBe(1))
    const answers = clients.map((client) => client.at(second.url).request('ping'))
    await until(() => expect(waiting).toHaveLength(3))
    for (const go of waiting) go()
    await opened
    expect(
      (await Promise.all(answers))
        .map(({ status }) => status)
        .toSorted((one, other) => one - other),
    ).toEqual([200, 503])
    expect([second.sessions, sessions.size]).toEqual([2, 3])
  })
})

describe('a request that is repeated to restore a session', () => {
  /** A server that serves what `fail` does not throw for, and counts what it was asked. */
  const failing = (fail: (uri: string) => void) => {
    const asked: string[] = []
    const server = watched()
    server.use((call, next) => {
      if (call.method !== 'resources/subscribe') return next()
      const uri = String(call.params['uri'])
      asked.push(uri)
      fail(uri)
      return next()
    })
    return { server, asked }
  }
  /** A session with subscriptions to `note:1` … `note:4`, of a process that has ended. */
  const subscribed = async (sessions: SessionStore) => {
    const first = await start(watched(), { sessionStore: sessions })
    const client = await InitializedSession.open(first.url, NEWEST)
    for (const n of [1, 2, 3, 4])
      expect(
        (await client.request('resources/subscribe', { uri: `note:${n}` })).json,
      ).toMatchObject({ result: {} })
    await first.close()
    return client
  }
  const updatesOf = async (client: InitializedSession, server: Server, last: string) => {
    const stream = await client.listen()
    // Everything may have changed; the last subscription is the last of that.
    await stream.has(last)
    for (const n of [1, 2, 3, 4]) server.updated(`note:${n}`)
    await until(() => expect(stream.text.split(last)).toHaveLength(3))
    stream.disconnect()
    return [1, 2, 3, 4].map((n) => stream.text.split(`"note:${n}"`).length - 1)
  }

  it('may fail for the moment: 503, and the next request continues with it', async () => {
    const sessions = new MemorySessionStore()
    const client = await subscribed(sessions)
    const stored = () => sessions.get(client.session.slice(0, -20))?.state
    const before = stored()
    let left = 2
    const { server, asked } = failing(() => {
      if (left-- <= 0) throw new RpcError(429, 'Too many requests')
    })
    const second = await start(server, { sessionStore: sessions, log: { write() {} } })
    const moved = client.at(second.url)
    const refused = await Promise.all([moved.request('ping'), moved.end(), moved.listen()])
    expect(refused.map(({ status }) => status)).toEqual([503, 503, 503])
    expect(refused.map(({ headers }) => headers['retry-after'])).toEqual(['5', '5', '5'])
    expect(stored()).toBe(before)
    left = 1
    expect((await moved.request('ping')).status).toBe(503)
    expect(stored()).toBe(before)
    left = Infinity
    expect((await moved.request('ping')).status).toBe(200)
    const repeated = asked.filter((uri, index) => asked.indexOf(uri) === index)
    expect(repeated).toEqual(['note:1', 'note:2', 'note:3', 'note:4'])
    // What has succeeded is not repeated: a limit of requests is no reason that it never ends.
    expect(asked.filter((uri) => uri === 'note:1' || uri === 'note:2')).toEqual([
      'note:1',
      'note:2',
    ])
    expect(await updatesOf(moved, server, 'note:4')).toEqual([2, 2, 2, 2])
    expect(stored()).toBe(before)
  })

  it('may be refused: only that subscription is dropped', async () => {
    const sessions = new MemorySessionStore()
    const client = await subscribed(sessions)
    const lines: string[] = []
    const log = { write: (line: string) => void lines.push(line) }
    const { server } = failing((uri) => {
      if (uri === 'note:2') throw new RpcError(-32002, 'Resource not found')
      if (uri === 'note:3') throw new RpcError(403, 'Forbidden')
    })
    const second = await start(server, { sessionStore: sessions, log })
    const moved = client.at(second.url)
    expect((await moved.request('ping')).status).toBe(200)
    expect(await updatesOf(moved, server, 'note:4')).toEqual([2, 0, 0, 2])
    const stored = () => sessions.get(client.session.slice(0, -20))?.state
    await until(() => expect(stored()).not.toMatch(/note:2|note:3/))
    expect(stored()).toMatch(/note:1.*note:4/)
    expect(lines.join('')).toContain('Resource not found')
    // It can subscribe again.
    expect((await moved.request('resources/subscribe', { uri: 'note:5' })).json).toMatchObject({
      result: {},
    })
  })

  it('may take long: 503, and the next request continues', async () => {
    vi.useFakeTimers({ toFake: ['Date', 'performance'] })
    try {
      const sessions = new MemorySessionStore()
      const client = await subscribed(sessions)
      const { server, asked } = failing(() => void vi.advanceTimersByTime(3000))
      const second = await start(server, { sessionStore: sessions })
      const moved = client.at(second.url)
      expect((await moved.request('ping')).status).toBe(503)
      expect(asked).toEqual(['note:1', 'note:2'])
      expect((await moved.request('ping')).status).toBe(200)
      expect(asked).toEqual(['note:1', 'note:2', 'note:3', 'note:4'])
    } finally {
      vi.useRealTimers()
    }
  })

  it('may fail until the session has expired', async () => {
    vi.useFakeTimers({ toFake: ['Date', 'performance'] })
    try {
      const sessions = new MemorySessionStore()
      const client = await subscribed(sessions)
      const { server } = failing(() => {
        throw new Error('not now')
      })
      const limits = { sessionIdleTimeout: 60 * 60_000 }
      const second = await start(server, { sessionStore: sessions, limits, log: { write() {} } })
      const moved = client.at(second.url)
      expect((await moved.request('ping')).status).toBe(503)
      vi.advanceTimersByTime(20 * 60_000)
      expect((await moved.request('ping')).status).toBe(503)
      // The first process has stored it for half an hour, which a failure does not extend.
      vi.advanceTimersByTime(20 * 60_000)
      const third = await start(watched(), { sessionStore: sessions })
      expect((await client.at(third.url).request('ping')).status).toBe(404)
    } finally {
      vi.useRealTimers()
    }
  })

  it('needs memory: 503 until there is enough, and the session is kept', async () => {
    const sessions = new MemorySessionStore()
    const client = await subscribed(sessions)
    const limits = { retainedBytesPerSession: 5600 }
    const second = await start(watched(), { sessionStore: sessions, limits, log: { write() {} } })
    expect((await client.at(second.url).request('ping')).status).toBe(503)
    expect(sessions.size).toBe(1)
    await second.close()
    const third = await start(watched(), { sessionStore: sessions })
    expect((await client.at(third.url).request('ping')).status).toBe(200)
    expect(sessions.get(client.session.slice(0, -20))?.state).toContain('note:4')
  })
})

describe('a session that another process has restored', () => {
  it('is not overwritten in the store, and restored again if its client returns', async () => {
    const sessions = new MemorySessionStore()
    const first = await start(watched(), { sessionStore: sessions })
    const client = await InitializedSession.open(first.url, NEWEST)
    const second = await start(watched(), { sessionStore: sessions })
    await client.at(second.url).request('resources/subscribe', { uri: 'note:it' })
    const name = client.session.slice(0, -20)
    await until(() => expect(sessions.get(name)?.state).toContain('note:it'))
    const { generation } = sessions.get(name) ?? { generation: 0 }
    expect(generation).toBeGreaterThan(0)
    // The first process stores nothing, and restores the session when it is used again.
    await client.request('logging/setLevel', { level: 'debug' })
    await client.request('ping')
    await until(() => expect(sessions.get(name)?.generation).toBeGreaterThan(generation))
    expect(sessions.get(name)?.state).toContain('note:it')
  })

  it('ends in the first process as well once it was deleted', async () => {
    const sessions = new MemorySessionStore()
    const first = await start(watched(), { sessionStore: sessions })
    const client = await InitializedSession.open(first.url, NEWEST)
    const second = await start(watched(), { sessionStore: sessions })
    expect((await client.at(second.url).end()).status).toBe(204)
    await client.request('logging/setLevel', { level: 'debug' })
    await until(async () => expect((await client.request('ping')).status).toBe(404))
    expect([first.sessions, sessions.size]).toEqual([0, 0])
  })
})

describe('closing', () => {
  it('waits for sessions to be stored, until the deadline', async () => {
    const sessions = new Remote()
    const go = sessions.hold()
    const first = await start(watched(), { sessionStore: sessions })
    await InitializedSession.open(first.url, NEWEST)
    const closed = first.close()
    go()
    await closed
    expect(sessions.stored.size).toBe(1)
    sessions.slow = new Promise(() => {})
    const second = await start(watched(), { sessionStore: sessions })
    await InitializedSession.open(second.url, NEWEST)
    await second.close(50)
  })

  it('refuses requests whose sessions are being restored, and waits for the calls of others', async () => {
    const sessions = new MemorySessionStore()
    const first = await start(watched(), { sessionStore: sessions })
    const slow = await InitializedSession.open(first.url, NEWEST)
    await first.close()
    const { server, gate } = servedOverHttp()
    let restoring = false
    server.use(async (call, next) => {
      if (restoring && call.method === 'initialize') await gate.wait('initialize', call.signal)
      return next()
    })
    const second = await start(server, { sessionStore: sessions, log: { write() {} } })
    const other = await InitializedSession.open(second.url, NEWEST)
    const params = { name: 'steps', arguments: { gate: 'a' }, _meta: { progressToken: 'p' } }
    const call = await other.stream('tools/call', params)
    await call.has('"progress":1')
    restoring = true
    const wait = vi.spyOn(gate, 'wait')
    const waiting = slow.at(second.url).request('ping')
    await until(() => expect(wait).toHaveBeenCalled())
    const closed = second.close(60_000)
    const refused = await waiting
    expect([refused.status, refused.headers['retry-after']]).toEqual([503, '5'])
    expect(refused.json).toMatchObject({ id: 100, error: { code: -32603 } })
    expect(refused.text).toContain('shutting down')
    gate.open('initialize')
    gate.open('a')
    await call.has('passed a')
    await closed
    expect(sessions.size).toBe(2)
  })

  it.each(['get', 'initialize', 'resources/subscribe'])(
    'does not wait for sessions whose "%s" never ends',
    async (stuck) => {
      const sessions = new MemorySessionStore()
      const first = await start(watched(), { sessionStore: sessions })
      const client = await InitializedSession.open(first.url, NEWEST)
      await client.request('resources/subscribe', { uri: 'note:it' })
      await first.close()
      const server = watched()
      let reached = false
      const forever = () => {
        reached = true
        return new Promise<never>(() => {})
      }
      server.use((call, next) => (call.method === stuck ? forever() : next()))
      const sessionStore: SessionStore = {
        get: (name) => (stuck === 'get' ? forever() : sessions.get(name)),
        set: (...record) => sessions.set(...record),
        delete: (...ended) => sessions.delete(...ended),
        inProcess: true,
      }
      const handler = httpHandler(server, { sessionStore, log: { write() {} } })
      vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
      try {
        const asked = handler(pingOf(client))
        await vi.waitUntil(() => reached, 60_000)
        await handler.close(60_000)
        const { status } = await asked
        expect([status, vi.getTimerCount()]).toEqual([503, 0])
      } finally {
        vi.useRealTimers()
      }
    },
  )

  it('leaves sessions that a fetch handler can restore', async () => {
    const sessions = new MemorySessionStore()
    const first = await start(watched(), { sessionStore: sessions })
    const client = await InitializedSession.open(first.url, NEWEST)
    await first.close()
    const handler = httpHandler(watched(), { sessionStore: sessions })
    const answer = await handler(
      new Request('http://localhost/mcp', {
        method: 'POST',
        headers: { ...POST, ...client.headers },
        body: message('tools/call', { name: 'say', arguments: {} }, 5),
      }),
    )
    expect(await answer.json()).toMatchObject(said('said'))
    await handler.close()
  })
})
