import { INVALID_PARAMS, INVALID_REQUEST, PARSE_ERROR, RpcError } from './errors.js'
import {
  MAX_CONTAINERS,
  elements,
  faultPosition,
  isArray,
  memberNames,
  tooComplex,
  valueAt,
} from './scan.js'

/** An integer beyond 2^53 is a bigint, so that its digits survive. */
export type Id = string | number | bigint
export type Params = Readonly<Record<string, unknown>>

export interface Request {
  kind: 'request'
  id: Id
  method: string
  params: Params | undefined
  /** The text it came as. */
  frame: string
  /** What the protocol layer has read of `params._meta`, so that it is read once. */
  meta?: object
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
  /** The text it came as: a relay forwards large numbers and unknown members untouched. */
  frame: string
}
/** The texts of its messages: each is read by itself. Of more than MAX_BATCH, only one more. */
export interface Batch {
  kind: 'batch'
  frames: string[]
}
/** What cannot be understood, and what a server answers to it. */
export interface Invalid {
  kind: 'invalid'
  /** The id of the request that it was meant to be, where it can be read. */
  id: Id | undefined
  error: RpcError
  /** An answer, or a notification: nothing that one may answer. */
  mute: boolean
}
export type Message = Request | Notification | Response | Batch | Invalid

/*
 * What a frame that is sent contains. A transport is given it beside the frame, so that none has to parse what was
 * encoded just before: HTTP needs it for headers and for the choice of a stream.
 */
export interface SentRequest {
  readonly kind: 'request'
  readonly id: Id
  readonly method: string
  readonly params: unknown
  /** The protocol version that the request is sent in, where the sender has one. */
  readonly protocolVersion?: string | undefined
  /** Arguments that HTTP repeats in headers `Mcp-Param-…`, by the name of the header. */
  readonly headerParams?: Readonly<Record<string, string | number | boolean>> | undefined
}
interface SentNotification {
  readonly kind: 'notification'
  readonly method: string
  readonly params?: unknown
}
export interface SentResponse {
  /** What follows holds until it was sent: the result is not kept for the channel. */
  readonly kind: 'response'
  /** None where the id of the request could not be read. */
  readonly id: Id | undefined
  readonly result?: unknown
  readonly error?: RpcError | undefined
}
export type SentMessage = SentRequest | SentNotification | SentResponse
export type Send = (frame: string, message: SentMessage) => void

const MAX_DEPTH = 512
/** Whoever serves batches takes fewer. */
export const MAX_BATCH = 1000
const MAX_ID_LENGTH = 1024

/** Reads one frame. Never throws: what is wrong comes back as `invalid`. */
export function read(frame: string, maxDepth = MAX_DEPTH): Message {
  // Nobody takes so many, whatever they are: to parse them would cost a hundred times what was sent.
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
    return unread(frame, frame.slice(-MAX_ID_LENGTH - 100), refusal(`the message ${reason}`))
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

/** A message that was too large or too deep to be parsed: its ends may still tell whose it is. */
export function unread(head: string, tail: string, error: RpcError): Invalid {
  const written = valueAt(head, ['id']) ?? ID_AT_END.exec(tail)?.[1]
  const id = written === undefined ? undefined : readId(written)
  const names = memberNames(head)
  if (names.has('method')) return invalid(id, error)
  // An answer is never answered; whoever waits for it is told.
  const mute = names.has('result') || names.has('error')
  return { kind: 'invalid', id: mute || names.has('params') ? id : undefined, error, mute }
}

/** Many clients write the id last. */
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
      return { kind: 'invalid', id: undefined, error: wrongParams(), mute: true }
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
    return { kind: 'invalid', id, error: refusal('this is not a valid answer'), mute: true }
  }
  if (!('error' in value)) return { kind: 'response', id, outcome: { result }, frame }
  const { code, message, data } = isObject(error) ? error : {}
  const known = typeof code === 'number' && typeof message === 'string'
  if (!known)
    return {
      kind: 'invalid',
      id,
      error: refusal('an error needs a code and a message'),
      mute: true,
    }
  return { kind: 'response', id, outcome: { error: new RpcError(code, message, data) }, frame }
}

/** The id as it is to be echoed, or undefined where no answer could carry it. */
function usableId(value: unknown, frame: string): Id | undefined {
  if (typeof value === 'string') return value.length <= MAX_ID_LENGTH ? value : undefined
  if (typeof value !== 'number') return undefined
  return Number.isSafeInteger(value) ? value : exactInteger(value, frame, ['id'])
}

/**
 * The integer that stands at a path of the frame, digit for digit. JSON.parse
 * has rounded it if it is beyond 2^53; only then is the text asked again.
 */
export function exactInteger(
  value: number,
  frame: string,
  path: readonly string[],
): number | bigint | undefined {
  if (Number.isSafeInteger(value)) return value
  const digits = valueAt(frame, path)
  return digits !== undefined && digits.length <= MAX_ID_LENGTH && /^-?\d+$/.test(digits)
    ? BigInt(digits)
    : undefined
}

function readId(written: string): Id | undefined {
  try {
    return usableId(JSON.parse(written), `{"id":${written}}`)
  } catch {
    return undefined
  }
}

function invalid(id: Id | undefined, error: RpcError): Invalid {
  return { kind: 'invalid', id, error, mute: false }
}

function refusal(reason: string): RpcError {
  return new RpcError(INVALID_REQUEST, `Invalid Request: ${reason}`)
}

function wrongParams(): RpcError {
  return new RpcError(INVALID_PARAMS, 'Invalid params: "params" must be an object')
}

function parseError(frame: string): RpcError {
  const position = faultPosition(frame)
  const character = String.fromCodePoint(frame.codePointAt(position) ?? 0)
  const found =
    position < frame.length ? `unexpected ${JSON.stringify(character)}` : 'unexpected end'
  return new RpcError(PARSE_ERROR, `Parse error: ${found} at position ${position}`, { position })
}

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** Whether `await` would wait for it. Throws where reading its `then` does. */
export function isThenable(value: unknown): value is PromiseLike<unknown> {
  return (
    ((typeof value === 'object' && value !== null) || typeof value === 'function') &&
    'then' in value &&
    typeof value.then === 'function'
  )
}

// Encoding. The id is written by hand, since JSON.stringify knows no bigint.

export function encodeId(id: Id): string {
  return typeof id === 'string' ? JSON.stringify(id) : String(id)
}

/** Throws where the result cannot be written as JSON. */
export function encodeResult(id: Id, result: unknown): string {
  const written = typeof id === 'bigint' ? stringifyWithId(id, result) : JSON.stringify(result)
  return `{"jsonrpc":"2.0","id":${encodeId(id)},"result":${written ?? '{}'}}`
}

/** A result may name the id of its request, which JSON.stringify cannot write where it is a bigint. */
function stringifyWithId(id: bigint, result: unknown): string | undefined {
  const mark = crypto.randomUUID()
  return JSON.stringify(result, (_, value: unknown) => (value === id ? mark : value))?.replaceAll(
    `"${mark}"`,
    String(id),
  )
}

/** How an error is written whose request's id could not be read. */
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

/** An error as it was meant; without its `data` where that cannot be written as JSON. */
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
