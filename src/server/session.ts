import type { Channel, Principal } from '../jsonrpc/channel.js'
import { INTERNAL_ERROR, INVALID_REQUEST, METHOD_NOT_FOUND, RpcError } from '../jsonrpc/errors.js'
import { callHook } from '../jsonrpc/hook.js'
import type { Incoming } from '../jsonrpc/incoming.js'
import {
  type Id,
  type Notification,
  type Request,
  type Send,
  type UnreadableId,
  isThenable,
  sendNotification,
} from '../jsonrpc/message.js'
import { Peer, type PeerOptions } from '../jsonrpc/peer.js'
import type { LogEntry } from '../jsonrpc/log-entry.js'
import { truncate } from '../jsonrpc/truncate.js'
import { cancelled } from '../protocol/cancellation.js'
import { NOT_INITIALIZED } from '../protocol/errors.js'
import type { LogLevel } from '../protocol/model.js'
import {
  type RequestMeta,
  readRequestMeta,
  missingRequestMeta,
} from '../protocol/revisions/request-meta.js'
import {
  type Revision,
  handshakeRevisions,
  statelessRevisions,
} from '../protocol/revisions/index.js'
import { type Caller, type Connection, ServedCall } from './call.js'
import { CallerContext, callerOf } from './caller-context.js'
import { dispatch } from './dispatch.js'
import { isWanted, makeLog, logEntryOf, sendLog } from './log.js'
import { through } from './middleware.js'
import { open } from './opening.js'
import { reference } from './reference.js'
import type { LogMessage } from './registry.js'
import type { InternalServer } from './context.js'
import { askContextOf } from './ask-context.js'
import { Subscriptions } from './subscriptions.js'

/** The most messages in one batch. */
const BATCH_LIMIT = 100

export interface ServerSessionOptions {
  /** Takes what concerns no caller: for the log. */
  report?: (report: LogEntry) => void
  /** The channel has ended; with an error, it broke. */
  closed?: (error?: Error) => void
  maxDepth?: number
  /** Whoever calls is told of failures by a reference into the log, and needs the scopes that definitions ask for. */
  remote?: boolean
}

const unheard = () => {}

const has = ({ methods }: Revision, method: string) => methods.clientRequests.includes(method)

/**
 * One client's conversation: the door. The revision is decided here: by the
 * request itself where it describes itself, otherwise once, by `initialize`.
 * Both kinds may come over one connection at the same time. Behind the door
 * everybody speaks the newest shapes.
 */
export class ServerSession implements PeerOptions {
  // What its peer asks of it are members, not closures: over HTTP there is a session for each request.
  readonly answersGarbage = true
  readonly report: (report: LogEntry) => void
  readonly maxDepth?: number
  readonly reference?: () => string
  readonly #server: InternalServer
  readonly #remote: boolean
  readonly #peer: Peer
  readonly #ended: (error?: Error) => void
  /** What `initialize` has agreed on. */
  #connection: Connection | undefined
  /** What the last request said of itself: how a client reads that has not shaken hands. */
  #described: Revision | undefined
  #initialized = false
  /** While a middleware takes its time for `initialize`: what came after it waits. */
  #opening: Promise<void> | undefined
  #openingId: Id | undefined
  /** Whether `onInitialized` has been called. */
  #greeted = false
  #logLevel: LogLevel
  /** Nothing is logged to a client that has not said that it is ready. (A closure of `#initialize` would hold the whole request.) */
  readonly #sessionLevel = () => (this.#initialized ? this.#logLevel : undefined)
  readonly #setLogLevel = (level: LogLevel) => void (this.#logLevel = level)
  /** Made when something is watched: most requests over HTTP watch nothing. */
  #watching: Subscriptions | undefined
  #warned = false
  #deaf: (() => void) | undefined

