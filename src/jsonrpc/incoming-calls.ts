import type { ResponseMemory } from './batch.js'
import { type Budget, copyString, estimateMemory } from './budget.js'
import type { Exchange } from './channel.js'
import { Deadline } from './deadline.js'
import { INTERNAL_ERROR, INVALID_REQUEST, RpcError } from './errors.js'
import { type CallHost, IncomingRequest } from './incoming.js'
import {
  type Id,
  type Request,
  encodeError,
  encodeResult,
  encodeThrown,
  isThenable,
} from './message.js'
import type { RequestOptions } from './outgoing.js'
import type { LogEntry } from './log-entry.js'
import { truncate } from './truncate.js'
import { TURN, goOnLater } from './turns.js'

/** In a batch, whose other messages may be needed, each request gets a response. */
const CLOSING = 'Service Unavailable: the server is shutting down. Try again later'

export interface IncomingOptions {
  /** Handles a received request: returns its result, or a promise of it. An exception becomes an error response. */
  onRequest(call: IncomingRequest): unknown
  /** Whether a request is served even while others are queued (`ping`). */
  urgent?(request: Request): boolean
  /** Maximum calls in progress or queued; more get an error (default 10,000). */
  maxInFlight?: number
  /** Maximum handlers running at a time; other calls are queued (default 256). */
  readonly concurrency?: number
  /** Whether requests are ignored, as if they had not been read: the server is shutting down. */
  readonly draining?: boolean
  /** Creates the reference that an internal error and its log line share, if callers must not see the reason. */
  reference?(): string
  /** Returns a function that runs a queued call in the async context in which it was received. */
  capture?(): ((start: () => void) => void) | undefined
  /** A request was refused before it was handled. */
  refused?(request: Request, exchange: Exchange, error: RpcError): void
}

/** What `IncomingCalls` needs of its peer. */
export interface PeerPort {
  /** Whether responses are buffered because the other side is not reading. */
  readonly congested: boolean
  /** Whether no more responses may be buffered. */
  readonly full: boolean
  /** Whether a request of our own is pending. */
  readonly hasPendingRequests: boolean
  /** Sends a request of our own. */
  request(method: string, params: unknown, options: RequestOptions): Promise<unknown>
  /** Writes to the log. */
  log(entry: LogEntry): void
}

/** Maximum milliseconds for which reading pauses while the pending budget is used up and no call ends. */
const PAUSE_TIMEOUT = 1000

/** All received requests in progress. Each gets exactly one response, unless it is cancelled. */
export class IncomingCalls implements CallHost, ResponseMemory {
  readonly #options: IncomingOptions
  readonly #port: PeerPort
  /** The bytes that calls in progress may hold. */
  readonly #pending: Budget
  /** Calls without a response, by id. Created on first use: most calls get their response synchronously. */
  #open: Map<Id, IncomingRequest> | undefined
  /** Queued calls, each with the function from `capture` that restores its async context. */
  #waiting: Map<IncomingRequest, ((start: () => void) => void) | undefined> | undefined
  /** Handlers that have not returned, except those that are parked or whose call was cancelled. */
  #running = 0
  /** When the next calls of a queue or a batch must wait for another turn of the event loop. */
  #turnEnds: number | undefined
  #idle: (() => void)[] = []
  /** Resolves the promise of `ready`; restarts its timeout. */
  #paused: { resume(): void; extend(): void } | undefined
  /** Whether a pause has timed out: until the budget has room again, requests are rejected instead. */
  #pauseTimedOut = false

  constructor(options: IncomingOptions, port: PeerPort, pending: Budget) {
    this.#options = options
    this.#port = port
    this.#pending = pending
  }

