import { type Id, type Send, encodeNotification } from '../jsonrpc/message.js'
import type { LogEntry } from '../jsonrpc/log-entry.js'
import { LOG_LEVELS, type LogLevel } from '../protocol/model.js'
import type { LogMessage } from './registry.js'

/** One function per level; `data` is any JSON. */
export type Log = Readonly<Record<LogLevel, (data: unknown, logger?: string) => void>>

/** A log that passes its messages to `write`. */
export function makeLog(write: (message: LogMessage) => void): Log {
  const at =
    (level: LogLevel): Log[LogLevel] =>
    (data, logger) =>
      write(logger === undefined ? { level, data } : { level, data, logger })
  return {
    debug: at('debug'),
    info: at('info'),
    notice: at('notice'),
    warning: at('warning'),
    error: at('error'),
    critical: at('critical'),
    alert: at('alert'),
    emergency: at('emergency'),
  }
}

export function isLogLevel(value: unknown): value is LogLevel {
  return LOG_LEVELS.some((level) => level === value)
}

/** Whether a level is at least `lowest`. */
export function isWanted(level: LogLevel, lowest: LogLevel | undefined): boolean {
  return lowest !== undefined && LOG_LEVELS.indexOf(level) >= LOG_LEVELS.indexOf(lowest)
}

const UNWRITABLE = 'a value that cannot be written as JSON'

const SEVERITY: Readonly<Record<LogLevel, LogEntry['level']>> = {
  debug: 'debug',
  info: 'info',
  notice: 'info',
  warning: 'warning',
  error: 'error',
  critical: 'error',
  alert: 'error',
  emergency: 'error',
}

/** A log message as an entry of the log of this process, with the id of its request. */
export function logEntryOf({ level, data }: LogMessage, id?: Id): LogEntry {
  const message = typeof data === 'string' ? data : textOf(data)
  // Not { ...report, id }: such a copy for each message makes V8 enlarge the heap.
  return id === undefined
    ? { level: SEVERITY[level], message }
    : { level: SEVERITY[level], message, id }
}

function textOf(data: unknown): string {
  try {
    return JSON.stringify(data) ?? 'null'
  } catch {
    return UNWRITABLE
  }
}

export function sendLog(send: Send, { level, data, logger }: LogMessage): void {
  const method = 'notifications/message'
  const paramsOf = (value: unknown) => ({
    level,
    ...(logger === undefined ? {} : { logger }),
    data: value ?? null,
  })
  let params = paramsOf(data)
  let frame: string
  try {
    frame = encodeNotification(method, params)
  } catch {
    params = paramsOf(UNWRITABLE)
    frame = encodeNotification(method, params)
  }
  send(frame, { kind: 'notification', method, params })
}
