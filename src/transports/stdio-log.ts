import type { Report } from '../jsonrpc/report.js'

export type LogLevel = Report['level']
const LEVELS: readonly LogLevel[] = ['debug', 'info', 'warning', 'error']

/** Where log lines go: a stream such as process.stderr. */
export interface LogStream {
  write(line: string): unknown
  readonly isTTY?: boolean
}

/** Writes reports as JSON, one a line, or as readable text for a person at a terminal. */
export function logTo(stream: LogStream, lowest: LogLevel): (report: Report) => void {
  const from = LEVELS.indexOf(lowest)
  return (report) => {
    if (LEVELS.indexOf(report.level) < from) return
    try {
      stream.write((stream.isTTY === true ? readable : structured)(report) + '\n')
    } catch {
      // Who cannot be told is not told; the client is served all the same.
    }
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
  return visible(`${level}: ${message.replaceAll('\n', '\\n')}${request.replaceAll('\n', '\\n')}${detail}`)
}

/** Control characters as escapes: what a client calls itself must not steer the terminal. */
function visible(text: string): string {
  return text.replaceAll(
    /[\u0000-\u0009\u000b-\u001f\u007f-\u009f]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )
}

/** How many causes of causes are told. */
const MAX_CAUSES = 5

function stackOf(error: unknown, depth = 0): string {
  try {
    if (!(error instanceof Error)) return String(error)
    const text = String(error.stack ?? error.message)
    return error.cause === undefined || depth === MAX_CAUSES ? text : `${text}\ncaused by ${stackOf(error.cause, depth + 1)}`
  } catch {
    return 'something that has no text'
  }
}
