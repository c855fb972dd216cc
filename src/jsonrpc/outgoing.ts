import { type Deadline, TimeoutError } from './deadline.js'
import { abortError } from './errors.js'
import { onAbort } from './on-abort.js'
import { type Id, type Response, type Send, type SentRequest, encodeRequest } from './message.js'

export interface RequestOptions {
  signal?: AbortSignal
  /** The timeouts of the request. */
  deadline?: Deadline
  /** Sends the request along another path than the channel, such as the HTTP response of the call it belongs to. */
  send?: Send
  /** The protocol version of the request, for the transport. */
  protocolVersion?: string
  /** The parameter that HTTP repeats in `Mcp-Name`. */
  nameParam?: string | undefined
  /** Arguments that HTTP repeats in `Mcp-Param-…` headers. */
  headerParams?: SentRequest['headerParams']
  /** Called with the response as received, before the promise settles. */
  onResponse?: (response: Response) => void
}

/** A request that is sent, as telemetry observes it. */
export interface Sending {
  /** The params to send. */
  readonly params: unknown
  /** Sends it, so that what the transport does belongs to it. */
  run<Result>(send: () => Result): Result
  ended(outcome: { readonly result?: unknown; readonly error?: unknown }): void
}

export interface OutgoingOptions {
  send: Send
  /** Creates the id of a request (default: numbers from 1). */
  newId?: (() => string) | undefined
  /** Whether the other side may have received a request. */
  hasSent(id: Id): boolean
  /** Tells the other side that a request was cancelled. */
  cancelled(id: Id, reason: string, method: string, send: Send): void
}

interface PendingRequest {
  resolve(result: unknown): void
  reject(error: Error): void
  readonly onResponse: RequestOptions['onResponse']
}

/** All sent requests that wait for a response. Each settles: with its result, an error response, a timeout or a closed channel. */
export class OutgoingRequests {
  readonly #options: OutgoingOptions
  readonly #waiting = new Map<Id, PendingRequest>()
  /** The id that the next request will have. */
  nextId: Id

  constructor(options: OutgoingOptions) {
    this.#options = options
    this.nextId = options.newId?.() ?? 1
  }

  /** How many are pending. */
  get size(): number {
    return this.#waiting.size
  }

  request(method: string, params: unknown, options: RequestOptions): Promise<unknown> {
    const {
      signal,
      deadline,
      send = this.#options.send,
      protocolVersion,
      nameParam,
      headerParams,
      onResponse,
    } = options
    if (signal?.aborted === true) return Promise.reject(abortError(signal.reason))
    const id = this.nextId
    this.nextId = this.#options.newId?.() ?? Number(id) + 1
    return new Promise((resolve, reject) => {
      // In here, where no closure uses it: what they use is held until the response.
      const frame = encodeRequest(id, method, params)
      const giveUp = (error: Error) => {
        settle()
        this.#options.cancelled(id, error.message, method, send)
        reject(error)
      }
      const settle = () => {
        this.#waiting.delete(id)
        deadline?.stop()
        unlisten?.()
      }
      deadline?.start((when) => {
        const executed = this.#options.hasSent(id) ? 'maybe' : 'no'
        giveUp(new TimeoutError(`No response ${when} to ${method}`, { executed }))
      })
      const unlisten = signal && onAbort(signal, () => giveUp(abortError(signal.reason)))
      this.#waiting.set(id, {
        resolve: (result) => (settle(), resolve(result)),
        reject: (error) => (settle(), reject(error)),
        onResponse,
      })
      send(frame, { kind: 'request', id, method, params, protocolVersion, nameParam, headerParams })
    })
  }

  /** Settles the request that a response belongs to; false if there is none. */
  settle(response: Response): boolean {
    const waiting = this.#waiting.get(response.id)
    if (waiting === undefined) return false
    waiting.onResponse?.(response)
    const { outcome } = response
    if ('error' in outcome) waiting.reject(outcome.error)
    else waiting.resolve(outcome.result)
    return true
  }

  /** Rejects a request that gets no response. */
  fail(id: Id, error: Error): void {
    this.#waiting.get(id)?.reject(error)
  }

  /** Rejects all: no response can arrive any more. */
  rejectAll(error: Error): void {
    for (const waiting of this.#waiting.values()) waiting.reject(error)
  }
}
