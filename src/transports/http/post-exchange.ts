import type { Budget } from '../../jsonrpc/budget.js'
import type { Exchange, HttpRequest, Principal } from '../../jsonrpc/channel.js'
import { ChannelClosedError, INTERNAL_ERROR, RpcError } from '../../jsonrpc/errors.js'
import {
  type Id,
  type Invalid,
  type Message,
  type SentMessage,
  type SentResponse,
  encodeError,
  sentResponses,
} from '../../jsonrpc/message.js'
import type { Revision } from '../../protocol/revisions/index.js'
import type { ResumableStream } from './resumable-stream.js'
import type { HeaderList, HttpContext } from './http-context.js'
import { HttpErrorResponse, JSON_TYPE, refuse, unavailable } from './http-error-response.js'
import type { KeptAlive } from './open-responses.js'
import type { StateChange } from './session-state.js'
import type { SessionStreams } from './session-streams.js'
import { STREAM_HEADERS } from './sse-stream.js'
import { statusInSession } from './status.js'

/** Memory of a call with a stream that waits for its client, beyond its message and headers: see scripts/held. */
const WAITING = 8 * 1024
const UNSTORED = 'the change could not be stored, and may be lost'

/** What an exchange needs of its session. */
export interface SessionPort {
  readonly revision: Revision
  /** The memory of its requests in progress. */
  readonly pending: Budget
  /** Rejects a sent request, to which no response can arrive. */
  failed(id: Id, error: Error): void
}

export interface PostOptions {
  session: SessionPort
  streams: SessionStreams
  context: HttpContext
  principal: Principal | undefined
  /** Headers of every response. */
  headers: HeaderList
  /** The received message; of a valid one, its kind suffices. */
  received: Invalid | { kind: Exclude<Message['kind'], 'invalid'> }
  /** Headers of an error response. */
  challenge(error: RpcError): HeaderList
  /** Responds with 500 to an error of the server, and logs it. */
  fail(context: HttpContext, error: unknown): void
  /** Ids of the requests in the message, if their responses must come even if this process ends. */
  requestIds?: readonly Id[]
  /** Called before a response that is no error; if that returns a promise, the response waits for it, and is an error if it resolves with false. */
  acknowledge?: (exchange: PostExchange) => Promise<boolean> | undefined
  /** Headers of the response to `initialize`, for which the session may have to be stored first. Called without a response if there is none, or the client has disconnected. */
  initialized?: (response: SentResponse | undefined) => HeaderList | Promise<HeaderList>
}

/**
 * The message of a POST within a session. The response is JSON, or a stream if other messages precede it. A client
 * that disconnects cancels nothing: if the response is a stream, what is sent from then on is stored until it
 * reconnects.
 */
export class PostExchange implements Exchange, KeptAlive {
  readonly principal?: Principal
  /** Made for this exchange. The context is there until it is detached. */
  readonly #options: Omit<PostOptions, 'context'> & { context?: HttpContext | undefined }
  /** The request as handlers see it, once its context is detached; and what is charged for the call from then on. */
  #http: HttpRequest | undefined
  #bytes = 0
  #stream: ResumableStream | undefined
  /** Whether the client has disconnected before a stream was opened. */
  #disconnected = false
  #released = false
  /** Whether the server has replied; the response may still wait. */
  #replied = false
  #responded = false
  #failed = false
  /** The responses to a batch. */
  #batch: string | undefined
  #done: (() => void) | undefined

  constructor(options: PostOptions) {
    this.#options = options
    if (options.principal !== undefined) this.principal = options.principal
  }

  get responded(): boolean {
    return this.#responded
  }

  /** Whether the message got an error, or no response though it was a request. A batch may have failed in part. */
  get failed(): boolean {
    return this.#failed
  }

