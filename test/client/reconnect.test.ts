import type { ServerResponse } from 'node:http'
import { describe, expect, it } from 'vitest'
import {
  ChannelClosedError,
  type ClientEvents,
  type ResourceChange,
  connect,
  http,
  stdio,
} from '../../src/client.js'
import { Backoff } from '../../src/client/reconnect.js'
import { onStillClock } from '../clock.js'
import { closing, event, json, result, scripted, stream } from '../http-client/scripted.js'
import { type Asked, type ServerEnd, scriptedServer, settle } from './scripted-server.js'

const now = { delay: () => 0 }

/** A listener, and a promise of the first change that it hears. */
function hearing(): { heard: Promise<ResourceChange>; listener: (change: ResourceChange) => void } {
  let listener: (change: ResourceChange) => void = () => {}
  const heard = new Promise<ResourceChange>((resolve) => (listener = resolve))
  return { heard, listener }
}
const acknowledging = (asked: Asked, end: ServerEnd) => {
  if (asked.method !== 'subscriptions/listen') return asked.method === 'tools/call'
  end.acknowledge(asked)
  return true
}

describe('without reconnect', () => {
  it('calls in flight may have been executed, later ones were not, and there is one event', async () => {
    const server = scriptedServer({ revision: '2025-11-25', serve: acknowledging })
    const client = await connect(server)
    const closed: unknown[] = []
    client.on('closed', (ended) => closed.push(ended))
    const call = client.callTool('x')
    const failed = expect(call).rejects.toMatchObject({ code: 'CHANNEL_CLOSED', executed: 'maybe' })
    await settle()
    await server.server.end()
    await failed
    await expect(client.callTool('x')).rejects.toMatchObject({
      code: 'CHANNEL_CLOSED',
      executed: 'no',
    })
    await client.close()
    expect(closed).toMatchObject([{ error: expect.any(Error) as Error }])
    expect(server.opened).toBe(1)
    expect(server.of('tools/call')).toHaveLength(1)
  })
})

describe.each(['2025-11-25', '2026-07-28'])('with reconnect in %s', (revision) => {
  it('a lost connection is replaced: state is restored, no call is repeated', async () => {
    const server = scriptedServer({ revision, serve: acknowledging })
    const client = await connect(server, { reconnect: now })
    const events: string[] = []
    client.on('reconnecting', ({ attempt, error }) =>
      events.push(`reconnecting ${attempt} ${error instanceof Error}`),
    )
    client.on('reconnected', ({ attempts }) => events.push(`reconnected ${attempts}`))
    client.on('closed', ({ error }) => events.push(`closed ${error?.message}`))
    const { heard: missed, listener } = hearing()
    await client.subscribe('x:1', listener)
    await client.watch('tools', () => {})
    await client.setLogLevel('warning')
    const call = expect(client.callTool('x')).rejects.toMatchObject({ executed: 'maybe' })
    await settle()
    const before = server.asked.length
    await server.server.end()
    // Made while there is no connection: it waits.
    const listed = client.request('prompts/list')
    await call
    expect(await missed).toEqual({ uri: 'x:1', missed: true })
    expect(await listed).toMatchObject({ resultType: 'complete' })
    const again = server.asked.slice(before)
    const methods = again.map(({ method }) => method)
    expect(methods).not.toContain('tools/call')
    if (revision === '2026-07-28') {
      expect(methods).toContain('subscriptions/listen')
      expect(again.find(({ method }) => method === 'prompts/list')?.params['_meta']).toMatchObject({
        'io.modelcontextprotocol/logLevel': 'warning',
      })
    } else {
      expect(again).toContainEqual(
        expect.objectContaining({ method: 'logging/setLevel', params: { level: 'warning' } }),
      )
      expect(methods).toContain('resources/subscribe')
    }
    await client.close()
    expect(events).toEqual(['reconnecting 1 true', 'reconnected 1', 'closed undefined'])
  })

  it('gives up after so many attempts; what waits fails as not executed', async () => {
    const server = scriptedServer({ revision, serve: () => false })
    const client = await connect(server, { reconnect: { ...now, attempts: 3 }, timeout: 5000 })
    const events: unknown[] = []
    client.on('reconnecting', ({ attempt }) => events.push(attempt))
    const closed = new Promise<ClientEvents['closed']>((resolve) => client.on('closed', resolve))
    server.open = () => {
      throw new Error('no such program')
    }
    await server.server.end()
    await expect(client.callTool('x')).rejects.toMatchObject({ executed: 'no' })
    expect((await closed).error?.message).toContain('no such program')
    expect(events).toEqual([1, 2, 3])
    await expect(client.callTool('x')).rejects.toBeInstanceOf(ChannelClosedError)
    await client.close()
  })

  it('close ends the attempts', () =>
    onStillClock(async () => {
      const server = scriptedServer({ revision, serve: () => false })
      const client = await connect(server, { reconnect: { delay: () => 60_000 } })
      const reconnecting = new Promise((resolve) => client.on('reconnecting', resolve))
      await server.server.end()
      await reconnecting
      const waiting = expect(client.callTool('x')).rejects.toMatchObject({ executed: 'no' })
      await client.close()
      await waiting
      expect(server.opened).toBe(1)
    }))
})

