import { type Attributes, type SpanKind, context, propagation, trace } from '@opentelemetry/api'
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks'
import {
  CompositePropagator,
  W3CBaggagePropagator,
  W3CTraceContextPropagator,
} from '@opentelemetry/core'
import type { InMemoryMetricExporter } from '@opentelemetry/sdk-metrics'
import {
  BasicTracerProvider,
  InMemorySpanExporter,
  type ReadableSpan,
  SimpleSpanProcessor,
} from '@opentelemetry/sdk-trace-base'

/* The OpenTelemetry SDK, as an application sets it up, with what it exports kept in memory. */

const spanExporter = new InMemorySpanExporter()
const tracerProvider = new BasicTracerProvider({
  spanProcessors: [new SimpleSpanProcessor(spanExporter)],
})
// Another test may have made vitest load this module again in the same process.
for (const global of [context, propagation, trace]) global.disable()
context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable())
propagation.setGlobalPropagator(
  new CompositePropagator({
    propagators: [new W3CTraceContextPropagator(), new W3CBaggagePropagator()],
  }),
)
trace.setGlobalTracerProvider(tracerProvider)

export const tracer = trace.getTracer('test')

/** The finished spans, oldest first, since the last call. */
export function takeSpans(): ReadableSpan[] {
  const spans = spanExporter.getFinishedSpans()
  spanExporter.reset()
  return spans
}

/** The one span with this name and kind. */
export function only(spans: readonly ReadableSpan[], name: string, kind?: SpanKind): ReadableSpan {
  const found = spans.filter((span) => span.name === name && (kind ?? span.kind) === span.kind)
  if (found.length === 1 && found[0] !== undefined) return found[0]
  throw new Error(
    `${found.length} spans "${name}" among ${spans.map((span) => `${span.name} (${span.kind})`).join(', ')}`,
  )
}

export interface Point {
  readonly attributes: Attributes
  /** Of a histogram the number of values, otherwise the value. */
  readonly value: number
  readonly boundaries?: readonly number[]
}

/** The exported points of a metric. */
export function pointsIn(
  exporter: InMemoryMetricExporter,
  name: string,
): { unit: string; points: Point[] } {
  for (const { scopeMetrics } of exporter.getMetrics())
    for (const { metrics } of scopeMetrics)
      for (const { descriptor, dataPoints } of metrics) {
        if (descriptor.name !== name) continue
        const points = dataPoints.map(({ attributes, value }): Point => {
          if (typeof value === 'number') return { attributes, value }
          if ('buckets' in value)
            return { attributes, value: value.count, boundaries: value.buckets.boundaries }
          throw new Error('not a histogram with explicit boundaries')
        })
        return { unit: descriptor.unit, points }
      }
  return { unit: '', points: [] }
}
