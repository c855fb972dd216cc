/*
 * Server-sent events: encoding and parsing.
 * https://html.spec.whatwg.org/multipage/server-sent-events.html#parsing-an-event-stream
 */

/** One event. Without data it only sets the last event id or the reconnection time. */
export interface StreamEvent {
  data?: string
  id?: string
  /** The event type; `message` if there is none. */
  event?: string
  /** Reconnection time in milliseconds. */
  retry?: number
}

/** Encodes an event. A JSON message is one `data` line, which simple line-based readers rely on. */
export function encodeEvent({ id, event, retry, data }: StreamEvent): string {
  let text = ''
  if (id !== undefined) text += `id: ${id}\n`
  if (event !== undefined) text += `event: ${event}\n`
  if (retry !== undefined) text += `retry: ${retry}\n`
  if (data !== undefined) text += isOneLine(data) ? `data: ${data}\n` : linesOf(data)
  return `${text}\n`
}

/** A comment, which every reader ignores: keeps proxies from closing an idle connection. */
export const KEEP_ALIVE = ':\n\n'

function isOneLine(data: string): boolean {
  return !data.includes('\n') && !data.includes('\r')
}

function linesOf(data: string): string {
  return data
    .split(/\r\n|\n|\r/)
    .map((line) => `data: ${line}\n`)
    .join('')
}

/** Thrown for an event beyond the maximum length. */
export class EventTooLongError extends Error {
  override readonly name = 'EventTooLongError'
}

const MAX_SMALL_PARTS = 1024

/** A copy that does not share memory: in V8, a slice of a string keeps the whole string alive, such as that of a chunk. */
function copyOf(text: string): string {
  return ` ${text}`.slice(1)
}

/** A push parser: `push(bytes)`, then `next()` until it returns undefined. Also returns events without data if they have an id or a reconnection time. */
export class EventStreamParser {
  readonly #maxLength: number
  readonly #decoder = new TextDecoder()
  readonly #ends = /[\r\n]/g
  #queue: string[] = []
  #text = ''
  #at = 0
  /** The parts of a line that is not complete; many small ones are joined, as each takes more memory than its text. */
  #parts: string[] = []
  #smallParts: string[] = []
  #partial = 0
  #afterReturn = false
  /** The lines of data of an event that is not complete; many small ones are joined, too. */
  #data: string[] = []
  #smallData: string[] = []
  /** How many of these are copies. */
  #copied = 0
  #length = 0
  #current: StreamEvent = {}

  /** `maxLength`: maximum characters of the data of one event, so of at least as many bytes. */
  constructor(maxLength = 32 * 1024 * 1024) {
    this.#maxLength = maxLength
  }

  push(bytes: Uint8Array): void {
    // The decoder drops a byte order mark at the start, as the standard demands.
    this.#queue.push(this.#decoder.decode(bytes, { stream: true }))
  }

  /** The next complete event. Throws EventTooLongError. */
  next(): StreamEvent | undefined {
    for (let line = this.#line(); line !== undefined; line = this.#line()) {
      if (line === '') {
        const event = this.#dispatch()
        if (event !== undefined) return event
      } else this.#field(line)
    }
    return undefined
  }

  /** The next complete line. It ends with LF, CR or CR LF, which may be split between two chunks. */
  #line(): string | undefined {
    for (;;) {
      if (this.#at >= this.#text.length) {
        this.#release()
        const text = this.#queue.shift()
        if (text === undefined) return undefined
        this.#text = text
        this.#at = 0
        continue
      }
      const start = this.#afterReturn && this.#text[this.#at] === '\n' ? this.#at + 1 : this.#at
      this.#afterReturn = false
      this.#ends.lastIndex = start
      const end = this.#ends.exec(this.#text)?.index
      if (end === undefined) {
        this.#keep(this.#text.slice(start))
        this.#at = this.#text.length
        continue
      }
      const line = this.#kept() + this.#text.slice(start, end)
      this.#afterReturn = this.#text[end] === '\r'
      this.#at = end + 1
      return line
    }
  }

  /** The chunk has been read: what is kept of it must not keep all of it. */
  #release(): void {
    this.#text = ''
    this.#at = 0
    for (; this.#copied < this.#smallData.length; this.#copied++)
      this.#smallData[this.#copied] = copyOf(this.#smallData[this.#copied] ?? '')
  }

  #keep(part: string): void {
    this.#partial += part.length
    this.#limit(this.#length + this.#partial - 'data: '.length)
    if (part === '') return
    this.#smallParts.push(part)
    if (this.#smallParts.length < MAX_SMALL_PARTS) return
    this.#parts.push(this.#smallParts.join(''))
    this.#smallParts = []
  }

  /** The beginning of the line. */
  #kept(): string {
    if (this.#partial === 0) return ''
    const kept = this.#parts.join('') + this.#smallParts.join('')
    this.#parts = []
    this.#smallParts = []
    this.#partial = 0
    return kept
  }

  #limit(length: number): void {
    // One line break is not part of the data.
    if (length > this.#maxLength + 1)
      throw new EventTooLongError(`An event is longer than ${this.#maxLength} bytes`)
  }

  #field(line: string): void {
    const colon = line.indexOf(':')
    if (colon === 0) return
    const name = colon === -1 ? line : line.slice(0, colon)
    const value = colon === -1 ? '' : line.slice(line[colon + 1] === ' ' ? colon + 2 : colon + 1)
    switch (name) {
      case 'data':
        // With the line break that joins it to the next one.
        this.#length += value.length + 1
        this.#limit(this.#length)
        this.#addData(value)
        return
      case 'event':
        this.#current.event = copyOf(value)
        return
      case 'id':
        if (!value.includes('\0')) this.#current.id = copyOf(value)
        return
      case 'retry':
        if (/^\d+$/.test(value)) this.#current.retry = Number(value)
        return
      default:
    }
  }

  #addData(value: string): void {
    this.#smallData.push(value)
    if (this.#smallData.length < MAX_SMALL_PARTS) return
    this.#data.push(this.#smallData.join('\n'))
    this.#smallData = []
    this.#copied = 0
  }

  #takeData(): string | undefined {
    const parts = this.#data.length === 0 ? this.#smallData : [...this.#data, ...this.#smallData]
    if (parts.length === 0) return undefined
    this.#data = []
    this.#smallData = []
    this.#copied = 0
    return parts.join('\n')
  }

  #dispatch(): StreamEvent | undefined {
    const { id, event, retry } = this.#current
    const data = this.#takeData()
    this.#length = 0
    this.#current = {}
    if (data === undefined && id === undefined && retry === undefined) return undefined
    const found: StreamEvent = {}
    if (data !== undefined) {
      found.data = data
      if (event !== undefined && event !== '') found.event = event
    }
    if (id !== undefined) found.id = id
    if (retry !== undefined) found.retry = retry
    return found
  }
}
