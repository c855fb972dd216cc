import { fileURLToPath } from 'node:url'
import { type Target, memory, stdio } from '../../src/client.js'
import type { Server } from '../../src/index.js'
import type { Absent, Cell } from '../../src/testing.js'
import { httpSseTarget, httpTarget } from '../http/target.js'

/* The transports of the tests that run on each of them. A new transport gets a line in `targetsOf`. */

/** A server over every transport: `make` creates it, the script in test/interop starts it as a process. */
export function targetsOf(make: () => Server, script: string): Record<string, Target> {
  const path = fileURLToPath(new URL(`../interop/${script}`, import.meta.url))
  return {
    // A server may change: each connection has one of its own.
    memory: { open: () => memory(make()).open() },
    stdio: stdio(process.execPath, [path]),
    http: httpTarget(make),
    sse: httpSseTarget(make),
  }
}

/** Cells that exist for no scenario, and why. */
export const ABSENT: Absent = {
  'sse, 2026-07-28': 'HTTP+SSE has the revisions with a handshake only',
}

/** Milliseconds, generous for a busy machine. Never reached if the test passes. */
const LIMIT = 30_000

/** Names the cell and the phase that hangs. */
export async function inTime<Value>(
  cell: Cell,
  phase: string,
  done: Promise<Value>,
): Promise<Value> {
  let timer: ReturnType<typeof setTimeout> | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(
      () => reject(new Error(`${cell.name}: ${phase} has not ended after ${LIMIT / 1000} s`)),
      LIMIT,
    )
  })
  try {
    return await Promise.race([done, late])
  } finally {
    clearTimeout(timer)
  }
}
