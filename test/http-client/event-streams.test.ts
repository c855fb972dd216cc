import type { ServerResponse } from 'node:http'
import { describe, expect, it } from 'vitest'
import { StreamPosition } from '../../src/transports/http/client/reconnecting.js'
import { onStillClock } from '../clock.js'
import {
  STATELESS,
  event,
  failed,
  inSession,
  json,
  peerTo,
  result,
  scripted,
  stream,
} from './scripted.js'

/* The streams of a handshake revision: the GET stream, and resumption. */

describe('the GET stream', () => {
  it('delivers notifications and requests, and is resumed after the last event', async () => {
    const streams: ServerResponse[] = []
    const { url, received } = await scripted(
      inSession(
        ({ method, message }, response) => {
          if (method !== 'GET')
            return message.id === undefined || message.method === undefined
              ? void response.writeHead(202).end()
              : json(response, 200, result(message.id))
          stream(response, 'retry: 1\n\n')
          streams.push(response)
        },
        { get: true },
      ),
    )
    const { notifications } = await peerTo(url)
    await expect.poll(() => streams.length).toBe(1)
    streams[0]?.write(event({ jsonrpc: '2.0', method: 'notifications/a' }, 'e1'))
    streams[0]?.end(event({ jsonrpc: '2.0', id: 9, method: 'roots/list' }, 'e2'))
    await expect.poll(() => streams.length).toBe(2)
    streams[1]?.write(event({ jsonrpc: '2.0', method: 'notifications/b' }))
    await expect.poll(() => notifications).toEqual(['notifications/a', 'notifications/b'])
    await expect
      .poll(() => received.find(({ message }) => message.id === 9)?.message)
      .toMatchObject({ result: { echoed: 'roots/list' } })
    expect(
      received
        .filter(({ method }) => method === 'GET')
        .map(({ headers }) => headers['last-event-id']),
    ).toEqual([undefined, 'e2'])
  })

  it('is opened again after any number of temporary failures', async () => {
    await onStillClock(async (pass) => {
      let opened = 0
      const { url } = await scripted(
        inSession(
          (_received, response) => {
            opened++
            if (opened < 9) return void response.writeHead(503).end()
            stream(response, event({ jsonrpc: '2.0', method: 'notifications/a' }))
          },
          { get: true },
        ),
      )
      const { notifications } = await peerTo(url)
      // Time passes again if a response has not arrived yet.
      await expect
        .poll(async () => {
          if (opened < 9) await pass(75_000)
          return opened
        })
        .toBe(9)
      await expect.poll(() => notifications).toEqual(['notifications/a'])
    })
  })

  it('is opened without its last event after an event that is too long, which is reported', async () => {
    await onStillClock(async (pass) => {
      let opened = 0
      const { url, received } = await scripted(
        inSession(
          (_received, response) => {
            if (++opened === 1)
              stream(response, `id: e1\ndata:\n\nid: e2\ndata: ${'x'.repeat(2000)}\n\n`)
            else stream(response, event({ jsonrpc: '2.0', method: 'notifications/a' }))
          },
          { get: true },
        ),
      )
      const { notifications, reports } = await peerTo(url, { maxMessage: 1000 })
      await expect.poll(() => reports).toHaveLength(1)
      expect(reports[0]?.message).toBe(
        'Messages of the GET stream were lost: An event is longer than 1000 bytes',
      )
      await pass(2000)
      await expect.poll(() => notifications).toEqual(['notifications/a'])
      expect(received.at(-1)?.headers['last-event-id']).toBeUndefined()
    })
  })

  it('that cannot be opened again is reported', async () => {
    let opened = 0
    const { url } = await scripted(
      inSession(
        (_received, response) => {
          if (++opened > 1) return void response.writeHead(405).end()
          stream(response, 'retry: 1\n\n')
          response.end()
        },
        { get: true },
      ),
    )
    const { reports } = await peerTo(url)
    await expect
      .poll(() => reports.map(({ message }) => message))
      .toEqual([
        'The server refused to open its GET stream again: its notifications are no longer received',
      ])
  })
})

