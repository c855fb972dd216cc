import type { Channel } from '../jsonrpc/channel.js'
import { Inbox } from './inbox.js'
import { type Variables, compareMessages } from './expectation.js'
import { fill, parseTranscript } from './transcript.js'

export interface PlayResult {
  /** The differences, with line numbers; empty if everything matched. */
  differences: string[]
  /** The transcript with the received messages. */
  transcript: string
  /** The error that closed the connection before the end of the transcript. */
  broken?: Error
}

export interface PlayOptions {
  /** Milliseconds to wait for an expected message (default 5000). */
  timeout?: number
}

const END_METHOD = 'end-of-transcript'

/** Plays a transcript over a channel to a server, and compares the received messages. */
export async function play(
  transcript: string,
  channel: Channel,
  { timeout = 5000 }: PlayOptions = {},
): Promise<PlayResult> {
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
        `line ${line}: not sent, because no value was received for ${message.missing.map((name) => `$${name}`).join(', ')}`,
      )
      break
    }
    const frame = await received.next(timeout)
    if (frame === undefined) {
      differences.push(`line ${line}: nothing received; expected ${text}`)
      break
    }
    const { differences: found, written } = compareMessages(text, frame, variables)
    if (found.length === 0) continue
    differences.push(
      `line ${line}:\n${found.map((each) => `  ${each}\n`).join('')}  expected ${text}\n  received ${frame}`,
    )
    lines[line - 1] = `< ${written}`
  }
  const extras = await closeAndCollect(channel, received, timeout)
  for (const extra of extras) {
    differences.push(`received after the end: ${extra}`)
    lines.push(`< ${extra}`)
  }
  const played = { differences, transcript: lines.join('\n') }
  return received.broken === undefined ? played : { ...played, broken: received.broken }
}

/** Closes the channel after the server has responded to everything; returns the messages until then. */
export async function closeAndCollect(
  channel: Channel,
  received: Inbox,
  timeout: number,
): Promise<string[]> {
  // An unknown method: its error follows the earlier responses.
  channel.send(`{"jsonrpc":"2.0","id":"${END_METHOD}","method":"${END_METHOD}"}`)
  const extras: string[] = []
  for (
    let came = await received.next(timeout);
    came !== undefined && !came.includes(END_METHOD);
    came = await received.next(timeout)
  )
    extras.push(came)
  const { broken } = received
  await channel.close()
  received.broken = broken // errors of closing do not count
  return extras
}
