import type { HttpRequest } from '../jsonrpc/channel.js'
import { callHook } from '../jsonrpc/hook.js'
import type { LogEntry, TraceIds } from '../jsonrpc/log-entry.js'
import { type Params, isObject } from '../jsonrpc/message.js'
import type { Sending } from '../jsonrpc/outgoing.js'
import type {
  Activity,
  Carrier,
  Observed,
  ObservedMessage,
  ObservedSession,
  Observer,
  Outcome,
  Telemetry,
} from '../protocol/telemetry.js'
import { MessageOperation, isFrequent } from './operation.js'
import type { Observation, Sink } from './sink.js'

type Report = (entry: LogEntry) => void

/** Calls the sinks of a server or a client, and contains their failures. */
export class SinkObserver implements Observer {
  readonly #sinks: readonly Sink[]

  constructor(sinks: readonly Telemetry[]) {
    this.#sinks = sinks as readonly Sink[] // nothing else has a `compose`
  }

  with(added: Telemetry): Observer {
    return new SinkObserver([...this.#sinks, added])
  }

  received(message: ObservedMessage, session: ObservedSession, http?: HttpRequest): Observed {
    const report = (entry: LogEntry) => session.report(entry)
    if (isFrequent(message.method)) return new SinkObservations([], report)
    const operation = new MessageOperation('received', message, session, http?.client)
    return this.#begin(operation, message.params, report)
  }

  sending(message: ObservedMessage, session: ObservedSession): Sending {
    const operation = new MessageOperation('sent', message, session)
    const observed = this.#begin(operation, message.params, (entry) => session.report(entry))
    return {
      params: observed.withMeta(message.params),
      run: (send) => observed.run(send),
      ended(outcome) {
        operation.ended(outcome)
        observed.end(outcome)
      },
    }
  }

  begin(activity: Activity, report: Report): Observed {
    return this.#begin(activity, undefined, report)
  }

  #begin(activity: Activity, params: Params | undefined, report: Report): SinkObservations {
    const begun: Observation[] = []
    for (const sink of this.#sinks)
      contain(report, () => {
        const observation: unknown = sink.begin(activity, params)
        if (isObservation(observation)) begun.push(observation)
        return observation
      })
    return new SinkObservations(begun, report)
  }

  capture(report: Report): (work: () => void) => void {
    const captured: Observation[] = []
    for (const sink of this.#sinks)
      contain(report, () => {
        const run: unknown = sink.capture?.()
        if (typeof run === 'function')
          captured.push({ run: run as (work: () => void) => void, end() {} }) // as its type says
        return run
      })
    const observed = new SinkObservations(captured, report)
    return (work) => observed.run(work)
  }

  carrier(report: Report): Carrier | undefined {
    return joined(this.#sinks, (each) => each.carrier?.(), report)
  }

  trace(report: Report): TraceIds | undefined {
    let ids: TraceIds | undefined
    for (const sink of this.#sinks)
      contain(report, () => {
        const given: unknown = sink.trace?.()
        if (isTraceIds(given)) ids ??= given
        return given
      })
    return ids
  }
}

/** One activity, as all sinks observe it. */
class SinkObservations implements Observed {
  readonly #observations: readonly Observation[]
  readonly #report: Report

  constructor(observations: readonly Observation[], report: Report) {
    this.#observations = observations
    this.#report = report
  }

  /** The params of a request that is sent, with the trace context in `_meta`. */
  withMeta(params: Params | undefined): Params | undefined {
    const meta = joined(this.#observations, (each) => each.meta, this.#report)
    if (meta === undefined) return params
    const own = isObject(params?.['_meta']) ? params['_meta'] : {}
    return { ...params, _meta: { ...own, ...meta } }
  }

  /** Runs the work once, whatever the sinks do. */
  run<Result>(work: () => Result): Result {
    let run = work
    for (const observation of this.#observations)
      if (observation.run !== undefined) run = this.#within(observation, run)
    return run()
  }

  #within<Result>(observation: Observation, work: () => Result): () => Result {
    return () => {
      const ran: ({ result: Result } | { thrown: unknown })[] = []
      const once = () => {
        if (ran.length > 0) return
        try {
          ran.push({ result: work() })
        } catch (thrown) {
          ran.push({ thrown })
        }
      }
      contain(this.#report, () => observation.run?.(once))
      once()
      const [outcome] = ran
      if (outcome !== undefined && 'result' in outcome) return outcome.result
      throw outcome?.thrown
    }
  }

  end(outcome: Outcome): void {
    for (const observation of this.#observations)
      contain(this.#report, () => observation.end(outcome))
  }
}

function isObservation(value: unknown): value is Observation {
  return isObject(value) && typeof value['end'] === 'function'
}

function isTraceIds(value: unknown): value is TraceIds {
  return (
    isObject(value) && typeof value['traceId'] === 'string' && typeof value['spanId'] === 'string'
  )
}

/** The members of all carriers that are strings. */
function joined<Each>(
  list: readonly Each[],
  carrierOf: (each: Each) => Carrier | undefined,
  report: Report,
): Carrier | undefined {
  const members: [string, string][] = []
  for (const each of list)
    contain(report, () => {
      const carrier = carrierOf(each)
      for (const [name, value] of Object.entries(carrier ?? {}))
        if (typeof value === 'string') members.push([name, value])
      return carrier
    })
  return members.length === 0 ? undefined : Object.fromEntries(members)
}

function contain(report: Report, call: () => unknown): void {
  callHook(call, (error) => report({ level: 'error', message: 'telemetry failed', error }))
}
