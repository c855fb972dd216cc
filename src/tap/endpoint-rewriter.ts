import { withOrigin } from './http-heads.js'
import { parseUrl } from '../runtime.js'

/** Bytes of an event that are held back; a longer one is not an endpoint. */
const MAX_HELD = 16 * 1024
/** The end of a line and an empty line. */
const EVENT_END = /(?:\r\n|\n|\r(?!\n))(?:\r\n|\n|\r)/
/** Characters of an end that may be there before the rest of it. */
const END_LENGTH = 4
const ABSOLUTE = /^(?:https?:)?\/\//i

export interface Rewritten {
  /** The position of the URL in the body as the server has sent it. */
  offset: number
  length: number
  from: string
  to: string
}

/**
 * In HTTP+SSE the first event names the URL for messages. If that is absolute, clients would bypass the tap, or refuse
 * it. Until this event is complete its bytes are held back; a client could not use them earlier.
 */
export class EndpointRewriter {
  readonly #server: string
  readonly #local: string
  #held: Buffer = Buffer.alloc(0)
  /** The position of the held bytes. */
  #position = 0
  /** So many of the held bytes have no end of an event. */
  #searched = 0
  #isDone = false

  /** Origins: of the server, and of the tap. */
  constructor(server: string, local: string) {
    this.#server = server
    this.#local = local
  }

  /** The bytes to forward now. */
  push(bytes: Buffer, rewritten: (change: Rewritten) => void): Buffer {
    if (this.#isDone) return bytes
    this.#held = this.#held.length === 0 ? bytes : Buffer.concat([this.#held, bytes])
    const ready: Buffer[] = []
    while (!this.#isDone) {
      // Latin-1 has one character for each byte.
      const text = this.#held.toString('latin1', this.#searched, MAX_HELD)
      const found = EVENT_END.exec(text)
      if (found === null && this.#held.length < MAX_HELD) {
        this.#searched = Math.max(0, this.#held.length - END_LENGTH)
        break
      }
      const end =
        found === null ? this.#held.length : this.#searched + found.index + found[0].length
      const event = this.#held.subarray(0, end)
      ready.push(...this.#event(event.toString('latin1', 0, MAX_HELD), event, rewritten))
      this.#searched = 0
      this.#held = this.#held.subarray(end)
      this.#position += end
    }
    if (this.#isDone) ready.push(this.end())
    return ready.length === 1 ? (ready[0] ?? this.#held) : Buffer.concat(ready)
  }

  /** What is still held back. */
  end(): Buffer {
    const held = this.#held
    this.#held = Buffer.alloc(0)
    this.#isDone = true
    return held
  }

  #event(text: string, bytes: Buffer, rewritten: (change: Rewritten) => void): Buffer[] {
    // A comment may come first.
    this.#isDone = /^(?:data|event|id|retry)\b/m.test(text)
    const isEndpoint = /^event: ?endpoint$/m.test(text.replaceAll('\r', '\n'))
    const data = /^data: ?(.*)$/m.exec(text.replaceAll('\r', '\n'))
    const url = (data?.[1] ?? '').trimEnd()
    if (!isEndpoint || data === null || !ABSOLUTE.test(url)) return [bytes]
    if (parseUrl(url, this.#server)?.origin !== this.#server) return [bytes]
    const start = data.index + data[0].indexOf(url)
    const to = withOrigin(url, this.#local)
    const { length } = url
    rewritten({ offset: this.#position + start, length, from: url, to })
    return [bytes.subarray(0, start), Buffer.from(to, 'latin1'), bytes.subarray(start + length)]
  }
}
