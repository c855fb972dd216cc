import type { HttpRequest, Principal } from '../jsonrpc/channel.js'
import { handled } from '../jsonrpc/hook.js'
import type { Incoming } from '../jsonrpc/incoming.js'
import { type Id, type Params, encodeId, exactInteger, isObject } from '../jsonrpc/message.js'
import type { LogEntry } from '../jsonrpc/log-entry.js'
import type { Implementation, LogLevel, ProgressParams } from '../protocol/model.js'
import type { Revision } from '../protocol/revisions/index.js'
import { projectProgress } from '../protocol/revisions/project.js'
import { nextTurn } from '../runtime.js'
import type { Answers, Asking, Question, AskContext, StepValue } from './ask.js'
import { type Log, isWanted, makeLog, logEntryOf, sendLog } from './log.js'
import type { ToolSlot } from './tool-slot.js'

/** Who is calling, as far as it has said. */
export interface Caller {
  readonly info: Implementation | undefined
  readonly capabilities: Readonly<Record<string, unknown>>
  /** The protocol revision that is spoken with it. */
  readonly revision: string
  /** On whose behalf it calls, where the transport has verified that. */
  readonly principal?: Principal | undefined
}

/** One request being served, as its handler sees it. */
export interface Call {
  /** The id that the caller gave the request. */
  readonly id: Id
  /** Who calls: `info`, `capabilities`, `revision`, and over HTTP the `principal`. */
  readonly client: Caller
  /** The HTTP request that carried this call: its `headers`, without credentials. Undefined on other transports. */
  readonly http: HttpRequest | undefined
  /** Fires when the call is cancelled or timed out, or its caller is gone. */
  readonly signal: AbortSignal
  /** The `_meta` of the request. */
  readonly meta: Readonly<Record<string, unknown>>
  /** Log messages to the caller, as far as it wants them, and to the log of this process. */
  readonly log: Log
  /** Tells how far the call is. Silent if the caller did not ask, and once the call is answered. */
  progress(done: number, total?: number, message?: string): void
  /**
   * Lets the caller's connection go while the call runs on, where the caller will come back for the rest: over HTTP, in
   * revisions whose clients poll. Elsewhere nothing happens.
   */
  releaseStream(): void
  /**
   * Asks the client, and resolves with the answers. In some revisions the call
   * ends here and is run again from the top, with the answers: what must not be
   * done twice belongs into a step.
   */
  ask<const Questions extends Readonly<Record<string, Question>>>(
    questions: Questions,
  ): Promise<Answers<Questions>>
  /** Does something once: a call that is run again with its answers is given what came of it, which is plain JSON or nothing. */
  step<Value extends StepValue>(
    key: string,
    run: (signal: AbortSignal) => Value | Promise<Value>,
  ): Promise<Value>
  /** Stays the same when the call is run again: an idempotency key for what it does elsewhere. */
  readonly key: string
  /** 1, and one more each time the call is run again. */
  readonly attempt: number
}

/** The longest progress token, in characters: as long as an id may be. */
const MAX_TOKEN = 1024

/** What a call needs of the connection it came over. */
export interface Connection {
  readonly revision: Revision
  readonly caller: Caller
  /** The lowest level of log messages that the caller wants; none where it wants none. */
  readonly logLevel: LogLevel | undefined
  report(report: LogEntry): void
}

export class ServedCall implements Call {
  readonly #incoming: Incoming
  readonly #connection: Connection
  #signal: AbortSignal | undefined
  #log: Log | undefined
  #token: Id | false | undefined
  #progress: Omit<ProgressParams, 'progressToken'> | undefined
  #lastProgress = Number.NEGATIVE_INFINITY
  readonly #situation: (call: ServedCall) => AskContext
  #key: string | undefined
  #asking: Asking | undefined
  /** What it takes of its tool's limits. */
  stay: ToolSlot | undefined

  constructor(
    incoming: Incoming,
    connection: Connection,
    situation: (call: ServedCall) => AskContext,
  ) {
    this.#incoming = incoming
    this.#connection = connection
    this.#situation = situation
  }

  get id(): Id {
    return this.#incoming.id
  }

  /** Neither answered nor cancelled. */
  get open(): boolean {
    return this.#incoming.open
  }

  get method(): string {
    return this.#incoming.request.method
  }

  get params(): Params {
    return this.#incoming.request.params ?? {}
  }

  get client(): Caller {
    return this.#connection.caller
  }

  get http(): HttpRequest | undefined {
    return this.#incoming.http
  }

