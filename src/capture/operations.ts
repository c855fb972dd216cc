import { PROTOCOL_VERSION, SUBSCRIPTION_ID } from '../protocol/meta.js'
import { METHODS } from '../protocol/methods.js'
import { type Revision, revisions } from '../protocol/revisions/index.js'
import type { Direction } from './format.js'
import type { Frame, Span } from './frames.js'
import type { HttpExchange } from './http-exchange.js'
import { stringAt, valueAt } from './lazy-json.js'
import { type IdKey, type Message, type MessageId, keyOfId } from './messages.js'
import type { Definition } from './pages.js'
import { Pending } from './pending.js'

export type Status = 'ok' | 'error' | 'input_required' | 'cancelled'

/** A request with everything that certainly belongs to it. */
export interface Operation {
  /** The direction of the request. */
  dir: Direction
  id: MessageId
  method: string
  /** What the request names: a tool, a prompt or a resource. */
  target: string | undefined
  revision: Revision | undefined
  startNs: number
  status: Status | undefined
  /** The number of progress notifications. */
  progress: number
  /** The request that this one continues, with the answers that its `input_required` result asked for. */
  continues: Operation | undefined
  /** The bytes of the request. */
  span: Span
  exchange: HttpExchange | undefined
  progressToken: unknown
  /** Whether the request says which revision it has. */
  namesRevision: boolean
  /** Whether the request asked for a task. */
  hasTask: boolean
  /** The tool that is called, as it was listed. */
  tool: Definition | undefined
  /** How often something was not recorded before it. */
  losses: number
}

/** How a message relates to the ones before it. */
export interface Link {
  operation?: Operation
  revision?: Revision | undefined
  problem?: 'orphan-response' | 'duplicate-response' | 'late-response' | 'reused-id'
  /** The HTTP request that carried the message, or whose response did. */
  exchange?: HttpExchange
  /** Whether the capture may not show the request that the message belongs to. */
  mayLackRequest?: boolean
}

/** Operations by the request state that their result returned; undefined if several returned the same. */
export type RequestStates = Map<string, Operation | undefined>

/** Ids that are remembered for each direction, and request states. */
const MAX_IDS = 1_000_000
const TARGETS: Readonly<Record<string, string>> = {
  'tools/call': 'name',
  'prompts/get': 'name',
  'resources/read': 'uri',
  'resources/subscribe': 'uri',
  'resources/unsubscribe': 'uri',
}

const opposite = (dir: Direction): Direction => (dir === 'in' ? 'out' : 'in')
const revisionOf = (id: string | undefined) => revisions.find((each) => each.id === id)

/** Links the messages of one connection. A link is made only if it is certain. */
export class Operations {
  readonly #pending = { in: new Pending<Operation>(), out: new Pending<Operation>() }
  readonly #used = { in: new Set<IdKey>(), out: new Set<IdKey>() }
  readonly #states: RequestStates
  /** What `initialize` negotiated, the revision of the last request that named its own, and of the last one with a result. */
  #negotiated: Revision | undefined
  #described: Revision | undefined
  #served: Revision | undefined
  #hasNegotiated = false
  /** Whether `initialize` was sent and not refused. */
  #isInitializing = false
  #losses = 0

  /** `assumed`: the revision of messages that do not say it, if the capture lacks the handshake. */
  constructor(assumed?: Revision, states: RequestStates = new Map()) {
    this.#states = states
    if (assumed?.lifecycle === 'stateless') this.#described = assumed
    else this.#negotiated = assumed
    this.#hasNegotiated = this.#negotiated !== undefined
  }

  /** What `initialize` has negotiated. */
  get negotiated(): Revision | undefined {
    return this.#hasNegotiated ? this.#negotiated : undefined
  }

  hasPending(dir: Direction, { key }: MessageId): boolean {
    return this.#pending[dir].get(key) !== undefined
  }

  isPending(operation: Operation): boolean {
    return this.#pending[operation.dir].get(operation.id.key) === operation
  }

  /** Nothing will answer the request. */
  settle(operation: Operation, status: Status | undefined): void {
    operation.status ??= status
    this.#pending[operation.dir].delete(operation.id.key)
  }

