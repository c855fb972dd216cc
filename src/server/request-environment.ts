import { nextTurn } from '../runtime.js'
import type { HttpRequest } from '../jsonrpc/channel.js'
import { callHook } from '../jsonrpc/hook.js'
import type { IncomingRequest } from '../jsonrpc/incoming.js'
import { type Id, type Params, encodeId, exactInteger, isObject } from '../jsonrpc/message.js'
import type { ProgressParams } from '../protocol/model.js'
import type { Activity, Observed } from '../protocol/telemetry.js'
import { projectProgress } from '../protocol/revisions/project.js'
import type { Asking } from './ask.js'
import type { AskingCall, CallEnvironment, Caller, ClientContext } from './call.js'
import type { InternalServer } from './context.js'
import { isWanted, logEntryOf, sendLog } from './log.js'
import type { LogMessage } from './registry.js'

/** The longest progress token, in characters: as long as an id may be. */
const MAX_TOKEN = 1024

/** The environment of a call whose request is live: the client waits for the response on its connection. */
export class RequestEnvironment implements CallEnvironment {
  readonly #server: InternalServer
  readonly #incoming: IncomingRequest
  readonly #connection: ClientContext
  #token: Id | false | undefined
  #progress: Omit<ProgressParams, 'progressToken'> | undefined

  constructor(server: InternalServer, incoming: IncomingRequest, connection: ClientContext) {
    this.#server = server
    this.#incoming = incoming
    this.#connection = connection
  }

  get id(): Id {
    return this.#incoming.id
  }

  get method(): string {
    return this.#incoming.request.method
  }

  get params(): Params | undefined {
    return this.#incoming.request.params
  }

  get client(): Caller {
    return this.#connection.caller
  }

  get http(): HttpRequest | undefined {
    return this.#incoming.http
  }

  get signal(): AbortSignal {
    return this.#incoming.signal
  }

  get open(): boolean {
    return this.#incoming.open
  }

  /** Drops log messages while the client is not reading. */
  log(message: LogMessage): void {
    this.#connection.report(logEntryOf(message, this.id))
    if (
      this.open &&
      !this.#incoming.congested &&
      isWanted(message.level, this.#connection.logLevel)
    )
      sendLog((frame, sent) => this.#incoming.send(frame, sent), message)
  }

  /** Sends at most one notification a turn of the event loop: the latest. */
  progress(progress: Omit<ProgressParams, 'progressToken'>): void {
    if (this.#incoming.congested) return
    this.#token ??= this.#readToken() ?? false
    if (this.#token === false) return
    const scheduled = this.#progress !== undefined
    this.#progress = progress
    if (scheduled) return
    const send = () =>
      callHook(
        () => this.#sendProgress(),
        (error) => this.#reportUnsent(error),
      )
    nextTurn(send)
    this.#incoming.beforeResponse(send)
  }

  releaseStream(): void {
    this.#incoming.release()
  }

  park<Value>(promise: Promise<Value>): Promise<Value> {
    return this.#incoming.park(promise)
  }

  observe(activity: Activity): Observed | undefined {
    return this.#server.telemetry?.begin(activity, this.#connection.report)
  }

  /** Loaded when it is first needed: few calls ask. */
  async asking(call: AskingCall): Promise<Asking> {
    const { askingOf } = await import('./asking/asking.js')
    return askingOf(this.#server, this.#incoming, this.#connection, call)
  }

  async resume(call: AskingCall, params: Params): Promise<Asking> {
    const { resume } = await import('./asking/asking.js')
    return resume(this.#server, this.#incoming, this.#connection, call, params)
  }

  /** A transport may throw, such as a response that other code has wrapped. */
  #reportUnsent(error: unknown): void {
    const message = 'notifications/progress could not be sent'
    this.#connection.report({ level: 'error', message, id: this.id, error })
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
    const meta = this.params?.['_meta']
    const token = isObject(meta) ? meta['progressToken'] : undefined
    if (typeof token === 'string') return token.length <= MAX_TOKEN ? token : undefined
    if (typeof token !== 'number') return undefined
    return exactInteger(token, this.#incoming.request.frame, ['params', '_meta', 'progressToken'])
  }
}
