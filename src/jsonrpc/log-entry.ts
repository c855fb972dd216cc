import type { Id } from './message.js'

/** What a peer notices that concerns no caller: for the log. */
export interface LogEntry {
  level: 'debug' | 'info' | 'warning' | 'error'
  message: string
  id?: Id
  error?: unknown
}