describe('a call while there is no connection', () => {
  it('waits no longer than its timeout, or until its signal fires', () =>
    onStillClock(async (pass) => {
      const server = scriptedServer({ serve: () => false })
      const client = await connect(server, { reconnect: { delay: () => 60_000 } })
      const reconnecting = new Promise((resolve) => client.on('reconnecting', resolve))
      await server.server.end()
      await reconnecting
      const late = expect(client.callTool('x', {}, { timeout: 500 })).rejects.toMatchObject({
        code: 'CHANNEL_CLOSED',
        executed: 'no',
      })
      const lateInTotal = expect(
        client.callTool('x', {}, { maxTimeout: 500 }),
      ).rejects.toMatchObject({ code: 'CHANNEL_CLOSED', executed: 'no' })
      const controller = new AbortController()
      const aborted = expect(
        client.callTool('x', {}, { signal: controller.signal }),
      ).rejects.toThrow('enough')
      await settle()
      controller.abort(new Error('enough'))
      await pass(500)
      await late
      await lateInTotal
      await aborted
      await client.close()
    }))
})

describe('a server that has changed', () => {
  it('is met as it is now: revision, capabilities, subscriptions', async () => {
    const server = scriptedServer({ revision: '2025-11-25', serve: acknowledging })
    const client = await connect(server, { reconnect: now })
    const { heard: missed, listener } = hearing()
    await client.subscribe('x:1', listener)
    const ended = new Promise((resolve) => client.on('unsubscribed', resolve))
    await client.watch('tools', () => {})
    await settle()
    server.script = {
      ...server.script,
      revision: '2026-07-28',
      capabilities: { resources: { subscribe: true } },
    }
    await server.server.end()
    await missed
    expect(client.revision).toBe('2026-07-28')
    expect(client.capabilities).toEqual({ resources: { subscribe: true } })
    expect(await ended).toMatchObject({ list: 'tools', error: { code: 'NOT_SUPPORTED' } })
    await client.close()
  })
})

describe('Backoff', () => {
  it('doubles the delay up to the maximum, with jitter, and counts attempts', () => {
    const backoff = new Backoff({ attempts: 8, delay: 100, maxDelay: 1000 })
    const delays = Array.from({ length: 9 }, () => backoff.next())
    const wholes = [100, 200, 400, 800, 1000, 1000, 1000, 1000]
    for (const [index, whole] of wholes.entries()) {
      expect(delays[index]?.attempt).toBe(index + 1)
      expect(delays[index]?.delay).toBeGreaterThanOrEqual(whole / 2)
      expect(delays[index]?.delay).toBeLessThanOrEqual(whole)
    }
    expect(delays[8]).toBeUndefined()
  })

  it('a connection that lasts starts a new count; one that ends at once does not', () =>
    onStillClock(async (pass) => {
      const backoff = new Backoff({ attempts: 2, delay: () => NaN, maxDelay: 1000 })
      expect(backoff.next()).toEqual({ attempt: 1, delay: 0 })
      backoff.opened()
      expect(backoff.next()).toEqual({ attempt: 2, delay: 0 })
      backoff.opened()
      expect(backoff.next()).toBeUndefined()
      backoff.opened()
      await pass(1001)
      expect(backoff.next()).toEqual({ attempt: 1, delay: 0 })
    }))

  it.each([{ attempts: 0 }, { attempts: NaN }, { delay: -1 }, { maxDelay: -1 }])(
    'connect refuses %j',
    async (reconnect) => {
      const server = scriptedServer({ serve: () => false })
      await expect(connect(server, { reconnect })).rejects.toThrow('"reconnect" must be')
    },
  )
})

