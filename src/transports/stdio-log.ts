import type { Report } from '../jsonrpc/peer.js'

export type LogLevel = Report['level']
const LEVELS: readonly LogLevel[] = ['debug', 'info', 'warning', 'error']

/** Where log lines go: a stream such as process.stderr. */
export interface LogStream {
  write(line: string): unknown
  readonly isTTY?: boolean
}

/** Writes reports as JSON, one a line, or as readable text for a person at a terminal. */
export function logTo(stream: LogStream, lowest: LogLevel): (report: Report) => void {
  const format = stream.isTTY === true ? readable : structured
  const from = LEVELS.indexOf(lowest)
  return (report) => {
    if (LEVELS.indexOf(report.level) >= from) stream.write(format(report) + '\n')
  }
}

function structured({ level, message, id, error }: Report): string {
  const requestId = typeof id === 'bigint' ? String(id) : id
  return JSON.stringify({
    time: new Date().toISOString(),
    level,
    message,
    requestId,
    error: error === undefined ? undefined : stackOf(error),
  })
}

function readable({ level, message, id, error }: Report): string {
  const request = id === undefined ? '' : ` (request ${String(id)})`
  const detail = error === undefined ? '' : `\n${stackOf(error)}`
  return `${level}: ${message}${request}${detail}`
}

function stackOf(error: unknown): string {
  if (error instanceof Error) return error.stack ?? error.message
  try {
    return String(error)
  } catch {
    return 'something that has no text'
  }
}
