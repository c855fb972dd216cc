import {
  type Context,
  type Link,
  type MeterProvider,
  ROOT_CONTEXT,
  type Span,
  SpanKind,
  SpanStatusCode,
  type Tracer,
  type TracerProvider,
  context,
  isSpanContextValid,
  propagation,
  trace,
} from '@opentelemetry/api'
import type { TraceIds } from '../jsonrpc/log-entry.js'
import { type Params, isObject } from '../jsonrpc/message.js'
import { checkNames, namesOf } from '../schema/names.js'
import type {
  Activity,
  Carrier,
  Observer,
  Operation,
  Outcome,
  TaskActivity,
  Telemetry,
} from '../protocol/telemetry.js'
import { VERSION } from '../version.js'
import {
  bounded,
  failureOf,
  resultTypeOf,
  sessionAttributes,
  spanAttributes,
  spanNameOf,
  subjectOf,
} from './attributes.js'
import * as name from './conventions.js'
import { Measurements } from './measurements.js'
import { SinkObserver } from './observer.js'
import { OtelMeter } from './otel-meter.js'
import type { Observation, Sink } from './sink.js'

export interface OtelOptions {
  /** How the trace context in the `_meta` of a received request is used (default `parent`). `link` and `ignore` are for servers whose clients are not trusted: clients then decide neither trace ids, nor sampling, nor baggage. */
  incoming?: 'parent' | 'link' | 'ignore'
  /** Records the arguments of tool calls in spans, as JSON of at most 8,192 characters (default false). They may be secret. */
  recordArguments?: boolean
  /** Records the results of tool calls in the same way (default false). */
  recordResults?: boolean
  /** Where spans go (default: the provider that is registered with `@opentelemetry/api`). */
  tracerProvider?: TracerProvider
  /** Where metrics go (default: the provider that is registered). */
  meterProvider?: MeterProvider
}

const OPTIONS = namesOf<OtelOptions>()(
  'incoming recordArguments recordResults tracerProvider meterProvider',
)
const INCOMING: readonly unknown[] = ['parent', 'link', 'ignore']

/** Maximum characters of recorded arguments and results, and of a member of a carrier. */
const MAX_CONTENT = 8192

/** Spans and metrics by OpenTelemetry. Without an SDK that is registered, nothing is recorded. */
export function otel(options: OtelOptions = {}): Telemetry {
  checkNames('otel', options, OPTIONS)
  if (options.incoming !== undefined && !INCOMING.includes(options.incoming))
    throw new TypeError(
      `otel: "incoming" must be one of ${INCOMING.join(', ')}, not ${JSON.stringify(options.incoming)}`,
    )
  return new OtelTelemetry(options)
}

class OtelTelemetry implements Sink {
  readonly #options: OtelOptions
  readonly #measurements: Measurements
  #tracer: Tracer | undefined

  constructor(options: OtelOptions) {
    this.#options = options
    this.#measurements = new Measurements(new OtelMeter(options.meterProvider))
  }

  compose(all: readonly Telemetry[]): Observer {
    return new SinkObserver(all)
  }

