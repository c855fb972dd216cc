import type { EventStore, EventWriter, StoredEvent } from '../event-store.js'
import { type Connection, RedisUnavailableError } from './connection.js'
import type { Keys } from './keys.js'
import { asList, asPairs, asText } from './replies.js'
import { type Script, whole } from './script.js'

export interface RedisEventStoreOptions {
  /** Maximum number of events per stream. */
  maxEvents: number
  /** Maximum bytes of events per stream, not counting its newest. */
  maxBytes: number
}

/*
 * Event n of a stream is entry n-1 of a Redis stream: `f` its frame, `b` the bytes of all entries so far, so that what a
 * stream holds is the difference of two entries.
 */

const APPEND: Script = {
  source: `
local ttl, maxEvents, maxBytes, generation = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]), ARGV[4]
local owner = redis.call('HMGET', KEYS[2], 'g', 'd')
if generation ~= '' and (owner[2] or (owner[1] and tonumber(owner[1]) > tonumber(generation))) then return 0 end
local bytes, number = 0, -1
local last = redis.call('XREVRANGE', KEYS[1], '+', '-', 'COUNT', 1)[1]
if last then
  number = tonumber(string.match(last[1], '^%d+'))
  bytes = tonumber(last[2][2])
end
local newest = 0
for i = 5, #ARGV, 2 do
  if tonumber(ARGV[i]) > number then
    number, newest = tonumber(ARGV[i]), #ARGV[i + 1]
    bytes = bytes + newest
    redis.call('XADD', KEYS[1], ARGV[i] .. '-1', 'b', string.format('%.0f', bytes), 'f', ARGV[i + 1])
  end
end
redis.call('PEXPIRE', KEYS[1], ttl)
while true do
  local oldest = redis.call('XRANGE', KEYS[1], '1', '+', 'COUNT', 1)[1]
  if not oldest or tonumber(string.match(oldest[1], '^%d+')) == number then break end
  local held = bytes - newest - tonumber(oldest[2][2]) + #oldest[2][4]
  if held <= maxBytes and redis.call('XLEN', KEYS[1]) <= maxEvents then break end
  redis.call('XDEL', KEYS[1], oldest[1])
end
return 1`,
}

const DELETE: Script = {
  source: `
local owner = redis.call('HGET', KEYS[2], 'g')
if ARGV[1] ~= '' and owner and tonumber(owner) > tonumber(ARGV[1]) then return 0 end
return redis.call('UNLINK', KEYS[1])`,
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
    const { maxEvents, maxBytes } = this.#options
    const [{ ttl, writer } = { ttl: 1, writer: undefined }] = batch
    const keys = [this.#keys.events(stream), this.#keys.session(writer?.session ?? '')]
    const events = batch.flatMap(({ event: { number, frame } }) => [String(number), frame])
    const parameters = [
      whole(ttl),
      String(maxEvents),
      String(maxBytes),
      generationOf(writer),
      ...events,
    ]
    return Number(await this.#connection.run(APPEND, keys, parameters)) === 1
  }

  async read(stream: string, after: number): Promise<readonly StoredEvent[]> {
    const key = this.#keys.events(stream)
    const first = `${after + 1}-0`
    const count = String(this.#options.maxEvents + 1)
    const reply = await this.#connection.command(['XRANGE', key, first, '+', 'COUNT', count], key)
    return asList(reply).map(eventOf)
  }

  async delete(stream: string, writer?: EventWriter): Promise<void> {
    const keys = [this.#keys.events(stream), this.#keys.session(writer?.session ?? '')]
    await this.#connection.run(DELETE, keys, [generationOf(writer)])
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
