import type { TargetChannel } from '../client/target.js'
import { EventStreamParser, type StreamEvent } from '../framing/event-stream.js'
import type { Receiver } from '../jsonrpc/channel.js'
import { RpcError } from '../jsonrpc/errors.js'
import {
  type Id,
  type Message,
  type Request as RpcRequest,
  encodeError,
  isObject,
  parseMessage,
} from '../jsonrpc/message.js'
import { PROTOCOL_VERSION } from '../protocol/meta.js'
import { METHODS, type MethodDescriptor } from '../protocol/methods.js'
import { type RepeatedParameter, routingHeadersOf } from '../transports/http/stateless-request.js'

/** An HTTP endpoint in the same process. */
export interface HttpEndpoint {
  fetch(request: Request): Promise<Response>
  /** Headers of every request. */
  readonly headers: Readonly<Record<string, string>>
  /** The parameters of a tool that are repeated in headers. */
  parametersOf(tool: string): readonly RepeatedParameter[]
  /** What the server knows of a method (default: what the core protocol says of it). */
  methodOf?(method: string): MethodDescriptor | undefined
  close(): Promise<void>
}

const URL = 'http://localhost/mcp'
const ACCEPT = 'application/json, text/event-stream'

/** A client of Streamable HTTP for transcripts: it delivers every response, also those to invalid messages. */
export class HttpChannel implements TargetChannel {
  readonly #endpoint: HttpEndpoint
  readonly #closed = new AbortController()
  /** By the id of a pending request. */
  readonly #open = new Map<Id, AbortController>()
  #receiver: Receiver | undefined
  /** Settles before the next message is sent: after `initialize` and after messages without a response. */
  #previous: Promise<void> = Promise.resolve()
  #closing: Promise<void> | undefined
  #session: string | undefined
  #version: string | undefined

  constructor(endpoint: HttpEndpoint) {
    this.#endpoint = endpoint
  }

  receive(receiver: Receiver): void {
    this.#receiver = receiver
  }