  begin(activity: Activity, params?: Params): Observation {
    const measured = this.#measurements.begin(activity, params)
    switch (activity.kind) {
      case 'received':
        return this.#received(activity, params, measured)
      case 'sent':
        return this.#sent(activity, params, measured)
      case 'task':
        return this.#task(activity, measured)
      case 'step': {
        const key = bounded(activity.key)
        const span = this.#tracing().startSpan(`step ${key}`, {
          attributes: { [name.STEP_KEY]: key },
        })
        return observation(span, trace.setSpan(context.active(), span), (outcome) =>
          endSpan(span, outcome),
        )
      }
      case 'session':
        return { end: measured }
    }
  }

  capture(): (work: () => void) => void {
    const active = context.active()
    return (work) => context.with(active, work)
  }

  carrier(): Carrier | undefined {
    return inject(context.active())
  }

  trace(): TraceIds | undefined {
    const active = trace.getSpanContext(context.active())
    if (active === undefined || !isSpanContextValid(active)) return undefined
    return { traceId: active.traceId, spanId: active.spanId }
  }

  #tracing(): Tracer {
    this.#tracer ??= (this.#options.tracerProvider ?? trace.getTracerProvider()).getTracer(
      'ccmcp',
      VERSION,
    )
    return this.#tracer
  }

  #received(
    operation: Operation,
    params: Params | undefined,
    measured: (outcome: Outcome) => void,
  ): Observation {
    const meta = isObject(params?.['_meta']) ? params['_meta'] : {}
    const { parent, links } = this.#parentOf(meta)
    const span = this.#start(operation, params, SpanKind.SERVER, links, parent)
    return observation(span, trace.setSpan(parent, span), (outcome) => {
      measured(outcome)
      this.#end(span, operation, outcome)
    })
  }

  #sent(
    operation: Operation,
    params: Params | undefined,
    measured: (outcome: Outcome) => void,
  ): Observation {
    const parent = context.active()
    const span = this.#start(operation, params, SpanKind.CLIENT, [], parent)
    const active = trace.setSpan(parent, span)
    const ended = (outcome: Outcome) => {
      measured(outcome)
      this.#end(span, operation, outcome)
    }
    return { ...observation(span, active, ended), meta: inject(active) }
  }

  /** A child of the call that has created the task, and linked to it: the call has ended before. */
  #task(
    { tool, task, attempt, origin }: TaskActivity,
    measured: (outcome: Outcome) => void,
  ): Observation {
    const parent = extract(ROOT_CONTEXT, origin ?? {})
    const span = this.#tracing().startSpan(
      `task ${bounded(tool)}`,
      {
        attributes: {
          [name.TOOL_NAME]: bounded(tool),
          [name.TASK_NAME]: bounded(task),
          [name.TASK_ATTEMPT]: attempt,
        },
        links: linksTo(parent),
      },
      parent,
    )
    return observation(span, trace.setSpan(parent, span), (outcome) => {
      measured(outcome)
      this.#recordType(span, outcome)
      endSpan(span, outcome)
    })
  }

  #recordType(span: Span, outcome: Outcome): void {
    const type = resultTypeOf(outcome)
    if (type !== undefined) span.setAttribute(name.RESULT_TYPE, type)
  }

  /** The conventions: the context of the message is the parent, the one of the transport is linked. */
  #parentOf(meta: Readonly<Record<string, unknown>>): { parent: Context; links: Link[] } {
    const { incoming = 'parent' } = this.#options
    const ambient = context.active()
    if (incoming === 'ignore') return { parent: ambient, links: [] }
    const remote = extract(trace.deleteSpan(ambient), meta)
    const links = linksTo(remote)
    if (links.length === 0) return { parent: extract(ambient, meta), links: [] }
    return incoming === 'link'
      ? { parent: ambient, links }
      : { parent: remote, links: linksTo(ambient) }
  }

  #start(
    operation: Operation,
    params: Params | undefined,
    kind: SpanKind,
    links: Link[],
    parent: Context,
  ): Span {
    const subject = subjectOf(operation.method, params)
    const attributes = spanAttributes(operation, subject)
    if (this.#options.recordArguments === true && subject.tool !== undefined)
      attributes[name.TOOL_ARGUMENTS] = contentOf(params?.['arguments'] ?? {})
    return this.#tracing().startSpan(
      spanNameOf(operation, subject),
      { kind, attributes, links },
      parent,
    )
  }

  #end(span: Span, operation: Operation, outcome: Outcome): void {
    const { result, error } = outcome
    span.setAttributes(sessionAttributes(operation))
    this.#recordType(span, outcome)
    const called = operation.method === 'tools/call' && error === undefined
    if (this.#options.recordResults === true && called)
      span.setAttribute(name.TOOL_RESULT, contentOf(result))
    endSpan(span, outcome)
  }
}

function observation(span: Span, active: Context, end: Observation['end']): Observation {
  return { run: (work) => context.with(active, work), end }
}

function endSpan(span: Span, outcome: Outcome): void {
  const failure = failureOf(outcome)
  if (failure !== undefined) {
    const { type, code, message } = failure
    span.setAttribute(name.ERROR_TYPE, type)
    if (code !== undefined) span.setAttribute(name.STATUS_CODE, code)
    span.setStatus({ code: SpanStatusCode.ERROR, ...(message !== undefined && { message }) })
  }
  span.end()
}

/** A link to the span of a context, if it has one. */
function linksTo(from: Context): Link[] {
  const found = trace.getSpanContext(from)
  return found !== undefined && isSpanContextValid(found) ? [{ context: found }] : []
}

function extract(from: Context, meta: Readonly<Record<string, unknown>>): Context {
  return propagation.extract(from, meta, {
    keys: (carrier) => Object.keys(carrier),
    get(carrier, key) {
      const value = Object.hasOwn(carrier, key) ? carrier[key] : undefined
      return typeof value === 'string' && value.length <= MAX_CONTENT ? value : undefined
    },
  })
}

function inject(from: Context): Carrier | undefined {
  const carrier: Record<string, string> = {}
  propagation.inject(from, carrier)
  return carrier
}

function contentOf(value: unknown): string {
  return bounded(JSON.stringify(value) ?? 'null', MAX_CONTENT)
}
