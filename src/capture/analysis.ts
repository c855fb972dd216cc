import { isObject } from '../schema/issue.js'
import { Definitions } from './definitions.js'
import {
  type CaptureRecord,
  type ChunkRecord,
  type Direction,
  type EventRecord,
  bytesOf,
} from './format.js'
import { type Finding, FrameFindings, checkFrame, checkJson, checkMessage } from './findings.js'
import { type EventFields, type Frame, FrameParser } from './frames.js'
import { checkHeaders } from './header-rules.js'
import { type HttpExchange, headerOf } from './http-exchange.js'
import { headOf, placeOf } from './http-rows.js'
import { type Conversation, HttpSessions } from './http-sessions.js'
import { type HttpStep, HttpTraffic } from './http-traffic.js'
import { parseLazily, valueAt } from './lazy-json.js'
import { type Message, messagesOf } from './messages.js'
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

/** Turns the records of a capture into rows. Memory is bounded by open requests, ids and one message. */
export class Analysis {
  readonly #parsers = { in: new FrameParser('in'), out: new FrameParser('out') }
  /** The messages of a connection on stdio. */
  readonly #stdio: Conversation
  readonly #traffic = new HttpTraffic()
  readonly #sessions: HttpSessions
  /** What the server has listed. */
  readonly definitions = new Definitions()
  #hasExited = false
  /** Whether something was not recorded: responses may be missing. */
  #isIncomplete = false

