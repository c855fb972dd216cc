import { describe, expect, it } from 'vitest'
import { Budget } from '../../src/jsonrpc/budget.js'
import { IncomingBody } from '../../src/transports/http/incoming-body.js'
import { fc } from '../fast-check.js'

const LIMIT = 100_000
const bytes = (length: number, value = 1) => new Uint8Array(length).fill(value)

describe('a body that arrives in chunks', () => {
  it('has the bytes of all chunks, and takes at most twice as much of the budget', () => {
    fc.assert(
      fc.property(
        fc.array(fc.uint8Array({ maxLength: 9000 }), { maxLength: 10 }),
        fc.boolean(),
        (chunks, hasLength) => {
          const whole = Buffer.concat(chunks)
          const budget = new Budget(LIMIT)
          const length = hasLength ? String(whole.length) : undefined
          const body = new IncomingBody(LIMIT, length, budget)
          for (const chunk of chunks) {
            expect(body.add(chunk)).toBeUndefined()
            expect(budget.used).toBeGreaterThanOrEqual(body.bytes.buffer.byteLength)
          }
          expect(Buffer.from(body.bytes)).toEqual(whole)
          expect(budget.used).toBeLessThanOrEqual(
            hasLength ? whole.length : Math.max(4096, 2 * whole.length),
          )
          body.release()
          expect([budget.used, body.bytes.length]).toEqual([0, 0])
        },
      ),
    )
  })

  it('is copied into few buffers, however small its chunks are', () => {
    const body = new IncomingBody(LIMIT, undefined, new Budget(LIMIT))
    const buffers = new Set<ArrayBufferLike>()
    for (let i = 0; i < 5000; i++) {
      body.add(bytes(1))
      buffers.add(body.bytes.buffer)
    }
    // Of the first chunk, and one that has grown once.
    expect(buffers.size).toBe(3)
  })

  it('does not copy its only chunk, unless that is a small part of a buffer', () => {
    const add = (chunk: Uint8Array) => {
      const body = new IncomingBody(LIMIT, undefined, new Budget(LIMIT))
      body.add(chunk)
      return body.bytes
    }
    const chunk = bytes(10)
    expect(add(chunk)).toBe(chunk)
    const part = bytes(10_000).subarray(0, 10)
    expect(add(part)).toEqual(part)
    expect(add(part).buffer.byteLength).toBeLessThan(5000)
  })

  it('is refused beyond its limit and beyond the budget', () => {
    const long = new IncomingBody(10, undefined, new Budget(LIMIT))
    expect([long.add(bytes(10)), long.add(bytes(1))]).toEqual([undefined, 'too long'])
    const budget = new Budget(6000)
    const body = new IncomingBody(LIMIT, '5000', budget)
    const other = new IncomingBody(LIMIT, '5000', budget)
    expect([body.add(bytes(1)), body.add(bytes(4000))]).toEqual([undefined, undefined])
    expect([other.add(bytes(2000)), budget.used]).toEqual(['too much', 5000])
    body.release()
    expect(other.add(bytes(2000))).toBeUndefined()
  })

  it('may be longer than Content-Length if other code has changed it', () => {
    const body = new IncomingBody(LIMIT, '2', new Budget(LIMIT))
    expect([body.add(bytes(2)), body.add(bytes(2, 7))]).toEqual([undefined, undefined])
    expect([...body.bytes]).toEqual([1, 1, 7, 7])
  })
})
