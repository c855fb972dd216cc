import { Framer, type Framing } from '../framing/detect.js'
import type { Frame } from '../framing/frame.js'
import { Budget } from '../jsonrpc/budget.js'
import type { Channel, ConnectionFacts, Receiver } from '../jsonrpc/channel.js'
import type { SentMessage } from '../jsonrpc/message.js'
import { faultToRpcError } from './faults.js'

/** The part of a readable stream that is used; Node's streams have it. */
export interface Input {
  on(event: 'data', listener: (chunk: Uint8Array | string) => void): unknown
  on(event: 'end' | 'close' | 'error', listener: () => void): unknown
  off?: {
    (event: 'data', listener: (chunk: Uint8Array | string) => void): unknown
    (event: 'end' | 'close' | 'error', listener: () => void): unknown
  }
  pause(): unknown
  resume(): unknown
  readonly readableEnded?: boolean
  readonly destroyed?: boolean
}

/** The part of a writable stream that is used; Node's streams have it. */
export interface Output {
  write(text: string, done: (error?: Error | null) => void): boolean
  on(event: 'drain', listener: () => void): unknown
  on(event: 'error', listener: (error: Error) => void): unknown
  off?: {
    (event: 'drain', listener: () => void): unknown
    (event: 'error', listener: (error: Error) => void): unknown
  }
}

export interface StreamOptions {
  input: Input
  output: Output
  framing?: Framing
  /** Maximum bytes of a message. */
  maxMessage?: number
  /** Maximum bytes held for requests in progress, and beyond them (subscriptions). */
  maxPending?: number
  maxRetained?: number
  /**
   * For clients. Reads also while the other side does not: a server may read no further request until its responses are
   * read. And after writing has failed, until the input ends: the last messages of the server may say why. (A socket that
   * is both streams is destroyed by Node when writing fails, and has no last messages.)
   */
  keepReading?: boolean
}

const MAX_MESSAGE = 32 * 1024 * 1024
/** Characters that are buffered in one turn of the event loop before they are written to the stream. */
const HIGH_WATER = 256 * 1024
/** Messages that are delivered in one turn before pending responses get a turn. */
const MAX_UNANSWERED = 64
/** With `keepReading`: characters of responses that the other side has not read before nothing more is read from it. */
const MAX_UNREAD_RESPONSES = 8 * 1024 * 1024

const encoder = new TextEncoder()

/**
 * A channel over two byte streams, such as stdin and stdout. All messages sent in one turn of the event loop are one
 * write. While the other side does not read, nothing is read from it, so that its responses cannot fill the memory.
 *
 * `closed` is called when writing fails; with `keepReading`, when the input ends. Without `keepReading`, the end of the
 * input only resolves `ended`, because the other side may still read responses. The streams belong to the caller:
 * `close` removes all listeners, but neither ends nor destroys the streams, so their owner needs its own `error` listener.
 */
export class StreamChannel implements Channel {
  readonly pending: Budget | undefined
  readonly retained: Budget | undefined
  readonly #input: Input
  readonly #output: Output
  readonly #framer: Framer
  #receiver: Receiver | undefined
  /** Removes the listeners. */
  #detach: () => void = () => {}
  #queue: string[] = []
  #queued = 0
  /** The characters of each queued message if it is a response, otherwise 0; and their sum. */
  #responses: number[] = []
  #unreadResponses = 0
  #paused = false
  #unanswered = 0
  #scheduled = false
  /** Writes that the stream has not confirmed. */
  #unconfirmed = 0
  #blocked = false
  #reading: 'yes' | 'ending' | 'no' = 'yes'
  #failed: Error | undefined
  #closed = false
  readonly #keepReading: boolean
  #flushed: (() => void)[] = []
  #resolveEnded: () => void = () => {}
  /** Resolves when the input has ended and all of it has been delivered. */
  readonly ended = new Promise<void>((resolve) => {
    this.#resolveEnded = resolve
  })

  constructor({
    input,
    output,
    framing = 'auto',
    maxMessage = MAX_MESSAGE,
    maxPending,
    maxRetained,
    keepReading = false,
  }: StreamOptions) {
    if (maxPending !== undefined) this.pending = new Budget(maxPending)
    if (maxRetained !== undefined) this.retained = new Budget(maxRetained)
    this.#keepReading = keepReading
    this.#input = input
    this.#output = output
    this.#framer = new Framer(framing, { maxBytes: maxMessage })
  }

  /** A socket has a remote address; stdin and stdout are pipes, files or terminals. */
  get connection(): ConnectionFacts {
    const { remoteAddress } = this.#input as { remoteAddress?: unknown }
    return { transport: typeof remoteAddress === 'string' ? 'tcp' : 'pipe' }
  }

