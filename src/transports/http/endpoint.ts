import type { Principal } from '../../jsonrpc/channel.js'
import { RpcError } from '../../jsonrpc/errors.js'
import type { Id, Message, Request, UnreadableId } from '../../jsonrpc/message.js'
import { reference } from '../../jsonrpc/reference.js'
import { truncate } from '../../jsonrpc/truncate.js'
import type { AdmittedRequest } from './admitted-request.js'
import { readBody } from './body.js'
import { Budget } from '../../jsonrpc/budget.js'
import { PREFLIGHT, corsHeaders } from './cors.js'
import { StatelessExchange } from './stateless-exchange.js'
import { checkRequestMeta, describes, isStatelessVersion } from './detect-opening.js'
import type { Authenticator } from './authenticator.js'
import { type GuardOptions, Guards, checkPost, tooLarge } from './guards.js'
import { type SessionRouterOptions, SessionRouter } from './session-router.js'
import { type HeaderParameter, checkRoutingHeaders } from './routing-headers.js'
import { KeepAlive } from './keep-alive.js'
import { JSON_TYPE, HttpError, notAllowed, refuse, unavailable } from './http-error.js'
import type { HeaderList, HttpContext } from './http-context.js'

export interface EndpointOptions extends GuardOptions, SessionRouterOptions {
  /** Where the endpoint is; without it, everywhere. */
  path?: string | undefined
  /** The parameters of a tool that are mirrored in headers, as far as the sender of a request may know of it. */
  headerParameters(
    tool: string,
    request: Request,
    principal: Principal | undefined,
  ): readonly HeaderParameter[] | Promise<readonly HeaderParameter[]>
  gate?: Authenticator | undefined
  /** Called when the endpoint is closed. */
  closed?(): Promise<void> | undefined
  maxDepth?: number | undefined
  /** The longest body, in bytes. */
  maxBody: number
  /** How many bytes of bodies may be held that have not come to their end. */
  maxBodies: number
  /** How many answers may be open at once. */
  maxOpen: number
  /** Milliseconds of silence after which an open answer shows that it lives. */
  keepAlive: number
}

/** The MCP endpoint: every revision on one URL, whatever runtime brings the requests. */
export class Endpoint {
  readonly #options: EndpointOptions
  readonly #guards: Guards
  readonly #pulse: KeepAlive
  readonly #handshakes: SessionRouter
  readonly #described = new Set<StatelessExchange>()
  readonly #bodies: Budget
  #closing = false

  constructor(options: EndpointOptions) {
    this.#options = options
    this.#guards = new Guards(options)
    this.#pulse = new KeepAlive(options.keepAlive)
    const desk = {
      refuse: this.#refuse,
      fail: this.#fail,
      full: this.#full,
      challenge: this.#challenge,
    }
    this.#handshakes = new SessionRouter(options, desk, this.#pulse)
    this.#bodies = new Budget(options.maxBodies)
  }

  get sessions(): number {
    return this.#handshakes.size
  }

  /** How many answers are open: calls under way, and streams. */
  get open(): number {
    return this.#pulse.size
  }

  /** Whether a path is the endpoint's, or that of a document about it. */
  serves(path: string): boolean {
    const { path: own = path, gate } = this.#options
    return path === own || path === `${own}/` || gate?.document(path) !== undefined
  }

  /** Serves one HTTP request. Whatever happens, there is an answer. */
  handle(visit: HttpContext): void {
    try {
      this.#enter(visit)
    } catch (error) {
      this.#fail(visit, error)
    }
  }

  /** Takes no new work, and waits a while for what is under way. */
  async close(deadline: number): Promise<void> {
    this.#closing = true
    const described = [...this.#described].map((each) => each.drain(deadline))
    await Promise.all([...described, this.#handshakes.close(deadline)])
    await this.#options.closed?.()
  }

  /** Refuses, and says so in the log: a client may not show why. */
  readonly #refuse = (
    visit: HttpContext,
    refusal: HttpError,
    id?: Id,
    unreadable?: UnreadableId,
  ): void => {
    const { status, error } = refusal
    const level = status === 503 ? 'warning' : 'debug'
    this.#options.report({
      level,
      message: `${truncate(visit.method)} ${truncate(visit.path)} was refused with status ${status}: ${error.message}`,
    })
    refuse(visit, refusal, id, unreadable)
  }

