import { vi } from 'vitest'

/**
 * Runs a test on a clock that only the test moves, so that a slow machine makes
 * no difference. `pass` lets milliseconds pass, with the timers that are due in
 * them; sockets and immediates work as ever.
 */
export async function onStillClock(
  test: (pass: (milliseconds: number) => Promise<unknown>) => Promise<void>,
): Promise<void> {
  vi.useFakeTimers({
    toFake: ['Date', 'setTimeout', 'clearTimeout', 'setInterval', 'clearInterval'],
  })
  try {
    await test((milliseconds) => vi.advanceTimersByTimeAsync(milliseconds))
  } finally {
    vi.useRealTimers()
  }
}
