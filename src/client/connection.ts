import { type Deadline, TimeoutError } from '../jsonrpc/deadline.js'
import {
  ChannelClosedError,
  METHOD_NOT_FOUND,
  RpcError,
  abortError,
  withCode,
} from '../jsonrpc/errors.js'
import { callHook, markHandled, ignore } from '../jsonrpc/hook.js'
import type { LogEntry } from '../jsonrpc/log-entry.js'
import type { Params } from '../jsonrpc/message.js'
import type { LogLevel } from '../protocol/model.js'
import { METHODS } from '../protocol/methods.js'
import { type CacheOptions, ResultCache } from './cache.js'
import { Listeners } from './events.js'
import { type ExtensionConnection, settingsOf } from './extension.js'
import { isLegacyFailure, isModern } from './opening.js'
import { type Prior, priorOf } from './prior.js'
import { Backoff, type ReconnectOptions, wait } from './reconnect.js'
import { type CallOptions, type SessionCallOptions, deadlineOf } from './call-options.js'
import type { ClientSession, ServerDetails, SessionObserver } from './session.js'
import { SessionState } from './session-state.js'
import type { ListenOptions, Subscription } from './subscription.js'
import type { List } from './subscription-links.js'
import { type ListChange, type ResourceChange, Subscriptions } from './subscriptions.js'
import { ConnectionError } from './target.js'
import { OutputSchemas } from './tool-results.js'
import { untilDeadline } from './until-aborted.js'

/** A session with a server, and what the server says of itself. */
export interface Opened {
  session: ClientSession
  details: ServerDetails
  /** Whether the transport is HTTP+SSE. */
  httpSse: boolean
  /** False if the details are those of a prior, and no request has shown yet that they are right. */
  verified: boolean
}

export interface ConnectionOptions {
  /** Opens a session with the target. */
  open(observer: SessionObserver, signal: AbortSignal | undefined): Promise<Opened>
  /** Undefined: a lost connection is not restored. */
  reconnect: ReconnectOptions | undefined
  /** Undefined: nothing is cached. */
  cache: CacheOptions | undefined
  report(entry: LogEntry): void
}

/** The connection of a client, across the sessions that replace each other. */
export class Connection implements SessionObserver {
  readonly #options: ConnectionOptions
  readonly listeners: Listeners
  readonly subscriptions: Subscriptions
  readonly cache: ResultCache
  readonly outputSchemas = new OutputSchemas()
  readonly #state = new SessionState()
  readonly #backoff: Backoff
  #opened: Opened | undefined
  /** The next session, while there is none. Rejects when the connection is given up. */
  #next: Promise<Opened> | undefined
  /** The session of a prior that was wrong. */
  #former: ClientSession | undefined
  #logLevel: LogLevel | undefined
  /** Calls that wait for the next session. */
  #waiting = 0
  #isReconnecting = false
  /** Why there is no connection any more. */
  #ended: ChannelClosedError | undefined
  readonly #closing = new AbortController()
  readonly #gone = new AbortController()
  /** By the ids of extensions. */
  readonly #connections = new Map<string, ExtensionConnection>()

  constructor(options: ConnectionOptions) {
    this.#options = options
    const { report } = this
    this.listeners = new Listeners(report)
    this.cache = new ResultCache(options.cache)
    this.#backoff = new Backoff(options.reconnect)
    this.subscriptions = new Subscriptions({
      reconnect: options.reconnect ?? {},
      missed: () => this.#forget(),
      ended: (event) => this.listeners.emit('unsubscribed', event),
      report,
    })
  }

  /** Removes what authorizes the requests from an error that a result of the server has led to. */
  redactError(error: unknown): void {
    this.#opened?.session.secrets?.redactError(error)
  }

  /** Reports without what authorizes the requests. */
  readonly report = (entry: LogEntry): void =>
    callHook(
      () => this.#options.report(this.#opened?.session.secrets?.redactEntry(entry) ?? entry),
      ignore,
    )

  async connect(signal: AbortSignal | undefined): Promise<void> {
    this.#adopt(await this.#options.open(this, signal))
  }

  /** What the server has said of itself, last. */
  get details(): ServerDetails {
    return this.#known().details
  }

  #known(): Opened {
    if (this.#opened === undefined) throw new Error('The client is not connected')
    return this.#opened
  }