  readonly #fail = (visit: HttpContext, error: unknown): void => {
    const id = reference()
    this.#options.report({
      level: 'error',
      message: `An HTTP request failed (reference ${id})`,
      error,
    })
    refuse(visit, new HttpError(500, `Internal error (reference ${id})`))
  }

  #enter(visit: HttpContext): void {
    const refusal = this.#guards.check(visit)
    if (refusal !== undefined) return this.#refuse(visit, refusal)
    const { path = visit.path, gate } = this.#options
    const origin = this.#guards.listed(visit)
    const headers = origin === undefined ? [] : corsHeaders(origin)
    const { method } = visit
    // Also for the document: clients send the version header with what they ask for.
    if (method === 'OPTIONS' && origin !== undefined)
      return visit.answer(204, [...headers, ...PREFLIGHT])
    if (visit.path !== path && visit.path !== `${path}/`) return this.#elsewhere(visit, headers)
    const document = gate?.document(visit.path)
    if (document !== undefined) return visit.answer(200, [...JSON_TYPE, ...headers], document)
    if (this.#closing)
      return this.#refuse(visit, unavailable('the server is shutting down', headers))
    if (gate === undefined) return this.#admitted({ visit, principal: undefined, headers })
    const admitted = gate.admit(visit)
    if (!(admitted instanceof Promise)) return this.#decided(visit, admitted, headers)
    admitted
      .then((decided) => this.#decided(visit, decided, headers))
      .catch((error: unknown) => this.#fail(visit, error))
  }

  /** What is there beside the endpoint. */
  #elsewhere(visit: HttpContext, headers: HeaderList): void {
    const read = visit.method === 'GET' || visit.method === 'HEAD'
    const document = this.#options.gate?.document(visit.path)
    if (document !== undefined && read)
      return visit.answer(200, [...JSON_TYPE, ...headers], document)
    if (visit.path === '/healthz' && read)
      return visit.answer(
        this.#closing ? 503 : 200,
        JSON_TYPE,
        this.#closing ? '{"status":"closing"}' : '{"status":"ok"}',
      )
    this.#refuse(
      visit,
      new HttpError(404, `Not Found: the MCP endpoint is ${this.#options.path ?? ''}`, headers),
    )
  }

  #decided(visit: HttpContext, admitted: Principal | HttpError, headers: HeaderList): void {
    if (!(admitted instanceof HttpError))
      return this.#admitted({ visit, principal: admitted, headers })
    this.#refuse(
      visit,
      new HttpError(admitted.status, admitted.error, [...admitted.headers, ...headers]),
    )
  }

  #admitted(arrival: AdmittedRequest): void {
    const { visit, headers } = arrival
    switch (visit.method) {
      case 'POST':
        return this.#post(arrival)
      case 'GET':
      case 'DELETE':
        return visit.header('mcp-session-id') === undefined
          ? this.#refuse(visit, notAllowed('POST', headers))
          : this.#handshakes.visit(arrival)
      default:
        this.#refuse(visit, notAllowed('POST, GET, DELETE', headers))
    }
  }

  #post(arrival: AdmittedRequest): void {
    const { visit, headers } = arrival
    const { maxBody, maxDepth } = this.#options
    const refusal = checkPost(visit, maxBody)
    if (refusal !== undefined)
      return this.#refuse(
        visit,
        new HttpError(refusal.status, refusal.error, [...refusal.headers, ...headers]),
      )
    visit.read(maxBody, this.#bodies, (body) => {
      try {
        if (body === 'too long') return this.#refuse(visit, tooLarge(maxBody, headers))
        if (body === 'too much')
          return this.#refuse(visit, unavailable('too much is being read', headers))
        if (body === 'too deep')
          return this.#refuse(
            visit,
            new HttpError(400, 'Invalid Request: the message is nested too deeply', headers),
          )
        const { text, message } = readBody(body, maxDepth)
        this.#route(arrival, text, message)
      } catch (error) {
        this.#fail(visit, error)
      }
    })
  }

  /** The era is decided here: by what a message says of itself, otherwise by its session. */
  #route(arrival: AdmittedRequest, text: string, message: Message): void {
    const { visit } = arrival
    const version = visit.header('mcp-protocol-version')
    if (isStatelessVersion(version) || describes(message))
      return this.#serveDescribed(arrival, message, version)
    this.#handshakes.post(arrival, text, message)
  }

  #serveDescribed(arrival: AdmittedRequest, message: Message, version: string | undefined): void {
    const { visit, principal, headers } = arrival
    // https://modelcontextprotocol.io/specification/2026-07-28/basic/transports/streamable-http#sending-messages
    if (message.kind === 'notification') return visit.answer(202, headers)
    if (message.kind === 'invalid')
      return this.#refuse(visit, new HttpError(400, message.error, headers), message.id)
    if (message.kind !== 'request')
      return this.#refuse(visit, new HttpError(400, `Bad Request: ${NOT_ONE}`, headers))
    const wrong = (error: unknown) => {
      if (!(error instanceof RpcError)) throw error
      this.#refuse(visit, new HttpError(400, error, headers), message.id)
    }
    let checked: void | Promise<void>
    try {
      checkRequestMeta(message, version)
      const facts = this.#options.methodFacts(message.method)
      checked = checkRoutingHeaders(visit, message, facts, (tool) =>
        this.#options.headerParameters(tool, message, principal),
      )
    } catch (error) {
      return wrong(error)
    }
    if (checked === undefined) return this.#serveChecked(arrival, message)
    checked
      .then(() => this.#serveChecked(arrival, message), wrong)
      .catch((error: unknown) => this.#fail(visit, error))
  }

  #serveChecked({ visit, principal, headers }: AdmittedRequest, message: Request): void {
    if (this.#full(principal))
      return this.#refuse(visit, unavailable('too many requests are open', headers), message.id)
    const described = new StatelessExchange({
      visit,
      principal,
      headers,
      pulse: this.#pulse,
      maxWaiting: this.#options.maxWaiting,
      challenge: this.#challenge,
      ended: this.#ended,
      budgets: this.#options.budgets,
      stream: this.#options.methodFacts(message.method)?.stream === true,
    })
    if (described.serve(message, this.#options.open)) this.#described.add(described)
  }

  readonly #full = (principal: Principal | undefined): boolean =>
    this.#pulse.size >= this.#options.maxOpen ||
    this.#options.budgets.of(principal?.id).pending.full

  /** No closure of its own for each: that would hold the whole request for as long as a stream lasts. */
  readonly #ended = (described: StatelessExchange): void => void this.#described.delete(described)

  readonly #challenge = (error: RpcError): HeaderList => this.#options.gate?.challenge(error) ?? []
}

const NOT_ONE = 'in this revision a POST carries one request or one notification'
