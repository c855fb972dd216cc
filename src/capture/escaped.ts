/** Control characters other than tab and newline, bidirectional formatting characters, and invisible ones that can hide text. */
// oxlint-disable-next-line no-control-regex -- these are to be escaped
const CONTROLS =
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff\u{e0000}-\u{e007f}]/gu

/** Replaces control characters with JSON escapes: text of a peer must not change how it is shown. */
export function escaped(text: string): string {
  return text.replaceAll(CONTROLS, (character) =>
    // One escape for each half of a surrogate pair.
    Array.from(
      { length: character.length },
      (_, index) => `\\u${character.charCodeAt(index).toString(16).padStart(4, '0')}`,
    ).join(''),
  )
}

/** The same for a text that is shown within a line, such as a name: a line break must not forge another line. */
export function escapedLine(text: string): string {
  return escaped(text).replaceAll('\n', '\\n').replaceAll('\t', '\\t')
}
