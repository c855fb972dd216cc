import { EventEmitter } from 'node:events'
import { expect, it } from 'vitest'
import { UnsentResponses } from '../../src/transports/http/node-context.js'

class Response extends EventEmitter {
  destroyed = false
  writableLength: number

  constructor(size: number) {
    super()
    this.writableLength = size
  }

  destroy(): void {
    this.destroyed = true
    this.emit('close')
  }
}

it('destroys the oldest response beyond the limit of unsent bytes', () => {
  const unread = new UnsentResponses(1_000_000)
  const streams = [400_000, 400_000, 100_000].map((size) => new Response(size))
  const [first, , third] = streams as [Response, Response, Response]
  for (const stream of streams) unread.add(stream)
  // A stream is written to again and again, and counts once.
  for (let i = 0; i < 10; i++) unread.add(third)
  expect(streams.map(({ destroyed }) => destroyed)).toEqual([false, false, false])
  third.writableLength = 300_000
  first.writableLength = 0
  // The first has been read meanwhile.
  unread.add(third)
  expect(streams.map(({ destroyed }) => destroyed)).toEqual([false, false, false])
  third.writableLength = 700_000
  unread.add(third)
  expect(streams.map(({ destroyed }) => destroyed)).toEqual([false, true, false])
  expect(third.listenerCount('close')).toBe(1)
  // The newest is never cut off.
  third.writableLength = 2_000_000
  unread.add(third)
  expect(third.destroyed).toBe(false)
})
