import type { Channel, ConnectionFacts, Exchange, Principal } from '../jsonrpc/channel.js'
import { withTimeout } from '../jsonrpc/deadline.js'
import { INTERNAL_ERROR, INVALID_REQUEST, METHOD_NOT_FOUND, RpcError } from '../jsonrpc/errors.js'
import { ignore } from '../jsonrpc/hook.js'
import type { IncomingRequest } from '../jsonrpc/incoming.js'
import {
  type Id,
  type Notification,
  type Params,
  type Request,
  type Send,
  type UnreadableId,
  sendNotification,
} from '../jsonrpc/message.js'
import type { Sending } from '../jsonrpc/outgoing.js'
import { Peer, type PeerOptions } from '../jsonrpc/peer.js'
import type { LogEntry } from '../jsonrpc/log-entry.js'
import { newErrorReference } from '../jsonrpc/reference.js'
import { truncate } from '../jsonrpc/truncate.js'
import { parseCancellation } from '../protocol/cancellation.js'
import { NOT_INITIALIZED } from '../protocol/errors.js'
import {
  type RequestMeta,
  hasRequestMeta,
  readRequestMeta,
  missingRequestMeta,
} from '../protocol/revisions/request-meta.js'
import {
  type Revision,
  handshakeRevisions,
  statelessRevisions,
} from '../protocol/revisions/index.js'
import {
  type Observed,
  type ObservedSession,
  type Observer,
  tracedReport,
} from '../protocol/telemetry.js'
import { type ClientContext, ServedCall } from './call.js'
import { dispatch } from './dispatch.js'
import { SessionClientContext, Handshake, callerOf, offers } from './lifecycle.js'
import { RequestEnvironment } from './request-environment.js'
import { isWanted, sendLog } from './log.js'
import type { LogMessage } from './registry.js'
import type { InternalServer, ServedMethod } from './context.js'
import { Subscriptions } from './subscriptions.js'

/** The most messages in one batch. */
const BATCH_LIMIT = 100
const STATELESS_IN_BATCH = new RpcError(
  INVALID_REQUEST,
  'Invalid Request: the protocol revision of this request has no batches; send it alone',
)

export interface ServerSessionOptions {
  /** Receives log entries of the process. */
  report?: (report: LogEntry) => void
  /** The channel has ended; with an error, it broke. */
  closed?: (error?: Error) => void
  maxDepth?: number
  /** Maximum handlers running at a time; other calls are queued (default 1000). */
  concurrency?: number
  /** Creates the id of a request to the client (default: numbers from 1). */
  newId?: () => string
  /**
   * Whether the caller may be anybody: errors hide internals behind a reference, and the scopes of definitions are
   * required. False only if the caller already has the rights of this process: it started it, or is in it.
   */
  remote: boolean
}

/**
 * One client's session. The revision of each request is decided here: by the
 * request itself if it is stateless, otherwise once, by `initialize`. Both
 * kinds may come over one connection at the same time. Past this point every
 * result is in the newest shape.
 */
export class ServerSession implements PeerOptions, ObservedSession {
  // What its peer needs are members, not closures: over HTTP there is a session for each request.
  readonly respondsToMalformed = true
  readonly report: (report: LogEntry) => void
  readonly maxDepth?: number
  readonly concurrency: number
  readonly newId: (() => string) | undefined
  readonly reference?: () => string
  readonly connection: ConnectionFacts | undefined
  readonly #server: InternalServer
  readonly #remote: boolean
  readonly #handshake: Handshake
  readonly #peer: Peer
  readonly #closed: (error?: Error) => void
  /** The revision of the last stateless request, for errors of a client without a handshake. */
  #stateless: Revision | undefined
  /** Made when it is first needed: most requests over HTTP subscribe to nothing. */
  #subscriptions: Subscriptions | undefined
  #stopLogging: (() => void) | undefined
  draining = false
  #ended = false
  /** The session from `initialize` to its end, with telemetry. */
  #observed: Observed | undefined

  constructor(
    server: InternalServer,
    channel: Channel,
    {
      report = ignore,
      closed = ignore,
      maxDepth,
      concurrency = 1000,
      newId,
      remote,
    }: ServerSessionOptions,
  ) {
    this.connection = channel.connection
    this.report = this.#reporter(server, report)
    if (maxDepth !== undefined) this.maxDepth = maxDepth
    this.concurrency = concurrency
    this.newId = newId
    if (remote) this.reference = newErrorReference
    this.#server = server
    this.#remote = remote
    this.#closed = closed
    this.#handshake = new Handshake(server, this)
    this.#peer = new Peer(channel, this)
  }