  constructor(
    server: InternalServer,
    channel: Channel,
    { report = unheard, closed = unheard, maxDepth, remote = false }: ServerSessionOptions = {},
  ) {
    this.report = report
    if (maxDepth !== undefined) this.maxDepth = maxDepth
    if (remote) this.reference = reference
    this.#server = server
    this.#remote = remote
    this.#ended = closed
    this.#logLevel = server.logLevel
    this.#peer = new Peer(channel, this)
  }

  /** Hosts end a server that does not answer this, however busy it is. */
  urgent({ method }: Request): boolean {
    return this.#server.methods.get(method)?.urgent === true
  }

  cancelled(requestId: Id, reason: string, _method: string, send: Send): void {
    sendNotification(send, 'notifications/cancelled', { requestId, reason })
  }

  batchLimit(): number {
    return this.#connection?.revision.batches === true ? BATCH_LIMIT : 0
  }

  unreadableId(): UnreadableId {
    return (this.#connection?.revision ?? this.#described)?.unreadableId ?? 'null'
  }

  closed(error?: Error): void {
    this.#deaf?.()
    this.#watching?.stop()
    this.#ended(error)
  }

  readonly #watch = (): Subscriptions => {
    this.#watching ??= new Subscriptions(
      this.#server,
      (frame, message) => this.#peer.sendFrame(frame, message),
      () => this.#peer.congested,
      this.#peer.retained,
    )
    return this.#watching
  }

  /** When nothing more is received: waits until everything is answered; after the deadline the rest is given up. */
  async drain(deadline: number): Promise<void> {
    this.#peer.stopListening()
    this.#watching?.endStreams()
    let timer: ReturnType<typeof setTimeout> | undefined
    const late = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, deadline)
    })
    await Promise.race([this.#peer.idle(), late])
    clearTimeout(timer)
    this.#watching?.closeStreams()
    this.#peer.abandon(
      new RpcError(INTERNAL_ERROR, 'The server is shutting down and has stopped this request'),
    )
  }

  close(): Promise<void> {
    return this.#peer.close()
  }

  request(call: Incoming): unknown {
    const { method, params } = call.request
    const description = readRequestMeta(params)
    if (description !== undefined) return this.#serve(call, this.#stateless(description, call))
    if (this.#opening !== undefined) return this.#opening.then(() => this.request(call))
    if (this.#connection === undefined) return this.#before(call)
    if (method === 'initialize')
      throw new RpcError(INVALID_REQUEST, 'Invalid Request: this connection is initialized already')
    if (!this.#initialized) this.#warnEarly(call)
    else if (!this.#greeted && !call.inBatch) call.afterAnswer(() => this.#greet())
    return this.#serve(call, this.#seenNow(this.#connection, call.principal))
  }

  #serve(call: Incoming, connection: Connection): unknown {
    const { method } = call.request
    if (!has(connection.revision, method)) throw unknown(method)
    const context = {
      server: this.#server,
      connection,
      call: this.#served(call, connection),
      incoming: call,
      subscriptions: this.#watch,
      setLogLevel: this.#setLogLevel,
      report: this.report,
      remote: this.#remote,
    }
    const result = dispatch(method, context)
    if (result === undefined) throw unknown(method)
    return result
  }

  /** The same caller may have got a token that grants more, or less, since it has shaken hands. */
  #seenNow(connection: Connection, principal: Principal | undefined): Connection {
    const { revision, caller } = connection
    if (principal === undefined || principal === caller.principal) return connection
    return new CallerContext(
      revision,
      { ...caller, principal },
      () => connection.logLevel,
      this.report,
    )
  }

  #served(call: Incoming, connection: Connection): ServedCall {
    return new ServedCall(call, connection, (asking) =>
      askContextOf(this.#server, call, connection, asking),
    )
  }

  /** A request that describes itself is served by what it says, whatever came before. */
  #stateless(description: RequestMeta, { principal, request }: Incoming): Connection {
    const { revision, logLevel } = description
    this.#described = revision
    return new CallerContext(
      revision,
      callerOf(description, principal, request.frame.length),
      () => logLevel,
      this.report,
    )
  }

  /** Before `initialize` there is no revision to speak. */
  #before(call: Incoming): object {
    const { method, params = {} } = call.request
    if (method === 'initialize') return this.#initialize(call, params)
    if (method === 'ping') return {}
    if (handshakeRevisions.some((revision) => has(revision, method)))
      throw new RpcError(
        NOT_INITIALIZED,
        `Server not initialized: send "initialize" before "${method}"`,
      )
    throw statelessRevisions.some((revision) => has(revision, method))
      ? missingRequestMeta(method)
      : unknown(method)
  }

  #initialize(call: Incoming, params: Readonly<Record<string, unknown>>): object {
    const { revision, caller, result } = open(this.#server, params, call.principal)
    const connection = new CallerContext(revision, caller, this.#sessionLevel, this.report)
    const begin = () => this.#begin(call, connection, result)
    const { middleware } = this.#server
    if (middleware.length === 0) return begin()
    const opened = through(middleware, this.#served(call, connection), begin)
    if (isThenable(opened)) {
      this.#openingId = call.id
      this.#opening = this.#settled(opened)
    }
    return opened
  }

  async #settled(opened: unknown): Promise<void> {
    await Promise.allSettled([opened])
    this.#opening = undefined
    this.#openingId = undefined
  }

  #begin(call: Incoming, connection: Connection, result: object): object {
    const { revision, caller } = connection
    this.#connection = connection
    this.report({
      level: 'info',
      message: `Initialized by ${nameOf(caller)}, protocol ${revision.id}`,
      id: call.id,
    })
    return result
  }

  /** Behind an answer, so that a client which waits for that line is not sent another one first. */
  #greet(): void {
    if (this.#greeted || this.#connection === undefined) return
    this.#greeted = true
    const log = makeLog((message) => {
      this.report(logEntryOf(message))
      this.#sendLog(message)
    })
    const { caller } = this.#connection
    callHook(
      () => this.#server.onInitialized?.({ caller, log }),
      (error) => this.report({ level: 'error', message: 'onInitialized failed', error }),
    )
  }

  #sendLog(message: LogMessage): void {
    // Who does not read is not buried in messages.
    if (this.#initialized && !this.#peer.congested && isWanted(message.level, this.#logLevel))
      sendLog((frame, sent) => this.#peer.sendFrame(frame, sent), message)
  }

  #warnEarly(call: Incoming): void {
    if (this.#warned) return
    this.#warned = true
    this.report({
      level: 'warning',
      message: `${truncate(call.request.method)} came before notifications/initialized; it is served all the same`,
      id: call.id,
    })
  }

  /** The client is ready to hear what concerns no call of its own. */
  #listen(): void {
    this.#watch().begin()
    this.#deaf ??= this.#server.changes.listen((change) => {
      if ('log' in change) this.#sendLog(change.log)
    })
  }

  notification(notification: Notification): void {
    const { method } = notification
    switch (method) {
      case 'notifications/initialized':
        if (this.#opening !== undefined)
          return void this.#opening.then(() => this.notification(notification))
        this.#initialized = this.#connection !== undefined
        if (this.#initialized) this.#listen()
        return
      case 'notifications/cancelled': {
        const call = cancelled(notification)
        // https://modelcontextprotocol.io/specification/2025-11-25/basic/utilities/cancellation#behavior-requirements
        if (call === undefined || call.id === this.#openingId) return
        this.#peer.cancel(call.id, call.reason)
        this.report({
          level: 'debug',
          message: `Cancelled by the client: ${truncate(call.reason ?? 'no reason given')}`,
          id: call.id,
        })
        return
      }
      default:
        this.report({ level: 'debug', message: `${truncate(method)} was ignored` })
    }
  }
}

/** As the client calls itself: it may have given anything. */
function nameOf({ info }: Caller): string {
  const name: unknown = info?.name
  return typeof name === 'string' ? truncate(name) : 'an unnamed client'
}

function unknown(method: string): RpcError {
  return new RpcError(METHOD_NOT_FOUND, `Method not found: ${truncate(method)}`)
}