  /** Sends a request on the current connection, or on the next one. It is never sent twice. */
  async request(
    method: string,
    params: Params | undefined,
    given: SessionCallOptions = {},
  ): Promise<Params> {
    const options = this.#limited(given)
    const opened = this.#current() ?? (await this.ready(options))
    try {
      const result = await opened.session.request(method, params, options)
      opened.verified = true
      if (METHODS.get(method)?.session !== undefined) this.#state.requested(method, params)
      return result
    } catch (error) {
      opened.session.secrets?.redactError(error)
      if (!opened.verified && isRefusal(error)) {
        const { session } = await untilDeadline(
          this.#verify(opened),
          options,
          (when) =>
            new TimeoutError(
              `The server is not the one that the prior describes, and there was no connection ${when}; ${method} was not executed`,
              { executed: 'no' },
            ),
        )
        return await session.request(method, params, options)
      }
      // The server has ended the session and refuses another one like it.
      if (error instanceof ConnectionError && this.#options.reconnect !== undefined)
        this.#lost(opened.session, error)
      throw error
    }
  }

  /** The server may not be the one that the prior describes: opens a session without it. */
  #verify(wrong: Opened): Promise<Opened> {
    if (this.#opened !== wrong) return this.ready({ timeout: Infinity, maxTimeout: Infinity })
    if (this.#next === undefined) {
      this.#next = markHandled(
        this.#options
          .open(this, this.#closing.signal)
          .then((opened) => this.#replace(opened))
          .catch((error: unknown) => {
            this.#next = undefined
            throw error
          }),
      )
      // Other calls may still be in flight on it.
      this.#former = wrong.session
    }
    return this.#next
  }

  /** Resolves when a request has confirmed the details taken from a prior, or they were replaced. */
  async #verified(options: SessionCallOptions): Promise<void> {
    const opened = await this.ready(options)
    if (opened.verified) return
    try {
      await this.request('server/discover', undefined, options)
    } catch (error) {
      // If it is refused, the server has been found to be another one.
      if (error instanceof TimeoutError) throw error
    }
  }

  /** The options of a call with its timeouts, which are those of all that it waits for. */
  #limited<Options extends SessionCallOptions>(options: Options): Options & { deadline: Deadline } {
    const busy = () => this.#opened?.session.isAnswering() === true
    return { ...options, deadline: options.deadline ?? deadlineOf(options, busy) }
  }

  isUnattended(): boolean {
    return this.#isReconnecting && this.#waiting === 0
  }

  readonly connectionOf = (id: string): ExtensionConnection => {
    const made = this.#connections.get(id) ?? this.#connectionFor(id)
    this.#connections.set(id, made)
    return made
  }

