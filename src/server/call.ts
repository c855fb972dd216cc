import type { HttpRequest, Principal } from '../jsonrpc/channel.js'
import { markHandled } from '../jsonrpc/hook.js'
import { type Id, type Params, isObject } from '../jsonrpc/message.js'
import type { LogEntry } from '../jsonrpc/log-entry.js'
import type { Implementation, LogLevel, ProgressParams } from '../protocol/model.js'
import type { Revision } from '../protocol/revisions/index.js'
import type { Activity, Observed } from '../protocol/telemetry.js'
import type { Answers, Asking, Question, StepValue } from './ask.js'
import { type Log, makeLog } from './log.js'
import type { LogMessage } from './registry.js'
import type { ToolSlot } from './tool-slot.js'

/** The client of a call, as it describes itself. */
export interface Caller {
  readonly info: Implementation | undefined
  readonly capabilities: Readonly<Record<string, unknown>>
  /** The negotiated protocol revision. */
  readonly revision: string
  /** On whose behalf it calls, as verified by the transport. */
  readonly principal?: Principal | undefined
}

/** One request being served, as its handler sees it. */
export interface Call {
  /** The id of the request. */
  readonly id: Id
  /** The client: `info`, `capabilities`, `revision`, and over HTTP the `principal`. */
  readonly client: Caller
  /** The HTTP request that carried this call: its `headers`, without credentials. Undefined on other transports. */
  readonly http: HttpRequest | undefined
  /** Fires when the call is cancelled or timed out, or the client has disconnected. */
  readonly signal: AbortSignal
  /** The `_meta` of the request. */
  readonly meta: Readonly<Record<string, unknown>>
  /** Logs to the client, from the level that it has set, and to the log of this process. */
  readonly log: Log
  /** Reports progress. Does nothing if the request has no progress token, and after the response. */
  progress(done: number, total?: number, message?: string): void
  /**
   * Closes the client's connection while the call continues, if the client reconnects for the response: over HTTP, in
   * revisions whose clients poll. Does nothing elsewhere.
   */
  releaseStream(): void
  /**
   * Asks the client, and resolves with the answers. In some revisions the call
   * ends here and is run again from the top, with the answers: put side
   * effects into a step.
   */
  ask<const Questions extends Readonly<Record<string, Question>>>(
    questions: Questions,
  ): Promise<Answers<Questions>>
  /** Runs something once: when the call is run again, the recorded result is returned, which is plain JSON or undefined. */
  step<Value extends StepValue>(
    key: string,
    run: (signal: AbortSignal) => Value | Promise<Value>,
  ): Promise<Value>
  /** An idempotency key: it stays the same when the call is run again. */
  readonly key: string
  /** 1, and one more each time the call is run again. */
  readonly attempt: number
}

/** What a call needs of the connection it came over. */
export interface ClientContext {
  readonly revision: Revision
  readonly caller: Caller
  /** The lowest level of log messages that the client wants; undefined if it wants none. */
  readonly logLevel: LogLevel | undefined
  report(report: LogEntry): void
}

/** What asking needs of its call. */
export interface AskingCall {
  readonly key: string
  readonly signal: AbortSignal
  /** Waits for a promise; meanwhile the tool's timeout is paused and its slot is free. */
  waiting<Value>(promise: Promise<Value>): Promise<Value>
}

/** The environment of a call: a live request, or anything else that runs a handler, such as a queue. */
export interface CallEnvironment {
  readonly id: Id
  readonly method: string
  readonly params: Params | undefined
  readonly client: Caller
  readonly http: HttpRequest | undefined
  /** Fires when the call is cancelled. */
  readonly signal: AbortSignal
  /** Neither responded to nor cancelled. */
  readonly open: boolean
  /** Delivers a log message. */
  log(message: LogMessage): void
  /** Delivers progress; each value is larger than the one before. */
  progress(progress: Omit<ProgressParams, 'progressToken'>): void
  releaseStream(): void
  /** Waits for something outside; meanwhile other calls may run. */
  park<Value>(promise: Promise<Value>): Promise<Value>
  /** Observes something that the call does; undefined without telemetry. */
  observe?(activity: Activity): Observed | undefined
  /** The key of the call, if it was run before. */
  readonly key?: string
  /** How often the call has been run, with this time (default 1). */
  readonly attempt?: number
  /** How the call asks its client, and stores its steps. */
  asking(call: AskingCall): Promise<Asking>
  /** The same for a call that is run again with its answers. */
  resume(call: AskingCall, params: Params): Promise<Asking>
}

