import { isObject } from '../is-object.js'
import { INVALID_PARAMS, INVALID_REQUEST, PARSE_ERROR, RpcError } from './errors.js'
import {
  MAX_CONTAINERS,
  elements,
  syntaxErrorPosition,
  isArray,
  memberNames,
  tooComplex,
  textAt,
} from './scan.js'

export { isObject }

/** An integer beyond 2^53 is a bigint: the response must repeat the id exactly. */
export type Id = string | number | bigint
export type Params = Readonly<Record<string, unknown>>

export interface Request {
  kind: 'request'
  id: Id
  method: string
  params: Params | undefined
  /** The received text. */
  frame: string
  /** What the protocol layer has read of `params._meta`, so that it is read once. */
  meta?: object | undefined
}
export interface Notification {
  kind: 'notification'
  method: string
  params: Params | undefined
  frame: string
}
export interface Response {
  kind: 'response'
  id: Id
  outcome: { result: unknown } | { error: RpcError }
  /** The received text: a relay forwards large numbers and unknown members unchanged. */
  frame: string
}
/** The texts of its messages, each to be read on its own; at most MAX_BATCH + 1 of them. */
export interface Batch {
  kind: 'batch'
  frames: string[]
}
/** A frame that is not a valid message, with the error response for it. */
export interface Invalid {
  kind: 'invalid'
  /** The id of the request, if it can be read. */
  id: Id | undefined
  error: RpcError
  /** It is a response or a notification: these never get a response. */
  noResponse: boolean
}
export type Message = Request | Notification | Response | Batch | Invalid

/*
 * The message that a sent frame contains. Transports get it together with the frame, so that none parses what was just
 * encoded: HTTP needs it for headers and to choose the stream.
 */
export interface SentRequest {
  readonly kind: 'request'
  readonly id: Id
  readonly method: string
  readonly params: unknown
  /** The protocol version of the request, if the sender has one. */
  readonly protocolVersion?: string | undefined
  /** The parameter that HTTP repeats in `Mcp-Name`, if the method has one. */
  readonly nameParam?: string | undefined
  /** Arguments that HTTP repeats in `Mcp-Param-…` headers, by header name. */
  readonly headerParams?: Readonly<Record<string, string | number | boolean>> | undefined
}
interface SentNotification {
  readonly kind: 'notification'
  readonly method: string
  readonly params?: unknown
}
export interface SentResponse {
  /** Valid only during `send` or `reply`: the result is released afterwards. */
  readonly kind: 'response'
  /** Undefined if the id of the request could not be read. */
  readonly id: Id | undefined
  readonly result?: unknown
  readonly error?: RpcError | undefined
}
export type SentMessage = SentRequest | SentNotification | SentResponse
export type Send = (frame: string, message: SentMessage) => void

const MAX_DEPTH = 512
/** More are never parsed; servers have a lower limit. */
export const MAX_BATCH = 1000
const MAX_ID_LENGTH = 1024
/** Maximum characters of a sent message: V8's limit for strings, less what transports add. */
export const MAX_SENT_LENGTH = 2 ** 29 - 2 ** 24

/**
 * Reads one frame and classifies it by its members, as JSON-RPC 2.0 does: `method` and `id` is a request, `method` alone
 * a notification, `result` or `error` a response. Never throws: anything else is `invalid`, with its error response.
 */
export function parseMessage(frame: string, maxDepth = MAX_DEPTH): Message {
  // An oversized batch is rejected unparsed: parsing it would cost a hundred times what it cost to send.
  if (isArray(frame)) {
    const frames = elements(frame, MAX_BATCH + 1)
    if (frames.length > MAX_BATCH) return { kind: 'batch', frames }
  }
  const problem = tooComplex(frame, maxDepth)
  if (problem !== undefined) {
    const reason =
      problem === 'depth'
        ? `is nested deeper than ${maxDepth} levels`
        : `has more than ${MAX_CONTAINERS} objects and arrays`
    return readUnparsed(frame, frame.slice(-MAX_ID_LENGTH - 100), refusal(`the message ${reason}`))
  }
  let value: unknown
  try {
    value = JSON.parse(frame)
  } catch {
    return invalid(undefined, parseError(frame))
  }
  if (Array.isArray(value)) return { kind: 'batch', frames: elements(frame) }
  if (!isObject(value)) return invalid(undefined, refusal('a message must be a JSON object'))
  return classify(value, frame)
}

