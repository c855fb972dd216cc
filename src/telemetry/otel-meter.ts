import {
  type Histogram as OtelHistogram,
  type Meter as ApiMeter,
  type MeterProvider,
  type UpDownCounter,
  metrics,
} from '@opentelemetry/api'
import { VERSION } from '../version.js'
import type { Attributes } from './attributes.js'
import { BOUNDARIES, GAUGES, type Gauge, HISTOGRAMS, type Histogram } from './conventions.js'
import type { Meter } from './measurements.js'

/** Records with OpenTelemetry. Instruments are created when they are first used: the SDK may be registered after this module is loaded. */
export class OtelMeter implements Meter {
  readonly #provider: MeterProvider | undefined
  #meter: ApiMeter | undefined
  readonly #histograms = new Map<Histogram, OtelHistogram>()
  readonly #counters = new Map<Gauge, UpDownCounter>()

  constructor(provider: MeterProvider | undefined) {
    this.#provider = provider
  }

  record(histogram: Histogram, seconds: number, attributes: Attributes): void {
    let instrument = this.#histograms.get(histogram)
    if (instrument === undefined) {
      instrument = this.#metering().createHistogram(histogram, {
        unit: 's',
        description: HISTOGRAMS[histogram],
        advice: { explicitBucketBoundaries: [...BOUNDARIES] },
      })
      this.#histograms.set(histogram, instrument)
    }
    instrument.record(seconds, attributes)
  }

  add(gauge: Gauge, difference: number): void {
    let instrument = this.#counters.get(gauge)
    if (instrument === undefined) {
      const [unit, description] = GAUGES[gauge]
      instrument = this.#metering().createUpDownCounter(gauge, { unit, description })
      this.#counters.set(gauge, instrument)
    }
    instrument.add(difference)
  }

  #metering(): ApiMeter {
    this.#meter ??= (this.#provider ?? metrics.getMeterProvider()).getMeter('ccmcp', VERSION)
    return this.#meter
  }
}
