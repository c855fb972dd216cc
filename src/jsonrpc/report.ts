import type { Id } from './message.js'

/** What a peer notices that concerns no caller: for the log. */
export interface Report {
  level: 'debug' | 'info' | 'warning' | 'error'
  message: string
  id?: Id
  error?: unknown
}
