import type { MethodDescriptor } from '../../protocol/methods.js'
import type { Channel } from '../../jsonrpc/channel.js'
import type { LogEntry } from '../../jsonrpc/log-entry.js'
import type { Id, Message, Request } from '../../jsonrpc/message.js'
import { estimateMemory } from '../../jsonrpc/budget.js'
import { ignore } from '../../jsonrpc/hook.js'
import { defaultHttpRevision, handshakeRevision } from '../../protocol/revisions/index.js'
import type { EventStore } from '../../stores/event-store.js'
import type { SessionStore } from '../../stores/session-store.js'
import type { AdmittedRequest, Responder } from './admitted-request.js'
import type { Budgets } from './budgets.js'
import { type ForwardedBody, Forwarder } from './forwarder.js'
import { FORWARDED } from './forwarding.js'
import { parseEventId } from './resumable-stream.js'
import { accepts, concernsCalls } from './guards.js'
import { inTime } from './in-time.js'
import type { HeaderList, HttpContext } from './http-context.js'
import {
  HttpErrorResponse,
  misdirected,
  notAcceptable,
  shuttingDown,
  unavailable,
  unknownSession,
  unsupportedVersion,
} from './http-error-response.js'
import type { OpenResponses } from './open-responses.js'
import type { ServedSession } from './served-session.js'
import { newSessionId } from './session-id.js'
import { initializeOf } from './session-state.js'
import { HttpSession, type SessionFacts, sessionBytes } from './session.js'
import { type Found, type OtherProcess, Sessions } from './sessions.js'

export interface SessionRouterOptions {
  /** What is known of each method, including those of extensions. */
  methods: ReadonlyMap<string, MethodDescriptor>
  /** Serves a client over a channel. */
  openSession(channel: Channel): ServedSession
  report(entry: LogEntry): void
  eventStore: EventStore
  /** `idleTimeout` in milliseconds. */
  sessions: { max: number; idleTimeout: number; store: SessionStore | undefined }
  /** Milliseconds without output after which an open response sends a keep-alive; 0 turns it off. */
  keepAlive: number
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
const UNRESTORED = 'the session could not be restored, or its store is not available'
const UNKNOWN_EVENT =
  'Bad Request: Last-Event-ID names no event of this session. Reconnect without this header'

/** Milliseconds after the end of a lease by which a session of that process must have been taken over. */
const GRACE = 2000
/** Milliseconds until the process of a session is looked for again; more each time, up to the maximum. */
const RETRY_INTERVAL = 50
const MAX_RETRY_INTERVAL = 500

/** A request whose session is looked for. */
interface Search {
  readonly request: AdmittedRequest
  readonly id: string
  /** The message of a POST. */
  readonly body?: ForwardedBody
  readonly message?: Message
  /** When its process was first found not to serve it. */
  readonly since?: number
  serve(session: HttpSession | undefined): void
}

/** Serves the revisions with an `initialize` handshake, whose requests belong to sessions. */
export class SessionRouter {
  readonly #options: SessionRouterOptions
  readonly #responder: Responder
  readonly #openResponses: OpenResponses
  readonly #sessions: Sessions
  /** Undefined if no other process can be reached. */
  readonly #forwarder: Forwarder | undefined

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
    const { keepAlive, report } = options
    const { ownership } = options.sessions.store ?? {}
    const { key } = ownership ?? {}
    if (ownership !== undefined && key !== undefined)
      this.#forwarder = new Forwarder({ key, ownership, keepAlive, openResponses, report })
  }

  /** `listening` is where other processes reach this one, as far as it is known. */
  start(listening: { scheme: string; port: number } | undefined): void {
    this.#sessions.start(listening)
  }

  get size(): number {
    return this.#sessions.size
  }

  /** Whether other processes pass requests on to this one. */
  get isShared(): boolean {
    return this.#forwarder !== undefined
  }

  /** Whether one more session with this memory fits, after evicting an idle one if necessary. */
  makeRoom(owner: string | undefined, bytes: number): boolean {
    return this.#sessions.makeRoom(owner, bytes)
  }

