/*
 * Estimates the memory of a message: its text and the objects that JSON.parse makes of it. An empty object is two
 * characters of text and some sixty bytes of heap. The estimate errs on the high side.
 */

/** The bookkeeping of any call in progress, in bytes. */
const CALL = 2048
/** Shorter messages are not scanned: the number of calls is limited too. */
const SHORT = 512
/** Bytes per `{` or `[`, per `,` and per `:`. */
const CONTAINER = 64
const ELEMENT = 32
const MEMBER = 48

/** The bytes that a call in progress holds: its text and its parsed params. */
export function weightOf(frame: string): number {
  if (frame.length <= SHORT) return CALL
  let structure = 0
  let width = 1
  for (let i = 0; i < frame.length; i++) {
    const code = frame.charCodeAt(i)
    if (code > 0xff) width = 2
    else if (code === 0x7b || code === 0x5b) structure += CONTAINER
    else if (code === 0x2c) structure += ELEMENT
    else if (code === 0x3a) structure += MEMBER
  }
  return CALL + 2 * width * frame.length + structure
}

/**
 * A copy that does not share memory. In V8, a slice of a string keeps the whole string alive: a short message would keep
 * the chunk or batch it arrived in.
 */
export function detached(text: string): string {
  return ` ${text}`.slice(1)
}
