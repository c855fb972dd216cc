import { CommandError } from './options.js'

/** 128 plus the number of the signal. */
const EXIT_CODES = { SIGINT: 130, SIGTERM: 143, SIGHUP: 129 } as const

/** Aborts on the first SIGINT, SIGTERM or SIGHUP, so that the server is closed; exits immediately on the second. `endsOnCtrlC`: SIGINT is the usual end, not an error. */
export async function abortOnSignal(
  run: (signal: AbortSignal) => Promise<void>,
  { endsOnCtrlC = false }: { endsOnCtrlC?: boolean } = {},
): Promise<void> {
  const controller = new AbortController()
  let exitCode = 0
  const stop = (signal: keyof typeof EXIT_CODES) => {
    if (exitCode !== 0) process.exit(exitCode)
    exitCode = EXIT_CODES[signal]
    controller.abort(new Error('Interrupted'))
  }
  const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const
  for (const signal of signals) process.on(signal, stop)
  try {
    await run(controller.signal)
  } catch (error) {
    if (exitCode === 0) throw error
  } finally {
    for (const signal of signals) process.off(signal, stop)
  }
  if (endsOnCtrlC && exitCode === EXIT_CODES.SIGINT) return
  if (exitCode !== 0) throw new CommandError(exitCode, 'Interrupted')
}
