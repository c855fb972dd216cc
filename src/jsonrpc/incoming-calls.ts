import type { Budget } from './budget.js'
import type { Exchange } from './channel.js'
import { Deadline } from './deadline.js'
import { INTERNAL_ERROR, INVALID_REQUEST, RpcError } from './errors.js'
import { type CallHost, Incoming } from './incoming.js'
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
import { detached, weightOf } from './weight.js'

export interface IncomingOptions {
  /** Serves one request: a result, or a promise of one. What it throws is answered as an error. */
  onRequest(call: Incoming): unknown
  /** Whether a request is served at once, also while others wait. */
  urgent?(request: Request): boolean
  /** The most calls under way or waiting; more are refused (default 10,000). */
  maxInFlight?: number
  /** A name for a failure that is told instead of its reason, and stands in the log beside it. */
  reference?(): string
}

/** The end of the conversation that calls come in at. */
export interface PeerPort {
  /** Whether answers have to wait, because the other side does not read. */
  readonly congested: boolean
  /** The bytes that calls in progress may hold. */
  readonly pending: Budget
  /** Whether a request of our own has not been answered. */
  readonly asking: boolean
  /** Sends a request of our own. */
  request(method: string, params: unknown, options: RequestOptions): Promise<unknown>
  /** Takes what concerns no caller. */
  tell(report: LogEntry): void
}

/** The most handlers that run at once; other calls wait their turn. */
const MAX_RUNNING = 256
/** How many milliseconds nothing is read because too much is in progress, unless a call ends. */
const PATIENCE = 1000

/** Every request that this side is serving: each gets exactly one answer, unless it is cancelled. */
export class IncomingCalls implements CallHost {
  readonly #options: IncomingOptions
  readonly #side: PeerPort
  /** Calls without an answer, by their ids. Made when there is one: most are answered at once. */
  #open: Map<Id, Incoming> | undefined
  /** Those of them whose handlers have not been started. */
  #waiting: Set<Incoming> | undefined
  /** Calls whose handlers have not returned, unless they only wait or were cancelled: what nobody waits for keeps nobody out. */
  #running = 0
  #idle: (() => void)[] = []
  /** Resolves `ready`; starts its timeout anew. */
  #paused: { resume(): void; extend(): void } | undefined
  /** Whether it was waited in vain for calls to end. */
  #impatient = false

  constructor(options: IncomingOptions, side: PeerPort) {
    this.#options = options
    this.#side = side
  }

