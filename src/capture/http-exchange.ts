import type { Direction, EventRecord } from './format.js'

/** Headers in the order and the case in which they were sent. */
export type HeaderPairs = readonly (readonly [name: string, value: string])[]

/** An HTTP request and its response. */
export interface HttpExchange {
  readonly id: number
  /** The connection of the client that it was sent on. */
  readonly connection: number | undefined
  readonly method: string
  /** Path and query. */
  readonly target: string
  readonly requestHeaders: HeaderPairs
  /** Undefined until the response began. */
  status: number | undefined
  reason: string
  responseHeaders: HeaderPairs
}

/** The exchange that a `request` event begins. A capture may lack some of it, so nothing is required. */
export function exchangeOf(record: EventRecord, id: number): HttpExchange {
  const { method, target, connection, headers } = record
  return {
    id,
    connection: typeof connection === 'number' ? connection : undefined,
    method: typeof method === 'string' ? method : '',
    target: typeof target === 'string' ? target : '',
    requestHeaders: headerPairs(headers),
    status: undefined,
    reason: '',
    responseHeaders: [],
  }
}

/** Whether the capture has the head of the request (`in`) or of the response (`out`). */
export function hasHead({ method, status }: HttpExchange, dir: Direction): boolean {
  return dir === 'in' ? method !== '' : status !== undefined
}

/** Adds what a `response` event says. */
export function addResponse(exchange: HttpExchange, record: EventRecord): void {
  const { status, reason, headers } = record
  exchange.status = typeof status === 'number' ? status : undefined
  exchange.reason = typeof reason === 'string' ? reason : ''
  exchange.responseHeaders = headerPairs(headers)
}

function headerPairs(value: unknown): HeaderPairs {
  const pairs: unknown[] = Array.isArray(value) ? value : []
  return pairs.filter(isPair)
}

function isPair(pair: unknown): pair is readonly [string, string] {
  return Array.isArray(pair) && pair.length === 2 && pair.every((each) => typeof each === 'string')
}

/** The value of a header; several of the same name are joined, as HTTP allows. */
export function headerOf(headers: HeaderPairs, name: string): string | undefined {
  const values = headers.filter(([each]) => each.toLowerCase() === name).map(([, value]) => value)
  return values.length === 0 ? undefined : values.join(', ')
}

/** The media type of a body, without parameters. */
export function mediaType(headers: HeaderPairs): string {
  return (headerOf(headers, 'content-type') ?? '').split(';', 1)[0]?.trim().toLowerCase() ?? ''
}

/** The path of a request target, without its query. */
export function pathOf(target: string): string {
  return target.split(/[?#]/, 1)[0] ?? ''
}