  receive(receiver: Receiver): void {
    this.#receiver = receiver
    const failed = (error: Error) => this.#fail(error)
    const drained = () => this.#drained()
    const data = (chunk: Uint8Array | string) =>
      this.#read(typeof chunk === 'string' ? encoder.encode(chunk) : chunk)
    const end = () => this.#end()
    this.#output.on('error', failed)
    this.#output.on('drain', drained)
    this.#input.on('data', data)
    for (const event of ['end', 'close', 'error'] as const) this.#input.on(event, end)
    this.#detach = () => {
      this.#output.off?.('error', failed)
      this.#output.off?.('drain', drained)
      this.#input.off?.('data', data)
      for (const event of ['end', 'close', 'error'] as const) this.#input.off?.(event, end)
    }
    if (this.#input.readableEnded === true || this.#input.destroyed === true) process.nextTick(end)
    if (this.#keepReading) void this.ended.then(() => receiver.closed(this.#failed))
    this.#resume() // it may have been paused by its owner
  }

  send(frame: string, message?: SentMessage): void {
    if (this.#failed !== undefined || this.#closed) return
    const text = this.#framer.encode(frame)
    const isResponse = message === undefined || message.kind === 'response'
    const response = isResponse ? text.length : 0
    this.#queue.push(text)
    this.#queued += text.length
    this.#responses.push(response)
    this.#unreadResponses += response
    this.#unanswered = Math.max(0, this.#unanswered - 1)
    // At once, to know whether it is full: more calls may respond in this turn.
    if (this.#queued > HIGH_WATER) return this.#flush()
    if (this.#scheduled) return
    this.#scheduled = true
    process.nextTick(() => {
      this.#scheduled = false
      this.#flush()
    })
  }

  get congested(): boolean {
    return this.#blocked
  }

  /** While it is full, nothing is read either. */
  get full(): boolean {
    return this.#blocked && !(this.#keepReading && this.#unreadResponses < MAX_UNREAD_RESPONSES)
  }

  /** Stops reading; what was received and not yet delivered is dropped. */
  stop(): void {
    this.#reading = 'no'
    this.#input.pause()
  }

  /** Resolves when everything sent was written, or cannot be. */
  close(): Promise<void> {
    this.stop()
    this.#closed = true
    this.#flush()
    const done = this.#failed !== undefined || (this.#unconfirmed === 0 && this.#queue.length === 0)
    const flushed = done
      ? Promise.resolve()
      : new Promise<void>((resolve) => this.#flushed.push(resolve))
    return flushed.then(this.#detach)
  }

  #read(chunk: Uint8Array): void {
    if (this.#reading !== 'yes') return
    this.#framer.push(chunk)
    this.#deliver()
    if (this.full || this.#paused) this.#input.pause()
  }

  #end(): void {
    if (this.#reading !== 'yes') return
    this.#reading = 'ending'
    this.#framer.end()
    this.#deliver()
  }

  #deliver(): void {
    while (!this.full && !this.#paused && this.#reading !== 'no') {
      const frame = this.#framer.next()
      if (frame === undefined) {
        if (this.#reading === 'ending') this.#resolveEnded()
        return
      }
      this.#unanswered++
      this.#dispatch(frame)
      const ready = this.#receiver?.ready?.()
      if (ready !== undefined) void this.#pause(ready)
      else if (this.#unanswered >= MAX_UNANSWERED) void this.#pause(new Promise(setImmediate))
    }
  }

  /**
   * Pauses delivery so that responses are written first. Otherwise a whole chunk of requests would be started in one
   * turn, and their responses would accumulate.
   */
  async #pause(until: Promise<void>): Promise<void> {
    this.#paused = true
    await until
    this.#paused = false
    this.#unanswered = 0
    this.#deliver()
    this.#resume()
  }

  /** Resumes reading unless something blocks it. */
  #resume(): void {
    if (!this.full && !this.#paused && this.#reading === 'yes') this.#input.resume()
  }

  #dispatch(frame: Frame): void {
    if (typeof frame === 'string') this.#receiver?.frame(frame)
    else {
      const head = 'head' in frame ? frame.head : ''
      const tail = 'tail' in frame ? frame.tail : ''
      this.#receiver?.malformed(faultToRpcError(frame), head, tail)
    }
  }

  #flush(): void {
    while (!this.#blocked && this.#queue.length > 0 && this.#failed === undefined)
      this.#write(this.#slice())
  }

  /** The next part of the queue: complete messages of about HIGH_WATER characters. */
  #slice(): string {
    let size = 0
    let count = 0
    while (count < this.#queue.length && size < HIGH_WATER)
      size += this.#queue[count++]?.length ?? 0
    this.#queued -= size
    for (const response of this.#responses.splice(0, count)) this.#unreadResponses -= response
    const taken = this.#queue.splice(0, count)
    return taken.length === 1 ? (taken[0] ?? '') : taken.join('')
  }

  #write(text: string): void {
    this.#unconfirmed++
    try {
      this.#blocked = !this.#output.write(text, (error) => {
        this.#unconfirmed--
        if (error !== undefined && error !== null) this.#fail(error)
        else if (this.#unconfirmed === 0 && this.#queue.length === 0) this.#release()
      })
    } catch (error) {
      this.#unconfirmed--
      this.#fail(error instanceof Error ? error : new Error(String(error)))
    }
  }

  #drained(): void {
    this.#blocked = false
    this.#flush()
    if (!this.full) this.#receiver?.drained?.()
    this.#deliver()
    this.#resume()
  }

  #fail(error: Error): void {
    if (this.#failed !== undefined) return
    this.#failed = error
    this.#queue = []
    this.#responses = []
    this.#unreadResponses = 0
    this.#release()
    if (this.#keepReading) {
      this.#blocked = false
      this.#deliver()
      this.#resume()
    } else {
      this.stop()
      this.#receiver?.closed(error)
    }
  }

  #release(): void {
    const waiting = this.#flushed
    this.#flushed = []
    for (const resolve of waiting) resolve()
  }
}
