import { EventTooLongError } from '../../../framing/event-stream.js'
import { RequestFailedError } from '../../../jsonrpc/errors.js'
import type { LogEntry } from '../../../jsonrpc/log-entry.js'
import { untilAborted, waitFor } from './abort.js'
import type { HttpResponse } from './http-request.js'
import type { PendingRequest } from './pending-request.js'
import { StreamPosition, isTemporary } from './reconnecting.js'
import { EVENT_STREAM } from './request-headers.js'
import { mediaType, readEvents } from './response-body.js'

/** What the streams need of their channel. */
export interface StreamHost {
  /** Maximum bytes of a received message. */
  readonly maxMessage: number
  /** Sends a GET request. `background`: nobody waits for it. */
  open(
    headers: Readonly<Record<string, string>>,
    signal: AbortSignal,
    background: boolean,
  ): Promise<HttpResponse>
  /** Delivers a message; `own` is the request whose stream it came on. */
  deliver(text: string, own: PendingRequest | undefined): void
  /** Backpressure: resolves when more messages can be accepted; undefined if they can be now. */
  ready(): Promise<unknown> | undefined
  report(entry: LogEntry): void
}

/** Maximum consecutive failures to resume the stream of a request. */
const MAX_FAILURES = 5
/** Milliseconds for the end of a stream after the response. */
const LINGER = 2000

/** How an attempt to open a stream ended. `lost`: it was open, and cannot be resumed where it broke. */
type Attempt = 'read' | 'lost' | 'temporary' | 'refused' | 'not found'

/**
 * Reads the event streams of a session, and opens them again after the last event when they break.
 * https://modelcontextprotocol.io/specification/2025-11-25/basic/transports#resumability-and-redelivery
 */
export class EventStreams {
  readonly #host: StreamHost

  constructor(host: StreamHost) {
    this.#host = host
  }

  /** Reads the stream of a request until its response. Rejects if there is none. */
  async readResponse(
    response: HttpResponse,
    pending: PendingRequest,
    resumable: boolean,
  ): Promise<void> {
    const { signal } = pending.controller
    const cursor = new StreamPosition()
    const broken = await this.#read(response, cursor, pending, signal)
    if (resumable) await this.#resume(cursor, pending, signal)
    if (!pending.settled)
      throw new RequestFailedError(
        'STREAM_ENDED',
        'The stream of the request ended without its response',
        { executed: 'maybe', cause: broken },
      )
  }

  async #resume(
    cursor: StreamPosition,
    pending: PendingRequest,
    signal: AbortSignal,
  ): Promise<void> {
    let failures = 0
    while (cursor.id !== undefined && !pending.settled && failures < MAX_FAILURES) {
      await waitFor(cursor.delay(failures), signal)
      const attempt = await this.#open(cursor, pending, signal)
      if (attempt === 'refused' || attempt === 'not found') return
      failures = attempt === 'temporary' ? failures + 1 : 0
    }
  }

  /**
   * Keeps the stream for messages that belong to no request open, until the signal fires. The stream is optional: a
   * server that refuses it is not asked again. Resolves with the reason if it was open before.
   */
  async listen(signal: AbortSignal): Promise<'refused' | 'not found' | undefined> {
    const cursor = new StreamPosition()
    let opened = false
    for (let failures = 0; !signal.aborted;) {
      const attempt = await this.#open(cursor, undefined, signal)
      if (attempt === 'refused' || attempt === 'not found') {
        if (opened) return attempt
        return undefined
      }
      opened ||= attempt !== 'temporary'
      failures = attempt === 'read' ? 0 : failures + 1
      await waitFor(cursor.delay(failures), signal)
    }
    return undefined
  }

  /** Requests the events after the last one. */
  async #open(
    cursor: StreamPosition,
    pending: PendingRequest | undefined,
    signal: AbortSignal,
  ): Promise<Attempt> {
    const headers: Record<string, string> = { accept: EVENT_STREAM }
    if (cursor.id !== undefined) headers['last-event-id'] = cursor.id
    let response: HttpResponse
    try {
      response = await this.#host.open(headers, signal, pending === undefined)
    } catch {
      return 'temporary'
    }
    const { status } = response
    if (status !== 200 || mediaType(response) !== EVENT_STREAM) {
      response.cancel()
      if (status === 404) return 'not found'
      return isTemporary(status) ? 'temporary' : 'refused'
    }
    const broken = await this.#read(response, cursor, pending, signal)
    if (!(broken instanceof EventTooLongError)) return 'read'
    // The same event would come again.
    cursor.id = undefined
    this.#host.report({
      level: 'warning',
      message: `Messages of the GET stream were lost: ${broken.message}`,
    })
    return 'lost'
  }

  /** Delivers every message of a stream; resolves to the error if it broke. */
  async #read(
    response: HttpResponse,
    cursor: StreamPosition,
    pending: PendingRequest | undefined,
    signal: AbortSignal,
  ): Promise<unknown> {
    const host = this.#host
    let linger: ReturnType<typeof setTimeout> | undefined
    try {
      for await (const each of readEvents(response, host.maxMessage)) {
        cursor.read(each)
        const { event = 'message', data = '' } = each
        if (event === 'message' && data !== '') host.deliver(data, pending)
        // After the response the stream should end; otherwise it is closed.
        if (pending?.settled === true) linger ??= setTimeout(() => response.cancel(), LINGER)
        const ready = host.ready()
        if (ready !== undefined) await untilAborted(ready, signal)
      }
      return undefined
    } catch (error) {
      if (error instanceof EventTooLongError && pending !== undefined) throw error
      return error
    } finally {
      clearTimeout(linger)
    }
  }
}
