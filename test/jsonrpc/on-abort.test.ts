import { expect, it, vi } from 'vitest'
import { onAbort } from '../../src/jsonrpc/on-abort.js'

it('has one listener for all functions, and none when all have ended', () => {
  const { signal } = new AbortController()
  const add = vi.spyOn(signal, 'addEventListener')
  const remove = vi.spyOn(signal, 'removeEventListener')
  const run = vi.fn()
  const ends = [onAbort(signal, run), onAbort(signal, run)]
  expect(add).toHaveBeenCalledTimes(1)
  for (const end of ends) {
    expect(remove).not.toHaveBeenCalled()
    end()
    end()
  }
  expect(remove).toHaveBeenCalledTimes(1)
  onAbort(signal, run)
  expect(add).toHaveBeenCalledTimes(2)
})

it('calls each function once, except those that have ended', () => {
  const controller = new AbortController()
  const [first, second, third] = [vi.fn(), vi.fn(), vi.fn()]
  const ends: (() => void)[] = []
  onAbort(controller.signal, () => {
    first()
    for (const end of ends) end()
  })
  onAbort(controller.signal, second)
  ends.push(onAbort(controller.signal, third))
  onAbort(controller.signal, second)
  controller.abort()
  expect([first, second, third].map((each) => each.mock.calls.length)).toEqual([1, 2, 0])
})
