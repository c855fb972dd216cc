import type { Channel } from '../jsonrpc/channel.js'
import { matches, parseTranscript } from './transcript.js'

export interface Played {
  /** What differed, in words with line numbers; empty when all went as written. */
  differences: string[]
  /** The transcript with the messages that really came. */
  transcript: string
}

export interface PlayOptions {
  /** Milliseconds to wait for an expected message (default 5000). */
  timeout?: number
}

/** Plays a transcript over a channel to a server, and compares what comes back. */
export async function play(transcript: string, channel: Channel, { timeout = 5000 }: PlayOptions = {}): Promise<Played> {
  const received = new Inbox(channel)
  const lines = transcript.split('\n')
  const differences: string[] = []
  for (const { line, direction, text } of parseTranscript(transcript)) {
    if (direction === 'send') {
      channel.send(text)
      continue
    }
    const came = await received.next(timeout)
    if (came === undefined) {
      differences.push(`line ${line}: nothing came; expected ${text}`)
      break
    }
    if (matches(text, came)) continue
    differences.push(`line ${line}:\n  expected ${text}\n  came     ${came}`)
    lines[line - 1] = `< ${came}`
  }
  await channel.close()
  for (const extra of received.rest()) {
    differences.push(`after the end came ${extra}`)
    lines.push(`< ${extra}`)
  }
  return { differences, transcript: lines.join('\n') }
}

class Inbox {
  readonly #frames: string[] = []
  #wake: () => void = () => {}
  #closed = false

  constructor(channel: Channel) {
    channel.receive({
      frame: (frame) => {
        this.#frames.push(frame)
        this.#wake()
      },
      garbage: (error) => {
        this.#frames.push(JSON.stringify({ garbage: error.message }))
        this.#wake()
      },
      closed: () => {
        this.#closed = true
        this.#wake()
      },
    })
  }

  async next(timeout: number): Promise<string | undefined> {
    if (this.#frames.length === 0 && !this.#closed) {
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, timeout)
        this.#wake = () => {
          clearTimeout(timer)
          resolve()
        }
      })
    }
    return this.#frames.shift()
  }

  rest(): string[] {
    return this.#frames
  }
}
