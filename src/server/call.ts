import type { Incoming } from '../jsonrpc/incoming.js'
import { type Id, encodeId, exactInteger, isObject } from '../jsonrpc/message.js'
import type { Report } from '../jsonrpc/report.js'
import type { Implementation, LogLevel, ProgressParams } from '../protocol/model.js'
import type { Revision } from '../protocol/revisions/index.js'
import { projectProgress } from '../protocol/revisions/shapes.js'
import { type Log, encodeLog, isWanted, makeLog, reportOf } from './log.js'

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
  /** Log messages to the caller, as far as it wants them, and to the log of this process. */
  readonly log: Log
  /** Tells how far the call is. Silent if the caller did not ask, and once the call is answered. */
  progress(done: number, total?: number, message?: string): void
}

/** What a call needs of the connection it came over. */
export interface Connection {
  readonly revision: Revision
  readonly caller: Caller
  /** Whether the caller does not read what it is sent. */
  readonly congested: boolean
  /** The lowest level of log messages that the caller wants; none where it wants none. */
  readonly logLevel: LogLevel | undefined
  send(frame: string): void
  report(report: Report): void
}

export class ServedCall implements Call {
  readonly #incoming: Incoming
  readonly #connection: Connection
  #signal: AbortSignal | undefined
  #log: Log | undefined
  #token: Id | false | undefined
  #progress: Omit<ProgressParams, 'progressToken'> | undefined
  #lastProgress = Number.NEGATIVE_INFINITY

  constructor(incoming: Incoming, connection: Connection) {
    this.#incoming = incoming
    this.#connection = connection
  }

  get id(): Id {
    return this.#incoming.id
  }

  /** Neither answered nor cancelled. */
  get open(): boolean {
    return this.#incoming.open
  }

  get client(): Caller {
    return this.#connection.caller
  }

  get signal(): AbortSignal {
    this.#signal ??= this.#incoming.signal
    return this.#signal
  }

  get log(): Log {
    this.#log ??= makeLog((message) => {
      this.#connection.report({ ...reportOf(message), id: this.id })
      if (this.open && isWanted(message.level, this.#connection.logLevel)) this.#connection.send(encodeLog(message))
    })
    return this.#log
  }

  get meta(): Readonly<Record<string, unknown>> {
    const meta = this.#incoming.request.params?.['_meta']
    return isObject(meta) ? meta : {}
  }

  /** A second reason to stop: to be set before the handler looks at `signal`. */
  endWith(timeout: AbortSignal): void {
    this.#signal = AbortSignal.any([this.#incoming.signal, timeout])
  }

  progress(done: number, total?: number, message?: string): void {
    // The specification wants each value to be larger than the one before.
    if (!Number.isFinite(done) || !(done > this.#lastProgress) || !this.open || this.#connection.congested) return
    this.#token ??= this.#readToken() ?? false
    if (this.#token === false) return
    this.#lastProgress = done
    const first = this.#progress === undefined
    this.#progress = { progress: done }
    if (Number.isFinite(total)) this.#progress.total = Number(total)
    if (typeof message === 'string') this.#progress.message = message
    // At most one notification a turn: the latest one says it all.
    if (first) queueMicrotask(() => this.#sendProgress())
  }

  #sendProgress(): void {
    const latest = this.#progress
    const token = this.#token
    this.#progress = undefined
    if (latest === undefined || token === undefined || token === false || !this.open) return
    // The token is written by hand: its digits may not fit a number.
    const params = JSON.stringify(projectProgress(this.#connection.revision, latest))
    this.#connection.send(
      `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":${encodeId(token)},${params.slice(1)}}`,
    )
  }

  #readToken(): Id | undefined {
    const token = this.meta['progressToken']
    if (typeof token === 'string') return token
    if (typeof token !== 'number') return undefined
    return exactInteger(token, this.#incoming.request.frame, ['params', '_meta', 'progressToken'])
  }
}
