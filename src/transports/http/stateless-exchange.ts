import type { Budget } from '../../jsonrpc/budget.js'
import type {
  Channel,
  ConnectionFacts,
  Exchange,
  HttpRequest,
  Principal,
  Receiver,
} from '../../jsonrpc/channel.js'
import type { RpcError } from '../../jsonrpc/errors.js'
import type { Request, SentResponse } from '../../jsonrpc/message.js'
import type { Budgets } from './budgets.js'
import type { HeaderList, HttpContext } from './http-context.js'
import { JSON_TYPE } from './http-error-response.js'
import type { KeptAlive, OpenResponses } from './open-responses.js'
import type { ServedSession } from './served-session.js'
import { SseStream, type SseStreamOptions } from './sse-stream.js'
import { statusOf } from './status.js'

const CONNECTION: ConnectionFacts = { transport: 'tcp', protocol: 'http' }

export interface StatelessOptions {
  context: HttpContext
  openResponses: OpenResponses
  maxUnsentBytes: number
  principal: Principal | undefined
  /** Headers of every response. */
  headers: HeaderList
  /** Headers of an error response. */
  challenge(error: RpcError): HeaderList
  budgets: Budgets
  /** Whether the response is a stream that stays open until the request is cancelled. */
  stream: boolean
  /** Called when the response was sent, or the client has disconnected. */
  ended(exchange: StatelessExchange): void
}

/**
 * One stateless request, as a channel of its own. The response is JSON, or a stream if other messages precede it. A
 * client that closes the stream cancels the request.
 * https://modelcontextprotocol.io/specification/2026-07-28/basic/transports/streamable-http
 */
export class StatelessExchange implements Channel, Exchange, KeptAlive {
  readonly principal?: Principal
  readonly #options: StatelessOptions
  #receiver: Receiver | undefined
  #served: ServedSession | undefined
  #sse: SseStream | undefined
  #expiry: SseStreamOptions['expiry']
  #retained: Budget | undefined
  #state: 'new' | 'pending' | 'ended' = 'new'

  constructor(options: StatelessOptions) {
    this.#options = options
    if (options.principal !== undefined) this.principal = options.principal
  }

  /** Serves the request in a session that was opened over this channel; true if the response follows later. */
  serve(request: Request, session: ServedSession): boolean {
    const expires = this.principal?.expires
    // A call may outlast its token; a subscription may not.
    if (expires !== undefined && this.#options.stream)
      this.#expiry = { time: expires, end: () => void this.drain(0) }
    this.#served = session
    this.#receiver?.frame(request.frame, this, request)
    if (this.#state === 'ended') return false
    this.#state = 'pending'
    if (this.#sse === undefined) {
      const { context, openResponses } = this.#options
      openResponses.add(context, this)
      context.onDisconnect(() => this.#onDisconnect())
    }
    return true
  }

  get http(): HttpRequest {
    return this.#options.context.http
  }

  get connection(): ConnectionFacts {
    return CONNECTION
  }

  get pending(): Budget {
    return this.#options.budgets.of(this.principal?.id).pending
  }

  /** Created on demand: only subscriptions retain memory. */
  get retained(): Budget {
    this.#retained ??= this.#options.budgets.ofSession(this.principal?.id).retained
    return this.#retained
  }

  get congested(): boolean {
    return this.#sse?.congested ?? false
  }

  receive(receiver: Receiver): void {
    this.#receiver = receiver
  }

  /** Every message on this channel belongs to the one request. */
  send(frame: string): void {
    if (this.#state === 'ended') return
    this.#stream().send({ data: frame })
  }

  reply(frame?: string, response?: SentResponse): void {
    if (this.#state === 'ended') return
    const pending = this.#state === 'pending'
    this.#state = 'ended'
    this.#respond(frame, response?.error)
    if (pending) this.#close()
  }

  /** Turns the response of a long call into a stream, on which keep-alive comments are sent. */
  onKeepAlive(): void {
    this.#stream().onKeepAlive()
  }

  close(): Promise<void> {
    return Promise.resolve()
  }

  /** Gives the request `deadline` milliseconds. */
  drain(deadline: number): Promise<void> {
    return this.#served?.drain(deadline) ?? Promise.resolve()
  }

  #respond(frame: string | undefined, error: RpcError | undefined): void {
    const { context, headers, challenge } = this.#options
    if (this.#sse !== undefined) {
      if (frame !== undefined) this.#sse.send({ data: frame })
      this.#sse.end()
    } else if (frame === undefined) context.respond(202, headers)
    else if (error === undefined)
      context.respond(200, headers.length === 0 ? JSON_TYPE : [...JSON_TYPE, ...headers], frame)
    else context.respond(statusOf(error), [...JSON_TYPE, ...headers, ...challenge(error)], frame)
  }

  #stream(): SseStream {
    if (this.#sse !== undefined) return this.#sse
    const { context, openResponses, maxUnsentBytes, headers } = this.#options
    this.#sse = new SseStream(context, {
      openResponses,
      maxUnsentBytes,
      headers,
      disconnected: () => this.#onDisconnect(),
      drained: () => {
        if (!this.congested) this.#receiver?.drained?.()
      },
      expiry: this.#expiry,
    })
    return this.#sse
  }

  #onDisconnect(): void {
    if (this.#state === 'ended') return
    this.#state = 'ended'
    this.#close()
  }

  #close(): void {
    const { context, openResponses } = this.#options
    openResponses.remove(context)
    this.#receiver?.closed()
    this.#options.ended(this)
  }
}
