import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { STEPS } from '../../src/jsonrpc/small-steps.js'
import { OpenResponses } from '../../src/transports/http/open-responses.js'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

const open = (failed: (error: unknown) => void = () => {}) =>
  new OpenResponses({ maxOpenResponses: 2, keepAlive: 10 }, failed)

it('counts a response once, up to the limit', () => {
  const responses = open()
  const [first, second] = [{}, {}]
  responses.add(first)
  responses.add(first, { onKeepAlive: () => {} })
  expect([responses.count, responses.full]).toEqual([1, false])
  responses.add(second)
  expect([responses.count, responses.full]).toEqual([2, true])
  responses.remove(first)
  responses.remove(second)
  expect([responses.count, vi.getTimerCount()]).toEqual([0, 0])
})

it('visits the stream that has replaced an exchange in the next interval', () => {
  const responses = open()
  const visited: string[] = []
  const context = {}
  const stream = { onKeepAlive: () => void visited.push('stream') }
  responses.add(context, {
    onKeepAlive: () => {
      visited.push('exchange')
      responses.add(context, stream)
    },
  })
  vi.advanceTimersByTime(10)
  expect(visited).toEqual(['exchange'])
  vi.advanceTimersByTime(10)
  expect(visited).toEqual(['exchange', 'stream'])
})

it('does not visit a response that another one has removed', () => {
  const responses = open()
  const removed = {}
  const onKeepAlive = vi.fn()
  responses.add({}, { onKeepAlive: () => responses.remove(removed) })
  responses.add(removed, { onKeepAlive })
  vi.advanceTimersByTime(10)
  expect(onKeepAlive).not.toHaveBeenCalled()
})

it('visits the others if one fails', () => {
  const errors: unknown[] = []
  const responses = open((error) => errors.push(error))
  const onKeepAlive = vi.fn()
  responses.add(
    {},
    {
      onKeepAlive: () => {
        throw new Error('broken')
      },
    },
  )
  responses.add({}, { onKeepAlive })
  vi.advanceTimersByTime(10)
  expect(onKeepAlive).toHaveBeenCalledOnce()
  expect(errors).toEqual([new Error('broken')])
})

it('visits a number of responses in each turn of the event loop, and each once', async () => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] })
  const responses = open()
  const visits = Array.from({ length: 3 * STEPS }, () => vi.fn())
  for (const onKeepAlive of visits) responses.add({}, { onKeepAlive })
  const counts = () => visits.map(({ mock }) => mock.calls.length)
  const visited = () => counts().reduce((sum, count) => sum + count)
  // The next interval may begin before all are visited.
  vi.advanceTimersByTime(20)
  for (const turns of [1, 2, 3]) {
    expect(visited()).toBe(turns * STEPS)
    await new Promise(setImmediate)
  }
  expect(counts()).toEqual(visits.map(() => 1))
  vi.advanceTimersByTime(10)
  for (let turn = 0; turn < 3; turn++) await new Promise(setImmediate)
  expect(counts()).toEqual(visits.map(() => 2))
})