/** The messages of a batch, or the one message. A batch in a batch is invalid, and not parsed again at each level. */
export function messagesIn(message: Message): Message[] {
  if (message.kind !== 'batch') return [message]
  return message.frames.flatMap((frame) => (isArray(frame) ? [] : [parseMessage(frame)]))
}

/** The responses in a sent message, by id: whether each is a result. */
export function sentResponses(frame: string): Map<Id, boolean> {
  const found = new Map<Id, boolean>()
  for (const each of isArray(frame) ? elements(frame) : [frame]) {
    const message = parseMessage(each)
    if (message.kind === 'response') found.set(message.id, 'result' in message.outcome)
    // Too deep to be parsed.
    else if (message.kind === 'invalid' && message.noResponse && message.id !== undefined)
      found.set(message.id, true)
  }
  return found
}

/** A message that is too large or too deep to parse: its first and last characters may still have the id. */
export function readUnparsed(head: string, tail: string, error: RpcError): Invalid {
  const idText = textAt(head, ['id']) ?? ID_AT_END.exec(tail)?.[1]
  const id = idText === undefined ? undefined : readId(idText)
  const names = memberNames(head)
  if (names.has('method')) return invalid(id, error)
  // A response gets no response, but with its id the pending request can be rejected.
  const isResponse = names.has('result') || names.has('error')
  return {
    kind: 'invalid',
    id: isResponse || names.has('params') ? id : undefined,
    error,
    noResponse: isResponse,
  }
}

/** The id as the last member, where many clients write it. */
const ID_AT_END =
  /,\s*"id"\s*:\s*("(?:[^"\\]|\\.)*"|-?\d+)\s*(?:,\s*"jsonrpc"\s*:\s*"2\.0"\s*)?\}\s*$/

function classify(value: Params, frame: string): Message {
  const { id: written, method, params } = value
  const id = usableId(written, frame)
  if (typeof method === 'string') {
    if (value['jsonrpc'] !== '2.0') return invalid(id, refusal('"jsonrpc" must be "2.0"'))
    if (written === undefined) {
      if (params === undefined || isObject(params))
        return { kind: 'notification', method, params, frame }
      return { kind: 'invalid', id: undefined, error: wrongParams(), noResponse: true }
    }
    if (id === undefined) {
      const long = typeof written === 'string' ? ` of at most ${MAX_ID_LENGTH} characters` : ''
      return invalid(undefined, refusal(`"id" must be a string${long} or an integer`))
    }
    if (params !== undefined && !isObject(params)) return invalid(id, wrongParams())
    return { kind: 'request', id, method, params, frame }
  }
  if (method !== undefined) return invalid(id, refusal('"method" must be a string'))
  if ('result' in value || 'error' in value) return response(value, id, frame)
  return invalid(id, refusal('"method" is missing'))
}

function response(value: Params, id: Id | undefined, frame: string): Message {
  const { result, error } = value
  const both = 'result' in value && 'error' in value
  if (id === undefined || both || value['jsonrpc'] !== '2.0') {
    return {
      kind: 'invalid',
      id,
      error: refusal(
        'a response must have "jsonrpc": "2.0", an "id", and either "result" or "error"',
      ),
      noResponse: true,
    }
  }
  if (!('error' in value)) return { kind: 'response', id, outcome: { result }, frame }
  const { code, message, data } = isObject(error) ? error : {}
  const known = typeof code === 'number' && typeof message === 'string'
  if (!known)
    return {
      kind: 'invalid',
      id,
      error: refusal('an error must have a code and a message'),
      noResponse: true,
    }
  return { kind: 'response', id, outcome: { error: new RpcError(code, message, data) }, frame }
}

/** The id for the response, or undefined if it is not a string or an integer, or too long. */
function usableId(value: unknown, frame: string): Id | undefined {
  if (typeof value === 'string') return value.length <= MAX_ID_LENGTH ? value : undefined
  if (typeof value !== 'number') return undefined
  return Number.isSafeInteger(value) ? value : exactInteger(value, frame, ['id'])
}

/**
 * The exact integer at a path of the frame. JSON.parse rounds integers beyond 2^53; only then are the digits read from
 * the text again.
 */
export function exactInteger(
  value: number,
  frame: string,
  path: readonly string[],
): number | bigint | undefined {
  if (Number.isSafeInteger(value)) return value
  const digits = textAt(frame, path)
  return digits !== undefined && digits.length <= MAX_ID_LENGTH && /^-?\d+$/.test(digits)
    ? BigInt(digits)
    : undefined
}

