import { type Send, encodeNotification } from '../jsonrpc/message.js'
import type { Report } from '../jsonrpc/report.js'
import { LOG_LEVELS, type LogLevel } from '../protocol/model.js'
import type { LogMessage } from './registry.js'

/** One function a level; `data` is any JSON. */
export type Log = Readonly<Record<LogLevel, (data: unknown, logger?: string) => void>>

export function makeLog(write: (message: LogMessage) => void): Log {
  const functions = LOG_LEVELS.map((level) => [
    level,
    (data: unknown, logger?: string) => write(logger === undefined ? { level, data } : { level, data, logger }),
  ])
  return Object.fromEntries(functions) as Log // a function for each of the levels
}

export function isLogLevel(value: unknown): value is LogLevel {
  return LOG_LEVELS.some((level) => level === value)
}

/** Whether a message is wanted by somebody who wants `lowest` and what is above it. */
export function isWanted(level: LogLevel, lowest: LogLevel | undefined): boolean {
  return lowest !== undefined && LOG_LEVELS.indexOf(level) >= LOG_LEVELS.indexOf(lowest)
}

const UNWRITABLE = 'a value that cannot be written as JSON'

const SEVERITY: Readonly<Record<LogLevel, Report['level']>> = {
  debug: 'debug',
  info: 'info',
  notice: 'info',
  warning: 'warning',
  error: 'error',
  critical: 'error',
  alert: 'error',
  emergency: 'error',
}

/** A log message as a line of the log of this process. */
export function reportOf({ level, data }: LogMessage): Report {
  return { level: SEVERITY[level], message: typeof data === 'string' ? data : textOf(data) }
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
  const paramsOf = (value: unknown) => ({ level, ...(logger === undefined ? {} : { logger }), data: value ?? null })
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
