import type { Revision } from '../protocol/revisions/index.js'
import { isObject } from '../schema/issue.js'
import type { Direction } from './format.js'
import type { Frame, Span } from './frames.js'
import { type JsonFault, type JsonNode, bytesIn } from './json.js'
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

/**
 * Positions in the text of a frame → byte positions. Each is counted from the one before: a frame may have many findings,
 * and all of them from the beginning would take quadratic time.
 */
class BytePositions {
  readonly #text: string
  readonly #frame: Place
  #last = { position: 0, bytes: 0 }
  /** With several lines of data: where they begin in the text. */
  #lineStarts: { position: number; bytes: number }[] | undefined

  constructor(frame: Place) {
    this.#text = frame.text ?? ''
    this.#frame = frame
  }

  span({ start, end }: Span): Span {
    return { start: this.#byteOf(start), end: this.#byteOf(end) }
  }

  #byteOf(position: number): number {
    const { body, lines } = this.#frame
    if (lines === undefined) return body.start + this.#bytesBefore(position)
    this.#lineStarts ??= this.#findLines()
    let [low, high] = [0, this.#lineStarts.length]
    while (high - low > 1) {
      const middle = (low + high) >> 1
      if ((this.#lineStarts[middle]?.position ?? 0) <= position) low = middle
      else high = middle
    }
    const inLine = this.#bytesBefore(position) - (this.#lineStarts[low]?.bytes ?? 0)
    return (lines[low] ?? 0) + inLine
  }

  #bytesBefore(position: number): number {
    const { position: from, bytes } = this.#last
    const moved =
      position < from
        ? -bytesIn(this.#text.slice(position, from))
        : bytesIn(this.#text.slice(from, position))
    this.#last = { position, bytes: bytes + moved }
    return bytes + moved
  }

  #findLines(): { position: number; bytes: number }[] {
    let position = 0
    return this.#text.split('\n').map((line) => {
      const start = { position, bytes: this.#bytesBefore(position) }
      position += line.length + 1
      return start
    })
  }
}

/** Collects the findings of one frame. Positions in its text become byte positions. */
export class FrameFindings {
  readonly list: Finding[] = []
  readonly #frame: Place
  readonly #positions: BytePositions
  /** The revision of the messages in the frame, for links into the specification. */
  revision: Revision | undefined

  /** `before`: those of an earlier message of the frame. */
  constructor(frame: Place, before?: FrameFindings) {
    this.#frame = frame
    this.#positions = before === undefined ? new BytePositions(frame) : before.#positions
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
  span(place: Span): Span {
    return this.#positions.span(place)
  }
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