  /** Requests without a response. */
  pending(): Operation[] {
    return [...this.#pending.in.values(), ...this.#pending.out.values()]
  }

  /** Whether requests of this connection name their revision, and `initialize` was not used. */
  get isStateless(): boolean {
    return this.#described !== undefined && !this.#hasNegotiated && !this.#isInitializing
  }

  /** Messages were lost. One of them may be a handshake, unless a handshake was seen. */
  noteLoss(): void {
    this.#losses++
    if (!this.#hasNegotiated) this.#described = undefined
  }

  /**
   * Whether what names a request certainly belongs to it. Stateless requests may use an id again once it was answered, and
   * the response may be lost.
   */
  isCertain({ losses, revision }: Operation): boolean {
    return losses === this.#losses || revision?.lifecycle === 'handshake'
  }

  add(message: Message, frame: Frame): Link {
    const { dir } = frame
    if (message.kind === 'request') return this.#request(message, frame)
    if (message.kind === 'response') return this.#response(message, dir)
    if (message.kind === 'notification') return this.#notification(message, dir)
    return { revision: this.revision }
  }

  #request(message: Message, { dir, lastNs, start, end, exchange }: Frame): Link {
    const { id, method = '', params } = message
    const revision = this.#requestRevision(message)
    if (method === 'initialize') this.#isInitializing = true
    if (id === undefined || id.isNull) return { revision }
    const pending = this.#pending[dir]
    const used = this.#used[dir]
    // Stateless requests may use an id again once it was answered.
    const isPending = pending.get(id.key) !== undefined
    const isReused = revision?.lifecycle === 'stateless' ? isPending : used.has(id.key)
    if (used.size < MAX_IDS) used.add(id.key)
    const operation: Operation = {
      dir,
      id,
      method,
      target: stringAt(params, TARGETS[method] ?? ''),
      revision,
      startNs: lastNs,
      status: undefined,
      progress: 0,
      continues: this.#continued(message),
      span: { start, end },
      exchange,
      namesRevision: method === 'initialize' || describedVersion(params) !== undefined,
      progressToken: valueAt(params, '_meta', 'progressToken'),
      hasTask: valueAt(params, 'task') !== undefined,
      tool: undefined,
      losses: this.#losses,
    }
    pending.add(operation)
    return isReused ? { operation, revision, problem: 'reused-id' } : { operation, revision }
  }

  #requestRevision({ method, params }: Message): Revision | undefined {
    if (method === 'initialize') return revisionOf(stringAt(params, 'protocolVersion'))
    const version = describedVersion(params)
    // A stateless request always names its revision.
    if (version === undefined) return this.#negotiated
    this.#described = revisionOf(version) ?? this.#described
    return revisionOf(version)
  }

  /** The operation whose `requestState` this request returns. */
  #continued({ method, params }: Message): Operation | undefined {
    const state = stringAt(params, 'requestState')
    const before = state === undefined ? undefined : this.#states.get(state)
    return before?.method === method ? before : undefined
  }

  #response(message: Message, dir: Direction): Link {
    const { id, error, result } = message
    // An error response to an unreadable request has no id.
    if (id === undefined || id.isNull) return { revision: this.revision }
    const requester = opposite(dir)
    const operation = this.#pending[requester].get(id.key)
    if (operation === undefined)
      return {
        revision: this.revision,
        problem: this.#used[requester].has(id.key) ? 'duplicate-response' : 'orphan-response',
      }
    this.#pending[requester].delete(id.key)
    const isLate = operation.status === 'cancelled'
    operation.status = statusOf(message)
    // A request that was sent before the response to initialize.
    if (!operation.namesRevision) operation.revision ??= this.#negotiated
    else if (result !== undefined && operation.method !== 'initialize')
      this.#served = operation.revision
    if (operation.method === 'initialize') this.#isInitializing = error === undefined
    if (operation.method === 'initialize' && error === undefined) {
      this.#negotiated = revisionOf(stringAt(result, 'protocolVersion'))
      this.#hasNegotiated = true
      operation.revision = this.#negotiated
    }
    const state = stringAt(result, 'requestState')
    if (state !== undefined && this.#states.size < MAX_IDS)
      this.#states.set(state, this.#states.has(state) ? undefined : operation)
    // The end of a stream may be confirmed.
    const isStream = METHODS.get(operation.method)?.stream === true
    const link = { operation, revision: operation.revision }
    return isLate && !isStream ? { ...link, problem: 'late-response' } : link
  }

  #notification({ method, params }: Message, dir: Direction): Link {
    const operation = this.#notified(method, params, dir)
    if (operation === undefined)
      return { revision: dir === 'in' ? (this.#negotiated ?? this.revision) : this.revision }
    if (method === 'notifications/progress') operation.progress++
    if (method === 'notifications/cancelled') operation.status = 'cancelled'
    return { operation, revision: operation.revision }
  }

  /** The request that a notification names. */
  #notified(
    method: string | undefined,
    params: Message['params'],
    dir: Direction,
  ): Operation | undefined {
    if (method === 'notifications/cancelled') return this.#byId(dir, valueAt(params, 'requestId'))
    const requests = opposite(dir)
    if (method === 'notifications/progress') {
      const token = valueAt(params, 'progressToken')
      return token === undefined ? undefined : this.#pending[requests].withToken(token)
    }
    return this.#byId(requests, valueAt(params, '_meta', SUBSCRIPTION_ID))
  }

  #byId(dir: Direction, id: unknown): Operation | undefined {
    const key = keyOfId(id)
    return key === undefined ? undefined : this.#pending[dir].get(key)
  }

  /** The revision of a message that does not say it. It is not certain if the server serves both kinds of requests. */
  get revision(): Revision | undefined {
    if (!this.#hasNegotiated) return this.#described
    return this.#served === undefined ? this.#negotiated : undefined
  }
}

function describedVersion(params: Message['params']): string | undefined {
  return stringAt(params, '_meta', PROTOCOL_VERSION)
}

function statusOf({ error, result }: Message): Status {
  if (error !== undefined || valueAt(result, 'isError') === true) return 'error'
  return valueAt(result, 'resultType') === 'input_required' ? 'input_required' : 'ok'
}
