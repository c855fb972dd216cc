import type { Progress } from '../client.js'
import { type BottomLine, escaped, redacted, showBelow } from './print.js'

/** Milliseconds between updates of the elapsed time; the line appears after the first. */
const INTERVAL = 1000

/** The terminal that the line is written to. */
export interface StatusStream {
  isTTY?: boolean
  columns?: number
  write(text: string): unknown
}

/** One line about a call in progress, which is rewritten and finally cleared. */
export class StatusLine implements BottomLine {
  readonly #stream: StatusStream
  readonly #name: string
  readonly #started = performance.now()
  #progress: Progress | string | undefined
  #timer: ReturnType<typeof setInterval> | undefined
  #remove: (() => void) | undefined
  #visible = false

  constructor(name: string, stream: StatusStream) {
    this.#stream = stream
    this.#name = name
    this.#timer = setInterval(() => this.#appear(), INTERVAL)
    this.#timer.unref()
  }

  /** Shows progress, or a text. */
  update(progress: Progress | string): void {
    this.#progress = progress
    this.#appear()
  }

  /** Clears the line for good. */
  end(): void {
    clearInterval(this.#timer)
    this.#timer = undefined
    this.#remove?.()
  }

  hide(): void {
    if (!this.#visible) return
    this.#visible = false
    this.#stream.write('\r\u001b[K')
  }

  show(): void {
    this.#visible = true
    const seconds = Math.floor((performance.now() - this.#started) / 1000)
    const width = (this.#stream.columns || 80) - 1
    const line = statusText(this.#name, this.#progress, seconds)
    this.#stream.write(`\r\u001b[K${fitted(line, width)}`)
  }

  #appear(): void {
    if (this.#timer === undefined) return
    if (this.#remove === undefined) this.#remove = showBelow('status', this)
    // Otherwise something else is at the bottom, such as a question.
    else if (this.#visible) this.show()
  }
}

/** `import: 3/10 (30%) Copying files, 12 s`. */
export function statusText(
  name: string,
  progress: Progress | string | undefined,
  seconds: number,
): string {
  const said =
    typeof progress === 'object' ? [amount(progress), progress.message ?? ''] : [progress ?? '']
  const parts = said.map((part) => String(part).trim()).filter((part) => part !== '')
  const text = `${name}: ${parts.length === 0 ? 'waiting' : parts.join(' ')}, ${elapsed(seconds)}`
  return escaped(redacted(text).replaceAll(/\s+/g, ' '))
}

function amount({ progress, total }: Progress): string {
  if (typeof total !== 'number' || !(total > 0)) return rounded(progress)
  const percent = Math.min(100, Math.max(0, Math.floor((progress / total) * 100)))
  return `${rounded(progress)}/${rounded(total)} (${percent}%)`
}

function rounded(value: number): string {
  return String(Math.round(value * 100) / 100)
}

function elapsed(seconds: number): string {
  return seconds < 60 ? `${seconds} s` : `${Math.floor(seconds / 60)} min ${seconds % 60} s`
}

/** Shortens a text to a number of terminal columns; characters that may be wide count as two. */
export function fitted(text: string, columns: number): string {
  let width = 0
  let shown = ''
  for (const character of text) {
    width += (character.codePointAt(0) ?? 0) >= 0x11_00 ? 2 : 1
    if (width > columns) return `${shown.slice(0, -1)}…`
    shown += character
  }
  return shown
}
