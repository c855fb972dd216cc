import { type JsonMember, type JsonNode, memberOf } from './json.js'

/** The id of a request or response. */
export interface MessageId {
  /** The same for equal ids; the number 1 and the string "1" differ. */
  key: string
  /** As it was written. */
  text: string
  isNull: boolean
}

/** A JSON-RPC message, with the positions of its members. */
export interface Message {
  /** `invalid`: JSON, but no JSON-RPC message. */
  kind: 'request' | 'notification' | 'response' | 'invalid'
  node: JsonNode
  /** Whether it is one of several in an array. */
  inBatch: boolean
  id: MessageId | undefined
  method: string | undefined
  params: JsonNode | undefined
  result: JsonNode | undefined
  error: JsonNode | undefined
}

/** The messages of a JSON text: one, or those of a batch. */
export function messagesOf(node: JsonNode, text: string): Message[] {
  if (node.items === undefined) return [messageOf(node, text, false)]
  return node.items.map((item) => messageOf(item, text, true))
}

function messageOf(node: JsonNode, text: string, inBatch: boolean): Message {
  const idMember = memberOf(node, 'id')
  const methodMember = memberOf(node, 'method')
  const result = memberOf(node, 'result')?.value
  const error = memberOf(node, 'error')?.value
  const id = idMember === undefined ? undefined : idOf(idMember, text)
  const method = methodMember?.value.value
  const params = memberOf(node, 'params')?.value
  if (typeof method === 'string') {
    const kind = idMember === undefined ? 'notification' : 'request'
    return { kind, node, inBatch, id, method, params, result, error }
  }
  const isResponse = methodMember === undefined && (result === undefined) !== (error === undefined)
  const kind = isResponse ? 'response' : 'invalid'
  return { kind, node, inBatch, id, method: undefined, params, result, error }
}

function idOf({ value: { start, end, value } }: JsonMember, text: string): MessageId {
  const source = text.slice(start, end)
  const isSafe = typeof value === 'string' || Number.isSafeInteger(value)
  return {
    key: isSafe ? `${typeof value} ${String(value)}` : `as written ${source}`,
    text: source,
    isNull: value === null,
  }
}

/** A string at a path of member names, or undefined. */
export function stringAt(node: JsonNode | undefined, ...path: string[]): string | undefined {
  const value = valueAt(node, ...path)
  return typeof value === 'string' ? value : undefined
}

/** The value at a path of member names, or undefined. */
export function valueAt(node: JsonNode | undefined, ...path: string[]): unknown {
  let current = node
  for (const name of path) current = memberOf(current, name)?.value
  return current?.value
}
