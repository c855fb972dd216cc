import type { Incoming } from '../jsonrpc/incoming.js'
import type { Report } from '../jsonrpc/report.js'
import type { Connection, ServedCall } from './call.js'
import type { Server } from './server.js'
import type { CacheHint, LogLevel } from '../protocol/model.js'
import type { Watching } from './watching.js'

/** All that serving one request may need. */
export interface Context {
  readonly server: Server
  readonly connection: Connection
  readonly call: ServedCall
  readonly incoming: Incoming
  watching(): Watching
  /** How long the result may be kept, where the definition says so. */
  cache?: CacheHint
  /** Sets the lowest level of log messages for the rest of the session. */
  setLogLevel(level: LogLevel): void
  report(report: Report): void
  /** Whether the caller may be anybody: it is told no internals, and needs the scopes that definitions ask for. */
  readonly remote: boolean
}
