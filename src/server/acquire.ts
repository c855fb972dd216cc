import type { LogEntry } from '../jsonrpc/log-entry.js'
import type { ChangeBus } from '../stores/change-bus.js'
import type { InternalServer } from './context.js'
import type { Serving } from './extensions.js'

/** Starts what a server needs while it is served, until the returned function is called: its extensions, and its change bus. */
export function acquire(
  server: InternalServer,
  report: (entry: LogEntry) => void,
  serving: Serving,
  bus: ChangeBus | undefined = server.bus,
): (() => Promise<void>) | undefined {
  const release = server.extensions?.acquire(server, report, serving)
  if (bus === undefined) return release
  try {
    const end = bus.share(server.changes, report)
    // Extensions may change something when they stop.
    return async () => {
      await release?.()
      await end()
    }
  } catch (error) {
    void release?.()
    throw error
  }
}

/** Throws for a value of the option `changes` that is no bus. */
export function checkBus(where: string, bus: unknown): void {
  if (typeof (bus as Partial<ChangeBus> | null)?.share !== 'function')
    throw new TypeError(
      `${where}: "changes" must be redis(…).changes of ccmcp/redis, or made with changeBus({ … }) of ccmcp/http`,
    )
}
