import { Budget } from './budget.js'
import { type Channel, ChannelExchange, type Exchange, type Receiver, rerouted } from './channel.js'
import { ChannelClosed, INVALID_REQUEST, RpcError, withCode } from './errors.js'
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
  type UnreadableId,
  encodeError,
  read,
  sendNotification,
  unread,
} from './message.js'
import { OutgoingCalls, type RequestOptions } from './outgoing.js'
import type { LogEntry } from './log-entry.js'
import { truncate } from './truncate.js'

export interface PeerOptions extends IncomingOptions {
  onNotification(notification: Notification): void
  /** Servers answer what they cannot understand. Clients never do: two confused peers would storm each other. */
  answersGarbage: boolean
  /** The most messages a batch may hold; 0 where there are no batches. Asked for each one. */
  batchLimit?(): number
  unreadableId?(): UnreadableId
  /** Tells the other side that a request of ours is not wanted any more. */
  cancelled?(id: Id, reason: string, method: string, send: Send): void
  report(report: LogEntry): void
  onClosed?(error?: Error): void
  maxDepth?: number
}

/** Where a channel has no budgets: the bytes of requests in progress, and of what is kept beyond them. */
const MAX_PENDING = 128 * 1024 * 1024
const MAX_RETAINED = 8 * 1024 * 1024

/**
 * One end of a JSON-RPC conversation: requests in both directions over one
 * channel. It is what its parts need of it, and makes what is seldom needed when
 * it is: over HTTP there is one for each request.
 */
export class Peer implements Receiver, PeerPort {
  readonly #channel: Channel
  readonly #options: PeerOptions
  readonly #incoming: IncomingCalls
  /** Made when something is asked. */
  #outgoing: OutgoingCalls | undefined
  /** For what came over the channel itself. */
  #exchange: Exchange | undefined
  #closed: Error | undefined
  /** Why no answer can come any more. */
  #deaf: Error | undefined
  #pending: Budget | undefined
  #retained: Budget | undefined

  constructor(channel: Channel, options: PeerOptions) {
    this.#channel = channel
    this.#options = options
    this.#incoming = new IncomingCalls(options, this)
    channel.receive(this)
  }

  frame(frame: string, exchange = this.#own(), message = this.#read(frame)): void {
    this.#receive(message, exchange, false)
  }

  ready(): Promise<void> | undefined {
    return this.#incoming.ready()
  }

  garbage(error: RpcError, head: string, tail: string): void {
    this.#invalid(unread(head, tail, error), this.#own())
  }

  failed(id: Id, error: Error): void {
    this.#outgoing?.fail(id, error)
  }

  closed(error?: Error): void {
    if (this.#closed !== undefined) return
    this.#closed =
      error === undefined
        ? new ChannelClosed('The connection is closed')
        : new ChannelClosed(`The connection broke: ${error.message}`, { cause: error })
    this.#outgoing?.drop(this.#closed)
    this.#incoming.drop(this.#closed)
    this.#options.onClosed?.(error)
  }

  #own(): Exchange {
    this.#exchange ??= new ChannelExchange(this.#channel)
    return this.#exchange
  }

  #calls(): OutgoingCalls {
    this.#outgoing ??= new OutgoingCalls({
      send: (frame, message) => this.#channel.send(frame, message),
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

  /** The bytes that calls in progress may hold. */
  get pending(): Budget {
    this.#pending ??= this.#channel.pending ?? new Budget(MAX_PENDING)
    return this.#pending
  }

  /** The bytes that may be kept for the other side beyond its requests. */
  get retained(): Budget {
    this.#retained ??= this.#channel.retained ?? new Budget(MAX_RETAINED)
    return this.#retained
  }

