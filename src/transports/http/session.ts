import type { Budget } from '../../jsonrpc/budget.js'
import type { Channel, Principal, Receiver } from '../../jsonrpc/channel.js'
import { type Message, type SentResponse, read } from '../../jsonrpc/message.js'
import {
  type Revision,
  handshakeRevisions,
  newestHandshakeRevision,
} from '../../protocol/revisions/index.js'
import type { MethodFacts } from '../../protocol/methods.js'
import type { ServedChannel } from './served-channel.js'
import type { EventId, EventLog } from './event-log.js'
import { type SessionPort, PostExchange, type PostOptions } from './post-exchange.js'
import type { KeepAlive } from './keep-alive.js'
import { nameOf } from './session-id.js'
import { SessionStreams, type StreamSettings } from './session-streams.js'
import { SessionState, factsOf } from './session-state.js'
import type { HeaderList, HttpContext } from './http-context.js'

export interface SessionSettings extends StreamSettings {
  /** The bytes that it may hold: of requests in progress, and beyond them. */
  pending: Budget
  retained: Budget
  methodFacts(method: string): MethodFacts | undefined
  /** A session has been told something that is to be remembered. */
  told(session: HttpSession): void
}

export interface SessionFacts {
  id: string
  /** Who has opened it: nobody else may use it. */
  owner: string | undefined
  /** An `initialize` that says what is remembered of the client. */
  opening: string
  /** What the names of its streams have behind them; 0 in the process that has opened it. */
  generation: number
}

/** What is left of a session that another process had. */
export interface StoredState {
  /** What `initialize` was, and what mattered of its answer. */
  readonly opening: string
  readonly agreed: string
  readonly offers: string
  /** What its client has told it since. */
  readonly told: readonly string[]
}

/** What a session holds of its `initialize`: what was read of it, its text, and the copy in a store. */
export function openingBytes(opening: string): number {
  return 6 * opening.length
}

/**
 * A client that has shaken hands, over as many HTTP requests as it likes. What
 * belongs to a request goes into its answer; the rest goes to the stream that
 * the client opens with GET.
 */
export class HttpSession implements Channel, SessionPort {
  readonly id: string
  readonly owner: string | undefined
  /** By what stores know it. */
  readonly name: string
  readonly told: SessionState
  readonly #settings: SessionSettings
  readonly #streams: SessionStreams
  readonly #pending = new Set<PostExchange>()
  #receiver: Receiver | undefined
  #conversation: ServedChannel | undefined
  #agreed: string | undefined
  #offers = ''
  #revision = newestHandshakeRevision
  #closed = false
  readonly pending: Budget
  readonly retained: Budget
  /** When it was last used. */
  used = Date.now()
  /** When it was last kept. */
  kept = 0

  constructor(
    { id, owner, opening, generation }: SessionFacts,
    settings: SessionSettings,
    open: (channel: Channel) => ServedChannel,
  ) {
    this.id = id
    this.owner = owner
    this.pending = settings.pending
    this.retained = settings.retained
    this.retained.charge(openingBytes(opening))
    this.told = new SessionState(opening, this.retained)
    this.name = nameOf(id)
    this.#settings = settings
    this.#streams = new SessionStreams(this.name, generation, settings, this)
    this.#conversation = open(this)
  }

  /** The revision that it has agreed on, as it was answered. */
  get agreed(): string | undefined {
    return this.#agreed
  }

  /** What its client has been told that the server can do. */
  get offers(): string {
    return this.#offers
  }

  get revision(): Revision {
    return this.#revision
  }

