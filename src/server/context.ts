import type { Incoming } from '../jsonrpc/incoming.js'
import type { LogEntry } from '../jsonrpc/log-entry.js'
import type { Connection, ServedCall } from './call.js'
import type { Server } from './server.js'
import type { CacheHint, LogLevel } from '../protocol/model.js'
import type { Subscriptions } from './subscriptions.js'

/** All that serving one request may need. */
export interface Context {
  readonly server: Server
  readonly connection: Connection
  readonly call: ServedCall
  readonly incoming: Incoming
  watching(): Subscriptions
  /** How long the result may be kept, where the definition says so. */
  cache?: CacheHint
  /** Sets the lowest level of log messages for the rest of the session. */
  setLogLevel(level: LogLevel): void
  report(report: LogEntry): void
  /** Whether the caller may be anybody: it is told no internals, and needs the scopes that definitions ask for. */
  readonly remote: boolean
}
