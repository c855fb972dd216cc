import { expect } from 'vitest'
import { type Call, type Tool, createServer } from '../../src/index.js'
import { type TasksOptions, tasks } from '../../src/tasks.js'

export const serverOf = (tools: readonly Tool[], options: TasksOptions = {}) =>
  createServer({ name: 'x', version: '1', tools, extensions: [tasks(options)] })

/** Waits in turns of the event loop, whatever the clock is. */
export async function until(condition: () => boolean): Promise<void> {
  const end = performance.now() + 60_000
  while (!condition() && performance.now() < end)
    await new Promise((resolve) => setImmediate(resolve))
  expect(condition()).toBe(true)
}

/** A handler that waits until it is told what to do. */
export function controlled() {
  const runs: {
    call: Call
    resolve: (value: unknown) => void
    reject: (error: unknown) => void
  }[] = []
  const run = (_: unknown, call: Call) =>
    new Promise<unknown>((resolve, reject) => {
      call.signal.addEventListener('abort', () => reject(call.signal.reason as Error))
      runs.push({ call, resolve, reject })
    })
  const begun = async (index = 0) => {
    await until(() => runs.length > index)
    return runs[index] as (typeof runs)[number] // it has begun
  }
  return { run, runs, begun }
}
