import { type Interface, createInterface } from 'node:readline'
import { type Piece, render, showBelow } from './print.js'

/** A terminal: what the user types, and where questions are shown. */
export interface TerminalStreams {
  input: NodeJS.ReadableStream & { isTTY?: boolean }
  output: NodeJS.WritableStream & { isTTY?: boolean }
}

/** Asks the user questions, each answered by a line. */
export class Questions {
  readonly #output: TerminalStreams['output']
  readonly #readline: Interface
  readonly #lines: string[] = []
  #waiting: ((line: string | undefined) => void) | undefined
  #ended = false

  constructor({ input, output }: TerminalStreams) {
    this.#output = output
    this.#readline = createInterface({ input, output, terminal: true, historySize: 0 })
    this.#readline.on('line', (line) => this.#receive(line))
    this.#readline.on('close', () => {
      this.#ended = true
      this.#waiting?.(undefined)
    })
    // The terminal sends no signal while lines are edited.
    this.#readline.on('SIGINT', () => process.emit('SIGINT', 'SIGINT'))
  }

  write(...pieces: readonly Piece[]): void {
    this.#output.write(render(pieces, this.#output))
  }

  /** Resolves to the answer, or to undefined at the end of the input. Rejects when the signal fires. */
  async ask(question: readonly Piece[], signal: AbortSignal): Promise<string | undefined> {
    signal.throwIfAborted()
    const typed = this.#lines.shift()
    if (typed !== undefined || this.#ended) return typed
    this.#readline.setPrompt(render(question, this.#output))
    const remove = showBelow('question', {
      hide: () => void this.#output.write('\r\u001b[K'),
      show: () => this.#readline.prompt(true),
    })
    try {
      return await new Promise<string | undefined>((resolve, reject) => {
        const abort = () => reject(signal.reason as Error) // whatever the caller aborts with
        signal.addEventListener('abort', abort, { once: true })
        this.#waiting = (line) => {
          signal.removeEventListener('abort', abort)
          resolve(line)
        }
      })
    } finally {
      this.#waiting = undefined
      remove()
    }
  }

  close(): void {
    this.#readline.close()
  }

  #receive(line: string): void {
    const waiting = this.#waiting
    this.#waiting = undefined
    if (waiting === undefined) this.#lines.push(line)
    else waiting(line)
  }
}
