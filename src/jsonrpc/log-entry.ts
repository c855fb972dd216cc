import type { Id } from './message.js'

/** A line for the operator's log: what a peer notices and does not report to the other side. */
export interface LogEntry {
  level: 'debug' | 'info' | 'warning' | 'error'
  message: string
  /** Of the request that it belongs to. */
  id?: Id
  /** Identifies the session, if there is one. */
  session?: string
  /** Of the trace that was active, with telemetry. */
  trace?: TraceIds
  error?: unknown
}

/** As hexadecimal digits. */
export interface TraceIds {
  readonly traceId: string
  readonly spanId: string
}
