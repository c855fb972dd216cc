import type { MethodDescriptor } from '../../protocol/methods.js'
import type { Channel } from '../../jsonrpc/channel.js'
import type { LogEntry } from '../../jsonrpc/log-entry.js'
import type { Id, Message, Request } from '../../jsonrpc/message.js'
import { estimateMemory } from '../../jsonrpc/budget.js'
import { defaultHttpRevision, handshakeRevision } from '../../protocol/revisions/index.js'
import type { EventStore } from '../../stores/event-store.js'
import type { SessionStore } from '../../stores/session-store.js'
import type { AdmittedRequest, Responder } from './admitted-request.js'
import type { Budgets } from './budgets.js'
import { parseEventId } from './resumable-stream.js'
import { accepts } from './guards.js'
import type { HeaderList, HttpContext } from './http-context.js'
import {
  HttpErrorResponse,
  notAcceptable,
  unavailable,
  unknownSession,
  unsupportedVersion,
} from './http-error-response.js'
import type { OpenResponses } from './open-responses.js'
import type { ServedSession } from './served-session.js'
import { newSessionId } from './session-id.js'
import { initializeOf } from './session-state.js'
import { HttpSession, type SessionFacts, initializeBytes } from './session.js'
import { Sessions } from './sessions.js'

export interface SessionRouterOptions {
  /** What is known of each method, including those of extensions. */
  methods: ReadonlyMap<string, MethodDescriptor>
  /** Serves a client over a channel. */
  openSession(channel: Channel): ServedSession
  report(entry: LogEntry): void
  eventStore: EventStore
  /** `idleTimeout` in milliseconds. */
  sessions: { max: number; idleTimeout: number; store: SessionStore | undefined }
  budgets: Budgets
  /** The prefix of new session ids. */
  sessionIdPrefix?: string | undefined
  /** Maximum unsent bytes of one stream. */
  maxUnsentBytes: number
  /** The SSE field `retry`: milliseconds after which a client reconnects. */
  retryInterval: number
}

const NO_SESSION_ID =
  'Bad Request: the header Mcp-Session-Id is missing. Send "initialize" first; its response has one'
const UNKNOWN_EVENT =
  'Bad Request: Last-Event-ID names no event of this session. Reconnect without this header'

/** Serves the revisions with an `initialize` handshake, whose requests belong to sessions. */
export class SessionRouter {
  readonly #options: SessionRouterOptions
  readonly #responder: Responder
  readonly #openResponses: OpenResponses
  readonly #sessions: Sessions

