import { METHODS } from '../protocol/methods.js'
import { isObject } from '../schema/issue.js'
import { type Finding, FrameFindings } from './findings.js'
import { type Direction, type EventRecord, bytesOf } from './format.js'
import type { EventFields, Frame, Span } from './frames.js'
import type { HttpExchange } from './http-exchange.js'
import { headOf, placeOf } from './http-rows.js'
import { valueAt } from './lazy-json.js'
import type { Message } from './messages.js'
import type { Link, Operation, Status } from './operations.js'

/** One line of a view: a message, a frame that is not a message, or an event. */
export interface Row {
  kind:
    | 'request'
    | 'notification'
    | 'response'
    | 'invalid'
    | 'unanswered'
    | 'blank'
    | 'gap'
    | 'http'
    | 'other'
    | 'event'
  ns: number
  /** Undefined for an event. */
  dir: Direction | undefined
  /** The byte range of the frame. */
  start: number
  end: number
  revision: string | undefined
  /** Of a response: that of its request. */
  method: string | undefined
  /** The tool, prompt or resource that the request names. */
  target: string | undefined
  id: string | undefined
  /** Of a response, or of a request that was cancelled. */
  status: Status | undefined
  /** Of a response: nanoseconds since the last byte of the request was read. */
  duration: number | undefined
  /** Of a response: how many progress notifications came before it. */
  progress: number
  /** An error, a log message, a stray line, or what an event says. */
  text: string
  findings: Finding[]
  /** The request that it is, answers or belongs to. */
  operation: Operation | undefined
  /** The number of the HTTP request and response; `start` and `end` are positions in one of their bodies. */
  exchange?: number
  /** The content coding of that body, after whose decoding they are positions. */
  coding?: string
  /** The fields of a server-sent event, except for its data. */
  fields?: EventFields
}

/** Maximum characters of a row's text. */
const MAX_TEXT = 500

export function messageRow(message: Message, frame: Frame, link: Link, findings: Finding[]): Row {
  const { operation, revision } = link
  const isResponse = message.kind === 'response'
  const before = message.kind === 'request' ? operation?.continues : undefined
  const continued = before === undefined ? undefined : `continues request ${before.id.text}`
  const row: Row = {
    kind: message.kind,
    ns: frame.lastNs,
    dir: frame.dir,
    start: frame.start,
    end: frame.end,
    revision: revision?.id,
    method: isResponse ? operation?.method : message.method,
    target: operation?.target,
    id: message.id?.text.slice(0, MAX_TEXT),
    status: isResponse ? (operation?.status ?? statusOfOrphan(message)) : undefined,
    duration: isResponse && operation !== undefined ? frame.lastNs - operation.startNs : undefined,
    progress: isResponse ? (operation?.progress ?? 0) : 0,
    text: (continued ?? textOf(message)).slice(0, MAX_TEXT),
    findings,
    operation,
  }
  // Spreading the place into each row would take a quarter of the time of the whole analysis.
  return frame.exchange === undefined ? row : { ...row, ...placeOf(frame) }
}

function statusOfOrphan({ error }: Message): Status {
  return error === undefined ? 'ok' : 'error'
}

/** What a reader wants to know of a message besides its method. */
function textOf({ kind, method, params, error, result, id }: Message): string {
  if (error !== undefined) {
    const { value } = error
    return isObject(value) ? `${String(value['code'])} ${String(value['message'])}` : ''
  }
  if (kind === 'response') return valueAt(result, 'isError') === true ? contentText(result) : ''
  if (method === 'notifications/message') {
    const data = valueAt(params, 'data')
    return typeof data === 'string' ? data : (JSON.stringify(data) ?? '')
  }
  if (method === 'notifications/progress')
    return [valueAt(params, 'progress'), valueAt(params, 'total')]
      .filter((value) => typeof value === 'number')
      .join('/')
  if (method === 'notifications/cancelled')
    return `request ${JSON.stringify(valueAt(params, 'requestId')) ?? ''}`
  return id === undefined && kind === 'invalid' ? 'not a JSON-RPC message' : ''
}

function contentText(result: Message['result']): string {
  const content = valueAt(result, 'content')
  const [first] = Array.isArray(content) ? (content as unknown[]) : []
  const text = isObject(first) ? first['text'] : undefined
  return typeof text === 'string' ? text : ''
}

