import type { Exchange } from './channel.js'
import { INTERNAL_ERROR, INVALID_REQUEST, RpcError } from './errors.js'
import { type Among, Incoming } from './incoming.js'
import { type Id, type Request, encodeError, encodeResult, encodeThrown, isThenable } from './message.js'
import type { RequestOptions } from './outgoing.js'
import type { Report } from './report.js'

export interface IncomingOptions {
  /** Serves one request: a result, or a promise of one. What it throws is answered as an error. */
  request(call: Incoming): unknown
  /** Whether a request is served at once, also while others wait. */
  urgent?(request: Request): boolean
  /** The most calls under way or waiting; more are refused (default 10,000). */
  maxInFlight?: number
  /** A name for a failure that is told instead of its reason, and stands in the log beside it. */
  reference?(): string
}

/** The end of the conversation that calls come in at. */
export interface Side {
  /** Whether answers have to wait, because the other side does not read. */
  readonly congested: boolean
  /** Sends a request of our own. */
  request(method: string, params: unknown, options: RequestOptions): Promise<unknown>
  /** Takes what concerns no caller. */
  tell(report: Report): void
}

/** The most handlers that run at once; other calls wait their turn. */
const MAX_RUNNING = 256

/** Every request that this side is serving: each gets exactly one answer, unless it is cancelled. */
export class IncomingCalls implements Among {
  readonly #options: IncomingOptions
  readonly #side: Side
  /** Calls without an answer, by their ids. Made when there is one: most are answered at once. */
  #open: Map<Id, Incoming> | undefined
  /** Those of them whose handlers have not been started. */
  #waiting: Set<Incoming> | undefined
  /** Calls whose handlers have not returned, unless they only wait or were cancelled: what nobody waits for keeps nobody out. */
  #running = 0
  #idle: (() => void)[] = []

  constructor(options: IncomingOptions, side: Side) {
    this.#options = options
    this.#side = side
  }

  serve(request: Request, exchange: Exchange, inBatch: boolean): void {
    if (this.#open !== undefined && this.#open.size > 0) {
      const refusal = this.#refusal(request.id, this.#open)
      if (refusal !== undefined)
        return exchange.reply(encodeError(request.id, refusal, 'null'), { kind: 'response', id: request.id, error: refusal })
    }
    const call = new Incoming(request, exchange, inBatch, this)
    // Calls start in the order in which they came: behind one that waits, all wait.
    if (((this.#waiting?.size ?? 0) === 0 && this.#hasRoom()) || this.#options.urgent?.(request) === true) return this.#start(call)
    this.#keep(call)
    this.#waiting ??= new Set()
    this.#waiting.add(call)
  }

  #keep(call: Incoming): void {
    this.#open ??= new Map()
    this.#open.set(call.id, call)
  }

  /** The caller does not want this answer any more. Unknown and finished calls are ignored. */
  cancel(id: Id, reason: Error): void {
    const call = this.#open?.get(id)
    if (call === undefined) return
    this.#waiting?.delete(call)
    call.cancel(reason)
    this.#end(call)
    this.#place(call, false)
    this.#startWaiting()
  }

  ask(method: string, params: unknown, options: RequestOptions): Promise<unknown> {
    return this.#side.request(method, params, options)
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
    this.#waiting?.clear()
    for (const call of this.#open?.values() ?? []) {
      call.answer(encodeError(call.id, error, 'null'), undefined, error)
      call.abort(error)
      this.#end(call)
    }
  }

  /** Nobody is left to answer. */
  drop(reason: Error): void {
    this.#waiting?.clear()
    for (const call of this.#open?.values() ?? []) {
      call.cancel(reason)
      this.#end(call)
    }
  }

  #refusal(id: Id, open: ReadonlyMap<Id, Incoming>): RpcError | undefined {
    const { maxInFlight = 10_000 } = this.#options
    if (open.has(id)) return new RpcError(INVALID_REQUEST, 'Invalid Request: a request with this id is still being served')
    if (open.size < maxInFlight) return undefined
    return new RpcError(INTERNAL_ERROR, `Too many requests at once: ${maxInFlight} are being served. Try again later`)
  }

  /** Whether one more may run: not too many at once, and none beside others while answers pile up. */
  #hasRoom(): boolean {
    return this.#running === 0 || (this.#running < MAX_RUNNING && !this.#side.congested)
  }

  #start(call: Incoming): void {
    let result: unknown
    let later: boolean
    try {
      result = this.#options.request(call)
      later = isThenable(result)
    } catch (error) {
      this.#fail(call, error)
      return this.#end(call)
    }
    // No promise, no bookkeeping: the answer goes out before the next message is looked at.
    if (!later) {
      this.#answer(call, result)
      return this.#end(call)
    }
    if (call.open) {
      this.#place(call, !call.waits)
      this.#keep(call)
    }
    Promise.resolve(result)
      .then((value) => this.#answer(call, value))
      .catch((error: unknown) => this.#fail(call, error))
      .finally(() => {
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
      this.#side.tell({ level: 'error', message: `The result of ${request.method} cannot be written as JSON`, id, error: cause })
      const error = new RpcError(INTERNAL_ERROR, 'Internal error: the result cannot be written as JSON')
      return call.answer(encodeError(id, error, 'null'), undefined, error)
    }
    call.answer(frame, result)
  }

  /** Answers a call whose handler has thrown. Whatever it threw, there is an answer. */
  #fail(call: Incoming, thrown: unknown): void {
    if (!call.open) return
    try {
      if (thrown instanceof RpcError && Number.isInteger(thrown.code)) return call.answer(encodeThrown(call.id, thrown), undefined, thrown)
    } catch {
      // Not even that can be asked of it.
    }
    const reference = this.#options.reference?.()
    const known = reference === undefined ? '' : ` (reference ${reference})`
    this.#side.tell({ level: 'error', message: `${call.request.method} failed${known}`, id: call.id, error: thrown })
    const error = new RpcError(INTERNAL_ERROR, `Internal error${known}`)
    call.answer(encodeError(call.id, error, 'null'), undefined, error)
  }
}
