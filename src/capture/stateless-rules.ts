import { CLIENT_CAPABILITIES, LOG_LEVEL, PROTOCOL_VERSION } from '../protocol/meta.js'
import { METHODS } from '../protocol/methods.js'
import { isObject } from '../schema/issue.js'
import type { FrameFindings } from './findings.js'
import type { JsonNode } from './json.js'
import { memberOf, stringAt, valueAt } from './lazy-json.js'
import { type Message, methodPlace } from './messages.js'
import type { Link, Operation } from './operations.js'
import { Retries } from './retries.js'

/** The filter of `subscriptions/listen` that asks for a notification. */
const FILTERS: Readonly<Record<string, string>> = {
  'notifications/tools/list_changed': 'toolsListChanged',
  'notifications/prompts/list_changed': 'promptsListChanged',
  'notifications/resources/list_changed': 'resourcesListChanged',
  'notifications/resources/updated': 'resourceSubscriptions',
}
const ACKNOWLEDGED = 'notifications/subscriptions/acknowledged'
const CACHE_HINTS = ['ttlMs', 'cacheScope'] as const
/** Error codes of earlier revisions, those that the specification defines now, and the range that it reserves. */
const FORMER_CODES: ReadonlySet<unknown> = new Set([-32002, -32042])
const DEFINED_CODES: ReadonlySet<unknown> = new Set([-32020, -32021, -32022])
const RESERVED = { from: -32_099, to: -32_020 } as const

/** What is remembered of a request. */
interface Request {
  /** The client capabilities in its `_meta`. */
  capabilities: Record<string, unknown> | undefined
  /** Of `subscriptions/listen`: what it asks for, and whether that was acknowledged. */
  filter: Record<string, unknown>
  isAcknowledged: boolean
}

/** Rules of revisions with stateless requests. */
export class StatelessRules {
  readonly #requests = new WeakMap<Operation, Request>()
  readonly #retries = new Retries()
  /** The server has returned a result to a stateless request: it knows the rules. */
  #isServed = false
  #wantsLogs = false
  /** Something was not recorded: nothing is concluded from what the capture does not show. */
  #hasLoss = false

  /** Whether the server has served a stateless request. */
  get isServed(): boolean {
    return this.#isServed
  }

  noteLoss(): void {
    this.#hasLoss = true
    this.#retries.noteLoss()
  }

  /** `isStateless`: the connection has stateless requests only. */
  check(message: Message, link: Link, isStateless: boolean, found: FrameFindings): void {
    if (message.kind === 'request') this.#request(message, link, isStateless, found)
    if (message.kind === 'response') this.#response(message, link, found)
    if (message.kind === 'notification') this.#notification(message, link, isStateless, found)
    // Requests are compared with their retries.
    if (message.isOutline) this.#retries.noteLoss()
  }

