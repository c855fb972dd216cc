import { stringMemory } from './bytes.js'

/** An event of a stream, as it is stored for clients that reconnect. */
export interface StoredEvent {
  /** 1 for the first event of a stream, then increasing. 0 is not sent: it has the ids of the requests that the stream responds to. */
  readonly number: number
  /** The JSON-RPC message. */
  readonly frame: string
}

/** The session of a stream, as the process that appends to it has it. */
export interface EventWriter {
  readonly session: string
  readonly generation: number
  /** The id of its principal, whose limits the events count against; undefined without authentication. */
  readonly owner?: string | undefined
}

/**
 * Stores the events of SSE streams, so that a client can resume a stream with `Last-Event-ID`. Stream names are unique
 * among all sessions and processes; each stream has one writer. A store may return values or promises. An event is sent
 * with an id only once `append` has resolved; when it fails or takes too long, the event is sent without an id.
 */
export interface EventStore {
  /**
   * Appends an event to a stream, which it creates. Appending the same number again has no effect. The store may delete
   * the stream when nothing was appended for `ttl` milliseconds, and may evict its oldest events, but not number 0.
   * If it knows that the session has a higher generation than its writer, or was deleted, it stores nothing and
   * returns false: another process has taken over or ended the session.
   */
  append(
    stream: string,
    event: StoredEvent,
    ttl: number,
    writer?: EventWriter,
  ): boolean | void | Promise<boolean | void>
  /**
   * The stored events with a number above `after`, in order; empty if there are none. A store may return only the
   * first of them: it is then called again with the number of the last one.
   */
  read(stream: string, after: number): readonly StoredEvent[] | Promise<readonly StoredEvent[]>
  /** Deletes a stream, unless the session has a higher generation than `writer`. An unknown stream is not an error. */
  delete(stream: string, writer?: EventWriter): void | Promise<void>
}

interface StoredStream {
  events: { event: StoredEvent; bytes: number }[]
  bytes: number
}

export interface MemoryEventStoreOptions {
  /** Maximum bytes per stream, not counting its newest event (default 1 MiB). */
  maxBytesPerStream?: number
  /** Maximum bytes of all streams (default 64 MiB). */
  maxBytes?: number
}

/** Approximate memory of an event and of a stream beside the text. */
const EVENT = 100
const STREAM = 400

/** Stores events in this process. Evicts the oldest events of a full stream; at the total limit, those of the stream that was idle longest. */
export class MemoryEventStore implements EventStore {
  readonly #maxBytesPerStream: number
  readonly #maxBytes: number
  /** Ordered by their last append. */
  readonly #streams = new Map<string, StoredStream>()
  #bytes = 0

  constructor({
    maxBytesPerStream = 1024 * 1024,
    maxBytes = 64 * 1024 * 1024,
  }: MemoryEventStoreOptions = {}) {
    this.#maxBytesPerStream = maxBytesPerStream
    this.#maxBytes = maxBytes
  }

  /** Bytes in use. */
  get size(): number {
    return this.#bytes
  }

  append(name: string, event: StoredEvent): void {
    const stream = this.#streams.get(name) ?? { events: [], bytes: 0 }
    const last = stream.events.at(-1)
    if (last !== undefined && last.event.number >= event.number) return
    if (!this.#streams.delete(name)) this.#bytes += STREAM
    this.#streams.set(name, stream)
    const bytes = stringMemory(event.frame) + EVENT
    stream.events.push({ event, bytes })
    this.#resize(stream, bytes)
    // Never evicts the newest event: it may be the response that a client reconnects for.
    const kept = stream.events[0]?.event.number === 0 ? 2 : 1
    while (stream.bytes > this.#maxBytesPerStream && stream.events.length > kept)
      this.#evict(stream)
    // To find the first is not free: it follows the places of those that were moved to the end.
    if (this.#bytes <= this.#maxBytes) return
    for (const [oldestName, oldest] of this.#streams) {
      if (this.#bytes <= this.#maxBytes) break
      while (this.#bytes > this.#maxBytes && oldest.events.length > 0) this.#evict(oldest)
      if (oldest.events.length === 0) this.delete(oldestName)
    }
  }

  read(name: string, after: number): readonly StoredEvent[] {
    const stream = this.#streams.get(name)
    if (stream === undefined) return []
    return stream.events.flatMap(({ event }) => (event.number > after ? [event] : []))
  }

  delete(name: string): void {
    const stream = this.#streams.get(name)
    if (stream === undefined) return
    this.#bytes -= stream.bytes + STREAM
    this.#streams.delete(name)
  }

  #evict(stream: StoredStream): void {
    // Number 0 says which requests the stream responds to.
    const first = stream.events[0]?.event.number === 0 && stream.events.length > 1 ? 1 : 0
    const [oldest] = stream.events.splice(first, 1)
    if (oldest !== undefined) this.#resize(stream, -oldest.bytes)
  }

  #resize(stream: StoredStream, bytes: number): void {
    stream.bytes += bytes
    this.#bytes += bytes
  }
}
