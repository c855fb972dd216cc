import type { Exchange, HttpRequest, Principal } from './channel.js'
import { type RpcError, withCode } from './errors.js'
import type { Id, Request, SentMessage, SentResponse } from './message.js'
import type { RequestOptions } from './outgoing.js'

/** What a call needs of those it is among. */
export interface CallHost {
  ask(method: string, params: unknown, options: RequestOptions): Promise<unknown>
  park(call: Incoming): void
  unpark(call: Incoming): void
  settle(call: Incoming, outcome: { result: unknown } | { error: RpcError }): void
}

/** One request that this side is serving. Once answered, it also says what the response was. */
export class Incoming implements SentResponse {
  readonly kind = 'response'
  request: Request
  /** How many bytes it is charged with. */
  bytes = 0
  readonly inBatch: boolean
  /** Whether it takes the place of another one. */
  running = false
  /** What it was answered with. */
  result: unknown
  error: RpcError | undefined
  readonly #exchange: Exchange
  readonly #calls: CallHost
  #controller: AbortController | undefined
  #aborted: Error | undefined
  #last: (() => void) | undefined
  #next: (() => void) | undefined
  /** Ends what has been asked for it. */
  #questions: AbortController | undefined
  /** How many things it waits for at once. */
  #parked = 0
  #state: 'open' | 'answered' | 'cancelled' = 'open'

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

  /** Whether the caller does not read what it is sent. */
  get congested(): boolean {
    return this.#exchange.congested ?? false
  }

  /** Neither answered nor cancelled. */
  get open(): boolean {
    return this.#state === 'open'
  }

  /** Fires when the caller has cancelled, or is gone. Made when somebody looks. */
  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController()
      if (this.#aborted !== undefined) this.#controller.abort(this.#aborted)
    }
    return this.#controller.signal
  }

  /** Has something done just before the answer leaves. */
  beforeAnswer(last: () => void): void {
    this.#last = last
  }

  /** Sends what belongs to this call. After its answer there is no such thing. */
  send(frame: string, message: SentMessage): void {
    if (this.open) this.#exchange.send(frame, message)
  }

  /** Lets go of the connection it came over, where the caller can come back for the answer. */
  release(): void {
    if (this.open) this.#exchange.release?.()
  }

  /** Asks the caller something on the way its call came; ends when the call does. */
  ask(method: string, params: unknown, options: RequestOptions = {}): Promise<unknown> {
    if (this.#state === 'answered')
      return Promise.reject(
        withCode(
          'CALL_ENDED',
          new Error('The request has its response: nothing more can be asked'),
        ),
      )
    this.#questions ??= new AbortController()
    const signals = [this.signal, this.#questions.signal]
    if (options.signal !== undefined) signals.push(options.signal)
    // Not `send`: a question is cancelled after its call was.
    const send = (frame: string, message: SentMessage) => this.#exchange.send(frame, message)
    return this.#calls.ask(method, params, { ...options, signal: AbortSignal.any(signals), send })
  }

  /** Lets go of what it was called with: a call that lasts for hours needs it no more. */
  forgetParams(): void {
    const { kind, id, method } = this.request
    this.request = { kind, id, method, params: undefined, frame: '' }
  }

  get waits(): boolean {
    return this.#parked > 0
  }

  /** While it only waits, another one may run in its place. */
  async parked<Value>(waiting: Promise<Value>): Promise<Value> {
    if (this.#parked++ === 0) this.#calls.park(this)
    try {
      return await waiting
    } finally {
      if (--this.#parked === 0) this.#calls.unpark(this)
    }
  }

  /** Answers at once, whatever the handler is doing: what it returns later is not heard. */
  settle(outcome: { result: unknown } | { error: RpcError }): void {
    this.#calls.settle(this, outcome)
  }

  /** Has something done just behind the answer; not where there is none. */
  afterAnswer(next: () => void): void {
    this.#next = next
  }

  /** Sends the response: `result`, or `error` where there is one. */
  answer(frame: string, result: unknown, error?: RpcError): void {
    if (!this.open) return
    this.result = result
    this.error = error
    this.#last?.()
    this.#questions?.abort(new Error('The call has been answered'))
    this.#state = 'answered'
    this.#exchange.reply(frame, this)
    // Its handler may never return, and would keep it.
    this.result = undefined
    this.#next?.()
  }

  /** Ends it without an answer. */
  cancel(reason: Error): void {
    if (!this.open) return
    this.#state = 'cancelled'
    this.abort(reason)
    this.#exchange.reply()
  }

  /** Tells the handler to stop, whether or not an answer was given. */
  abort(reason: Error): void {
    this.#aborted ??= reason
    this.#controller?.abort(reason)
  }
}
