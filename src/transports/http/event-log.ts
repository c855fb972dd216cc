import type { StreamEvent } from '../../framing/event-stream.js'
import { callHook } from '../../jsonrpc/hook.js'
import type { LogEntry } from '../../jsonrpc/log-entry.js'
import type { EventStore } from '../../stores/event-store.js'
import type { SseStream } from './sse-stream.js'

/**
 * One stream of a session: numbered messages that outlive the connection they
 * are sent over. While there is no connection they are kept, and given to
 * whoever comes back and says which one it has seen last.
 * https://modelcontextprotocol.io/specification/2025-11-25/basic/transports#resumability-and-redelivery
 */
export class EventLog {
  /** Unique within its session. */
  readonly name: string
  readonly #key: string
  readonly #store: EventStore
  readonly #report: (report: LogEntry) => void
  #count = 0
  #outlet: SseStream | undefined
  #ended = false
  /** A connection that has come back, and is being sent what it has missed. */
  #resuming: SseStream | undefined

  /** `session` is its name, which makes the stream's name unique among all. */
  constructor(
    session: string,
    name: string,
    store: EventStore,
    report: (report: LogEntry) => void,
  ) {
    this.name = name
    this.#key = `${session}/${name}`
    this.#store = store
    this.#report = report
  }

  get connected(): boolean {
    return this.#outlet !== undefined || this.#resuming !== undefined
  }

  get congested(): boolean {
    return this.#outlet?.congested ?? false
  }

  /** Nothing more will come. */
  get ended(): boolean {
    return this.#ended
  }

  /** Sends a message, or keeps it for later. */
  push(frame: string): void {
    const number = ++this.#count
    // Who listens gets it, whether or not it can be kept for those who come back.
    callHook(() => this.#store.keep(this.#key, { number, frame }), this.#failed)
    this.#outlet?.send({ id: this.#id(number), data: frame })
  }

  /** What was kept behind an event. */
  async after(number: number): Promise<StreamEvent[]> {
    const events = await this.#store.after(this.#key, number)
    return events.map((event) => ({ id: this.#id(event.number), data: event.frame }))
  }

  /** An event without a message: what a client must have seen to be able to come back. */
  prime(retry?: number): void {
    this.#outlet?.send(
      retry === undefined
        ? { id: this.#id(this.#count), data: '' }
        : { id: this.#id(this.#count), retry, data: '' },
    )
  }

  /** The last message has been sent. */
  end(): void {
    this.#ended = true
    this.#outlet?.end()
    this.#outlet = undefined
  }

  connect(outlet: SseStream): void {
    this.#outlet = outlet
  }

  /** A connection is gone, whoever ended it. */
  disconnect(outlet: SseStream): void {
    if (this.#outlet === outlet) this.#outlet = undefined
    if (this.#resuming === outlet) this.#resuming = undefined
  }

  /** Ends the connection, not the stream. */
  release(): void {
    this.#outlet?.end()
    this.#outlet = undefined
  }

  /** Sends over a new connection what came behind an event, and whatever will come. */
  async resume(outlet: SseStream, after: number): Promise<void> {
    this.release()
    this.#resuming = outlet
    let sent = Math.min(after, this.#count)
    while (sent < this.#count) {
      const events = await this.#store.after(this.#key, sent)
      for (const { number, frame } of events) outlet.replay({ id: this.#id(number), data: frame })
      const last = events.at(-1)?.number
      // A store that gives the same again would never end.
      if (last === undefined || !(last > sent)) break
      sent = last
    }
    const current = this.#resuming === outlet
    if (current) this.#resuming = undefined
    if (this.#ended || !current) outlet.end()
    else this.#outlet = outlet
  }

  drop(): void {
    this.end()
    callHook(() => this.#store.drop(this.#key), this.#failed)
  }

  readonly #failed = (error: unknown): void => {
    this.#report({
      level: 'error',
      message: 'The replay store failed: a client that comes back may miss events',
      error,
    })
  }

  #id(number: number): string {
    return `${this.name}.${number}`
  }
}

/** Which stream an event belongs to, and which one of its events it is. */
export interface EventId {
  readonly stream: string
  readonly number: number
}

export function parseEventId(id: string): EventId | undefined {
  const [, stream, digits] = /^([a-z0-9]+)\.(\d{1,15})$/.exec(id) ?? []
  return stream === undefined ? undefined : { stream, number: Number(digits) }
}
