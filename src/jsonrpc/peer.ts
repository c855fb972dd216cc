import type { Channel } from './channel.js'
import { type Deadline, Timeout } from './deadline.js'
import { ChannelClosed, INTERNAL_ERROR, INVALID_REQUEST, RpcError } from './errors.js'
import { InFlight, Incoming, type Reply } from './in-flight.js'
import {
  type Batch,
  type Id,
  type Invalid,
  type Notification,
  type Request,
  type Response,
  type UnreadableId,
  encodeError,
  encodeNotification,
  encodeRequest,
  encodeResult,
  isThenable,
  read,
  unread,
} from './message.js'

/** What a peer notices that concerns no caller: for the log. */
export interface Report {
  level: 'debug' | 'info' | 'warning' | 'error'
  message: string
  id?: Id
  error?: unknown
}

export interface PeerOptions {
  /** Serves one request: a result, or a promise of one. What it throws is answered as an error. */
  request(call: Incoming): unknown
  notification(notification: Notification): void
  /** Servers answer what they cannot understand. Clients never do: two confused peers would storm each other. */
  answersGarbage: boolean
  /** The most messages a batch may hold; 0 where there are no batches. Asked for each one. */
  batchLimit?(): number
  unreadableId?(): UnreadableId
  /** Tells the other side that a request of ours is not wanted any more. */
  cancelled?(id: Id, reason: string, method: string): void
  report(report: Report): void
  closed?(error?: Error): void
  maxDepth?: number
  /** The most calls under way at once; more are refused. */
  maxInFlight?: number
}

export interface RequestOptions {
  signal?: AbortSignal
  /** When the request is given up. */
  deadline?: Deadline
}

/** One end of a JSON-RPC conversation: requests in both directions over one channel. */
export class Peer {
  readonly #channel: Channel
  readonly #options: PeerOptions
  readonly #inFlight = new InFlight()
  readonly #maxInFlight: number
  readonly #send: Reply
  #nextId = 1
  #closed: Error | undefined

