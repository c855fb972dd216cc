import type { Exchange, HttpRequest, Principal } from '../../../jsonrpc/channel.js'
import { INVALID_REQUEST, PARSE_ERROR, type RpcError } from '../../../jsonrpc/errors.js'
import type { Message, SentResponse } from '../../../jsonrpc/message.js'
import { INSUFFICIENT_SCOPE } from '../../../protocol/errors.js'
import type { HeaderList, HttpContext } from '../http-context.js'
import { HttpErrorResponse, JSON_TYPE, refuse } from '../http-error-response.js'
import { statusOf } from '../status.js'

/** What an exchange needs of its session. */
export interface StreamPort {
  readonly congested: boolean
  /** Sends a message on the event stream. */
  sendMessage(frame: string): void
  /** Called when a message that was accepted without a response has got it. */
  ended(exchange: LegacySseExchange): void
}

export interface PostedMessage {
  message: Message
  context: HttpContext
  principal: Principal | undefined
  /** Headers of every response. */
  headers: HeaderList
  /** Headers of an error response. */
  challenge(error: RpcError): HeaderList
}

const TEXT_TYPE: HeaderList = ['Content-Type', 'text/plain; charset=utf-8']
/** With these errors the POST itself is refused. Any other response is sent on the stream, where clients expect it. */
const REFUSED: ReadonlySet<number> = new Set([PARSE_ERROR, INVALID_REQUEST, INSUFFICIENT_SCOPE])

/** The message of a POST: accepted with 202, while everything that belongs to it is sent on the event stream. */
export class LegacySseExchange implements Exchange {
  readonly principal?: Principal
  /** Memory of the headers, which handlers can read until the response. */
  readonly bytes: number
  readonly #session: StreamPort
  #http: HttpRequest | undefined
  /** The POST, until it is answered. */
  #posted: PostedMessage | undefined
  #ended = false

  constructor(session: StreamPort, posted: PostedMessage) {
    const { principal, context } = posted
    if (principal !== undefined) this.principal = principal
    this.#session = session
    this.#posted = posted
    // A copy: the call may last long after the POST, whose request and socket it must not retain.
    const { headers } = context.http
    this.#http = { headers }
    this.bytes = Object.entries(headers).reduce(
      (sum, [name, value = '']) => sum + 2 * (name.length + value.length),
      0,
    )
  }

  get http(): HttpRequest | undefined {
    return this.#http
  }

  get congested(): boolean {
    return this.#session.congested
  }

  /** Answers the POST, after its message was delivered; true if the response to the message follows later. */
  accept(): boolean {
    const posted = this.#posted
    this.#posted = undefined
    if (posted === undefined) return false
    const { context, headers, message } = posted
    if (message.kind === 'invalid')
      refuse(context, new HttpErrorResponse(400, message.error, headers))
    else context.respond(202, [...TEXT_TYPE, ...headers], 'Accepted')
    return !this.#ended
  }

  send(frame: string): void {
    this.#session.sendMessage(frame)
  }

  reply(frame?: string, response?: SentResponse): void {
    if (this.#ended) return
    this.#ended = true
    // A handler that never returns would keep them in memory.
    this.#http = undefined
    const posted = this.#posted
    if (posted === undefined) this.#session.ended(this)
    if (frame === undefined) return
    const error = response?.error
    if (posted === undefined || error === undefined) return this.#session.sendMessage(frame)
    const invalid = posted.message.kind === 'invalid'
    if (!invalid && !REFUSED.has(error.code)) return this.#session.sendMessage(frame)
    this.#posted = undefined
    const { context, headers, challenge } = posted
    const status = invalid ? 400 : statusOf(error)
    context.respond(status, [...JSON_TYPE, ...headers, ...challenge(error)], frame)
  }
}
