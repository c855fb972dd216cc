import { RpcError } from '../../../jsonrpc/errors.js'
import { type Message, messagesIn } from '../../../jsonrpc/message.js'
import { UNSUPPORTED_PROTOCOL_VERSION } from '../../../protocol/errors.js'
import { handshakeRevisions, newest } from '../../../protocol/revisions/index.js'
import { hasRequestMeta } from '../../../protocol/revisions/request-meta.js'
import type { AdmittedRequest, MessageHandler, Responder } from '../admitted-request.js'
import { accepts } from '../guards.js'
import type { HttpContext } from '../http-context.js'
import {
  HttpErrorResponse,
  methodNotAllowed,
  notAcceptable,
  unavailable,
} from '../http-error-response.js'
import type { OpenResponses } from '../open-responses.js'
import { newSessionId } from '../session-id.js'
import type { SessionRouter, SessionRouterOptions } from '../session-router.js'
import { LegacySseSession, SESSION_BYTES } from './session.js'

export interface LegacySsePaths {
  /** The path of the event stream. */
  stream: string
  /** The path for POST requests. */
  messages: string
  /** The same as clients are told: an absolute path, or relative to that of the event stream. */
  reference: string
}

export interface LegacySseRouterOptions extends Pick<
  SessionRouterOptions,
  'openSession' | 'budgets' | 'sessions' | 'sessionIdPrefix' | 'maxUnsentBytes'
> {
  openResponses: OpenResponses
  responder: Responder
  /** Makes room for one more session of either transport. */
  makeRoom: SessionRouter['makeRoom']
  /** Reads and parses the body of a POST, or refuses it. */
  readMessage(request: AdmittedRequest, next: MessageHandler): void
}

/** The query parameter of a POST. */
const SESSION_ID = 'sessionId'
/** Maximum milliseconds until a client must have sent `initialize`. */
const INITIALIZE_TIMEOUT = 60_000
const NO_SESSION_ID =
  'Bad Request: the query parameter sessionId must be sent exactly once. Open the event stream first; its "endpoint" event has the URI for POST'
const UNKNOWN_SESSION = 'Not Found: unknown session. It ends with its event stream; open a new one'

/** Serves HTTP+SSE, the transport before Streamable HTTP: an event stream, and a path for POST requests. */
export class LegacySseRouter {
  readonly #paths: LegacySsePaths
  readonly #options: LegacySseRouterOptions
  readonly #sessions = new Map<string, LegacySseSession>()

  constructor(paths: LegacySsePaths, options: LegacySseRouterOptions) {
    this.#paths = paths
    this.#options = options
  }

  get size(): number {
    return this.#sessions.size
  }

  /** Whether a path is one of the two. */
  serves(path: string): boolean {
    return isSame(path, this.#paths.stream) || isSame(path, this.#paths.messages)
  }

  handle(request: AdmittedRequest): void {
    const { context, headers } = request
    const isStream = isSame(context.path, this.#paths.stream)
    const method = isStream ? 'GET' : 'POST'
    if (context.method !== method) return this.#refuse(request, methodNotAllowed(method, headers))
    return isStream ? this.#open(request) : this.#post(request)
  }

  /** Waits for calls in progress, then ends all sessions. */
  async close(deadline: number): Promise<void> {
    await Promise.all([...this.#sessions.values()].map((session) => session.drain(deadline)))
  }

  #refuse({ context }: AdmittedRequest, error: HttpErrorResponse, message?: Message): void {
    const id = message?.kind === 'request' ? message.id : undefined
    this.#options.responder.refuse(context, error, id)
  }

  #open(request: AdmittedRequest): void {
    const { context, principal, headers } = request
    const { responder, makeRoom, budgets, sessions, openSession, sessionIdPrefix } = this.#options
    if (!accepts(context, 'text/event-stream'))
      return this.#refuse(request, notAcceptable('text/event-stream', headers))
    if (responder.full(principal))
      return this.#refuse(request, unavailable('too many open streams', headers))
    if (!makeRoom(principal?.id, SESSION_BYTES))
      return this.#refuse(request, unavailable('too many sessions', headers))
    const { openResponses, maxUnsentBytes } = this.#options
    const settings = {
      openResponses,
      maxUnsentBytes,
      initializeTimeout: Math.min(INITIALIZE_TIMEOUT, sessions.idleTimeout),
      ...budgets.ofSession(principal?.id),
      ended: this.#ended,
    }
    const session = new LegacySseSession(
      newSessionId(sessionIdPrefix),
      request,
      settings,
      openSession,
    )
    this.#sessions.set(session.id, session)
    session.sendEndpoint(`${this.#reference(context)}?${SESSION_ID}=${session.id}`)
  }

  /** One function for all: a closure per session would retain its request. */
  readonly #ended = ({ id }: LegacySseSession): void => void this.#sessions.delete(id)

  /** With the prefix that a framework has removed from the path, as Express does for `app.use('/prefix', …)`. */
  #reference({ path, target }: HttpContext): string {
    const { reference } = this.#paths
    const [sent = ''] = target.split('?', 1)
    const prefix = sent.endsWith(path) ? sent.slice(0, sent.length - path.length) : ''
    // Two slashes at the start would name another host.
    return reference.startsWith('/') && !prefix.startsWith('//') ? prefix + reference : reference
  }

  #post(request: AdmittedRequest): void {
    const { context, headers } = request
    const ids = new URLSearchParams(context.target.split('?')[1]).getAll(SESSION_ID)
    const [id] = ids
    if (id === undefined || ids.length > 1)
      return this.#refuse(request, new HttpErrorResponse(400, NO_SESSION_ID, headers))
    if (this.#find(request, id) === undefined)
      return this.#refuse(request, new HttpErrorResponse(404, UNKNOWN_SESSION, headers))
    this.#options.readMessage(request, (_, text, message) =>
      this.#deliver(request, id, text, message),
    )
  }

  /** The session with this id, if it belongs to the principal. */
  #find({ principal }: AdmittedRequest, id: string): LegacySseSession | undefined {
    const session = this.#sessions.get(id)
    return session?.owner === principal?.id && session?.closed === false ? session : undefined
  }

  #deliver(request: AdmittedRequest, id: string, text: string, message: Message): void {
    const { context, principal, headers } = request
    const { responder } = this.#options
    // It may have ended while the body was read.
    const session = this.#find(request, id)
    if (session === undefined)
      return this.#refuse(request, new HttpErrorResponse(404, UNKNOWN_SESSION, headers), message)
    if (isStateless(message))
      return this.#refuse(
        request,
        new HttpErrorResponse(400, NO_STATELESS_REQUESTS, headers),
        message,
      )
    const isCall = message.kind === 'request' || message.kind === 'batch'
    if (isCall && responder.full(principal))
      return this.#refuse(request, unavailable('too many open requests', headers), message)
    const { challenge } = responder
    if (!session.post(text, { message, context, principal, headers, challenge }))
      this.#refuse(request, unavailable('not enough memory for this session', headers), message)
  }
}

/** With or without a slash at the end. */
function isSame(path: string, own: string): boolean {
  return path === own || path === `${own}/`
}

/** Whether a message is, or a batch has, a stateless request. */
function isStateless(message: Message): boolean {
  return messagesIn(message).some((each) => each.kind === 'request' && hasRequestMeta(each))
}

const NO_STATELESS_REQUESTS = new RpcError(
  UNSUPPORTED_PROTOCOL_VERSION,
  'Unsupported protocol version: HTTP+SSE has no stateless requests. Send "initialize", or use Streamable HTTP',
  { supported: handshakeRevisions.map(({ id }) => id), requested: newest.id },
)
