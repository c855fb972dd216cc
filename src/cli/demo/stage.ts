import { setTimeout as delay } from 'node:timers/promises'
import { type Piece, print, styled } from '../print.js'

/** A narrower terminal breaks the lines; in a wider one, two columns would be hard to compare. */
const MIN_WIDTH = 80
const MAX_WIDTH = 120
/** Milliseconds before a line, and before a section. */
const LINE = 120
const SECTION = 2200

const KEYWORDS = 'import|from|const|async|await|for|of|return'
const CODE = new RegExp(`('[^']*'|\`[^\`]*\`)|\\b(?:${KEYWORDS})\\b`, 'g')

/** Where the demo is shown: paced in a terminal, at once in a pipe. */
export class Stage {
  readonly isTerminal = process.stdout.isTTY
  /** Columns of a line. */
  readonly width = Math.min(Math.max(process.stdout.columns || 0, MIN_WIDTH), MAX_WIDTH)
  readonly #signal: AbortSignal
  #sections = 0
  #bar = ''

  constructor(signal: AbortSignal) {
    this.#signal = signal
  }

  async #pause(milliseconds: number): Promise<void> {
    this.#signal.throwIfAborted()
    if (this.isTerminal) await delay(milliseconds, undefined, { signal: this.#signal })
  }

  async line(...pieces: readonly Piece[]): Promise<void> {
    await this.#pause(LINE)
    print(...pieces, '\n')
  }

  async lines(lines: readonly (readonly Piece[])[]): Promise<void> {
    for (const pieces of lines) await this.line(...pieces)
  }

  async section(title: string): Promise<void> {
    if (this.#sections++ > 0) {
      await this.#pause(SECTION)
      print('\n')
    }
    await this.line(styled('heading', `${this.#sections}  ${title}`))
  }

  async code(text: string): Promise<void> {
    for (const line of text.trimEnd().split('\n')) await this.line('  ', ...colored(line))
  }

  /** A bar that is drawn again in a terminal, and once in a pipe. */
  bar(name: string, done: number, total: number): void {
    this.#bar = `  ${name} ${'█'.repeat(done)}${'░'.repeat(total - done)} ${done}/${total}`
    if (this.isTerminal) process.stdout.write(`\r${this.#bar}`)
  }

  endBar(): void {
    print(this.isTerminal ? '\n' : `${this.#bar}\n`)
  }
}

/** Strings and keywords of JavaScript in color. */
function colored(line: string): Piece[] {
  const pieces: Piece[] = []
  let end = 0
  for (const { 0: text, 1: quoted, index } of line.matchAll(CODE)) {
    pieces.push(line.slice(end, index), styled(quoted === undefined ? 'name' : 'received', text))
    end = index + text.length
  }
  return [...pieces, line.slice(end)]
}
