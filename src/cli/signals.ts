import { CommandError } from './options.js'

/** 128 plus the number of the signal. */
const EXIT_CODES = { SIGINT: 130, SIGTERM: 143, SIGHUP: 129 } as const

type Signal = keyof typeof EXIT_CODES

/** What can be ended in a better way than by closing the connection. */
export interface Interruption {
  /** At the first signal. Returns whether `run` will end without being aborted; `abort` aborts it later. */
  interrupted(signal: Signal, abort: () => void): boolean
  /** At the second one, before the process exits. */
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
    // What was to be ended has come to a good end nevertheless.
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
