import type { Principal } from '../jsonrpc/channel.js'
import type { Report } from '../jsonrpc/report.js'
import type { Implementation, LogLevel } from '../protocol/model.js'
import type { Description } from '../protocol/revisions/identify.js'
import type { Revision } from '../protocol/revisions/index.js'
import type { Caller, Connection } from './call.js'

/** A class: a literal with a getter would be a shape of its own each time, which costs more than the call. */
export class SpokenConnection implements Connection {
  readonly revision: Revision
  readonly caller: Caller
  readonly report: (report: Report) => void
  readonly #level: () => LogLevel | undefined

  constructor(revision: Revision, caller: Caller, level: () => LogLevel | undefined, report: (report: Report) => void) {
    this.revision = revision
    this.caller = caller
    this.report = report
    this.#level = level
  }

  get logLevel(): LogLevel | undefined {
    return this.#level()
  }
}

/** Who sends a request that describes itself. */
export function callerOf({ revision, capabilities, info }: Description, principal: Principal | undefined): Caller {
  return { info: info as Implementation | undefined, capabilities, revision: revision.id, principal } // as the client describes itself
}