  #connectionFor(id: string): ExtensionConnection {
    const capabilities = () => this.#opened?.details.capabilities ?? {}
    return {
      signal: this.#gone.signal,
      get settings() {
        return settingsOf(id, capabilities())
      },
      request: (method, params, options) => this.request(method, params, options),
      answer: (inputRequests, signal) => this.#known().session.answer(inputRequests, signal),
      listen: (field, value, options) => this.listen(field, value, options),
    }
  }

  /** One deadline for everything that it waits for, as for `watch` and `listen`. */
  async subscribe(
    uri: string,
    listener: (change: ResourceChange) => unknown,
    given: CallOptions = {},
  ): Promise<Subscription> {
    const options = this.#limited(given)
    await this.#verified(options)
    return await this.subscriptions.subscribe(uri, listener, options)
  }

  async watch(
    list: List,
    listener: (change: ListChange) => unknown,
    given: CallOptions = {},
  ): Promise<Subscription> {
    const options = this.#limited(given)
    await this.#verified(options)
    return await this.subscriptions.watch(list, listener, options)
  }

  /** Opens the stream of a field of an extension. */
  async listen(field: string, value: unknown, given: ListenOptions = {}): Promise<Subscription> {
    const options = this.#limited(given)
    await this.#verified(options)
    return await this.subscriptions.listen(field, value, options)
  }

  /** The new session is the current one, unless the connection was closed meanwhile. */
  async #replace(opened: Opened): Promise<Opened> {
    if (this.#closing.signal.aborted) {
      await opened.session.peer.close()
      throw this.#ended ?? new ChannelClosedError('The connection is closed')
    }
    this.#next = undefined
    this.#adopt(opened)
    return opened
  }

  notify(method: string, params: Params | undefined): void {
    this.#current()?.session.peer.notify(method, params)
  }

  /** Resolves to the current session, or to the next one. */
  async ready(options: SessionCallOptions = {}): Promise<Opened> {
    const current = this.#current()
    if (current !== undefined) return current
    if (this.#next === undefined)
      throw this.#ended ?? new ChannelClosedError('The connection is closed')
    this.#waiting++
    try {
      return await untilDeadline(
        this.#next,
        this.#limited(options),
        (when) =>
          new ChannelClosedError(`The connection is lost, and there was no new one ${when}`),
      )
    } finally {
      this.#waiting--
    }
  }

  /** Asks for log messages, in the way of the revision, also after a reconnect. */
  async setLogLevel(level: LogLevel, given: CallOptions = {}): Promise<void> {
    const options = this.#limited(given)
    const { session, details } = this.#current() ?? (await this.ready(options))
    if (details.capabilities['logging'] === undefined)
      throw withCode(
        'NOT_SUPPORTED',
        new Error('The server sends no log messages: it has not declared the capability logging'),
      )
    if (details.revision.methods.clientRequests.includes('logging/setLevel'))
      await this.request('logging/setLevel', { level }, options)
    // For the next connection, whatever its revision.
    else this.#state.requested('logging/setLevel', { level })
    this.#logLevel = level
    session.logLevel = level
  }

  /** What may save a request the next time. */
  get prior(): Prior {
    const { details, httpSse } = this.#known()
    return priorOf(details, httpSse)
  }

  async close(): Promise<void> {
    this.#end(new ChannelClosedError('The connection is closed'))
    this.#closing.abort(this.#ended)
    const next = this.#next
    await this.#former?.peer.close()
    await this.#opened?.session.peer.close()
    const late = await next?.catch(ignore)
    await late?.session.peer.close()
  }

  notified(session: ClientSession, method: string, params: Params): void {
    if (session === this.#opened?.session) {
      // First, so that listeners that ask again get a new result.
      this.cache.notified(method, params)
      if (method === 'notifications/tools/list_changed') this.outputSchemas.clear()
      this.subscriptions.notified(method, params)
    }
    this.listeners.notify(method, params)
  }

  closed(session: ClientSession, error: Error | undefined): void {
    this.#lost(session, error ?? new Error('The server has closed the connection'))
  }

  renewed(session: ClientSession, details: ServerDetails): void {
    if (session !== this.#opened?.session) return
    this.#adopt({ ...this.#opened, details })
    this.listeners.emit('reconnected', { attempts: 1 })
  }

  #current(): Opened | undefined {
    return this.#next === undefined && this.#ended === undefined ? this.#opened : undefined
  }

  #adopt(opened: Opened): void {
    const { session, details } = opened
    const restored = this.#opened !== undefined
    this.#opened = opened
    this.#backoff.opened()
    this.#forget()
    this.cache.enabled = this.#options.cache !== undefined && details.revision.typedResults
    session.logLevel = this.#logLevel
    if (restored) this.#restoreState(opened)
    this.subscriptions.connected(session, details)
    // It may have ended before it became the current one.
    if (session.closed) this.#lost(session, new Error('The server has closed the connection'))
  }

  /** What was received may no longer be true. */
  #forget(): void {
    this.cache.clear()
    this.outputSchemas.clear()
  }

  #restoreState({ session, details }: Opened): void {
    for (const { method, params } of this.#state.requests()) {
      if (!details.revision.methods.clientRequests.includes(method)) continue
      session.request(method, params).catch((error: unknown) =>
        this.report({
          level: 'warning',
          message: `${method} failed on the new connection`,
          error,
        }),
      )
    }
  }

  /** The connection is lost: there will be a new one, or it has ended. */
  #lost(session: ClientSession, error: Error): void {
    if (session !== this.#opened?.session || this.#next !== undefined || this.#ended !== undefined)
      return
    if (!session.closed) session.peer.close().catch(ignore)
    if (this.#options.reconnect === undefined) return this.#end(lostBy(error), error)
    this.#next = markHandled(this.#reconnect(error))
  }

  async #reconnect(lost: Error): Promise<Opened> {
    const { signal } = this.#closing
    let error = lost
    // The events are sent after the pending requests have been rejected.
    await Promise.resolve()
    for (let next = this.#backoff.next(); next !== undefined; next = this.#backoff.next()) {
      const { attempt, delay } = next
      this.listeners.emit('reconnecting', { attempt, delay, error })
      try {
        await wait(delay, signal)
        this.#isReconnecting = true
        const opened = await this.#replace(await this.#options.open(this, signal))
        this.listeners.emit('reconnected', { attempts: attempt })
        return opened
      } catch (failed) {
        if (signal.aborted) throw this.#ended ?? failed
        error = abortError(failed)
      } finally {
        this.#isReconnecting = false
      }
    }
    const gaveUp = new ChannelClosedError(`The connection is lost: ${error.message}`, {
      cause: error,
    })
    this.#end(gaveUp, error)
    throw gaveUp
  }

  /** No more connections. */
  #end(ended: ChannelClosedError, error?: Error): void {
    if (this.#ended !== undefined) return
    this.#ended = ended
    this.#gone.abort(ended)
    this.subscriptions.close()
    this.listeners.emit('closed', error === undefined ? {} : { error })
  }
}

function lostBy(error: Error): ChannelClosedError {
  return new ChannelClosedError(`The connection broke: ${error.message}`, { cause: error })
}

/** Whether the error suggests that the server speaks another protocol revision; the request was not executed. */
function isRefusal(error: unknown): boolean {
  if (error instanceof RpcError) return error.code === METHOD_NOT_FOUND || isModern(error)
  return isLegacyFailure(error) && error.executed === 'no'
}
