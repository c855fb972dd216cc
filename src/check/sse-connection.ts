import { EventStreamBody } from '../capture/http-body.js'
import type { HttpResponse, SendRequest } from '../transports/http/client/http-request.js'
import { endpointOf } from '../transports/http/client/http-sse-channel.js'
import { Connection, MAX_OUTPUT, keyOf } from './connection.js'
import type { HttpCapture } from './http-capture.js'
import { lineOf, messagesIn } from './http-lines.js'
import type { Recording } from './recording.js'

/** How a server with HTTP+SSE is reached. */
export interface SseAccess {
  url: URL
  send: SendRequest
  headers: Readonly<Record<string, string>>
  timeout: number
}

const EVENT_STREAM = 'text/event-stream'

/**
 * A server with HTTP+SSE, the transport of the first revision: messages are sent to the URL that the first event of its stream
 * names, and all responses come on the stream.
 */
export class SseConnection extends Connection {
  readonly #access: SseAccess
  readonly #send: SendRequest
  readonly #capture: HttpCapture | undefined
  readonly #controller = new AbortController()
  /** Resolves with the URL for messages, or with undefined if there is none. */
  readonly #endpoint: Promise<URL | undefined>
  #foundEndpoint: (endpoint: URL | undefined) => void = () => {}
  readonly #listening: Promise<void>
  #notified: Promise<boolean> = Promise.resolve(true)
  #refusal: string | undefined

  constructor(access: SseAccess, recording: Recording, capture?: HttpCapture) {
    super(recording, access.timeout)
    this.#access = access
    this.#capture = capture
    this.#send = access.send
    this.#endpoint = new Promise((resolve) => {
      this.#foundEndpoint = resolve
    })
    this.#listening = this.#listen().then(
      () => this.#stop('the server closed its event stream'),
      (error: unknown) => this.#stop(error instanceof Error ? error.message : String(error)),
    )
  }

  override get refusal(): string | undefined {
    return this.#refusal
  }

  get url(): URL {
    return this.#access.url
  }

  /** Opens another stream; returns the origins that may read it, or undefined if it is refused. */
  async openStreamWith(
    headers: Readonly<Record<string, string>>,
  ): Promise<StreamAccess | undefined> {
    const all = { ...this.#access.headers, ...headers }
    return await openStream({ ...this.#access, headers: all })
  }

  protected write(text: string, headers: Readonly<Record<string, string>>): void {
    const key = keyOf(text)
    const start = this.recording.position('in') - Buffer.byteLength(text) - 1
    // A notification must have arrived before what follows it.
    const posted = this.#notified.then(() => this.#post(text, headers, start)).catch(() => false)
    if (key === '') this.#notified = posted
    else void posted.then((isAccepted) => isAccepted || this.fail(key))
  }

  async close(): Promise<void> {
    this.#controller.abort()
    this.#stop('the connection was closed')
    await this.#notified
    await this.#listening
    this.#capture?.end()
    this.recording.event('exit')
    this.recording.end()
  }

  #stop(reason: string): void {
    this.#foundEndpoint(undefined)
    this.end(reason)
  }

  /** Reads the stream to its end. */
  async #listen(): Promise<void> {
    const { url, headers } = this.#access
    const { signal } = this.#controller
    const response = await this.#send({
      method: 'GET',
      url,
      headers: { ...headers, accept: EVENT_STREAM },
      signal,
      background: false,
    })
    checkStream(response)
    const exchange = this.#capture?.exchangeOf(signal)
    const events = new EventStreamBody('out', MAX_OUTPUT)
    let size = 0
    let isFirst = true
    for await (const chunk of response.body) {
      for (const { event, text, start } of messagesIn(events, chunk, size)) {
        if (isFirst) this.#foundEndpoint(endpointOf(event, text, url))
        else this.#message(text, exchange, start)
        isFirst = false
      }
      size += chunk.length
    }
  }

  #message(text: string, exchange: number | undefined, offset: number): void {
    if (exchange !== undefined)
      this.recording.place('out', this.recording.position('out'), { exchange, offset })
    this.receive(lineOf(Buffer.from(text)))
  }

  /** Returns whether the server has accepted the message. */
  async #post(
    text: string,
    headers: Readonly<Record<string, string>>,
    start: number,
  ): Promise<boolean> {
    const url = await this.#endpoint
    if (url === undefined) return false
    this.#refusal = undefined
    const signal = AbortSignal.any([this.#controller.signal, AbortSignal.timeout(this.timeout)])
    const response = await this.#send({
      method: 'POST',
      url,
      headers: { ...this.#access.headers, 'content-type': 'application/json', ...headers },
      body: text,
      signal,
      background: false,
    })
    const { status } = response
    response.cancel()
    const exchange = this.#capture?.exchangeOf(signal)
    if (exchange !== undefined) this.recording.place('in', start, { exchange, offset: 0 })
    this.recording.event('http', { status })
    const isAccepted = status >= 200 && status < 300
    if (!isAccepted) this.#refusal = `status ${status}`
    return isAccepted
  }
}

function checkStream(response: HttpResponse): void {
  const { status } = response
  const [type = ''] = (response.header('content-type') ?? '').split(';')
  if (status === 200 && type.trim().toLowerCase() === EVENT_STREAM) return
  response.cancel()
  throw new Error(`GET got status ${status} with ${type === '' ? 'no content type' : type}`)
}

/** A stream that was opened. */
interface StreamAccess {
  /** The origin whose pages may read it, or `*`. */
  allowedOrigin: string | undefined
}

/** Looks whether a GET of the URL begins with an `endpoint` event. Never rejects. */
export async function openStream(access: SseAccess): Promise<StreamAccess | undefined> {
  const { url, send, headers, timeout } = access
  const controller = new AbortController()
  const signal = AbortSignal.any([controller.signal, AbortSignal.timeout(timeout)])
  try {
    const response = await send({
      method: 'GET',
      url,
      headers: { ...headers, accept: EVENT_STREAM },
      signal,
      background: false,
    })
    checkStream(response)
    const isEndpoint = (await firstEvent(response)) === 'endpoint'
    const allowedOrigin = response.header('access-control-allow-origin')
    return isEndpoint ? { allowedOrigin } : undefined
  } catch {
    return undefined // it has no such stream, or sent nothing in time
  } finally {
    controller.abort()
  }
}

/** The name of the first event with data. */
async function firstEvent(response: HttpResponse): Promise<string | undefined> {
  const events = new EventStreamBody('out', MAX_OUTPUT)
  let size = 0
  for await (const chunk of response.body) {
    const [first] = messagesIn(events, chunk, size)
    size += chunk.length
    if (first !== undefined || size > MAX_OUTPUT) return first?.event
  }
  return undefined
}
