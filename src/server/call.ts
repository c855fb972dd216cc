import type { Incoming } from '../jsonrpc/in-flight.js'
import { type Id, encodeId, exactInteger, isObject } from '../jsonrpc/message.js'
import type { Implementation } from '../protocol/model.js'
import type { Revision } from '../protocol/revisions/index.js'
import { projectProgress } from '../protocol/revisions/shapes.js'

/** Who is calling, as far as it has said. */
export interface Caller {
  readonly info: Implementation | undefined
  readonly capabilities: Readonly<Record<string, unknown>>
  /** The protocol revision that is spoken with it. */
  readonly revision: string
}

/** One request being served, as its handler sees it. */
export interface Call {
  /** The id that the caller gave the request. */
  readonly id: Id
  readonly client: Caller
  /** Fires when the call is cancelled or timed out, or its caller is gone. */
  readonly signal: AbortSignal
  /** The `_meta` of the request. */
  readonly meta: Readonly<Record<string, unknown>>
  /** Tells how far the call is. Silent if the caller did not ask, and once the call is answered. */
  progress(done: number, total?: number, message?: string): void
}

/** What a call needs of the connection it came over. */
export interface Connection {
  readonly revision: Revision
  readonly caller: Caller
  send(frame: string): void
}

export class ServedCall implements Call {
  readonly #incoming: Incoming
  readonly #connection: Connection
  #timeout: AbortController | undefined
  #progress: { done: number; total?: number; message?: string } | undefined
  #lastProgress = Number.NEGATIVE_INFINITY

  constructor(incoming: Incoming, connection: Connection) {
    this.#incoming = incoming
    this.#connection = connection
  }

  get id(): Id {
    return this.#incoming.id
  }

  get client(): Caller {
    return this.#connection.caller
  }

  get signal(): AbortSignal {
    const { signal } = this.#incoming
    return this.#timeout === undefined ? signal : AbortSignal.any([signal, this.#timeout.signal])
  }

  get meta(): Readonly<Record<string, unknown>> {
    const meta = this.#incoming.request.params?.['_meta']
    return isObject(meta) ? meta : {}
  }

  /** A second reason to stop: to be set before the handler looks at `signal`. */
  endWith(timeout: AbortController): void {
    this.#timeout = timeout
  }

  progress(done: number, total?: number, message?: string): void {
    // The specification wants each value to be larger than the one before.
    if (!(done > this.#lastProgress) || !this.#incoming.open) return
    const token = this.#progressToken()
    if (token === undefined) return
    this.#lastProgress = done
    // At most one notification a turn: the latest one says it all.
    if (this.#progress === undefined) queueMicrotask(() => this.#sendProgress(token))
    this.#progress = { done, ...(total === undefined ? {} : { total }), ...(message === undefined ? {} : { message }) }
  }

  #sendProgress(token: Id): void {
    const latest = this.#progress
    this.#progress = undefined
    if (latest === undefined || !this.#incoming.open) return
    const { done: progress, ...rest } = latest
    const { progressToken, ...params } = projectProgress(this.#connection.revision, { progressToken: token, progress, ...rest })
    void progressToken // written by hand: its digits may not fit a number
    const frame = `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":${encodeId(token)},${JSON.stringify(params).slice(1)}}`
    this.#connection.send(frame)
  }

  #progressToken(): Id | undefined {
    const token = this.meta['progressToken']
    if (typeof token === 'string') return token
    if (typeof token !== 'number') return undefined
    return exactInteger(token, this.#incoming.request.frame, ['params', '_meta', 'progressToken'])
  }
}
