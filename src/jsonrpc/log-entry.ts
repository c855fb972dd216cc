import type { Id } from './message.js'

/** A line for the operator's log: what a peer notices and does not report to the other side. */
export interface LogEntry {
  level: 'debug' | 'info' | 'warning' | 'error'
  message: string
  id?: Id
  error?: unknown
}
