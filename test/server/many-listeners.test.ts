import { beforeEach, expect, it, vi } from 'vitest'
import { STEPS } from '../../src/jsonrpc/small-steps.js'
import { type Change, ChangeEmitter } from '../../src/server/registry.js'

/* Log messages of the server that many clients get. */

const message = (i: number) => ({ log: { level: 'info', data: i } }) as const
const nextTurn = () => new Promise(setImmediate)

/** What each listener was told. */
let told: unknown[][] = []
let emitter = new ChangeEmitter((uri) => uri)

function listen(count: number): void {
  for (let i = 0; i < count; i++) {
    const heard: unknown[] = []
    told.push(heard)
    emitter.listen((change: Change) => void ('log' in change && heard.push(change.log.data)))
  }
}
const count = () => told.reduce((sum, heard) => sum + heard.length, 0)

beforeEach(() => {
  told = []
  emitter = new ChangeEmitter((uri) => uri)
  const stopped = vi.spyOn(performance, 'now').mockReturnValue(0)
  return () => stopped.mockRestore()
})

it('are told to a few at once', () => {
  listen(3)
  emitter.emit(message(1))
  expect(told).toEqual([[1], [1], [1]])
})

it('are told to some in each turn of the event loop, in order', async () => {
  listen(2 * STEPS)
  emitter.emit(message(1))
  emitter.emit(message(2))
  await Promise.resolve()
  for (const turns of [1, 2, 3, 4]) {
    expect(count()).toBe(turns * STEPS)
    await nextTurn()
  }
  for (let turn = 0; turn < 4; turn++) await nextTurn()
  emitter.emit(message(3))
  for (let turn = 0; turn < 4; turn++) await nextTurn()
  expect(told).toEqual(told.map(() => [1, 2, 3]))
})

it('are dropped if too many of them wait', async () => {
  listen(STEPS + 1)
  for (let i = 0; i < 1010; i++) emitter.emit(message(i))
  for (let turn = 0; turn < 1100; turn++) await nextTurn()
  expect(told).toEqual(told.map(() => Array.from({ length: 1000 }, (_, i) => i)))
})
