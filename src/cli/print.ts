import { standardError } from '../transports/stdio-log.js'

/** What a piece of output is; at a terminal it is coloured accordingly. */
const STYLES = {
  heading: 1,
  name: 36,
  detail: 2,
  error: 31,
  warning: 33,
  sent: 36,
  received: 32,
} as const

export interface Styled {
  style: keyof typeof STYLES
  text: string
}
export type Piece = string | Styled

export function styled(style: Styled['style'], text: string): Styled {
  return { style, text }
}

interface Stream {
  isTTY?: boolean
}

/** Whether to use colours: as FORCE_COLOR says, which Node obeys too, else as NO_COLOR says, else at a terminal. */
export function hasColours(
  { isTTY }: Stream,
  { FORCE_COLOR: force, NO_COLOR: no = '', TERM: term } = process.env,
): boolean {
  if (force !== undefined) return force !== '0' && force !== 'false'
  return isTTY === true && no === '' && term !== 'dumb'
}

/** Control characters but tab and newline, and those that change the direction of text. */
// oxlint-disable-next-line no-control-regex -- these are what must not pass
const CONTROLS =
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g

/** The text with such characters as escapes; in the text of JSON they mean the same. */
export function escaped(text: string): string {
  return text.replaceAll(
    CONTROLS,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )
}

/** The text of pieces on a stream. A terminal is sent no control characters but our own colours; elsewhere text stays as it is. */
export function render(
  pieces: readonly Piece[],
  stream: Stream,
  environment = process.env,
): string {
  const colours = hasColours(stream, environment)
  const safe = colours || stream.isTTY === true ? escaped : (text: string) => text
  return pieces
    .map((piece) => {
      if (typeof piece === 'string') return safe(piece)
      return colours
        ? `\u001b[${STYLES[piece.style]}m${safe(piece.text)}\u001b[0m`
        : safe(piece.text)
    })
    .join('')
}

/** Writes to stdout. Whoever reads it may stop reading: that is no fault of ours. */
export function print(...pieces: readonly Piece[]): void {
  printRaw(render(pieces, process.stdout))
}

/** Writes a value as JSON. */
export function printJson(value: unknown): void {
  printRaw(`${escaped(JSON.stringify(value, null, 2))}\n`)
}

let listening = false

/** Writes to stdout as it is. */
export function printRaw(content: string | Uint8Array): void {
  if (!listening) {
    listening = true
    process.stdout.on('error', failed)
  }
  process.stdout.write(content)
}

/** Writes to stderr, for the person who watches. */
export function complain(...pieces: readonly Piece[]): void {
  standardError.write(render(pieces, standardError))
}

/** Writes a line to stderr that begins with our name. */
export function warn(text: string): void {
  complain(styled('warning', 'ccmcp:'), ` ${text}\n`)
}

/** A full disk, say: what was asked for is not all there. */
function failed(error: NodeJS.ErrnoException): void {
  if (error.code === 'EPIPE') return
  standardError.write(`ccmcp: stdout cannot be written: ${error.message}\n`)
  process.exit(1)
}
