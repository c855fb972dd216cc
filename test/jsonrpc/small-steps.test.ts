import { afterEach, expect, it, vi } from 'vitest'
import { STEPS, inSmallSteps } from '../../src/jsonrpc/small-steps.js'

const nextTurn = () => new Promise(setImmediate)

afterEach(async () => {
  vi.restoreAllMocks()
  // What is left of the work.
  for (let turn = 0; turn < 10; turn++) await nextTurn()
})

function* repeat(times: number, step: (i: number) => void): Generator<undefined> {
  for (let i = 0; i < times; i++) {
    step(i)
    yield
  }
}

it('begins at the end of this turn, with a step of each work after the other', async () => {
  vi.spyOn(performance, 'now').mockReturnValue(0)
  const done: string[] = []
  for (const name of ['a', 'b']) inSmallSteps(repeat(3, (i) => done.push(`${name}${i}`)))
  expect(done).toEqual([])
  await Promise.resolve()
  expect(done).toEqual(['a0', 'b0', 'a1', 'b1', 'a2', 'b2'])
})

it('does a number of steps in each turn', async () => {
  vi.spyOn(performance, 'now').mockReturnValue(0)
  let done = 0
  for (let i = 0; i < 3 * STEPS; i++) inSmallSteps(repeat(1, () => done++))
  await Promise.resolve()
  for (const turns of [1, 2, 3]) {
    expect(done).toBe(turns * STEPS)
    await nextTurn()
  }
})

it('takes about ten milliseconds of each turn, looked at every 20 steps', async () => {
  let now = 0
  vi.spyOn(performance, 'now').mockImplementation(() => now)
  const turns: number[] = []
  let turn = 0
  inSmallSteps(
    repeat(60, () => {
      now += 1
      turns.push(turn)
    }),
  )
  for (; turns.length < 60; turn++) await nextTurn()
  expect(Math.max(...turns.map((each) => turns.filter((other) => other === each).length))).toBe(20)
})

it('goes on with the others if one fails', async () => {
  const queued: (() => void)[] = []
  vi.spyOn(globalThis, 'queueMicrotask').mockImplementation((run) => void queued.push(run))
  const step = vi.fn()
  inSmallSteps(
    repeat(1, () => {
      throw new Error('broken')
    }),
  )
  inSmallSteps(repeat(2, step))
  expect(queued).toHaveLength(1)
  expect(queued[0]).toThrow('broken')
  await vi.waitFor(() => expect(step).toHaveBeenCalledTimes(2))
})