  urgent({ method }: Request): boolean {
    return this.#server.methods.get(method)?.urgent === true
  }

  cancelled(requestId: Id, reason: string, _method: string, send: Send): void {
    sendNotification(send, 'notifications/cancelled', { requestId, reason })
  }

  batchLimit(): number {
    return this.#handshake.connection?.revision.batches === true ? BATCH_LIMIT : 0
  }

  unreadableId(): UnreadableId {
    return (this.#handshake.connection?.revision ?? this.#stateless)?.unreadableId ?? 'null'
  }

  onClosed(error?: Error): void {
    this.#ended = true
    this.#observed?.end({ error })
    this.#stopLogging?.()
    this.#subscriptions?.stop()
    this.#closed(error)
  }

  onDrained(): void {
    this.#subscriptions?.drained()
  }

  readonly #getSubscriptions = (): Subscriptions => {
    this.#subscriptions ??= new Subscriptions(this.#server, {
      send: (frame, message) => this.#peer.sendFrame(frame, message),
      congested: () => this.#peer.congested,
      retained: this.#peer.retained,
      report: this.report,
    })
    // A middleware or an extension may have delayed the request.
    if (this.draining) this.#subscriptions.endStreams()
    // Even beyond the end of the connection.
    if (this.#ended) this.#subscriptions.stop()
    return this.#subscriptions
  }

  /** The client may have missed changes: it was disconnected, or another process has served it. */
  missedChanges(): void {
    this.#subscriptions?.missed()
  }

  /**
   * Ignores new requests, waits until every request in progress has its response, and aborts the rest after the deadline.
   * Until the input has ended, responses and notifications of the client are received. After it, the time in which calls
   * are queued until a slow reader reads does not count.
   */
  async drain(deadline: number, inputEnded = false): Promise<void> {
    this.draining = true
    if (inputEnded) this.#peer.endInput()
    this.#subscriptions?.endStreams()
    let extended: boolean
    do {
      const held = this.#peer.holdsCalls
      const late = (await withTimeout(deadline, this.#peer.idle())) === 'late'
      extended = late && inputEnded && (held || this.#peer.holdsCalls)
    } while (extended)
    this.#subscriptions?.closeStreams()
    this.#peer.abandon(
      new RpcError(INTERNAL_ERROR, 'The server is shutting down and has stopped this request'),
    )
  }

  close(): Promise<void> {
    return this.#peer.close()
  }

  onRequest(call: IncomingRequest): unknown {
    const { telemetry } = this.#server
    return telemetry === undefined ? this.#onRequest(call) : this.#observe(telemetry, call)
  }

  #onRequest(call: IncomingRequest): unknown {
    if (call.inBatch && hasRequestMeta(call.request)) throw STATELESS_IN_BATCH
    const meta = readRequestMeta(call.request)
    if (meta !== undefined) return this.#serve(call, this.#contextOf(meta, call))
    const { connection, pending } = this.#handshake
    if (pending !== undefined) return pending.then(() => this.#onRequest(call))
    if (connection === undefined) return this.#beforeInitialize(call)
    this.#handshake.received(call)
    return this.#serve(call, this.#withPrincipal(connection, call.principal))
  }

  #observe(telemetry: Observer, call: IncomingRequest): unknown {
    const observed = telemetry.received(call.request, this, call.http)
    call.observed = observed
    return observed.run(() => this.#onRequest(call))
  }

  capture(): ((start: () => void) => void) | undefined {
    return this.#server.telemetry?.capture(this.report)
  }

  refused(request: Request, { http }: Exchange, error: RpcError): void {
    this.#server.telemetry?.received(request, this, http).end({ error })
  }

  sending(id: Id, method: string, params: unknown): Sending | undefined {
    const sent = { id, method, params: params as Params } // those of MCP are objects
    return this.#server.telemetry?.sending(sent, this)
  }

  get negotiated(): string | undefined {
    return this.#handshake.connection?.revision.id
  }

  hasMethod(method: string): boolean {
    return this.#server.methods.has(method)
  }

  hasTarget(method: string, name: string): boolean {
    const { tools, prompts } = this.#server
    return (method === 'tools/call' ? tools : prompts).has(name)
  }

  onNegotiated(): void {
    const { negotiated: revision, connection } = this
    const session = { kind: 'session', role: 'server', revision, connection } as const
    this.#observed ??= this.#server.telemetry?.begin(session, this.report)
  }

  /** Adds the session and the trace to log entries. */
  #reporter(
    { telemetry }: InternalServer,
    report: (entry: LogEntry) => void,
  ): (entry: LogEntry) => void {
    const traced = telemetry === undefined ? report : tracedReport(telemetry, report)
    const session = this.connection?.session
    if (session === undefined) return traced
    return (entry) => {
      entry.session = session
      traced(entry)
    }
  }

  /** The row of a method, if the revision has it. */
  #methodOf(revision: Revision, name: string): ServedMethod | undefined {
    const { methods, extensions } = this.#server
    const method = methods.get(name)
    const exists =
      method?.extension === undefined
        ? revision.methods.clientRequests.includes(name)
        : extensions?.isIn(method.extension, revision) === true
    return exists ? method : undefined
  }

  #serve(call: IncomingRequest, connection: ClientContext): unknown {
    const { method: name } = call.request
    const method = this.#methodOf(connection.revision, name)
    if (method === undefined || !offers(this.#server, method.capability)) throw unknownMethod(name)
    const context = {
      server: this.#server,
      connection,
      call: new ServedCall(new RequestEnvironment(this.#server, call, connection)),
      incoming: call,
      subscriptions: this.#getSubscriptions,
      setLogLevel: this.#handshake.setLogLevel,
      report: this.report,
      remote: this.#remote,
    }
    return dispatch(method, context)
  }

  /** The token of a request may grant more, or less, than that of `initialize`. */
  #withPrincipal(connection: ClientContext, principal: Principal | undefined): ClientContext {
    const { revision, caller } = connection
    if (principal === undefined || principal === caller.principal) return connection
    return new SessionClientContext(
      revision,
      { ...caller, principal },
      () => connection.logLevel,
      this.report,
    )
  }

  /** A stateless request is served by what its `_meta` says, whatever came before. */
  #contextOf(meta: RequestMeta, { principal, request }: IncomingRequest): ClientContext {
    const { revision, logLevel } = meta
    this.#stateless = revision
    return new SessionClientContext(
      revision,
      callerOf(meta, principal, request.frame.length),
      () => logLevel,
      this.report,
    )
  }

  #beforeInitialize(call: IncomingRequest): object {
    const { method } = call.request
    if (method === 'initialize') return this.#handshake.initialize(call)
    if (method === 'ping') return {}
    if (handshakeRevisions.some((revision) => this.#methodOf(revision, method) !== undefined))
      throw new RpcError(
        NOT_INITIALIZED,
        `Server not initialized: send "initialize" before "${method}"`,
      )
    throw statelessRevisions.some((revision) => this.#methodOf(revision, method) !== undefined)
      ? missingRequestMeta(method)
      : unknownMethod(method)
  }

  /** Sends a log message that belongs to no call; drops it while the client is not reading. */
  sendLog(message: LogMessage): void {
    if (!this.#peer.congested && isWanted(message.level, this.#handshake.logLevel))
      sendLog((frame, sent) => this.#peer.sendFrame(frame, sent), message)
  }

  /** The client is ready for what belongs to no call of its own. */
  #initialized(): void {
    if (this.#ended || !this.#handshake.confirm()) return
    void this.#getSubscriptions().start()
    this.#stopLogging ??= this.#server.changes.listen((change) => {
      if ('log' in change) this.sendLog(change.log)
    })
  }

  onNotification(notification: Notification): void {
    const { telemetry } = this.#server
    if (telemetry === undefined) return this.#onNotification(notification)
    const observed = telemetry.received(notification, this)
    try {
      observed.run(() => this.#onNotification(notification))
    } finally {
      observed.end({})
    }
  }

  #onNotification(notification: Notification): void {
    const { method } = notification
    switch (method) {
      case 'notifications/initialized': {
        const { pending } = this.#handshake
        if (pending === undefined) this.#initialized()
        else void pending.then(() => this.#initialized())
        return
      }
      case 'notifications/cancelled': {
        const call = parseCancellation(notification)
        // https://modelcontextprotocol.io/specification/2025-11-25/basic/utilities/cancellation#behavior-requirements
        if (call === undefined || this.#handshake.isPending(call.id)) return
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

function unknownMethod(method: string): RpcError {
  return new RpcError(METHOD_NOT_FOUND, `Method not found: ${truncate(method)}`)
}