  serve(request: Request, exchange: Exchange, inBatch: boolean): void {
    const draining = this.#options.draining === true
    if (draining && !inBatch) return exchange.reply()
    const refusal = draining ? new RpcError(INTERNAL_ERROR, CLOSING) : this.#refusal(request)
    if (refusal !== undefined) {
      this.#options.refused?.(request, exchange, refusal)
      return exchange.reply(encodeError(request.id, refusal, 'null'), {
        kind: 'response',
        id: request.id,
        error: refusal,
      })
    }
    const call = new IncomingRequest(request, exchange, inBatch, this)
    // Calls start in the order of arrival: after a queued call, all others are queued.
    const mayStart =
      (this.#waiting?.size ?? 0) === 0 && this.#hasRoom() && !(inBatch && this.#turnIsOver())
    // The response to a batch is not sent before its last call has ended.
    if (mayStart || (!inBatch && this.#isUrgent(request))) return this.#start(call)
    this.#charge(call)
    this.#register(call)
    this.#waiting ??= new Map()
    this.#waiting.set(call, this.#options.capture?.())
  }

  /**
   * Resolves when more calls can be accepted. While reading pauses, neither cancellations nor responses arrive: the pause
   * is short unless calls end, and there is none while a request of our own is pending, whose response may be next.
   */
  ready(): Promise<void> | undefined {
    if (!this.#pending.full) this.#pauseTimedOut = false
    else if (!this.#pauseTimedOut && !this.#port.hasPendingRequests) return this.#pause()
    return undefined
  }

  #pause(): Promise<void> {
    const deadline = new Deadline({ idle: PAUSE_TIMEOUT })
    return new Promise((resolve) => {
      const resume = () => {
        deadline.stop()
        this.#paused = undefined
        resolve()
      }
      deadline.start(() => {
        this.#pauseTimedOut = true
        resume()
      })
      this.#paused = { resume, extend: () => deadline.extend() }
    })
  }

  /** Charges a call that did not end synchronously to the pending budget, until its handler returns: even if it is cancelled. */
  #charge(call: IncomingRequest): void {
    if (call.bytes > 0) return
    call.bytes = estimateMemory(call.request.frame)
    this.#pending.charge(call.bytes)
    call.request.frame = copyString(call.request.frame)
  }

  #release(call: IncomingRequest): void {
    if (call.bytes === 0) return
    const { bytes } = call
    call.bytes = 0
    this.release(bytes)
  }

  get full(): boolean {
    return this.#pending.full
  }

  /** Charges the response to a call that has ended, while it cannot be sent. */
  hold(bytes: number): void {
    this.#pending.charge(bytes)
  }

  release(bytes: number): void {
    this.#pending.release(bytes)
    if (this.#pending.full) this.#paused?.extend()
    else this.#paused?.resume()
  }

  #register(call: IncomingRequest): void {
    this.#open ??= new Map()
    this.#open.set(call.id, call)
  }

  /** `notifications/cancelled` was received. Unknown and finished calls are ignored, as the specification demands. */
  cancel(id: Id, reason: Error): void {
    const call = this.#open?.get(id)
    if (call === undefined) return
    if (this.#waiting?.delete(call) === true) this.#release(call)
    call.cancel(reason)
    this.#end(call)
    this.#setRunning(call, false)
    this.startWaiting()
  }

  ask(method: string, params: unknown, options: RequestOptions): Promise<unknown> {
    return this.#port.request(method, params, options)
  }

  /** Ends a pause of `ready`. */
  resume(): void {
    this.#paused?.resume()
  }

  park(call: IncomingRequest): void {
    this.#setRunning(call, false)
    this.startWaiting()
  }

  unpark(call: IncomingRequest): void {
    this.#setRunning(call, call.open)
  }

  #setRunning(call: IncomingRequest, running: boolean): void {
    if (call.running === running) return
    call.running = running
    this.#running += running ? 1 : -1
  }

  settle(call: IncomingRequest, outcome: { result: unknown } | { error: RpcError }): void {
    if ('error' in outcome) this.#fail(call, outcome.error)
    else this.#respond(call, outcome.result)
    this.#end(call)
  }

  /** Resolves when no call is in progress. */
  idle(): Promise<void> {
    if ((this.#open?.size ?? 0) === 0) return Promise.resolve()
    return new Promise((resolve) => this.#idle.push(resolve))
  }

  /** Ends all calls in progress with an error response and aborts their handlers. */
  abandon(error: RpcError): void {
    this.#forgetWaiting()
    for (const call of this.#open?.values() ?? []) {
      call.respond(encodeError(call.id, error, 'null'), undefined, error)
      call.abort(error)
      this.#end(call)
    }
  }

  /** The connection has ended: aborts all calls, without responses. */
  cancelAll(reason: Error): void {
    this.#forgetWaiting()
    for (const call of this.#open?.values() ?? []) {
      call.cancel(reason)
      this.#end(call)
    }
    this.#paused?.resume()
  }

  #forgetWaiting(): void {
    for (const call of this.#waiting?.keys() ?? []) this.#release(call)
    this.#waiting?.clear()
  }

  #isUrgent(request: Request): boolean {
    return this.#options.urgent?.(request) === true
  }

  #refusal(request: Request): RpcError | undefined {
    const { maxInFlight = 10_000 } = this.#options
    if (this.#open?.get(request.id)?.open === true)
      return new RpcError(
        INVALID_REQUEST,
        'Invalid Request: a request with this id is still in progress',
      )
    if ((this.#open?.size ?? 0) >= maxInFlight)
      return new RpcError(
        INTERNAL_ERROR,
        `Too many requests: ${maxInFlight} are in progress. Try again later`,
      )
    if (!this.#pending.full || this.#isUrgent(request)) return undefined
    return new RpcError(
      INTERNAL_ERROR,
      'Too many requests: requests in progress have reached the memory limit. Try again later',
    )
  }

  /** Whether one more handler may run; while responses are buffered, only one at a time, until the channel is full. */
  #hasRoom(): boolean {
    if (this.#port.full) return false
    const { concurrency = 256 } = this.#options
    return this.#running === 0 || (this.#running < concurrency && !this.#port.congested)
  }

  /** Whether calls are queued until the other side reads. */
  get holdsCalls(): boolean {
    return this.#port.full && (this.#waiting?.size ?? 0) > 0
  }

  #turnIsOver(): boolean {
    const now = performance.now()
    if (this.#turnEnds === undefined) {
      this.#turnEnds = now + TURN
      goOnLater(() => {
        this.#turnEnds = undefined
        this.startWaiting()
      })
    }
    return now >= this.#turnEnds
  }

  #start(call: IncomingRequest): void {
    let result: unknown
    let later: boolean
    try {
      result = this.#options.onRequest(call)
      later = isThenable(result)
    } catch (error) {
      this.#threw(call, error)
      return this.#end(call)
    }
    // The hot path: without a promise the response is sent before the next message is read, without bookkeeping.
    if (!later) {
      this.#returned(call, result)
      return this.#end(call)
    }
    this.#charge(call)
    if (call.open) {
      this.#setRunning(call, !call.isParked)
      this.#register(call)
    }
    Promise.resolve(result)
      .then((value) => this.#returned(call, value))
      .catch((error: unknown) => this.#threw(call, error))
      .finally(() => {
        this.#setRunning(call, false)
        this.#end(call)
        this.startWaiting()
      })
  }

  /** Starts queued calls, as many as may run, for some milliseconds in each turn of the event loop. */
  startWaiting(): void {
    for (const [call, within] of this.#waiting ?? []) {
      if (!this.#hasRoom() || this.#turnIsOver()) return
      this.#waiting?.delete(call)
      if (within === undefined) this.#start(call)
      else within(() => this.#start(call))
    }
  }

  #end(call: IncomingRequest): void {
    // The id of a cancelled call may be in use again by the time its handler returns.
    if (this.#open?.get(call.id) === call) this.#open.delete(call.id)
    if (this.#idle.length === 0 || (this.#open?.size ?? 0) > 0) return
    const waiting = this.#idle
    this.#idle = []
    for (const resolve of waiting) resolve()
  }

  /** The memory of a call is released before its response, which needs memory of its own in a batch. */
  #returned(call: IncomingRequest, result: unknown): void {
    this.#release(call)
    this.#respond(call, result)
  }

  #threw(call: IncomingRequest, error: unknown): void {
    this.#release(call)
    this.#fail(call, error)
  }

  #respond(call: IncomingRequest, result: unknown): void {
    if (!call.open) return
    let frame: string
    try {
      frame = encodeResult(call.id, result)
    } catch (cause) {
      const { id, request } = call
      this.#log(call, {
        level: 'error',
        message: `The result of ${truncate(request.method)} cannot be written as JSON`,
        id,
        error: cause,
      })
      const error = new RpcError(
        INTERNAL_ERROR,
        'Internal error: the result cannot be written as JSON',
      )
      return call.respond(encodeError(id, error, 'null'), undefined, error)
    }
    call.respond(frame, result)
  }

  /** Sends the error response of a handler that has thrown: an RpcError as it is, anything else as Internal error. */
  #fail(call: IncomingRequest, thrown: unknown): void {
    if (!call.open) return
    try {
      if (thrown instanceof RpcError && Number.isInteger(thrown.code))
        return call.respond(encodeThrown(call.id, thrown), undefined, thrown)
    } catch {
      // What was thrown has getters that throw as well.
    }
    const reference = this.#options.reference?.()
    const known = reference === undefined ? '' : ` (reference ${reference})`
    this.#log(call, {
      level: 'error',
      message: `${truncate(call.request.method)} failed${known}`,
      id: call.id,
      error: thrown,
    })
    const error = new RpcError(INTERNAL_ERROR, `Internal error${known}`)
    call.respond(encodeError(call.id, error, 'null'), undefined, error)
  }

  log(entry: LogEntry): void {
    this.#port.log(entry)
  }

  /** The handler has ended, but the entry belongs to its trace. */
  #log({ observed }: IncomingRequest, entry: LogEntry): void {
    if (observed === undefined) this.log(entry)
    else observed.run(() => this.#port.log(entry))
  }
}
