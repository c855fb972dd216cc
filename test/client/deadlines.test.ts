import type { ServerResponse } from 'node:http'
import { describe, expect, it, vi } from 'vitest'
import { connect, http } from '../../src/client.js'
import { onStillClock } from '../clock.js'
import { closing, inSession, json, result, scripted } from '../http-client/scripted.js'
import { type Asked, type ServerEnd, at, scriptedServer, settle } from './scripted-server.js'

/* `signal`, `timeout` and `maxTimeout` hold for all that a call waits for. */

/** With fake timers, and `performance.now()` of the same clock. */
const onOneClock: typeof onStillClock = (test) =>
  onStillClock(async (pass) => {
    const now = vi.spyOn(performance, 'now').mockImplementation(() => Date.now())
    try {
      await test(pass)
    } finally {
      now.mockRestore()
    }
  })

const TIMED_OUT = { name: 'TimeoutError', code: 'TIMEOUT' }

describe('a call over HTTP without a response', () => {
  it.each([
    ['may have been executed if it was sent', 'tools/call', 'maybe'],
    ['was not executed if it was not sent', 'notifications/initialized', 'no'],
  ])('%s', (_case, unanswered, executed) =>
    onStillClock(async (pass) => {
      let receive: (response: ServerResponse) => void = () => {}
      const received = new Promise<ServerResponse>((resolve) => (receive = resolve))
      const answer = inSession((_received, response) => void response.writeHead(202).end())
      const { url } = await scripted((each, response, count) =>
        each.message.method === unanswered ? receive(response) : answer(each, response, count),
      )
      const client = await connect(http(url), { revision: '2025-11-25', tap: () => {} })
      closing.push(() => client.close())
      const call = expect(client.callTool('x', {}, { timeout: 500 })).rejects.toMatchObject({
        ...TIMED_OUT,
        executed,
      })
      const response = await received
      await pass(500)
      await call
      response.writeHead(202).end()
    }),
  )
})

describe('a call that waits for a new session', () => {
  it('ends with its timeout or its signal, and was not executed', () =>
    onStillClock(async (pass) => {
      let renewing: () => void = () => {}
      const renewed = new Promise<void>((resolve) => (renewing = resolve))
      let opened = 0
      const answer = inSession((_received, response) => void response.writeHead(404).end())
      const { url } = await scripted((received, response, count) => {
        if (received.message.method === 'initialize' && ++opened > 1) return renewing()
        answer(received, response, count)
      })
      const client = await connect(http(url), { revision: '2025-11-25' })
      closing.push(() => client.close())
      const refused = expect(client.callTool('x', {}, { timeout: 500 })).rejects.toMatchObject({
        ...TIMED_OUT,
        executed: 'no',
        message: expect.stringContaining('within 500 ms') as unknown,
      })
      await renewed
      const waiting = expect(client.callTool('x', {}, { maxTimeout: 400 })).rejects.toMatchObject({
        ...TIMED_OUT,
        executed: 'no',
        message: expect.stringContaining('within 400 ms in total') as unknown,
      })
      const controller = new AbortController()
      const aborted = expect(
        client.callTool('x', {}, { signal: controller.signal }),
      ).rejects.toThrow('enough')
      controller.abort(new Error('enough'))
      await aborted
      await settle()
      await pass(500)
      await refused
      await waiting
    }))
})

describe('a call that finds out that its prior is wrong', () => {
  it('waits no longer than its timeout for another connection', () =>
    onStillClock(async (pass) => {
      let asking: () => void = () => {}
      const asked = new Promise<void>((resolve) => (asking = resolve))
      const { url } = await scripted(({ message }, response) =>
        message.method === 'tools/call' ? void response.writeHead(400).end('bad') : asking(),
      )
      const discovered = {
        supportedVersions: ['2026-07-28'],
        capabilities: { tools: {} },
        ttlMs: 3_600_000,
        cacheScope: 'public',
      }
      const before = scriptedServer({ serve: () => false })
      const first = await connect(before)
      const { prior } = first
      await first.close()
      const client = await connect(http(url), {
        prior: { ...prior, date: new Date().toISOString(), discovered },
      })
      closing.push(() => client.close())
      const call = expect(client.callTool('x', {}, { timeout: 500 })).rejects.toMatchObject({
        ...TIMED_OUT,
        executed: 'no',
      })
      await asked
      await pass(500)
      await call
    }))
})

