import type { Params } from '../jsonrpc/message.js'
import type { Activity, Observer, Telemetry } from '../protocol/telemetry.js'
import { Measurements } from './measurements.js'
import { SinkObserver } from './observer.js'
import { PrometheusMeter } from './prometheus-meter.js'
import type { Observation, Sink } from './sink.js'

/** Telemetry whose metrics can be read as text. */
export interface Prometheus extends Telemetry {
  /** The metrics in the text format 0.0.4 of Prometheus. */
  text(): string
  /** The `Content-Type` of the text. */
  readonly contentType: string
}

/** Metrics in memory, for Prometheus; one object may be given to several servers and clients. */
export function prometheus(): Prometheus {
  return new PrometheusTelemetry()
}

class PrometheusTelemetry implements Prometheus, Sink {
  readonly contentType = 'text/plain; version=0.0.4; charset=utf-8'
  readonly #meter = new PrometheusMeter()
  readonly #measurements = new Measurements(this.#meter)

  compose(all: readonly Telemetry[]): Observer {
    return new SinkObserver(all)
  }

  begin(activity: Activity, params?: Params): Observation {
    return { end: this.#measurements.begin(activity, params) }
  }

  text(): string {
    return this.#meter.text()
  }
}
