import type { Address, ConnectionFacts, HttpRequest } from '../jsonrpc/channel.js'
import type { CallObserver } from '../jsonrpc/incoming.js'
import type { LogEntry, TraceIds } from '../jsonrpc/log-entry.js'
import type { Id, Params } from '../jsonrpc/message.js'
import type { Sending } from '../jsonrpc/outgoing.js'

/** Spans and metrics of servers and clients: `otel()` of `ccmcp/telemetry` and `prometheus()` of `ccmcp/prometheus` return one. */
export interface Telemetry {
  /** Returns the observer of all telemetry of one server or client. Servers without telemetry do not load that code. */
  compose(all: readonly Telemetry[]): Observer
}

/** The telemetry hooks that a server or client calls. They never throw; failures are logged. */
export interface Observer {
  /** A request or a notification was received. */
  received(message: ObservedMessage, session: ObservedSession, http?: HttpRequest): Observed
  /** A request is about to be sent. */
  sending(message: ObservedMessage, session: ObservedSession): Sending
  begin(activity: Activity, report: (entry: LogEntry) => void): Observed
  /** Returns a function that runs something in the context that is active now. */
  capture(report: (entry: LogEntry) => void): (work: () => void) => void
  /** The active trace context, for a task that is run later. */
  carrier(report: (entry: LogEntry) => void): Carrier | undefined
  /** The active trace, for the log. */
  trace(report: (entry: LogEntry) => void): TraceIds | undefined
  /** Returns an observer that also reports to `added`. */
  with(added: Telemetry): Observer
}

export type Observed = CallObserver

export interface ObservedMessage {
  readonly id?: Id | undefined
  readonly method: string
  readonly params?: Params | undefined
}

/** What telemetry needs to know of a session. */
export interface ObservedSession {
  /** The revision of `initialize`, as soon as it is known. */
  readonly negotiated: string | undefined
  readonly connection: ConnectionFacts | undefined
  /** Whether the server or client has this method of an extension. */
  hasMethod(method: string): boolean
  /** Whether there is such a tool or prompt. */
  hasTarget(method: string, name: string): boolean
  report(entry: LogEntry): void
}

/** A trace context, as members of `_meta`. */
export type Carrier = Readonly<Record<string, string>>

/** How something has ended: with an error if there is one. */
export interface Outcome {
  readonly result?: unknown
  readonly error?: unknown
}

/** A request or a notification. What is not known when it begins may be known when it ends. */
export interface Operation {
  readonly kind: 'received' | 'sent'
  readonly method: string
  /** Undefined for a notification. */
  readonly id: Id | undefined
  /** Whether this program has the method, and the tool or prompt. Other names are those of a peer, who can send any number of them. */
  readonly knownMethod: boolean
  readonly knownTarget: boolean
  readonly revision: string | undefined
  readonly connection: ConnectionFacts | undefined
  /** The address of a client, over HTTP. */
  readonly client: Address | undefined
}

/** A session, from `initialize` to its end. */
interface SessionActivity {
  readonly kind: 'session'
  readonly role: 'server' | 'client'
  readonly revision: string | undefined
  readonly connection: ConnectionFacts | undefined
}

/** One run of the handler of a task. */
export interface TaskActivity {
  readonly kind: 'task'
  readonly tool: string
  /** Names the task in logs; it is not the task id that clients use. */
  readonly task: string
  readonly attempt: number
  /** The trace context of the call that has created the task. */
  readonly origin: Carrier | undefined
}

/** `call.step`, when it is run and not replayed. */
interface StepActivity {
  readonly kind: 'step'
  readonly key: string
}

export type Activity = Operation | SessionActivity | TaskActivity | StepActivity

/** Adds the active trace to log entries. They are changed, not copied: there may be one for each request. */
export function tracedReport(
  observer: Observer,
  report: (entry: LogEntry) => void,
): (entry: LogEntry) => void {
  return (entry) => {
    const trace = observer.trace(report)
    if (trace !== undefined) entry.trace = trace
    report(entry)
  }
}

/** The observer of an option; throws if its value is something else. */
export function observerOf(
  where: string,
  option: Telemetry | readonly Telemetry[] | undefined,
): Observer | undefined {
  const all = option === undefined ? [] : [option].flat()
  for (const each of all as readonly Partial<Telemetry>[])
    if (typeof each?.compose !== 'function')
      throw new TypeError(
        `${where}: "telemetry" must be the return value of otel() or prometheus(), or an array of them`,
      )
  return all[0]?.compose(all)
}
