import { ignore } from '../jsonrpc/hook.js'
import { isThenable } from '../jsonrpc/message.js'

/** Where log lines go: a stream such as process.stderr, or anything that takes lines. */
export interface LogStream {
  write(line: string): unknown
  readonly isTTY?: boolean
}

/** What is needed of a Node stream. */
interface NodeStream extends LogStream {
  write(text: string | Uint8Array, done?: () => void): boolean
  on(event: 'error', listener: () => void): unknown
}

/** How many bytes may wait for a reader; what comes then is dropped. */
const MAX_WAITING = 1_048_576

const writers = new WeakMap<LogStream, LogWriter>()

/**
 * Writes to a stream whose reader may be slow or gone. Neither ends the process, and no more than MAX_WAITING bytes wait:
 * what is dropped is counted, and told when there is room again.
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
    // Without a listener, the loss of a pipe ends the process.
    if (isNodeStream(stream)) stream.on('error', ignore)
  }

  /** The one writer of a stream: all that write to it share its limit. `note` says how many writes were dropped. */
  static of(stream: LogStream, note: (dropped: number) => string): LogWriter {
    const known = writers.get(stream)
    if (known !== undefined) return known
    const made = new LogWriter(stream, note)
    writers.set(stream, made)
    return made
  }

  /** Writes, or drops; never throws. False where the reader is behind, as a stream says it. */
  write(text: string | Uint8Array, done: () => void = ignore): boolean {
    this.#tellDropped()
    const size = sizeOf(text)
    if (this.#waiting === 0 || this.#waiting + size <= MAX_WAITING)
      return this.#put(text, size, done)
    this.#dropped++
    queueMicrotask(done)
    return false
  }

  #put(text: string | Uint8Array, size: number, done: () => void): boolean {
    let pending = true
    const settled = () => {
      if (!pending) return
      pending = false
      this.#waiting -= size
      done()
      if (this.#waiting <= MAX_WAITING / 2) this.#tellDropped()
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
      // It is lost: a stream that fails must not fail whoever logs.
      this.#dropped++
      pending = false
      this.#waiting -= size
      queueMicrotask(done)
      return false
    }
  }

  #tellDropped(): void {
    const dropped = this.#dropped
    if (dropped === 0 || this.#waiting > MAX_WAITING / 2) return
    this.#dropped = 0
    const note = this.#note(dropped)
    this.#put(note, sizeOf(note), ignore)
    // Where that was lost as well, it counts no line of its own.
    if (this.#dropped > 0) this.#dropped = dropped
  }
}

/** In bytes. Not every runtime has a Buffer, which counts without encoding. */
function sizeOf(text: string | Uint8Array): number {
  return typeof text === 'string'
    ? (globalThis.Buffer?.byteLength(text) ?? text.length)
    : text.length
}

function isNodeStream(stream: LogStream): stream is NodeStream {
  return 'writableLength' in stream && 'on' in stream && typeof stream.on === 'function'
}
