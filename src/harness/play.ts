import type { Channel } from '../jsonrpc/channel.js'
import { Inbox } from './inbox.js'
import { type Variables, compareMessages } from './expectation.js'
import { fill, parseTranscript } from './transcript.js'

export interface Played {
  /** What differed, in words with line numbers; empty when all went as written. */
  differences: string[]
  /** The transcript with the messages that really came. */
  transcript: string
  /** Why the connection ended before the transcript did. */
  broken?: Error
}

export interface PlayOptions {
  /** Milliseconds to wait for an expected message (default 5000). */
  timeout?: number
}

const LAST = 'end-of-transcript'

/** Plays a transcript over a channel to a server, and compares what comes back. */
export async function play(
  transcript: string,
  channel: Channel,
  { timeout = 5000 }: PlayOptions = {},
): Promise<Played> {
  const received = new Inbox(channel)
  const lines = transcript.split('\n')
  const differences: string[] = []
  const variables: Variables = new Map()
  for (const step of parseTranscript(transcript)) {
    const { line, direction, text } = step
    if (direction === 'send') {
      const message = fill(step, variables)
      if (typeof message === 'string') {
        channel.send(message)
        continue
      }
      differences.push(
        `line ${line}: not sent, because nothing came for ${message.missing.map((name) => `$${name}`).join(', ')}`,
      )
      break
    }
    const came = await received.next(timeout)
    if (came === undefined) {
      differences.push(`line ${line}: nothing came; expected ${text}`)
      break
    }
    const { differences: found, written } = compareMessages(text, came, variables)
    if (found.length === 0) continue
    differences.push(
      `line ${line}:\n${found.map((each) => `  ${each}\n`).join('')}  expected ${text}\n  came     ${came}`,
    )
    lines[line - 1] = `< ${written}`
  }
  const extras = await rest(channel, received, timeout)
  for (const extra of extras) {
    differences.push(`after the end came ${extra}`)
    lines.push(`< ${extra}`)
  }
  const played = { differences, transcript: lines.join('\n') }
  return received.broken === undefined ? played : { ...played, broken: received.broken }
}

/** What else comes, until the server is done with everything; then the channel is closed. */
export async function rest(channel: Channel, received: Inbox, timeout: number): Promise<string[]> {
  // No server knows this method: its refusal comes behind everything that has been answered by now.
  channel.send(`{"jsonrpc":"2.0","id":"${LAST}","method":"${LAST}"}`)
  const extras: string[] = []
  for (
    let came = await received.next(timeout);
    came !== undefined && !came.includes(LAST);
    came = await received.next(timeout)
  )
    extras.push(came)
  const { broken } = received
  await channel.close()
  received.broken = broken // what happens when it is closed is no news
  return extras
}
