import { escaped, escapedLine } from '../capture/escaped.js'
import { standardError } from '../transports/stdio-log.js'

export { escaped, escapedLine } from '../capture/escaped.js'

/** ANSI codes of the styles, used in terminals. */
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

/** What must not be printed. */
interface Hidden {
  redact(text: string): string
  redactValue(value: unknown): unknown
}

let hidden: Hidden | undefined

/** From now on, whatever is printed goes through this. */
export function hideInOutput(secrets: Hidden): void {
  hidden = secrets
}

/** Text without what must not be printed. */
export function redacted(text: string): string {
  return hidden === undefined ? text : hidden.redact(text)
}

interface Stream {
  isTTY?: boolean
}

/** Whether to use colors: FORCE_COLOR, which Node also obeys, wins over NO_COLOR; the default is to use them in terminals. */
export function hasColors(
  { isTTY }: Stream,
  { FORCE_COLOR: force, NO_COLOR: no = '', TERM: term } = process.env,
): boolean {
  if (force !== undefined) return force !== '0' && force !== 'false'
  return isTTY === true && no === '' && term !== 'dumb'
}

/** Renders pieces for a stream. In a terminal, control characters are escaped and styles colored; elsewhere text is unchanged. */
export function render(
  pieces: readonly Piece[],
  stream: Stream,
  environment = process.env,
): string {
  const colors = hasColors(stream, environment)
  const isTerminal = colors || stream.isTTY === true
  const safe = (text: string) => (isTerminal ? escaped(redacted(text)) : redacted(text))
  return pieces
    .map((piece) => {
      if (typeof piece === 'string') return safe(piece)
      return colors
        ? `\u001b[${STYLES[piece.style]}m${safe(piece.text)}\u001b[0m`
        : safe(piece.text)
    })
    .join('')
}

/** Writes to stdout. A closed pipe is not an error. */
export function print(...pieces: readonly Piece[]): void {
  printAll(pieces)
}

/** The same for any number of pieces: a call has at most about 100,000 arguments. */
export function printAll(pieces: readonly Piece[]): void {
  printRaw(render(pieces, process.stdout))
}

/** Writes a value as JSON. */
export function printJson(value: unknown): void {
  printRaw(`${escaped(JSON.stringify(withoutHidden(value), null, 2))}\n`)
}

/** Writes a value as one line of JSON. */
export function printJsonLine(value: unknown): void {
  printRaw(`${escaped(JSON.stringify(withoutHidden(value)))}\n`)
}

function withoutHidden(value: unknown): unknown {
  return hidden === undefined ? value : hidden.redactValue(value)
}

let listening = false

/** Writes to stdout unchanged. */
export function printRaw(content: string | Uint8Array): void {
  if (!listening) {
    listening = true
    process.stdout.on('error', failed)
  }
  process.stdout.write(content)
}

/** What is shown at the bottom of a terminal: it is hidden while something is written above it. */
export interface BottomLine {
  hide(): void
  show(): void
}

/** A question hides the status line. */
const bottom: { status?: BottomLine; question?: BottomLine } = {}
const bottomLine = () => bottom.question ?? bottom.status

/** Keeps a line below everything else on stderr; the returned function removes it. */
export function showBelow(kind: keyof typeof bottom, line: BottomLine): () => void {
  const place = (placed: BottomLine | undefined) => {
    const before = bottomLine()
    if (placed === undefined) delete bottom[kind]
    else bottom[kind] = placed
    const after = bottomLine()
    if (after === before) return
    before?.hide()
    after?.show()
  }
  place(line)
  return () => {
    if (bottom[kind] === line) place(undefined)
  }
}

/** Writes to stderr. */
export function printError(...pieces: readonly Piece[]): void {
  const text = render(pieces, standardError)
  const below = bottomLine()
  below?.hide()
  standardError.write(text)
  // Text without a line break is continued later: a line below it would overwrite it.
  if (text.endsWith('\n')) below?.show()
}

/** Milliseconds for a reader of stderr to read the last message. */
const FLUSH_TIMEOUT = 1000

/** Writes to stderr; resolves when the text is written, or nobody reads it. */
export function flushError(...pieces: readonly Piece[]): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, FLUSH_TIMEOUT).unref()
    standardError.write(render(pieces, standardError), resolve)
  })
}

/** Writes a warning to stderr. */
export function warn(text: string): void {
  printError(styled('warning', 'ccmcp:'), ` ${text}\n`)
}

/** A file that cannot be read or written, on one line: its name may be that of somebody else's file. */
export function fileProblem(action: 'read' | 'write', path: string, reason: unknown): string {
  const text = reason instanceof Error ? reason.message : String(reason)
  return escapedLine(`Cannot ${action} ${path}: ${text}`)
}

/** Output is incomplete, for example because the disk is full. */
function failed(error: NodeJS.ErrnoException): void {
  if (error.code === 'EPIPE') return
  standardError.write(`ccmcp: cannot write to stdout: ${error.message}\n`)
  process.exit(1)
}
