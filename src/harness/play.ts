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

const LAST = 'end-of-transcript'

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
  // No server knows this method: its refusal comes behind everything that has been answered by now.
  channel.send(`{"jsonrpc":"2.0","id":"${LAST}","method":"${LAST}"}`)
  const extras: string[] = []
  for (let came = await received.next(timeout); came !== undefined && !came.includes(LAST); came = await received.next(timeout))
    extras.push(came)
  await channel.close()
  for (const extra of extras) {
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
}
