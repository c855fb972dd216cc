import { PassThrough } from 'node:stream'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import type { Channel } from '../../src/jsonrpc/channel.js'
import { Peer, type PeerOptions } from '../../src/jsonrpc/peer.js'
import { connect, memory } from '../../src/client.js'
import { createServer, tool } from '../../src/index.js'
import { memoryChannels } from '../../src/transports/memory.js'
import { StreamChannel } from '../../src/transports/streams.js'

/* A call takes four milliseconds of a clock that stands still otherwise: three of them end after ten milliseconds. */

const CALL = 4
const COUNT = 20
let now = 0
let turn = 0
let counting: NodeJS.Immediate | undefined
/** The turn of the event loop in which each call has started. */
let turns: number[] = []

beforeEach(() => {
  turns = []
  vi.spyOn(performance, 'now').mockImplementation(() => now)
  const count = () => {
    turn++
    counting = setImmediate(count)
  }
  count()
})
afterEach(() => {
  clearImmediate(counting)
  vi.restoreAllMocks()
})

function spend(): void {
  turns.push(turn)
  now += CALL
}

/** The most calls that have started in one turn. */
function mostPerTurn(): number {
  expect(turns).toHaveLength(COUNT)
  return Math.max(...turns.map((each) => turns.filter((other) => other === each).length))
}

function peerOn(channel: Channel, options: Partial<PeerOptions> = {}): Peer {
  return new Peer(channel, {
    onRequest: () => (spend(), {}),
    onNotification: () => {},
    respondsToMalformed: true,
    batchLimit: () => 100,
    report: () => {},
    ...options,
  })
}

const request = (id: number, method = 'slow') => JSON.stringify({ jsonrpc: '2.0', id, method })
const ids = Array.from({ length: COUNT }, (_, index) => index)
const idsOf = (frames: readonly string[]) =>
  frames.flatMap((frame) => JSON.parse(frame) as { id: number }).map(({ id }) => id)

/** Sends frames to a peer over memory; resolves to the frames that it sends when there are so many. */
function responsesTo(
  sent: readonly string[],
  count: number,
  options: Partial<PeerOptions> = {},
): Promise<string[]> {
  const [left, right] = memoryChannels()
  peerOn(right, options)
  const received: string[] = []
  return new Promise((resolve) => {
    left.receive({
      frame: (frame) => received.push(frame) === count && resolve(received),
      malformed: () => {},
      closed: () => {},
    })
    for (const frame of sent) left.send(frame)
  })
}

describe('calls that end synchronously take about ten milliseconds of a turn', () => {
  it('in a batch, whose responses keep their order', async () => {
    const responses = await responsesTo([`[${ids.map((id) => request(id)).join()}]`], 1)
    expect(idsOf(responses)).toEqual(ids)
    expect(mostPerTurn()).toBe(3)
  })

  it('in a batch, also if one of them is served even while others are queued', async () => {
    const urgent = ({ method }: { method: string }) => method === 'ping'
    const batch = ids.map((id) => request(id, id % 2 === 0 ? 'slow' : 'ping'))
    const responses = await responsesTo([`[${batch.join()}]`], 1, { urgent })
    expect(idsOf(responses)).toEqual(ids)
    expect(mostPerTurn()).toBe(3)
  })

  it('in a queue, when the call before them ends', async () => {
    let end = () => {}
    const [left, right] = memoryChannels()
    // One call at a time.
    const congested = Object.defineProperty(right, 'congested', { value: true })
    peerOn(congested, {
      onRequest: ({ request: { method } }) =>
        method === 'first' ? new Promise<void>((resolve) => (end = resolve)) : (spend(), {}),
    })
    const received: string[] = []
    const all = new Promise<void>((resolve) => {
      left.receive({
        frame: (frame) => received.push(frame) > COUNT && resolve(),
        malformed: () => {},
        closed: () => {},
      })
    })
    left.send(request(COUNT, 'first'))
    for (const id of ids) left.send(request(id))
    await new Promise(setImmediate)
    end()
    await all
    expect(idsOf(received)).toEqual([COUNT, ...ids])
    expect(mostPerTurn()).toBe(3)
  })

  it('in a queue, if they return promises that are resolved already', async () => {
    const [, right] = memoryChannels()
    const congested = Object.defineProperty(right, 'congested', { value: true })
    const peer = peerOn(congested, { onRequest: async () => spend() })
    for (const id of ids) peer.frame(request(id))
    await peer.idle()
    // The first one has not been queued.
    expect(mostPerTurn()).toBeLessThanOrEqual(4)
  })

  it('in one chunk of a stream', async () => {
    const input = new PassThrough()
    const output = new PassThrough()
    const peer = peerOn(new StreamChannel({ input, output, framing: 'lines' }))
    let text = ''
    const all = new Promise<void>((resolve) =>
      output.on('data', (chunk: Buffer) => {
        text += chunk.toString()
        if (text.split('\n').length > COUNT) resolve()
      }),
    )
    input.write(ids.map((id) => `${request(id)}\n`).join(''))
    await all
    expect(idsOf(text.trim().split('\n'))).toEqual(ids)
    expect(mostPerTurn()).toBe(3)
    await peer.close()
  })

  it('of a tool with limited concurrency: each waits for a turn', async () => {
    const server = createServer({
      name: 'slow',
      version: '1',
      tools: [
        tool({
          name: 'slow',
          concurrency: 1,
          queue: COUNT,
          run: async () => spend(),
        }),
      ],
    })
    await using client = await connect(memory(server))
    await Promise.all(ids.map(() => client.callTool('slow')))
    expect(mostPerTurn()).toBe(1)
  })
})

it('calls of several peers take turns', async () => {
  const order: string[] = []
  const peers = ['a', 'b'].map((name) =>
    peerOn(memoryChannels()[1], { onRequest: () => (order.push(name), spend(), {}) }),
  )
  for (const peer of peers)
    peer.frame(
      `[${ids
        .slice(0, COUNT / 2)
        .map((id) => request(id))
        .join()}]`,
    )
  await Promise.all(peers.map((peer) => peer.idle()))
  expect(order.join('')).toBe('aaabbbaaabbbaaabbbab')
  expect(mostPerTurn()).toBeLessThanOrEqual(6)
})
