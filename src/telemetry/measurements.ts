import {
  INTERNAL_ERROR,
  INVALID_PARAMS,
  INVALID_REQUEST,
  METHOD_NOT_FOUND,
  PARSE_ERROR,
} from '../jsonrpc/errors.js'
import type { Params } from '../jsonrpc/message.js'
import {
  HEADER_MISMATCH,
  INSUFFICIENT_SCOPE,
  MISSING_CLIENT_CAPABILITY,
  RESOURCE_NOT_FOUND,
  UNAUTHORIZED,
  UNSUPPORTED_PROTOCOL_VERSION,
  URL_ELICITATION_REQUIRED,
} from '../protocol/errors.js'
import type { Activity, Operation, Outcome } from '../protocol/telemetry.js'
import {
  type Attributes,
  type Failure,
  bounded,
  connectionAttributes,
  failureOf,
  methodOf,
  subjectOf,
} from './attributes.js'
import * as name from './conventions.js'

/** Where measurements go. */
export interface Meter {
  record(histogram: name.Histogram, seconds: number, attributes: Attributes): void
  add(gauge: name.Gauge, difference: number): void
}

/** Maximum different values of an attribute of metrics; others are recorded as `_OTHER`. */
const MAX_NAMES = 200

/** Codes of JSON-RPC and of the protocol. Any other may be one of a peer. */
const CODES: ReadonlySet<string> = new Set(
  [
    PARSE_ERROR,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    INVALID_PARAMS,
    INTERNAL_ERROR,
    HEADER_MISMATCH,
    INSUFFICIENT_SCOPE,
    MISSING_CLIENT_CAPABILITY,
    RESOURCE_NOT_FOUND,
    UNAUTHORIZED,
    UNSUPPORTED_PROTOCOL_VERSION,
    URL_ELICITATION_REQUIRED,
  ].map(String),
)

/** Names that may come from a peer, or from a program that makes them up: the first ones only. */
class Names {
  readonly #known = new Set<string>()

  of(value: string): string {
    if (this.#known.has(value)) return value
    if (this.#known.size >= MAX_NAMES) return name.OTHER
    this.#known.add(value)
    return value
  }
}

/** Measures activities. The number of different attributes is limited, whatever peers send. */
export class Measurements {
  readonly #meter: Meter
  readonly #tools = new Names()
  readonly #prompts = new Names()
  readonly #errors = new Names()
  readonly #servers = new Names()

  constructor(meter: Meter) {
    this.#meter = meter
  }

  /** Returns a function to be called at the end. */
  begin(activity: Activity, params: Params | undefined): (outcome: Outcome) => void {
    switch (activity.kind) {
      case 'received':
      case 'sent': {
        const side = activity.kind === 'received' ? 'server' : 'client'
        const attributes = this.#operation(activity, params)
        const gauge =
          activity.id === undefined ? undefined : (`ccmcp.${side}.active_requests` as const)
        return this.#measure(`mcp.${side}.operation.duration`, gauge, (outcome) => ({
          ...attributes,
          ...revisionOf(activity),
          ...this.#failure(outcome),
        }))
      }
      case 'session': {
        const { role } = activity
        const attributes = { ...revisionOf(activity), ...this.#connection(activity) }
        return this.#measure(
          `mcp.${role}.session.duration`,
          `ccmcp.${role}.active_sessions`,
          (outcome) => ({ ...attributes, ...this.#failureType(outcome) }),
        )
      }
      case 'task': {
        const attributes = { [name.TOOL_NAME]: this.#tools.of(bounded(activity.tool)) }
        return this.#measure('ccmcp.task.duration', 'ccmcp.active_tasks', (outcome) => ({
          ...attributes,
          ...this.#failureType(outcome),
        }))
      }
      case 'step':
        return () => {}
    }
  }

  #measure(
    histogram: name.Histogram,
    gauge: name.Gauge | undefined,
    attributesOf: (outcome: Outcome) => Attributes,
  ): (outcome: Outcome) => void {
    const begun = performance.now()
    if (gauge !== undefined) this.#meter.add(gauge, 1)
    return (outcome) => {
      if (gauge !== undefined) this.#meter.add(gauge, -1)
      this.#meter.record(histogram, (performance.now() - begun) / 1000, attributesOf(outcome))
    }
  }

  #operation(operation: Operation, params: Params | undefined): Attributes {
    const { tool, prompt } = subjectOf(operation.method, params)
    const attributes: Attributes = { [name.METHOD_NAME]: methodOf(operation) }
    if (tool !== undefined) {
      attributes[name.OPERATION_NAME] = name.EXECUTE_TOOL
      attributes[name.TOOL_NAME] = operation.knownTarget ? this.#tools.of(tool) : name.OTHER
    }
    if (prompt !== undefined)
      attributes[name.PROMPT_NAME] = operation.knownTarget ? this.#prompts.of(prompt) : name.OTHER
    return { ...attributes, ...this.#connection(operation) }
  }

  #connection(activity: Pick<Operation, 'connection'>): Attributes {
    const attributes = connectionAttributes(activity)
    const address = attributes[name.SERVER_ADDRESS]
    if (address === undefined) return attributes
    const server = `${address} ${attributes[name.SERVER_PORT] ?? ''}`
    if (this.#servers.of(server) !== name.OTHER) return attributes
    delete attributes[name.SERVER_PORT]
    return { ...attributes, [name.SERVER_ADDRESS]: name.OTHER }
  }

  #failure(outcome: Outcome): Attributes {
    const failure = failureOf(outcome)
    if (failure === undefined) return {}
    const type = this.#typeOf(failure)
    return failure.code === undefined
      ? { [name.ERROR_TYPE]: type }
      : { [name.ERROR_TYPE]: type, [name.STATUS_CODE]: type }
  }

  #failureType(outcome: Outcome): Attributes {
    const failure = failureOf(outcome)
    return failure === undefined ? {} : { [name.ERROR_TYPE]: this.#typeOf(failure) }
  }

  #typeOf({ type, code }: Failure): string {
    if (code === undefined) return this.#errors.of(type)
    return CODES.has(code) ? code : name.OTHER
  }
}

function revisionOf({ revision }: Pick<Operation, 'revision'>): Attributes {
  return revision === undefined ? {} : { [name.PROTOCOL_VERSION]: revision }
}
