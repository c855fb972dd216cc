import type { Report } from '../jsonrpc/report.js'
import type { Connection, ServedCall } from './call.js'
import type { Server } from './server.js'

/** All that serving one request may need. */
export interface Context {
  readonly server: Server
  readonly connection: Connection
  readonly call: ServedCall
  report(report: Report): void
}