/** A server over stdio that ends when it is told to. */
const MORTAL = `
import { createServer, tool } from ${JSON.stringify(new URL('../../dist/index.js', import.meta.url).href)}
import { serveStdio } from ${JSON.stringify(new URL('../../dist/stdio.js', import.meta.url).href)}
serveStdio(createServer({ name: 'mortal', version: '1.0.0', tools: [
  tool({ name: 'die', run: () => process.exit(7) }),
  tool({ name: 'pid', run: () => String(process.pid) }),
] }))
`

describe('over stdio', () => {
  it.each(['2025-11-25', '2026-07-28'])(
    'a process that dies is started again in %s',
    async (revision) => {
      const target = stdio(process.execPath, ['--input-type=module', '-e', MORTAL])
      await using client = await connect(target, { revision, reconnect: now })
      const first = await client.callTool('pid')
      await expect(client.callTool('die')).rejects.toMatchObject({
        code: 'CHANNEL_CLOSED',
        executed: 'maybe',
        message: expect.stringContaining('code 7') as string,
      })
      const second = await client.callTool('pid')
      expect(second.content).not.toEqual(first.content)
    },
  )
})

describe('over HTTP with a session', () => {
  it('a session that the server ends is renewed: subscriptions and the log level too', async () => {
    let session = 0
    const methods: string[] = []
    const { url } = await scripted(({ method, headers, message }, response) => {
      if (method === 'DELETE') return void response.writeHead(204).end()
      if (message.method === 'server/discover') return void response.writeHead(400).end()
      if (message.method === 'initialize')
        return json(
          response,
          200,
          result(message.id, {
            protocolVersion: '2025-11-25',
            capabilities: { logging: {}, resources: { subscribe: true } },
            serverInfo: { name: 'x', version: '1' },
          }),
          { 'mcp-session-id': `s${++session}` },
        )
      if (headers['mcp-session-id'] !== `s${session}`) return void response.writeHead(404).end()
      if (method === 'GET') {
        stream(response, 'retry: 1\n\n')
        closing.push(() => Promise.resolve(response.end()))
        return
      }
      methods.push(`s${session} ${message.method}`)
      if (message.id === undefined) return void response.writeHead(202).end()
      json(response, 200, result(message.id))
    })
    const client = await connect(http(url))
    const { heard: missed, listener } = hearing()
    await client.subscribe('x:1', listener)
    await client.setLogLevel('error')
    const reconnected = new Promise((resolve) => client.on('reconnected', resolve))
    session++ // the session is over
    await client.request('ping')
    await reconnected
    expect(await missed).toEqual({ uri: 'x:1', missed: true })
    const renewed = methods.filter((each) => each.startsWith('s3'))
    expect(renewed).toEqual(
      expect.arrayContaining(['s3 logging/setLevel', 's3 resources/subscribe', 's3 ping']),
    )
    expect(renewed.filter((each) => each === 's3 ping')).toHaveLength(1)
    await client.close()
  })

  it('an ended session is noticed by the stream, without a call', async () => {
    let session = 0
    let opened: (response: ServerResponse) => void = () => {}
    const opening = new Promise<ServerResponse>((resolve) => (opened = resolve))
    const { url } = await scripted(({ method, headers, message }, response) => {
      if (method === 'DELETE') return void response.writeHead(204).end()
      if (message.method === 'server/discover') return void response.writeHead(400).end()
      if (message.method === 'initialize')
        return json(
          response,
          200,
          result(message.id, {
            protocolVersion: '2025-11-25',
            capabilities: { resources: { subscribe: true } },
            serverInfo: { name: 'x', version: '1' },
          }),
          { 'mcp-session-id': `s${++session}` },
        )
      if (headers['mcp-session-id'] !== `s${session}`) return void response.writeHead(404).end()
      if (method === 'GET') {
        opened(response)
        return stream(response, 'retry: 1\n\n')
      }
      if (message.id === undefined) return void response.writeHead(202).end()
      json(response, 200, result(message.id))
    })
    const client = await connect(http(url))
    const changes: ResourceChange[] = []
    let first: () => void = () => {}
    const heard = new Promise<void>((resolve) => (first = resolve))
    await client.subscribe('x:1', (change) => {
      changes.push(change)
      first()
    })
    const reconnected = new Promise((resolve) => client.on('reconnected', resolve))
    const current = await opening
    current.write(
      event({ jsonrpc: '2.0', method: 'notifications/resources/updated', params: { uri: 'x:1' } }),
    )
    await heard
    session++
    current.end()
    await reconnected
    expect(session).toBe(3)
    await client.close()
  })
})
