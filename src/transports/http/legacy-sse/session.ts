import type { Budget } from '../../../jsonrpc/budget.js'
import type { Channel, ConnectionFacts, Principal, Receiver } from '../../../jsonrpc/channel.js'
import type { AdmittedRequest } from '../admitted-request.js'
import type { OpenResponses } from '../open-responses.js'
import type { ServedSession } from '../served-session.js'
import { initializeOf } from '../session-state.js'
import { initializeBytes } from '../session.js'
import { sessionNameOf } from '../session-id.js'
import { SseStream } from '../sse-stream.js'
import { LegacySseExchange, type PostedMessage, type StreamPort } from './exchange.js'
import { unref } from '../../../runtime.js'

export interface LegacySseSettings {
  openResponses: OpenResponses
  /** Maximum unsent bytes of the stream. */
  maxUnsentBytes: number
  /** Milliseconds until the client must have sent `initialize`. */
  initializeTimeout: number
  /** The memory of its requests in progress, and what it holds beyond them. */
  pending: Budget
  retained: Budget
  /** Called when the stream has ended, and the session with it. */
  ended(session: LegacySseSession): void
}

/** Memory of a session with its stream, before `initialize`: objects, buffers of the connection. */
export const SESSION_BYTES = 12 * 1024

/**
 * A session of HTTP+SSE, the transport with two endpoints: it lasts as long as its event stream, on which everything is
 * sent to the client.
 * https://modelcontextprotocol.io/specification/2024-11-05/basic/transports#http-with-sse
 */
export class LegacySseSession implements Channel, StreamPort {
  readonly id: string
  /** The principal that has opened the stream; no other may use it. */
  readonly owner: string | undefined
  readonly pending: Budget
  readonly retained: Budget
  readonly #settings: LegacySseSettings
  readonly #stream: SseStream
  readonly #served: ServedSession
  /** The calls in progress. */
  readonly #calls = new Set<LegacySseExchange>()
  /** When the newest token of the client expires. */
  readonly #expiry = { time: Infinity, end: () => void this.#checkExpiry() }
  readonly #timer: ReturnType<typeof setTimeout>
  /** Of `initialize`. */
  #initializeBytes = 0
  /** Unsent bytes that count as requests in progress. */
  #unsentBytes = 0
  #receiver: Receiver | undefined
  #expired = false
  #closed = false

  get connection(): ConnectionFacts {
    return { transport: 'tcp', protocol: 'http', session: sessionNameOf(this.id) }
  }

  constructor(
    id: string,
    { context, principal, headers }: AdmittedRequest,
    settings: LegacySseSettings,
    openSession: (channel: Channel) => ServedSession,
  ) {
    this.id = id
    this.owner = principal?.id
    this.pending = settings.pending
    this.retained = settings.retained
    this.retained.charge(SESSION_BYTES)
    this.#settings = settings
    this.#expiry.time = principal?.expires ?? Infinity
    const { openResponses, maxUnsentBytes, initializeTimeout } = settings
    this.#served = openSession(this)
    this.#stream = new SseStream(context, {
      openResponses,
      maxUnsentBytes,
      headers,
      disconnected: () => this.end(),
      drained: () => this.#drained(),
      expiry: this.#expiry,
    })
    this.#timer = unref(setTimeout(() => this.end(), initializeTimeout))
  }

  /** The first event: the URI for POST requests. */
  sendEndpoint(uri: string): void {
    this.#stream.send({ event: 'endpoint', data: uri })
  }

  /** Whether it accepts no more messages. */
  get closed(): boolean {
    return this.#closed || this.#expired
  }

  /** Whether the client does not read. */
  get congested(): boolean {
    return this.#stream.congested
  }

  receive(receiver: Receiver): void {
    this.#receiver = receiver
  }

  /** Sends a message that belongs to no request. */
  send(frame: string): void {
    if (!this.#checkExpiry()) this.#write(frame)
  }

  sendMessage(frame: string): void {
    // A call may outlast its token.
    if (Date.now() >= this.#expiry.time) this.#setExpired()
    this.#write(frame)
    this.#endIfExpired()
  }

  /** Serves the message of a POST; false if the session has no memory left for it. */
  post(text: string, posted: PostedMessage): boolean {
    const { message, principal } = posted
    if (message.kind === 'request' && message.method === 'initialize') {
      if (!this.#retain(initializeBytes(initializeOf(message.params)))) return false
      clearTimeout(this.#timer)
    }
    this.#renew(principal)
    const exchange = new LegacySseExchange(this, posted)
    this.#receiver?.frame(text, exchange, message)
    if (!exchange.accept()) return true
    this.#calls.add(exchange)
    this.pending.charge(exchange.bytes)
    this.#settings.openResponses.add(exchange)
    return true
  }

  ended(exchange: LegacySseExchange): void {
    this.#calls.delete(exchange)
    this.pending.release(exchange.bytes)
    this.#settings.openResponses.remove(exchange)
    // Afterwards: the response is sent first.
    if (this.#expired) queueMicrotask(() => this.#endIfExpired())
  }

  /** Waits for calls in progress, then ends the session. */
  async drain(deadline: number): Promise<void> {
    await this.#served.drain(deadline)
    this.end()
  }

  /** Ends the stream: cancels calls in progress. */
  end(): void {
    if (this.#closed) return
    this.#closed = true
    clearTimeout(this.#timer)
    this.#receiver?.closed()
    this.#stream.end()
    this.pending.release(this.#unsentBytes)
    this.#unsentBytes = 0
    this.retained.close()
    this.#settings.ended(this)
  }

  close(): Promise<void> {
    this.end()
    return Promise.resolve()
  }

  #write(frame: string): void {
    if (this.#closed) return
    this.#stream.sendUnlimited({ event: 'message', data: frame })
    if (!this.#chargeUnsent()) this.#stream.destroy()
  }

  /**
   * Many responses may be sent at once. Until a client has read them, they are requests in progress: unsent bytes beyond
   * the limit of the stream take memory of these. False if there is none left.
   */
  #chargeUnsent(): boolean {
    const bytes = Math.max(0, this.#stream.unsentBytes - this.#settings.maxUnsentBytes)
    this.pending.release(this.#unsentBytes)
    this.#unsentBytes = !this.#closed && this.pending.take(bytes) ? bytes : 0
    return this.#unsentBytes === bytes
  }

  #drained(): void {
    this.#chargeUnsent()
    if (!this.congested) this.#receiver?.drained?.()
  }

  /** The client may have sent `initialize` before: the larger one counts. */
  #retain(bytes: number): boolean {
    const more = Math.max(0, bytes - this.#initializeBytes)
    if (!this.retained.take(more)) return false
    this.#initializeBytes += more
    return true
  }

  /** A newer token extends the session. */
  #renew(principal: Principal | undefined): void {
    const expires = principal?.expires ?? Infinity
    if (expires > this.#expiry.time) this.#expiry.time = expires
  }

  /** Ends the session when its token has expired, after the calls in progress. */
  #checkExpiry(): boolean {
    if (Date.now() >= this.#expiry.time) this.#setExpired()
    this.#endIfExpired()
    return this.#expired
  }

  #setExpired(): void {
    this.#expired = true
    this.#expiry.time = Infinity
  }

  #endIfExpired(): void {
    if (this.#expired && this.#calls.size === 0) this.end()
  }
}
