/** What a frame reader returns: the text of one message, or the reason why bytes are not one. Readers decode UTF-8, not JSON. */
export type Frame = string | Fault

export type Fault =
  /** A message longer than the limit; only its first and last bytes were kept, as `head` and `tail`. */
  | { kind: 'too-long'; size: number; limit: number; head: string; tail: string }
  /** A message with a byte that is not UTF-8, at `offset` within the message. */
  | { kind: 'not-utf8'; offset: number }
  /** A header block without a valid Content-Length. */
  | { kind: 'invalid-header'; reason: string }
  /** Content-Length framing where one message per line is expected; `head` is the first header. */
  | { kind: 'wrong-framing'; head: string }
  /** The input ended in the middle of a message. */
  | { kind: 'truncated'; missing: number }

/** A push parser without I/O: `push(bytes)`, then `next()` until it returns undefined. Memory is bounded by the limits. */
export interface FrameReader {
  push(chunk: Uint8Array): void
  /** The input has ended. */
  end(): void
  /** The next frame, or undefined until more bytes are pushed. */
  next(): Frame | undefined
}

export interface FrameLimits {
  /** Maximum bytes of a message. */
  maxBytes: number
}

/** Adds the framing to a message. */
export type Encoder = (message: string) => string
