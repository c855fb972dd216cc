import type { Exchange, HttpRequest, Principal } from './channel.js'
import { type RpcError, withCode } from './errors.js'
import type { Id, Request, SentMessage, SentResponse } from './message.js'
import type { RequestOptions } from './outgoing.js'

/** What a call needs of `IncomingCalls`, which owns it. */
export interface CallHost {
  ask(method: string, params: unknown, options: RequestOptions): Promise<unknown>
  park(call: IncomingRequest): void
  unpark(call: IncomingRequest): void
  settle(call: IncomingRequest, outcome: { result: unknown } | { error: RpcError }): void
}

/** Observes a call, for telemetry. */
export interface CallObserver {
  run<Result>(work: () => Result): Result
  end(outcome: { readonly result?: unknown; readonly error?: unknown }): void
}

/** One received request, until its response is sent. While the transport sends the response, this object also describes it (`SentResponse`). */
export class IncomingRequest implements SentResponse {
  readonly kind = 'response'
  request: Request
  /** The bytes that it takes of the pending budget. */
  bytes = 0
  readonly inBatch: boolean
  /** Whether it counts as a running handler. */
  running = false
  /** The response, while it is sent. */
  result: unknown
  error: RpcError | undefined
  observed: CallObserver | undefined
  readonly #exchange: Exchange
  readonly #calls: CallHost
  #controller: AbortController | undefined
  #aborted: Error | undefined
  #beforeResponse: (() => void) | undefined
  #afterResponse: (() => void) | undefined
  #ended: AbortController | undefined
  /** How many promises it is parked on. */
  #parked = 0
  #state: 'open' | 'responded' | 'cancelled' = 'open'

  constructor(request: Request, exchange: Exchange, inBatch: boolean, calls: CallHost) {
    this.request = request
    this.inBatch = inBatch
    this.#exchange = exchange
    this.#calls = calls
  }

  get id(): Id {
    return this.request.id
  }

  get principal(): Principal | undefined {
    return this.#exchange.principal
  }

  get http(): HttpRequest | undefined {
    return this.#exchange.http
  }

  /** Whether the caller is not reading. */
  get congested(): boolean {
    return this.#exchange.congested ?? false
  }

  /** Neither responded to nor cancelled. */
  get open(): boolean {
    return this.#state === 'open'
  }

  /** Aborted when the caller cancels or disconnects. Created on first use: most handlers never look. */
  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController()
      if (this.#aborted !== undefined) this.#controller.abort(this.#aborted)
    }
    return this.#controller.signal
  }

  /** Runs a function just before the response is sent. */
  beforeResponse(last: () => void): void {
    this.#beforeResponse = last
  }

  /** Sends a message that belongs to this call; nothing after its response. */
  send(frame: string, message: SentMessage): void {
    if (this.open) this.#exchange.send(frame, message)
  }

  /** Closes the connection it came over if the caller can reconnect for the response. */
  release(): void {
    if (this.open) this.#exchange.release?.()
  }

  /** Aborted when the call ends, with a response or without. One for all of its questions: many calls may wait. */
  get ended(): AbortSignal {
    this.#ended ??= new AbortController()
    return this.#ended.signal
  }

  /** Sends a request to the caller along the path of its own request. */
  ask(method: string, params: unknown, options: RequestOptions): Promise<unknown> {
    if (!this.open)
      return Promise.reject(
        this.#aborted ?? withCode('CALL_ENDED', new Error('The call has ended')),
      )
    // Not `this.send`: when the call is cancelled, the cancellation of its requests must still be sent.
    const send = (frame: string, message: SentMessage) => this.#exchange.send(frame, message)
    return this.#calls.ask(method, params, { ...options, send })
  }

  /** Frees the params: a call that lasts for hours does not need them. */
  forgetParams(): void {
    this.request = { ...this.request, params: undefined, meta: undefined, frame: '' }
  }

  get isParked(): boolean {
    return this.#parked > 0
  }

  /** While the call only waits for this promise, another handler may run in its place. */
  async park<Value>(waiting: Promise<Value>): Promise<Value> {
    if (this.#parked++ === 0) this.#calls.park(this)
    try {
      return await waiting
    } finally {
      if (--this.#parked === 0) this.#calls.unpark(this)
    }
  }

  /** Sends the response immediately, whatever the handler is doing; what it returns later is ignored. */
  settle(outcome: { result: unknown } | { error: RpcError }): void {
    this.#calls.settle(this, outcome)
  }

  /** Runs a function just after the response is sent; not if there is none. */
  afterResponse(next: () => void): void {
    this.#afterResponse = next
  }

  /** Sends the response: `error` if there is one, otherwise `result`. */
  respond(frame: string, result: unknown, error?: RpcError): void {
    if (!this.open) return
    this.result = result
    this.error = error
    this.#beforeResponse?.()
    this.#ended?.abort(error ?? new Error('The request has ended'))
    this.#state = 'responded'
    this.#exchange.reply(frame, this)
    if (this.observed !== undefined) this.observed.end({ result, error })
    // A handler that never returns would keep the result in memory.
    this.result = undefined
    this.#afterResponse?.()
  }

  /** Ends the call without a response: the specification forbids one for a cancelled request. */
  cancel(reason: Error): void {
    if (!this.open) return
    this.#state = 'cancelled'
    this.abort(reason)
    this.#exchange.reply()
    if (this.observed !== undefined) this.observed.end({ error: reason })
  }

  /** Aborts the signal of the handler. */
  abort(reason: Error): void {
    this.#aborted ??= reason
    this.#controller?.abort(reason)
    this.#ended?.abort(reason)
  }
}