  constructor(
    options: SessionRouterOptions,
    responder: Responder,
    openResponses: OpenResponses,
    others: () => number,
  ) {
    this.#options = options
    this.#responder = responder
    this.#openResponses = openResponses
    this.#sessions = new Sessions({
      ...options.sessions,
      others,
      budgets: options.budgets,
      report: options.report,
      make: (facts) => this.#make(facts),
    })
  }

  get size(): number {
    return this.#sessions.size
  }

  /** Whether one more session with this memory fits, after evicting an idle one where necessary. */
  makeRoom(owner: string | undefined, bytes: number): boolean {
    return this.#sessions.makeRoom(owner, bytes)
  }

  /** Waits for calls in progress, then ends all sessions in this process. */
  async close(deadline: number): Promise<void> {
    const end = Date.now() + deadline
    await Promise.all([...this.#sessions.values()].map((session) => session.drain(deadline)))
    await this.#sessions.close(Math.max(0, end - Date.now()))
  }

  /** Serves the message of a POST. */
  post(request: AdmittedRequest, text: string, message: Message): void {
    const id = request.context.header('mcp-session-id')
    if (id === undefined) return this.#post(request, text, message, undefined)
    this.#find(request, id, (session) => this.#post(request, text, message, session), text)
  }

  /** Serves a GET or DELETE. */
  getOrDelete(request: AdmittedRequest): void {
    const { context, headers, principal } = request
    const refuse = (error: HttpErrorResponse) => this.#responder.refuse(context, error)
    this.#find(request, context.header('mcp-session-id') ?? '', (session) => {
      if (session === undefined) return refuse(unknownSession(headers))
      if (hasOtherVersion(context, session))
        return refuse(unsupportedVersion(session.protocolVersion, headers))
      if (context.method === 'DELETE')
        return void this.#delete(request, session).catch((error: unknown) =>
          this.#responder.fail(context, error),
        )
      if (!accepts(context, 'text/event-stream'))
        return refuse(notAcceptable('text/event-stream', headers))
      if (this.#responder.full(principal))
        return refuse(unavailable('too many open streams', headers))
      this.#listen(request, session)
    })
  }

  async #delete({ context, headers }: AdmittedRequest, session: HttpSession): Promise<void> {
    if (await this.#sessions.endInTime(session)) return context.respond(204, headers)
    const reason = 'the session has ended here, but could not be deleted from its store'
    this.#responder.refuse(context, unavailable(reason, headers))
  }

  #make(facts: SessionFacts): HttpSession {
    const {
      eventStore,
      sessions,
      maxUnsentBytes,
      retryInterval,
      report,
      openSession,
      budgets,
      methods,
    } = this.#options
    const settings = {
      openResponses: this.#openResponses,
      eventStore,
      ttl: sessions.idleTimeout,
      maxUnsentBytes,
      retryInterval,
      report,
      methods,
      stateChanged: (session: HttpSession) => this.#sessions.store(session),
      ...budgets.ofSession(facts.owner),
    }
    return new HttpSession(facts, settings, openSession)
  }

  /** Finds a session; `text` is the body that is held until then. */
  #find(
    request: AdmittedRequest,
    id: string,
    next: (session: HttpSession | undefined) => void,
    text = '',
  ): void {
    const { context, principal, headers } = request
    const decide = (found: HttpSession | 'unavailable' | undefined) =>
      found === 'unavailable'
        ? this.#responder.refuse(
            context,
            unavailable('the session store is not available', headers),
          )
        : next(found)
    const found = this.#sessions.find(id, principal)
    if (!(found instanceof Promise)) return decide(found)
    const { pending } = this.#options.budgets.of(principal?.id)
    if (pending.full)
      return this.#responder.refuse(context, unavailable('too many open requests', headers))
    const held = estimateMemory(text)
    pending.charge(held)
    // Another request may have ended the session in the meantime.
    const decideLater = (session: Awaited<typeof found>) =>
      session instanceof HttpSession && session.closed
        ? this.#find(request, id, next, text)
        : decide(session)
    found
      .finally(() => pending.release(held))
      .then(decideLater)
      .catch((error: unknown) => this.#responder.fail(context, error))
  }

  #post(
    request: AdmittedRequest,
    text: string,
    message: Message,
    session: HttpSession | undefined,
  ): void {
    const { context, principal, headers } = request
    const version = context.header('mcp-protocol-version')
    const { unreadableId } = session?.revision ?? handshakeRevision(version) ?? defaultHttpRevision
    const refuse = (error: HttpErrorResponse) =>
      this.#responder.refuse(context, error, requestIdOf(message), unreadableId)
    if (session === undefined) {
      if (message.kind === 'request' && message.method === 'initialize')
        return this.#initialize(request, message)
      if (message.kind === 'invalid')
        return refuse(new HttpErrorResponse(400, message.error, headers))
      return refuse(
        context.header('mcp-session-id') === undefined
          ? new HttpErrorResponse(400, NO_SESSION_ID, headers)
          : unknownSession(headers),
      )
    }
    if (hasOtherVersion(context, session))
      return refuse(unsupportedVersion(session.protocolVersion, headers))
    const isCall = message.kind === 'request' || message.kind === 'batch'
    if (isCall && this.#responder.full(principal))
      return refuse(unavailable('too many open requests', headers))
    const { challenge, fail } = this.#responder
    session.post(text, message, { context, principal, headers, challenge, fail })
  }

  #initialize({ context, principal, headers }: AdmittedRequest, message: Request): void {
    const refuse = (reason: string) =>
      this.#responder.refuse(context, unavailable(reason, headers), message.id)
    if (this.#responder.full(principal)) return refuse('too many open requests')
    const owner = principal?.id
    const initialize = initializeOf(message.params)
    if (!this.makeRoom(owner, initializeBytes(initialize))) return refuse('too many sessions')
    const id = newSessionId(this.#options.sessionIdPrefix)
    const session = this.#make({ id, owner, initialize, generation: 0 })
    // Before `initialize` is served, so that it counts against the limit.
    this.#sessions.add(session)
    session.post(message.frame, message, {
      context,
      principal,
      headers,
      challenge: this.#responder.challenge,
      fail: this.#responder.fail,
      initialized: (response) => {
        const idHeader: HeaderList = ['Mcp-Session-Id', session.id]
        if (response !== undefined && session.begin(response))
          return this.#sessions.begin(session)?.then(() => idHeader) ?? idHeader
        void this.#sessions.end(session)
        return []
      },
    })
  }

  #listen({ context, headers, principal }: AdmittedRequest, session: HttpSession): void {
    const refuse = (status: number, problem: string) =>
      this.#responder.refuse(context, new HttpErrorResponse(status, problem, headers))
    const lastEventId = context.header('last-event-id')
    if (lastEventId === undefined) {
      if (!session.listen(context, headers, principal?.expires))
        refuse(409, 'Conflict: the GET stream of this session is already open')
      return
    }
    const decide = (known: boolean) => {
      if (!known) refuse(400, UNKNOWN_EVENT)
    }
    const event = parseEventId(lastEventId)
    const known = event !== undefined && session.resume(context, event, headers, principal?.expires)
    if (typeof known === 'boolean') return decide(known)
    known.then(decide).catch((error: unknown) => this.#responder.fail(context, error))
  }
}

/** Whether a request names a revision that has no sessions, and that this one has not negotiated. */
function hasOtherVersion(context: HttpContext, { protocolVersion }: HttpSession): boolean {
  const version = context.header('mcp-protocol-version')
  return (
    version !== undefined && handshakeRevision(version) === undefined && version !== protocolVersion
  )
}

/** The id for an error response: that of a request, even of an invalid one. */
function requestIdOf(message: Message): Id | undefined {
  return message.kind === 'request' || (message.kind === 'invalid' && !message.noResponse)
    ? message.id
    : undefined
}
