import { Secrets } from '../../../auth/secrets.js'
import type { Channel, ConnectionFacts, Receiver } from '../../../jsonrpc/channel.js'
import { RequestFailedError } from '../../../jsonrpc/errors.js'
import type { LogEntry } from '../../../jsonrpc/log-entry.js'
import { httpConnection } from './connection-facts.js'
import {
  type Id,
  type SentMessage,
  type SentRequest,
  parseMessage,
} from '../../../jsonrpc/message.js'
import { untilAborted } from './abort.js'
import { type HttpResponse, type SendRequest, originOf } from './http-request.js'
import { PendingRequest } from './pending-request.js'
import { type Post, PostQueue } from './post-queue.js'
import { toRequestFailed, statusError } from './request-errors.js'
import { EVENT_STREAM, JSON_TYPE, agreedVersion, versionHeader } from './request-headers.js'
import { mediaType, readErrorText, readEvents } from './response-body.js'
import { isBackground } from './sent-message.js'
import { parseUrl } from '../../../runtime.js'

export interface HttpSseOptions {
  /** The SSE endpoint. */
  url: URL
  send: SendRequest
  /** Closes the connections of `send`. */
  disconnect?: () => void
  headers: Readonly<Record<string, string>>
  /** Maximum bytes of a received message. */
  maxMessage: number
  /** What no error and no report may repeat. */
  secrets?: Secrets
  report(report: LogEntry): void
}

/** Maximum characters of the URL for POST requests. */
const MAX_ENDPOINT = 8192

/**
 * The client side of HTTP+SSE, the deprecated transport with two endpoints: the server sends its messages on one stream,
 * whose first event is the URL for POST requests.
 * https://modelcontextprotocol.io/specification/2024-11-05/basic/transports#http-with-sse
 */
export class HttpSseChannel implements Channel {
  readonly http = true
  /** Whether no call waits for the handshake. */
  isUnattended: (() => boolean) | undefined
  readonly #options: HttpSseOptions
  readonly secrets: Secrets
  readonly #stream = new AbortController()
  readonly #pending = new Map<Id, PendingRequest>()
  readonly #posts: PostQueue
  readonly #endpoint: Promise<URL>
  #found: (endpoint: URL) => void = () => {}
  #lost: (error: Error) => void = () => {}
  /** The version that `initialize` negotiated. */
  #version: string | undefined
  #receiver: Receiver | undefined
  #closed = false

