import type { ServerResponse } from 'node:http'
import { describe, expect, it } from 'vitest'
import { type Authorizer, connect, http } from '../../src/client.js'
import { SessionRenewal } from '../../src/client/session-renewal.js'
import type { LogEntry } from '../../src/jsonrpc/log-entry.js'
import { onStillClock } from '../clock.js'
import {
  type Received,
  type Respond,
  closing,
  event,
  json,
  result,
  scripted,
  stream,
} from '../http-client/scripted.js'

const REVISION = '2025-11-25'
const CHANGED = 'notifications/roots/list_changed'

const initialized = (id: unknown, protocolVersion = REVISION) =>
  result(id, {
    protocolVersion,
    capabilities: { logging: {}, tools: {} },
    serverInfo: { name: 'x', version: '1' },
  })

/** Answers `initialize` with a new session, accepts notifications, and leaves requests to `respond`. */
function sessions(
  respond: Respond,
  initialize = ({ message }: Received, response: ServerResponse, session: number) =>
    json(response, 200, initialized(message.id), { 'mcp-session-id': `s-${session}` }),
): Respond {
  let opened = 0
  return (received, response, count) => {
    const { method, message } = received
    if (method === 'GET') return void response.writeHead(405).end()
    if (method === 'DELETE') return void response.writeHead(204).end()
    if (message.method === 'initialize') return initialize(received, response, ++opened)
    if (message.id === undefined) return void response.writeHead(202).end()
    respond(received, response, count)
  }
}

const served: Respond = ({ message }, response) =>
  json(response, 200, result(message.id, { content: [] }))
const notFound = (response: ServerResponse) => void response.writeHead(404).end()

async function connected(respond: Respond, authorizer?: Authorizer, reconnect = false) {
  const { url, received } = await scripted(respond)
  const reports: LogEntry[] = []
  const target = http(url, authorizer === undefined ? {} : { authorizer })
  const client = await connect(target, {
    revision: REVISION,
    reconnect: reconnect && { delay: 0 },
    report: (entry) => reports.push(entry),
  })
  closing.push(() => client.close())
  const of = (method: string) => received.filter(({ message }) => message.method === method)
  return { client, received, of, reports }
}

describe('HTTP 404', () => {
  it('to notifications/initialized is no expired session', async () => {
    const answer = sessions(served)
    const { client, of } = await connected((received, response, count) =>
      received.message.method === 'notifications/initialized'
        ? notFound(response)
        : answer(received, response, count),
    )
    for (let call = 0; call < 3; call++) await client.callTool('x')
    expect(of('initialize')).toHaveLength(1)
  })

  it('to what is sent in each new session does not renew it again and again without a pause', () =>
    onStillClock(async (pass) => {
      const answer = sessions(served)
      let refusing = true
      const { client, of, reports } = await connected((received, response, count) =>
        refusing && received.message.method === CHANGED
          ? notFound(response)
          : answer(received, response, count),
      )
      client.on('reconnected', () => client.notify(CHANGED))
      client.notify(CHANGED)
      // Each is reported in the turn in which the renewal starts.
      await expect.poll(() => reports.length).toBe(2)
      expect(of('initialize')).toHaveLength(2)
      await pass(500)
      await expect.poll(() => reports.length).toBe(3)
      expect(of('initialize')).toHaveLength(3)
      refusing = false
      const called = client.callTool('x')
      await pass(1000)
      await called
      expect(of('initialize')).toHaveLength(4)
    }))
})

describe('a renewal', () => {
  it.each<[string, (received: Received, response: ServerResponse) => void]>([
    [
      'with another revision',
      ({ message }, response) =>
        json(response, 200, initialized(message.id, '2025-06-18'), { 'mcp-session-id': 'other' }),
    ],
    [
      'with an error',
      ({ message }, response) =>
        json(response, 200, { jsonrpc: '2.0', id: message.id, error: { code: 1, message: 'no' } }),
    ],
    [
      'with a result that is not an object',
      ({ message }, response) =>
        json(
          response,
          200,
          { jsonrpc: '2.0', id: message.id, result: 5 },
          { 'mcp-session-id': 'x' },
        ),
    ],
  ])('that is answered %s fails its call, and the next call tries again', async (_case, refuse) => {
    let session = 's-1'
    let refusing = true
    const { client, received, of } = await connected(
      sessions(
        (each, response, count) =>
          each.headers['mcp-session-id'] === session
            ? served(each, response, count)
            : notFound(response),
        (each, response, opened) =>
          opened > 1 && refusing
            ? refuse(each, response)
            : json(response, 200, initialized(each.message.id), { 'mcp-session-id': session }),
      ),
    )
    await client.callTool('x')
    session = 's-2'
    for (let call = 0; call < 3; call++)
      await expect(client.callTool('x')).rejects.toMatchObject({
        code: 'CONNECTION_FAILED',
        executed: 'no',
      })
    expect(of('initialize')).toHaveLength(4)
    refusing = false
    expect(await client.callTool('x')).toEqual({ content: [] })
    // The first refused one, and the last: nothing was sent without a session.
    expect(of('tools/call').map(({ headers }) => headers['mcp-session-id'])).toEqual([
      's-1',
      's-1',
      's-2',
    ])
    const ended = received.filter(({ method }) => method === 'DELETE')
    for (const { headers } of ended) expect(headers['mcp-session-id']).toMatch(/^(?:other|x)$/)
  })
})

