import { type ChunkRecord, type Direction, type EventRecord, bytesOf } from './format.js'
import type { Frame } from './frames.js'
import { EventStreamBody, WholeBody } from './http-body.js'
import { type Decoder, ExpansionLimit, decoderOf } from './http-coding.js'
import {
  type HeaderPairs,
  type HttpExchange,
  addResponse,
  exchangeOf,
  hasHead,
  headerOf,
  mediaType,
  pathOf,
} from './http-exchange.js'
import { parseUrl } from '../runtime.js'

/** Exchanges that are followed at the same time; beyond that, the oldest is taken to have ended. */
const MAX_OPEN = 10_000

interface Open {
  exchange: HttpExchange
  in: Body | undefined
  out: Body | undefined
  ended: Set<Direction>
}

/** What a record says about HTTP. */
export interface HttpStep {
  /** The request or the response whose head it is. */
  request?: HttpExchange
  response?: HttpExchange
  frames: Frame[]
  /** An exchange of which nothing follows. `by`: who has ended it early; `analysis`: it is not followed any longer. */
  closed?: { exchange: HttpExchange; by: EndedBy }
}

type EndedBy = 'client' | 'server' | 'analysis' | undefined

/** The records of HTTP captures → exchanges and frames. */
export class HttpTraffic {
  readonly #open = new Map<number, Open>()
  readonly #limit = new ExpansionLimit()
  /** The paths that carry MCP: that of the server's URL, and those that an `endpoint` event has named. */
  readonly #paths = new Set<string>()
  /** How often something was not recorded. */
  #losses = 0

  /** `path`: where else messages are sent to. */
  addPath(path: string): void {
    if (this.#paths.size < MAX_OPEN) this.#paths.add(path)
  }

  /** Whether an exchange is on a path that carries MCP, as far as the capture says which these are. */
  isOnPath({ target }: HttpExchange): boolean {
    return target === '' || this.#paths.size === 0 || this.#paths.has(pathOf(target))
  }

  /** Undefined for an event that says nothing about HTTP. */
  event(record: EventRecord): HttpStep | undefined {
    const { event, exchange: id, dir } = record
    const namesTarget = event === 'listen' || event === 'target'
    if (namesTarget && typeof record['target'] === 'string') {
      const { target } = record
      const url = parseUrl(target)
      if (url !== undefined) this.addPath(url.pathname)
      return undefined
    }
    if (typeof id !== 'number') return undefined
    if (event === 'request') return this.#request(record, id)
    const open = this.#open.get(id)
    if (open === undefined) return undefined
    if (event === 'response') {
      addResponse(open.exchange, record)
      return { response: open.exchange, frames: [] }
    }
    if (event === 'end' && (dir === 'in' || dir === 'out')) return this.#end(open, dir)
    if (event === 'aborted') return this.#aborted(open, record['by'])
    return undefined
  }

  chunk(record: ChunkRecord, id: number): Frame[] {
    const open = this.#opened(id)
    const { dir } = record
    const body = (open[dir] ??= this.#body(open.exchange, dir))
    body.losses = this.#losses
    return body.push(bytesOf(record), record.offset, record.ns)
  }

  /** Something was not recorded. In each body, the offset of the next bytes tells whether they follow a gap. */
  noteLoss(): void {
    this.#losses++
  }

  /** The end of the capture. */
  end(): HttpStep[] {
    return [...this.#open.values()].map((open) => this.#aborted(open, undefined))
  }

  #request(record: EventRecord, id: number): HttpStep {
    const before = this.#open.get(id)
    const exchange = exchangeOf(record, id)
    this.#open.delete(id)
    this.#open.set(id, { exchange, in: undefined, out: undefined, ended: new Set() })
    const oldest = this.#open.size > MAX_OPEN ? this.#open.values().next().value : undefined
    const replaced = before ?? oldest
    if (oldest !== undefined) this.#open.delete(oldest.exchange.id)
    const ended = replaced === undefined ? {} : closed(replaced, 'analysis')
    return { request: exchange, frames: [], ...ended }
  }

  /** A chunk of an exchange whose beginning the capture lacks. */
  #opened(id: number): Open {
    const found = this.#open.get(id)
    if (found !== undefined) return found
    const exchange = exchangeOf({ type: 'event', event: 'request', ns: 0 }, id)
    const open: Open = { exchange, in: undefined, out: undefined, ended: new Set() }
    this.#open.set(id, open)
    return open
  }

  #end(open: Open, dir: Direction): HttpStep {
    const { exchange, ended } = open
    ended.add(dir)
    const body = open[dir]
    const frames = body?.end(body.losses === this.#losses) ?? []
    // A response may end before its request.
    if (ended.size < 2) return { frames }
    this.#open.delete(exchange.id)
    return { frames, ...closed(open) }
  }

  #aborted(open: Open, by: unknown): HttpStep {
    const { exchange, ended } = open
    this.#open.delete(exchange.id)
    const frames = (['in', 'out'] as const).flatMap((dir) =>
      ended.has(dir) ? [] : (open[dir]?.end(false) ?? []),
    )
    return { frames, ...closed(open, by === 'client' || by === 'server' ? by : undefined) }
  }

