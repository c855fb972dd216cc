import type { Channel, Receiver } from '../../../jsonrpc/channel.js'
import { RequestFailed } from '../../../jsonrpc/errors.js'
import { type Id, type SentMessage, read } from '../../../jsonrpc/message.js'
import type { LogEntry } from '../../../jsonrpc/log-entry.js'
import type { HttpResponse, SendRequest } from './http-request.js'
import { failure, refused } from './request-errors.js'
import { EVENT_STREAM } from './request-headers.js'
import { mediaType, readEvents, readText } from './response-body.js'

export interface TwoEndpointOptions {
  /** The SSE endpoint. */
  url: URL
  send: SendRequest
  headers: Readonly<Record<string, string>>
  /** Maximum bytes of a received message. */
  maxMessage: number
  report(report: LogEntry): void
}

const MAX_ERROR_BODY = 64 * 1024

/**
 * The client side of HTTP+SSE, the deprecated transport with two endpoints: the server sends its messages on one stream,
 * whose first event is the URL for POST requests.
 * https://modelcontextprotocol.io/specification/2024-11-05/basic/transports#http-with-sse
 */
export class TwoEndpointChannel implements Channel {
  readonly http = true
  readonly #options: TwoEndpointOptions
  readonly #controller = new AbortController()
  readonly #waiting = new Set<Id>()
  readonly #endpoint: Promise<URL>
  #found: (endpoint: URL) => void = () => {}
  #lost: (error: Error) => void = () => {}
  #receiver: Receiver | undefined
  #closed = false

  constructor(options: TwoEndpointOptions) {
    this.#options = options
    this.#endpoint = new Promise((resolve, reject) => {
      this.#found = resolve
      this.#lost = reject
    })
    // Senders await it; without one it must not be unhandled.
    this.#endpoint.catch(() => {})
  }

  receive(receiver: Receiver): void {
    this.#receiver = receiver
    void this.#listen()
  }

  diagnose(): string {
    const { origin, pathname } = this.#options.url
    return `The URL is ${origin}${pathname}`
  }

  send(frame: string, message?: SentMessage): void {
    if (!this.#closed) void this.#post(frame, message)
  }

  close(): Promise<void> {
    this.#closed = true
    this.#controller.abort()
    return Promise.resolve()
  }

  async #listen(): Promise<void> {
    const { url, send, headers, maxMessage } = this.#options
    let error = new Error('The server has closed its event stream')
    try {
      const response = await send({
        method: 'GET',
        url,
        headers: { ...headers, accept: EVENT_STREAM },
        signal: this.#controller.signal,
      })
      await checkStream(response)
      let first = true
      for await (const { event = 'message', data = '' } of readEvents(response, maxMessage)) {
        if (first && event !== 'endpoint')
          throw new RequestFailed(
            'INVALID_RESPONSE',
            'The first event of the HTTP+SSE stream must be "endpoint"',
            { executed: 'no' },
          )
        first = false
        if (event === 'endpoint') this.#found(endpointOf(data, url))
        else if (event === 'message' && data !== '') this.#deliver(data)
      }
    } catch (thrown) {
      error = failure(thrown)
    }
    this.#lost(error)
    if (!this.#closed) this.#receiver?.closed(error)
  }

  #deliver(text: string): void {
    if (this.#closed) return
    const message = read(text)
    if (message.kind === 'response') this.#waiting.delete(message.id)
    this.#receiver?.frame(text, undefined, message)
  }

  async #post(frame: string, message: SentMessage | undefined): Promise<void> {
    const { send, headers, report } = this.#options
    const id = message?.kind === 'request' ? message.id : undefined
    if (id !== undefined) this.#waiting.add(id)
    try {
      const response = await send({
        method: 'POST',
        url: await this.#endpoint,
        headers: { ...headers, 'content-type': 'application/json' },
        body: frame,
        signal: this.#controller.signal,
      })
      const { status } = response
      if (status < 200 || status >= 300)
        throw refused(status, await readText(response, MAX_ERROR_BODY).catch(() => ''))
      response.cancel()
    } catch (error) {
      if (this.#closed) return
      // The response may have been received already, on the stream.
      if (id === undefined)
        report({ level: 'warning', message: 'A message could not be sent', error })
      else if (this.#waiting.delete(id)) this.#receiver?.failed?.(id, failure(error))
    }
  }
}

async function checkStream(response: HttpResponse): Promise<void> {
  const { status } = response
  if (status === 200 && mediaType(response) === EVENT_STREAM) return
  if (status !== 200)
    throw refused(status, await readText(response, MAX_ERROR_BODY).catch(() => ''))
  response.cancel()
  throw new RequestFailed(
    'INVALID_RESPONSE',
    `The server answered GET with Content-Type "${mediaType(response)}", not ${EVENT_STREAM}`,
    {
      status,
      executed: 'no',
    },
  )
}

/** Messages and tokens are never sent to another origin. */
function endpointOf(data: string, url: URL): URL {
  if (!URL.canParse(data, url.href))
    throw new RequestFailed('INVALID_RESPONSE', 'The server sent an "endpoint" that is not a URL', {
      executed: 'no',
    })
  const endpoint = new URL(data, url)
  if (endpoint.origin === url.origin) return endpoint
  throw new RequestFailed(
    'INVALID_RESPONSE',
    `The server sent an "endpoint" of another origin, ${endpoint.origin}`,
    { executed: 'no' },
  )
}
