import { expect, it } from 'vitest'
import { MemoryEventStore } from '../../src/http.js'
import { INTERNAL_ERROR, RpcError } from '../../src/jsonrpc/errors.js'
import { type Id, encodeResult } from '../../src/jsonrpc/message.js'
import { ResumableStream } from '../../src/transports/http/resumable-stream.js'

/* Streams whose process has ended: requests without a response get an error. */

const owner = { session: 's', generation: 0, superseded: () => {}, drained: () => {} }

/** The ids of the responses to such a stream, as they are written. */
async function completed(requests: readonly Id[], ...frames: string[]): Promise<string[]> {
  const options = {
    eventStore: new MemoryEventStore(),
    ttl: 1000,
    maxUnsentBytes: 1000,
    report: () => {},
  }
  const stream = new ResumableStream(owner, '0p', options)
  stream.begin(requests, undefined)
  for (const frame of frames) stream.push(frame)
  const other = new ResumableStream(owner, '0p', options)
  const events = await other.completedAfter(0, new RpcError(INTERNAL_ERROR, 'ended'))
  return events.flatMap(({ data = '' }) =>
    [/"id":("[^"]*"|-?\d+),"error"/.exec(data)?.[1] ?? []].flat(),
  )
}

it('repeats ids exactly that JavaScript cannot express as numbers', async () => {
  const ids = [9007199254740993n, -9007199254740995n, 9007199254740992, 'a', '1', 1]
  expect(await completed(ids)).toEqual([
    '9007199254740993',
    '-9007199254740995',
    '9007199254740992',
    '"a"',
    '"1"',
    '1',
  ])
})

it('distinguishes the ids of responses that are stored', async () => {
  const ids = [9007199254740993n, 9007199254740992, 2, '2', 'deep', 'other']
  const deep = '['.repeat(600) + ']'.repeat(600)
  const frames = [
    encodeResult(9007199254740993n, {}),
    '{"jsonrpc":"2.0","id":9007199254740992,"method":"roots/list"}',
    `[${encodeResult(2, {})},{"jsonrpc":"2.0","id":"deep","result":${deep}}]`,
  ]
  expect(await completed(ids, ...frames)).toEqual(['9007199254740992', '"2"', '"other"'])
})
