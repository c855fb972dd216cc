/**
 * What a frame reader hands out: the text of one message, or the reason why
 * some bytes were not a message. Readers know bytes and UTF-8, nothing of JSON.
 */
export type Frame = string | Fault

export type Fault =
  /** A message longer than the limit; `head` and `tail` are its ends, what is between was skipped unseen. */
  | { kind: 'too-long'; size: number; limit: number; head: string; tail: string }
  /** A message with a byte that is not UTF-8, at `offset` within the message. */
  | { kind: 'not-utf8'; offset: number }
  /** A header block that does not say how long its message is. */
  | { kind: 'bad-header'; reason: string }
  /** Content-Length framing where one message per line is expected; `head` is the first header. */
  | { kind: 'wrong-framing'; head: string }
  /** The input ended in the middle of a message. */
  | { kind: 'truncated'; missing: number }

/** A push parser: bytes go in by `push`, frames come out by `next`. */
export interface FrameReader {
  push(chunk: Uint8Array): void
  /** No more bytes will come. */
  end(): void
  /** The next frame, or undefined until more bytes come. */
  next(): Frame | undefined
}

export interface FrameLimits {
  /** The longest message in bytes that is taken in. */
  maxBytes: number
}

/** How a message is put on the wire. */
export type Encoder = (message: string) => string

/** How much of each end of an over-long message is kept, so that its id may be read. */
export const HEAD_BYTES = 4096

/** Frames that are read but not yet taken. */
export class FrameQueue {
  #frames: Frame[] = []
  #taken = 0

  push(frame: Frame): void {
    this.#frames.push(frame)
  }

  next(): Frame | undefined {
    const frame = this.#frames[this.#taken]
    if (frame === undefined) {
      if (this.#taken > 0) this.#frames = []
      this.#taken = 0
    } else {
      this.#taken++
    }
    return frame
  }
}
