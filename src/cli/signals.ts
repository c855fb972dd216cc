import { CommandError } from './options.js'

/** 128 plus the number of the signal. */
const EXIT_CODES = { SIGINT: 130, SIGTERM: 143, SIGHUP: 129 } as const

type Signal = keyof typeof EXIT_CODES

/** Handles signals before the connection is closed, for example by cancelling a task. */
export interface Interruption {
  /** Called on the first signal. Returns true if `run` will end by itself; `abort` can still abort it. */
  interrupted(signal: Signal, abort: () => void): boolean
  /** Called on the second signal, before the process exits. */
  left(): void
}

/** Aborts on the first SIGINT, SIGTERM or SIGHUP, so that the server is closed; exits immediately on the second. `endsOnCtrlC`: SIGINT is the usual end, not an error. */
export async function abortOnSignal(
  run: (signal: AbortSignal) => Promise<void>,
  {
    endsOnCtrlC = false,
    interruption,
  }: { endsOnCtrlC?: boolean; interruption?: Interruption } = {},
): Promise<void> {
  const controller = new AbortController()
  let exitCode = 0
  let handled = false
  const abort = () => controller.abort(new Error('Interrupted'))
  const stop = (signal: Signal) => {
    if (exitCode !== 0) {
      interruption?.left()
      process.exit(exitCode)
    }
    exitCode = EXIT_CODES[signal]
    handled = interruption?.interrupted(signal, abort) === true
    if (!handled) abort()
  }
  const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const
  for (const signal of signals) process.on(signal, stop)
  try {
    await run(controller.signal)
    // It completed although it was interrupted.
    if (handled && !controller.signal.aborted) return
  } catch (error) {
    if (exitCode === 0) throw error
    if (handled && error instanceof CommandError) throw new CommandError(exitCode, error.message)
  } finally {
    for (const signal of signals) process.off(signal, stop)
  }
  if (endsOnCtrlC && exitCode === EXIT_CODES.SIGINT) return
  if (exitCode !== 0) throw new CommandError(exitCode, 'Interrupted')
}