const FRAME_ROWS = {
  message: 'invalid',
  header: 'invalid',
  blank: 'blank',
  comment: 'blank',
  gap: 'gap',
  other: 'other',
} as const

export function frameRow(frame: Frame, findings: Finding[]): Row {
  const row: Row = {
    ...EMPTY,
    kind: FRAME_ROWS[frame.kind],
    ns: frame.lastNs,
    dir: frame.dir,
    start: frame.start,
    end: frame.end,
    text: frameText(frame).slice(0, MAX_TEXT),
    findings,
  }
  return frame.exchange === undefined ? row : { ...row, ...placeOf(frame) }
}

function frameText({ kind, start, end, text = '', fields, coding }: Frame): string {
  if (kind === 'gap')
    return coding === undefined
      ? `${end - start} bytes were not recorded`
      : `the rest of the body could not be decoded (${coding})`
  if (kind !== 'other' || fields === undefined) return text
  const named = Object.entries(fields).map(([name, value]) => `${name} ${String(value)}`)
  return [...named, text].filter((each) => each !== '').join(' ')
}

/** A message that a resumed stream repeats. */
export function repeatedRow(message: Message, frame: Frame): Row {
  return {
    ...EMPTY,
    ...placeOf(frame),
    kind: message.kind,
    method: message.method,
    id: message.id?.text.slice(0, MAX_TEXT),
    text: 'sent again, in a resumed stream',
    findings: [],
  }
}

const EMPTY = {
  dir: undefined,
  start: 0,
  end: 0,
  revision: undefined,
  method: undefined,
  target: undefined,
  id: undefined,
  status: undefined,
  duration: undefined,
  progress: 0,
  operation: undefined,
} as const

export function eventRow(record: EventRecord): Row {
  return {
    ...EMPTY,
    kind: 'event',
    ns: record.ns,
    method: record.event,
    text: describeEvent(record).slice(0, MAX_TEXT),
    findings: [],
  }
}

function describeEvent({ event, text, base64, ...rest }: EventRecord): string {
  if (event === 'stderr')
    return text ?? new TextDecoder().decode(bytesOf(base64 === undefined ? {} : { base64 }))
  const shown = Object.entries(rest).filter(
    ([name]) => name !== 'type' && name !== 'ns' && name !== 'env',
  )
  return shown
    .map(([name, value]) => {
      const words = Array.isArray(value) ? (value as unknown[]).map(String) : [String(value)]
      return `${name} ${words.join(' ')}`
    })
    .join(', ')
}

export function unansweredRows(operations: readonly Operation[], isFinding: boolean): Row[] {
  return operations
    .filter(({ method, status }) => METHODS.get(method)?.stream !== true && status !== 'cancelled')
    .map((operation) => unansweredRow(operation, isFinding))
}

/** A request without a response, with the bytes of the request. */
function unansweredRow(operation: Operation, isFinding: boolean): Row {
  const { dir, id, method, target, revision, startNs, span, exchange } = operation
  const place = exchange === undefined ? {} : { exchange }
  const found = new FrameFindings({ dir, text: undefined, body: span, ...place })
  found.revision = revision
  if (isFinding) found.bytes('unanswered-request', span)
  return {
    ...EMPTY,
    ...span,
    kind: 'unanswered',
    ns: startNs,
    dir,
    revision: revision?.id,
    method,
    target,
    id: id.text,
    text: 'no response',
    findings: found.list,
    operation,
    ...(exchange === undefined ? {} : { exchange: exchange.id }),
  }
}

/** The head of a request, or of its response. */
export function headRow(exchange: HttpExchange, ns: number, dir: Direction): Row {
  return { ...EMPTY, ...headOf(exchange, ns, dir) }
}

/** At the end of a capture: the tools that were never called, and where they were listed. */
export function unusedToolsRow(span: Span, detail: string): Row {
  const found = new FrameFindings({ dir: 'out', text: undefined, body: span })
  found.bytes('unused-tools', span, detail)
  return {
    ...EMPTY,
    ...span,
    kind: 'event',
    ns: 0,
    method: 'unused tools',
    text: detail.slice(0, MAX_TEXT),
    findings: found.list,
  }
}
