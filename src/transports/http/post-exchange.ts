import type { Exchange, HttpRequest, Principal } from '../../jsonrpc/channel.js'
import type { RpcError } from '../../jsonrpc/errors.js'
import type { Invalid, Message, SentMessage, SentResponse } from '../../jsonrpc/message.js'
import type { Revision } from '../../protocol/revisions/index.js'
import type { EventLog } from './event-log.js'
import { STREAM_HEADERS } from './sse-stream.js'
import type { KeptAlive, KeepAlive } from './keep-alive.js'
import { JSON_TYPE, HttpError, refuse } from './http-error.js'
import { statusInSession } from './status.js'
import type { HeaderList, HttpContext } from './http-context.js'

/** What an exchange needs of the session that it is part of. */
export interface SessionPort {
  readonly pulse: KeepAlive
  readonly revision: Revision
  stream(visit: HttpContext, headers: HeaderList): EventLog
  finish(log: EventLog): void
  /** Sends a question over the session's own stream; false where that is not open. */
  sendElsewhere(frame: string): boolean
}

export interface PostOptions {
  home: SessionPort
  visit: HttpContext
  principal: Principal | undefined
  /** Headers that every answer carries. */
  headers: HeaderList
  /** What was sent; of a message that can be served, its kind says enough. */
  asked: Invalid | { kind: Exclude<Message['kind'], 'invalid'> }
  /** Headers of an answer that tells an error. */
  challenge(error: RpcError): HeaderList
  /** Headers of the answer that opens a session, which may have to be kept first. None where there is no answer, or nobody to have it. */
  opening?: (response: SentResponse | undefined) => HeaderList | Promise<HeaderList>
}

/**
 * A message within a session that came by POST: answered with JSON, or with a
 * stream if there is something to tell before. A connection that breaks cancels
 * nothing: what is sent from then on is kept for the client to ask for.
 */
export class PostExchange implements Exchange, KeptAlive {
  readonly principal?: Principal
  readonly #options: PostOptions
  #log: EventLog | undefined
  #gone = false
  #released = false
  #answered = false
  #failed = false
  #done: (() => void) | undefined

  constructor(options: PostOptions) {
    this.#options = options
    if (options.principal !== undefined) this.principal = options.principal
  }

  get answered(): boolean {
    return this.#answered
  }

  /** Whether the answer was an error. */
  get failed(): boolean {
    return this.#failed
  }

  /** Whether its client is still there. */
  get connected(): boolean {
    return this.#log?.connected ?? !this.#gone
  }

  get http(): HttpRequest {
    return this.#options.visit.http
  }

  get congested(): boolean {
    return this.#log?.congested ?? false
  }

  /** The answer is still to come. */
  wait(done: () => void): void {
    this.#done = done
    if (this.#log !== undefined) return
    const { visit, home } = this.#options
    home.pulse.add(this)
    visit.onGone(() => this.#lost())
  }

  send(frame: string, message?: SentMessage): void {
    const { home } = this.#options
    if (this.#answered) return
    const broken =
      this.#gone || (this.#log !== undefined && !this.#log.connected && !this.#released)
    // Somebody waits for the answer to a question: it must not wait for a client that may never ask again.
    if (broken && message?.kind === 'request' && home.sendElsewhere(frame)) return
    if (!this.#gone) this.#stream().push(frame)
  }

  reply(frame?: string, response?: SentResponse): void {
    if (this.#answered) return
    this.#answered = true
    this.#failed = response?.error !== undefined
    const { home } = this.#options
    if (this.#log !== undefined) {
      if (frame !== undefined) this.#log.push(frame)
      home.finish(this.#log)
    } else if (!this.#gone) this.#answer(frame, response)
    else void this.#options.opening?.(undefined)
    if (this.#done === undefined) return
    home.pulse.remove(this)
    this.#done()
  }

  release(): void {
    if (!this.#options.home.revision.polling || this.#answered || this.#gone) return
    const log = this.#stream()
    this.#released = true
    log.release()
  }

  /** A call that takes its time becomes a stream, which can show that it lives. */
  beat(): void {
    if (this.#options.opening === undefined) this.#stream()
  }

  #answer(frame: string | undefined, response: SentResponse | undefined): void {
    const error = response?.error
    const { headers, opening } = this.#options
    const more = opening?.(response) ?? []
    if (more instanceof Promise)
      void more.then((opened) => this.#write(frame, error, [...headers, ...opened]))
    else this.#write(frame, error, more.length === 0 ? headers : [...headers, ...more])
  }

  #write(frame: string | undefined, error: RpcError | undefined, headers: HeaderList): void {
    const { visit, asked, challenge, home } = this.#options
    if (frame !== undefined) {
      const status =
        error === undefined ? 200 : asked.kind === 'invalid' ? 400 : statusInSession(error)
      return visit.answer(
        status,
        [...JSON_TYPE, ...headers, ...(error === undefined ? [] : challenge(error))],
        frame,
      )
    }
    // A request that was cancelled gets no answer: its stream ends without one.
    if (asked.kind === 'request') return visit.answer(200, [...STREAM_HEADERS, ...headers], '')
    if (asked.kind !== 'invalid') return visit.answer(202, headers)
    refuse(visit, new HttpError(400, asked.error, headers), undefined, home.revision.unreadableId)
  }

  #stream(): EventLog {
    if (this.#log !== undefined) return this.#log
    const { home, visit, headers } = this.#options
    home.pulse.remove(this)
    this.#log = home.stream(visit, headers)
    return this.#log
  }

  #lost(): void {
    if (this.#log !== undefined) return
    this.#gone = true
    this.#options.home.pulse.remove(this)
  }
}