  get signal(): AbortSignal {
    this.#signal ??= this.#incoming.signal
    return this.#signal
  }

  get log(): Log {
    this.#log ??= makeLog((message) => {
      this.#connection.report(logEntryOf(message, this.id))
      // Who does not read is not buried in messages.
      if (
        this.open &&
        !this.#incoming.congested &&
        isWanted(message.level, this.#connection.logLevel)
      )
        sendLog((frame, sent) => this.#incoming.send(frame, sent), message)
    })
    return this.#log
  }

  get meta(): Readonly<Record<string, unknown>> {
    const meta = this.#incoming.request.params?.['_meta']
    return isObject(meta) ? meta : {}
  }

  get key(): string {
    this.#key ??= this.#asking?.key ?? crypto.randomUUID()
    return this.#key
  }

  get attempt(): number {
    return this.#asking?.attempt ?? 1
  }

  ask<const Questions extends Readonly<Record<string, Question>>>(
    questions: Questions,
  ): Promise<Answers<Questions>> {
    // When a call is suspended, all that it has begun is rejected, and its handler hears of the first only.
    return handled(
      this.#prepareToAsk().then((asking) => asking.ask(questions)) as Promise<Answers<Questions>>,
    ) // each answer was read by its question
  }

  step<Value extends StepValue>(
    key: string,
    run: (signal: AbortSignal) => Value | Promise<Value>,
  ): Promise<Value> {
    return handled(this.#prepareToAsk().then((asking) => asking.step(key, run)))
  }

  /** Whether it has been answered with questions, and will be run again. */
  get suspended(): boolean {
    return this.#asking?.suspended ?? false
  }

  /** Takes up what an earlier request of this call has left with the client. */
  async resume(params: Params): Promise<void> {
    const { resume } = await import('./asking/asking.js')
    this.#asking = await resume(this.#situation(this), params)
    this.#key = this.#asking.key
  }

  /** Waits for somebody else, without taking time or a place. */
  async waiting<Value>(promise: Promise<Value>): Promise<Value> {
    this.stay?.pause()
    try {
      return await this.#incoming.parked(promise)
    } finally {
      await this.stay?.resume(this.signal)
    }
  }

  /** Loaded when it is first needed: few calls ask. */
  async #prepareToAsk(): Promise<Asking> {
    const { askingOf } = await import('./asking/asking.js')
    this.#asking ??= askingOf(this.#situation(this))
    return this.#asking
  }

  /** A second reason to stop: to be set before the handler looks at `signal`. */
  endWith(timeout: AbortSignal): void {
    this.#signal = AbortSignal.any([this.#incoming.signal, timeout])
  }

  progress(done: number, total?: number, message?: string): void {
    // The specification wants each value to be larger than the one before.
    if (
      !Number.isFinite(done) ||
      !(done > this.#lastProgress) ||
      !this.open ||
      this.#incoming.congested
    )
      return
    this.#token ??= this.#readToken() ?? false
    if (this.#token === false) return
    this.#lastProgress = done
    const first = this.#progress === undefined
    this.#progress = { progress: done }
    if (Number.isFinite(total)) this.#progress.total = Number(total)
    if (typeof message === 'string') this.#progress.message = message
    // At most one notification a turn of the event loop: the latest one says it all.
    if (!first) return
    const send = () => this.#sendProgress()
    nextTurn(send)
    this.#incoming.beforeAnswer(send)
  }

  releaseStream(): void {
    this.#incoming.release()
  }

  #sendProgress(): void {
    const latest = this.#progress
    const token = this.#token
    this.#progress = undefined
    if (latest === undefined || token === undefined || token === false || !this.open) return
    // The token is written by hand: its digits may not fit a number.
    const method = 'notifications/progress'
    const params = projectProgress(this.#connection.revision, latest)
    const rest = JSON.stringify(params).slice(1)
    const frame = `{"jsonrpc":"2.0","method":"${method}","params":{"progressToken":${encodeId(token)},${rest}}`
    this.#incoming.send(frame, {
      kind: 'notification',
      method,
      params: { progressToken: token, ...params },
    })
  }

  #readToken(): Id | undefined {
    const token = this.meta['progressToken']
    // It would be part of every notification.
    if (typeof token === 'string') return token.length <= MAX_TOKEN ? token : undefined
    if (typeof token !== 'number') return undefined
    return exactInteger(token, this.#incoming.request.frame, ['params', '_meta', 'progressToken'])
  }
}
