import type { Channel } from '../../jsonrpc/channel.js'
import type { Id, Message, Request } from '../../jsonrpc/message.js'
import type { LogEntry } from '../../jsonrpc/log-entry.js'
import { weightOf } from '../../jsonrpc/weight.js'
import { defaultHttpRevision } from '../../protocol/revisions/index.js'
import type { EventStore } from '../../stores/event-store.js'
import type { SessionStore } from '../../stores/session-store.js'
import type { AdmittedRequest, Responder } from './admitted-request.js'
import type { Budgets } from './budgets.js'
import type { ServedChannel } from './served-channel.js'
import { handshakeRevision } from './detect-opening.js'
import { parseEventId } from './event-log.js'
import { accepts } from './guards.js'
import type { KeepAlive } from './keep-alive.js'
import { HttpError, gone, unavailable, unsupportedVersion } from './http-error.js'
import { newId } from './session-id.js'
import { HttpSession, type SessionFacts } from './session.js'
import { Sessions } from './sessions.js'
import { openingOf } from './session-state.js'
import type { MethodFacts } from '../../protocol/methods.js'
import type { HeaderList, HttpContext } from './http-context.js'

export interface SessionRouterOptions {
  /** What is known of a method, also of those of extensions. */
  methodFacts(method: string): MethodFacts | undefined
  /** Serves a client over a channel. */
  open(channel: Channel): ServedChannel
  report(report: LogEntry): void
  /** Where events are kept for clients that come back. */
  store: EventStore
  /** How many sessions there may be, for how long one may be idle, and where they are kept. */
  sessions: { max: number; idle: number; store: SessionStore | undefined }
  /** The bytes that clients can make the server hold. */
  budgets: Budgets
  /** The name of this process among others: what the ids of its sessions begin with. */
  node?: string | undefined
  /** How many bytes may wait for one client. */
  maxWaiting: number
  /** Milliseconds after which a client should come back for a stream that was let go. */
  retry: number
}

const NO_SESSION =
  'the header Mcp-Session-Id is missing. Send "initialize" first, and its answer will have one'
const NO_EVENT = 'Bad Request: no stream of this session has the event that Last-Event-ID names'

/** Serves clients that shake hands: each has a session, over as many requests as it likes. */
export class SessionRouter {
  readonly #options: SessionRouterOptions
  readonly #desk: Responder
  readonly #pulse: KeepAlive
  readonly #sessions: Sessions

