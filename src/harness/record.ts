import type { Channel } from '../jsonrpc/channel.js'
import { type Params, isObject } from '../jsonrpc/message.js'
import { type Variables, compareMessages, matches } from './expectation.js'
import { Inbox } from './inbox.js'
import { type PlayOptions, closeAndCollect } from './play.js'
import { type Step, fill, parseTranscript, withoutVariables } from './transcript.js'

export interface Recorded {
  /** The transcript with the received messages, where they were received. */
  transcript: string
  /** The lines of requests without a response in time. */
  unanswered: number[]
  /** The first received line that is not JSON: the server writes something else to stdout. */
  garbage?: string
  /** The first line that could not be sent because a variable has no value, and why. */
  unsent?: string
  broken?: Error
}

/**
 * Sends the `>` lines of a transcript and records the responses as `<` lines.
 * Without any `<` line, each request waits for its response; otherwise all lines
 * before the next `<` line are sent together. A `<` line that matches is left
 * as it is, with its wildcards; in one that does not match, the variables are kept.
 */
export async function record(
  transcript: string,
  channel: Channel,
  { timeout = 5000 }: PlayOptions = {},
): Promise<Recorded> {
  const inbox = new Inbox(channel)
  const recording = new Recording(transcript)
  for (const { sends, expects, end } of recording.groups) {
    const messages = recording.fill(sends)
    if (messages === undefined) break
    for (const { text } of messages) channel.send(text)
    recording.wait(messages)
    const received: string[] = []
    while (recording.waiting) {
      const message = await inbox.next(timeout)
      if (message === undefined) break
      received.push(message)
      recording.received(message)
    }
    recording.write(end, received, expects)
    if (recording.garbage !== undefined) break
  }
  const extras =
    recording.garbage === undefined ? await closeAndCollect(channel, inbox, timeout) : []
  await channel.close()
  const written = recording.finish(extras)
  return inbox.broken === undefined ? written : { ...written, broken: inbox.broken }
}

interface Sent {
  line: number
  text: string
}

interface Group {
  sends: Step[]
  expects: Step[]
  /** The line of its last `>` message. */
  end: number
}

class Recording {
  readonly #lines: (string | undefined)[]
  readonly #after = new Map<number, string[]>()
  /** Lines of pending requests, by id. */
  readonly #pending = new Map<string, number>()
  /** Number of invalid messages whose error response has an unknown id. */
  #unmatchedInvalid = 0
  /** Ids of the server's requests that the transcript responds to. */
  readonly #respondedIds = new Set<string>()
  /** Whether the transcript responds to a request whose id is a variable. */
  #respondsToVariableId = false
  readonly #unanswered = new Set<number>()
  #yielded = false
  garbage: string | undefined
  unsent: string | undefined
  readonly #variables: Variables = new Map()
  readonly groups: Group[] = []

  constructor(transcript: string) {
    const steps = parseTranscript(transcript)
    this.#lines = transcript.split('\n')
    const separate = steps.every(({ direction }) => direction === 'send')
    let group: Group | undefined
    for (const step of steps) {
      const { line, direction, text } = step
      if (direction === 'expect') {
        this.#lines[line - 1] = undefined
        group?.expects.push(step)
        continue
      }
      if (group === undefined || separate || group.expects.length > 0)
        this.groups.push((group = { sends: [], expects: [], end: line }))
      group.sends.push(step)
      group.end = line
      const { id, method } = parsed(withoutVariables(text)) ?? {}
      if (method === undefined && id === null) this.#respondsToVariableId = true
      else if (method === undefined && id !== undefined) this.#respondedIds.add(JSON.stringify(id))
    }
  }

  /** Whether to wait for messages before the next one is sent. */
  get waiting(): boolean {
    return (
      !this.#yielded &&
      this.garbage === undefined &&
      (this.#pending.size > 0 || this.#unmatchedInvalid > 0)
    )
  }

  /** The messages to send; undefined if one has a variable without a value. */
  fill(sends: readonly Step[]): Sent[] | undefined {
    const messages: Sent[] = []
    for (const step of sends) {
      const text = fill(step, this.#variables)
      if (typeof text === 'string') messages.push({ line: step.line, text })
      else
        this.unsent ??= `line ${step.line}: no value was received for ${text.missing.map((name) => `$${name}`).join(', ')}`
    }
    return this.unsent === undefined ? messages : undefined
  }

  wait(sends: readonly Sent[]): void {
    this.#yielded = false
    for (const { line, text } of sends) {
      const message = parsed(text)
      if (message === undefined) this.#unmatchedInvalid++
      else if ('method' in message && 'id' in message)
        this.#pending.set(JSON.stringify(message['id']), line)
    }
  }

  received(text: string): void {
    const message = parsed(text)
    if (message === undefined && !text.startsWith('[')) this.garbage ??= text
    const id = JSON.stringify(message?.['id'] ?? null)
    // A request of the server that the transcript responds to next.
    if (message?.['method'] !== undefined)
      this.#yielded =
        (this.#respondsToVariableId || this.#respondedIds.has(id)) && message['id'] !== undefined
    else if (!this.#pending.delete(id))
      this.#unmatchedInvalid = Math.max(0, this.#unmatchedInvalid - 1)
  }

  write(line: number, received: readonly string[], expects: readonly Step[]): void {
    // Requests that are still pending are not waited for again.
    if (!this.#yielded) {
      for (const late of this.#pending.values()) this.#unanswered.add(late)
      this.#pending.clear()
      this.#unmatchedInvalid = 0
    }
    const unused = [...expects]
    this.#after.set(
      line,
      received.map((message, position) => {
        const index = unused.findIndex(({ text }) => this.#matches(text, message))
        return `< ${index === -1 ? this.#rewritten(message, expects[position], unused) : unused.splice(index, 1)[0]?.text}`
      }),
    )
  }

  /** For a message that no line matches. The line in its place may have variables that later lines need. */
  #rewritten(message: string, expected: Step | undefined, unused: Step[]): string {
    const index =
      expected === undefined || expected.variables.length === 0 ? -1 : unused.indexOf(expected)
    if (expected === undefined || index === -1) return message
    unused.splice(index, 1)
    return compareMessages(expected.text, message, this.#variables).written
  }

  #matches(pattern: string, message: string): boolean {
    try {
      return matches(pattern, message, this.#variables)
    } catch {
      return false // it is not JSON
    }
  }

  finish(extras: readonly string[]): Recorded {
    for (const extra of extras) this.received(extra)
    const lines = this.#lines.flatMap((line, index) => [
      ...(line === undefined ? [] : [line]),
      ...(this.#after.get(index + 1) ?? []),
    ])
    if (extras.length > 0 && lines.at(-1) === '') lines.pop()
    lines.push(...extras.map((extra) => `< ${extra}`))
    if (lines.at(-1) !== '') lines.push('')
    const recorded = { transcript: lines.join('\n'), unanswered: [...this.#unanswered] }
    return {
      ...recorded,
      ...(this.garbage === undefined ? {} : { garbage: this.garbage }),
      ...(this.unsent === undefined ? {} : { unsent: this.unsent }),
    }
  }
}

/** The message, or undefined if it is not an object. */
function parsed(text: string): Params | undefined {
  try {
    const value: unknown = JSON.parse(text)
    return isObject(value) ? value : undefined
  } catch {
    return undefined
  }
}
