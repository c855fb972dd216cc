import type { ServerResponse } from 'node:http'
import { describe, expect, it } from 'vitest'
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