  serve(request: Request, exchange: Exchange, inBatch: boolean): void {
    const urgent = this.#options.urgent?.(request) === true
    const refusal = this.#refusal(request.id, urgent)
    if (refusal !== undefined)
      return exchange.reply(encodeError(request.id, refusal, 'null'), {
        kind: 'response',
        id: request.id,
        error: refusal,
      })
    const call = new Incoming(request, exchange, inBatch, this)
    // Calls start in the order in which they came: behind one that waits, all wait.
    if (((this.#waiting?.size ?? 0) === 0 && this.#hasRoom()) || urgent) return this.#start(call)
    this.#hold(call)
    this.#keep(call)
    this.#waiting ??= new Set()
    this.#waiting.add(call)
  }

  /**
   * Resolves when more calls can be taken in. What is not read cannot be answered either: therefore it is not waited for
   * long unless calls end, and not at all while a question to the client is open, whose answer may be the next message.
   */
  ready(): Promise<void> | undefined {
    if (!this.#side.pending.full) this.#impatient = false
    else if (!this.#impatient && !this.#side.asking) return this.#pause()
    return undefined
  }

  #pause(): Promise<void> {
    const deadline = new Deadline({ idle: PATIENCE })
    return new Promise((resolve) => {
      const resume = () => {
        deadline.stop()
        this.#paused = undefined
        resolve()
      }
      deadline.start(() => {
        this.#impatient = true
        resume()
      })
      this.#paused = { resume, extend: () => deadline.extend() }
    })
  }

  /** A call that is not answered at once counts, until its handler has returned: also one that was cancelled. */
  #hold(call: Incoming): void {
    if (call.bytes > 0) return
    call.bytes = weightOf(call.request.frame)
    this.#side.pending.charge(call.bytes)
    call.request.frame = detached(call.request.frame)
  }

  #letGo(call: Incoming): void {
    if (call.bytes === 0) return
    this.#side.pending.give(call.bytes)
    call.bytes = 0
    if (this.#side.pending.full) this.#paused?.extend()
    else this.#paused?.resume()
  }

  #keep(call: Incoming): void {
    this.#open ??= new Map()
    this.#open.set(call.id, call)
  }

  /** The caller does not want this answer any more. Unknown and finished calls are ignored. */
  cancel(id: Id, reason: Error): void {
    const call = this.#open?.get(id)
    if (call === undefined) return
    if (this.#waiting?.delete(call) === true) this.#letGo(call)
    call.cancel(reason)
    this.#end(call)
    this.#place(call, false)
    this.#startWaiting()
  }

  ask(method: string, params: unknown, options: RequestOptions): Promise<unknown> {
    const answer = this.#side.request(method, params, options)
    this.#paused?.resume()
    return answer
  }

  park(call: Incoming): void {
    this.#place(call, false)
    this.#startWaiting()
  }

  unpark(call: Incoming): void {
    this.#place(call, call.open)
  }

  #place(call: Incoming, running: boolean): void {
    if (call.running === running) return
    call.running = running
    this.#running += running ? 1 : -1
  }

  settle(call: Incoming, outcome: { result: unknown } | { error: RpcError }): void {
    if ('error' in outcome) this.#fail(call, outcome.error)
    else this.#answer(call, outcome.result)
    this.#end(call)
  }

  /** Resolves when every call that was taken has been answered. */
  idle(): Promise<void> {
    if ((this.#open?.size ?? 0) === 0) return Promise.resolve()
    return new Promise((resolve) => this.#idle.push(resolve))
  }

  /** Answers everything still under way with an error and tells the handlers to stop. */
  abandon(error: RpcError): void {
    this.#forgetWaiting()
    for (const call of this.#open?.values() ?? []) {
      call.answer(encodeError(call.id, error, 'null'), undefined, error)
      call.abort(error)
      this.#end(call)
    }
  }

  /** Nobody is left to answer. */
  drop(reason: Error): void {
    this.#forgetWaiting()
    for (const call of this.#open?.values() ?? []) {
      call.cancel(reason)
      this.#end(call)
    }
    this.#paused?.resume()
  }

  #forgetWaiting(): void {
    for (const call of this.#waiting ?? []) this.#letGo(call)
    this.#waiting?.clear()
  }

  #refusal(id: Id, urgent: boolean): RpcError | undefined {
    const { maxInFlight = 10_000 } = this.#options
    if (this.#open?.has(id) === true)
      return new RpcError(
        INVALID_REQUEST,
        'Invalid Request: a request with this id is still being served',
      )
    if ((this.#open?.size ?? 0) >= maxInFlight)
      return new RpcError(
        INTERNAL_ERROR,
        `Too many requests at once: ${maxInFlight} are being served. Try again later`,
      )
    if (urgent || !this.#side.pending.full) return undefined
    return new RpcError(
      INTERNAL_ERROR,
      'Too many requests at once: those in progress take all the memory that they may. Try again later',
    )
  }

  /** Whether one more may run: not too many at once, and none beside others while answers pile up. */
  #hasRoom(): boolean {
    return this.#running === 0 || (this.#running < MAX_RUNNING && !this.#side.congested)
  }

  #start(call: Incoming): void {
    let result: unknown
    let later: boolean
    try {
      result = this.#options.onRequest(call)
      later = isThenable(result)
    } catch (error) {
      this.#letGo(call)
      this.#fail(call, error)
      return this.#end(call)
    }
    // No promise, no bookkeeping: the answer goes out before the next message is looked at.
    if (!later) {
      this.#letGo(call)
      this.#answer(call, result)
      return this.#end(call)
    }
    this.#hold(call)
    if (call.open) {
      this.#place(call, !call.waits)
      this.#keep(call)
    }
    Promise.resolve(result)
      .then((value) => this.#answer(call, value))
      .catch((error: unknown) => this.#fail(call, error))
      .finally(() => {
        this.#letGo(call)
        this.#place(call, false)
        this.#end(call)
        this.#startWaiting()
      })
  }

  #startWaiting(): void {
    for (const call of this.#waiting ?? []) {
      if (!this.#hasRoom()) return
      this.#waiting?.delete(call)
      this.#start(call)
    }
  }

  #end(call: Incoming): void {
    // A cancelled id may be in use again by the time its handler returns.
    if (this.#open?.get(call.id) === call) this.#open.delete(call.id)
    if (this.#idle.length === 0 || (this.#open?.size ?? 0) > 0) return
    const waiting = this.#idle
    this.#idle = []
    for (const resolve of waiting) resolve()
  }

  #answer(call: Incoming, result: unknown): void {
    if (!call.open) return
    let frame: string
    try {
      frame = encodeResult(call.id, result)
    } catch (cause) {
      const { id, request } = call
      this.#side.tell({
        level: 'error',
        message: `The result of ${truncate(request.method)} cannot be written as JSON`,
        id,
        error: cause,
      })
      const error = new RpcError(
        INTERNAL_ERROR,
        'Internal error: the result cannot be written as JSON',
      )
      return call.answer(encodeError(id, error, 'null'), undefined, error)
    }
    call.answer(frame, result)
  }

  /** Answers a call whose handler has thrown. Whatever it threw, there is an answer. */
  #fail(call: Incoming, thrown: unknown): void {
    if (!call.open) return
    try {
      if (thrown instanceof RpcError && Number.isInteger(thrown.code))
        return call.answer(encodeThrown(call.id, thrown), undefined, thrown)
    } catch {
      // Not even that can be asked of it.
    }
    const reference = this.#options.reference?.()
    const known = reference === undefined ? '' : ` (reference ${reference})`
    this.#side.tell({
      level: 'error',
      message: `${truncate(call.request.method)} failed${known}`,
      id: call.id,
      error: thrown,
    })
    const error = new RpcError(INTERNAL_ERROR, `Internal error${known}`)
    call.answer(encodeError(call.id, error, 'null'), undefined, error)
  }
}
