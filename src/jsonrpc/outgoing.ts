import { type Deadline, Timeout } from './deadline.js'
import { asError } from './errors.js'
import { type Id, type Response, type Send, type SentRequest, encodeRequest } from './message.js'

export interface RequestOptions {
  signal?: AbortSignal
  /** When the request is given up. */
  deadline?: Deadline
  /** The way to send it, where that is not the channel's own. */
  send?: Send
  /** The protocol version that the request is sent in, for the transport. */
  protocolVersion?: string
  /** Arguments that HTTP repeats in headers. */
  headerParams?: SentRequest['headerParams']
  /** Shown the response as it came, before the promise settles. */
  onResponse?: (response: Response) => void
}

export interface OutgoingOptions {
  send: Send
  /** Tells the other side that a request is not wanted any more. */
  cancelled(id: Id, reason: string, method: string, send: Send): void
}

interface Waiting {
  resolve(result: unknown): void
  reject(error: Error): void
  readonly onResponse: RequestOptions['onResponse']
}

/** Every request that this side has sent and waits for: each ends, by an answer or by an error. */
export class OutgoingCalls {
  readonly #options: OutgoingOptions
  readonly #waiting = new Map<Id, Waiting>()
  #nextId = 1

  constructor(options: OutgoingOptions) {
    this.#options = options
  }

  /** The id that the next request will have. */
  get nextId(): Id {
    return this.#nextId
  }

  /** How many have not been answered. */
  get size(): number {
    return this.#waiting.size
  }

  request(method: string, params: unknown, options: RequestOptions): Promise<unknown> {
    const {
      signal,
      deadline,
      send = this.#options.send,
      protocolVersion,
      headerParams,
      onResponse,
    } = options
    if (signal?.aborted === true) return Promise.reject(asError(signal.reason))
    const id = this.#nextId++
    const frame = encodeRequest(id, method, params)
    return new Promise((resolve, reject) => {
      const giveUp = (error: Error) => {
        settle()
        this.#options.cancelled(id, error.message, method, send)
        reject(error)
      }
      const aborted = () => giveUp(asError(signal?.reason))
      const settle = () => {
        this.#waiting.delete(id)
        deadline?.stop()
        signal?.removeEventListener('abort', aborted)
      }
      deadline?.start((error) => giveUp(new Timeout(`${error.message} to ${method}`)))
      signal?.addEventListener('abort', aborted)
      this.#waiting.set(id, {
        resolve: (result) => (settle(), resolve(result)),
        reject: (error) => (settle(), reject(error)),
        onResponse,
      })
      send(frame, { kind: 'request', id, method, params, protocolVersion, headerParams })
    })
  }

  /** Ends the request that a response belongs to; false where there is none. */
  respond(response: Response): boolean {
    const waiting = this.#waiting.get(response.id)
    if (waiting === undefined) return false
    waiting.onResponse?.(response)
    const { outcome } = response
    if ('error' in outcome) waiting.reject(outcome.error)
    else waiting.resolve(outcome.result)
    return true
  }

  /** Ends a request that gets no response. */
  fail(id: Id, error: Error): void {
    this.#waiting.get(id)?.reject(error)
  }

  /** No answer will come any more. */
  drop(error: Error): void {
    for (const waiting of this.#waiting.values()) waiting.reject(error)
  }
}
