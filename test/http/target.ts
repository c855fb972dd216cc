import { EventSourceParserStream } from 'eventsource-parser/stream'
import type { Target, TargetChannel } from '../../src/client.js'
import { listen } from '../../src/http.js'
import type { Server } from '../../src/index.js'
import type { Receiver } from '../../src/testing.js'

/** A server over HTTP, for tests: each connection has a server that listens for it alone. */
export function httpTarget(make: () => Server): Target {
  return { open: () => new HttpChannel(make()) }
}

interface Message {
  id?: string | number
  method?: string
  params?: { name?: string; uri?: string; requestId?: string | number; _meta?: Record<string, unknown> }
}

/** What a client has to do so that a channel is a conversation over HTTP, in either era. */
class HttpChannel implements TargetChannel {
  readonly #listening
  #receiver: Receiver | undefined
  /** One POST after the other is begun, so that they arrive in their order. */
  #begun: Promise<unknown>
  readonly #open = new Map<unknown, AbortController>()
  readonly #all = new AbortController()
  #session: string | undefined

  constructor(server: Server) {
    this.#listening = listen(server, { port: 0 })
    this.#begun = this.#listening
  }

  receive(receiver: Receiver): void {
    this.#receiver = receiver
  }

  send(frame: string): void {
    const message = JSON.parse(frame) as Message
    const described = message.params?._meta?.['io.modelcontextprotocol/protocolVersion']
    // Where requests describe themselves, a closed stream is what cancels.
    const cancelled = message.method === 'notifications/cancelled' ? this.#open.get(message.params?.requestId) : undefined
    if (cancelled !== undefined && this.#session === undefined) return cancelled.abort()
    const controller = new AbortController()
    if (message.method !== undefined) this.#open.set(message.id, controller)
    const signal = AbortSignal.any([this.#all.signal, controller.signal])
    this.#begun = this.#begin(this.#begun, message, () => this.#post(frame, message, described, signal))
  }

  async #begin(before: Promise<unknown>, message: Message, post: () => Promise<void>): Promise<void> {
    await before
    const answering = post().catch((error: unknown) => this.#failed(error))
    // Only what opens a session, or has no answer, is waited for.
    if (message.id === undefined || message.method === 'initialize') await answering
  }

  async close(): Promise<void> {
    const listening = await this.#listening
    if (this.#session !== undefined)
      await fetch(listening.url, { method: 'DELETE', headers: { 'Mcp-Session-Id': this.#session } }).catch(() => {})
    this.#all.abort()
    await listening.close(0)
  }

  async #post(frame: string, message: Message, described: unknown, signal: AbortSignal): Promise<void> {
    const { url } = await this.#listening
    const { method, params = {} } = message
    const headers: Record<string, string> = { 'Content-Type': 'application/json', Accept: 'application/json, text/event-stream' }
    if (this.#session !== undefined) headers['Mcp-Session-Id'] = this.#session
    if (typeof described === 'string' && method !== undefined) {
      Object.assign(headers, { 'MCP-Protocol-Version': described, 'Mcp-Method': method })
      const name = method === 'resources/read' ? params.uri : method === 'tools/call' || method === 'prompts/get' ? params.name : undefined
      if (name !== undefined) headers['Mcp-Name'] = name
    }
    const response = await fetch(url, { method: 'POST', headers, body: frame, signal })
    this.#session ??= response.headers.get('mcp-session-id') ?? undefined
    if (method === 'notifications/initialized') void this.#listen(url).catch((error: unknown) => this.#failed(error))
    await this.#hear(response)
    this.#open.delete(message.id)
  }

  /** The stream for what belongs to no request. */
  async #listen(url: string): Promise<void> {
    const headers = { Accept: 'text/event-stream', 'Mcp-Session-Id': this.#session ?? '' }
    await this.#hear(await fetch(url, { headers, signal: this.#all.signal }))
  }

  async #hear(response: Response): Promise<void> {
    if (response.headers.get('content-type')?.startsWith('text/event-stream') !== true) {
      const text = await response.text()
      if (text !== '') this.#receiver?.frame(text)
      return
    }
    const events = response.body?.pipeThrough(new TextDecoderStream()).pipeThrough(new EventSourceParserStream())
    if (events === undefined) return
    for await (const { data } of events) if (data !== '') this.#receiver?.frame(data)
  }

  #failed(error: unknown): void {
    // A request that was given up, or the end of it all.
    if (error instanceof Error && error.name === 'AbortError') return
    this.#receiver?.closed(error instanceof Error ? error : new Error(String(error)))
  }
}
