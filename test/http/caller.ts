import {
  type ClientRequest,
  type IncomingMessage,
  type OutgoingHttpHeaders,
  request as httpRequest,
} from 'node:http'
import { EventStreamParser, type StreamEvent } from '../../src/framing/event-stream.js'
import { type ListenOptions, type Listening, listen } from '../../src/http.js'
import type { Server } from '../../src/index.js'

/* An HTTP client that sends exactly what a test gives it. */

export interface Answer {
  status: number
  headers: Record<string, string | string[] | undefined>
  text: string
  /** The body as JSON, or the messages of an event stream. */
  json: unknown
  events: StreamEvent[]
}

export interface Sending {
  method?: string
  headers?: OutgoingHttpHeaders | readonly string[]
  body?: string | Uint8Array
}

/** Headers of every valid POST. */
export const POST = {
  'content-type': 'application/json',
  accept: 'application/json, text/event-stream',
}

/** A response in progress. */
export class Stream {
  readonly status: number
  readonly headers: IncomingMessage['headers']
  readonly #response: IncomingMessage
  readonly #request: ClientRequest
  readonly #events: StreamEvent[] = []
  readonly seen: StreamEvent[] = []
  text = ''
  #ended = false
  #wake: () => void = () => {}

  constructor(request: ClientRequest, response: IncomingMessage) {
    this.#request = request
    this.#response = response
    this.status = response.statusCode ?? 0
    this.headers = response.headers
    const parser = new EventStreamParser()
    const end = () => {
      this.#ended = true
      this.#wake()
    }
    response.on('data', (chunk: Buffer) => {
      this.text += chunk.toString()
      if (!String(this.headers['content-type']).startsWith('text/event-stream')) return
      parser.push(chunk)
      for (let event = parser.next(); event !== undefined; event = parser.next()) {
        this.#events.push(event)
        this.seen.push(event)
      }
      this.#wake()
    })
    response.on('end', end).on('close', end).on('error', end)
    request.on('error', end)
  }

  /** The next event; undefined at the end. */
  async next(): Promise<StreamEvent | undefined> {
    while (this.#events.length === 0 && !this.#ended) await this.#change()
    return this.#events.shift()
  }

  /** The next event that carries a message, as JSON. */
  async message(): Promise<unknown> {
    for (let event = await this.next(); event !== undefined; event = await this.next())
      if (event.data !== undefined && event.data !== '') return JSON.parse(event.data)
    return undefined
  }

  /** The messages so far; an event may have an id only. */
  get messages(): object[] {
    return this.seen.flatMap(({ data }) => (data ? [JSON.parse(data) as object] : []))
  }

  /** Waits until something has come that contains a text. */
  async has(text: string): Promise<void> {
    while (!this.text.includes(text) && !this.#ended) await this.#change()
    if (!this.text.includes(text))
      throw new Error(`The stream has ended without ${text}: ${this.text}`)
  }

  async ended(): Promise<void> {
    while (!this.#ended) await this.#change()
  }

  get isOpen(): boolean {
    return !this.#ended
  }

  pause(): void {
    this.#response.pause()
  }

  resume(): void {
    this.#response.resume()
  }

  /** Closes the connection. */
  disconnect(): void {
    this.#request.destroy()
  }

  #change(): Promise<void> {
    return new Promise((resolve) => {
      const wake = this.#wake
      this.#wake = () => {
        wake()
        resolve()
      }
    })
  }
}

/** Sends the headers of a request; the body follows with `write` and `end`. */
export function begin(
  url: string,
  { method = 'POST', headers = {} }: Sending = {},
): { request: ClientRequest; response: Promise<Stream> } {
  const request = httpRequest(url, { method, agent: false, headers })
  const response = new Promise<Stream>((resolve, reject) => {
    request.on('response', (incoming) => resolve(new Stream(request, incoming)))
    request.on('error', reject)
  })
  return { request, response }
}

/** Sends a request; resolves with the response headers. */
export function open(url: string, sending: Sending = {}): Promise<Stream> {
  const { request, response } = begin(url, sending)
  request.end(sending.body)
  return response
}

/** Sends a request and waits for the whole response. */
export async function send(url: string, sending?: Sending): Promise<Answer> {
  const stream = await open(url, sending)
  await stream.ended()
  const { status, headers, text, seen } = stream
  const isJson = String(headers['content-type']).startsWith('application/json')
  return {
    status,
    headers,
    text,
    json:
      isJson && text !== ''
        ? JSON.parse(text)
        : seen.flatMap(({ data }) => (data ? [JSON.parse(data)] : [])),
    events: seen,
  }
}

export const META = {
  'io.modelcontextprotocol/protocolVersion': '2026-07-28',
  'io.modelcontextprotocol/clientInfo': { name: 'test', version: '1' },
  'io.modelcontextprotocol/clientCapabilities': {},
}

/** A stateless request with its routing headers. */
export function statelessRequest(
  method: string,
  params: Record<string, unknown> = {},
  id: string | number = 1,
): Required<Sending> {
  const { name, uri, _meta } = params
  const named = name ?? uri
  return {
    method: 'POST',
    headers: {
      ...POST,
      'mcp-protocol-version': '2026-07-28',
      'mcp-method': method,
      ...(typeof named === 'string' ? { 'mcp-name': named } : {}),
    },
    body: JSON.stringify({
      jsonrpc: '2.0',
      id,
      method,
      params: { ...params, _meta: { ...META, ...(_meta as object) } },
    }),
  }
}

export function message(method: string, params?: object, id?: string | number): string {
  return JSON.stringify({
    jsonrpc: '2.0',
    ...(id === undefined ? {} : { id }),
    method,
    ...(params === undefined ? {} : { params }),
  })
}

/** A client that has initialized. */
export class InitializedSession {
  readonly url: string
  readonly headers: Record<string, string>
  #id = 100

