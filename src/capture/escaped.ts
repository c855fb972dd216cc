/** Control characters other than tab and newline, and bidirectional formatting characters. */
// oxlint-disable-next-line no-control-regex -- these are to be escaped
const CONTROLS =
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g

/** Replaces control characters with JSON escapes: text of a peer must not change how it is shown. */
export function escaped(text: string): string {
  return text.replaceAll(
    CONTROLS,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )
}