/** The id that is written in a JSON text; undefined if it is none. */
export function readId(written: string): Id | undefined {
  try {
    return usableId(JSON.parse(written), `{"id":${written}}`)
  } catch {
    return undefined
  }
}

function invalid(id: Id | undefined, error: RpcError): Invalid {
  return { kind: 'invalid', id, error, noResponse: false }
}

function refusal(reason: string): RpcError {
  return new RpcError(INVALID_REQUEST, `Invalid Request: ${reason}`)
}

function wrongParams(): RpcError {
  return new RpcError(INVALID_PARAMS, 'Invalid params: "params" must be an object')
}

function parseError(frame: string): RpcError {
  const position = syntaxErrorPosition(frame)
  const character = String.fromCodePoint(frame.codePointAt(position) ?? 0)
  const found =
    position < frame.length ? `unexpected ${JSON.stringify(character)}` : 'unexpected end'
  return new RpcError(PARSE_ERROR, `Parse error: ${found} at position ${position}`, { position })
}

/** The member of a value at a path of names; undefined if there is none. */
export function memberAt(value: unknown, path: readonly string[]): unknown {
  let found = value
  for (const key of path) {
    if (!isObject(found) || !Object.hasOwn(found, key)) return undefined
    found = found[key]
  }
  return found
}

/** Whether `await` would wait for it. Throws if its `then` is a getter that throws. */
export function isThenable(value: unknown): value is PromiseLike<unknown> {
  return (
    ((typeof value === 'object' && value !== null) || typeof value === 'function') &&
    'then' in value &&
    typeof value.then === 'function'
  )
}

// Encoding. The id is written separately, because JSON.stringify cannot write a bigint.

export function encodeId(id: Id): string {
  return typeof id === 'string' ? JSON.stringify(id) : String(id)
}

/** Throws if the result cannot be written as JSON. */
export function encodeResult(id: Id, result: unknown): string {
  const frame = `{"jsonrpc":"2.0","id":${encodeId(id)},"result":${stringifyWithId(id, result) ?? '{}'}}`
  if (frame.length > MAX_SENT_LENGTH)
    throw new RangeError(`The result has more than ${MAX_SENT_LENGTH} characters`)
  return frame
}

/** JSON that may contain the id of a request, which JSON.stringify cannot write if it is a bigint. */
export function stringifyWithId(id: Id, value: unknown): string | undefined {
  if (typeof id !== 'bigint') return JSON.stringify(value)
  const mark = crypto.randomUUID()
  return JSON.stringify(value, (_, each: unknown) => (each === id ? mark : each))?.replaceAll(
    `"${mark}"`,
    String(id),
  )
}

/** How the `id` of an error response is written if that of the request could not be read. */
export type UnreadableId = 'null' | 'omitted'

export function encodeError(
  id: Id | undefined,
  { code, message, data }: RpcError,
  unreadable: UnreadableId,
): string {
  const error = JSON.stringify({ code, message, data })
  if (id !== undefined) return `{"jsonrpc":"2.0","id":${encodeId(id)},"error":${error}}`
  return unreadable === 'null'
    ? `{"jsonrpc":"2.0","id":null,"error":${error}}`
    : `{"jsonrpc":"2.0","error":${error}}`
}

/** The response for a thrown RpcError; without its `data` if that cannot be written as JSON. */
export function encodeThrown(id: Id, error: RpcError): string {
  try {
    return encodeError(id, error, 'null')
  } catch {
    return encodeError(id, new RpcError(error.code, String(error.message)), 'null')
  }
}

export function encodeRequest(id: Id, method: string, params: unknown): string {
  const head = `{"jsonrpc":"2.0","id":${encodeId(id)},"method":${JSON.stringify(method)}`
  return params === undefined ? `${head}}` : `${head},"params":${JSON.stringify(params)}}`
}

export function encodeNotification(method: string, params: unknown): string {
  const head = `{"jsonrpc":"2.0","method":${JSON.stringify(method)}`
  return params === undefined ? `${head}}` : `${head},"params":${JSON.stringify(params)}}`
}

export function sendNotification(send: Send, method: string, params?: unknown): void {
  send(encodeNotification(method, params), { kind: 'notification', method, params })
}
