import { Analysis, type Row } from '../../src/capture/analysis.js'
import { type CaptureRecord, type Direction, chunkRecord } from '../../src/capture/format.js'
import { schemas } from './lines.js'

export const encode = (text: string) => new TextEncoder().encode(text)

/** The records of a capture over HTTP. */
export class Recording {
  readonly records: CaptureRecord[] = []
  #exchange = 0
  #ns = 0

  constructor(target = 'http://127.0.0.1:1/mcp') {
    this.event('listen', { url: 'http://127.0.0.1:2/mcp', target })
  }

  event(event: string, members: object): void {
    this.records.push({ type: 'event', event, ns: this.#ns++, ...members })
  }

  request(
    method: string,
    headers: Record<string, string> = {},
    body = '',
    target = '/mcp',
  ): number {
    const exchange = ++this.#exchange
    this.event('request', {
      exchange,
      connection: 1,
      method,
      target,
      headers: Object.entries(headers),
    })
    if (body !== '') this.chunk(exchange, 'in', 0, encode(body))
    this.event('end', { exchange, dir: 'in' })
    return exchange
  }

  response(
    exchange: number,
    status: number,
    headers: Record<string, string> = {},
    body: string | Uint8Array = '',
  ): void {
    this.event('response', { exchange, status, reason: '', headers: Object.entries(headers) })
    if (body.length > 0)
      this.chunk(exchange, 'out', 0, typeof body === 'string' ? encode(body) : body)
    this.event('end', { exchange, dir: 'out' })
  }

  chunk(exchange: number, dir: Direction, offset: number, bytes: Uint8Array): void {
    this.records.push({ ...chunkRecord(dir, this.#ns++, offset, bytes), exchange })
  }

  /** A POST and its response as JSON. */
  call(headers: Record<string, string>, request: object, response: object, more = {}): number {
    const exchange = this.request('POST', { ...POST, ...headers }, JSON.stringify(request))
    this.response(exchange, 200, { ...JSON_TYPE, ...more }, JSON.stringify(response))
    return exchange
  }

  rows(hasExited = true): Row[] {
    const analysis = new Analysis(schemas)
    if (hasExited) this.event('exit', { code: 0 })
    return [...this.records.flatMap((record) => analysis.add(record)), ...analysis.end()]
  }

  messages(): Row[] {
    return this.rows().filter(({ kind }) => kind !== 'http' && kind !== 'event')
  }

  findings(): string[] {
    return this.rows().flatMap(({ findings }) =>
      findings.map(({ rule, exchange, detail }) => `${exchange ?? ''} ${rule} ${detail}`.trim()),
    )
  }
}

export const JSON_TYPE = { 'Content-Type': 'application/json' }
export const EVENTS = { 'Content-Type': 'text/event-stream' }
export const POST = { ...JSON_TYPE, Accept: 'application/json, text/event-stream' }
export const result = (id: unknown, value: object = {}) => ({ jsonrpc: '2.0', id, result: value })
export const request = (id: unknown, method: string, params?: object) => ({
  jsonrpc: '2.0',
  id,
  method,
  params,
})
export const initialize = (version = '2025-11-25') =>
  request(0, 'initialize', {
    protocolVersion: version,
    capabilities: {},
    clientInfo: { name: 'c', version: '1' },
  })
export const initialized = (version = '2025-11-25') =>
  result(0, {
    protocolVersion: version,
    capabilities: { tools: {}, logging: {} },
    serverInfo: { name: 's', version: '1' },
  })
export const META = {
  'io.modelcontextprotocol/protocolVersion': '2026-07-28',
  'io.modelcontextprotocol/clientCapabilities': {},
}
export const event = (message: object, id?: string) =>
  `${id === undefined ? '' : `id: ${id}\n`}data: ${JSON.stringify(message)}\n\n`

export function openSession(recording: Recording, id: string): void {
  recording.call({}, initialize(), initialized(), { 'Mcp-Session-Id': id })
  const body = JSON.stringify({ jsonrpc: '2.0', method: 'notifications/initialized' })
  const exchange = recording.request('POST', { ...POST, ...inSession(id) }, body)
  recording.response(exchange, 202)
}
export const inSession = (id: string) => ({
  'Mcp-Session-Id': id,
  'Mcp-Protocol-Version': '2025-11-25',
})