  #body(exchange: HttpExchange, dir: Direction): Body {
    const headers = dir === 'in' ? exchange.requestHeaders : exchange.responseHeaders
    const coding = (headerOf(headers, 'content-encoding') ?? '').trim().toLowerCase()
    const parser =
      mediaType(headers) === 'text/event-stream'
        ? new EventStreamBody(dir)
        : new WholeBody(dir, (text) => this.#isMessage(exchange, dir, headers, text))
    return new Body(
      exchange,
      parser,
      coding,
      decoderOf(coding, this.#limit),
      hasHead(exchange, dir),
    )
  }

  /** Only the server's own path has messages; other paths have OAuth metadata and the like. */
  #isMessage(
    { target, status = 200, method }: HttpExchange,
    dir: Direction,
    headers: HeaderPairs,
    text: string,
  ): boolean {
    const looksLikeMessage = text.includes('"jsonrpc"')
    if (!this.#paths.has(pathOf(target))) return looksLikeMessage
    if (dir === 'in') return method === 'POST'
    const isJson = /^application\/(?:.*\+)?json$/.test(mediaType(headers))
    return looksLikeMessage || (isJson && status >= 200 && status < 300)
  }
}

function closed({ exchange }: Open, by?: EndedBy): Pick<HttpStep, 'closed'> {
  return { closed: { exchange, by } }
}

/** One body: raw bytes → decoded bytes → frames. */
class Body {
  readonly #exchange: HttpExchange
  readonly #parser: EventStreamBody | WholeBody
  readonly #coding: string
  readonly #decoder: Decoder | undefined
  /** Bytes as they were sent. */
  #position = 0
  #undecoded = 0
  #isBroken = false
  readonly #hasHead: boolean
  #ns = 0
  /** How often something was not recorded before its last bytes. */
  losses = 0

  constructor(
    exchange: HttpExchange,
    parser: EventStreamBody | WholeBody,
    coding: string,
    decoder: Decoder | undefined,
    hasHead: boolean,
  ) {
    this.#exchange = exchange
    this.#parser = parser
    this.#coding = coding
    this.#decoder = decoder
    this.#hasHead = hasHead
  }

  push(bytes: Uint8Array, offset: number, ns: number): Frame[] {
    const decoder = this.#decoder
    if (decoder === undefined) return this.#framed(this.#parser.push(bytes, offset, ns))
    this.#ns = ns
    // Nothing can be decoded after a gap.
    this.#isBroken ||= offset > this.#position
    const fresh = bytes.subarray(Math.max(0, this.#position - offset))
    this.#position += fresh.length
    if (this.#isBroken || decoder.failed) {
      this.#undecoded += fresh.length
      return []
    }
    return this.#decoded(decoder.push(fresh))
  }

  end(isWhole: boolean): Frame[] {
    const decoder = this.#decoder
    if (decoder === undefined) return this.#framed(this.#parser.end(isWhole))
    const frames = this.#decoded(this.#isBroken ? [] : decoder.end())
    const isLost = this.#isBroken || (decoder.failed && isWhole)
    if (isLost)
      frames.push(
        ...this.#framed(
          this.#parser.push(
            new Uint8Array(0),
            this.#parser.length + Math.max(1, this.#undecoded),
            this.#ns,
          ),
        ),
      )
    return [...frames, ...this.#framed(this.#parser.end(isWhole && !isLost))]
  }

  #decoded(pieces: readonly Uint8Array[]): Frame[] {
    return pieces.flatMap((piece) =>
      this.#framed(this.#parser.push(piece, this.#parser.length, this.#ns)),
    )
  }

  #framed(frames: readonly Frame[]): Frame[] {
    const more =
      this.#decoder === undefined
        ? { exchange: this.#exchange }
        : { exchange: this.#exchange, coding: this.#coding }
    return frames.map((frame) => {
      // Without its head, a body may be encoded, or have another type.
      if (!this.#hasHead) frame.faults.push({ kind: 'missing-bytes', start: 0, end: 0 })
      return { ...frame, ...more }
    })
  }
}
