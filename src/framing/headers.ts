import {
  ChunkBuffer,
  FrameQueue,
  HEAD_BYTES,
  Tail,
  decode,
  decodeLossy,
  invalidOffset,
} from './bytes.js'
import type { Encoder, Frame, FrameLimits, FrameReader } from './frame.js'

const NEWLINE = 0x0a
const MAX_HEADER_BYTES = 8192
/** A field name as in HTTP, and a colon. */
const HEADER = /^[\w!#$%&'*+.^`|~-]+[ \t]*:/
const LENGTH = /^content-length$/i
const RESYNC_TOKEN = 'content-length:'

const encoder = new TextEncoder()

export const encodeWithHeader: Encoder = (message) =>
  `Content-Length: ${encoder.encode(message).length}\r\n\r\n${message}`

type State =
  /** Reading header lines until an empty one. */
  | { at: 'header'; lines: number; bytes: number; length?: number; fault?: string }
  /** Reading `length` bytes of a message. */
  | { at: 'body'; length: number }
  /** Skipping a message beyond the limit; its head is kept. */
  | { at: 'skip'; length: number; left: number }
  /** Skipping bytes until the next Content-Length: the position of the next message is unknown. */
  | { at: 'resync'; matched: number }

/** Reads messages with `Content-Length: N` headers, as in the Language Server Protocol. After an invalid header it continues at the next one. */
export class HeaderReader implements FrameReader {
  readonly #maxBytes: number
  readonly #ready = new FrameQueue()
  readonly #partial = new ChunkBuffer()
  #tail: Tail | undefined
  #state: State = { at: 'header', lines: 0, bytes: 0 }

  constructor({ maxBytes }: FrameLimits) {
    this.#maxBytes = maxBytes
  }

  next(): Frame | undefined {
    return this.#ready.next()
  }

  push(chunk: Uint8Array): void {
    let rest = chunk
    while (rest.length > 0) rest = rest.subarray(this.#step(rest))
  }

  end(): void {
    const state = this.#state
    if (state.at === 'body')
      this.#emit({ kind: 'truncated', missing: state.length - this.#partial.length })
    if (state.at === 'skip') this.#tooLong(state.length)
    if (
      state.at === 'header' &&
      (state.lines > 0 || decodeLossy(this.#partial.take()).trim() !== '')
    ) {
      this.#emit({ kind: 'invalid-header', reason: 'the input ended inside a header' })
    }
  }

  /** Consumes bytes of the chunk; returns how many. */
  #step(chunk: Uint8Array): number {
    const state = this.#state
    switch (state.at) {
      case 'header':
        return this.#header(chunk, state)
      case 'body': {
        const piece = chunk.subarray(0, state.length - this.#partial.length)
        this.#partial.add(piece)
        if (this.#partial.length === state.length) this.#message()
        return piece.length
      }
      case 'skip': {
        const piece = chunk.subarray(0, state.left)
        this.#partial.add(piece.subarray(0, HEAD_BYTES - this.#partial.length))
        this.#tail ??= new Tail(HEAD_BYTES)
        this.#tail.add(piece)
        state.left -= piece.length
        if (state.left === 0) this.#tooLong(state.length)
        return piece.length
      }
      case 'resync':
        return this.#search(chunk, state)
    }
  }

  #header(chunk: Uint8Array, state: State & { at: 'header' }): number {
    const newline = chunk.indexOf(NEWLINE)
    const end = newline === -1 ? chunk.length : newline
    const left = MAX_HEADER_BYTES - state.bytes
    if (end > left) {
      this.#startResync(`no message header within ${MAX_HEADER_BYTES} bytes`)
      return left
    }
    state.bytes += end
    this.#partial.add(chunk.subarray(0, end))
    if (newline === -1) return end
    const line = decodeLossy(this.#partial.take())
      .replace(/^\ufeff/, '')
      .trim()
    if (line !== '' && !HEADER.test(line)) {
      // Reported immediately: a client that sends JSON lines never sends the empty line that ends a header. The line may
      // contain the start of the next header, so it is pushed again.
      this.#startResync(`${JSON.stringify(line.slice(0, 60))} is not a header`)
      this.push(encoder.encode(`${line}\n`))
    } else if (line !== '') this.#headerLine(line, state)
    else if (state.lines > 0) this.#endHeader(state)
    return end + 1
  }

  #headerLine(line: string, state: State & { at: 'header' }): void {
    state.lines++
    const colon = line.indexOf(':')
    if (!LENGTH.test(line.slice(0, colon).trim())) return // other headers are ignored
    const value = line.slice(colon + 1).trim()
    const length = /^\d+$/.test(value) ? Number(value) : Number.NaN
    if (!Number.isSafeInteger(length))
      state.fault ??= `Content-Length "${value.slice(0, 60)}" is not a number of bytes`
    else if (state.length !== undefined && state.length !== length)
      state.fault ??= 'two different Content-Length headers'
    else state.length = length
  }

  #endHeader(state: State & { at: 'header' }): void {
    const { length, fault } = state
    if (fault !== undefined) this.#startResync(fault)
    else if (length === undefined) this.#startResync('the header has no Content-Length')
    else if (length > this.#maxBytes) this.#state = { at: 'skip', length, left: length }
    else if (length === 0) this.#startResync('Content-Length is 0')
    else this.#state = { at: 'body', length }
  }

  #message(): void {
    const bytes = this.#partial.take()
    const text = decode(bytes)
    this.#emit(text ?? { kind: 'not-utf8', offset: invalidOffset(bytes) })
  }

  #tooLong(size: number): void {
    const head = decodeLossy(this.#partial.take())
    this.#emit({
      kind: 'too-long',
      size,
      limit: this.#maxBytes,
      head,
      tail: decodeLossy(this.#tail?.take() ?? new Uint8Array(0)),
    })
  }

  #startResync(reason: string): void {
    this.#partial.take()
    this.#ready.push({ kind: 'invalid-header', reason })
    this.#state = { at: 'resync', matched: 0 }
  }

  /** Finds the next `Content-Length:`. It has only one `c`, its first letter, so after a mismatch no earlier start is missed. */
  #search(chunk: Uint8Array, state: State & { at: 'resync' }): number {
    for (let i = 0; i < chunk.length; i++) {
      const letter = (chunk[i] ?? 0) | 0x20
      if (letter === RESYNC_TOKEN.charCodeAt(state.matched)) state.matched++
      else state.matched = letter === RESYNC_TOKEN.charCodeAt(0) ? 1 : 0
      if (state.matched === RESYNC_TOKEN.length) {
        this.#state = { at: 'header', lines: 0, bytes: RESYNC_TOKEN.length }
        this.#partial.add(encoder.encode(RESYNC_TOKEN))
        return i + 1
      }
    }
    return chunk.length
  }

  #emit(frame: Frame): void {
    this.#ready.push(frame)
    this.#state = { at: 'header', lines: 0, bytes: 0 }
  }
}
