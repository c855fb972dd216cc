import type { Budget } from '../../jsonrpc/budget.js'
import type { Channel, Exchange, HttpRequest, Principal, Receiver } from '../../jsonrpc/channel.js'
import type { RpcError } from '../../jsonrpc/errors.js'
import type { Request, SentResponse } from '../../jsonrpc/message.js'
import type { Budgets } from './budgets.js'
import type { ServedChannel } from './served-channel.js'
import { SseStream, type SseStreamOptions } from './sse-stream.js'
import type { KeptAlive, KeepAlive } from './keep-alive.js'
import { JSON_TYPE } from './http-error.js'
import { statusOf } from './status.js'
import type { HeaderList, HttpContext } from './http-context.js'

export interface StatelessOptions {
  visit: HttpContext
  pulse: KeepAlive
  maxWaiting: number
  principal: Principal | undefined
  /** Headers that every answer carries. */
  headers: HeaderList
  /** Headers of an answer that tells an error. */
  challenge(error: RpcError): HeaderList
  /** The bytes that clients can make the server hold. */
  budgets: Budgets
  /** Whether the response is a stream that stays open until the request is cancelled. */
  stream: boolean
  /** It has been answered, or its client is gone. */
  ended(described: StatelessExchange): void
}

/**
 * One request that describes itself: a conversation of one question. Its answer
 * is plain JSON, unless something is to be told before; then it is a stream.
 * Whoever closes it has cancelled the request.
 * https://modelcontextprotocol.io/specification/2026-07-28/basic/transports/streamable-http
 */
export class StatelessExchange implements Channel, Exchange, KeptAlive {
  readonly principal?: Principal
  readonly #options: StatelessOptions
  #receiver: Receiver | undefined
  #conversation: ServedChannel | undefined
  #outlet: SseStream | undefined
  #until: SseStreamOptions['until']
  #retained: Budget | undefined
  #state: 'new' | 'pending' | 'ended' = 'new'

  constructor(options: StatelessOptions) {
    this.#options = options
    if (options.principal !== undefined) this.principal = options.principal
  }

  /** Serves it; true where the answer is still to come. */
  serve(request: Request, open: (channel: Channel) => ServedChannel): boolean {
    const expires = this.principal?.expires
    // A call may end after its token; who listens has to come back with a new one.
    if (expires !== undefined && this.#options.stream)
      this.#until = { time: expires, end: () => void this.drain(0) }
    this.#conversation = open(this)
    this.#receiver?.frame(request.frame, this, request)
    if (this.#state === 'ended') return false
    this.#state = 'pending'
    if (this.#outlet === undefined) {
      this.#options.pulse.add(this)
      this.#options.visit.onGone(() => this.#gone())
    }
    return true
  }

  get http(): HttpRequest {
    return this.#options.visit.http
  }

  get pending(): Budget {
    return this.#options.budgets.of(this.principal?.id).pending
  }

  /** Made when it is needed: only a stream of notifications keeps anything. */
  get retained(): Budget {
    this.#retained ??= this.#options.budgets.ofSession(this.principal?.id).retained
    return this.#retained
  }

  get congested(): boolean {
    return this.#outlet?.congested ?? false
  }

  receive(receiver: Receiver): void {
    this.#receiver = receiver
  }

  /** All that is sent here belongs to the one request. */
  send(frame: string): void {
    if (this.#state === 'ended') return
    this.#stream().send({ data: frame })
  }

  reply(frame?: string, response?: SentResponse): void {
    if (this.#state === 'ended') return
    const pending = this.#state === 'pending'
    this.#state = 'ended'
    this.#answer(frame, response?.error)
    if (!pending) return
    this.#options.pulse.remove(this)
    this.#receiver?.closed()
    this.#options.ended(this)
  }

  /** A call that takes its time becomes a stream, which can show that it lives. */
  beat(): void {
    this.#stream().beat()
  }

  close(): Promise<void> {
    return Promise.resolve()
  }

  /** Gives what is under way a little time. */
  drain(deadline: number): Promise<void> {
    return this.#conversation?.drain(deadline) ?? Promise.resolve()
  }

  #answer(frame: string | undefined, error: RpcError | undefined): void {
    const { visit, headers, challenge } = this.#options
    if (this.#outlet !== undefined) {
      if (frame !== undefined) this.#outlet.send({ data: frame })
      this.#outlet.end()
    } else if (frame === undefined) visit.answer(202, headers)
    else if (error === undefined)
      visit.answer(200, headers.length === 0 ? JSON_TYPE : [...JSON_TYPE, ...headers], frame)
    else visit.answer(statusOf(error), [...JSON_TYPE, ...headers, ...challenge(error)], frame)
  }

  #stream(): SseStream {
    if (this.#outlet !== undefined) return this.#outlet
    const { visit, pulse, maxWaiting, headers } = this.#options
    pulse.remove(this)
    this.#outlet = new SseStream(visit, {
      pulse,
      maxWaiting,
      headers,
      gone: () => this.#gone(),
      until: this.#until,
    })
    return this.#outlet
  }

  #gone(): void {
    if (this.#state === 'ended') return
    this.#state = 'ended'
    this.#options.pulse.remove(this)
    this.#receiver?.closed()
    this.#options.ended(this)
  }
}
