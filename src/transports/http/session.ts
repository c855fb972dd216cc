import type { Channel, Receiver } from '../../jsonrpc/channel.js'
import type { Message } from '../../jsonrpc/message.js'
import type { Report } from '../../jsonrpc/report.js'
import { type Revision, byHandshake, newestHandshake } from '../../protocol/revisions/index.js'
import type { ReplayStore } from '../../stores/replay.js'
import type { Conversation } from './conversation.js'
import { EventLog } from './event-log.js'
import { Outlet } from './outlet.js'
import { type Home, PostExchange, type PostOptions } from './post-exchange.js'
import type { Pulse } from './pulse.js'
import type { HeaderList, Visit } from './visit.js'

export interface SessionSettings {
  pulse: Pulse
  store: ReplayStore
  maxWaiting: number
  /** Milliseconds after which a client should come back for a stream that was let go. */
  retry: number
  report(report: Report): void
}

/** The name of the stream that belongs to no request. */
const OWN = 'g'
/** How many streams that have ended can be asked for again. */
const MAX_ENDED = 32

/**
 * A client that has shaken hands, over as many HTTP requests as it likes. What
 * belongs to a request goes into its answer; the rest goes to the stream that
 * the client opens with GET.
 */
export class HttpSession implements Channel, Home {
  readonly id: string
  /** Who has opened it: nobody else may use it. */
  readonly owner: string | undefined
  readonly #settings: SessionSettings
  readonly #own: EventLog
  readonly #logs = new Map<string, EventLog>()
  readonly #ended: EventLog[] = []
  readonly #pending = new Set<PostExchange>()
  #receiver: Receiver | undefined
  #conversation: Conversation | undefined
  #agreed: string | undefined
  #revision = newestHandshake
  #listened = false
  #streams = 0
  #closed = false
  /** When it was last used. */
  used = Date.now()

  constructor(id: string, owner: string | undefined, settings: SessionSettings, open: (channel: Channel) => Conversation) {
    this.id = id
    this.owner = owner
    this.#settings = settings
    this.#own = new EventLog(id, OWN, settings.store)
    this.#logs.set(OWN, this.#own)
    this.#conversation = open(this)
  }

  /** The revision that it has agreed on, as it was answered. */
  get agreed(): string | undefined {
    return this.#agreed
  }

  get revision(): Revision {
    return this.#revision
  }

  /** Whether its client waits for an answer or has a stream open. A call alone does not count: it may wait for a client that is gone. */
  get busy(): boolean {
    for (const exchange of this.#pending) if (exchange.connected) return true
    for (const log of this.#logs.values()) if (log.connected) return true
    return false
  }

  get pulse(): Pulse {
    return this.#settings.pulse
  }

  /** `initialize` was answered: with a revision it has begun. */
  begin(answer: string): boolean {
    const { result } = JSON.parse(answer) as { result?: { protocolVersion?: string } } // our own answer
    this.#agreed = result?.protocolVersion
    this.#revision = byHandshake.find(({ id }) => id === this.#agreed) ?? newestHandshake
    return this.#agreed !== undefined
  }

  /** Serves a message that came by POST. */
  post(text: string, message: Message, options: Omit<PostOptions, 'home' | 'message'>): void {
    const exchange = new PostExchange({ ...options, home: this, message })
    this.used = Date.now()
    this.#receiver?.frame(text, exchange, message)
    if (exchange.answered) return
    this.#pending.add(exchange)
    exchange.wait(() => {
      this.#pending.delete(exchange)
      this.used = Date.now()
    })
  }

  /** Opens the stream that belongs to no request; false where it is open already. */
  listen(visit: Visit, headers: HeaderList): boolean {
    if (this.#own.connected) return false
    this.#listened = true
    this.#connect(this.#own, visit, headers)
    return true
  }

  /** Sends what came behind an event; false where its stream is not known. */
  resume(visit: Visit, stream: string, after: number, headers: HeaderList): boolean {
    const log = this.#logs.get(stream)
    if (log === undefined) return false
    const outlet = this.#outlet(log, visit, headers)
    void this.#resumed(log, outlet, after)
    return true
  }

  /** A stream for the answer of a request. */
  stream(visit: Visit, headers: HeaderList): EventLog {
    const log = new EventLog(this.id, (this.#streams++).toString(36) + 'p', this.#settings.store)
    this.#logs.set(log.name, log)
    this.#connect(log, visit, headers)
    return log
  }

  /** The stream has had its last message; a client may still ask for it again. */
  finish(log: EventLog): void {
    log.end()
    this.#end(log)
  }

  /** Whether the stream that belongs to no request is not read. */
  get congested(): boolean {
    return this.#own.congested
  }

  receive(receiver: Receiver): void {
    this.#receiver = receiver
  }

  /** What belongs to no request. Nobody listens before the first GET: then there is nobody to tell. */
  send(frame: string): void {
    if (this.#listened && !this.#closed) this.#own.push(frame)
  }

  /** Sends a question whose own stream has broken; false where there is no other. */
  sendElsewhere(frame: string): boolean {
    if (!this.#own.connected) return false
    this.#own.push(frame)
    return true
  }

  /** Waits for what is under way, and ends every stream. */
  async drain(deadline: number): Promise<void> {
    await this.#conversation?.drain(deadline)
  }

  /** Ends it: what is under way is cancelled. */
  end(): void {
    if (this.#closed) return
    this.#closed = true
    this.#receiver?.closed()
    for (const log of this.#logs.values()) log.drop()
    this.#logs.clear()
  }

  close(): Promise<void> {
    this.end()
    return Promise.resolve()
  }

  #connect(log: EventLog, visit: Visit, headers: HeaderList): void {
    log.connect(this.#outlet(log, visit, headers))
    // A client that breaks off before the first message can come back, too.
    if (this.revision.polling) log.prime(this.#settings.retry)
  }

  #outlet(log: EventLog, visit: Visit, headers: HeaderList): Outlet {
    const { pulse, maxWaiting } = this.#settings
    const outlet: Outlet = new Outlet(visit, {
      pulse,
      maxWaiting,
      headers,
      gone: () => {
        log.disconnect(outlet)
        this.used = Date.now()
      },
    })
    return outlet
  }

  async #resumed(log: EventLog, outlet: Outlet, after: number): Promise<void> {
    try {
      await log.resume(outlet, after)
    } catch (error) {
      this.#settings.report({ level: 'error', message: 'The events of a stream could not be fetched', error })
      // Its client comes back, and asks for the same again.
      outlet.end()
    }
    if (log.ended) this.#end(log)
  }

  #end(log: EventLog): void {
    if (this.#ended.includes(log)) return
    this.#ended.push(log)
    if (this.#ended.length <= MAX_ENDED) return
    const oldest = this.#ended.shift()
    if (oldest === undefined) return
    oldest.drop()
    this.#logs.delete(oldest.name)
  }
}
