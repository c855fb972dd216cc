import type { Principal } from '../../jsonrpc/channel.js'
import { RpcError } from '../../jsonrpc/errors.js'
import type { LogEntry } from '../../jsonrpc/log-entry.js'
import { type Id, type Message, type Request, type UnreadableId } from '../../jsonrpc/message.js'
import { newErrorReference } from '../../jsonrpc/reference.js'
import { truncate } from '../../jsonrpc/truncate.js'
import type { MethodDescriptor } from '../../protocol/methods.js'
import { statelessRevision } from '../../protocol/revisions/index.js'
import { hasRequestMeta } from '../../protocol/revisions/request-meta.js'
import type { AdmittedRequest, MessageHandler } from './admitted-request.js'
import type { Authenticator } from './authenticator.js'
import { PREFLIGHT, corsHeaders } from './cors.js'
import {
  type GuardOptions,
  Guards,
  checkAccept,
  checkBody,
  concernsCalls,
  readMessage,
  tooLarge,
} from './guards.js'
import type { HeaderList, HttpContext, UnreadBody } from './http-context.js'
import {
  HttpErrorResponse,
  JSON_TYPE,
  methodNotAllowed,
  refuse,
  shuttingDown,
  unavailable,
} from './http-error-response.js'
import { OpenResponses, type OpenResponsesOptions } from './open-responses.js'
import { SessionRouter, type SessionRouterOptions } from './session-router.js'
import { StatelessExchange } from './stateless-exchange.js'
import {
  type RepeatedParameter,
  checkParameterHeaders,
  checkRequestMeta,
  checkRoutingHeaders,
} from './stateless-request.js'
import { type LegacySsePaths, LegacySseRouter } from './legacy-sse/router.js'

export interface EndpointOptions extends GuardOptions, SessionRouterOptions, OpenResponsesOptions {
  /** The path of the endpoint; every path if it is undefined. */
  path?: string | undefined
  /** The paths of HTTP+SSE, the transport before Streamable HTTP, if it is served. */
  legacySse?: LegacySsePaths | undefined
  /** The parameters of a tool that are repeated in headers, as far as the caller may see the tool. */
  headerParameters(
    tool: string,
    request: Request,
    principal: Principal | undefined,
  ): readonly RepeatedParameter[] | Promise<readonly RepeatedParameter[]>
  authenticator?: Authenticator | undefined
  /** Called when the endpoint is closed. */
  closed?(): Promise<void> | undefined
  maxDepth?: number | undefined
  /** Maximum bytes of a request body. */
  maxBodyBytes: number
}

/** The MCP endpoint: every revision on one URL, independent of the runtime. */
export class Endpoint {
  readonly #options: EndpointOptions
  readonly #guards: Guards
  readonly #openResponses: OpenResponses
  readonly #sessionRouter: SessionRouter
  readonly #legacySse: LegacySseRouter | undefined
  readonly #stateless = new Set<StatelessExchange>()
  #closing = false

