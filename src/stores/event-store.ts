import { bytesOf } from './bytes.js'

/** An event that a client may ask for again. */
export interface StoredEvent {
  /** From 1, in the order of its stream. */
  readonly number: number
  /** The message. */
  readonly frame: string
}

/**
 * Where the events of streams are kept, so that a client whose connection broke
 * gets what it has missed. The names of streams are unique among all clients.
 * Keeping and dropping are never waited for; only asking may take time. What
 * fails is logged, and clients are served all the same.
 */
export interface EventStore {
  keep(stream: string, event: StoredEvent): void | Promise<void>
  /** The events behind a number, in order. Old ones may have been let go. */
  after(stream: string, number: number): readonly StoredEvent[] | Promise<readonly StoredEvent[]>
  drop(stream: string): void | Promise<void>
}

interface Kept {
  events: { event: StoredEvent; bytes: number }[]
  bytes: number
}

export interface MemoryEventStoreOptions {
  /** The most bytes of one stream (default 1 MiB) beside its newest event, and of all together (default 64 MiB). */
  perStream?: number
  total?: number
}

/** What an event and a stream cost beside the text, about. */
const EVENT = 100
const STREAM = 400

/** Keeps events in this process. The oldest are let go first, of the stream that is full, or of all. */
export class MemoryEventStore implements EventStore {
  readonly #perStream: number
  readonly #total: number
  /** In the order of their last event, so that the first is the one that was silent longest. */
  readonly #streams = new Map<string, Kept>()
  #bytes = 0

  constructor({ perStream = 1024 * 1024, total = 64 * 1024 * 1024 }: MemoryEventStoreOptions = {}) {
    this.#perStream = perStream
    this.#total = total
  }

  /** How much is kept, in bytes. */
  get size(): number {
    return this.#bytes
  }

  keep(stream: string, event: StoredEvent): void {
    const kept = this.#streams.get(stream) ?? { events: [], bytes: 0 }
    if (!this.#streams.delete(stream)) this.#bytes += STREAM
    this.#streams.set(stream, kept)
    const bytes = bytesOf(event.frame) + EVENT
    kept.events.push({ event, bytes })
    this.#grow(kept, bytes)
    // Never the newest: it may be the answer that a client comes back for.
    while (kept.bytes > this.#perStream && kept.events.length > 1) this.#letGo(kept)
    for (const [name, oldest] of this.#streams) {
      if (this.#bytes <= this.#total) break
      while (this.#bytes > this.#total && oldest.events.length > 0) this.#letGo(oldest)
      if (oldest.events.length === 0) this.drop(name)
    }
  }

  after(stream: string, number: number): readonly StoredEvent[] {
    return (
      this.#streams
        .get(stream)
        ?.events.flatMap(({ event }) => (event.number > number ? [event] : [])) ?? []
    )
  }

  drop(stream: string): void {
    const kept = this.#streams.get(stream)
    if (kept === undefined) return
    this.#bytes -= kept.bytes + STREAM
    this.#streams.delete(stream)
  }

  #letGo(kept: Kept): void {
    const oldest = kept.events.shift()
    if (oldest !== undefined) this.#grow(kept, -oldest.bytes)
  }

  #grow(kept: Kept, by: number): void {
    kept.bytes += by
    this.#bytes += by
  }
}