  send(frame: string): void {
    const message = parseMessage(frame)
    if (
      this.#session === undefined &&
      message.kind === 'notification' &&
      message.method === 'notifications/cancelled'
    ) {
      // Without a session, a request is cancelled by closing its response.
      return this.#open.get(message.params?.['requestId'] as Id)?.abort() // an id, or nothing is found
    }
    const controller = new AbortController()
    if (message.kind === 'request') this.#open.set(message.id, controller)
    this.#previous = this.#sendAfter(
      this.#previous,
      frame,
      message,
      AbortSignal.any([this.#closed.signal, controller.signal]),
    )
  }

  close(): Promise<void> {
    this.#closing ??= this.#close()
    return this.#closing
  }

  async #close(): Promise<void> {
    await this.#previous
    if (this.#session !== undefined) await this.#fetch('DELETE', {}, this.#closed.signal)
    this.#closed.abort()
    await this.#endpoint.close()
  }

  async #sendAfter(
    previous: Promise<void>,
    frame: string,
    message: Message,
    signal: AbortSignal,
  ): Promise<void> {
    await previous
    if (signal.aborted) return
    const responded = this.#post(frame, message, signal).catch((error: unknown) =>
      this.#fail(error),
    )
    if (message.kind !== 'request' || message.method === 'initialize') await responded
  }

  async #post(frame: string, message: Message, signal: AbortSignal): Promise<void> {
    const headers = {
      'Content-Type': 'application/json',
      Accept: ACCEPT,
      ...this.#routingHeaders(message),
    }
    try {
      const response = await this.#fetch('POST', headers, signal, frame)
      this.#session ??= response.headers.get('mcp-session-id') ?? undefined
      await this.#receive(response, message.kind === 'request' ? message : undefined, signal)
    } finally {
      if (message.kind === 'request') this.#open.delete(message.id)
    }
    if (message.kind === 'notification' && message.method === 'notifications/initialized')
      await this.#listen()
  }

  #routingHeaders(message: Message): Readonly<Record<string, string>> {
    if (message.kind !== 'request') return {}
    const meta = message.params?.['_meta']
    const version = isObject(meta) ? meta[PROTOCOL_VERSION] : undefined
    if (typeof version !== 'string') return {}
    const { method } = message
    const known = this.#endpoint.methodOf?.(method) ?? METHODS.get(method)
    return {
      'MCP-Protocol-Version': version,
      ...routingHeadersOf(message, known ?? {}, (tool) => this.#endpoint.parametersOf(tool)),
    }
  }

  #fetch(
    method: string,
    headers: Readonly<Record<string, string>>,
    signal: AbortSignal,
    body?: string,
  ): Promise<Response> {
    const known = {
      ...(this.#session === undefined ? {} : { 'Mcp-Session-Id': this.#session }),
      ...(this.#version === undefined ? {} : { 'MCP-Protocol-Version': this.#version }),
    }
    return this.#endpoint.fetch(
      new Request(URL, {
        method,
        headers: { ...this.#endpoint.headers, ...known, ...headers },
        signal,
        ...(body === undefined ? {} : { body }),
      }),
    )
  }

  /** Opens the GET stream. Resolves when it is open. */
  async #listen(): Promise<void> {
    const { signal } = this.#closed
    const response = await this.#fetch('GET', { Accept: 'text/event-stream' }, signal)
    this.#stream(response, undefined, signal).catch((error: unknown) => this.#fail(error))
  }

  async #receive(
    response: Response,
    request: RpcRequest | undefined,
    signal: AbortSignal,
  ): Promise<void> {
    if (response.headers.get('content-type') === 'text/event-stream')
      return await this.#stream(response, request, signal)
    const text = await response.text()
    if (text === '') return
    const received = response.ok || request === undefined ? text : errorFrame(text, request.id)
    if (request?.method === 'initialize') this.#version = versionOf(received)
    this.#receiver?.frame(received)
  }

  /** Delivers the events of a stream, and resumes it if it ends before the response. */
  async #stream(
    response: Response,
    request: RpcRequest | undefined,
    signal: AbortSignal,
    from?: string,
  ): Promise<void> {
    let last = from
    let retry = 0
    let responded = request === undefined
    for await (const { data, id, retry: time } of eventsOf(response, signal)) {
      last = id ?? last
      retry = time ?? retry
      if (data === undefined || data === '') continue
      const message = parseMessage(data)
      if (message.kind === 'response' && message.id === request?.id) responded = true
      this.#receiver?.frame(data)
    }
    if (responded || last === undefined || signal.aborted) return
    await new Promise((resolve) => setTimeout(resolve, retry))
    const rest = await this.#fetch(
      'GET',
      { Accept: 'text/event-stream', 'Last-Event-ID': last },
      signal,
    )
    if (rest.ok) await this.#stream(rest, request, signal, last)
  }

  #fail(error: unknown): void {
    // The request was cancelled, or the channel is closed.
    if (error instanceof Error && error.name === 'AbortError') return
    this.#receiver?.closed(error instanceof Error ? error : new Error(String(error)))
  }
}

async function* eventsOf({ body }: Response, signal: AbortSignal): AsyncGenerator<StreamEvent> {
  if (body === null || signal.aborted) return
  const parser = new EventStreamParser()
  const reader = body.getReader()
  const stop = () => void reader.cancel().catch(() => {}) // it may be aborted by the same signal
  signal.addEventListener('abort', stop)
  try {
    for (let chunk = await reader.read(); !chunk.done; chunk = await reader.read()) {
      parser.push(chunk.value)
      for (let event = parser.next(); event !== undefined; event = parser.next()) yield event
    }
  } finally {
    signal.removeEventListener('abort', stop)
  }
}

/** The error response to a rejected request. The server sends it without an id if it did not read the message. */
function errorFrame(text: string, id: Id): string {
  if (parseMessage(text).kind === 'response') return text
  const { error } = JSON.parse(text) as { error: { code: number; message: string; data?: unknown } } // of our own server
  return encodeError(id, new RpcError(error.code, error.message, error.data), 'null')
}

function versionOf(response: string): string | undefined {
  const { result } = JSON.parse(response) as { result?: { protocolVersion?: string } } // of our own server
  return result?.protocolVersion
}
