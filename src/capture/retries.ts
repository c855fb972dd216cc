import type { FrameFindings } from './findings.js'
import type { JsonNode } from './json.js'
import { memberOf, stringAt, valueAt } from './lazy-json.js'
import type { Message } from './messages.js'
import type { Operation } from './operations.js'

/** Results that ask for input and are remembered, and the characters of their requests. */
const MAX_OPEN = 1000
const MAX_PARAMS = 16_384

interface OpenResult {
  /** The request without what differs in a retry. */
  request: string
  /** The names of the questions. */
  keys: string
}

/**
 * Finds retries that have lost or changed the request state. A state that is unknown may come from an earlier connection;
 * it is wrong only if the request is otherwise the retry of exactly one result that was seen.
 */
export class Retries {
  readonly #requests = new WeakMap<Operation, string>()
  #open: OpenResult[] = []

  /** The result of a request that asks for input. */
  inputRequired(operation: Operation, result: JsonNode): void {
    const request = this.#requests.get(operation)
    const keys = keysOf(memberOf(result, 'inputRequests'))
    if (request === undefined || stringAt(result, 'requestState') === undefined) return
    this.#open = [...this.#open.slice(1 - MAX_OPEN), { request, keys }]
  }

  /** Messages were lost. One of them may be a result that asks for the same input. */
  noteLoss(): void {
    this.#open = []
  }

  request(message: Message, operation: Operation, found: FrameFindings): void {
    const { method, params, node } = message
    const { continues } = operation
    const isRetry = ['requestState', 'inputResponses'].some(
      (name) => memberOf(params, name) !== undefined,
    )
    const request = described(method, params)
    if (request !== undefined) this.#requests.set(operation, request)
    if (continues !== undefined && continues.id.key === operation.id.key)
      found.text('retry-id', memberOf(node, 'id') ?? node)
    if (!isRetry || request === undefined) return
    const keys = keysOf(memberOf(params, 'inputResponses'))
    const matching = this.#open.filter((each) => each.request === request && each.keys === keys)
    this.#open = this.#open.filter((each) => !matching.includes(each))
    if (continues !== undefined || matching.length !== 1) return
    const state = memberOf(params, 'requestState')
    found.text('request-state', state ?? params ?? node, state === undefined ? 'it is missing' : '')
  }
}

function described(method: string | undefined, params: Message['params']): string | undefined {
  const kept = (params?.members ?? [])
    .filter(({ name }) => !['_meta', 'inputResponses', 'requestState'].includes(name))
    .map(({ name }) => [name, valueAt(params, name)])
  const text = JSON.stringify([method, kept])
  return text.length > MAX_PARAMS ? undefined : text
}

function keysOf(node: JsonNode | undefined): string {
  return JSON.stringify((node?.members ?? []).map(({ name }) => name).toSorted())
}