  /** Those state changes whose requests got a result. */
  withResult(changes: readonly StateChange[]): readonly StateChange[] {
    if (this.#failed) return []
    if (this.#options.received.kind !== 'batch') return changes
    const responses = sentResponses(this.#batch ?? '[]')
    return changes.filter((change) => change === 'initialized' || responses.get(change.id) === true)
  }

  get connected(): boolean {
    return this.#stream?.connected ?? !this.#disconnected
  }

  get http(): HttpRequest | undefined {
    return this.#http ?? this.#options.context?.http
  }

  get congested(): boolean {
    return this.#stream?.congested ?? false
  }

  /** Called if the response follows later; `done` is called after it. */
  wait(done: () => void): void {
    this.#done = done
    if (this.#stream !== undefined) return
    const { context, streams } = this.#options
    if (context === undefined) return
    streams.openResponses.add(context, this)
    context.onDisconnect(() => this.#onDisconnect())
  }

  send(frame: string, message?: SentMessage): void {
    if (this.#replied) return
    if (this.#mustBeJson) return this.#drop(message, 'The response to initialize is not a stream')
    const streamLost = this.#stream !== undefined && !this.#stream.connected && !this.#released
    const disconnected = this.#disconnected || streamLost
    // A call waits for the response to this request, and the client may never resume its stream.
    if (disconnected && message?.kind === 'request' && this.#options.streams.sendStandalone(frame))
      return
    if (this.#disconnected) this.#drop(message, 'The client has disconnected')
    else this.#openStream().push(frame)
  }

  /** A request that is not sent fails: its sender would wait for the response. */
  #drop(message: SentMessage | undefined, reason: string): void {
    if (message?.kind === 'request')
      this.#options.session.failed(
        message.id,
        new ChannelClosedError(`${reason}: no request can be sent`),
      )
  }

  /** The response to `initialize` has the header Mcp-Session-Id, which is known only at its end. */
  get #mustBeJson(): boolean {
    return this.#options.initialized !== undefined
  }

  reply(frame?: string, response?: SentResponse): void {
    if (this.#replied) return
    this.#replied = true
    const { received, acknowledge } = this.#options
    const isCancelled = received.kind === 'request' && frame === undefined
    this.#failed = response?.error !== undefined || isCancelled
    if (received.kind === 'batch') this.#batch = frame
    const acknowledged = this.#failed ? undefined : acknowledge?.(this)
    if (acknowledged === undefined) return this.#complete(frame, response)
    acknowledged
      .then((stored) => (stored ? this.#complete(frame, undefined) : this.#refuseUnstored()))
      .catch((reason: unknown) => this.#fail(reason))
  }

  #fail(reason: unknown): void {
    const { context, fail } = this.#options
    if (context !== undefined) fail(context, reason)
  }

  /** What was changed here would be lost with this process. */
  #refuseUnstored(): void {
    const { context, headers, streams, requestIds = [] } = this.#options
    this.#failed = true
    if (this.#stream !== undefined) {
      for (const id of requestIds)
        this.#stream.push(encodeError(id, new RpcError(INTERNAL_ERROR, UNSTORED), 'omitted'))
      streams.finish(this.#stream, requestIds)
    } else if (!this.#disconnected && context !== undefined)
      refuse(context, unavailable(UNSTORED, headers), requestIds[0])
    this.#end()
  }

  #complete(frame: string | undefined, response: SentResponse | undefined): void {
    const { streams } = this.#options
    if (this.#stream !== undefined) {
      if (frame !== undefined) this.#stream.push(frame)
      streams.finish(this.#stream, frame === undefined ? [] : this.#answered(frame, response))
    } else if (this.#disconnected) void this.#options.initialized?.(undefined)
    else this.#respond(frame, response)
    this.#end()
  }

  /** The requests to which a frame responds. */
  #answered(frame: string, response: SentResponse | undefined): readonly Id[] {
    if (response?.id !== undefined) return [response.id]
    return this.#options.requestIds ?? [...sentResponses(frame).keys()]
  }

  #end(): void {
    this.#responded = true
    // A handler that never returns would keep them in memory.
    this.#http = undefined
    this.#options.session.pending.release(this.#bytes)
    this.#bytes = 0
    if (this.#done === undefined) return
    if (this.#stream === undefined) this.#close()
    this.#done()
    this.#batch = undefined
  }

  release(): void {
    if (!this.#options.session.revision.polling || this.#mustBeJson) return
    if (this.#replied || this.#disconnected) return
    const stream = this.#openStream()
    this.#released = true
    stream.release()
  }

  /**
   * Turns the response of a long call into a stream, on which keep-alive comments are sent. A notification that waits for
   * the store has no response: its status is 202.
   */
  onKeepAlive(): void {
    const hasNoRequest = this.#options.requestIds?.length === 0
    if (!this.#mustBeJson && !hasNoRequest) this.#openStream()
  }

  #respond(frame: string | undefined, response: SentResponse | undefined): void {
    const error = response?.error
    const { context, headers, initialized } = this.#options
    const more = initialized?.(response) ?? []
    if (!(more instanceof Promise))
      return this.#write(frame, error, more.length === 0 ? headers : [...headers, ...more])
    // A session that nobody knows of ends.
    context?.onDisconnect(() => void initialized?.(undefined))
    more
      .then((added) => this.#write(frame, error, [...headers, ...added]))
      .catch((reason: unknown) => this.#fail(reason))
  }

  #write(frame: string | undefined, error: RpcError | undefined, headers: HeaderList): void {
    const { context, received, challenge, session } = this.#options
    if (context === undefined) return
    if (frame !== undefined && error !== undefined) {
      const status = received.kind === 'invalid' ? 400 : statusInSession(error)
      return context.respond(status, [...JSON_TYPE, ...headers, ...challenge(error)], frame)
    }
    if (frame !== undefined) return context.respond(200, [...JSON_TYPE, ...headers], frame)
    // A cancelled request has no response: its stream ends without one.
    if (received.kind === 'request')
      return context.respond(200, [...STREAM_HEADERS, ...headers], '')
    if (received.kind !== 'invalid') return context.respond(202, headers)
    const { unreadableId } = session.revision
    refuse(context, new HttpErrorResponse(400, received.error, headers), undefined, unreadableId)
  }

  #openStream(): ResumableStream {
    if (this.#stream !== undefined) return this.#stream
    const { streams, context, headers, requestIds } = this.#options
    if (context === undefined) throw new Error('A stream cannot be opened: the client has left')
    this.#stream = streams.openStream(context, headers, requestIds)
    this.#detach()
    return this.#stream
  }

  #onDisconnect(): void {
    // After the response, nothing would release what is charged here.
    if (this.#stream !== undefined || this.#responded) return
    this.#disconnected = true
    this.#close()
    this.#detach()
  }

  /**
   * Forgets the context, whose connection has closed, or belongs to the stream. A call that waits for its client may last
   * long after its connection, and must not hold that.
   */
  #detach(): void {
    const { context, acknowledge, initialized, session } = this.#options
    // These respond later on their own; no handler waits.
    if (context === undefined || acknowledge !== undefined || initialized !== undefined) return
    // A copy: the connection is not part of it.
    const { headers, client } = context.http
    this.#http = { headers, client }
    this.#bytes = WAITING
    for (const [name, value = ''] of Object.entries(headers))
      this.#bytes += 2 * (name.length + value.length)
    session.pending.charge(this.#bytes)
    this.#options.context = undefined
  }

  #close(): void {
    const { streams, context } = this.#options
    if (context !== undefined) streams.openResponses.remove(context)
  }
}
