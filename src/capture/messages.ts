import type { JsonNode } from './json.js'
import { memberOf, sourceOf, valueAt } from './lazy-json.js'

/** The same for equal ids; the number 1 and the string "1" differ. */
export type IdKey = number | string

/** The id of a request or response. */
export interface MessageId {
  key: IdKey
  /** As it was written. */
  text: string
  isNull: boolean
}

/** A JSON-RPC message, with the positions of its members. */
export interface Message {
  /** `invalid`: JSON, but not a JSON-RPC message. */
  kind: 'request' | 'notification' | 'response' | 'invalid'
  node: JsonNode
  /** Whether it is one of several in an array. */
  inBatch: boolean
  /** Whether only what links it with other messages is known. */
  isOutline: boolean
  id: MessageId | undefined
  method: string | undefined
  params: JsonNode | undefined
  result: JsonNode | undefined
  error: JsonNode | undefined
}

/** The messages of a JSON text: one, or those of a batch. */
export function messagesOf(node: JsonNode, text: string, isOutline = false): Message[] {
  if (!Array.isArray(node.value)) return [messageOf(node, text, { inBatch: false, isOutline })]
  return (node.items ?? []).map((item) => messageOf(item, text, { inBatch: true, isOutline }))
}

function messageOf(
  node: JsonNode,
  text: string,
  how: Pick<Message, 'inBatch' | 'isOutline'>,
): Message {
  const id = idOf(memberOf(node, 'id'), text)
  const method = valueAt(node, 'method')
  const params = memberOf(node, 'params')
  const result = memberOf(node, 'result')
  const error = memberOf(node, 'error')
  if (typeof method === 'string') {
    const kind = id === undefined ? 'notification' : 'request'
    return { kind, node, ...how, id, method, params, result, error }
  }
  const isResponse = method === undefined && (result === undefined) !== (error === undefined)
  const kind = isResponse ? 'response' : 'invalid'
  return { kind, node, ...how, id, method: undefined, params, result, error }
}

function idOf(node: JsonNode | undefined, text: string): MessageId | undefined {
  if (node === undefined) return undefined
  const { value } = node
  const source = sourceOf(node, text)
  return { key: keyOfId(value) ?? `as written ${source}`, text: source, isNull: value === null }
}

/** Undefined if the value cannot be compared. */
export function keyOfId(value: unknown): IdKey | undefined {
  if (typeof value === 'string') return `string ${value}`
  return typeof value === 'number' && Number.isSafeInteger(value) ? value : undefined
}

/** Where the method of a message is. */
export function methodPlace(node: JsonNode): JsonNode {
  return memberOf(node, 'method') ?? node
}