  constructor(options: SessionRouterOptions, desk: Responder, pulse: KeepAlive) {
    this.#options = options
    this.#desk = desk
    this.#pulse = pulse
    this.#sessions = new Sessions({
      ...options.sessions,
      budgets: options.budgets,
      report: options.report,
      make: (facts) => this.#make(facts),
    })
  }

  get size(): number {
    return this.#sessions.size
  }

  /** Waits a while for what is under way, and lets go of all sessions. */
  async close(deadline: number): Promise<void> {
    await Promise.all([...this.#sessions.values()].map((session) => session.drain(deadline)))
    await this.#sessions.close(deadline)
  }

  /** Serves a message that came by POST. */
  post(arrival: AdmittedRequest, text: string, message: Message): void {
    const id = arrival.visit.header('mcp-session-id')
    if (id === undefined) return this.#post(arrival, text, message, undefined)
    this.#find(arrival, id, (session) => this.#post(arrival, text, message, session), text)
  }

  /** Serves a GET or a DELETE, which are about a session as a whole. */
  visit(arrival: AdmittedRequest): void {
    const { visit, headers } = arrival
    this.#find(arrival, visit.header('mcp-session-id') ?? '', (session) => {
      if (session === undefined) return this.#desk.refuse(visit, gone(headers))
      if (speaksOtherwise(visit, session))
        return this.#desk.refuse(visit, unsupportedVersion(session.agreed, headers))
      if (visit.method === 'DELETE')
        return void this.#delete(arrival, session).catch((error: unknown) =>
          this.#desk.fail(visit, error),
        )
      if (!accepts(visit, 'text/event-stream'))
        return this.#desk.refuse(
          visit,
          new HttpError(
            406,
            'Not Acceptable: send the header "Accept: text/event-stream"',
            headers,
          ),
        )
      if (this.#desk.full(arrival.principal))
        return this.#desk.refuse(visit, unavailable('too many streams are open', headers))
      this.#listen(arrival, session)
    })
  }

  async #delete({ visit, headers }: AdmittedRequest, session: HttpSession): Promise<void> {
    if (await this.#sessions.endInTime(session)) visit.answer(204, headers)
    else
      this.#desk.refuse(
        visit,
        unavailable('the session has ended here, but could not be dropped from its store', headers),
      )
  }

  #make(facts: SessionFacts): HttpSession {
    const { store, maxWaiting, retry, report, open, budgets, methodFacts } = this.#options
    const told = (session: HttpSession) => this.#sessions.keep(session)
    const settings = {
      pulse: this.#pulse,
      store,
      maxWaiting,
      retry,
      report,
      told,
      methodFacts,
      ...budgets.ofSession(facts.owner),
    }
    return new HttpSession(facts, settings, open)
  }

  /** Finds a session; `text` is what is held meanwhile. */
  #find(
    arrival: AdmittedRequest,
    id: string,
    next: (session: HttpSession | undefined) => void,
    text = '',
  ): void {
    const { visit, principal, headers } = arrival
    const decided = (found: HttpSession | 'unavailable' | undefined) =>
      found === 'unavailable'
        ? this.#desk.refuse(visit, unavailable('sessions cannot be looked up now', headers))
        : next(found)
    const found = this.#sessions.find(id, principal)
    if (!(found instanceof Promise)) return decided(found)
    const { pending } = this.#options.budgets.of(principal?.id)
    if (pending.full)
      return this.#desk.refuse(visit, unavailable('too many requests are open', headers))
    const held = weightOf(text)
    pending.charge(held)
    // Of those who have waited for it, one may have ended it by now.
    const late = (session: Awaited<typeof found>) =>
      session instanceof HttpSession && session.closed
        ? this.#find(arrival, id, next, text)
        : decided(session)
    found
      .finally(() => pending.give(held))
      .then(late)
      .catch((error: unknown) => this.#desk.fail(visit, error))
  }

  #post(
    arrival: AdmittedRequest,
    text: string,
    message: Message,
    session: HttpSession | undefined,
  ): void {
    const { visit, principal, headers } = arrival
    const version = visit.header('mcp-protocol-version')
    const asked = askedBy(message)
    const unreadable = (session?.revision ?? handshakeRevision(version) ?? defaultHttpRevision)
      .unreadableId
    if (session === undefined) {
      if (message.kind === 'request' && message.method === 'initialize')
        return this.#initialize(arrival, message)
      if (message.kind === 'invalid')
        return this.#desk.refuse(
          visit,
          new HttpError(400, message.error, headers),
          asked,
          unreadable,
        )
      const refusal =
        visit.header('mcp-session-id') === undefined
          ? new HttpError(400, `Bad Request: ${NO_SESSION}`, headers)
          : gone(headers)
      return this.#desk.refuse(visit, refusal, asked, unreadable)
    }
    if (speaksOtherwise(visit, session))
      return this.#desk.refuse(
        visit,
        unsupportedVersion(session.agreed, headers),
        asked,
        unreadable,
      )
    if ((message.kind === 'request' || message.kind === 'batch') && this.#desk.full(principal))
      return this.#desk.refuse(visit, unavailable('too many requests are open', headers), asked)
    session.post(text, message, { visit, principal, headers, challenge: this.#desk.challenge })
  }

  #initialize({ visit, principal, headers }: AdmittedRequest, message: Request): void {
    if (this.#desk.full(principal))
      return this.#desk.refuse(
        visit,
        unavailable('too many requests are open', headers),
        message.id,
      )
    const owner = principal?.id
    const opening = openingOf(message.params)
    if (!this.#sessions.makeRoom(owner, opening))
      return this.#desk.refuse(
        visit,
        unavailable('too many sessions are open', headers),
        message.id,
      )
    const session = this.#make({ id: newId(this.#options.node), owner, opening, generation: 0 })
    // At once: opening it may take a while, and it takes its place already.
    this.#sessions.add(session)
    session.post(message.frame, message, {
      visit,
      principal,
      headers,
      challenge: this.#desk.challenge,
      opening: (answer) => {
        const named: HeaderList = ['Mcp-Session-Id', session.id]
        if (answer !== undefined && session.begin(answer))
          return this.#sessions.begin(session)?.then(() => named) ?? named
        void this.#sessions.end(session)
        return []
      },
    })
  }

  #listen({ visit, headers, principal }: AdmittedRequest, session: HttpSession): void {
    session.used = Date.now()
    const last = visit.header('last-event-id')
    if (last === undefined) {
      if (!session.listen(visit, headers, principal?.expires))
        this.#desk.refuse(
          visit,
          new HttpError(
            409,
            'Conflict: this session has its stream open already; one is enough',
            headers,
          ),
        )
      return
    }
    const decided = (known: boolean) => {
      if (!known) this.#desk.refuse(visit, new HttpError(400, NO_EVENT, headers))
    }
    const event = parseEventId(last)
    const known = event !== undefined && session.resume(visit, event, headers, principal?.expires)
    if (typeof known === 'boolean') return decided(known)
    known.then(decided).catch((error: unknown) => this.#desk.fail(visit, error))
  }
}

/** Whether a request names a revision that has no sessions, and that this one has not agreed on. */
function speaksOtherwise(visit: HttpContext, { agreed }: HttpSession): boolean {
  const version = visit.header('mcp-protocol-version')
  return version !== undefined && handshakeRevision(version) === undefined && version !== agreed
}

/** The id that an answer may carry: that of a request, be it one that cannot be served. */
function askedBy(message: Message): Id | undefined {
  return message.kind === 'request' || (message.kind === 'invalid' && !message.mute)
    ? message.id
    : undefined
}
