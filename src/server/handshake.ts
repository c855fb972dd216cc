import { INVALID_REQUEST, RpcError } from '../jsonrpc/errors.js'
import { callHook } from '../jsonrpc/hook.js'
import type { Incoming } from '../jsonrpc/incoming.js'
import type { LogEntry } from '../jsonrpc/log-entry.js'
import { type Id, isThenable } from '../jsonrpc/message.js'
import { truncate } from '../jsonrpc/truncate.js'
import type { LogLevel } from '../protocol/model.js'
import type { Caller, Connection, ServedCall } from './call.js'
import { CallerContext } from './caller-context.js'
import type { InternalServer } from './context.js'
import { logEntryOf, makeLog } from './log.js'
import { through } from './middleware.js'
import { open } from './opening.js'
import type { LogMessage } from './registry.js'

/** What a handshake needs of its session. */
interface Session {
  readonly report: (report: LogEntry) => void
  /** Sends a log message to the client. */
  sendLog(message: LogMessage): void
}

/** The initialize handshake of one session: what it has agreed on, and how far it is. */
export class Handshake {
  readonly #server: InternalServer
  readonly #session: Session
  #connection: Connection | undefined
  #ready = false
  /** While a middleware of `initialize` is pending: later messages wait for it. */
  #pending: Promise<void> | undefined
  #pendingId: Id | undefined
  #greeted = false
  #warned = false
  #logLevel: LogLevel
  // A closure of `initialize` would hold the whole request.
  readonly #level = () => (this.#ready ? this.#logLevel : undefined)

  constructor(server: InternalServer, session: Session) {
    this.#server = server
    this.#session = session
    this.#logLevel = server.logLevel
  }

  /** What `initialize` has agreed on. */
  get connection(): Connection | undefined {
    return this.#connection
  }

  get pending(): Promise<void> | undefined {
    return this.#pending
  }

  /** The lowest level of log messages that the client wants; undefined before `notifications/initialized`. */
  get logLevel(): LogLevel | undefined {
    return this.#level()
  }

  readonly setLogLevel = (level: LogLevel): void => void (this.#logLevel = level)

  /** Whether this is the id of a pending `initialize`, which cannot be cancelled. */
  isPending(id: Id): boolean {
    return id === this.#pendingId
  }

  initialize(call: Incoming, served: (connection: Connection) => ServedCall): object {
    const { params = {} } = call.request
    const { revision, caller, result } = open(this.#server, params, call.principal)
    const connection = new CallerContext(revision, caller, this.#level, this.#session.report)
    const begin = () => {
      this.#connection = connection
      const message = `Initialized by ${nameOf(caller)}, protocol ${revision.id}`
      this.#session.report({ level: 'info', message, id: call.id })
      return result
    }
    const { middleware } = this.#server
    if (middleware.length === 0) return begin()
    const opened = through(middleware, served(connection), begin)
    if (isThenable(opened)) {
      this.#pendingId = call.id
      this.#pending = this.#settled(opened)
    }
    return opened
  }

  async #settled(opened: unknown): Promise<void> {
    await Promise.allSettled([opened])
    this.#pending = undefined
    this.#pendingId = undefined
  }

  /** On `notifications/initialized`; false where there was no `initialize`. */
  confirm(): boolean {
    this.#ready = this.#connection !== undefined
    return this.#ready
  }

  /** On each request after `initialize`. */
  received(call: Incoming): void {
    if (call.request.method === 'initialize')
      throw new RpcError(INVALID_REQUEST, 'Invalid Request: already initialized')
    if (!this.#ready) this.#warnEarly(call)
    // After a response, so that a client which waits for that line is not sent another one first.
    else if (!this.#greeted && !call.inBatch) call.afterResponse(() => this.#greet())
  }

  #greet(): void {
    if (this.#greeted || this.#connection === undefined) return
    this.#greeted = true
    const log = makeLog((message) => {
      this.#session.report(logEntryOf(message))
      this.#session.sendLog(message)
    })
    const { caller } = this.#connection
    callHook(
      () => this.#server.onInitialized?.({ caller, log }),
      (error) => this.#session.report({ level: 'error', message: 'onInitialized failed', error }),
    )
  }

  #warnEarly(call: Incoming): void {
    if (this.#warned) return
    this.#warned = true
    const message = `${truncate(call.request.method)} was received before notifications/initialized; it is served all the same`
    this.#session.report({ level: 'warning', message, id: call.id })
  }
}

/** As the client calls itself, if it gave a name at all. */
function nameOf({ info }: Caller): string {
  const name: unknown = info?.name
  return typeof name === 'string' ? truncate(name) : 'an unnamed client'
}
