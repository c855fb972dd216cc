import type { Principal } from '../jsonrpc/channel.js'
import type { LogEntry } from '../jsonrpc/log-entry.js'
import type { Implementation, LogLevel } from '../protocol/model.js'
import { keptCapabilities, keptInfo } from '../protocol/revisions/client-facts.js'
import type { RequestMeta } from '../protocol/revisions/request-meta.js'
import type { Revision } from '../protocol/revisions/index.js'
import type { Caller, Connection } from './call.js'

/** A class, because each object literal with a getter gets a hidden class of its own, which is slow. */
export class CallerContext implements Connection {
  readonly revision: Revision
  readonly caller: Caller
  readonly report: (report: LogEntry) => void
  readonly #level: () => LogLevel | undefined

  constructor(
    revision: Revision,
    caller: Caller,
    level: () => LogLevel | undefined,
    report: (report: LogEntry) => void,
  ) {
    this.revision = revision
    this.caller = caller
    this.report = report
    this.#level = level
  }

  get logLevel(): LogLevel | undefined {
    return this.#level()
  }
}

/** Up to this length of a request, its client description is not copied. */
const SHORT = 4096

/** The caller of a stateless request of `length` characters. A call may last for hours, so that of a long one only a bounded copy is stored. */
export function callerOf(
  { revision, capabilities, info }: RequestMeta,
  principal: Principal | undefined,
  length = 0,
): Caller {
  const short = length <= SHORT
  return {
    info: short ? (info as Implementation | undefined) : keptInfo(info), // as the client describes itself
    capabilities: short ? capabilities : keptCapabilities(capabilities),
    revision: revision.id,
    principal,
  }
}
