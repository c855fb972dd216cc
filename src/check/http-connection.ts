import { EventStreamBody } from '../capture/http-body.js'
import { METHODS } from '../protocol/methods.js'
import { PROTOCOL_VERSION } from '../protocol/meta.js'
import { type Revision, handshakeRevision } from '../protocol/revisions/index.js'
import { isObject } from '../schema/issue.js'
import { encodeHeaderValue } from '../transports/http/client/parameter-headers.js'
import type { HttpResponse, SendRequest } from '../transports/http/client/http-request.js'
import { Connection, MAX_OUTPUT, keyOf } from './connection.js'
import type { HttpCapture } from './http-capture.js'
import { lineOf, messagesIn } from './http-lines.js'
import type { Recording } from './recording.js'

/** The response to one POST. */
export interface PostResult {
  status: number
  contentType: string
  /** Whether the body is empty. */
  isEmpty: boolean
  /** The origin whose pages may read the response, or `*`. */
  allowedOrigin: string | undefined
}

const ignore = () => {}
/** A server at a URL. Each message that is sent or received is recorded as a line; line breaks within one become spaces. */
export class HttpConnection extends Connection {
  readonly url: URL
  readonly #send: SendRequest
  readonly #headers: Readonly<Record<string, string>>
  readonly #capture: HttpCapture | undefined
  readonly #controller = new AbortController()
  #notified = Promise.resolve()
  #session: string | undefined
  #revision: Revision | undefined
  /** The last response, and why the last request failed. */
  last: PostResult | undefined
  failure: string | undefined

  constructor(
    url: URL,
    send: SendRequest,
    headers: Readonly<Record<string, string>>,
    recording: Recording,
    timeout: number,
    capture?: HttpCapture,
  ) {
    super(recording, timeout)
    this.url = url
    this.#capture = capture
    this.#send = send
    this.#headers = headers
  }

  override get refusal(): string | undefined {
    if (this.failure !== undefined || this.last === undefined) return undefined
    const { status, contentType } = this.last
    return `status ${status} with ${contentType === '' ? 'no content' : contentType}`
  }

  protected write(text: string, headers: Readonly<Record<string, string>>): void {
    const key = keyOf(text)
    const start = this.recording.position('in') - Buffer.byteLength(text) - 1
    // A notification must have arrived before what follows it.
    const posted = this.#notified.then(() => this.post(text, headers, start))
    const finished = posted.then(ignore, (error: unknown) => {
      this.failure = error instanceof Error ? error.message : String(error)
    })
    if (key === '') this.#notified = finished
    // If the body had no JSON-RPC response to the request, there will be none.
    else void finished.then(() => this.fail(key))
  }

  /** Sends a body, and reads the response to its end or until the timeout. `start`: where the body was recorded. */
  async post(
    text: string,
    headers: Readonly<Record<string, string>> = {},
    start = this.recording.position('in'),
  ): Promise<PostResult> {
    const body: unknown = parsed(text)
    this.failure = undefined
    const signal = AbortSignal.any([this.#controller.signal, AbortSignal.timeout(this.timeout)])
    const response = await this.#send({
      method: 'POST',
      url: this.url,
      headers: {
        ...this.#headers,
        'content-type': 'application/json',
        accept: 'application/json, text/event-stream',
        ...this.#protocolHeaders(body),
        ...headers,
      },
      body: text,
      signal,
      background: false,
    })
    const exchange = this.#capture?.exchangeOf(signal)
    if (exchange !== undefined) this.recording.place('in', start, { exchange, offset: 0 })
    const contentType = (response.header('content-type') ?? '').split(';')[0]?.trim() ?? ''
    const isInitialize = isObject(body) && body['method'] === 'initialize'
    if (isInitialize) this.#session = response.header('mcp-session-id')
    this.recording.event('http', { status: response.status, contentType })
    const reader = { contentType: contentType.toLowerCase(), isInitialize, exchange }
    const isEmpty = await this.#read(response, reader)
    const allowedOrigin = response.header('access-control-allow-origin')
    this.last = { status: response.status, contentType, isEmpty, allowedOrigin }
    return this.last
  }

  async close(): Promise<void> {
    const session = this.#session
    this.#session = undefined
    if (session !== undefined) {
      const signal = AbortSignal.timeout(this.timeout)
      const headers = { ...this.#headers, 'mcp-session-id': session }
      await this.#send({ method: 'DELETE', url: this.url, headers, signal, background: true })
        .then((response) => response.cancel())
        .catch(() => {}) // a server need not allow it
    }
    this.#controller.abort()
    this.end('the connection was closed')
    this.#capture?.end()
    this.recording.event('exit')
    this.recording.end()
  }

  #protocolHeaders(body: unknown): Record<string, string> {
    const { method, params } = isObject(body) ? body : {}
    const { _meta: meta, ...rest } = isObject(params) ? params : {}
    const version = isObject(meta) ? meta[PROTOCOL_VERSION] : undefined
    if (typeof version === 'string' && typeof method === 'string') {
      const name = rest[METHODS.get(method)?.nameParam ?? '']
      return {
        'mcp-protocol-version': version,
        'mcp-method': method,
        ...(typeof name === 'string' ? { 'mcp-name': encodeHeaderValue(name) } : {}),
      }
    }
    const headers: Record<string, string> = {}
    if (this.#session !== undefined) headers['mcp-session-id'] = this.#session
    if (this.#revision?.versionHeader === true) headers['mcp-protocol-version'] = this.#revision.id
    return headers
  }

  /** Reads JSON or an event stream; returns whether there was nothing. */
  async #read(response: HttpResponse, read: Reading): Promise<boolean> {
    const isStream = read.contentType === 'text/event-stream'
    const isJson = read.contentType === 'application/json'
    const events = new EventStreamBody('out', MAX_OUTPUT)
    const parts: Uint8Array[] = []
    let size = 0
    for await (const chunk of response.body) {
      size += chunk.length
      if (size > MAX_OUTPUT) {
        response.cancel()
        this.recording.report('excessive-output', `more than ${MAX_OUTPUT} bytes`)
        return false
      }
      if (!isStream) parts.push(chunk)
      else
        for (const { text, start } of messagesIn(events, chunk, size - chunk.length))
          this.#message(Buffer.from(text), start, read)
    }
    const bytes = Buffer.concat(parts)
    if (isJson && bytes.length > 0) this.#message(bytes, 0, read)
    return size === 0
  }

  #message(bytes: Buffer, offset: number, { isInitialize, exchange }: Reading): void {
    if (isInitialize) {
      const message = parsed(bytes.toString('utf8'))
      const result = isObject(message) ? message['result'] : undefined
      if (isObject(result)) this.#revision = handshakeRevision(result['protocolVersion'])
    }
    if (exchange !== undefined)
      this.recording.place('out', this.recording.position('out'), { exchange, offset })
    this.receive(lineOf(bytes))
  }
}

/** A response that is read. */
interface Reading {
  contentType: string
  isInitialize: boolean
  exchange: number | undefined
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
