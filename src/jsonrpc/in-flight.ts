import type { Id, Request } from './message.js'

/** Takes the answer to one message; called once, without a frame where there is none. */
export type Reply = (frame?: string) => void

/** One request that this side is serving. */
export class Incoming {
  readonly request: Request
  readonly inBatch: boolean
  readonly #reply: Reply
  #controller: AbortController | undefined
  #state: 'open' | 'answered' | 'cancelled' = 'open'

  constructor(request: Request, reply: Reply, inBatch: boolean) {
    this.request = request
    this.inBatch = inBatch
    this.#reply = reply
  }

  get id(): Id {
    return this.request.id
  }

  /** Neither answered nor cancelled. */
  get open(): boolean {
    return this.#state === 'open'
  }

  get cancelled(): boolean {
    return this.#state === 'cancelled'
  }

  /** Fires when the caller has cancelled, or is gone. Made when somebody looks. */
  get signal(): AbortSignal {
    this.#controller ??= new AbortController()
    if (this.cancelled && !this.#controller.signal.aborted) this.#controller.abort()
    return this.#controller.signal
  }

  answer(frame: string): void {
    if (!this.open) return
    this.#state = 'answered'
    this.#reply(frame)
  }

  /** Ends it without an answer. */
  cancel(reason: Error): void {
    if (!this.open) return
    this.#state = 'cancelled'
    this.abort(reason)
    this.#reply()
  }

  /** Tells the handler to stop, whether or not an answer was given. */
  abort(reason: Error): void {
    this.#controller?.abort(reason)
  }
}

/** One request that this side has sent and waits for. */
export interface Outgoing {
  resolve(result: unknown): void
  reject(error: Error): void
}

/** Everything that is under way on one connection, in both directions. */
export class InFlight {
  readonly incoming = new Map<Id, Incoming>()
  readonly outgoing = new Map<Id, Outgoing>()
  #idle: (() => void)[] = []

  begin(call: Incoming): void {
    this.incoming.set(call.id, call)
  }

  end(call: Incoming): void {
    // A cancelled id may be in use again by the time its handler returns.
    if (this.incoming.get(call.id) === call) this.incoming.delete(call.id)
    if (this.incoming.size > 0) return
    const waiting = this.#idle
    this.#idle = []
    for (const resolve of waiting) resolve()
  }

  /** Resolves when no incoming call is under way. */
  idle(): Promise<void> {
    if (this.incoming.size === 0) return Promise.resolve()
    return new Promise((resolve) => this.#idle.push(resolve))
  }
}