  #request(message: Message, link: Link, isStateless: boolean, found: FrameFindings): void {
    const { method = '', params, node } = message
    const { operation } = link
    const version = valueAt(params, '_meta', PROTOCOL_VERSION)
    if (valueAt(params, '_meta', LOG_LEVEL) !== undefined) this.#wantsLogs = true
    if (version === undefined && !isStateless) return
    const meta = memberOf(params, '_meta')
    const isStatelessRequest = link.revision?.lifecycle === 'stateless'
    // A handshake may be lost.
    const isCertain = isStateless && this.#isServed && !this.#hasLoss
    if (version === undefined && isCertain && METHODS.get(method) !== undefined)
      found.text('missing-meta', meta ?? params ?? node, PROTOCOL_VERSION)
    if (version === undefined || !isStatelessRequest) return
    const capabilities = valueAt(meta, CLIENT_CAPABILITIES)
    if (capabilities === undefined) found.text('missing-meta', meta ?? node, CLIENT_CAPABILITIES)
    if (operation === undefined) return
    const filter = valueAt(params, 'notifications')
    this.#requests.set(operation, {
      capabilities: isObject(capabilities) ? capabilities : undefined,
      filter: isObject(filter) ? filter : {},
      isAcknowledged: false,
    })
    this.#retries.request(message, operation, found)
  }

  #response(message: Message, { operation, revision }: Link, found: FrameFindings): void {
    const { result, error } = message
    if (revision?.typedResults !== true || operation === undefined) return
    if (error !== undefined && this.#isServed) checkErrorCode(error, found)
    if (result === undefined) return
    this.#isServed ||= operation.namesRevision
    const type = stringAt(result, 'resultType')
    if (valueAt(result, 'resultType') === undefined) found.text('result-type', result)
    const needsInput = type === 'input_required'
    checkCacheHints(operation.method, type, result, found)
    if (!needsInput) return
    const descriptor = METHODS.get(operation.method)
    if (descriptor !== undefined && descriptor.mayRequireInput !== true)
      found.text('unexpected-input-required', memberOf(result, 'resultType') ?? result)
    this.#checkInputRequests(operation, result, found)
    this.#retries.inputRequired(operation, result)
  }

  /** A server may only ask for what the client can answer. */
  #checkInputRequests(operation: Operation, result: JsonNode, found: FrameFindings): void {
    const capabilities = this.#requests.get(operation)?.capabilities
    if (capabilities === undefined) return
    for (const { value } of memberOf(result, 'inputRequests')?.members ?? []) {
      const needed = INPUT_CAPABILITIES[stringAt(value, 'method') ?? '']
      if (needed !== undefined && !(needed in capabilities))
        found.text('undeclared-input', memberOf(value, 'method') ?? value, needed)
    }
  }

  #notification(message: Message, link: Link, isStateless: boolean, found: FrameFindings): void {
    const { method = '', node } = message
    const { operation } = link
    // With both kinds of requests on a connection, it is not certain to which one a notification belongs.
    const isCertain = isStateless && this.#isServed && !this.#hasLoss
    if (method === 'notifications/message' && isCertain && !this.#wantsLogs)
      found.text('unrequested-log', methodPlace(node))
    const filter = FILTERS[method]
    const request = operation === undefined ? undefined : this.#requests.get(operation)
    if (operation?.method !== 'subscriptions/listen' || request === undefined) {
      if (filter !== undefined && isCertain)
        found.text('unrequested-notification', methodPlace(node), 'it names no subscription')
      return
    }
    if (method === ACKNOWLEDGED) request.isAcknowledged = true
    else if (!request.isAcknowledged && !this.#hasLoss)
      found.text('acknowledgement', methodPlace(node), method)
    if (filter !== undefined && !isRequested(request.filter[filter]))
      found.text('unrequested-notification', methodPlace(node), method)
  }
}

/** The capability that a client must have for a question of the server. */
const INPUT_CAPABILITIES: Readonly<Record<string, string>> = {
  'sampling/createMessage': 'sampling',
  'roots/list': 'roots',
  'elicitation/create': 'elicitation',
}

function isRequested(value: unknown): boolean {
  return value === true || (Array.isArray(value) && value.length > 0)
}

function checkErrorCode(error: JsonNode, found: FrameFindings): void {
  const code = memberOf(error, 'code')
  if (code === undefined || typeof code.value !== 'number') return
  const isReserved = code.value >= RESERVED.from && code.value <= RESERVED.to
  const isUndefined = isReserved && !DEFINED_CODES.has(code.value)
  if (isUndefined || FORMER_CODES.has(code.value))
    found.text('reserved-error-code', code, String(code.value))
}

function checkCacheHints(
  method: string,
  type: string | undefined,
  result: JsonNode,
  found: FrameFindings,
): void {
  if (METHODS.get(method)?.cache === undefined) return
  const hints = CACHE_HINTS.map((name) => memberOf(result, name))
  if (type === 'input_required') {
    for (const hint of hints)
      if (hint !== undefined) found.text('cache-hints', hint, 'the result asks for input')
    return
  }
  if (type !== undefined && type !== 'complete') return
  const [ttl, scope] = hints
  const isTtl = Number.isInteger(ttl?.value) && Number(ttl?.value) >= 0
  const isScope = scope?.value === 'public' || scope?.value === 'private'
  if (!isTtl) found.text('cache-hints', ttl ?? result, 'ttlMs')
  if (!isScope) found.text('cache-hints', scope ?? result, 'cacheScope')
}
