import type { Budget } from '../../jsonrpc/budget.js'
import type { Revision } from '../../protocol/revisions/index.js'
import { INTERNAL_ERROR, RpcError } from '../../jsonrpc/errors.js'
import type { Id } from '../../jsonrpc/message.js'
import {
  type EventId,
  type StreamStoreOptions,
  ResumableStream,
  type StreamOwner,
  bytesOf,
} from './resumable-stream.js'
import type { HeaderList, HttpContext } from './http-context.js'
import { MAY_HAVE_RUN } from './forwarder.js'
import type { OpenResponses } from './open-responses.js'
import { SseStream } from './sse-stream.js'

export interface StreamSettings extends StreamStoreOptions {
  openResponses: OpenResponses
  /** The SSE field `retry`: milliseconds after which a client reconnects. */
  retryInterval: number
  /** The memory that the session holds beyond requests in progress. */
  retained: Budget
}

/** The session of the streams. */
interface Owner {
  readonly revision: Revision
  /** The id of its principal. */
  readonly owner: string | undefined
  /** Another process has it. */
  superseded: boolean
  /** The client has used it now. */
  used(): void
  /** The client may be reading again. */
  drained(): void
  /** The client may have missed changes. */
  missedChanges(): void
}

/** The prefix of the standalone stream; the suffix of the streams of requests. The generation of the session follows. */
const STANDALONE = 'g'
const OF_REQUEST = 'p'
const EARLIER_STANDALONE = /^g\d*$/
const EVICTED = 'The response to this request is not stored any more: the request may have run'
/** Number of ended streams that a client can still resume. */
const MAX_ENDED = 32

/** The SSE streams of one session: the standalone one, opened by GET, and one per request that needs one. */
export class SessionStreams {
  /** The stream that belongs to no request. */
  readonly standalone: ResumableStream
  readonly #stored: StreamOwner
  readonly #settings: StreamSettings
  readonly #owner: Owner
  readonly #streams = new Map<string, ResumableStream>()
  readonly #ended: ResumableStream[] = []
  #count = 0
  #listened = false
  /** Number of the last event that the client had when it opened the standalone stream. */
  #known = 0

  constructor(session: string, generation: number, settings: StreamSettings, owner: Owner) {
    const superseded = () => (owner.superseded = true)
    const drained = () => owner.drained()
    this.#stored = { session, generation, owner: owner.owner, superseded, drained }
    this.#settings = settings
    this.#owner = owner
    this.standalone = this.#make(STANDALONE)
  }

  get openResponses(): OpenResponses {
    return this.#settings.openResponses
  }

  /** Whether the client has ever opened the standalone stream. */
  get listened(): boolean {
    return this.#listened
  }