  constructor(options: EndpointOptions) {
    this.#options = options
    this.#guards = new Guards(options)
    this.#openResponses = new OpenResponses(options, (error) =>
      options.report({ level: 'error', message: 'A keep-alive could not be sent', error }),
    )
    const responder = {
      refuse: this.#refuse,
      fail: this.#fail,
      full: this.#full,
      challenge: this.#challenge,
    }
    const others = () => this.#legacySse?.size ?? 0
    this.#sessionRouter = new SessionRouter(options, responder, this.#openResponses, others)
    if (options.legacySse !== undefined)
      this.#legacySse = new LegacySseRouter(options.legacySse, {
        ...options,
        openResponses: this.#openResponses,
        responder,
        makeRoom: (owner, bytes) => this.#sessionRouter.makeRoom(owner, bytes),
        readMessage: this.#read,
      })
  }

  /** Number of sessions in this process. */
  get sessions(): number {
    return this.#sessionRouter.size + (this.#legacySse?.size ?? 0)
  }

  /** Whether other processes pass requests on to this one. */
  get isShared(): boolean {
    return this.#sessionRouter.isShared
  }

  /** Number of open responses: calls in progress, and streams. */
  get openResponses(): number {
    return this.#openResponses.count
  }

  /** Whether a path is one of the endpoint or of its protected resource metadata. */
  serves(path: string): boolean {
    return this.#isOwn(path) || this.#options.authenticator?.metadata(path) !== undefined
  }

  #isOwn(path: string): boolean {
    const { path: own = path } = this.#options
    return path === own || path === `${own}/` || this.#legacySse?.serves(path) === true
  }

  /** Writes to the log. */
  report(entry: LogEntry): void {
    this.#options.report(entry)
  }

  /** Serves one HTTP request. Never throws: every error becomes a response. */
  handle(context: HttpContext): void {
    try {
      this.#handle(context)
    } catch (error) {
      this.#fail(context, error)
    }
  }

  /** Begins to share sessions with other processes, if the session store is made for that. */
  start(listening: { scheme: string; port: number } | undefined): void {
    this.#sessionRouter.start(listening)
  }

  /** Refuses new requests, and waits for those in progress: answers to questions and cancellations are still accepted. */
  async close(deadline: number): Promise<void> {
    this.#closing = true
    const stateless = [...this.#stateless].map((exchange) => exchange.drain(deadline))
    await Promise.all([
      ...stateless,
      this.#sessionRouter.close(deadline),
      this.#legacySse?.close(deadline),
    ])
    await this.#options.closed?.()
  }

  /** Responds with an error, and logs it: a client may not show why. */
  readonly #refuse = (
    context: HttpContext,
    httpError: HttpErrorResponse,
    id?: Id,
    unreadable?: UnreadableId,
  ): void => {
    const { status, error } = httpError
    this.#options.report({
      level: status === 503 ? 'warning' : 'debug',
      message: `${truncate(context.method)} ${truncate(context.path)} was refused with status ${status}: ${error.message}`,
    })
    refuse(context, httpError, id, unreadable)
  }

  #refuseClosing(
    { context, headers }: Pick<AdmittedRequest, 'context' | 'headers'>,
    id?: Id,
  ): void {
    this.#refuse(context, shuttingDown(context, headers), id)
  }

  readonly #fail = (context: HttpContext, error: unknown): void => {
    if (error instanceof HttpErrorResponse) return this.#refuse(context, error)
    const id = newErrorReference()
    this.#options.report({
      level: 'error',
      message: `An HTTP request failed (reference ${id})`,
      error,
    })
    refuse(context, new HttpErrorResponse(500, `Internal error (reference ${id})`))
  }

  #handle(context: HttpContext): void {
    const error = this.#guards.check(context)
    if (error !== undefined) return this.#refuse(context, error)
    const { authenticator } = this.#options
    const origin = this.#guards.allowedOrigin(context)
    const headers = origin === undefined ? [] : corsHeaders(origin)
    // Before the path: clients send MCP-Protocol-Version with requests for the metadata too.
    if (context.method === 'OPTIONS' && origin !== undefined)
      return context.respond(204, [...headers, ...PREFLIGHT])
    if (!this.#isOwn(context.path)) return this.#handleOtherPath(context, headers)
    const metadata = authenticator?.metadata(context.path)
    if (metadata !== undefined) return context.respond(200, [...JSON_TYPE, ...headers], metadata)
    // A POST may have an answer for a call in progress: that is known when its body is read.
    if (this.#closing && context.method !== 'POST') return this.#refuseClosing({ context, headers })
    if (authenticator === undefined)
      return this.#handleAdmitted({ context, principal: undefined, headers })
    const authenticated = authenticator.authenticate(context)
    if (!(authenticated instanceof Promise))
      return this.#handleAuthenticated(context, authenticated, headers)
    authenticated
      .then((result) => this.#handleAuthenticated(context, result, headers))
      .catch((reason: unknown) => this.#fail(context, reason))
  }

  /** Serves the protected resource metadata and `/healthz`. */
  #handleOtherPath(context: HttpContext, headers: HeaderList): void {
    const isRead = context.method === 'GET' || context.method === 'HEAD'
    const metadata = this.#options.authenticator?.metadata(context.path)
    if (metadata !== undefined && isRead)
      return context.respond(200, [...JSON_TYPE, ...headers], metadata)
    if (context.path === '/healthz' && isRead)
      return this.#closing
        ? context.respond(503, JSON_TYPE, '{"status":"closing"}')
        : context.respond(200, JSON_TYPE, '{"status":"ok"}')
    const problem = `Not Found: the MCP endpoint is ${this.#options.path ?? ''}`
    this.#refuse(context, new HttpErrorResponse(404, problem, headers))
  }

  #handleAuthenticated(
    context: HttpContext,
    authenticated: Principal | HttpErrorResponse,
    headers: HeaderList,
  ): void {
    if (authenticated instanceof HttpErrorResponse)
      return this.#refuse(context, authenticated.with(headers))
    this.#handleAdmitted({ context, principal: authenticated, headers })
  }

  #handleAdmitted(request: AdmittedRequest): void {
    const { context, headers } = request
    if (this.#legacySse?.serves(context.path) === true) return this.#legacySse.handle(request)
    switch (context.method) {
      case 'POST':
        return this.#post(request)
      case 'GET':
      case 'DELETE':
        return context.header('mcp-session-id') === undefined
          ? this.#refuse(context, methodNotAllowed('POST', headers, NEED_SESSION_ID))
          : this.#sessionRouter.getOrDelete(request)
      default:
        this.#refuse(context, methodNotAllowed('POST, GET, DELETE', headers, NEED_SESSION_ID))
    }
  }

  #post(request: AdmittedRequest): void {
    const error = checkAccept(request.context)
    if (error !== undefined) return this.#refuse(request.context, error.with(request.headers))
    this.#read(request, this.#route)
  }

  /** Reads and parses the body of a POST, or refuses it. */
  readonly #read = (request: AdmittedRequest, next: MessageHandler): void => {
    const { context, principal, headers } = request
    const { maxBodyBytes, maxDepth, budgets } = this.#options
    const error = checkBody(context, maxBodyBytes)
    if (error !== undefined && this.#closing) return this.#refuseClosing(request)
    if (error !== undefined) return this.#refuse(context, error.with(headers))
    context.read(maxBodyBytes, budgets.of(principal?.id).incomplete, (body) => {
      try {
        if ('problem' in body) return this.#refuseBody(request, body)
        const { text, message } = readMessage(body, maxDepth)
        if (this.#closing && !concernsCalls(message)) return this.#refuseClosing(request)
        next(request, text, message)
      } catch (failure) {
        this.#fail(context, failure)
      }
    })
  }

  #refuseBody(request: AdmittedRequest, { problem }: UnreadBody): void {
    if (this.#closing) return this.#refuseClosing(request)
    const { context, headers } = request
    switch (problem) {
      case 'too long':
        return this.#refuse(context, tooLarge(this.#options.maxBodyBytes, headers))
      case 'too much':
        return this.#refuse(context, unavailable('too many request bodies in transfer', headers))
      case 'too deep':
        return this.#refuse(
          context,
          new HttpErrorResponse(400, 'Invalid Request: the message is nested too deeply', headers),
        )
    }
  }

  /** Stateless requests are recognized by the version header or `_meta`; all others belong to sessions. */
  readonly #route: MessageHandler = (request, text, message) => {
    const version = request.context.header('mcp-protocol-version')
    if (statelessRevision(version) !== undefined || hasRequestMeta(message))
      return this.#checkStateless(request, message, version)
    this.#sessionRouter.post(request, text, message)
  }

  #checkStateless(request: AdmittedRequest, message: Message, version: string | undefined): void {
    const { context, headers } = request
    // https://modelcontextprotocol.io/specification/2026-07-28/basic/transports/streamable-http#sending-messages
    if (message.kind === 'notification') return context.respond(202, headers)
    if (message.kind === 'invalid')
      return this.#refuse(context, new HttpErrorResponse(400, message.error, headers), message.id)
    if (message.kind !== 'request')
      return this.#refuse(context, new HttpErrorResponse(400, NOT_A_REQUEST, headers))
    const descriptor = this.#options.methods.get(message.method)
    try {
      checkRequestMeta(message, version)
      checkRoutingHeaders(context, message, descriptor)
      const parameters = this.#headerParameters(message, descriptor, request.principal)
      if (parameters instanceof Promise)
        return this.#serveLater(request, message, descriptor, parameters)
      checkParameterHeaders(context, message.params, parameters)
    } catch (error) {
      return this.#refuseMismatch(request, message.id, error)
    }
    this.#serveStateless(request, message, descriptor)
  }

  #headerParameters(
    message: Request,
    descriptor: MethodDescriptor | undefined,
    principal: Principal | undefined,
  ): readonly RepeatedParameter[] | Promise<readonly RepeatedParameter[]> {
    if (descriptor?.paramHeaders !== true || descriptor.nameParam === undefined) return []
    const name = message.params?.[descriptor.nameParam]
    return typeof name === 'string' ? this.#options.headerParameters(name, message, principal) : []
  }

  #serveLater(
    request: AdmittedRequest,
    message: Request,
    descriptor: MethodDescriptor | undefined,
    parameters: Promise<readonly RepeatedParameter[]>,
  ): void {
    parameters
      .then((known) => checkParameterHeaders(request.context, message.params, known))
      .then(
        () => this.#serveStateless(request, message, descriptor),
        (error: unknown) => this.#refuseMismatch(request, message.id, error),
      )
      .catch((error: unknown) => this.#fail(request.context, error))
  }

  #refuseMismatch({ context, headers }: AdmittedRequest, id: Id, error: unknown): void {
    if (!(error instanceof RpcError)) throw error
    this.#refuse(context, new HttpErrorResponse(400, error, headers), id)
  }

  #serveStateless(
    request: AdmittedRequest,
    message: Request,
    descriptor: MethodDescriptor | undefined,
  ): void {
    const { context, principal, headers } = request
    if (this.#closing) return this.#refuseClosing(request, message.id)
    if (this.#full(principal))
      return this.#refuse(context, unavailable('too many open requests', headers), message.id)
    const exchange = new StatelessExchange({
      context,
      principal,
      headers,
      openResponses: this.#openResponses,
      maxUnsentBytes: this.#options.maxUnsentBytes,
      challenge: this.#challenge,
      ended: this.#ended,
      budgets: this.#options.budgets,
      stream: descriptor?.stream === true,
    })
    const session = this.#options.openSession(exchange)
    if (exchange.serve(message, session)) this.#stateless.add(exchange)
  }

  readonly #full = (principal: Principal | undefined): boolean =>
    this.#openResponses.full || this.#options.budgets.of(principal?.id).pending.full

  /** One function for all: a closure per request would retain the request for as long as its stream. */
  readonly #ended = (exchange: StatelessExchange): void => void this.#stateless.delete(exchange)

  readonly #challenge = (error: RpcError): HeaderList =>
    this.#options.authenticator?.challenge(error) ?? []
}

const NEED_SESSION_ID = '; GET and DELETE need the header Mcp-Session-Id'
const NOT_A_REQUEST =
  'Bad Request: in this revision a POST carries one JSON-RPC request or notification'
