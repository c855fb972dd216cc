import { ignore } from '../jsonrpc/hook.js'
import { isThenable } from '../jsonrpc/message.js'

/** Where log lines are written: a stream such as process.stderr, or any object with `write`. */
export interface LogStream {
  write(line: string): unknown
  readonly isTTY?: boolean
}

/** A logger such as that of pino: each level takes fields and a message. */
export interface Logger {
  debug(fields: object, message: string): unknown
  info(fields: object, message: string): unknown
  warn(fields: object, message: string): unknown
  error(fields: object, message: string): unknown
}

/** The part of a Node stream that is used. */
interface NodeStream extends LogStream {
  write(text: string | Uint8Array, done?: () => void): boolean
  on(event: 'error', listener: () => void): unknown
}

/** Maximum bytes that are buffered for a slow reader; lines beyond are dropped. */
const MAX_WAITING = 1_048_576

const writers = new WeakMap<LogStream, LogWriter>()

/**
 * Writes to a stream whose reader may be slow or disconnected. Neither ends the process, and at most MAX_WAITING bytes are
 * buffered. Dropped lines are counted, and the count is written when the reader has caught up.
 */
export class LogWriter {
  readonly #stream: LogStream
  readonly #note: (dropped: number) => string
  /** Bytes that the stream has not confirmed. */
  #waiting = 0
  #dropped = 0

  private constructor(stream: LogStream, note: (dropped: number) => string) {
    this.#stream = stream
    this.#note = note
    // Without a listener, an error of the stream (EPIPE) ends the process.
    if (isNodeStream(stream)) stream.on('error', ignore)
  }

  /** The writer of a stream: all users of the stream share it and its limit. `note` formats the count of dropped lines. */
  static of(stream: LogStream, note: (dropped: number) => string): LogWriter {
    const known = writers.get(stream)
    if (known !== undefined) return known
    const made = new LogWriter(stream, note)
    writers.set(stream, made)
    return made
  }

  /** Writes or drops the text; never throws. Returns false if the reader is slow, like `stream.write`. */
  write(text: string | Uint8Array, done: () => void = ignore): boolean {
    this.#reportDropped()
    const size = sizeOf(text)
    if (this.#waiting === 0 || this.#waiting + size <= MAX_WAITING)
      return this.#send(text, size, done)
    this.#dropped++
    queueMicrotask(done)
    return false
  }

  #send(text: string | Uint8Array, size: number, done: () => void): boolean {
    let pending = true
    const settled = () => {
      if (!pending) return
      pending = false
      this.#waiting -= size
      done()
      if (this.#waiting <= MAX_WAITING / 2) this.#reportDropped()
    }
    this.#waiting += size
    try {
      if (isNodeStream(this.#stream)) return this.#stream.write(text, settled)
      const written: unknown = this.#stream.write(
        typeof text === 'string' ? text : new TextDecoder().decode(text),
      )
      if (!isThenable(written)) settled()
      else Promise.resolve(written).then(settled, settled)
      return !pending
    } catch {
      // The line is lost: an exception of the stream must not reach the code that logs.
      this.#dropped++
      pending = false
      this.#waiting -= size
      queueMicrotask(done)
      return false
    }
  }

  #reportDropped(): void {
    const dropped = this.#dropped
    if (dropped === 0 || this.#waiting > MAX_WAITING / 2) return
    this.#dropped = 0
    const note = this.#note(dropped)
    this.#send(note, sizeOf(note), ignore)
    // If the note was dropped too, the count stays as it was.
    if (this.#dropped > 0) this.#dropped = dropped
  }
}

/** In bytes if the runtime has Buffer, which counts without encoding; otherwise in UTF-16 units. */
function sizeOf(text: string | Uint8Array): number {
  return typeof text === 'string'
    ? (globalThis.Buffer?.byteLength(text) ?? text.length)
    : text.length
}

function isNodeStream(stream: LogStream): stream is NodeStream {
  return 'writableLength' in stream && 'on' in stream && typeof stream.on === 'function'
}
