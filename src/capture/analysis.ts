import { isObject } from '../schema/issue.js'
import {
  type CaptureRecord,
  type ChunkRecord,
  type Direction,
  type EventRecord,
  bytesOf,
} from './format.js'
import { type Finding, FrameFindings, checkFrame, checkJson, checkMessage } from './findings.js'
import { type Frame, FrameParser } from './frames.js'
import { parseJson } from './json.js'
import { type Message, messagesOf, valueAt } from './messages.js'
import { type Link, type Operation, Operations, type Status } from './operations.js'
import { METHODS } from '../protocol/methods.js'
import type { SchemaCheck } from './schema-check.js'
import { SessionRules } from './session-rules.js'

/** One line of a view: a message, a frame that is none, or an event. */
export interface Row {
  kind:
    | 'request'
    | 'notification'
    | 'response'
    | 'invalid'
    | 'unanswered'
    | 'blank'
    | 'gap'
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
}

/** Maximum characters of a row's text. */
const MAX_TEXT = 500

/** Turns the records of a capture into rows. Memory is bounded by open requests, ids and one message. */
export class Analysis {
  readonly #parsers = { in: new FrameParser('in'), out: new FrameParser('out') }
  readonly #operations = new Operations()
  readonly #rules: SessionRules
  #hasExited = false

  constructor(schemas: ReadonlyMap<string, SchemaCheck>) {
    this.#rules = new SessionRules(schemas)
  }

  add(record: CaptureRecord): Row[] {
    if (record.type === 'chunk') return this.#chunk(record)
    if (record.type !== 'event') return []
    // Without an exit the capture is still being written, or its writer was killed.
    if (record.event === 'exit') this.#hasExited = true
    return [eventRow(record)]
  }

  /** Whether the server has exited, so that nothing follows. */
  get hasExited(): boolean {
    return this.#hasExited
  }

  /** The end of the capture: incomplete lines and unanswered requests. They are findings only if the server has exited. */
  end(): Row[] {
    const frames = [...this.#parsers.in.end(), ...this.#parsers.out.end()]
    const rows = this.#hasExited ? frames.flatMap((frame) => this.#frame(frame)) : []
    const unanswered = this.#operations
      .pending()
      .filter(
        ({ method, status }) => METHODS.get(method)?.stream !== true && status !== 'cancelled',
      )
    return [...rows, ...unanswered.map((operation) => unansweredRow(operation, this.#hasExited))]
  }

  #chunk(record: ChunkRecord): Row[] {
    const parser = this.#parsers[record.dir]
    const { text, offset, ns } = record
    const line = text === undefined ? undefined : parser.pushLine(text, offset, ns)
    if (line !== undefined) return this.#frame(line)
    return parser.push(bytesOf(record), offset, ns).flatMap((frame) => this.#frame(frame))
  }

  #frame(frame: Frame): Row[] {
    const found = new FrameFindings(frame)
    found.revision = this.#operations.revision
    const isWhole = frame.faults.every(({ kind }) => kind !== 'missing-bytes')
    checkFrame(frame, found)
    if (frame.kind !== 'message' || frame.text === undefined || !isWhole)
      return [frameRow(frame, found.list)]
    const { node, faults } = parseJson(frame.text)
    checkJson(frame, faults, found)
    if (node === undefined) return [frameRow(frame, found.list)]
    const messages = messagesOf(node, frame.text)
    // An empty batch has no message.
    if (messages.length === 0) found.text('invalid-message', node, 'it is an empty array')
    if (messages.length === 0) return [frameRow(frame, found.list)]
    const [first, ...more] = messages
    return [
      ...(first === undefined ? [] : [this.#message(first, frame, found)]),
      ...more.map((message) => this.#message(message, frame, new FrameFindings(frame))),
    ]
  }

  #message(message: Message, frame: Frame, found: FrameFindings): Row {
    const link = this.#operations.add(message, frame)
    found.revision = link.revision
    checkMessage(message, found)
    if (link.problem !== undefined)
      found.text(link.problem, message.node, `id ${(message.id?.text ?? '').slice(0, 100)}`)
    this.#rules.check(message, frame.dir, link, this.#operations.isStateless, found)
    return messageRow(message, frame, link, found.list)
  }
}

function messageRow(message: Message, frame: Frame, link: Link, findings: Finding[]): Row {
  const { operation, revision } = link
  const isResponse = message.kind === 'response'
  const before = message.kind === 'request' ? operation?.continues : undefined
  const continued = before === undefined ? undefined : `continues request ${before.id.text}`
  return {
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
  return id === undefined && kind === 'invalid' ? 'no JSON-RPC message' : ''
}

function contentText(result: Message['result']): string {
  const content = valueAt(result, 'content')
  const [first] = Array.isArray(content) ? (content as unknown[]) : []
  const text = isObject(first) ? first['text'] : undefined
  return typeof text === 'string' ? text : ''
}

const FRAME_ROWS = { message: 'invalid', header: 'invalid', blank: 'blank', gap: 'gap' } as const

function frameRow(frame: Frame, findings: Finding[]): Row {
  return {
    ...EMPTY,
    kind: FRAME_ROWS[frame.kind],
    ns: frame.lastNs,
    dir: frame.dir,
    start: frame.start,
    end: frame.end,
    text:
      frame.kind === 'gap'
        ? `${frame.end - frame.start} bytes were not recorded`
        : (frame.text ?? '').slice(0, MAX_TEXT),
    findings,
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

function eventRow(record: EventRecord): Row {
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

/** A request without a response, with the bytes of the request. */
function unansweredRow(operation: Operation, hasExited: boolean): Row {
  const { dir, id, method, target, revision, startNs, span } = operation
  const found = new FrameFindings({ dir, text: undefined, body: span })
  found.revision = revision
  if (hasExited) found.bytes('unanswered-request', span)
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
  }
}
