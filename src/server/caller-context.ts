import type { Principal } from '../jsonrpc/channel.js'
import type { LogEntry } from '../jsonrpc/log-entry.js'
import type { Implementation, LogLevel } from '../protocol/model.js'
import { keptCapabilities, keptInfo } from '../protocol/revisions/client-facts.js'
import type { RequestMeta } from '../protocol/revisions/request-meta.js'
import type { Revision } from '../protocol/revisions/index.js'
import type { Caller, Connection } from './call.js'

/** A class: a literal with a getter would be a shape of its own each time, which costs more than the call. */
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

/** A request of up to so many characters is worth no copy of what it says about its sender. */
const SHORT = 4096

/** Who sends a request that describes itself, which has so many characters: a call may last for hours, and keeps no more than it has to. */
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
