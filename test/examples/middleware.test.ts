import { readdirSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { authorization } from '../../examples/middleware/authorization.mjs'
import { logging } from '../../examples/middleware/logging.mjs'
import { rateLimit } from '../../examples/middleware/rate-limit.mjs'
import { resultSize } from '../../examples/middleware/result-size.mjs'
import { timing } from '../../examples/middleware/timing.mjs'
import { connect, memory } from '../../src/client.js'
import {
  type Middleware,
  type Principal,
  type Server,
  createServer,
  resource,
  tool,
} from '../../src/index.js'
import { revisions } from '../../src/protocol/revisions/index.js'
import { checkServer } from '../../src/server/context.js'
import { ServerSession } from '../../src/server/session.js'

/* The examples of middleware, in every revision. */

function serverWith(middleware: Middleware): Server {
  const server = createServer({
    name: 'example',
    version: '1',
    tools: [
      tool({ name: 'small', run: () => 'ok' }),
      tool({ name: 'large', run: () => 'x'.repeat(1000) }),
      tool({
        name: 'broken',
        run: () => {
          throw new Error('broken')
        },
      }),
    ],
    resources: [resource({ uri: 'large:it', read: () => 'x'.repeat(1000) })],
  })
  server.use(middleware)
  return server
}

it('there are five examples', () => {
  expect(readdirSync(new URL('../../examples/middleware', import.meta.url))).toHaveLength(5)
})

describe.each(revisions.map(({ id }) => id))('%s', (revision) => {
  const open = (server: Server) =>
    connect(memory(server), { revision, info: { name: 'me', version: '1' } })

  it('logging', async () => {
    const lines: string[] = []
    await using client = await open(serverWith(logging((line) => void lines.push(line))))
    await client.callTool('small')
    await client.callTool('broken')
    await expect(client.callTool('none')).rejects.toThrow('Unknown tool: none')
    expect(lines[0]).toMatch(/^(initialize|server\/discover) 1 of me: done$/)
    expect(lines.slice(1)).toEqual([
      'tools/call 2 of me: done',
      'tools/call 3 of me: a result that is an error',
      'tools/call 4 of me: RpcError: Unknown tool: none',
    ])
  })

  it('timing', async () => {
    const times: [string, number][] = []
    await using client = await open(serverWith(timing((...time) => void times.push(time))))
    await client.callTool('small')
    await expect(client.callTool('none')).rejects.toThrow()
    expect(times.slice(1).map(([method]) => method)).toEqual(['tools/call', 'tools/call'])
    expect(times.every(([, time]) => time >= 0)).toBe(true)
  })

  it('rate limiting', async () => {
    let now = 0
    await using client = await open(serverWith(rateLimit(3, () => now)))
    await client.callTool('small')
    await client.callTool('small')
    now = 10_000
    await expect(client.callTool('small')).rejects.toMatchObject({
      code: 429,
      message: 'Too many requests: try again in 50 s',
      data: { retryAfter: 50 },
    })
    now = 60_000
    await client.callTool('small')
  })

  it('result size', async () => {
    await using client = await open(serverWith(resultSize(900)))
    expect(await client.callTool('small')).toMatchObject({ content: [{ text: 'ok' }] })
    expect(await client.callTool('large')).toMatchObject({
      isError: true,
      content: [{ text: expect.stringMatching(/Ask for less/) as string }],
    })
    await expect(client.request('resources/read', { uri: 'large:it' })).rejects.toMatchObject({
      code: -32603,
    })
  })
})

describe('rate limiting', () => {
  /** Sends a request of a caller, with a client name of its choice; true if it is served. */
  const caller = (perMinute: number, now: () => number) => {
    const limit = rateLimit(perMinute, now)
    return (id: string | undefined, name: string) => {
      const call = { client: { principal: id === undefined ? undefined : { id }, info: { name } } }
      try {
        void limit(call as never, () => ({})) // what the example reads of a call
        return true
      } catch {
        return false
      }
    }
  }

  it('counts by principal, whatever name the client chooses', () => {
    const request = caller(1, () => 0)
    const served = Array.from({ length: 20_000 }, (_, index) => request(undefined, `name ${index}`))
    expect(served.filter(Boolean)).toHaveLength(1)
    expect([request('alice', 'one'), request('bob', 'one'), request('alice', 'two')]).toEqual([
      true,
      true,
      false,
    ])
  })

  it('forgets callers whose minute has ended, and those that began first beyond 10,000', () => {
    let time = 0
    const request = caller(1, () => time)
    expect(request('first', '')).toBe(true)
    time = 1
    for (let index = 1; index < 10_000; index++) request(`caller ${index}`, '')
    expect(request('first', '')).toBe(false)
    request('caller 10000', '')
    expect(request('first', '')).toBe(true)
    expect(request('caller 2', '')).toBe(false)
    time = 60_001
    expect(request('caller 2', '')).toBe(true)
  })
})

describe('authorization', () => {
  const call = async (principal?: Principal) => {
    const server = serverWith(authorization({ small: 'tools:small' }))
    const answers: { error?: object; result?: object }[] = []
    const meta = {
      'io.modelcontextprotocol/protocolVersion': '2026-07-28',
      'io.modelcontextprotocol/clientCapabilities': {},
    }
    void new ServerSession(
      checkServer(server),
      {
        send: () => {},
        close: () => Promise.resolve(),
        receive: (receiver) => {
          const params = { name: 'small', arguments: {}, _meta: meta }
          const frame = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params })
          const reply = (answer?: string) => void answers.push(JSON.parse(answer ?? '{}') as object)
          queueMicrotask(() =>
            receiver.frame(frame, { send: () => {}, reply, ...(principal && { principal }) }),
          )
        },
      },
      { remote: false },
    )
    await new Promise((resolve) => setImmediate(resolve))
    return answers[0]
  }
  it('accepts callers with the scope', async () => {
    expect(await call({ id: 'ada', scopes: ['tools:small'] })).toMatchObject({
      result: { content: [{ text: 'ok' }] },
    })
  })
  it('rejects other callers', async () => {
    for (const principal of [undefined, { id: 'eve', scopes: [] }])
      expect(await call(principal)).toMatchObject({
        error: { code: 403, message: 'This tool requires the scope tools:small' },
      })
  })
})
