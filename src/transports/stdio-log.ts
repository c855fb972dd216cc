import { callHook, ignore } from '../jsonrpc/hook.js'
import type { LogEntry } from '../jsonrpc/log-entry.js'
import { truncate } from '../jsonrpc/truncate.js'
import { type LogStream, LogWriter, type Logger } from './log-writer.js'

export type ProcessLogLevel = LogEntry['level']
const LEVELS: readonly ProcessLogLevel[] = ['debug', 'info', 'warning', 'error']

/** Maximum characters of a message, and of an error with its stack. */
const MAX_MESSAGE = 8192
const MAX_ERROR = 16_384

/** Throws for values of the options `log` and `logLevel` that TypeScript would reject. */
export function checkLog(log: unknown, level: unknown): void {
  if (level !== undefined && !LEVELS.some((known) => known === level))
    throw new TypeError(
      `"logLevel" must be one of ${LEVELS.join(', ')}, not ${JSON.stringify(level)}${level === 'warn' ? '; did you mean "warning"?' : ''}`,
    )
  const { write, warn } = Object(log) as Partial<LogStream & Logger> // to be checked
  if (log !== undefined && typeof (write ?? warn) !== 'function')
    throw new TypeError(
      '"log" must be an object with write(line), or a logger such as that of pino',
    )
}

/** Passes log entries to a logger, or writes them as JSON lines, or as readable text to a terminal. */
export function logTo(
  log: LogStream | Logger,
  lowest: ProcessLogLevel | undefined,
): (report: LogEntry) => void {
  // A logger has a level of its own.
  const from = LEVELS.indexOf(lowest ?? (isLogger(log) ? 'debug' : 'warning'))
  return (report) => {
    if (LEVELS.indexOf(report.level) < from) return
    // A log that fails must not affect the client.
    callHook(() => (isLogger(log) ? passTo(log, report) : writeTo(log, report)), ignore)
  }
}

function isLogger(log: LogStream | Logger): log is Logger {
  return !('write' in log) && typeof log.warn === 'function'
}

function passTo(logger: Logger, report: LogEntry): unknown {
  const { level, message, error } = report
  const fields: Record<string, unknown> = idsOf(report)
  if (error !== undefined) {
    const stack = stackOf(error)
    const short = error instanceof Error && stack.length <= MAX_ERROR
    fields['err'] = short ? error : { stack: truncate(stack, MAX_ERROR) }
  }
  return logger[level === 'warning' ? 'warn' : level](fields, truncate(message, MAX_MESSAGE))
}

function writeTo(stream: LogStream, report: LogEntry): void {
  writerOf(stream).write(lineOf(report, stream))
}

/** The ids of what an entry belongs to. */
function idsOf({ id, session, trace }: LogEntry): Record<string, unknown> {
  return {
    ...(id !== undefined && { requestId: typeof id === 'bigint' ? String(id) : id }),
    ...(session !== undefined && { sessionId: session }),
    ...trace,
  }
}

/** The stderr of this process. If the host closes it or never reads it, the process neither ends nor runs out of memory. */
class StandardError implements LogStream {
  get isTTY(): boolean {
    return process.stderr.isTTY
  }

  write(text: string | Uint8Array, done?: () => void): boolean {
    return writerOf(this).write(text, done)
  }

  /** Creates the stream with an error handler. That takes time, so it is not done before the first response. */
  open(): void {
    writerOf(this)
  }
}

export const standardError = new StandardError()

function writerOf(stream: LogStream): LogWriter {
  const real: LogStream = stream === standardError ? process.stderr : stream
  return LogWriter.of(real, (dropped) =>
    lineOf(
      {
        level: 'warning',
        message: `${dropped} log lines were dropped: the reader of the log is too slow`,
      },
      real,
    ),
  )
}

function lineOf(report: LogEntry, { isTTY }: LogStream): string {
  return `${(isTTY === true ? readable : structured)(report)}\n`
}

function structured(report: LogEntry): string {
  const { level, message, error } = report
  return JSON.stringify({
    time: new Date().toISOString(),
    level,
    message: truncate(message, MAX_MESSAGE),
    ...idsOf(report),
    error: error === undefined ? undefined : truncate(stackOf(error), MAX_ERROR),
  })
}

function readable({ level, message, id, session, trace, error }: LogEntry): string {
  const ids = [
    id === undefined ? [] : `request ${String(id)}`,
    session === undefined ? [] : `session ${session}`,
    trace === undefined ? [] : `trace ${trace.traceId}`,
  ].flat()
  const request = ids.length === 0 ? '' : ` (${ids.join(', ')})`
  const detail = error === undefined ? '' : `\n${truncate(stackOf(error), MAX_ERROR)}`
  return escapeControls(
    `${level}: ${truncate(message, MAX_MESSAGE).replaceAll('\n', '\\n')}${request.replaceAll('\n', '\\n')}${detail}`,
  )
}

/** Escapes control characters: text of a client must not control the terminal. */
function escapeControls(text: string): string {
  return text.replaceAll(
    /[\u0000-\u0009\u000b-\u001f\u007f-\u009f]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )
}

/** Maximum depth of `cause` chains. */
const MAX_CAUSES = 5

function stackOf(error: unknown, depth = 0): string {
  try {
    if (!(error instanceof Error)) return String(error)
    const text = String(error.stack ?? error.message)
    return error.cause === undefined || depth === MAX_CAUSES
      ? text
      : `${text}\ncaused by ${stackOf(error.cause, depth + 1)}`
  } catch {
    return 'a thrown value that cannot be converted to text'
  }
}

export type { LogStream, Logger } from './log-writer.js'
