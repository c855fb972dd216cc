import { isObject } from '../schema/issue.js'
import {
  ConversationDefinitions,
  SharedDefinitions,
  kindListedBy,
} from './conversation-definitions.js'
import { Definitions } from './definitions.js'
import { type CaptureRecord, type ChunkRecord, type EventRecord, bytesOf } from './format.js'
import { FrameFindings, checkFrame, checkJson, checkMessage } from './findings.js'
import { type Frame, FrameParser } from './frames.js'
import { checkHeaders } from './header-rules.js'
import { type HttpExchange, hasHead, headerOf, mediaType } from './http-exchange.js'
import { type Conversation, HttpSessions, noteLossIn } from './http-sessions.js'
import { type HttpStep, HttpTraffic } from './http-traffic.js'
import type { ParsedJson } from './json.js'
import { parseLazily } from './lazy-json.js'
import { type Message, messagesOf } from './messages.js'
import { type Link, Operations } from './operations.js'
import { outlineOf } from './outline.js'
import {
  type Row,
  eventRow,
  frameRow,
  headRow,
  messageRow,
  repeatedRow,
  unansweredRows,
  unusedToolsRow,
} from './rows.js'
import type { SchemaCheck } from './schema-check.js'
import { SessionRules } from './session-rules.js'
import { parseUrl } from '../runtime.js'

export type { Row } from './rows.js'

/** Turns the records of a capture into rows. Memory is bounded by open requests, ids and one message. */
export class Analysis {
  readonly #parsers = { in: new FrameParser('in'), out: new FrameParser('out') }
  /** The messages of a connection on stdio. */
  readonly #stdio: Conversation
  readonly #traffic = new HttpTraffic()
  readonly #sessions: HttpSessions
  /** What the server has listed. */
  readonly definitions = new Definitions()
  readonly #shared = new SharedDefinitions(this.definitions)
  #hasExited = false
  #hasLoss = false

  constructor(schemas: ReadonlyMap<string, SchemaCheck>) {
    const definitions = new ConversationDefinitions(this.#shared, true)
    this.#stdio = {
      operations: new Operations(),
      definitions,
      rules: new SessionRules(schemas, definitions),
      isPartial: false,
      isLossy: false,
      losses: 0,
      eventIds: new Set(),
    }
    this.#sessions = new HttpSessions(schemas, this.#shared)
  }

  add(record: CaptureRecord): Row[] {
    if (record.type === 'chunk') return this.#chunk(record)
    if (record.type === 'unreadable') this.#noteLoss()
    if (record.type !== 'event') return []
    // Without an exit the capture is still being written, or its writer was killed.
    if (record.event === 'exit') this.#hasExited = true
    // Written once when dropping begins: more may be dropped before the next record.
    if (record.event === 'dropped') this.#noteLoss()
    const step = this.#traffic.event(record)
    if (step === undefined) return [eventRow(record)]
    const rows = this.#step(step, record)
    // Heads have rows of their own, and the end of a body says nothing more.
    const needsRow = record.event === 'aborted'
    return needsRow ? [eventRow(record), ...rows] : rows
  }

  /** Whether the server has exited, so that nothing follows. */
  get hasExited(): boolean {
    return this.#hasExited
  }

  /** Whether something was not recorded, so that some findings are left out. */
  get hasLoss(): boolean {
    return this.#hasLoss
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
    const unanswered = [this.#stdio, ...this.#sessions.open()].flatMap(({ operations, isLossy }) =>
      unansweredRows(operations.pending(), this.#hasExited && !isLossy),
    )
    return [...rows, ...unanswered, ...this.#unusedTools()]
  }

  /** On stdio only: clients over HTTP may come later. */
  #unusedTools(): Row[] {
    const unused = this.#hasExited ? this.#stdio.rules.unusedTools(this.definitions) : undefined
    return unused === undefined ? [] : [unusedToolsRow(unused.span, unused.detail)]
  }

  /** Something was not recorded, and it is not known what. */
  #noteLoss(): void {
    this.#hasLoss = true
    this.#parsers.in.noteLoss()
    this.#parsers.out.noteLoss()
    this.#traffic.noteLoss()
    this.#sessions.noteLoss()
    this.#shared.noteLoss()
    noteLossIn(this.#stdio)
  }

  /** Something of a conversation was not recorded, or cannot be read. */
  #noteLossIn(conversation: Conversation): void {
    this.#hasLoss = true
    this.#shared.noteLoss()
    noteLossIn(conversation)
  }

