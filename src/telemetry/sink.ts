import type { TraceIds } from '../jsonrpc/log-entry.js'
import type { Params } from '../jsonrpc/message.js'
import type { Activity, Carrier, Outcome, Telemetry } from '../protocol/telemetry.js'

/** Records activities. What it throws is logged and has no other effect. */
export interface Sink extends Telemetry {
  /** Called when something begins; undefined if the rest is of no interest. */
  begin(activity: Activity, params?: Params): Observation | undefined
  /** Returns a function that runs something in the context that is active now. */
  capture?(): (work: () => void) => void
  /** The trace context that is active now, as members of `_meta`. */
  carrier?(): Carrier | undefined
  /** The ids of the trace that is active now, for the log. */
  trace?(): TraceIds | undefined
}

export interface Observation {
  /** Runs the work, so that what it starts belongs to this activity. */
  run?(work: () => void): void
  /** Added to the `_meta` of a request that is sent. */
  readonly meta?: Carrier | undefined
  end(outcome: Outcome): void
}