  private constructor(url: string, headers: Record<string, string>) {
    this.url = url
    this.headers = headers
  }

  static async open(
    url: string,
    revision: string,
    capabilities: object = {},
    more: Record<string, string> = {},
  ): Promise<InitializedSession> {
    const params = {
      protocolVersion: revision,
      capabilities,
      clientInfo: { name: 'test', version: '1' },
    }
    const { headers, status, text } = await send(url, {
      headers: { ...POST, ...more },
      body: message('initialize', params, 1),
    })
    const session = headers['mcp-session-id']
    if (status !== 200 || typeof session !== 'string') throw new Error(`${status} ${text}`)
    const client = new InitializedSession(url, {
      ...more,
      'mcp-session-id': session,
      'mcp-protocol-version': revision,
    })
    await client.post(message('notifications/initialized'))
    return client
  }

  /** The same client at another URL. */
  at(url: string): InitializedSession {
    return new InitializedSession(url, this.headers)
  }

  get session(): string {
    return this.headers['mcp-session-id'] ?? ''
  }

  post(body: string, more: Record<string, string> = {}): Promise<Answer> {
    return send(this.url, { headers: { ...POST, ...this.headers, ...more }, body })
  }

  request(method: string, params?: object): Promise<Answer> {
    return this.post(message(method, params, this.#id++))
  }

  /** A request whose response is read as it arrives. */
  stream(method: string, params?: object, id: string | number = this.#id++): Promise<Stream> {
    return open(this.url, {
      headers: { ...POST, ...this.headers },
      body: message(method, params, id),
    })
  }

  /** Opens the GET stream of the session, or resumes a stream. */
  listen(last?: string): Promise<Stream> {
    const resumed = last === undefined ? {} : { 'last-event-id': last }
    return open(this.url, {
      method: 'GET',
      headers: { accept: 'text/event-stream', ...this.headers, ...resumed },
    })
  }

  end(): Promise<Answer> {
    return send(this.url, { method: 'DELETE', headers: this.headers })
  }
}

/** Serves on any free port for the length of a test. */
export async function serving(
  server: Server,
  options: ListenOptions,
  use: (listening: Listening) => Promise<void>,
): Promise<void> {
  const listening = await listen(server, { port: 0, ...options })
  try {
    await use(listening)
  } finally {
    await listening.close(0)
  }
}

/** The same request, with more headers. */
export function withHeaders(sending: Sending, more: Record<string, string>): Sending {
  return { ...sending, headers: Object.assign({}, sending.headers, more) }
}