  /** Whether any of them has a connection. */
  get connected(): boolean {
    for (const stream of this.#streams.values()) if (stream.connected) return true
    return false
  }

  /** Sends a request on the standalone stream, when that of its call is disconnected; false if it is not open. */
  sendStandalone(frame: string): boolean {
    if (!this.standalone.connected) return false
    this.standalone.push(frame)
    return true
  }

  /** Opens the standalone stream until the token expires; false if it is open already. */
  listen(context: HttpContext, headers: HeaderList, expires: number | undefined): boolean {
    const { standalone } = this
    if (standalone.connected) return false
    // Without Last-Event-ID, it is not known what of the events since then the client has received.
    const mayHaveMissed = this.#listened ? standalone.count > this.#known : this.#isRestored
    this.#listened = true
    this.#known = standalone.count
    this.#connect(standalone, context, headers, expires)
    if (mayHaveMissed) this.#owner.missedChanges()
    return true
  }

  /** Opens a stream for the response to requests, whose ids are stored if they are given. */
  openStream(
    context: HttpContext,
    headers: HeaderList,
    requests: readonly Id[] | undefined,
  ): ResumableStream {
    const stream = this.#make((this.#count++).toString(36) + OF_REQUEST)
    if (requests === undefined) this.#connect(stream, context, headers)
    else {
      stream.connect(this.#openSse(stream, context, headers, undefined))
      const { polling } = this.#owner.revision
      stream.begin(requests, polling ? this.#settings.retryInterval : undefined)
    }
    return stream
  }

  /** Sends what followed an event; false if its stream is unknown, 'unavailable' if the event store fails. */
  resume(
    context: HttpContext,
    event: EventId,
    headers: HeaderList,
    expires: number | undefined,
  ): boolean | Promise<boolean | 'unavailable'> {
    const stream = this.#streams.get(event.stream)
    if (stream === undefined)
      return this.#isRestored && this.#resumeEarlier(context, event, headers, expires)
    // A call may outlast its token; the standalone stream may not.
    const until = stream === this.standalone ? expires : undefined
    // A client may invent numbers.
    const number = Math.min(event.number, stream.count)
    if (stream === this.standalone) this.#known = number
    const sse = this.#openSse(stream, context, headers, until)
    this.#prime(sse, { stream: event.stream, number })
    void this.#resume(stream, sse, number)
    return true
  }

  /** Sends the id again with which the client has resumed: it may have to do so again before there is another event. */
  #prime(sse: SseStream, { stream, number }: EventId): void {
    if (this.#owner.revision.polling) sse.send({ id: `${stream}.${number}`, data: '' })
  }

  /** Whether another process has had the session. */
  get #isRestored(): boolean {
    return this.#stored.generation > 0
  }

  /** Ends a stream after its last message, the response to `answered`; the client may still resume it. */
  finish(stream: ResumableStream, answered: readonly Id[]): void {
    // Without memory for the ids, their requests get no error if the response is evicted.
    stream.end(this.#settings.retained.take(bytesOf(answered)) ? answered : [])
    this.#retain(stream)
  }

  /** Ends all streams; their events stay in the store. */
  end(): void {
    for (const stream of this.#streams.values()) stream.end()
    this.#streams.clear()
  }

  /** Ends all streams, and deletes their events. */
  delete(): void {
    for (const stream of this.#streams.values()) stream.delete()
    this.#streams.clear()
  }

  #make(name: string): ResumableStream {
    const { generation } = this.#stored
    const suffix = generation === 0 ? '' : String(generation)
    const stream = new ResumableStream(this.#stored, name + suffix, this.#settings)
    this.#streams.set(stream.name, stream)
    return stream
  }

  #connect(
    stream: ResumableStream,
    context: HttpContext,
    headers: HeaderList,
    expires?: number,
  ): void {
    stream.connect(this.#openSse(stream, context, headers, expires))
    if (this.#owner.revision.polling) stream.prime(this.#settings.retryInterval)
  }

  #openSse(
    stream: ResumableStream,
    context: HttpContext,
    headers: HeaderList,
    expires: number | undefined,
  ): SseStream {
    const { openResponses, maxUnsentBytes } = this.#settings
    const disconnected = () => {
      stream.disconnect(sse)
      this.#owner.used()
    }
    const end = () => {
      sse.end()
      disconnected()
    }
    const sse: SseStream = new SseStream(context, {
      openResponses,
      maxUnsentBytes,
      headers,
      disconnected,
      drained: this.#stored.drained,
      expiry: expires === undefined ? undefined : { time: expires, end },
    })
    return sse
  }

  /** Resumes a stream of an earlier process: sends its stored events; the standalone stream then goes on with new ones. */
  async #resumeEarlier(
    context: HttpContext,
    event: EventId,
    headers: HeaderList,
    expires: number | undefined,
  ): Promise<boolean | 'unavailable'> {
    const { stream, number } = event
    const earlier = new ResumableStream(this.#stored, stream, this.#settings)
    const standalone = EARLIER_STANDALONE.test(stream)
    const reading = standalone
      ? earlier.after(number)
      : earlier.completedAfter(number, new RpcError(INTERNAL_ERROR, MAY_HAVE_RUN))
    const events = await reading.catch((error: unknown) => this.#reportUnread(error))
    if (events === undefined) return 'unavailable'
    if (events.length === 0 && !standalone) return false
    const until = standalone ? expires : undefined
    const sse = this.#openSse(this.standalone, context, headers, until)
    this.#prime(sse, event)
    for (const each of events) sse.sendUnlimited(each)
    if (!standalone) {
      sse.end()
      return true
    }
    const isFirst = !this.#listened
    this.#listened = true
    this.#known = 0
    void this.#resume(this.standalone, sse, 0)
    if (isFirst) this.#owner.missedChanges()
    return true
  }

  async #resume(stream: ResumableStream, sse: SseStream, after: number): Promise<void> {
    try {
      const hasAll = await stream.resume(sse, after, new RpcError(INTERNAL_ERROR, EVICTED))
      if (!hasAll && stream === this.standalone) this.#owner.missedChanges()
    } catch (error) {
      this.#reportUnread(error)
      // The client reconnects with the same Last-Event-ID.
      stream.disconnect(sse)
      sse.end()
    }
    if (stream.ended) this.#retain(stream)
  }

  #reportUnread(error: unknown): undefined {
    const message = 'The event store failed: the events of a stream could not be read'
    this.#settings.report({ level: 'error', message, error })
  }

  /** Keeps an ended stream, and deletes the oldest one beyond the limit. */
  #retain(stream: ResumableStream): void {
    if (this.#ended.includes(stream)) return
    this.#ended.push(stream)
    if (this.#ended.length <= MAX_ENDED) return
    const oldest = this.#ended.shift()
    if (oldest === undefined) return
    this.#settings.retained.release(oldest.answeredBytes)
    oldest.delete()
    this.#streams.delete(oldest.name)
  }
}
