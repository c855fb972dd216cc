import { KEEP_ALIVE, type StreamEvent, encodeEvent } from '../../framing/event-stream.js'
import type { KeptAlive, KeepAlive } from './keep-alive.js'
import type { HeaderList, Sink, HttpContext } from './http-context.js'

/** Proxies neither keep it, nor change it, nor hold it back. */
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
  pulse: KeepAlive
  /** How many bytes may wait for a client that does not read. */
  maxWaiting: number
  /** The client is gone, or was cut off. */
  gone: () => void
  /** The moment from which on it may not be read any more, and what is done then. */
  until?: { time: number; end: () => void } | undefined
}

/** An event stream on one connection. Who does not read is cut off, so that nothing piles up. */
export class SseStream implements KeptAlive {
  readonly #sink: Sink
  readonly #options: SseStreamOptions
  #open = true
  #wrote = false
  #waited = false
  #taken = 0
  #expired = false

  constructor(visit: HttpContext, options: SseStreamOptions) {
    this.#options = options
    this.#sink = visit.stream(200, [...STREAM_HEADERS, ...(options.headers ?? [])])
    visit.onGone(() => this.#close())
    options.pulse.add(this)
  }

  /** Whether somebody may still read it. */
  get open(): boolean {
    return this.#open
  }

  get congested(): boolean {
    return this.#sink.waiting > this.#options.maxWaiting / 4
  }

  send(event: StreamEvent): void {
    // Also where there is no pulse, or a slow one: nothing is told too late.
    if (!this.#open || this.#expires()) return
    if (this.#sink.waiting > this.#options.maxWaiting) return this.#cut()
    this.#wrote = true
    this.#sink.write(encodeEvent(event))
  }

  /** Sends again what was kept: that is bounded already, and all of it comes at once. */
  replay(event: StreamEvent): void {
    if (this.#open) this.#sink.write(encodeEvent(event))
  }

  /** Ends the connection in good order. */
  end(): void {
    if (!this.#open) return
    this.#open = false
    this.#options.pulse.remove(this)
    this.#sink.end()
  }

  beat(): void {
    if (this.#expires()) return
    const { waiting, taken } = this.#sink
    // Something was waiting at the last beat, and nothing was taken since: nobody reads any more.
    if (waiting > 0 && this.#waited && taken <= this.#taken) return this.#cut()
    this.#waited = waiting > 0
    this.#taken = taken
    if (!this.#wrote) this.#sink.write(KEEP_ALIVE)
    this.#wrote = false
  }

  /** True when its time is up; what is sent from then on is its end. */
  #expires(): boolean {
    const { until } = this.#options
    if (this.#expired || until === undefined || Date.now() < until.time) return false
    this.#expired = true
    until.end()
    return true
  }

  #cut(): void {
    this.#sink.cut()
    this.#close()
  }

  #close(): void {
    if (!this.#open) return
    this.#open = false
    this.#options.pulse.remove(this)
    this.#options.gone()
  }
}