  /** A part of a body was not recorded, or cannot be decoded. */
  #gap({ exchange, dir }: Frame, conversation: Conversation): void {
    if (exchange === undefined) return this.#noteLossIn(conversation)
    const requests = this.#sessions.requestsOf(exchange)
    const isStream = mediaType(exchange.responseHeaders) === 'text/event-stream'
    const isKnown = dir === 'out' && hasHead(exchange, 'out') && !isStream
    // Other paths have OAuth metadata and the like.
    if (isKnown && requests.length === 0 && !this.#traffic.isOnPath(exchange)) return
    this.#hasLoss = true
    // What is not a stream is the response to these requests.
    const isResponse = isKnown && requests.length > 0
    const lists = requests.flatMap(({ method }) => kindListedBy(method) ?? [])
    this.#shared.noteLoss(isResponse ? lists : undefined)
    noteLossIn(conversation)
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
    if (request !== undefined) this.#sessions.of(request)
    if (response !== undefined) this.#sessions.responded(response)
    const rows = frames.flatMap((frame) => this.#frame(frame))
    if (closed !== undefined) {
      const { exchange, by } = closed
      // A client that disconnects does not want the response.
      const isCertain = by !== 'client' && by !== 'analysis'
      const isFinding = isCertain && !this.#sessions.of(exchange).isLossy
      rows.push(...unansweredRows(this.#sessions.closed(exchange, by), isFinding))
    }
    const head = request ?? response
    if (head !== undefined && record !== undefined)
      rows.push(headRow(head, record.ns, response === undefined ? 'in' : 'out'))
    return rows
  }

  #frame(frame: Frame): Row[] {
    const { exchange, text = '' } = frame
    this.#shared.schemas.read(text.length)
    const conversation = exchange === undefined ? this.#stdio : this.#sessions.of(exchange)
    if (frame.kind === 'gap') this.#gap(frame, conversation)
    const isCut = frame.faults.some(({ kind }) => kind === 'missing-bytes')
    const parsed = parsedOf(frame)
    // Rules are not applied to an incomplete message.
    if (isCut && !isWholeMessage(frame, parsed)) return [frameRow(frame, [])]
    const found = new FrameFindings(frame)
    found.revision = conversation.operations.revision
    checkFrame(frame, found)
    if (exchange !== undefined) this.#endpoint(frame, exchange)
    const isRepeated = this.#sessions.isRepeated(frame)
    if (frame.kind !== 'message') return [frameRow(frame, found.list)]
    const { node, faults } = parsed ?? { node: undefined, faults: [] }
    checkJson(frame, faults, found)
    const isUnread = parsed === undefined || faults.some(({ kind }) => kind === 'deep-nesting')
    const outline = isUnread ? outlineOf(frame) : undefined
    if (outline?.isCertain === false) this.#noteLossIn(conversation)
    const messages = outline?.messages ?? (node === undefined ? [] : messagesOf(node, text))
    // An empty batch has no message.
    if (messages.length === 0 && node !== undefined)
      found.text('invalid-message', node, 'it is an empty array')
    if (messages.length === 0) return [frameRow(frame, found.list)]
    if (isRepeated) return messages.map((message) => repeatedRow(message, frame))
    const [first, ...more] = messages
    return [
      ...(first === undefined ? [] : [this.#message(first, frame, found)]),
      ...more.map((message) => this.#message(message, frame, new FrameFindings(frame, found))),
    ]
  }

  #message(message: Message, frame: Frame, found: FrameFindings): Row {
    const conversation = this.#sessions.ofMessage(message, frame) ?? this.#stdio
    const { operations, rules, isLossy } = conversation
    const { exchange } = frame
    const link: Link = operations.add(message, frame)
    if (exchange !== undefined) link.exchange = exchange
    if (exchange !== undefined && message.kind === 'request' && link.operation !== undefined)
      this.#sessions.sent(exchange, link.operation)
    const { operation, revision } = link
    found.revision = revision
    // What cannot be read is not checked.
    const content = message.isOutline ? new FrameFindings(frame) : found
    checkMessage(message, content)
    const isLinked = operation === undefined || operations.isCertain(operation)
    const mayLackRequest = this.#sessions.mayLackRequest(frame)
    const isUncertain = message.kind === 'response' && mayLackRequest
    // If messages were lost, the problem is certain only for a known request in a revision that never allows an id to be reused.
    const isProblem = !isLossy || (operation !== undefined && revision?.lifecycle === 'handshake')
    if (link.problem !== undefined && !isUncertain && isProblem) {
      const place = message.isOutline ? frame.body : found.span(message.node)
      found.bytes(link.problem, place, `id ${(message.id?.text ?? '').slice(0, 100)}`)
    }
    const list = message.result === undefined ? undefined : kindListedBy(operation?.method)
    if (list !== undefined && message.isOutline) {
      this.#hasLoss = true
      rules.noteUnreadableList(list)
    }
    const certain: Link = isLinked ? link : { revision }
    if (mayLackRequest) certain.mayLackRequest = true
    rules.check(message, frame.dir, certain, operations.isStateless, content)
    if (exchange !== undefined && frame.dir === 'in')
      this.#headers(message, exchange, conversation, link, content)
    return messageRow(message, frame, link, found.list)
  }

  /** The headers of a request repeat a part of its body. */
  #headers(
    message: Message,
    exchange: HttpExchange,
    { definitions }: Conversation,
    { revision, operation }: Link,
    found: FrameFindings,
  ): void {
    if (!hasHead(exchange, 'in')) return
    const tool = definitions.tool(operation?.target ?? '')
    const schema = tool?.['inputSchema']
    const headers = { get: (name: string) => headerOf(exchange.requestHeaders, name) }
    checkHeaders(message, headers, revision, isObject(schema) ? schema : undefined, found)
  }

  /** The first event of HTTP+SSE names where messages are sent to. */
  #endpoint({ fields, text = '', kind }: Frame, exchange: HttpExchange): void {
    if (kind !== 'other' || fields?.event !== 'endpoint') return
    const base = `http://localhost${exchange.target}`
    const url = parseUrl(text, base)
    if (url === undefined) return
    const { pathname, search } = url
    this.#traffic.addPath(pathname)
    this.#sessions.endpoint(exchange, pathname + search)
  }
}

function parsedOf({ kind, text }: Frame): ParsedJson | undefined {
  return kind === 'message' && text !== undefined ? parseLazily(text) : undefined
}

/** Whether a message is whole, although bytes before or after it are missing: no part of a JSON object is one itself. */
function isWholeMessage({ text }: Frame, parsed: ParsedJson | undefined): boolean {
  const { node } = parsed ?? {}
  if (node === undefined || text === undefined) return false
  const messages = messagesOf(node, text)
  return messages.length > 0 && messages.every(({ kind }) => kind !== 'invalid')
}
