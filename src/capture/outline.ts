import { memberNames, textAt } from '../jsonrpc/scan.js'
import { SUBSCRIPTION_ID, PROTOCOL_VERSION } from '../protocol/meta.js'
import type { LossyText } from './bounded-buffer.js'
import type { Frame } from './frames.js'
import { type JsonNode, parseJson, parseOutline } from './json.js'
import { stringAt } from './lazy-json.js'
import { type Message, messagesOf } from './messages.js'

/* What links a message that cannot be read in full with other messages. */

export interface Outline {
  /** Empty if it is not a message, or if it is not certain what it says. */
  messages: Message[]
  /** Whether all that links it with other messages is known. */
  isCertain: boolean
}

const NO_MESSAGE: Outline = { messages: [], isCertain: true }
const UNKNOWN: Outline = { messages: [], isCertain: false }
const REPLACEMENT = '\ufffd'
const LINKS: readonly (readonly string[])[] = [
  ['id'],
  ['method'],
  ...['name', 'uri', 'cursor', 'requestId', 'requestState', 'progressToken', 'protocolVersion'].map(
    (name) => ['params', name],
  ),
  ...['progressToken', PROTOCOL_VERSION, SUBSCRIPTION_ID].map((name) => ['params', '_meta', name]),
  ...['nextCursor', 'requestState', 'protocolVersion', 'resultType'].map((name) => [
    'result',
    name,
  ]),
]
/** The id as the last member of an object, or before its version. */
const ID_AT_END =
  /[,{]\s*"id"\s*:\s*(-?\d+|"(?:[^"\\]|\\.)*")\s*(?:,\s*"jsonrpc"\s*:\s*"2\.0"\s*)?\}\s*$/

/** The outline of a frame that is not UTF-8, too long, or nested too deeply. */
export function outlineOf({ text, lossy }: Frame): Outline {
  if (lossy?.end !== undefined) return outlineOfEnds(lossy)
  const source = text ?? lossy?.text ?? ''
  if (!/^\s*[[{]/.test(source)) return NO_MESSAGE
  const { node, faults } = parseOutline(source)
  if (node === undefined) {
    // In another encoding than UTF-8, it may be JSON.
    const isInvalid = text !== undefined && faults.every(({ kind }) => kind === 'invalid-json')
    return isInvalid ? NO_MESSAGE : UNKNOWN
  }
  const messages = messagesOf(node, source, true)
  if (messages.every(({ kind }) => kind === 'invalid')) return NO_MESSAGE
  const isCertain = text !== undefined || messages.every((message) => isExact(message.node))
  return isCertain ? { messages, isCertain } : UNKNOWN
}

function isExact(message: JsonNode): boolean {
  return LINKS.every((path) => stringAt(message, ...path)?.includes(REPLACEMENT) !== true)
}

/** Of a message that is too long, the id may be at its beginning or at its end. The params of a request are not known. */
function outlineOfEnds({ text, end = '' }: LossyText): Outline {
  if (!/^\s*[[{]/.test(text)) return NO_MESSAGE
  const id = textAt(text, ['id']) ?? ID_AT_END.exec(end)?.[1]
  const method = textAt(text, ['method'])
  const content = ['result', 'error'].find((name) => memberNames(text).has(name))
  if (id === undefined || (method === undefined) === (content === undefined)) return UNKNOWN
  const members = method === undefined ? `"${content}":{}` : `"method":${method},"params":{}`
  const json = `{"jsonrpc":"2.0","id":${id},${members}}`
  const { node } = parseJson(json)
  if (node === undefined || !isExact(node)) return UNKNOWN
  return { messages: messagesOf(node, json, true), isCertain: method === undefined }
}
