import { vi } from 'vitest'
import type { ConnectOptions } from '../../src/client.js'
import { type ClientTasksOptions, clientTasks } from '../../src/tasks.js'
import { extensionNames } from '../official/schema-validator.js'
import { ScriptedServer, type Sent } from '../requirements/scripted-server.js'
import { modern } from '../requirements/wire.js'

for (const name of ['task', 'notifications/tasks', 'tasks/get', 'tasks/update', 'tasks/cancel'])
  extensionNames.add(name)

/** Waits for a condition, also on a busy machine. */
export const until = (condition: () => unknown) =>
  vi.waitUntil(condition, { timeout: 60_000, interval: 5 })

type State = Readonly<Record<string, unknown>>
type Reply = Record<string, unknown> | undefined

export const TASK = {
  taskId: 't-1',
  status: 'working',
  createdAt: '2026-07-28T10:00:00.000Z',
  lastUpdatedAt: '2026-07-28T10:00:00.000Z',
  ttlMs: 3_600_000,
  pollIntervalMs: 10,
}
export const DONE = {
  status: 'completed',
  result: { resultType: 'complete', content: [{ type: 'text', text: 'done' }] },
}
export const question = (message: string) => ({
  method: 'elicitation/create',
  params: {
    mode: 'form',
    message,
    requestedSchema: { type: 'object', properties: { name: { type: 'string' } } },
  },
})
export const asking = (inputRequests: object) => ({ status: 'input_required', inputRequests })

/** A server with one task, whose states a test gives. */
export class TaskServer {
  readonly server: ScriptedServer
  /** What `tools/call` and `tasks/get` say of the task, besides `TASK`. */
  created: State = {}
  state: State = {}
  /** What other requests get. */
  reply: (message: Sent) => Reply = () => undefined
  /** Which ids of `subscriptions/listen` are accepted. */
  accepts: ((ids: readonly unknown[]) => object | undefined) | undefined

  constructor(more: { hostile?: boolean } = { hostile: true }) {
    this.server = new ScriptedServer(modern, {
      ...more,
      respond: (message) => this.#respond(message),
    })
  }

  connect({ onStatus, maxWait, ...options }: ConnectOptions & ClientTasksOptions = {}) {
    const own = {
      ...(onStatus === undefined ? {} : { onStatus }),
      ...(maxWait === undefined ? {} : { maxWait }),
    }
    return this.server.connect({ ...options, extensions: [clientTasks(own)] as const })
  }

  count(method: string): number {
    return this.server.paramsOf(method).length
  }

  /** The open `subscriptions/listen` requests. */
  get streams(): Sent[] {
    return this.server.received.filter(({ method }) => method === 'subscriptions/listen')
  }

  /** Sends the state as a notification. */
  notify(state: State): void {
    const subscriptionId = this.streams.at(-1)?.id
    const _meta = { 'io.modelcontextprotocol/subscriptionId': subscriptionId }
    this.server.notify('notifications/tasks', { ...TASK, ...state, _meta })
  }

  #respond(message: Sent): Reply {
    const { method, params = {} } = message
    const own = this.reply(message)
    if (own !== undefined) return own
    if (method === 'tools/call') return { ...TASK, ...this.created, resultType: 'task' }
    if (method === 'tasks/get') {
      // A state may have an "error", which is not one of JSON-RPC.
      const result = { ...TASK, ...this.state, resultType: 'complete' }
      this.server.send({ id: message.id, result })
      return undefined
    }
    if (method !== 'subscriptions/listen') return {}
    const { taskIds } = params['notifications'] as { taskIds: unknown[] } // as the client sends it
    const accepted = this.accepts?.(taskIds)
    if (accepted === undefined) return { error: { code: -32601, message: 'Method not found' } }
    this.server.notify('notifications/subscriptions/acknowledged', {
      notifications: accepted,
      _meta: { 'io.modelcontextprotocol/subscriptionId': message.id },
    })
    return undefined
  }
}
