import { describe, expect, it } from 'vitest'
import { type Channel, type Receiver, type TappedMessage, tap } from '../../src/jsonrpc/channel.js'
import { Deadline } from '../../src/jsonrpc/deadline.js'
import { ChannelClosedError, RpcError } from '../../src/jsonrpc/errors.js'
import { Peer, type PeerOptions } from '../../src/jsonrpc/peer.js'
import type { LogEntry } from '../../src/jsonrpc/log-entry.js'
import { memoryChannels } from '../../src/transports/memory.js'

function peerOn(channel: Channel, options: Partial<PeerOptions> = {}): Peer {
  return new Peer(channel, {
    onRequest: () => ({}),
    onNotification: () => {},
    respondsToMalformed: false,
    report: () => {},
    ...options,
  })
}

/** Two peers that are connected to each other. */
function pair(server: Partial<PeerOptions> = {}, client: Partial<PeerOptions> = {}) {
  const [left, right] = memoryChannels()
  return {
    client: peerOn(left, client),
    server: peerOn(right, { respondsToMalformed: true, ...server }),
    wire: left,
  }
}

/** All frames that a bare channel end receives. */
function listen(channel: Channel): string[] {
  const frames: string[] = []
  channel.receive({
    frame: (frame) => void frames.push(frame),
    malformed: () => {},
    closed: () => {},
  })
  return frames
}

const turn = () => new Promise((resolve) => setImmediate(resolve))

describe('requests', () => {
  it('go in both directions concurrently', async () => {
    const { client, server } = pair(
      { onRequest: ({ request }) => `server got ${request.method}` },
      { onRequest: ({ request }) => `client got ${request.method}` },
    )
    expect(await Promise.all([client.request('a'), server.request('b')])).toEqual([
      'server got a',
      'client got b',
    ])
  })

  it('are rejected with the error of the other side', async () => {
    const { client } = pair({ onRequest: () => Promise.reject(new RpcError(-5, 'no', { why: 1 })) })
    await expect(client.request('a')).rejects.toMatchObject({
      name: 'RpcError',
      code: -5,
      message: 'no',
      data: { why: 1 },
    })
  })

  it('are rejected with Internal error if the handler throws, without the reason', async () => {
    const reports: LogEntry[] = []
    const { client } = pair({
      onRequest: () => Promise.reject(new Error('secret')),
      report: (report) => reports.push(report),
    })
    await expect(client.request('a')).rejects.toMatchObject({
      code: -32603,
      message: 'Internal error',
    })
    expect(reports).toMatchObject([
      { level: 'error', message: 'a failed', id: 1, error: new Error('secret') },
    ])
  })

  it('are not blocked by a slow one', async () => {
    let release = () => {}
    const { client } = pair({
      onRequest: ({ request }) =>
        request.method === 'slow'
          ? new Promise<string>((resolve) => (release = () => resolve('slow')))
          : 'fast',
    })
    const slow = client.request('slow')
    expect(await client.request('fast')).toBe('fast')
    release()
    expect(await slow).toBe('slow')
  })

  it('are rejected with ChannelClosed when the channel closes', async () => {
    const { client, server } = pair({ onRequest: () => new Promise(() => {}) })
    const pending = client.request('a')
    await turn()
    await server.close()
    await expect(pending).rejects.toBeInstanceOf(ChannelClosedError)
    await expect(client.request('b')).rejects.toBeInstanceOf(ChannelClosedError)
  })

  it('time out, and the other side gets a cancellation', async () => {
    const told: unknown[] = []
    const { client } = pair(
      { onRequest: () => new Promise(() => {}) },
      { cancelled: (id, reason) => told.push([id, reason]) },
    )
    await expect(client.request('a', {}, { deadline: new Deadline({ idle: 5 }) })).rejects.toThrow(
      'No response within 5 ms to a',
    )
    expect(told).toEqual([[1, 'No response within 5 ms to a']])
  })

  it('are cancelled by a signal', async () => {
    const told: unknown[] = []
    const { client } = pair(
      { onRequest: () => new Promise(() => {}) },
      { cancelled: (id, reason) => told.push([id, reason]) },
    )
    const controller = new AbortController()
    const pending = client.request('a', {}, { signal: controller.signal })
    controller.abort(new Error('changed my mind'))
    await expect(pending).rejects.toThrow('changed my mind')
    expect(told).toEqual([[1, 'changed my mind']])
    await expect(client.request('b', {}, { signal: controller.signal })).rejects.toThrow(
      'changed my mind',
    )
  })

  it('match responses by the type of the id as well', async () => {
    const [left, right] = memoryChannels()
    const client = peerOn(left)
    const frames = listen(right)
    const pending = client.request('a')
    await turn()
    expect(frames).toHaveLength(1)
    right.send('{"jsonrpc":"2.0","id":"1","result":"wrong"}')
    right.send('{"jsonrpc":"2.0","id":1,"result":"right"}')
    right.send('{"jsonrpc":"2.0","id":1,"result":"late"}')
    expect(await pending).toBe('right')
  })

  it('are rejected by an invalid response', async () => {
    const [left, right] = memoryChannels()
    const client = peerOn(left)
    listen(right)
    const pending = client.request('a')
    right.send('{"jsonrpc":"2.0","id":1,"result":{},"error":{"code":1,"message":"x"}}')
    await expect(pending).rejects.toThrow(
      'Invalid response: a response must have "jsonrpc": "2.0", an "id", and either "result" or "error"',
    )
  })
})