  constructor(options: HttpSseOptions) {
    this.#options = options
    this.secrets = options.secrets ?? new Secrets()
    this.#posts = new PostQueue(
      (post, signal) => this.#sendOther(post, signal),
      (entry) => this.#report(entry),
    )
    this.#endpoint = new Promise((resolve, reject) => {
      this.#found = resolve
      this.#lost = reject
    })
    // Senders await it; without one it must not be unhandled.
    this.#endpoint.catch(() => {})
  }

  get connection(): ConnectionFacts {
    return httpConnection(this.#options.url)
  }

  receive(receiver: Receiver): void {
    this.#receiver = receiver
    void this.#listen()
  }

  #report(entry: LogEntry): void {
    this.#options.report(this.secrets.redactEntry(entry))
  }

  diagnose(): string {
    const { origin, pathname } = this.#options.url
    return `The URL is ${origin}${pathname}`
  }

  send(frame: string, message?: SentMessage): void {
    if (this.#closed) return
    if (message?.kind === 'request') void this.#sendRequest(frame, message)
    else this.#posts.add({ frame, message })
  }

  /** A request that was not sent needs no notification. */
  cancel(id: Id): boolean {
    const pending = this.#pending.get(id)
    if (pending === undefined) return true
    this.#pending.delete(id)
    pending.controller.abort()
    return !pending.sent
  }

  hasSent(id: Id): boolean {
    return this.#pending.get(id)?.sent !== false
  }

  async close(): Promise<void> {
    if (this.#closed) return
    this.#closed = true
    await this.#posts.close()
    this.#stream.abort()
    for (const { controller } of this.#pending.values()) controller.abort()
    this.#lost(new Error('The channel is closed'))
    this.#options.disconnect?.()
  }

  async #listen(): Promise<void> {
    const { url, send, headers, maxMessage } = this.#options
    const { signal } = this.#stream
    let error = new Error('The server has closed its event stream')
    try {
      const response = await send({
        method: 'GET',
        url,
        headers: { ...headers, accept: EVENT_STREAM },
        signal,
        background: this.isUnattended?.() === true,
      })
      await checkStream(response)
      let first = true
      for await (const { event = 'message', data = '' } of readEvents(response, maxMessage)) {
        if (first) this.#found(endpointOf(event, data, url))
        else if (event === 'message' && data !== '') this.#deliver(data)
        first = false
        const ready = this.#posts.ready() ?? this.#receiver?.ready?.()
        if (ready !== undefined) await untilAborted(ready, signal)
      }
    } catch (thrown) {
      error = toRequestFailed(thrown, true)
    }
    this.secrets.redactError(error)
    this.#lost(error)
    if (!this.#closed) this.#receiver?.closed(error)
  }

  #deliver(text: string): void {
    if (this.#closed) return
    const message = parseMessage(text)
    if (message.kind === 'response') {
      const initialize = this.#pending.get(message.id)?.request.method === 'initialize'
      if (initialize) this.#version = agreedVersion(message)
      this.#pending.delete(message.id)
      if ('error' in message.outcome) this.secrets.redactError(message.outcome.error)
    }
    this.#receiver?.frame(text, undefined, message)
  }

  async #sendRequest(frame: string, request: SentRequest): Promise<void> {
    const pending = new PendingRequest(request)
    this.#pending.set(request.id, pending)
    try {
      const background = isBackground(request, this.isUnattended)
      await this.#post(frame, pending.controller.signal, background, () => (pending.sent = true))
    } catch (error) {
      // The response may have been received already, on the stream.
      if (!this.#pending.delete(request.id) || this.#closed) return
      const failure = toRequestFailed(error, pending.sent)
      this.secrets.redactError(failure)
      this.#receiver?.failed?.(request.id, failure)
    }
  }

  async #sendOther({ frame, message }: Post, signal: AbortSignal): Promise<void> {
    try {
      await this.#post(frame, signal, isBackground(message, this.isUnattended))
    } catch (error) {
      if (!this.#closed)
        this.#report({ level: 'warning', message: 'A message could not be sent', error })
    }
  }

  async #post(
    frame: string,
    signal: AbortSignal,
    background: boolean,
    onSend?: () => void,
  ): Promise<void> {
    const url = await untilAborted(this.#endpoint, signal)
    const response = await this.#options.send({
      method: 'POST',
      url,
      headers: {
        ...this.#options.headers,
        'content-type': JSON_TYPE,
        ...versionHeader(this.#version),
      },
      body: frame,
      signal,
      background,
      ...(onSend === undefined ? {} : { onSend }),
    })
    const { status } = response
    if (status < 200 || status >= 300) throw statusError(status, await readErrorText(response))
    response.cancel()
  }
}

async function checkStream(response: HttpResponse): Promise<void> {
  const { status } = response
  if (status === 200 && mediaType(response) === EVENT_STREAM) return
  if (status !== 200) throw statusError(status, await readErrorText(response))
  response.cancel()
  throw new RequestFailedError(
    'INVALID_RESPONSE',
    `The server responded to GET with Content-Type "${mediaType(response)}", not ${EVENT_STREAM}`,
    {
      status,
      executed: 'no',
    },
  )
}

/** The URL in the first event. Messages and tokens are never sent to another origin. */
export function endpointOf(event: string, data: string, url: URL): URL {
  const invalid = (reason: string) =>
    new RequestFailedError('INVALID_RESPONSE', reason, { executed: 'no' })
  if (event !== 'endpoint')
    throw invalid('The first event of the HTTP+SSE stream must be "endpoint"')
  if (data.length > MAX_ENDPOINT)
    throw invalid(`The server sent an "endpoint" that is longer than ${MAX_ENDPOINT} characters`)
  const endpoint = parseUrl(data, url)
  if (endpoint === undefined) throw invalid('The server sent an "endpoint" that is not a URL')
  if (endpoint.origin !== url.origin)
    throw invalid(`The server sent an "endpoint" of another origin, ${originOf(endpoint)}`)
  if (endpoint.username !== '' || endpoint.password !== '')
    throw invalid('The server sent an "endpoint" with credentials')
  return endpoint
}
