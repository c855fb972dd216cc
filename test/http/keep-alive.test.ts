import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { KeepAlive } from '../../src/transports/http/keep-alive.js'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

it('visits a response that is added by another one in the next interval', () => {
  const keepAlive = new KeepAlive(10)
  const visited: string[] = []
  const stream = { onKeepAlive: () => void visited.push('stream') }
  const exchange = {
    onKeepAlive: () => {
      visited.push('exchange')
      keepAlive.remove(exchange)
      keepAlive.add(stream)
    },
  }
  keepAlive.add(exchange)
  vi.advanceTimersByTime(10)
  expect(visited).toEqual(['exchange'])
  vi.advanceTimersByTime(10)
  expect(visited).toEqual(['exchange', 'stream'])
})

it('does not visit a response that another one has removed', () => {
  const keepAlive = new KeepAlive(10)
  const removed = { onKeepAlive: vi.fn() }
  keepAlive.add({ onKeepAlive: () => keepAlive.remove(removed) })
  keepAlive.add(removed)
  vi.advanceTimersByTime(10)
  expect(removed.onKeepAlive).not.toHaveBeenCalled()
})
