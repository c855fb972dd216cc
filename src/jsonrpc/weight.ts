/*
 * How much memory a text takes, and what JSON.parse makes of it: an empty object
 * of two characters takes some sixty bytes. An estimate that errs on the high side.
 */

/** The objects that every call in progress needs, whatever it says. */
const CALL = 2048
/** Messages of up to this length are not looked at: there is a limit to the number of calls as well. */
const SHORT = 512
/** Bytes for what begins with these characters: an object or array, an element, a member. */
const CONTAINER = 64
const ELEMENT = 32
const MEMBER = 48

/** The bytes that a call in progress holds: its text, and the parameters that were read from it. */
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
 * A copy that holds nothing but itself. V8 lets a slice of a string keep all of
 * that string in memory: a short message the whole chunk or batch it came in.
 */
export function detached(text: string): string {
  return ` ${text}`.slice(1)
}