  /** Waits for calls in progress, then ends all sessions in this process. */
  async close(deadline: number): Promise<void> {
    await Promise.all([this.#forwarder?.close(deadline), this.#sessions.close(deadline)])
  }

  /** Serves the message of a POST. */
  post(request: AdmittedRequest, text: string, message: Message): void {
    const id = request.context.header('mcp-session-id')
    if (id === undefined) return this.#post(request, text, message, undefined)
    const serve = (session: HttpSession | undefined) => this.#post(request, text, message, session)
    this.#findFirst({ request, id, serve, message, body: { text, id: requestIdOf(message) } })
  }

  /** Serves a GET or DELETE. */
  getOrDelete(request: AdmittedRequest): void {
    const { context, headers, principal } = request
    const refuse = (error: HttpErrorResponse) => this.#responder.refuse(context, error)
    const serve = (session: HttpSession | undefined) => {
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
    }
    this.#findFirst({ request, id: context.header('mcp-session-id') ?? '', serve })
  }

  async #delete(request: AdmittedRequest, session: HttpSession): Promise<void> {
    const { context, headers } = request
    if (await this.#sessions.endInTime(session)) return context.respond(204, headers)
    // Another process has it.
    if (session.superseded) return this.getOrDelete(request)
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
      durable: this.#sessions.durable,
      ...budgets.ofSession(facts.owner),
    }
    return new HttpSession(facts, settings, openSession)
  }

  /** Finds the session of a request, here or in another process. */
  #find(search: Search): void {
    const { request, id, serve, message, body } = search
    const { context, principal, headers } = request
    const decide = (found: Found) => {
      const isServed =
        !this.#sessions.closing.aborted ||
        (found instanceof HttpSession && message !== undefined && concernsCalls(message))
      if (!isServed) this.#responder.refuse(context, shuttingDown(context, headers), body?.id)
      else if (found === 'unavailable')
        this.#responder.refuse(context, unavailable(UNRESTORED, headers), body?.id)
      else if (found === undefined || found instanceof HttpSession) serve(found)
      else this.#passOn(search, found)
    }
    const found = this.#sessions.find(id, principal)
    if (!(found instanceof Promise)) return decide(found)
    const release = this.#charge(search)
    if (release === undefined) return
    // Another request may have ended the session in the meantime.
    const decideLater = (session: Found) =>
      session instanceof HttpSession && session.closed ? this.#find(search) : decide(session)
    found
      .finally(release)
      .then(decideLater)
      .catch((error: unknown) => this.#responder.fail(context, error))
  }

  /** Charges the body of a request that waits, until the function that this returns is called; undefined if it was refused. */
  #charge({ request, body }: Search): (() => void) | undefined {
    const { context, principal, headers } = request
    const { pending } = this.#options.budgets.of(principal?.id)
    if (pending.full) {
      this.#responder.refuse(context, unavailable('too many open requests', headers), body?.id)
      return undefined
    }
    const held = estimateMemory(body?.text ?? '')
    pending.charge(held)
    return () => pending.release(held)
  }

  /** Finds the session of a request that may come from another process. */
  #findFirst(search: Search): void {
    const { context, headers } = search.request
    const forwarder = this.#forwarder
    const process = this.#options.sessions.store?.ownership?.process
    if (context.header(FORWARDED) === undefined || forwarder === undefined || process === undefined)
      return this.#find(search)
    forwarder
      .verify(context, process)
      .then((valid) =>
        valid ? this.#find(search) : this.#responder.refuse(context, misdirected(headers)),
      )
      .catch((error: unknown) => this.#responder.fail(context, error))
  }

  /** Passes a request on to the process that has its session. */
  #passOn(search: Search, to: OtherProcess): void {
    const { request, body } = search
    const { context, principal, headers } = request
    const refuse = (error: HttpErrorResponse) => this.#responder.refuse(context, error, body?.id)
    // Only once: two processes could pass it on to each other without end.
    if (context.header(FORWARDED) !== undefined) return refuse(misdirected(headers))
    if (this.#forwarder === undefined)
      return refuse(unavailable('another process has the session', headers))
    if (this.#responder.full(principal))
      return refuse(unavailable('too many open requests', headers))
    const release = this.#charge(search)
    if (release === undefined) return
    this.#forwarder
      .forward(request, to, body)
      .finally(release)
      .then((outcome) => (outcome === 'unserved' ? this.#findAgain(search) : undefined))
      .catch((error: unknown) => this.#responder.fail(context, error))
  }

  /** Waits until the lease of a process that has ended, or is ending, ends too: then its session can be taken over. */
  async #findAgain(search: Search): Promise<void> {
    const { context, headers } = search.request
    const now = performance.now()
    const since = search.since ?? now
    const { lease = 0 } = this.#options.sessions.store?.ownership ?? {}
    if (search.since === undefined)
      this.#options.report({
        level: 'info',
        message: 'A request waits for the lease of a process that has ended, or is shutting down',
      })
    if (now - since > lease + GRACE) {
      const reason = 'the process of this session cannot be reached, or has another key'
      return this.#responder.refuse(context, unavailable(reason, headers), search.body?.id)
    }
    const release = this.#charge(search)
    if (release === undefined) return
    const wait = Math.min(MAX_RETRY_INTERVAL, RETRY_INTERVAL + (now - since) / 4)
    await inTime(wait, this.#sessions.closing, new Promise(ignore))
    release()
    this.#find({ ...search, since })
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
    const { id: requestId } = message
    const refuse = (reason: string) =>
      this.#responder.refuse(context, unavailable(reason, headers), requestId)
    if (this.#responder.full(principal)) return refuse('too many open requests')
    const owner = principal?.id
    const initialize = initializeOf(message.params)
    if (!this.makeRoom(owner, sessionBytes(initialize))) return refuse('too many sessions')
    const id = newSessionId(this.#options.sessionIdPrefix)
    const session = this.#make({ id, owner, initialize, generation: 0 })
    // Before `initialize` is served, so that it counts against the limit.
    this.#sessions.add(session)
    session.post(message.frame, message, {
      context,
      principal,
      headers,
      challenge: this.#responder.challenge,
      fail: (_, error) =>
        error instanceof HttpErrorResponse
          ? this.#responder.refuse(context, error, requestId)
          : this.#responder.fail(context, error),
      initialized: (response) => {
        const idHeader: HeaderList = ['Mcp-Session-Id', session.id]
        if (response !== undefined && session.begin(response))
          return (
            this.#sessions.begin(session)?.then((stored) => {
              if (stored) return idHeader
              void this.#sessions.end(session)
              throw unavailable('the session could not be stored', headers)
            }) ?? idHeader
          )
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
    const decide = (known: boolean | 'unavailable') => {
      if (known === 'unavailable')
        this.#responder.refuse(context, unavailable('the event store is not available', headers))
      else if (!known) refuse(400, UNKNOWN_EVENT)
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
