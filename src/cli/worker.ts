import { TASKS } from '../extensions/tasks/task-name.js'
import { checkServer } from '../server/context.js'
import type { Server } from '../index.js'
import { type ProcessLogLevel, logTo, standardError } from '../transports/stdio-log.js'
import { type Command, HELP } from './command.js'
import { type Arguments, UsageError } from './options.js'

/** Milliseconds between two checks whether the store of tasks can be used, if it could not. */
const CHECK = 1000

export const worker: Command = {
  usage: 'worker FILE [options]',
  description:
    'Runs the tasks of the server that a module exports, and serves no clients. The tasks are in a store that processes share: redis() of ccmcp/redis.',
  notes: `On SIGTERM or SIGINT it takes no more tasks, waits for --drain seconds, interrupts what still runs, and leaves
it to other workers at once; then it exits with 0. A second signal exits immediately.

Exit codes: 0 ended by a signal, 1 the module fails while it is loaded, 2 an invalid command line, file or server.`,
  options: {
    concurrency: {
      value: 'N',
      description: 'maximum tasks at the same time (default: that of tasks() in the module)',
    },
    drain: {
      value: 'SECONDS',
      description: 'time for running tasks to end after a signal (default 0)',
    },
    'log-level': {
      value: ['debug', 'info', 'warning', 'error'],
      description: 'minimum log level (default info)',
    },
    ...HELP,
  },
  positionals: [1, 1],
  run: runWorker,
}

async function runWorker({ values, positionals: [file = ''] }: Arguments): Promise<void> {
  const concurrency = numberOf('concurrency', values, 1)
  const drain = numberOf('drain', values, 0)
  const { loadServer } = await import('./module.js')
  const server = await loadServer(file, {}, 'worker')
  // It was checked against the option's values.
  const level = (values.get('log-level') ?? 'info') as ProcessLogLevel
  const release = start(server, file, level, {
    ...(concurrency === undefined ? {} : { concurrency }),
    ...(drain === undefined ? {} : { drain: drain * 1000 }),
  })
  standardError.write(`ccmcp: running the tasks of ${file}\n`)
  await signalled(() => checkStores(server))
  await release()
  process.exit()
}

function start(
  server: Server,
  file: string,
  level: ProcessLogLevel,
  options: { concurrency?: number; drain?: number },
): () => Promise<void> {
  const internal = checkServer(server)
  const hasTasks = [...(internal.extensions ?? [])].some(({ id }) => id === TASKS)
  if (internal.extensions === undefined || !hasTasks)
    throw new UsageError(
      `The server of ${file} has no tasks; add tasks({ store }) to its "extensions"`,
    )
  try {
    const serving = { remote: true, worker: options }
    return internal.extensions.acquire(internal, logTo(standardError, level), serving)
  } catch (error) {
    throw new UsageError(
      `Cannot run the tasks of ${file}: ${error instanceof Error ? error.message : String(error)}`,
    )
  }
}

/** Resolves on the first SIGINT or SIGTERM; a second one exits. Until then, calls `check` every second. */
function signalled(check: () => void): Promise<void> {
  return new Promise<void>((resolve) => {
    // It keeps the process running, too.
    const timer = setInterval(check, CHECK)
    let stopping = false
    // Never removed: a second signal that comes at the same time would be lost.
    const stop = () => {
      if (stopping) process.exit()
      stopping = true
      clearInterval(timer)
      resolve()
    }
    for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, stop)
  })
}

/** Reopens stores that could not be opened. In a server, requests do this; a worker receives none. */
function checkStores(server: Server): void {
  for (const extension of checkServer(server).extensions ?? []) extension.available?.()
}

function numberOf(
  name: string,
  values: ReadonlyMap<string, string>,
  least: number,
): number | undefined {
  const text = values.get(name)
  if (text === undefined) return undefined
  const value = Number(text)
  if (!/^\d{1,9}$/.test(text) || value < least)
    throw new UsageError(
      `--${name} must be an integer of ${least} or more, not ${JSON.stringify(text)}`,
    )
  return value
}
