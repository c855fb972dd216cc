import type { LogEntry } from '../../jsonrpc/log-entry.js'
import type { Revision } from '../../protocol/revisions/index.js'
import type { EventStore } from '../../stores/event-store.js'
import { type EventId, EventLog } from './event-log.js'
import { SseStream } from './sse-stream.js'
import type { KeepAlive } from './keep-alive.js'
import type { HeaderList, HttpContext } from './http-context.js'

export interface StreamSettings {
  pulse: KeepAlive
  store: EventStore
  /** How many bytes may wait for a client that does not read. */
  maxWaiting: number
  /** Milliseconds after which a client should come back for a stream that was let go. */
  retry: number
  report(report: LogEntry): void
}

/** Whose streams they are. */
interface Owner {
  readonly revision: Revision
  /** When it was last used. */
  used: number
}

/** The stream that belongs to no request; the others are numbered. Behind each is the session's generation. */
const OWN = 'g'
const OF_REQUEST = 'p'
const EARLIER_OWN = /^g\d*$/
/** How many streams that have ended can be asked for again. */
const MAX_ENDED = 32

/** The streams of one session: its own, and one for each request that has more to tell than its answer. */
export class SessionStreams {
  /** The one that belongs to no request. */
  readonly own: EventLog
  readonly #session: string
  readonly #generation: number
  readonly #settings: StreamSettings
  readonly #owner: Owner
  readonly #logs = new Map<string, EventLog>()
  readonly #ended: EventLog[] = []
  #count = 0
  #listened = false

  constructor(session: string, generation: number, settings: StreamSettings, owner: Owner) {
    this.#session = session
    this.#generation = generation
    this.#settings = settings
    this.#owner = owner
    this.own = this.#make(OWN)
  }

  /** Whether a client has ever opened the session's own. */
  get listened(): boolean {
    return this.#listened
  }

  /** Whether somebody reads one of them. */
  get connected(): boolean {
    for (const log of this.#logs.values()) if (log.connected) return true
    return false
  }

  /** Opens the session's own, until its token expires; false where it is open already. */
  listen(visit: HttpContext, headers: HeaderList, expires: number | undefined): boolean {
    if (this.own.connected) return false
    this.#listened = true
    this.#connect(this.own, visit, headers, expires)
    return true
  }

  /** One for the answer of a request. */
  open(visit: HttpContext, headers: HeaderList): EventLog {
    const log = this.#make((this.#count++).toString(36) + OF_REQUEST)
    this.#connect(log, visit, headers)
    return log
  }

  /** Sends what came behind an event; false where its stream is not known. */
  resume(
    visit: HttpContext,
    event: EventId,
    headers: HeaderList,
    expires: number | undefined,
  ): boolean | Promise<boolean> {
    const log = this.#logs.get(event.stream)
    if (log === undefined)
      return this.#generation > 0 && this.#earlier(visit, event, headers, expires)
    // A call may end after its token; who only listens has to come back with a new one.
    void this.#resumed(
      log,
      this.#outlet(log, visit, headers, log === this.own ? expires : undefined),
      event.number,
    )
    return true
  }

  /** The stream has had its last message; a client may still ask for it again. */
  finish(log: EventLog): void {
    log.end()
    this.#finished(log)
  }

  /** Ends them all; their events stay where they are kept. */
  end(): void {
    for (const log of this.#logs.values()) log.end()
    this.#logs.clear()
  }

  /** Ends them all, and forgets their events. */
  drop(): void {
    for (const log of this.#logs.values()) log.drop()
    this.#logs.clear()
  }

  #make(name: string): EventLog {
    const { store, report } = this.#settings
    const log = new EventLog(
      this.#session,
      this.#generation === 0 ? name : `${name}${this.#generation}`,
      store,
      report,
    )
    this.#logs.set(log.name, log)
    return log
  }

  #connect(log: EventLog, visit: HttpContext, headers: HeaderList, expires?: number): void {
    log.connect(this.#outlet(log, visit, headers, expires))
    // A client that breaks off before the first message can come back, too.
    if (this.#owner.revision.polling) log.prime(this.#settings.retry)
  }

  #outlet(
    log: EventLog,
    visit: HttpContext,
    headers: HeaderList,
    expires: number | undefined,
  ): SseStream {
    const { pulse, maxWaiting } = this.#settings
    const gone = () => {
      log.disconnect(outlet)
      this.#owner.used = Date.now()
    }
    const end = () => {
      outlet.end()
      gone()
    }
    const until = expires === undefined ? undefined : { time: expires, end }
    const outlet: SseStream = new SseStream(visit, { pulse, maxWaiting, headers, gone, until })
    return outlet
  }

  /** A stream of an earlier process: what is left of it, and behind that, if it belonged to no request, what comes now. */
  async #earlier(
    visit: HttpContext,
    { stream, number }: EventId,
    headers: HeaderList,
    expires: number | undefined,
  ): Promise<boolean> {
    const { store, report } = this.#settings
    const events = await new EventLog(this.#session, stream, store, report).after(number)
    const own = EARLIER_OWN.test(stream)
    if (events.length === 0 && !own) return false
    const outlet = this.#outlet(this.own, visit, headers, own ? expires : undefined)
    for (const event of events) outlet.replay(event)
    this.#listened ||= own
    if (own) void this.#resumed(this.own, outlet, 0)
    else outlet.end()
    return true
  }

  async #resumed(log: EventLog, outlet: SseStream, after: number): Promise<void> {
    try {
      await log.resume(outlet, after)
    } catch (error) {
      this.#settings.report({
        level: 'error',
        message: 'The events of a stream could not be fetched',
        error,
      })
      // Its client comes back, and asks for the same again.
      log.disconnect(outlet)
      outlet.end()
    }
    if (log.ended) this.#finished(log)
  }

  #finished(log: EventLog): void {
    if (this.#ended.includes(log)) return
    this.#ended.push(log)
    if (this.#ended.length <= MAX_ENDED) return
    const oldest = this.#ended.shift()
    if (oldest === undefined) return
    oldest.drop()
    this.#logs.delete(oldest.name)
  }
}
