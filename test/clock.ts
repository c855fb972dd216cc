import { vi } from 'vitest'

/**
 * Runs a test with fake timers, so that it does not depend on the speed of the
 * machine. `pass` advances the clock by milliseconds and runs the timers that are
 * due; sockets and immediates are real.
 */
export async function onStillClock(
  test: (pass: (milliseconds: number) => Promise<unknown>) => Promise<void>,
): Promise<void> {
  vi.useFakeTimers({
    toFake: ['Date', 'performance', 'setTimeout', 'clearTimeout', 'setInterval', 'clearInterval'],
  })
  try {
    await test((milliseconds) => vi.advanceTimersByTimeAsync(milliseconds))
  } finally {
    vi.useRealTimers()
  }
}
