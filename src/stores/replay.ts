/** An event that a client may ask for again. */
export interface KeptEvent {
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
export interface ReplayStore {
  keep(stream: string, event: KeptEvent): void | Promise<void>
  /** The events behind a number, in order. Old ones may have been let go. */
  after(stream: string, number: number): readonly KeptEvent[] | Promise<readonly KeptEvent[]>
  drop(stream: string): void | Promise<void>
}

interface Kept {
  events: KeptEvent[]
  size: number
}

export interface MemoryReplayOptions {
  /** The most characters of one stream (default 1 Mi) beside its newest event, and of all together (default 64 Mi). */
  perStream?: number
  total?: number
}

/** What every event costs beside its text, about. */
const OVERHEAD = 100

/** Keeps events in this process. The oldest are let go first, of the stream that is full, or of all. */
export class MemoryReplay implements ReplayStore {
  readonly #perStream: number
  readonly #total: number
  /** In the order of their last event, so that the first is the one that was silent longest. */
  readonly #streams = new Map<string, Kept>()
  #size = 0

  constructor({ perStream = 1024 * 1024, total = 64 * 1024 * 1024 }: MemoryReplayOptions = {}) {
    this.#perStream = perStream
    this.#total = total
  }

  /** How much is kept, in characters. */
  get size(): number {
    return this.#size
  }

  keep(stream: string, event: KeptEvent): void {
    const kept = this.#streams.get(stream) ?? { events: [], size: 0 }
    this.#streams.delete(stream)
    this.#streams.set(stream, kept)
    kept.events.push(event)
    this.#grow(kept, event.frame.length + OVERHEAD)
    // Never the newest: it may be the answer that a client comes back for.
    while (kept.size > this.#perStream && kept.events.length > 1) this.#letGo(kept)
    for (const [name, oldest] of this.#streams) {
      if (this.#size <= this.#total) break
      while (this.#size > this.#total && oldest.events.length > 0) this.#letGo(oldest)
      if (oldest.events.length === 0) this.#streams.delete(name)
    }
  }

  after(stream: string, number: number): readonly KeptEvent[] {
    return this.#streams.get(stream)?.events.filter((event) => event.number > number) ?? []
  }

  drop(stream: string): void {
    const kept = this.#streams.get(stream)
    if (kept === undefined) return
    this.#grow(kept, -kept.size)
    this.#streams.delete(stream)
  }

  #letGo(kept: Kept): void {
    const event = kept.events.shift()
    if (event !== undefined) this.#grow(kept, -(event.frame.length + OVERHEAD))
  }

  #grow(kept: Kept, by: number): void {
    kept.size += by
    this.#size += by
  }
}