describe('a request whose response cannot be read', () => {
  const deep = '['.repeat(20) + ']'.repeat(20)
  it.each([
    ['a result that is too deep', `{"jsonrpc":"2.0","id":1,"result":${deep}}`],
    [
      'an error that is too deep',
      `{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"x","data":${deep}}}`,
    ],
    [
      'an error whose id comes last',
      `{"jsonrpc":"2.0","error":{"code":1,"message":"x","data":${deep}},"id":1}`,
    ],
  ])('is rejected at once: %s', async (_, frame) => {
    const [left, right] = memoryChannels()
    const client = peerOn(left, { maxDepth: 10 })
    const frames = listen(right)
    const pending = client.request('a')
    right.send(frame)
    await expect(pending).rejects.toMatchObject({
      code: 'INVALID_RESPONSE',
      message: 'Invalid response: the message is nested deeper than 10 levels',
    })
    // A response gets no response.
    await turn()
    expect(frames).toHaveLength(1)
  })

  it('is rejected at once: an error that is too large', async () => {
    const [left, right] = memoryChannels()
    let receiver: Receiver | undefined
    const client = peerOn({
      send: (frame) => left.send(frame),
      receive: (given) => (receiver = given),
      close: () => left.close(),
    })
    listen(right)
    const pending = client.request('a')
    const head = '{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"xxxx'
    receiver?.malformed(new RpcError(-32600, 'Invalid Request: too large'), head, 'xxxx"}}')
    await expect(pending).rejects.toThrow('Invalid response: too large')
  })
})

describe('serving', () => {
  it('sends exactly one response, whatever the handler does', async () => {
    const [left, right] = memoryChannels()
    const strange: Record<string, () => unknown> = {
      undefined: () => undefined,
      bigint: () => 1n,
      throwNull: () => {
        throw null
      },
      rejectUndefined: () => Promise.reject(undefined),
      hostileThen: () => ({
        get then() {
          throw new Error('trap')
        },
      }),
      doubleThen: () => ({ then: (resolve: (value: unknown) => void) => (resolve(1), resolve(2)) }),
      late: () => turn().then(() => Promise.reject(new Error('late'))),
    }
    peerOn(right, {
      respondsToMalformed: true,
      onRequest: ({ request }) => strange[request.method]?.(),
    })
    const frames = listen(left)
    for (const [id, method] of Object.keys(strange).entries())
      left.send(JSON.stringify({ jsonrpc: '2.0', id, method }))
    await turn()
    await turn()
    await turn()
    expect(
      frames.map((frame) => (JSON.parse(frame) as { id: number }).id).toSorted((a, b) => a - b),
    ).toEqual([0, 1, 2, 3, 4, 5, 6])
  })

  it('rejects more calls than maxInFlight', async () => {
    const { client } = pair({ maxInFlight: 2, onRequest: () => new Promise(() => {}) })
    const held = [client.request('a'), client.request('a')].map((pending) =>
      expect(pending).rejects.toBeInstanceOf(ChannelClosedError),
    )
    await expect(client.request('a')).rejects.toMatchObject({
      code: -32603,
      message: 'Too many requests: 2 are in progress. Try again later',
    })
    await client.close()
    await Promise.all(held)
  })

  it('sends nothing for a cancelled call', async () => {
    let finish: (text: string) => void = () => {}
    let aborted = false
    const [left, right] = memoryChannels()
    const server = peerOn(right, {
      onRequest: ({ signal }) => {
        signal.addEventListener('abort', () => (aborted = true))
        return new Promise<string>((resolve) => (finish = resolve))
      },
    })
    const frames = listen(left)
    left.send('{"jsonrpc":"2.0","id":1,"method":"a"}')
    await turn()
    server.cancel(1, 'stop')
    server.cancel(1, 'again')
    server.cancel(2, 'unknown')
    finish('late')
    await server.idle()
    await turn()
    expect(aborted).toBe(true)
    expect(frames).toEqual([])
  })

  it('returns an aborted signal to a handler that reads it late', async () => {
    const [left, right] = memoryChannels()
    let look = (): AbortSignal | undefined => undefined
    const server = peerOn(right, {
      onRequest: (call) => {
        look = () => call.signal
        return new Promise(() => {})
      },
    })
    listen(left)
    left.send('{"jsonrpc":"2.0","id":1,"method":"a"}')
    await turn()
    server.cancel(1, 'stop')
    expect(look()?.aborted).toBe(true)
  })

  it('ends pending calls with an error response (abandon)', async () => {
    const [left, right] = memoryChannels()
    const server = peerOn(right, { onRequest: () => new Promise(() => {}) })
    const frames = listen(left)
    left.send('{"jsonrpc":"2.0","id":1,"method":"a"}')
    await turn()
    server.abandon(new RpcError(-32603, 'going'))
    await turn()
    expect(frames).toEqual(['{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"going"}}'])
    await server.idle()
  })

  it('collects the responses of a batch, however late, without cancelled requests', async () => {
    const [left, right] = memoryChannels()
    let finish = () => {}
    const server = peerOn(right, {
      respondsToMalformed: true,
      batchLimit: () => 10,
      onRequest: ({ request }) =>
        request.method === 'now'
          ? 1
          : new Promise<number>((resolve) => {
              if (request.method === 'later') finish = () => resolve(2)
            }),
    })
    const frames = listen(left)
    left.send(
      '[{"jsonrpc":"2.0","id":1,"method":"later"},{"jsonrpc":"2.0","id":2,"method":"now"},{"jsonrpc":"2.0","id":3,"method":"never"},{"jsonrpc":"2.0","method":"note"}]',
    )
    await turn()
    expect(frames).toEqual([])
    server.cancel(3, 'x')
    finish()
    await turn()
    expect(frames).toEqual([
      '[{"jsonrpc":"2.0","id":2,"result":1},{"jsonrpc":"2.0","id":1,"result":2}]',
    ])
  })
})