describe('a cursor', () => {
  it.each([
    [undefined, 1000],
    [0, 100],
    [500, 500],
    [3_600_000, 3_600_000],
  ])('with retry %s waits at least %i ms, and at most a quarter longer', (retry, least) => {
    const cursor = new StreamPosition()
    cursor.read(retry === undefined ? {} : { retry })
    for (let count = 0; count < 100; count++) {
      expect(cursor.delay(0)).toBeGreaterThanOrEqual(least)
      expect(cursor.delay(0)).toBeLessThanOrEqual(least * 1.25)
    }
  })

  it('waits longer after each failure, for about a minute at most', () => {
    const cursor = new StreamPosition()
    expect(
      [1, 3, 5].map((failures) => cursor.delay(failures) >= 1000 * 2 ** (failures - 1)),
    ).toEqual([true, true, true])
    expect(cursor.delay(1e9)).toBeLessThanOrEqual(75_000)
  })

  it('never waits longer than a timer can', () => {
    const cursor = new StreamPosition()
    cursor.read({ retry: 1e12 })
    expect(cursor.delay(0)).toBe(2 ** 31 - 1)
    cursor.read({ retry: Infinity })
    expect(cursor.delay(3)).toBe(2 ** 31 - 1)
  })

  it.each([
    ['a-1', 'a-1'],
    ['', undefined],
    ['ü', '\u{c3}\u{bc}'],
    ['a\u{1}', undefined],
    ['x'.repeat(5000), undefined],
  ])('has the id %j as a header value', (id, value) => {
    const cursor = new StreamPosition()
    cursor.read({ id: 'before' })
    cursor.read({ id })
    expect(cursor.id).toBe(value)
  })
})

describe('a stream that breaks before the response', () => {
  it('is resumed in a handshake revision, not before `retry`', async () => {
    let broke = 0
    let resumed = 0
    const { url, received } = await scripted(
      inSession(
        ({ method, message, headers }, response) => {
          if (method === 'GET' && headers['last-event-id'] === undefined) return
          if (method === 'GET') {
            resumed = performance.now()
            stream(response)
            return void response.end(event(result(2, { late: true }), 'e3'))
          }
          stream(response, `id: e2\nretry: 60\ndata:\n\n`)
          broke = performance.now()
          expect(message.method).toBe('tools/call')
          response.end()
        },
        { get: true },
      ),
    )
    const { peer } = await peerTo(url)
    expect(await peer.request('tools/call', {})).toEqual({ late: true })
    expect(received.at(-1)?.headers['last-event-id']).toBe('e2')
    expect(resumed - broke).toBeGreaterThanOrEqual(59)
  })

  it.each([
    ['in a handshake revision without an event id', {}, 'data:\n\n'],
    ['in a stateless revision', STATELESS, 'id: e1\ndata:\n\n'],
  ])('fails %s, and says that the request may have been executed', async (_case, options, text) => {
    const { url, received } = await scripted(
      inSession((_received, response) => {
        stream(response, text)
        response.end()
      }),
    )
    const { peer } = await peerTo(url)
    expect(await failed(peer.request('tools/call', {}, options))).toMatchObject({
      code: 'STREAM_ENDED',
      executed: 'maybe',
    })
    expect(received.filter(({ headers }) => headers['last-event-id'] !== undefined)).toEqual([])
  })
})

describe('responses', () => {
  const respond = (respondTo: (id: unknown) => string, type = 'text/event-stream') =>
    scripted(({ message, method }, response) => {
      if (method === 'GET') return void response.writeHead(405).end()
      if (message.id === undefined) return void response.writeHead(202).end()
      if (message.method === 'initialize')
        return json(response, 200, result(message.id, { protocolVersion: '2025-03-26' }))
      response.writeHead(200, { 'content-type': type }).end(respondTo(message.id))
    })

  it.each([
    ['a JSON array', (id: unknown) => JSON.stringify([result(id, { ok: 1 })]), 'application/json'],
    ['an array in an event', (id: unknown) => event([result(id, { ok: 1 })]), 'text/event-stream'],
  ])('in %s are accepted if the revision has batches', async (_case, body, type) => {
    const { url } = await respond(body, type)
    const { peer, reports } = await peerTo(url)
    expect(await peer.request('x')).toEqual({ ok: 1 })
    expect(reports).toEqual([])
  })

  it('on the stream of another request are accepted, and their own streams closed', async () => {
    await onStillClock(async (pass) => {
      const streams = new Map<unknown, ServerResponse>()
      const ids: unknown[] = []
      let closed = false
      const { url } = await scripted(
        inSession(({ message }, response) => {
          stream(response)
          streams.set(message.method, response)
          ids.push(message.id)
          if (message.method === 'a') response.on('close', () => (closed = true))
        }),
      )
      const { peer } = await peerTo(url)
      const a = peer.request('a')
      await expect.poll(() => ids).toHaveLength(1)
      const b = peer.request('b')
      await expect.poll(() => ids).toHaveLength(2)
      streams.get('b')?.write(event(result(ids[0], { of: 'a' })))
      expect(await a).toEqual({ of: 'a' })
      await pass(2000)
      await expect.poll(() => closed).toBe(true)
      streams.get('b')?.end(event(result(ids[1], { of: 'b' })))
      expect(await b).toEqual({ of: 'b' })
    })
  })
})
