import type { Target } from '../../src/client.js'
import type { Channel } from '../../src/jsonrpc/channel.js'
import { memoryChannels } from '../../src/transports/memory.js'
import { hostileServers } from '../official/hostile.js'

export interface Asked {
  id?: number
  method: string
  params: Record<string, unknown>
}

/** One connection, as the server sees it. */
export class ServerEnd {
  readonly #channel: Channel
  constructor(channel: Channel) {
    this.#channel = channel
  }

  answer({ id }: Asked, result: object): void {
    this.#send({ id, result: { resultType: 'complete', ...result } })
  }

  refuse({ id }: Asked, code: number, message = 'no'): void {
    this.#send({ id, error: { code, message } })
  }

  notify(method: string, params: object = {}): void {
    this.#send({ method, params })
  }

  /** Acknowledges a stream, by default with all that was asked for. */
  acknowledge({ id, params }: Asked, notifications: unknown = params['notifications']): void {
    this.onStream(id, 'notifications/subscriptions/acknowledged', { notifications })
  }

  onStream(id: unknown, method: string, params: object = {}): void {
    this.notify(method, {
      ...params,
      _meta: { 'io.modelcontextprotocol/subscriptionId': id },
    })
  }

  /** Ends the connection, as a process that dies. */
  end(): Promise<void> {
    return this.#channel.close()
  }

  #send(message: object): void {
    this.#channel.send(JSON.stringify({ jsonrpc: '2.0', ...message }))
  }
}

export interface Script {
  revision?: string
  capabilities?: object
  /** Answers what is not about opening the connection; false for the default answer `{}`. */
  serve(asked: Asked, server: ServerEnd, opened: number): unknown
}

export interface ScriptedTarget extends Target {
  opened: number
  readonly asked: Asked[]
  /** What was asked by a method. */
  of(method: string): Asked[]
  /** The current connection. */
  server: ServerEnd
  script: Script
}

export const CAPABILITIES = {
  logging: {},
  tools: { listChanged: true },
  prompts: { listChanged: true },
  resources: { subscribe: true, listChanged: true },
}

/** A server that a test plays. It opens as its revision says; a connection that comes after `refusing` is set is refused. */
export function scriptedServer(given: Script): ScriptedTarget {
  const target: ScriptedTarget = {
    opened: 0,
    asked: [],
    script: given,
    of: (method) => target.asked.filter((each) => each.method === method),
    server: undefined as unknown as ServerEnd, // set by `open`
    open() {
      const [client, channel] = memoryChannels()
      hostileServers.add(client).add(channel)
      const server = new ServerEnd(channel)
      target.server = server
      const opened = ++target.opened
      channel.receive({
        frame(frame) {
          const asked = { params: {}, ...(JSON.parse(frame) as object) } as Asked
          target.asked.push(asked)
          const { revision = '2026-07-28', capabilities = CAPABILITIES, serve } = target.script
          if (asked.method === 'server/discover' && revision === '2026-07-28')
            return server.answer(asked, {
              supportedVersions: [revision],
              capabilities,
              ttlMs: 0,
              cacheScope: 'private',
            })
          if (asked.method === 'server/discover') return server.refuse(asked, -32601)
          if (asked.method === 'initialize')
            return server.answer(asked, {
              protocolVersion: revision,
              capabilities,
              serverInfo: { name: 'scripted', version: '1' },
            })
          const served = serve(asked, server, opened)
          if (served === false && asked.id !== undefined) server.answer(asked, {})
        },
        malformed: () => {},
        closed: () => {},
      })
      return client
    },
  }
  return target
}

/** Lets everything that is under way in this process happen. */
export async function settle(): Promise<void> {
  for (let turn = 0; turn < 5; turn++) await new Promise((resolve) => setImmediate(resolve))
}

/** The item at an index, which must exist. */
export function at<Item>(items: readonly Item[], index: number): Item {
  const item = items[index]
  if (item === undefined) throw new Error(`There is no item ${index}`)
  return item
}
