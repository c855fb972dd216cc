import { KEEP_ALIVE, type StreamEvent, encodeEvent } from '../../framing/event-stream.js'
import type { HeaderList, HttpContext, Sink } from './http-context.js'
import type { KeptAlive, OpenResponses } from './open-responses.js'

/** Keeps proxies from caching, changing or buffering it. */
export const STREAM_HEADERS: HeaderList = [
  'Content-Type',
  'text/event-stream',
  'Cache-Control',
  'no-cache, no-transform',
  'X-Accel-Buffering',
  'no',
]

export interface SseStreamOptions {
  headers?: HeaderList
  openResponses: OpenResponses
  /** Maximum unsent bytes; beyond it, the client is disconnected. */
  maxUnsentBytes: number
  /** Called when the client has disconnected, or was disconnected. */
  disconnected: () => void
  /** Called when the client has read what was unsent, and with each keep-alive. */
  drained?: () => void
  /** When the token of the client expires, and what ends the stream then. */
  expiry?: { time: number; end: () => void } | undefined
}

/** An SSE stream on one connection. Disconnects a client that does not read, so that memory stays bounded. */
export class SseStream implements KeptAlive {
  readonly #context: HttpContext
  readonly #sink: Sink
  readonly #options: SseStreamOptions
  #open = true
  /** Whether anything was sent since the last keep-alive. */
  #sent = false
  /** The sink at the last keep-alive. */
  #hadUnsent = false
  #sentBytes = 0
  #expired = false

  constructor(context: HttpContext, options: SseStreamOptions) {
    this.#context = context
    this.#options = options
    this.#sink = context.stream(200, [...STREAM_HEADERS, ...(options.headers ?? [])])
    context.onDisconnect(() => this.#close())
    options.openResponses.add(context, this)
    if (options.drained !== undefined) this.#sink.onDrain(options.drained)
  }

  get unsentBytes(): number {
    return this.#sink.unsentBytes
  }

  get congested(): boolean {
    return this.#sink.unsentBytes > this.#options.maxUnsentBytes / 4
  }

  send(event: StreamEvent): void {
    // Checked here too: keep-alive may be off, or its interval long.
    if (!this.#open || this.#expire()) return
    if (this.#sink.unsentBytes > this.#options.maxUnsentBytes) return this.destroy()
    this.#sent = true
    this.#sink.write(encodeEvent(event))
  }

  /** Sends an event without the limit on unsent bytes, where another one applies: events of the store, which is bounded, are sent together. */
  sendUnlimited(event: StreamEvent): void {
    if (!this.#open) return
    this.#sent = true
    this.#sink.write(encodeEvent(event))
  }

  /** Completes the response. */
  end(): void {
    if (!this.#open) return
    this.#release()
    this.#sink.end()
  }

  onKeepAlive(): void {
    if (this.#expire()) return
    this.#options.drained?.()
    const { unsentBytes, sentBytes } = this.#sink
    // Unsent bytes for a whole interval, and none was sent: the client does not read.
    if (unsentBytes > 0 && this.#hadUnsent && sentBytes <= this.#sentBytes) return this.destroy()
    this.#hadUnsent = unsentBytes > 0
    this.#sentBytes = sentBytes
    if (!this.#sent) this.#sink.write(KEEP_ALIVE)
    this.#sent = false
  }

  /** Ends the stream when the token has expired; true if it did so now. `expiry.end` may still send. */
  #expire(): boolean {
    const { expiry } = this.#options
    if (this.#expired || expiry === undefined || Date.now() < expiry.time) return false
    this.#expired = true
    expiry.end()
    return true
  }

  /** Disconnects the client. */
  destroy(): void {
    this.#sink.destroy()
    this.#close()
  }

  #close(): void {
    if (!this.#open) return
    this.#release()
    this.#options.disconnected()
  }

  #release(): void {
    this.#open = false
    this.#options.openResponses.remove(this.#context)
  }
}
