import { expect } from 'vitest'
import { type Principal, memory } from '../../src/client.js'
import type { Server } from '../../src/index.js'
import { CLIENT_CAPABILITIES, PROTOCOL_VERSION } from '../../src/protocol/meta.js'
import { newest } from '../../src/protocol/revisions/index.js'
import { extensionNames } from '../official/schema-validator.js'

extensionNames.add('task').add('notifications/tasks')

export const TASKS = 'io.modelcontextprotocol/tasks'
const DECLARED = { elicitation: {}, extensions: { [TASKS]: {} } }

interface Message {
  id?: number
  method?: string
  params?: Record<string, unknown>
  result?: Result
  error?: { code: number; message: string; data?: unknown }
}
export interface Result extends Record<string, unknown> {
  resultType?: string
  taskId?: string
  status?: string
  statusMessage?: string
  lastUpdatedAt?: string
  inputRequests?: Record<string, { method: string; params: Record<string, unknown> }>
  requestState?: string
  result?: { content: { text?: string }[]; isError?: boolean; resultType?: string }
  error?: { code: number; message: string; data?: unknown }
}

/** Sends stateless requests, as a client would that knows nothing but the wire. */
export class RawClient {
  readonly #channel: ReturnType<ReturnType<typeof memory>['open']>
  readonly #pending = new Map<number, (message: Message) => void>()
  readonly #capabilities: object
  readonly notifications: Message[] = []
  readonly #waiting = new Set<() => void>()
  #sent = 0

  constructor(server: Server, options: { principal?: Principal; capabilities?: object } = {}) {
    const { principal, capabilities = DECLARED } = options
    this.#capabilities = capabilities
    this.#channel = memory(server, principal === undefined ? {} : { principal }).open()
    this.#channel.receive({
      frame: (frame) => this.#received(JSON.parse(frame) as Message), // what our server writes
      malformed: () => {},
      closed: () => {},
    })
  }

  send(method: string, params: object = {}): { id: number; response: Promise<Message> } {
    const id = ++this.#sent
    const _meta = { [PROTOCOL_VERSION]: newest.id, [CLIENT_CAPABILITIES]: this.#capabilities }
    const response = new Promise<Message>((resolve) => this.#pending.set(id, resolve))
    const frame = JSON.stringify({ jsonrpc: '2.0', id, method, params: { _meta, ...params } })
    this.#channel.send(frame)
    return { id, response }
  }

  notify(method: string, params: object): void {
    this.#channel.send(JSON.stringify({ jsonrpc: '2.0', method, params }))
  }

  /** The result of a request; fails if the response is an error. */
  async request(method: string, params?: object): Promise<Result> {
    const { response } = this.send(method, params)
    const { result, error } = await response
    expect(error).toBeUndefined()
    return result ?? {}
  }

  /** The error of a request. */
  async error(method: string, params?: object): Promise<NonNullable<Message['error']>> {
    const { response } = this.send(method, params)
    const { error, result } = await response
    expect(result).toBeUndefined()
    return error ?? { code: 0, message: '' }
  }

  call(name: string, args: object = {}): Promise<Result> {
    return this.request('tools/call', { name, arguments: args })
  }

  /** Calls a tool that becomes a task, and returns the id. */
  async create(name: string, args: object = {}): Promise<string> {
    const created = await this.call(name, args)
    expect(created).toMatchObject({ resultType: 'task', status: 'working' })
    return created.taskId ?? ''
  }

  get(taskId: string): Promise<Result> {
    return this.request('tasks/get', { taskId })
  }

  update(taskId: string, inputResponses: object): Promise<Result> {
    return this.request('tasks/update', { taskId, inputResponses })
  }

  /** Polls until a task has a status, in turns of the event loop. */
  async until(taskId: string, status: string): Promise<Result> {
    for (const end = performance.now() + 60_000; performance.now() < end;) {
      const task = await this.get(taskId)
      if (task.status === status) return task
      await new Promise((resolve) => setImmediate(resolve))
    }
    throw new Error(`the task did not become ${status}: ${JSON.stringify(await this.get(taskId))}`)
  }

  /** Resolves when a condition on the notifications holds. */
  async notified(condition: (all: readonly Message[]) => boolean): Promise<void> {
    while (!condition(this.notifications))
      await new Promise<void>((resolve) => this.#waiting.add(resolve))
  }

  async close(): Promise<void> {
    await this.#channel.close()
  }

  #received(message: Message): void {
    if (message.method === undefined) this.#pending.get(message.id ?? 0)?.(message)
    else this.notifications.push(message)
    for (const resolve of this.#waiting) resolve()
    this.#waiting.clear()
  }
}

export const accept = (content: object) => ({ action: 'accept', content })
