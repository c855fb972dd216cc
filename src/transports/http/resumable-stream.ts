import type { StreamEvent } from '../../framing/event-stream.js'
import { callHook } from '../../jsonrpc/hook.js'
import type { LogEntry } from '../../jsonrpc/log-entry.js'
import type { RpcError } from '../../jsonrpc/errors.js'
import {
  type Id,
  encodeError,
  encodeId,
  isThenable,
  readId,
  sentResponses,
} from '../../jsonrpc/message.js'
import { elements } from '../../jsonrpc/scan.js'
import type { EventStore, EventWriter, StoredEvent } from '../../stores/event-store.js'
import type { SseStream } from './sse-stream.js'
import { withTimeout } from '../../jsonrpc/deadline.js'

export interface StreamStoreOptions {
  eventStore: EventStore
  /** Milliseconds for which events are stored at least, unless they are evicted. */
  ttl: number
  /** Maximum bytes of events that wait for the store; beyond it, they are sent without an id. */
  maxUnsentBytes: number
  report(entry: LogEntry): void
}

/** The session that a stream belongs to. */
export interface StreamOwner extends EventWriter {
  /** Called if the store refuses an event: another process has the session. */
  superseded(): void
  /** Called if a stream may be `congested` no longer. */
  drained(): void
}

/** An event that is sent once the store has it. */
interface WaitingEvent {
  readonly event: StreamEvent
  /** The connection at the time of `push`. A later connection gets the event from the store. */
  readonly connection: SseStream | undefined
  readonly appended: Promise<boolean>
  /** Undefined until the store has decided. */
  stored: boolean | undefined
}

/** Milliseconds until an event is sent without waiting for the store any longer. */
const STORE_TIMEOUT = 2000

/**
 * One stream of a session: numbered events that outlive the connection. A client that reconnects with `Last-Event-ID`
 * gets the events that it missed.
 * https://modelcontextprotocol.io/specification/2025-11-25/basic/transports#resumability-and-redelivery
 */
export class ResumableStream {
  /** Unique within its session. */
  readonly name: string
  readonly #key: string
  readonly #owner: StreamOwner
  readonly #options: StreamStoreOptions
  #count = 0
  #connection: SseStream | undefined
  #ended = false
  /** Requests whose responses are its last events. */
  #answered: readonly Id[] = []
  /** A connection that is being sent the events it missed. */
  #resuming: SseStream | undefined
  #waiting: WaitingEvent[] = []
  #waitingLength = 0

  /** The name of the session makes the key of the stream unique. */
  constructor(owner: StreamOwner, name: string, options: StreamStoreOptions) {
    this.name = name
    this.#owner = owner
    this.#key = `${owner.session}/${name}`
    this.#options = options
  }

  /** Number of messages so far. */
  get count(): number {
    return this.#count
  }

  get connected(): boolean {
    return this.#connection !== undefined || this.#resuming !== undefined
  }