  constructor(channel: Channel, options: PeerOptions) {
    this.#channel = channel
    this.#options = options
    this.#maxInFlight = options.maxInFlight ?? 10_000
    this.#send = (frame) => {
      if (frame !== undefined) channel.send(frame)
    }
    channel.receive({
      frame: (frame) => this.#receive(frame, this.#send),
      garbage: (error, head) => this.#invalid(unread(head, error), this.#send),
      closed: (error) => this.#end(error),
    })
  }

  /** The id that the next request will have. */
  get nextId(): Id {
    return this.#nextId
  }

  request(method: string, params?: unknown, { signal, deadline }: RequestOptions = {}): Promise<unknown> {
    if (this.#closed !== undefined) return Promise.reject(this.#closed)
    if (signal?.aborted === true) return Promise.reject(asError(signal.reason))
    const id = this.#nextId++
    const frame = encodeRequest(id, method, params)
    return new Promise((resolve, reject) => {
      const giveUp = (error: Error) => {
        settle()
        this.#options.cancelled?.(id, error.message, method)
        reject(error)
      }
      const aborted = () => giveUp(asError(signal?.reason))
      const settle = () => {
        this.#inFlight.outgoing.delete(id)
        deadline?.stop()
        signal?.removeEventListener('abort', aborted)
      }
      deadline?.start((error) => giveUp(new Timeout(`${error.message} to ${method}`)))
      signal?.addEventListener('abort', aborted)
      this.#inFlight.outgoing.set(id, {
        resolve: (result) => (settle(), resolve(result)),
        reject: (error) => (settle(), reject(error)),
      })
      this.#send(frame)
    })
  }

  notify(method: string, params?: unknown): void {
    this.#send(encodeNotification(method, params))
  }

  /** Sends a message that is already encoded. */
  sendFrame(frame: string): void {
    this.#send(frame)
  }

  /** The other side does not want this call's answer any more. Unknown and finished calls are ignored. */
  cancel(id: Id, reason: string | undefined): void {
    const call = this.#inFlight.incoming.get(id)
    if (call === undefined) return
    call.cancel(new Error(reason ?? 'The caller has cancelled the request'))
    this.#inFlight.end(call)
  }

  /** Resolves when every call that was taken has been answered. */
  idle(): Promise<void> {
    return this.#inFlight.idle()
  }

  /** Answers everything still under way with an error and tells the handlers to stop. */
  abandon(error: RpcError): void {
    for (const call of this.#inFlight.incoming.values()) {
      call.answer(encodeError(call.id, error, 'null'))
      call.abort(error)
      this.#inFlight.end(call)
    }
  }

  async close(): Promise<void> {
    await this.#channel.close()
    this.#end()
  }

  #receive(frame: string, reply: Reply): void {
    const message = read(frame, this.#options.maxDepth)
    switch (message.kind) {
      case 'request':
        return this.#serve(message, reply)
      case 'notification':
        this.#notified(message)
        return reply()
      case 'response':
        this.#answered(message)
        return reply()
      case 'batch':
        return this.#batch(message, reply)
      case 'invalid':
        return this.#invalid(message, reply)
    }
  }

  #serve(request: Request, reply: Reply): void {
    const { incoming } = this.#inFlight
    if (incoming.size > 0) {
      const refusal = this.#refusal(request.id)
      if (refusal !== undefined) return reply(encodeError(request.id, refusal, 'null'))
    }
    const call = new Incoming(request, reply, reply !== this.#send)
    let result: unknown
    let later: boolean
    try {
      result = this.#options.request(call)
      later = isThenable(result)
    } catch (error) {
      return this.#fail(call, error)
    }
    // No promise, no bookkeeping: the answer goes out before the next message is looked at.
    if (!later) return this.#answer(call, result)
    this.#inFlight.begin(call)
    Promise.resolve(result)
      .then((value) => this.#answer(call, value))
      .catch((error: unknown) => this.#fail(call, error))
      .finally(() => this.#inFlight.end(call))
  }

  #refusal(id: Id): RpcError | undefined {
    const { incoming } = this.#inFlight
    if (incoming.has(id)) return new RpcError(INVALID_REQUEST, 'Invalid Request: a request with this id is still being served')
    if (incoming.size < this.#maxInFlight) return undefined
    return new RpcError(INTERNAL_ERROR, `Too many requests at once: ${this.#maxInFlight} are being served. Try again later`)
  }

  #answer(call: Incoming, result: unknown): void {
    if (!call.open) return
    let frame: string
    try {
      frame = encodeResult(call.id, result)
    } catch (error) {
      this.#options.report({
        level: 'error',
        message: `The result of ${call.request.method} cannot be written as JSON`,
        id: call.id,
        error,
      })
      frame = encodeError(call.id, new RpcError(INTERNAL_ERROR, 'Internal error: the result cannot be written as JSON'), 'null')
    }
    call.answer(frame)
  }

  #fail(call: Incoming, error: unknown): void {
    if (!call.open) return
    if (!(error instanceof RpcError)) {
      this.#options.report({ level: 'error', message: `${call.request.method} failed`, id: call.id, error })
    }
    const shown = error instanceof RpcError ? error : new RpcError(INTERNAL_ERROR, 'Internal error')
    let frame: string
    try {
      frame = encodeError(call.id, shown, 'null')
    } catch {
      // Its `data` cannot be written as JSON; the rest can.
      frame = encodeError(call.id, new RpcError(shown.code, shown.message), 'null')
    }
    call.answer(frame)
  }

  #notified(notification: Notification): void {
    try {
      this.#options.notification(notification)
    } catch (error) {
      this.#options.report({ level: 'error', message: `${notification.method} failed`, error })
    }
  }

  #answered({ id, outcome }: Response): void {
    const waiting = this.#inFlight.outgoing.get(id)
    if (waiting === undefined) this.#options.report({ level: 'debug', message: 'An answer to no request of ours was ignored', id })
    else if ('error' in outcome) waiting.reject(outcome.error)
    else waiting.resolve(outcome.result)
  }

  #invalid({ id, error, mute }: Invalid, reply: Reply): void {
    const report: Report = { level: 'warning', message: error.message }
    this.#options.report(id === undefined ? report : { ...report, id })
    if (mute && id !== undefined) this.#inFlight.outgoing.get(id)?.reject(error)
    if (mute || !this.#options.answersGarbage) return reply()
    reply(encodeError(id, error, this.#options.unreadableId?.() ?? 'null'))
  }

  #batch({ frames }: Batch, reply: Reply): void {
    const limit = this.#options.batchLimit?.() ?? 0
    let problem: string | undefined
    if (frames.length === 0) problem = 'an empty batch'
    else if (reply !== this.#send) problem = 'a batch within a batch'
    else if (limit === 0) problem = 'batches are not part of this protocol revision; send one message at a time'
    else if (frames.length > limit) problem = `a batch of ${frames.length} messages; at most ${limit} are taken`
    if (problem !== undefined) {
      const error = new RpcError(INVALID_REQUEST, `Invalid Request: ${problem}`)
      return this.#invalid({ kind: 'invalid', id: undefined, error, mute: false }, reply)
    }
    const answers: string[] = []
    let owed = frames.length
    const collect: Reply = (answer) => {
      if (answer !== undefined) answers.push(answer)
      if (--owed === 0 && answers.length > 0) this.#send(`[${answers.join(',')}]`)
    }
    for (const frame of frames) this.#receive(frame, collect)
  }

  #end(error?: Error): void {
    if (this.#closed !== undefined) return
    this.#closed = new ChannelClosed(error === undefined ? 'The connection is closed' : `The connection broke: ${error.message}`)
    for (const waiting of this.#inFlight.outgoing.values()) waiting.reject(this.#closed)
    for (const call of this.#inFlight.incoming.values()) {
      call.cancel(this.#closed)
      this.#inFlight.end(call)
    }
    this.#options.closed?.(error)
  }
}

function asError(reason: unknown): Error {
  return reason instanceof Error ? reason : new Error(typeof reason === 'string' ? reason : 'The request was aborted')
}
