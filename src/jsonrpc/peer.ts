import { BatchReply } from './batch.js'
import { Budget } from './budget.js'
import type { Channel, Exchange, Principal, Receiver } from './channel.js'
import { ChannelClosedError, INVALID_REQUEST, RpcError, withCode } from './errors.js'
import { callHook, ignore } from './hook.js'
import { IncomingCalls, type IncomingOptions, type PeerPort } from './incoming-calls.js'
import {
  type Batch,
  MAX_BATCH,
  type Id,
  type Invalid,
  type Message,
  type Notification,
  type Response,
  type Send,
  type SentMessage,
  type SentResponse,
  type UnreadableId,
  encodeError,
  parseMessage,
  sendNotification,
  readUnparsed,
} from './message.js'
import { OutgoingRequests, type RequestOptions, type Sending } from './outgoing.js'
import type { LogEntry } from './log-entry.js'
import { truncate } from './truncate.js'
import { TURN, goOnLater } from './turns.js'

export interface PeerOptions extends IncomingOptions {
  /** Handles a received notification. */
  onNotification(notification: Notification): void
  /** Whether garbage gets an error response. Servers send one, clients never do: two peers would send errors to each other forever. */
  respondsToMalformed: boolean
  /** Maximum messages in a batch; 0 if the negotiated revision has no batches. Called for each batch. */
  batchLimit?(): number
  /** How an error response is written if the id of the request is unknown: differs between revisions. */
  unreadableId?(): UnreadableId
  /** Creates the id of a request of ours (default: numbers from 1). */
  readonly newId?: (() => string) | undefined
  /** Sends the notification that a request of ours was cancelled. */
  cancelled?(id: Id, reason: string, method: string, send: Send): void
  /** Observes a request that is about to be sent, and may change its params. */
  sending?(id: Id, method: string, params: unknown): Sending | undefined
  report(entry: LogEntry): void
  /** The other side reads again. */
  onDrained?(): void
  /** The connection has ended, with an error if it broke. */
  onClosed?(error?: Error): void
  maxDepth?: number
}

/** Default budgets in bytes, for channels without their own: requests in progress, and what is held beyond them. */
const MAX_PENDING = 128 * 1024 * 1024
const MAX_RETAINED = 8 * 1024 * 1024

/**
 * One end of a JSON-RPC connection: requests and notifications in both directions over one channel. It knows nothing of
 * MCP. A received frame takes this path: `frame` reads it (message.ts), `#receive` routes it by kind, `IncomingCalls`
 * runs the handler (`onRequest`) and sends the response through the exchange; a response goes to `OutgoingRequests`, which
 * settles the promise of `request`. Parts are created on first use, since over HTTP each request may have its own peer.
 */
export class Peer implements Receiver, PeerPort {
  readonly #channel: Channel
  readonly #options: PeerOptions
  readonly #incoming: IncomingCalls
  /** Created when the first request is sent. */
  #outgoing: OutgoingRequests | undefined
  /** The exchange of messages that arrive without one. */
  #exchange: Exchange | undefined
  #closed: Error | undefined
  /** Why no response can arrive any more. */
  #inputEnded: Error | undefined
  #retained: Budget | undefined
  /** The milliseconds that messages took since others had a turn of the event loop. */
  #busy = 0

  constructor(channel: Channel, options: PeerOptions) {
    this.#channel = channel
    this.#options = options
    this.#incoming = new IncomingCalls(options, this, channel.pending ?? new Budget(MAX_PENDING))
    channel.receive(this)
  }

  frame(frame: string, exchange = this.#channelExchange(), message = this.#read(frame)): void {
    const begun = performance.now()
    this.#receive(message, exchange, false)
    this.#busy += performance.now() - begun
  }