describe('a call that needs input', () => {
  /** Answers each call after so many milliseconds: it needs input. */
  const asksAfter = (milliseconds: number, inputRequests?: object) =>
    scriptedServer({
      serve(asked: Asked, server: ServerEnd) {
        if (asked.method !== 'tools/call') return false
        setTimeout(() => {
          const input = inputRequests === undefined ? {} : { inputRequests }
          server.answer(asked, { resultType: 'input_required', requestState: 's', ...input })
        }, milliseconds)
        return true
      },
    })

  it('has maxTimeout in total, over all rounds', () =>
    onOneClock(async (pass) => {
      const server = asksAfter(400)
      await using client = await connect(server)
      const call = expect(
        client.callTool('x', {}, { timeout: 500, maxTimeout: 1000 }),
      ).rejects.toMatchObject({
        ...TIMED_OUT,
        executed: 'maybe',
        message: 'No response within 1000 ms in total to tools/call',
      })
      for (const time of [400, 400, 200]) await pass(time)
      await call
      expect(server.of('tools/call')).toHaveLength(3)
      expect(server.of('notifications/cancelled')).toHaveLength(1)
    }))

  it('does not count the time in which the user is asked', () =>
    onOneClock(async (pass) => {
      const question = {
        q: {
          method: 'elicitation/create',
          params: {
            mode: 'form',
            message: '?',
            requestedSchema: { type: 'object', properties: {} },
          },
        },
      }
      const server = asksAfter(400, question)
      let answered: () => void = () => {}
      await using client = await connect(server, {
        elicit: () => new Promise((resolve) => (answered = () => resolve({ action: 'decline' }))),
      })
      const call = expect(
        client.callTool('x', {}, { timeout: 500, maxTimeout: 1000 }),
      ).rejects.toMatchObject({ message: 'No response within 1000 ms in total to tools/call' })
      for (const time of [400, 400]) {
        await pass(time)
        await pass(60_000)
        answered()
        await settle()
      }
      expect(server.of('tools/call')).toHaveLength(3)
      expect(server.of('notifications/cancelled')).toHaveLength(0)
      await pass(200)
      await call
      expect(server.of('tools/call')).toHaveLength(3)
    }))
})

describe('a call that lists the tools for its headers', () => {
  it('has maxTimeout in total', () =>
    onOneClock(async (pass) => {
      const later = (milliseconds: number, respond: () => void) => setTimeout(respond, milliseconds)
      const respond = (method: string | undefined, id: unknown, response: ServerResponse) => {
        if (method === 'tools/call')
          return json(response, 400, {
            jsonrpc: '2.0',
            id,
            error: { code: -32020, message: 'Header mismatch' },
          })
        json(
          response,
          200,
          result(id, { resultType: 'complete', tools: [], nextCursor: String(id) }),
        )
      }
      let requests = 0
      const { url } = await scripted(({ message }, response) => {
        const { id, method } = message
        if (method === 'server/discover')
          return json(
            response,
            200,
            result(id, {
              resultType: 'complete',
              supportedVersions: ['2026-07-28'],
              capabilities: { tools: {} },
              ttlMs: 0,
              cacheScope: 'private',
            }),
          )
        requests++
        later(400, () => respond(method, id, response))
      })
      const client = await connect(http(url))
      closing.push(() => client.close())
      const call = expect(
        client.callTool('x', {}, { timeout: 500, maxTimeout: 1000 }),
      ).rejects.toMatchObject({ message: 'No response within 1000 ms in total to tools/list' })
      for (const [count, time] of [400, 400, 200].entries()) {
        await expect.poll(() => requests).toBe(count + 1)
        await pass(time)
      }
      await call
    }))
})

describe('a subscription', () => {
  it.each(['2025-11-25', '2026-07-28'])(
    'that is not answered ends with its timeout: %s',
    (revision) =>
      onStillClock(async (pass) => {
        const server = scriptedServer({ revision, serve: () => true })
        await using client = await connect(server)
        const late = { ...TIMED_OUT, message: expect.stringContaining('config://app') as unknown }
        const first = expect(
          client.subscribe('config://app', () => {}, { timeout: 500 }),
        ).rejects.toMatchObject(late)
        const second = expect(
          client.subscribe('config://app', () => {}, { maxTimeout: 900 }),
        ).rejects.toMatchObject(late)
        await settle()
        await pass(500)
        await first
        expect(server.of('resources/unsubscribe')).toEqual([])
        await pass(400)
        await second
      }),
  )

  it('that nobody waits for any more is cancelled and ended', () =>
    onStillClock(async (pass) => {
      const server = scriptedServer({ revision: '2025-11-25', serve: () => true })
      await using client = await connect(server)
      const late = expect(
        client.subscribe('config://app', () => {}, { timeout: 500 }),
      ).rejects.toMatchObject(TIMED_OUT)
      await settle()
      await pass(500)
      await late
      await settle()
      const { id } = at(server.of('resources/subscribe'), 0)
      expect(at(server.of('notifications/cancelled'), 0).params).toMatchObject({ requestId: id })
      expect(server.of('resources/unsubscribe')).toHaveLength(1)
    }))

  it('may take longer than the default timeout, if its own is longer', () =>
    onStillClock(async (pass) => {
      const server = scriptedServer({ revision: '2025-11-25', serve: () => true })
      await using client = await connect(server)
      const subscribing = client.subscribe('config://app', () => {}, { timeout: 120_000 })
      await settle()
      await pass(100_000)
      server.server.answer(at(server.of('resources/subscribe'), 0), {})
      await subscribing
    }))
})