/** Denies every login, and remembers which were for requests that nobody waits for. */
function asking() {
  const asked: (boolean | undefined)[] = []
  const authorizer: Authorizer = {
    headers: () => Promise.resolve({}),
    challenged: ({ background }) => {
      asked.push(background)
      return Promise.resolve(false)
    },
  }
  return { asked, authorizer }
}
const refused = (response: ServerResponse) => void response.writeHead(401).end()

describe('a new session that no call waits for', () => {
  it('leads to no login; the one of the next call may', async () => {
    const { asked, authorizer } = asking()
    let streams = 0
    const answer = sessions(
      (_, response) => notFound(response),
      ({ message }, response, session) =>
        session === 1
          ? json(response, 200, initialized(message.id), { 'mcp-session-id': 's-1' })
          : refused(response),
    )
    const { client } = await connected((received, response, count) => {
      if (received.method !== 'GET') return answer(received, response, count)
      if (streams++ > 0) return notFound(response)
      stream(response, 'retry: 0\n\n')
      response.end()
    }, authorizer)
    await expect.poll(() => asked).toEqual([true])
    await expect(client.callTool('x')).rejects.toMatchObject({ code: 'CONNECTION_FAILED' })
    expect(asked).toEqual([true, false])
  })

  it('leads to no login on a new connection, unless a call waits for that', async () => {
    const { asked, authorizer } = asking()
    const opened: ServerResponse[] = []
    let refusing = false
    const { client, of } = await connected(
      ({ method, path, message }, response) => {
        if (refusing) return refused(response)
        if (method === 'GET') {
          opened.push(response)
          return stream(response, 'event: endpoint\ndata: /messages\n\n')
        }
        if (path !== '/messages') return void response.writeHead(405).end()
        response.writeHead(202).end()
        if (message.id !== undefined) opened.at(-1)?.write(event(initialized(message.id)))
      },
      authorizer,
      true,
    )
    const attempts: number[] = []
    client.on('reconnecting', ({ attempt }) => {
      attempts.push(attempt)
      if (attempt === 2) void client.callTool('x').catch(() => {})
    })
    await expect.poll(() => of('notifications/initialized')).toHaveLength(1)
    refusing = true
    opened.at(-1)?.end()
    await expect.poll(() => attempts).toEqual([1, 2, 3, 4, 5])
    await expect.poll(() => asked.at(-1)).toBe(false)
    expect(asked[0]).toBe(true)
    expect(asked.indexOf(false)).toBe(asked.lastIndexOf(true) + 1)
  })
})

describe('SessionRenewal', () => {
  it('that no call waits for is tried again by the first call that waits', async () => {
    const unattended: boolean[] = []
    const renewal: SessionRenewal = new SessionRenewal(() => {
      unattended.push(renewal.isUnattended)
      return unattended.length < 2 ? Promise.reject(new Error('no')) : Promise.resolve()
    })
    const first = renewal.start(true)
    const calls = [renewal.start(), renewal.start()]
    await expect(first).rejects.toThrow('no')
    await Promise.allSettled(calls)
    await renewal.start(true)
    expect(unattended.slice(0, 2)).toEqual([true, false])
    await expect(calls[0]).resolves.toBeUndefined()
    expect(renewal.isUnattended).toBe(false)
  })

  it('pauses longer each time, until a request has succeeded', () =>
    onStillClock(async (pass) => {
      let count = 0
      const renewal = new SessionRenewal(() => Promise.resolve(void count++))
      await renewal.start()
      expect(count).toBe(1)
      const second = renewal.start()
      expect(renewal.start()).toBe(second)
      await pass(249)
      expect(count).toBe(1)
      await pass(251)
      await second
      expect(count).toBe(2)
      const third = renewal.start()
      await pass(499)
      expect(count).toBe(2)
      await pass(501)
      await third
      renewal.succeeded()
      await renewal.start()
      expect(count).toBe(4)
    }))

  it('that fails does so at once, and so does the next', () =>
    onStillClock(async () => {
      const renewal = new SessionRenewal(() => Promise.reject(new Error('no')))
      for (let attempt = 0; attempt < 3; attempt++)
        await expect(renewal.start()).rejects.toThrow('refused a new one: no')
    }))

  it('ends its pause when the connection is closed', () =>
    onStillClock(async () => {
      const renewal = new SessionRenewal(() => Promise.resolve())
      await renewal.start()
      const second = renewal.start()
      renewal.close()
      await expect(second).rejects.toMatchObject({ code: 'CHANNEL_CLOSED', executed: 'no' })
    }))
})