  constructor(schemas: ReadonlyMap<string, SchemaCheck>) {
    this.#stdio = {
      operations: new Operations(),
      rules: new SessionRules(schemas, this.definitions),
      isPartial: false,
      eventIds: new Set(),
    }
    this.#sessions = new HttpSessions(schemas, this.definitions)
  }

  add(record: CaptureRecord): Row[] {
    if (record.type === 'chunk') return this.#chunk(record)
    if (record.type !== 'event') return []
    // Without an exit the capture is still being written, or its writer was killed.
    if (record.event === 'exit') this.#hasExited = true
    if (record.event === 'dropped') this.#isIncomplete = true
    const step = this.#traffic.event(record)
    if (step === undefined) return [eventRow(record)]
    const rows = this.#step(step, record)
    // Heads have rows of their own, and the end of a body says nothing more.
    const isShown = record.event !== 'aborted'
    return isShown ? rows : [eventRow(record), ...rows]
  }

  /** Whether the server has exited, so that nothing follows. */
  get hasExited(): boolean {
    return this.#hasExited
  }

  /** The end of the capture: incomplete lines and unanswered requests. They are findings only if the server has exited. */
  end(): Row[] {
    const frames = [...this.#parsers.in.end(), ...this.#parsers.out.end()]
    const steps = this.#traffic.end()
    const rows = this.#hasExited
      ? [
          ...frames.flatMap((frame) => this.#frame(frame)),
          ...steps.flatMap((step) => this.#step(step)),
        ]
      : []
    return [
      ...rows,
      ...unansweredRows(
        [...this.#stdio.operations.pending(), ...this.#sessions.pending()],
        this.#hasExited && !this.#isIncomplete,
      ),
      ...this.#unusedTools(),
    ]
  }

  /** On stdio only: clients over HTTP may come later. */
  #unusedTools(): Row[] {
    const unused = this.#hasExited ? this.#stdio.rules.unusedTools() : undefined
    if (unused === undefined) return []
    const found = new FrameFindings({ dir: 'out', text: undefined, body: unused.span })
    found.bytes('unused-tools', unused.span, unused.detail)
    return [
      {
        ...EMPTY,
        ...unused.span,
        kind: 'event',
        ns: 0,
        method: 'unused tools',
        text: unused.detail.slice(0, MAX_TEXT),
        findings: found.list,
      },
    ]
  }

  #chunk(record: ChunkRecord): Row[] {
    const { text, offset, ns, exchange } = record
    if (exchange !== undefined)
      return this.#traffic.chunk(record, exchange).flatMap((frame) => this.#frame(frame))
    const parser = this.#parsers[record.dir]
    const line = text === undefined ? undefined : parser.pushLine(text, offset, ns)
    if (line !== undefined) return this.#frame(line)
    return parser.push(bytesOf(record), offset, ns).flatMap((frame) => this.#frame(frame))
  }

  #step({ request, response, frames, closed }: HttpStep, record?: EventRecord): Row[] {
    if (response !== undefined) this.#sessions.responded(response)
    const rows = frames.flatMap((frame) => this.#frame(frame))
    if (closed !== undefined) {
      const { exchange, by } = closed
      // A client that disconnects does not want the response.
      const isFinding = by !== 'client' && !this.#isIncomplete
      rows.push(...unansweredRows(this.#sessions.closed(exchange, by), isFinding))
    }
    const head = request ?? response
    if (head !== undefined && record !== undefined)
      rows.push({ ...EMPTY, ...headOf(head, record.ns, response === undefined ? 'in' : 'out') })
    return rows
  }

  #frame(frame: Frame): Row[] {
    const { exchange } = frame
    const conversation = exchange === undefined ? this.#stdio : this.#sessions.of(exchange)
    const found = new FrameFindings(frame)
    found.revision = conversation.operations.revision
    const isWhole = frame.faults.every(({ kind }) => kind !== 'missing-bytes')
    checkFrame(frame, found)
    if (exchange !== undefined) this.#endpoint(frame, exchange)
    const isRepeated = this.#sessions.isRepeated(frame)
    if (frame.kind !== 'message' || frame.text === undefined || !isWhole)
      return [frameRow(frame, found.list)]
    const { node, faults } = parseLazily(frame.text)
    checkJson(frame, faults, found)
    if (node === undefined) return [frameRow(frame, found.list)]
    const messages = messagesOf(node, frame.text)
    // An empty batch has no message.
    if (messages.length === 0) found.text('invalid-message', node, 'it is an empty array')
    if (messages.length === 0) return [frameRow(frame, found.list)]
    if (isRepeated) return messages.map((message) => repeatedRow(message, frame))
    const [first, ...more] = messages
    return [
      ...(first === undefined ? [] : [this.#message(first, frame, found)]),
      ...more.map((message) => this.#message(message, frame, new FrameFindings(frame))),
    ]
  }

  #message(message: Message, frame: Frame, found: FrameFindings): Row {
    const { operations, rules } = this.#sessions.ofMessage(message, frame) ?? this.#stdio
    const { exchange } = frame
    const link: Link = operations.add(message, frame)
    if (exchange !== undefined) link.exchange = exchange
    if (exchange !== undefined && message.kind === 'request' && link.operation !== undefined)
      this.#sessions.sent(exchange, link.operation)
    found.revision = link.revision
    checkMessage(message, found)
    const isUncertain = message.kind === 'response' && this.#sessions.mayLackRequest(frame)
    if (link.problem !== undefined && !isUncertain)
      found.text(link.problem, message.node, `id ${(message.id?.text ?? '').slice(0, 100)}`)
    rules.check(message, frame.dir, link, operations.isStateless, found)
    if (exchange !== undefined && frame.dir === 'in') this.#headers(message, exchange, link, found)
    return messageRow(message, frame, link, found.list)
  }

  /** The headers of a request repeat a part of its body. */
  #headers(
    message: Message,
    { requestHeaders }: HttpExchange,
    { revision, operation }: Link,
    found: FrameFindings,
  ): void {
    const tool = this.definitions.tool(operation?.target ?? '')
    const schema = tool?.['inputSchema']
    const headers = { get: (name: string) => headerOf(requestHeaders, name) }
    checkHeaders(message, headers, revision, isObject(schema) ? schema : undefined, found)
  }

  /** The first event of HTTP+SSE names where messages are sent to. */
  #endpoint({ fields, text = '', kind }: Frame, exchange: HttpExchange): void {
    if (kind !== 'other' || fields?.event !== 'endpoint') return
    const base = `http://localhost${exchange.target}`
    if (!URL.canParse(text, base)) return
    const { pathname, search } = new URL(text, base)
    this.#traffic.addPath(pathname)
    this.#sessions.endpoint(exchange, pathname + search)
  }
}

function messageRow(message: Message, frame: Frame, link: Link, findings: Finding[]): Row {
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
  return id === undefined && kind === 'invalid' ? 'no JSON-RPC message' : ''
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

function frameRow(frame: Frame, findings: Finding[]): Row {
  return {
    ...EMPTY,
    ...placeOf(frame),
    kind: FRAME_ROWS[frame.kind],
    text: frameText(frame).slice(0, MAX_TEXT),
    findings,
  }
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
function repeatedRow(message: Message, frame: Frame): Row {
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

function unansweredRows(operations: readonly Operation[], isFinding: boolean): Row[] {
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
