import { afterEach, beforeEach, vi } from 'vitest'

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

/** What the tests of a file send at once is served in one turn of the event loop, also on a machine that is slow. */
export function serveInOneTurn(): void {
  let restore = () => {}
  beforeEach(() => {
    const stopped = vi.spyOn(performance, 'now').mockReturnValue(0)
    restore = () => stopped.mockRestore()
  })
  afterEach(() => restore())
}