  /** Whether its client waits for an answer or has a stream open. A call alone does not count: it may wait for a client that is gone. */
  get busy(): boolean {
    for (const exchange of this.#pending) if (exchange.connected) return true
    return this.#streams.connected
  }

  get pulse(): KeepAlive {
    return this.#settings.pulse
  }

  /** Whether it has ended, in this process at least. */
  get closed(): boolean {
    return this.#closed
  }

  /** `initialize` was answered: with a revision it has begun. */
  begin({ result }: SentResponse): boolean {
    const { protocolVersion, capabilities } = (result ?? {}) as {
      protocolVersion?: string
      capabilities?: object
    } // our own result
    this.#agreed = protocolVersion
    this.#offers = JSON.stringify(capabilities)
    this.#revision =
      handshakeRevisions.find(({ id }) => id === this.#agreed) ?? newestHandshakeRevision
    return this.#agreed !== undefined
  }

  /** Takes up what another process has had; false where the server would answer its client otherwise today. */
  async restore(past: StoredState, principal: Principal | undefined): Promise<boolean> {
    const answer = await this.#repeat(past.opening, principal)
    if (
      answer === undefined ||
      !this.begin(answer) ||
      this.#agreed !== past.agreed ||
      this.#offers !== past.offers
    )
      return false
    for (const frame of past.told) {
      this.told.note(factsOf(read(frame), this.#settings.methodFacts))
      await this.#repeat(frame, principal)
    }
    return true
  }

  /** Serves a message that came before. Nobody hears the answer: it was given then. */
  #repeat(frame: string, principal: Principal | undefined): Promise<SentResponse | undefined> {
    return new Promise((resolve) => {
      // A response says what it is only until it was sent.
      const reply = (_frame?: string, response?: SentResponse) =>
        resolve(
          response && {
            kind: 'response',
            id: response.id,
            result: response.result,
            error: response.error,
          },
        )
      const exchange = { send: () => {}, reply }
      this.#receiver?.frame(frame, principal === undefined ? exchange : { ...exchange, principal })
    })
  }

  /** Serves a message that came by POST. */
  post(text: string, message: Message, options: Omit<PostOptions, 'home' | 'asked'>): void {
    const asked = message.kind === 'invalid' ? message : { kind: message.kind }
    const exchange = new PostExchange({ ...options, home: this, asked })
    const facts = factsOf(message, this.#settings.methodFacts)
    this.used = Date.now()
    this.#receiver?.frame(text, exchange, message)
    if (exchange.answered) return this.#note(exchange, facts)
    this.#wait(exchange, facts)
  }

  /** Apart from `post`, so that the message itself is not held until it is answered. */
  #wait(exchange: PostExchange, facts: ReturnType<typeof factsOf>): void {
    this.#pending.add(exchange)
    exchange.wait(() => {
      this.#pending.delete(exchange)
      this.used = Date.now()
      this.#note(exchange, facts)
    })
  }

  #note({ failed }: PostExchange, facts: ReturnType<typeof factsOf>): void {
    if (!failed && this.told.note(facts)) this.#settings.told(this)
  }

  /** Opens the stream that belongs to no request; false where it is open already. */
  listen(visit: HttpContext, headers: HeaderList, expires: number | undefined): boolean {
    return this.#streams.listen(visit, headers, expires)
  }

  /** Sends what came behind an event; false where its stream is not known. */
  resume(
    visit: HttpContext,
    event: EventId,
    headers: HeaderList,
    expires: number | undefined,
  ): boolean | Promise<boolean> {
    return this.#streams.resume(visit, event, headers, expires)
  }

  /** A stream for the answer of a request. */
  stream(visit: HttpContext, headers: HeaderList): EventLog {
    return this.#streams.open(visit, headers)
  }

  finish(log: EventLog): void {
    this.#streams.finish(log)
  }

  /** Whether the stream that belongs to no request is not read. */
  get congested(): boolean {
    return this.#streams.own.congested
  }

  receive(receiver: Receiver): void {
    this.#receiver = receiver
  }

  /** What belongs to no request. Nobody listens before the first GET: then there is nobody to tell. */
  send(frame: string): void {
    if (this.#streams.listened && !this.#closed) this.#streams.own.push(frame)
  }

  /** Sends a question whose own stream has broken; false where there is no other. */
  sendElsewhere(frame: string): boolean {
    if (!this.#streams.own.connected) return false
    this.#streams.own.push(frame)
    return true
  }

  /** Waits for what is under way, and ends every stream. */
  async drain(deadline: number): Promise<void> {
    await this.#conversation?.drain(deadline)
  }

  /** Ends it: what is under way is cancelled. */
  end(): void {
    this.#streams.drop()
    this.leave()
  }

  /** Ends it in this process: its events stay where they are kept. */
  leave(): void {
    if (this.#closed) return
    this.#closed = true
    this.#receiver?.closed()
    this.#streams.end()
    this.retained.close()
  }

  close(): Promise<void> {
    this.end()
    return Promise.resolve()
  }
}
