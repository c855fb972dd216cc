import { describe, expect, it } from 'vitest'
import type { Channel, Receiver } from '../../src/jsonrpc/channel.js'
import { tap } from '../../src/jsonrpc/channel.js'
import { RpcError } from '../../src/jsonrpc/errors.js'
import type { Response, SentMessage } from '../../src/jsonrpc/message.js'
import { Peer, type PeerOptions } from '../../src/jsonrpc/peer.js'

/** A channel that records sent messages, and a peer on it. */
function recorded(
  { cancel, tapped = false }: { cancel?: Channel['cancel']; tapped?: boolean } = {},
  options: Partial<PeerOptions> = {},
) {
  const sent: { frame: string; message: SentMessage | undefined }[] = []
  let receiver: Receiver | undefined
  const channel: Channel = {
    // A response object may change later: its state at the time of sending is recorded.
    send: (frame, message) =>
      void sent.push({
        frame,
        message: message?.kind === 'response' ? snapshot(message) : message,
      }),
    receive: (given) => void (receiver = given),
    close: () => Promise.resolve(),
    ...(cancel === undefined ? {} : { cancel }),
  }
  const peer = new Peer(tapped ? tap(channel, () => {}) : channel, {
    onRequest: () => ({}),
    onNotification: () => {},
    respondsToMalformed: true,
    report: () => {},
    cancelled: (id, reason, _method, send) =>
      send('cancelled', { kind: 'notification', method: 'cancelled', params: { id, reason } }),
    ...options,
  })
  return {
    peer,
    sent,
    receive: (value: object) => receiver?.frame(JSON.stringify({ jsonrpc: '2.0', ...value })),
    receiver: () => receiver,
  }
}

function snapshot({ kind, id, result, error }: SentMessage & { kind: 'response' }): SentMessage {
  return error === undefined ? { kind, id, result } : { kind, id, error }
}

describe.each([
  ['a channel', false],
  ['a tapped channel', true],
])('%s gets each sent message with its frame:', (_name, tapped) => {
  it('a request, with its params and protocol version', () => {
    const { peer, sent } = recorded({ tapped })
    void peer.request(
      'tools/call',
      { name: 'add' },
      { protocolVersion: '2026-07-28', headerParams: { Region: 'eu' } },
    )
    expect(sent).toEqual([
      {
        frame: '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"add"}}',
        message: {
          kind: 'request',
          id: 1,
          method: 'tools/call',
          params: { name: 'add' },
          protocolVersion: '2026-07-28',
          headerParams: { Region: 'eu' },
        },
      },
    ])
  })

  it('a notification', () => {
    const { peer, sent } = recorded({ tapped })
    peer.notify('notifications/progress', { progress: 1 })
    expect(sent[0]?.message).toEqual({
      kind: 'notification',
      method: 'notifications/progress',
      params: { progress: 1 },
    })
  })

  it('a result', () => {
    const { sent, receive } = recorded({ tapped }, { onRequest: () => ({ protocolVersion: 'x' }) })
    receive({ id: 7, method: 'initialize' })
    expect(sent[0]?.message).toEqual({ kind: 'response', id: 7, result: { protocolVersion: 'x' } })
  })

  it.each([
    ['thrown by a handler', { id: 7, method: 'x' }, 7, -5],
    ['for a message that is not valid', { id: 7, method: 1 }, 7, -32600],
    ['for a message without a readable id', { id: {}, method: 'x' }, undefined, -32600],
  ])('an error %s', (_case, message, id, code) => {
    const { sent, receive } = recorded(
      { tapped },
      {
        onRequest: () => {
          throw new RpcError(-5, 'no')
        },
      },
    )
    receive(message)
    expect(sent[0]?.message).toMatchObject({ kind: 'response', id, error: { code } })
  })
})

describe('a response', () => {
  it('has the received text', async () => {
    const { peer, receiver } = recorded()
    const seen: Response[] = []
    const answered = peer.request('x', undefined, { onResponse: (response) => seen.push(response) })
    const frame = '{"jsonrpc":"2.0","id":1,"result":{"large":12345678901234567890},"unknown":true}'
    receiver()?.frame(frame)
    await answered
    expect(seen).toMatchObject([{ kind: 'response', id: 1, frame }])
  })
})

describe.each([
  ['a channel', false],
  ['a tapped channel', true],
])('%s', (_name, tapped) => {
  it('rejects one request while others continue', async () => {
    const { peer, receive, receiver } = recorded({ tapped })
    const [first, second] = [peer.request('a'), peer.request('b')]
    receiver()?.failed?.(1, new Error('HTTP 503'))
    await expect(first).rejects.toThrow('HTTP 503')
    receive({ id: 2, result: 'ok' })
    expect(await second).toBe('ok')
  })

  it('ignores the failure of a settled request', async () => {
    const { peer, receive, receiver } = recorded({ tapped })
    const first = peer.request('a')
    receive({ id: 1, result: 'ok' })
    receiver()?.failed?.(1, new Error('late'))
    expect(await first).toBe('ok')
  })

  it.each([
    ['cancels a request by itself, and no notification is sent', true, 1],
    ['leaves cancellation to a notification', false, 2],
  ])('%s', async (_case, own, frames) => {
    const cancelled: unknown[] = []
    const { peer, sent } = recorded({ tapped, cancel: (id) => cancelled.push(id) > 0 && own })
    const controller = new AbortController()
    const request = peer.request('a', undefined, { signal: controller.signal })
    controller.abort(new Error('enough'))
    await expect(request).rejects.toThrow('enough')
    expect([cancelled, sent.length]).toEqual([[1], frames])
  })
})
