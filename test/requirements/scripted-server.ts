import { afterEveryTest } from '../after-every-test.js'
import {
  type Client,
  type ClientExtension,
  type ConnectOptions,
  type ExtensionMembers,
  type Target,
  connect,
} from '../../src/client.js'
import { type Channel, memoryChannels } from '../../src/testing.js'
import { hostileServers } from '../official/hostile.js'
import { modern } from './wire.js'

/** A message that the client has sent. */
export interface Sent {
  id?: number | string
  method?: string
  params?: Record<string, unknown>
  result?: Record<string, unknown>
  error?: { code: number; message: string }
}

/** A result, an error as `{ error: { code, message } }`, or nothing where the server does not respond. */
type Reply = Record<string, unknown> | undefined

interface Script {
  /** Responds to requests, except `initialize` and `server/discover`. */
  respond?(message: Sent, server: ScriptedServer): Reply
  /** Responds to `initialize` and `server/discover`, where the server does not do so by its revision. */
  open?(message: Sent): Reply | 'default'
  /** Whether the server violates the schema, so that only the client is validated by it. */
  hostile?: boolean
  capabilities?: Record<string, unknown>
}

const closing: (() => Promise<unknown>)[] = []
afterEveryTest(async () => {
  for (const close of closing.splice(0)) await close()
})

/** A server of one revision, in memory, that responds as a test tells it to and records what the client sends. */
export class ScriptedServer implements Target {
  readonly revision: string
  readonly received: Sent[] = []
  /** How often a client has connected, and whether it has disconnected. */
  connections = 0
  disconnected = false
  readonly #script: Script
  #channel: Channel | undefined

  constructor(revision: string, script: Script = {}) {
    this.revision = revision
    this.#script = script
  }

  open(): Channel {
    const [client, server] = memoryChannels()
    if (this.#script.hostile === true) hostileServers.add(client).add(server)
    this.connections++
    this.#channel = server
    server.receive({
      frame: (frame) => this.#take(JSON.parse(frame) as Sent),
      malformed: () => {},
      closed: () => void (this.disconnected = true),
    })
    return client
  }

  /** Connects a client, by default in the revision of the server. */
  async connect<const Extensions extends readonly ClientExtension[] = readonly ClientExtension[]>(
    options: ConnectOptions<Extensions> = {},
  ): Promise<Client & ExtensionMembers<Extensions>> {
    const client = await connect(this, { revision: this.revision, ...options })
    closing.push(() => client.close())
    return client
  }

  send(message: object): void {
    this.#channel?.send(JSON.stringify({ jsonrpc: '2.0', ...message }))
  }

  /** Ends the connection, as a server that exits. */
  async exit(): Promise<void> {
    await this.#channel?.close()
  }

  notify(method: string, params: object = {}): void {
    this.send({ method, params })
  }

  reply({ id, method = '' }: Sent, value: Record<string, unknown>): void {
    this.send(
      'error' in value
        ? { id, error: value['error'] }
        : { id, result: { ...this.#describe(method), ...value } },
    )
  }

  /** Sends a request to the client; resolves with its response. */
  async ask(method: string, params: object = {}): Promise<Sent> {
    const id = `asked-${this.received.length}`
    this.send({ id, method, params })
    for (;;) {
      const response = this.received.find((each) => each.method === undefined && each.id === id)
      if (response !== undefined) return response
      await turn()
    }
  }

  /** The methods received, without those that open the connection. */
  get methods(): string[] {
    const opening = new Set(['server/discover', 'initialize', 'notifications/initialized'])
    return this.received.flatMap(({ method }) =>
      method === undefined || opening.has(method) ? [] : [method],
    )
  }

  /** The params of every request with the method. */
  paramsOf(method: string): Record<string, unknown>[] {
    return this.received.filter((each) => each.method === method).map(({ params = {} }) => params)
  }

  #take(message: Sent): void {
    this.received.push(message)
    if (message.method === undefined || message.id === undefined) return
    const opens = message.method === 'initialize' || message.method === 'server/discover'
    const reply = opens ? this.#opened(message) : this.#script.respond?.(message, this)
    if (reply !== undefined) this.reply(message, reply)
  }

  #opened(message: Sent): Reply {
    const scripted = this.#script.open?.(message) ?? (this.#script.open ? undefined : 'default')
    if (scripted !== 'default') return scripted
    const { capabilities = {} } = this.#script
    const serverInfo = { name: 'scripted', version: '1' }
    if (message.method === 'initialize')
      return this.revision === modern
        ? { error: { code: -32_601, message: 'Method not found' } }
        : { protocolVersion: this.revision, capabilities, serverInfo }
    if (this.revision !== modern) return { error: { code: -32_601, message: 'Method not found' } }
    return {
      supportedVersions: [modern],
      capabilities,
      _meta: { 'io.modelcontextprotocol/serverInfo': serverInfo },
    }
  }

  #describe(method: string): Record<string, unknown> {
    if (this.revision !== modern || method === 'initialize') return {}
    const cacheable = /\/list$|\/read$|\/discover$/.test(method)
    return { resultType: 'complete', ...(cacheable ? { ttlMs: 0, cacheScope: 'private' } : {}) }
  }
}

/** The `_meta` of a message. */
export function metaOf({ params = {} }: Sent): Record<string, unknown> {
  return (params['_meta'] ?? {}) as Record<string, unknown>
}

const turn = () => new Promise((resolve) => setImmediate(resolve))

/** Resolves when all messages under way have arrived. */
export async function settle(): Promise<void> {
  for (let count = 0; count < 4; count++) await turn()
}

export async function collect<Item>(list: AsyncIterable<Item>): Promise<Item[]> {
  const items: Item[] = []
  for await (const item of list) items.push(item)
  return items
}

export const textResult = (text: string) => ({ content: [{ type: 'text', text }] })
