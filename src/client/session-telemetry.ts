import type { Channel, ConnectionFacts } from '../jsonrpc/channel.js'
import type { IncomingRequest } from '../jsonrpc/incoming.js'
import type { LogEntry } from '../jsonrpc/log-entry.js'
import type { Id, Notification, Params } from '../jsonrpc/message.js'
import type { Sending } from '../jsonrpc/outgoing.js'
import type { Revision } from '../protocol/revisions/index.js'
import type { Observed, ObservedSession, Observer } from '../protocol/telemetry.js'

interface TelemetryOptions {
  readonly observer: Observer
  readonly channel: Channel
  revision(): Revision | undefined
  /** Whether an extension of the client has the method. */
  isExtension(method: string): boolean
  report(entry: LogEntry): void
}

/** What telemetry observes of a client's session. */
export class SessionTelemetry implements ObservedSession {
  readonly #options: TelemetryOptions
  #session: Observed | undefined

  constructor(options: TelemetryOptions) {
    this.#options = options
  }

  get negotiated(): string | undefined {
    return this.#options.revision()?.id
  }

  get connection(): ConnectionFacts | undefined {
    return this.#options.channel.connection
  }

  hasMethod(method: string): boolean {
    return this.#options.isExtension(method)
  }

  /** The names of tools and prompts that it requests are those of this program. */
  hasTarget(): boolean {
    return true
  }

  report(entry: LogEntry): void {
    this.#options.report(entry)
  }

  readonly sending = (id: Id, method: string, params: unknown): Sending => {
    const sent = { id, method, params: params as Params } // those of MCP are objects
    return this.#options.observer.sending(sent, this)
  }

  /** Serves a request of the server. */
  serve(call: IncomingRequest, serve: () => unknown): unknown {
    const observed = this.#options.observer.received(call.request, this)
    call.observed = observed
    return observed.run(serve)
  }

  notified(notification: Notification, handle: () => void): void {
    const observed = this.#options.observer.received(notification, this)
    try {
      observed.run(handle)
    } finally {
      observed.end({})
    }
  }

  /** `initialize` has succeeded; it may do so again, in a new session. */
  opened(): void {
    this.closed()
    const { negotiated: revision, connection } = this
    const session = { kind: 'session', role: 'client', revision, connection } as const
    this.#session = this.#options.observer.begin(session, (entry) => this.report(entry))
  }

  closed(error?: Error): void {
    this.#session?.end({ error })
    this.#session = undefined
  }
}