export class ServedCall implements Call, AskingCall {
  readonly #environment: CallEnvironment
  #signal: AbortSignal | undefined
  #log: Log | undefined
  #lastProgress = Number.NEGATIVE_INFINITY
  #key: string | undefined
  #asking: Asking | undefined
  /** Its share of the limits of its tool. */
  slot: ToolSlot | undefined

  constructor(environment: CallEnvironment) {
    this.#environment = environment
  }

  get id(): Id {
    return this.#environment.id
  }

  /** Neither responded to nor cancelled. */
  get open(): boolean {
    return this.#environment.open
  }

  get method(): string {
    return this.#environment.method
  }

  get params(): Params {
    return this.#environment.params ?? {}
  }

  get client(): Caller {
    return this.#environment.client
  }

  get http(): HttpRequest | undefined {
    return this.#environment.http
  }

  get signal(): AbortSignal {
    this.#signal ??= this.#environment.signal
    return this.#signal
  }

  get log(): Log {
    this.#log ??= makeLog((message) => this.#environment.log(message))
    return this.#log
  }

  get meta(): Readonly<Record<string, unknown>> {
    const meta = this.#environment.params?.['_meta']
    return isObject(meta) ? meta : {}
  }

  get key(): string {
    this.#key ??= this.#asking?.key ?? this.#environment.key ?? crypto.randomUUID()
    return this.#key
  }

  get attempt(): number {
    return this.#asking?.attempt ?? this.#environment.attempt ?? 1
  }

  ask<const Questions extends Readonly<Record<string, Question>>>(
    questions: Questions,
  ): Promise<Answers<Questions>> {
    // When a call is suspended, all its pending promises reject, and its handler handles the first only.
    return markHandled(
      this.asking().then((asking) => asking.ask(questions)) as Promise<Answers<Questions>>,
    ) // each answer was read by its question
  }

  step<Value extends StepValue>(
    key: string,
    run: (signal: AbortSignal) => Value | Promise<Value>,
  ): Promise<Value> {
    const observed = (signal: AbortSignal) =>
      runObserved(this.#environment.observe?.({ kind: 'step', key }), () => run(signal))
    return markHandled(this.asking().then((asking) => asking.step(key, observed)))
  }

  /** Whether it ended with `input_required`, and will be run again. */
  get suspended(): boolean {
    return this.#asking?.suspended ?? false
  }

  /** Restores what an earlier request of this call has left with the client. */
  async resume(params: Params): Promise<void> {
    this.#asking = await this.#environment.resume(this, params)
    this.#key = this.#asking.key
  }

  async waiting<Value>(promise: Promise<Value>): Promise<Value> {
    this.slot?.pause()
    try {
      return await this.#environment.park(promise)
    } finally {
      await this.slot?.resume(this.signal)
    }
  }

  /** How it asks its client, and what it has recorded. */
  async asking(): Promise<Asking> {
    if (this.#asking !== undefined) return this.#asking
    const asking = await this.#environment.asking(this)
    this.#asking ??= asking // another question may have been asked meanwhile
    return this.#asking
  }

  /** Adds a second reason to abort; to be called before the handler reads `signal`. */
  endWith(timeout: AbortSignal): void {
    this.#signal = AbortSignal.any([this.#environment.signal, timeout])
  }

  progress(done: number, total?: number, message?: string): void {
    if (isObject(done)) throw new TypeError('Use numbers: call.progress(done, total, message)')
    // The specification requires each value to be larger than the one before.
    if (!Number.isFinite(done) || !(done > this.#lastProgress) || !this.open) return
    this.#lastProgress = done
    this.#environment.progress({
      progress: done,
      ...(Number.isFinite(total) && { total: Number(total) }),
      ...(typeof message === 'string' && { message }),
    })
  }

  releaseStream(): void {
    this.#environment.releaseStream()
  }
}

async function runObserved<Value>(
  observed: Observed | undefined,
  work: () => Value | Promise<Value>,
): Promise<Value> {
  if (observed === undefined) return await work()
  try {
    const value = await observed.run(work)
    observed.end({})
    return value
  } catch (error) {
    observed.end({ error })
    throw error
  }
}
