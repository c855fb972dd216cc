import { type Answer, type Stream, message, open, send } from './caller.js'

/* An HTTP+SSE client that sends exactly what a test gives it. */

export class SseCaller {
  readonly stream: Stream
  /** The URL for POST requests. */
  readonly endpoint: string
  readonly #headers: Record<string, string>
  #id = 1

  private constructor(stream: Stream, endpoint: string, headers: Record<string, string>) {
    this.stream = stream
    this.endpoint = endpoint
    this.#headers = headers
  }

  /** Opens an event stream, and reads its first event. */
  static async open(url: string, headers: Record<string, string> = {}): Promise<SseCaller> {
    const stream = await open(url, {
      method: 'GET',
      headers: { accept: 'text/event-stream', ...headers },
    })
    const first = await stream.next()
    if (first?.event !== 'endpoint') throw new Error(`${stream.status} ${stream.text}`)
    return new SseCaller(stream, new URL(first.data ?? '', url).href, headers)
  }

  /** The same, with the handshake. */
  static async initialized(
    url: string,
    revision = '2024-11-05',
    {
      capabilities = {},
      headers = {},
    }: { capabilities?: object; headers?: Record<string, string> } = {},
  ): Promise<SseCaller> {
    const caller = await SseCaller.open(url, headers)
    await caller.initialize(revision, capabilities)
    await caller.post(message('notifications/initialized'))
    return caller
  }

  initialize(revision: string, capabilities: object = {}): Promise<unknown> {
    const clientInfo = { name: 'test', version: '1' }
    return this.request('initialize', { protocolVersion: revision, capabilities, clientInfo })
  }

  post(body: string | Uint8Array, headers: Record<string, string> = {}): Promise<Answer> {
    return send(this.endpoint, {
      headers: { 'content-type': 'application/json', ...this.#headers, ...headers },
      body,
    })
  }

  /** Sends a request; resolves with the next message of the stream. */
  async request(method: string, params?: object): Promise<unknown> {
    const { status, text } = await this.post(message(method, params, this.#id++))
    if (status !== 202) throw new Error(`${status} ${text}`)
    return await this.stream.message()
  }

  /** Calls a tool; resolves when the call is accepted. */
  call(name: string, args: object, id: string | number): Promise<Answer> {
    return this.post(message('tools/call', { name, arguments: args }, id))
  }
}