describe('malformed input', () => {
  it('gets an error response from servers, never from clients', async () => {
    for (const answersGarbage of [true, false]) {
      const [left, right] = memoryChannels()
      const reports: LogEntry[] = []
      peerOn(right, {
        respondsToMalformed: answersGarbage,
        report: (report) => reports.push(report),
      })
      const frames = listen(left)
      left.send('{bad')
      await turn()
      expect(frames).toHaveLength(answersGarbage ? 1 : 0)
      expect(reports).toMatchObject([
        { level: 'warning', message: 'Parse error: unexpected "b" at position 1' },
      ])
    }
  })

  it('does not make two servers send errors to each other forever', async () => {
    const seen: TappedMessage[] = []
    const [left, right] = memoryChannels()
    peerOn(
      tap(left, (tapped) => seen.push(tapped)),
      { respondsToMalformed: true },
    )
    peerOn(right, { respondsToMalformed: true })
    right.send('{bad')
    for (let i = 0; i < 10; i++) await turn()
    expect(seen).toHaveLength(2)
  })
})

describe('the tap', () => {
  it('sees every frame in both directions as it crosses', async () => {
    const [left, right] = memoryChannels()
    const seen: TappedMessage[] = []
    peerOn(right, { respondsToMalformed: true, onRequest: () => ({ a: 1 }) })
    const client = peerOn(tap(left, (tapped) => seen.push(tapped)))
    await client.request('x', { b: 2 })
    client.notify('y')
    expect(seen).toEqual([
      { direction: 'out', frame: '{"jsonrpc":"2.0","id":1,"method":"x","params":{"b":2}}' },
      { direction: 'in', frame: '{"jsonrpc":"2.0","id":1,"result":{"a":1}}' },
      { direction: 'out', frame: '{"jsonrpc":"2.0","method":"y"}' },
    ])
  })
})

describe('a parked call', () => {
  it('lets one other handler run, even if it waits for two promises', async () => {
    let begun = 0
    let free = () => {}
    const held = new Promise<void>((resolve) => (free = resolve))
    const { client } = pair({
      onRequest: (call) =>
        call.request.method === 'wait'
          ? Promise.all([call.park(held), call.park(held)])
          : (begun++, held),
    })
    const calls = [
      client.request('wait'),
      ...Array.from({ length: 300 }, () => client.request('work')),
    ]
    await turn()
    expect(begun).toBe(256)
    free()
    await Promise.all(calls)
    expect(begun).toBe(300)
  })
})

describe('a handler that never returns', () => {
  it('does not count as running once its call is cancelled', async () => {
    const { server, client } = pair({
      onRequest: ({ request }) =>
        request.method === 'hang' ? new Promise(() => {}) : Promise.resolve('done'),
    })
    const hung = Array.from({ length: 300 }, () => client.request('hang'))
    const next = client.request('work')
    await turn()
    for (let id = 1; id <= hung.length; id++) server.cancel(id, undefined)
    await expect(next).resolves.toBe('done')
    await expect(client.request('work')).resolves.toBe('done')
  })
})