  ready(): Promise<void> | undefined {
    const paused = this.#incoming.ready()
    if (paused !== undefined || this.#busy < TURN) return paused
    this.#busy = 0
    return new Promise(goOnLater)
  }

  drained(): void {
    this.#incoming.startWaiting()
    this.#options.onDrained?.()
  }

  malformed(error: RpcError, head: string, tail: string): void {
    this.#invalid(readUnparsed(head, tail, error), this.#channelExchange())
  }

  failed(id: Id, error: Error): void {
    this.#outgoing?.fail(id, error)
  }

  closed(error?: Error): void {
    if (this.#closed !== undefined) return
    const message =
      error === undefined ? 'The connection is closed' : `The connection broke: ${error.message}`
    this.#closed = new ChannelClosedError(message, { cause: error })
    this.#outgoing?.rejectAll(new ChannelClosedError(message, { executed: 'maybe', cause: error }))
    this.#incoming.cancelAll(this.#closed)
    this.#options.onClosed?.(error)
  }

  #channelExchange(): Exchange {
    this.#exchange ??= new ChannelExchange(this.#channel)
    return this.#exchange
  }

  #calls(): OutgoingRequests {
    this.#outgoing ??= new OutgoingRequests({
      send: (frame, message) => this.#channel.send(frame, message),
      newId: this.#options.newId,
      hasSent: (id) => this.#channel.hasSent?.(id) ?? true,
      cancelled: (id, reason, method, send) => {
        if (this.#channel.cancel?.(id) !== true) this.#options.cancelled?.(id, reason, method, send)
      },
    })
    return this.#outgoing
  }

  /** Whether the other side does not read. */
  get congested(): boolean {
    return this.#channel.congested ?? false
  }

  /** Whether no more responses may be buffered. */
  get full(): boolean {
    return this.#channel.full ?? false
  }

  /** Budget for what is held for the other side beyond its requests, such as subscriptions. */
  get retained(): Budget {
    this.#retained ??= this.#channel.retained ?? new Budget(MAX_RETAINED)
    return this.#retained
  }

  /** Whether a request of ours is pending. */
  get hasPendingRequests(): boolean {
    return (this.#outgoing?.size ?? 0) > 0
  }

  /** The id that the next request will have. */
  get nextId(): Id {
    return this.#calls().nextId
  }

  request(method: string, params?: unknown, options: RequestOptions = {}): Promise<unknown> {
    const ended = this.#closed ?? this.#inputEnded
    if (ended !== undefined) return Promise.reject(ended)
    const sending = this.#options.sending?.(this.nextId, method, params)
    const response =
      sending === undefined
        ? this.#calls().request(method, params, options)
        : this.#observed(sending, method, options)
    // The response cannot arrive while reading pauses.
    this.#incoming.resume()
    return response
  }

  #observed(sending: Sending, method: string, options: RequestOptions): Promise<unknown> {
    let response: Promise<unknown>
    try {
      response = sending.run(() => this.#calls().request(method, sending.params, options))
    } catch (error) {
      sending.ended({ error })
      throw error
    }
    response.then(
      (result) => sending.ended({ result }),
      (error: unknown) => sending.ended({ error }),
    )
    return response
  }

  notify(method: string, params?: unknown): void {
    sendNotification((frame, message) => this.#channel.send(frame, message), method, params)
  }

  /** Sends a message that is encoded already. */
  sendFrame(frame: string, message: SentMessage): void {
    this.#channel.send(frame, message)
  }

  /** Cancels a call: the other side has sent `notifications/cancelled`. */
  cancel(id: Id, reason: string | undefined): void {
    const message = reason ?? 'The request was cancelled'
    this.#incoming.cancel(id, withCode('CANCELLED', new Error(message)))
  }

  /** The input has ended: pending and later requests of ours are rejected, while calls in progress still get their responses. */
  endInput(): void {
    const message = 'The connection is closing: no response can arrive any more'
    this.#inputEnded ??= new ChannelClosedError(message)
    this.#outgoing?.rejectAll(new ChannelClosedError(message, { executed: 'maybe' }))
  }

  /** Resolves when no call is in progress. */
  idle(): Promise<void> {
    return this.#incoming.idle()
  }

  /** Whether calls are queued until the other side reads. */
  get holdsCalls(): boolean {
    return this.#incoming.holdsCalls
  }

  /** Ends all calls in progress with an error response and aborts their handlers. */
  abandon(error: RpcError): void {
    this.#incoming.abandon(error)
  }

  async close(): Promise<void> {
    await this.#channel.close()
    this.closed()
  }

  #read(frame: string): Message {
    return parseMessage(frame, this.#options.maxDepth)
  }

  #receive(message: Message, exchange: Exchange, inBatch: boolean): void {
    switch (message.kind) {
      case 'request':
        return this.#incoming.serve(message, exchange, inBatch)
      case 'notification':
        this.#notified(message)
        return exchange.reply()
      case 'response':
        this.#responded(message)
        return exchange.reply()
      case 'batch':
        return this.#batch(message, exchange, inBatch)
      case 'invalid':
        return this.#invalid(message, exchange)
    }
  }

  #notified(notification: Notification): void {
    try {
      this.#options.onNotification(notification)
    } catch (error) {
      this.log({ level: 'error', message: `${truncate(notification.method)} failed`, error })
    }
  }

  #responded(response: Response): void {
    if (this.#outgoing?.settle(response) === true) return
    this.log({
      level: 'debug',
      message: 'A response with an unknown id was ignored',
      id: response.id,
    })
  }

  #invalid({ id, error, noResponse }: Invalid, exchange: Exchange): void {
    const entry: LogEntry = { level: 'warning', message: error.message }
    this.log(id === undefined ? entry : { ...entry, id })
    if (noResponse && id !== undefined)
      this.#outgoing?.fail(
        id,
        withCode(
          'INVALID_RESPONSE',
          new TypeError(error.message.replace(/^(?:Invalid Request: )?/, 'Invalid response: '), {
            cause: error,
          }),
        ),
      )
    if (noResponse || !this.#options.respondsToMalformed) return exchange.reply()
    const frame = encodeError(id, error, this.#options.unreadableId?.() ?? 'null')
    exchange.reply(frame, { kind: 'response', id, error })
  }

  #batch({ frames }: Batch, exchange: Exchange, inBatch: boolean): void {
    const limit = this.#options.batchLimit?.() ?? 0
    let problem: string | undefined
    if (frames.length === 0) problem = 'a batch must not be empty'
    else if (inBatch) problem = 'a batch must not contain a batch'
    else if (limit === 0)
      problem = 'batches are not part of this protocol revision; send one message at a time'
    else if (frames.length > limit) {
      const count = frames.length > MAX_BATCH ? `more than ${MAX_BATCH}` : frames.length
      problem = `a batch of ${count} messages; the limit is ${limit}`
    }
    if (problem !== undefined) {
      const error = new RpcError(INVALID_REQUEST, `Invalid Request: ${problem}`)
      return this.#invalid({ kind: 'invalid', id: undefined, error, noResponse: false }, exchange)
    }
    const reply = new BatchReply(exchange, frames.length, this.#incoming)
    for (const frame of frames) this.#receive(this.#read(frame), reply.exchange, true)
  }

  /** Writes to the log. An exception in the log must not fail the call. */
  log(entry: LogEntry): void {
    callHook(() => this.#options.report(entry), ignore)
  }
}

/** The exchange of channels that carry everything on one connection, such as stdio. */
export class ChannelExchange implements Exchange {
  readonly principal?: Principal
  readonly #channel: Channel

  constructor(channel: Channel, principal?: Principal) {
    this.#channel = channel
    if (principal !== undefined) this.principal = principal
  }

  get congested(): boolean {
    return this.#channel.congested ?? false
  }

  send(frame: string, message?: SentMessage): void {
    this.#channel.send(frame, message)
  }

  reply(frame?: string, response?: SentResponse): void {
    if (frame !== undefined) this.#channel.send(frame, response)
  }
}
