import { describe, expect, it, vi } from 'vitest'
import { BatchReply } from '../../src/jsonrpc/batch.js'
import { Budget } from '../../src/jsonrpc/budget.js'
import type { Channel, Receiver } from '../../src/jsonrpc/channel.js'
import type { LogEntry } from '../../src/jsonrpc/log-entry.js'
import { MAX_SENT_LENGTH, encodeResult } from '../../src/jsonrpc/message.js'
import { Peer, type PeerOptions } from '../../src/jsonrpc/peer.js'

/* The responses to a batch wait for the last one. That memory is limited. */

const LIMIT = 5000
const LARGE = 'x'.repeat(2000)
const request = (id: number | string, method = 'large') =>
  `{"jsonrpc":"2.0","id":${JSON.stringify(id)},"method":"${method}"}`
const batch = (...requests: string[]) => `[${requests.join()}]`
const numbered = (count: number) => Array.from({ length: count }, (_, id) => request(id))
const turn = () => new Promise((resolve) => setImmediate(resolve))

interface Answer {
  id: number | string
  result?: unknown
  error?: { code: number; message: string }
}

function served(onRequest: PeerOptions['onRequest'], limit = LIMIT) {
  const pending = new Budget(limit)
  const sent: string[] = []
  const log: LogEntry[] = []
  let receiver: Receiver | undefined
  const channel: Channel = {
    pending,
    send: (frame) => void sent.push(frame),
    receive: (given) => (receiver = given),
    close: () => Promise.resolve(),
  }
  const peer = new Peer(channel, {
    onRequest,
    onNotification: () => {},
    respondsToMalformed: true,
    batchLimit: () => 100,
    report: (entry) => log.push(entry),
  })
  return {
    pending,
    log,
    peer,
    receive: (frame: string) => receiver?.frame(frame),
    answers: () => sent.splice(0).map((frame) => JSON.parse(frame) as Answer[]),
  }
}

const ids = (answers: Answer[] | undefined) => answers?.map(({ id }) => id)
const results = (answers: Answer[] | undefined) =>
  answers?.flatMap(({ id, result }) => (result === undefined ? [] : [id]))
const errors = (answers: Answer[] | undefined) =>
  new Set(answers?.flatMap(({ error }) => (error === undefined ? [] : [error.message])))

describe('responses that wait for the rest of their batch', () => {
  it('are not refused because of the memory of their own requests', async () => {
    const proceeds: (() => void)[] = []
    const { receive, answers } = served(
      () => new Promise<string>((resolve) => proceeds.push(() => resolve(LARGE))),
      100_000,
    )
    const params = JSON.stringify({ text: 'x'.repeat(30_000) })
    const large = (id: number) => `{"jsonrpc":"2.0","id":${id},"method":"large","params":${params}}`
    receive(batch(large(1), large(2)))
    for (const proceed of proceeds) proceed()
    await turn()
    const [answer] = answers()
    expect([...errors(answer)]).toEqual([])
    expect(results(answer)).toEqual([1, 2])
  })

  it('count as requests in progress: further requests are refused until they are sent', () => {
    const { receive, answers, pending } = served(() => LARGE)
    receive(batch(...numbered(6)))
    const [answer] = answers()
    expect(ids(answer)).toEqual([0, 1, 2, 3, 4, 5])
    expect(results(answer)).toEqual([0, 1, 2])
    expect([...errors(answer)]).toEqual([expect.stringContaining('reached the memory limit')])
    expect(pending.used).toBe(0)
    receive(batch(request('next')))
    expect(results(answers()[0])).toEqual(['next'])
  })

  it('are replaced by errors if they end together and are too large', async () => {
    // Of the large ones three fit, besides the requests.
    const { receive, answers, pending, log } = served(async ({ request: { method } }) => {
      await turn()
      return method === 'large' ? 'x'.repeat(33_500) : 'short'
    }, 100_000)
    receive(batch(...numbered(5), request('short', 'short'), request('last')))
    await expect.poll(() => pending.used).toBe(0)
    const [answer] = answers()
    expect(ids(answer)).toEqual([0, 1, 2, 3, 4, 'short', 'last'])
    // A short one takes no more memory than an error; the last one does not wait.
    expect(results(answer)).toEqual([0, 1, 2, 'short', 'last'])
    expect([...errors(answer)]).toEqual([expect.stringContaining('too large for this batch')])
    expect(log.map(({ level, id }) => [level, id])).toEqual([
      ['warning', 3],
      ['warning', 4],
    ])
  })

  it('are charged in bytes, until the batch ends by a cancellation or with the connection', () => {
    for (const end of ['cancel', 'close'] as const) {
      const { receive, answers, pending, peer } = served(
        ({ request: { method } }) =>
          method === 'large' ? '€'.repeat(1000) : new Promise(() => {}),
        2 * LIMIT,
      )
      receive(batch(request('waits', 'waits')))
      const before = pending.used
      receive(batch(request(1), request('never', 'never')))
      expect(pending.used).toBeGreaterThanOrEqual(2 * before + 2000)
      if (end === 'cancel') {
        peer.cancel('never', 'x')
        expect(results(answers()[0])).toEqual([1])
      } else peer.closed()
      expect(pending.used).toBeLessThanOrEqual(2 * before)
    }
  })
})

describe('a text that is too long for a string', () => {
  it('is not made of the responses to a batch', () => {
    const sent: (string | undefined)[] = []
    const memory = { full: false, hold: () => {}, release: () => {}, log: () => {} }
    const whole = { send: () => {}, reply: (frame?: string) => void sent.push(frame) }
    const { exchange } = new BatchReply(whole, 4, memory, 5000)
    for (const id of [1, 2, 3, 4])
      exchange.reply(encodeResult(id, LARGE), { kind: 'response', id, result: LARGE })
    expect(sent).toHaveLength(1)
    const answer = JSON.parse(sent[0] ?? '') as Answer[]
    expect(ids(answer)).toEqual([1, 2, 3, 4])
    expect(results(answer)).toEqual([1, 2])
  })

  it('is not made of a result: transports add to it', async () => {
    const { receive, answers } = served(() => Promise.resolve('long'))
    const stringify = vi.spyOn(JSON, 'stringify')
    // Not in memory as a whole.
    stringify.mockImplementationOnce(() => 'x'.repeat(MAX_SENT_LENGTH))
    receive('{"jsonrpc":"2.0","id":1,"method":"large"}')
    await turn()
    stringify.mockRestore()
    expect(answers()).toMatchObject([
      { id: 1, error: { message: 'Internal error: the result cannot be written as JSON' } },
    ])
  })
})
