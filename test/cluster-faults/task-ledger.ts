import { existsSync, readFileSync } from 'node:fs'
import { send, statelessRequest, withHeaders } from '../http/caller.js'
import { ledgerProblems } from '../redis/tasks-audit.js'
import type { Cluster } from './cluster.js'
import { type Findings, LIMIT } from './ledger.js'
import { type Random, pause } from './random.js'

/* Tasks, their answers, cancellations and results: all that was acknowledged, compared with what is there. */

const CAPABILITIES = {
  'io.modelcontextprotocol/clientCapabilities': {
    elicitation: {},
    extensions: { 'io.modelcontextprotocol/tasks': {} },
  },
}
const TERMINAL = new Set(['completed', 'failed', 'cancelled'])
const KINDS = ['ask', 'retried', 'endless', 'retried']

interface Response {
  result?: {
    taskId?: string
    status?: string
    result?: { content?: unknown }
    error?: unknown
    inputRequests?: Record<string, unknown>
  }
  error?: { code: number; message: string }
}

interface KnownTask {
  readonly kind: string
  readonly answered: Set<string>
  /** Settles when it is not followed any more: responses to several requests may overtake each other. */
  following: Promise<void>
  cancelled: boolean
  end?: string
}

export class TaskLedger {
  readonly #cluster: Cluster
  readonly #findings: Findings
  readonly #random: Random
  readonly #known = new Map<string, KnownTask>()
  #created = 0

  constructor(cluster: Cluster, findings: Findings, random: Random) {
    this.#cluster = cluster
    this.#findings = findings
    this.#random = random
  }

  /** Creates a task and continues it until it has ended. */
  async work(): Promise<void> {
    const kind = KINDS[this.#created++ % KINDS.length] ?? ''
    const { result } = (await this.#send('tools/call', { name: kind, arguments: {} })) ?? {}
    if (result?.taskId === undefined) return
    const following = Promise.resolve()
    const task: KnownTask = { kind, answered: new Set(), following, cancelled: false }
    this.#known.set(result.taskId, task)
    this.#findings.acknowledged.tasks++
    await this.#compare(result.taskId, task)
  }

  /** Compares some tasks, or all, and what their handlers have done. */
  async verify(most = this.#known.size): Promise<void> {
    const all = [...this.#known]
    const chosen = most >= all.length ? all : all.slice(-most)
    // Not all at once.
    const groups = Array.from({ length: Math.ceil(chosen.length / 8) }, (_, index) =>
      chosen.slice(8 * index, 8 * index + 8),
    )
    for (const group of groups)
      await Promise.all(group.map(([taskId, task]) => this.#compare(taskId, task)))
    if (most < all.length) return
    const { ledgerFile } = this.#cluster
    if (!existsSync(ledgerFile)) return
    for (const problem of ledgerProblems(readFileSync(ledgerFile, 'utf8').split('\n')))
      this.#findings.problem(problem)
  }

  async #send(method: string, params: Record<string, unknown>): Promise<Response | undefined> {
    const url = this.#cluster.any(this.#random)?.url
    if (url === undefined) return undefined
    const request = statelessRequest(method, { ...params, _meta: CAPABILITIES })
    const { taskId } = params
    const named = typeof taskId === 'string' ? { 'mcp-name': taskId } : {}
    const sending = send(url, withHeaders(request, named))
    const answer = await this.#findings.settled(method, sending).catch(() => undefined)
    const [message] = [answer?.json].flat() as (Response | undefined)[]
    if (answer?.status === 503) return undefined
    return message
  }

  /** Any process may answer. While Redis is out of reach, none does. */
  async #ask(method: string, params: Record<string, unknown>): Promise<Response> {
    let last: Response | undefined
    for (const until = performance.now() + LIMIT; performance.now() < until; await pause(10)) {
      last = await this.#send(method, params)
      const failed = last?.error?.message.includes('store of tasks has failed') === true
      const unstored = /could not be (?:stored|read)/.test(last?.error?.message ?? '')
      if (last !== undefined && !failed && !unstored) return last
    }
    return { error: { code: 0, message: `no answer in time: ${JSON.stringify(last)}` } }
  }

  #compare(taskId: string, task: KnownTask): Promise<void> {
    task.following = task.following.then(() => this.#follow(taskId, task))
    return task.following
  }

  /** Compares a task with what is known of it, and continues it until it has ended. */
  async #follow(taskId: string, task: KnownTask): Promise<void> {
    const problem = (text: string) => this.#findings.problem(text)
    for (const until = performance.now() + LIMIT; performance.now() < until; await pause(10)) {
      const { result, error } = await this.#ask('tasks/get', { taskId })
      if (result === undefined) return problem(`a task is lost: ${error?.message}`)
      const status = result.status ?? ''
      const end = JSON.stringify([status, result.result?.content ?? result.error])
      if (task.end !== undefined && task.end !== end) problem(`${task.end} has become ${end}`)
      if (task.cancelled && status !== 'cancelled') problem(`a cancelled task is ${status}`)
      if (TERMINAL.has(status)) {
        if (task.end === undefined) this.#findings.acknowledged.results++
        task.end = end
        return
      }
      for (const key of Object.keys(result.inputRequests ?? {}))
        await this.#answer(taskId, task, key)
      if (task.kind === 'endless') await this.#cancel(taskId, task)
    }
    problem(`a task (${task.kind}) has not ended`)
  }

  async #answer(taskId: string, task: KnownTask, key: string): Promise<void> {
    if (task.answered.has(key)) this.#findings.problem('an answer that was acknowledged is lost')
    const inputResponses = { [key]: { action: 'accept', content: { name: 'Ada' } } }
    const { error } = await this.#ask('tasks/update', { taskId, inputResponses })
    if (error !== undefined) return this.#findings.problem(`tasks/update: ${error.message}`)
    task.answered.add(key)
    this.#findings.acknowledged['task operations']++
  }

  async #cancel(taskId: string, task: KnownTask): Promise<void> {
    const { error } = await this.#ask('tasks/cancel', { taskId })
    if (error !== undefined) return this.#findings.problem(`tasks/cancel: ${error.message}`)
    this.#findings.acknowledged['task operations']++
    // It may have failed before, because its process was killed.
    const after = await this.#ask('tasks/get', { taskId })
    task.cancelled = after.result?.status === 'cancelled'
  }
}