  get congested(): boolean {
    return (
      this.#waitingLength > this.#options.maxUnsentBytes / 4 ||
      (this.#connection?.congested ?? false)
    )
  }

  /** No more events will follow. */
  get ended(): boolean {
    return this.#ended
  }

  /** Stores a message, then sends it if a client is connected. */
  push(frame: string): void {
    const number = ++this.#count
    const stored = this.#append(number, frame)
    const event = { id: this.#id(number), data: frame }
    if (!(stored instanceof Promise) && this.#waiting.length === 0)
      return this.#connection?.send(stored ? event : { data: frame })
    this.#wait(event, stored)
  }

  /** The stored events after a number. */
  async after(number: number): Promise<StreamEvent[]> {
    return this.#toSend(await this.#read(number))
  }

  /**
   * The stored events after a number, of a stream whose process has ended. Requests that have no response get `error`,
   * as far as the ids of the requests are stored.
   */
  async completedAfter(number: number, error: RpcError): Promise<StreamEvent[]> {
    const stored = await this.#read(-1)
    const events = stored.filter((event) => event.number > 0)
    let last = stored.at(-1)?.number ?? 0
    for (const id of unanswered(stored)) {
      const event = { number: ++last, frame: encodeError(id, error, 'omitted') }
      // Stored, so that every client that resumes it gets the same.
      if (await this.#append(event.number, event.frame)) events.push(event)
    }
    return this.#toSend(events.filter((event) => event.number > number))
  }

  async #read(after: number): Promise<StoredEvent[]> {
    const found: StoredEvent[] = []
    for (let last = after; ;) {
      const events = await this.#options.eventStore.read(this.#key, last)
      const next = events.filter((event) => event.number > last)
      const newest = next.at(-1)
      if (newest === undefined) return found
      for (const event of next) found.push(event)
      last = newest.number
    }
  }

  #toSend(events: readonly StoredEvent[]): StreamEvent[] {
    return events.map(({ number, frame }) => ({ id: this.#id(number), data: frame }))
  }

  /** Stores which requests the stream responds to; then sends an id without a message, if `retry` is given. */
  begin(requests: readonly Id[], retry: number | undefined): void {
    const stored = this.#append(0, `[${requests.map(encodeId).join()}]`)
    if (retry !== undefined) this.#wait({ id: this.#id(0), retry, data: '' }, stored)
  }

  /** Sends an id without a message, so that a client that disconnects before the first message can resume. */
  prime(retry?: number): void {
    const id = this.#id(this.#count)
    this.#connection?.send(retry === undefined ? { id, data: '' } : { id, retry, data: '' })
  }

  /** Memory of the ids that `end` got. */
  get answeredBytes(): number {
    return bytesOf(this.#answered)
  }

  /** Ends the stream, after the events that wait for the store. `answered`: the requests to which the last has responses. */
  end(answered: readonly Id[] = []): void {
    this.#ended = true
    this.#answered = answered
    if (this.#waiting.length === 0) this.release()
  }

  connect(connection: SseStream): void {
    this.#connection = connection
  }

  /** Forgets a connection that is closed. */
  disconnect(connection: SseStream): void {
    if (this.#connection === connection) this.#connection = undefined
    if (this.#resuming === connection) this.#resuming = undefined
    this.#owner.drained()
  }

  /** Ends the connection, not the stream. */
  release(): void {
    this.#connection?.end()
    this.#connection = undefined
  }

  /**
   * Sends the events after a number over a new connection, and then whatever follows; resolves with whether the store had
   * all of them. If it has not the last one, which responds to requests, these get `evicted`.
   */
  async resume(connection: SseStream, after: number, evicted: RpcError): Promise<boolean> {
    this.release()
    this.#resuming = connection
    let sent = after
    let hasAll = true
    let hasLast = true
    while (sent < this.#count) {
      const count = this.#count
      await Promise.all(this.#waiting.map(({ appended }) => appended))
      const events = await this.#options.eventStore.read(this.#key, sent)
      const next = events.filter(({ number }) => number > sent)
      for (const { number, frame } of next) {
        connection.sendUnlimited({ id: this.#id(number), data: frame })
        if (number !== sent + 1) hasAll = false
        sent = number
      }
      hasLast = next.length > 0
      if (hasLast) continue
      // They were evicted, or could not be stored.
      hasAll = false
      sent = count
    }
    if (!hasLast)
      for (const id of this.#answered)
        connection.sendUnlimited({ data: encodeError(id, evicted, 'omitted') })
    const current = this.#resuming === connection
    if (current) this.#resuming = undefined
    if (this.#ended || !current) connection.end()
    else this.#connection = connection
    this.#owner.drained()
    return hasAll
  }

  /** Ends the stream and deletes its events. */
  delete(): void {
    this.end()
    const { eventStore } = this.#options
    const appended = this.#waiting.map((waiting) => waiting.appended)
    callHook(
      () =>
        appended.length === 0
          ? eventStore.delete(this.#key, this.#owner)
          : Promise.all(appended).then(() => eventStore.delete(this.#key, this.#owner)),
      this.#failed,
    )
  }

  /** Whether the event is stored. Never rejects. */
  #append(number: number, frame: string): boolean | Promise<boolean> {
    const { eventStore, ttl } = this.#options
    try {
      const appended: unknown = eventStore.append(this.#key, { number, frame }, ttl, this.#owner)
      return isThenable(appended)
        ? this.#inTime(Promise.resolve(appended))
        : this.#isStored(appended)
    } catch (error) {
      this.#failed(error)
      return false
    }
  }

  async #inTime(appended: Promise<unknown>): Promise<boolean> {
    try {
      const result = await withTimeout(STORE_TIMEOUT, appended)
      if (result !== 'late') return this.#isStored(result)
      this.#failed(new Error(`"append" did not resolve within ${STORE_TIMEOUT} ms`))
    } catch (error) {
      this.#failed(error)
    }
    return false
  }

  /** Only `false` is a refusal: the store may be written in JavaScript. */
  #isStored(result: unknown): boolean {
    if (result === false) this.#owner.superseded()
    return result !== false
  }

  #wait(event: StreamEvent & { data: string }, stored: boolean | Promise<boolean>): void {
    const waiting: WaitingEvent = {
      event,
      connection: this.#connection,
      appended: Promise.resolve(stored),
      stored: undefined,
    }
    this.#waiting.push(waiting)
    this.#waitingLength += event.data.length
    void this.#flushAfter(waiting)
    if (this.#waitingLength <= this.#options.maxUnsentBytes) return
    for (const each of this.#waiting) each.stored ??= false
    this.#flush()
  }

  async #flushAfter(waiting: WaitingEvent): Promise<void> {
    waiting.stored = await waiting.appended
    this.#flush()
  }

  /** Sends events in order, up to the first that the store has not decided on. */
  #flush(): void {
    let sent = 0
    for (const { event, connection, stored } of this.#waiting) {
      if (stored === undefined) break
      sent++
      const { id: _, ...withoutId } = event
      this.#waitingLength -= event.data?.length ?? 0
      if (connection === this.#connection) connection?.send(stored ? event : withoutId)
    }
    if (sent === 0) return
    this.#waiting = this.#waiting.slice(sent)
    if (this.#ended && this.#waiting.length === 0) this.release()
    this.#owner.drained()
  }

  readonly #failed = (error: unknown): void => {
    this.#options.report({
      level: 'error',
      message: 'The event store failed: a client that reconnects may miss events',
      error,
    })
  }

  #id(number: number): string {
    return `${this.name}.${number}`
  }
}

/** Memory of ids. */
export function bytesOf(ids: readonly Id[]): number {
  return ids.reduce<number>((sum, id) => sum + 8 + (typeof id === 'string' ? 2 * id.length : 0), 0)
}

/** The ids of the requests of a stream to which no response is stored. */
function unanswered([first, ...events]: readonly StoredEvent[]): readonly Id[] {
  if (first?.number !== 0) return []
  const answered = new Set(events.flatMap(({ frame }) => [...sentResponses(frame).keys()]))
  // Written by `begin`.
  return elements(first.frame).flatMap((written) => {
    const id = readId(written)
    return id === undefined || answered.has(id) ? [] : [id]
  })
}

/** A stream of a session, and the number of one of its events. */
export interface EventId {
  readonly stream: string
  readonly number: number
}

export function parseEventId(id: string): EventId | undefined {
  const [, stream, digits] = /^([a-z0-9]+)\.(\d{1,15})$/.exec(id) ?? []
  return stream === undefined ? undefined : { stream, number: Number(digits) }
}