  /** Whether a request of ours has not been answered. */
  get asking(): boolean {
    return (this.#outgoing?.size ?? 0) > 0
  }

  /** The id that the next request will have. */
  get nextId(): Id {
    return this.#calls().nextId
  }

  request(method: string, params?: unknown, options: RequestOptions = {}): Promise<unknown> {
    const ended = this.#closed ?? this.#deaf
    return ended === undefined
      ? this.#calls().request(method, params, options)
      : Promise.reject(ended)
  }

  notify(method: string, params?: unknown): void {
    sendNotification((frame, message) => this.#channel.send(frame, message), method, params)
  }

  /** Sends a message that is already encoded. */
  sendFrame(frame: string, message: SentMessage): void {
    this.#channel.send(frame, message)
  }

  /** The other side does not want this call's answer any more. */
  cancel(id: Id, reason: string | undefined): void {
    const message = reason ?? 'The request was cancelled'
    this.#incoming.cancel(id, withCode('CANCELLED', new Error(message)))
  }

  /** Nothing more is received: what has been asked, or will be, stays without an answer. */
  stopListening(): void {
    this.#deaf ??= new ChannelClosed('The connection is closing: no answer can come any more')
    this.#outgoing?.drop(this.#deaf)
  }

  /** Resolves when every call that was taken has been answered. */
  idle(): Promise<void> {
    return this.#incoming.idle()
  }

  /** Answers everything still under way with an error and tells the handlers to stop. */
  abandon(error: RpcError): void {
    this.#incoming.abandon(error)
  }

  async close(): Promise<void> {
    await this.#channel.close()
    this.closed()
  }

  #read(frame: string): Message {
    return read(frame, this.#options.maxDepth)
  }

  #receive(message: Message, exchange: Exchange, inBatch: boolean): void {
    switch (message.kind) {
      case 'request':
        return this.#incoming.serve(message, exchange, inBatch)
      case 'notification':
        this.#notified(message)
        return exchange.reply()
      case 'response':
        this.#answered(message)
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
      this.tell({ level: 'error', message: `${truncate(notification.method)} failed`, error })
    }
  }

  #answered(response: Response): void {
    if (this.#outgoing?.respond(response) === true) return
    this.tell({
      level: 'debug',
      message: 'An answer to no request of ours was ignored',
      id: response.id,
    })
  }

  #invalid({ id, error, mute }: Invalid, exchange: Exchange): void {
    const report: LogEntry = { level: 'warning', message: error.message }
    this.tell(id === undefined ? report : { ...report, id })
    if (mute && id !== undefined)
      this.#outgoing?.fail(
        id,
        withCode(
          'INVALID_RESPONSE',
          new TypeError(`Invalid response: ${error.message}`, { cause: error }),
        ),
      )
    if (mute || !this.#options.answersGarbage) return exchange.reply()
    const frame = encodeError(id, error, this.#options.unreadableId?.() ?? 'null')
    exchange.reply(frame, { kind: 'response', id, error })
  }

  #batch({ frames }: Batch, exchange: Exchange, inBatch: boolean): void {
    const limit = this.#options.batchLimit?.() ?? 0
    let problem: string | undefined
    if (frames.length === 0) problem = 'an empty batch'
    else if (inBatch) problem = 'a batch within a batch'
    else if (limit === 0)
      problem = 'batches are not part of this protocol revision; send one message at a time'
    else if (frames.length > limit) {
      const count = frames.length > MAX_BATCH ? `more than ${MAX_BATCH}` : frames.length
      problem = `a batch of ${count} messages; at most ${limit} are taken`
    }
    if (problem !== undefined) {
      const error = new RpcError(INVALID_REQUEST, `Invalid Request: ${problem}`)
      return this.#invalid({ kind: 'invalid', id: undefined, error, mute: false }, exchange)
    }
    const answers: string[] = []
    let owed = frames.length
    const collect = (answer?: string) => {
      if (answer !== undefined) answers.push(answer)
      if (--owed === 0) exchange.reply(answers.length === 0 ? undefined : `[${answers.join(',')}]`)
    }
    const each = rerouted(exchange, (frame, part) => exchange.send(frame, part), collect)
    for (const frame of frames) this.#receive(this.#read(frame), each, true)
  }

  /** A log that fails must not fail the call. */
  tell(report: LogEntry): void {
    callHook(() => this.#options.report(report), ignore)
  }
}
