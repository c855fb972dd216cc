import type { Server } from '../../src/index.js'
import { revisions } from '../../src/protocol/revisions/index.js'
import { checkServer } from '../../src/server/context.js'
import { ServerSession } from '../../src/server/session.js'
import { type Channel, type Receiver, connectInMemory } from '../../src/testing.js'

export interface Answer {
  jsonrpc: '2.0'
  id?: unknown
  result?: Record<string, unknown>
  error?: { code: number; message: string; data?: unknown }
}

export interface Heard {
  method: string
  id?: unknown
  params?: Record<string, unknown>
}

interface Options {
  /** Whether `notifications/initialized` is sent (default true). */
  ready?: boolean
  name?: string
  /** The client's capabilities (default none). */
  capabilities?: Record<string, unknown>
  /** Whether messages are validated by the official schemas (default true); set to false to send invalid messages. */
  judged?: boolean
}

function connectUnjudged(server: Server): Channel {
  const receivers: Receiver[] = []
  const end = (own: number): Channel => ({
    send: (frame) => queueMicrotask(() => receivers[1 - own]?.frame(frame)),
    receive: (receiver) => void (receivers[own] = receiver),
    close: () => Promise.resolve(),
  })
  void new ServerSession(checkServer(server), end(1), { remote: false })
  return end(0)
}

export function listOf<Item>({ result = {} }: Answer, member: string): Item[] {
  return result[member] as Item[]
}

export const ids = revisions.map(({ id }) => id)
export const modern = '2026-07-28'
export const handshakes = ids.filter((id) => id !== modern)

/** A client that sends what a test gives it and records everything it receives. */
export class Wire {
  readonly revision: string
  readonly #channel: Channel
  readonly #name: string
  readonly #capabilities: Record<string, unknown>
  readonly #waiting = new Map<unknown, (answer: Answer) => void>()
  /** Every frame received. */
  readonly frames: string[] = []
  /** Notifications and requests received from the server. */
  heard: Heard[] = []
  #next = 1

  constructor(
    server: Server,
    revision: string,
    { name = 'wire', capabilities = {}, judged = true }: Options = {},
  ) {
    this.revision = revision
    this.#name = name
    this.#capabilities = capabilities
    this.#channel = judged ? connectInMemory(server) : connectUnjudged(server)
    this.#channel.receive({
      frame: (frame) => this.#take(frame),
      malformed: () => {},
      closed: () => {},
    })
  }

  static async open(
    server: Server,
    revision: string,
    { ready = true, ...options }: Options = {},
  ): Promise<Wire> {
    const wire = new Wire(server, revision, options)
    if (revision === modern) return wire
    await wire.initialize()
    if (ready) wire.notify('notifications/initialized')
    return wire
  }

  initialize(protocolVersion = this.revision): Promise<Answer> {
    const params = {
      protocolVersion,
      capabilities: this.#capabilities,
      clientInfo: { name: this.#name, version: '1' },
    }
    return this.raw({ jsonrpc: '2.0', id: 'init', method: 'initialize', params }, 'init')
  }

  /** The `_meta` of a stateless request. */
  get description(): Record<string, unknown> {
    return {
      'io.modelcontextprotocol/protocolVersion': modern,
      'io.modelcontextprotocol/clientCapabilities': this.#capabilities,
      'io.modelcontextprotocol/clientInfo': { name: this.#name, version: '1' },
    }
  }

  request(
    method: string,
    params: Record<string, unknown> = {},
    id: unknown = this.#next++,
  ): Promise<Answer> {
    const own = (params['_meta'] ?? {}) as Record<string, unknown>
    const described =
      this.revision === modern ? { ...params, _meta: { ...this.description, ...own } } : params
    return this.raw({ jsonrpc: '2.0', id, method, params: described }, id)
  }

  /** The list in the result of a request. */
  async list<Item>(
    method: string,
    member: string,
    params?: Record<string, unknown>,
  ): Promise<Item[]> {
    return listOf<Item>(await this.request(method, params), member)
  }

  notify(method: string, params?: Record<string, unknown>): void {
    this.#channel.send(
      JSON.stringify({ jsonrpc: '2.0', method, ...(params === undefined ? {} : { params }) }),
    )
  }

  /** Responds to a request of the server. */
  answer({ id }: Heard, result: object): void {
    this.#channel.send(JSON.stringify({ jsonrpc: '2.0', id, result }))
  }

  raw(message: unknown, id: unknown): Promise<Answer> {
    this.#channel.send(typeof message === 'string' ? message : JSON.stringify(message))
    return new Promise((resolve) => this.#waiting.set(id, resolve))
  }

  /** Resolves when all messages under way have arrived. */
  async settle(): Promise<Heard[]> {
    for (let turn = 0; turn < 3; turn++) await new Promise((resolve) => setImmediate(resolve))
    return this.heard.splice(0)
  }

  close(): Promise<void> {
    return this.#channel.close()
  }

  #take(frame: string): void {
    this.frames.push(frame)
    const message = JSON.parse(frame) as Answer & Heard
    if (typeof message.method === 'string') return void this.heard.push(message)
    const resolve = this.#waiting.get(message.id)
    this.#waiting.delete(message.id)
    resolve?.(message)
  }
}
