import { type Deadline, Timeout } from './deadline.js'
import { asError } from './errors.js'
import { type Id, encodeRequest } from './message.js'

export interface RequestOptions {
  signal?: AbortSignal
  /** When the request is given up. */
  deadline?: Deadline
  /** The way to send it, where that is not the channel's own. */
  send?: (frame: string) => void
}

export interface OutgoingOptions {
  send(frame: string): void
  /** Tells the other side that a request is not wanted any more. */
  cancelled(id: Id, reason: string, method: string, send: (frame: string) => void): void
}

interface Waiting {
  resolve(result: unknown): void
  reject(error: Error): void
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

  request(method: string, params: unknown, { signal, deadline, send = this.#options.send }: RequestOptions): Promise<unknown> {
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
      })
      send(frame)
    })
  }

  /** Ends the request with that id; false where there is none. */
  end(id: Id, outcome: { result: unknown } | { error: Error }): boolean {
    const waiting = this.#waiting.get(id)
    if (waiting === undefined) return false
    if ('error' in outcome) waiting.reject(outcome.error)
    else waiting.resolve(outcome.result)
    return true
  }

  /** No answer will come any more. */
  drop(error: Error): void {
    for (const waiting of this.#waiting.values()) waiting.reject(error)
  }
}
