import type { EventStore, EventWriter, StoredEvent } from '../event-store.js'
import { type Connection, RedisUnavailableError } from './connection.js'
import { APPEND, DELETE } from './event-scripts.js'
import type { Keys } from './keys.js'
import { asList, asPairs, asText } from './replies.js'
import { whole } from './script.js'

export interface RedisEventStoreOptions {
  /** Maximum number of events per stream. */
  maxEventsPerStream: number
  /** Maximum bytes of events per stream, not counting its newest. */
  maxBytesPerStream: number
  /** Maximum bytes of all streams. */
  maxEventBytes: number
  /** Maximum bytes of the streams of one principal. */
  maxEventBytesPerOwner: number
}

/** An event that waits for those before it. */
interface Waiting {
  readonly event: StoredEvent
  readonly ttl: number
  readonly writer: EventWriter | undefined
  resolve(stored: boolean): void
  reject(error: unknown): void
}

/** Maximum events, and characters of events, that are appended by one command. */
const MAX_BATCH = 100
const MAX_BATCH_LENGTH = 1024 * 1024
/** Maximum characters of events that wait. */
const MAX_WAITING = 64 * 1024 * 1024

/** Stores events in streams of Redis. */
export class RedisEventStore implements EventStore {
  readonly #connection: Connection
  readonly #keys: Keys
  readonly #options: RedisEventStoreOptions
  /** By stream, the events that wait while others are being appended: a cluster may execute commands in another order. */
  readonly #waiting = new Map<string, Waiting[]>()
  #waitingLength = 0

  constructor(connection: Connection, keys: Keys, options: RedisEventStoreOptions) {
    this.#connection = connection
    this.#keys = keys
    this.#options = options
  }

  append(stream: string, event: StoredEvent, ttl: number, writer?: EventWriter): Promise<boolean> {
    if (this.#waitingLength + event.frame.length > MAX_WAITING)
      return Promise.reject(new RedisUnavailableError('Too many events are waiting for Redis'))
    return new Promise((resolve, reject) => {
      const waiting = this.#waiting.get(stream)
      this.#waitingLength += event.frame.length
      const entry = { event, ttl, writer, resolve, reject }
      if (waiting !== undefined) return void waiting.push(entry)
      this.#waiting.set(stream, [entry])
      void this.#appendWaiting(stream)
    })
  }

  async #appendWaiting(stream: string): Promise<void> {
    const waiting = this.#waiting.get(stream) ?? []
    while (waiting.length > 0) {
      const batch = firstOf(waiting)
      try {
        const stored = await this.#appendAll(stream, batch)
        for (const { resolve } of batch) resolve(stored)
      } catch (error) {
        for (const { reject } of batch) reject(error)
      }
      for (const { event } of batch) this.#waitingLength -= event.frame.length
    }
    this.#waiting.delete(stream)
  }

  async #appendAll(stream: string, batch: readonly Waiting[]): Promise<boolean> {
    const { maxEventsPerStream, maxBytesPerStream, maxEventBytes, maxEventBytesPerOwner } =
      this.#options
    const limits = [maxEventsPerStream, maxBytesPerStream, maxEventBytes, maxEventBytesPerOwner]
    const [{ ttl, writer } = { ttl: 1, writer: undefined }] = batch
    const parameters = [
      stream,
      writer?.owner ?? '',
      whole(ttl),
      ...limits.map(String),
      generationOf(writer),
      ...batch.flatMap(({ event: { number, frame } }) => [String(number), frame]),
    ]
    return Number(await this.#connection.run(APPEND, this.#keysOf(writer), parameters)) === 1
  }

  async read(stream: string, after: number): Promise<readonly StoredEvent[]> {
    const key = this.#keys.events(stream)
    const first = `${after + 1}-0`
    const count = String(this.#options.maxEventsPerStream + 1)
    const reply = await this.#connection.command(['XRANGE', key, first, '+', 'COUNT', count], key)
    return asList(reply).map(eventOf)
  }

  async delete(stream: string, writer?: EventWriter): Promise<void> {
    await this.#connection.run(DELETE, this.#keysOf(writer), [stream, generationOf(writer)])
  }

  /** What the scripts get, in their order. */
  #keysOf(writer: EventWriter | undefined): readonly string[] {
    const { indexes } = this.#keys
    return [this.#keys.events(''), this.#keys.session(writer?.session ?? ''), ...indexes]
  }
}

/** Takes the first events off a list, as many as one command appends. */
function firstOf(waiting: Waiting[]): Waiting[] {
  let length = 0
  let count = 0
  for (const { event } of waiting) {
    length += event.frame.length
    if (count > 0 && (count >= MAX_BATCH || length > MAX_BATCH_LENGTH)) break
    count++
  }
  return waiting.splice(0, count)
}

function generationOf(writer: EventWriter | undefined): string {
  return writer === undefined ? '' : String(writer.generation)
}

function eventOf(entry: unknown): StoredEvent {
  const [id, fields] = asList(entry)
  const number = Number.parseInt(asText(id) ?? '', 10)
  return { number, frame: asText(asPairs(fields).get('f')) ?? '' }
}
