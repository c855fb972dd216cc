import type { Revision } from '../protocol/revisions/index.js'
import { isObject } from '../schema/issue.js'
import type { Direction } from './format.js'
import type { Frame, Span } from './frames.js'
import { type JsonFault, type JsonNode, bytesBefore } from './json.js'
import { memberOf } from './lazy-json.js'
import type { Message } from './messages.js'
import { RULES, type RuleId, type Severity, clauseUrl } from './rules.js'

/** A broken rule and the bytes that break it. `RULES` has why it matters and what to do. */
export interface Finding extends Span {
  rule: RuleId
  severity: Severity
  /** The URL of the clause of the specification. */
  clause: string
  dir: Direction
  /** The HTTP exchange in whose body the bytes are. */
  exchange?: number
  /** What was found, if the rule alone does not say it. */
  detail: string
}

/** What findings need of a frame. */
type Place = Pick<Frame, 'dir' | 'text' | 'body' | 'exchange' | 'lines'>

/** Collects the findings of one frame. Positions in its text become byte positions. */
export class FrameFindings {
  readonly list: Finding[] = []
  readonly #frame: Place
  /** The revision of the messages in the frame, for links into the specification. */
  revision: Revision | undefined

  constructor(frame: Place) {
    this.#frame = frame
  }

  /** Adds a finding about bytes. */
  bytes(rule: RuleId, { start, end }: Span, detail = ''): void {
    const { dir, exchange } = this.#frame
    this.list.push({
      rule,
      severity: RULES[rule].severity,
      clause: clauseUrl(rule, this.revision),
      dir,
      ...(exchange === undefined ? {} : { exchange: exchange.id }),
      start,
      end,
      detail,
    })
  }

  /** Adds a finding about a part of the text. */
  text(rule: RuleId, place: Span, detail = ''): void {
    this.bytes(rule, this.span(place), detail)
  }

  /** The bytes of a part of the text. */
  span({ start, end }: Span): Span {
    const { text = '', body, lines } = this.#frame
    if (lines !== undefined)
      return { start: byteInLines(text, lines, start), end: byteInLines(text, lines, end) }
    const first = body.start + bytesBefore(text, start)
    return { start: first, end: first + bytesBefore(text.slice(start), end - start) }
  }
}

/** The byte position of a character in the data of an event with several lines. */
function byteInLines(text: string, lines: readonly number[], position: number): number {
  const before = text.slice(0, position)
  const index = before.split('\n').length - 1
  const lineStart = before.lastIndexOf('\n') + 1
  return (lines[index] ?? 0) + bytesBefore(text.slice(lineStart), position - lineStart)
}

/** Rules about the bytes of a frame. */
export function checkFrame(frame: Frame, found: FrameFindings): void {
  for (const fault of frame.faults) {
    // What is missing is not an error of a peer.
    if (fault.kind !== 'missing-bytes') found.bytes(fault.kind, fault)
  }
  if (frame.kind === 'blank') found.bytes('blank-line', frame)
}

/** Rules about JSON. A line that does not even begin like JSON is stray text. */
export function checkJson(frame: Frame, faults: readonly JsonFault[], found: FrameFindings): void {
  const text = frame.text ?? ''
  const isPartial = frame.faults.some(({ kind }) => kind === 'partial-line')
  for (const fault of faults) {
    const isInvalid = fault.kind === 'invalid-json'
    // The end of the stream is reported already.
    if (isInvalid && isPartial) continue
    const isStray = frame.exchange === undefined && !/^\s*[[{]/.test(text)
    if (isInvalid && isStray) found.bytes('stray-text', frame.body)
    else if (isInvalid) found.text('invalid-json', fault, `unexpected ${fault.detail}`)
    else found.text(fault.kind, fault, fault.detail)
  }
}

/** Rules of JSON-RPC about one message. */
export function checkMessage(message: Message, found: FrameFindings): void {
  const { node, kind } = message
  if (!isObject(node.value)) {
    found.text('invalid-message', node, 'it is not an object')
    return
  }
  const version = memberOf(node, 'jsonrpc')
  if (version?.value !== '2.0') found.text('wrong-version', version ?? node)
  if (kind === 'invalid') found.text('invalid-message', node, describeInvalid(node))
  const id = memberOf(node, 'id')
  if (kind === 'request' && id !== undefined && !isId(id)) found.text('invalid-id', id)
  // An error response has no id, or null, if the request could not be read.
  if (kind === 'response' && message.result !== undefined && (id === undefined || !isId(id)))
    found.text('invalid-id', id ?? node)
  if (kind === 'response' && message.error !== undefined) checkError(message.error, found)
}

function checkError(error: JsonNode, found: FrameFindings): void {
  const code = memberOf(error, 'code')
  const text = memberOf(error, 'message')
  if (!Number.isInteger(code?.value)) found.text('invalid-error', code ?? error, 'code')
  if (typeof text?.value !== 'string') found.text('invalid-error', text ?? error, 'message')
}

function isId({ value }: JsonNode): boolean {
  return typeof value === 'string' || Number.isInteger(value)
}

function describeInvalid(node: JsonNode): string {
  if (memberOf(node, 'method') !== undefined) return '"method" is not a string'
  return memberOf(node, 'result') === undefined
    ? 'it has no "method", "result" or "error"'
    : 'it has both "result" and "error"'
}
