import { type ChildProcess, spawn } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest'
import type { Result } from '../extensions/raw-client.js'
import { RedisServer, canStartRedis, newPrefix } from './redis-server.js'
import { auditTasks, ledgerProblems } from './tasks-audit.js'

/* Processes that run tasks, and are killed and paused. */

/** How many are killed: `TASK_KILLS=1000 npx vitest run test/redis/tasks-processes.test.ts -t acknowledged` */
const KILLS = Number(process.env['TASK_KILLS'] ?? 20)
const LEASE = 1000
const until = <Value>(condition: () => Value | Promise<Value>): Promise<Value> =>
  vi.waitFor(condition, { timeout: 60_000, interval: 10 })
const pause = (milliseconds: number) => new Promise((resolve) => setTimeout(resolve, milliseconds))
const TERMINAL = new Set(['completed', 'failed', 'cancelled'])
const META = {
  'io.modelcontextprotocol/protocolVersion': '2026-07-28',
  'io.modelcontextprotocol/clientCapabilities': {
    elicitation: {},
    extensions: { 'io.modelcontextprotocol/tasks': {} },
  },
}

/** The process has ended before it has answered: what it was asked for may have been done. */
class Ended extends Error {}

interface Answer {
  id: number
  result?: Result
  error?: { code: number; message: string }
}

class ServerProcess {
  readonly #child: ChildProcess
  readonly #pending = new Map<
    number,
    { resolve(answer: Answer): void; reject(error: Error): void }
  >()
  readonly ended: Promise<NodeJS.Signals | null>
  isDead = false
  #sent = 0

  constructor(args: readonly string[]) {
    const program = fileURLToPath(new URL('tasks-server.mjs', import.meta.url))
    const child = spawn(process.execPath, [program, ...args], { stdio: ['pipe', 'pipe', 'ignore'] })
    this.#child = child
    child.stdin.on('error', () => {})
    this.ended = new Promise((resolve) => {
      child.once('close', (_, signal) => {
        this.isDead = true
        for (const { reject } of this.#pending.values()) reject(new Ended())
        resolve(signal)
      })
    })
    createInterface({ input: child.stdout }).on('line', (line) => {
      const answer = JSON.parse(line) as Answer // what our server writes
      this.#pending.get(answer.id)?.resolve(answer)
      this.#pending.delete(answer.id)
    })
  }

  get pid(): number {
    return this.#child.pid ?? 0
  }

  request(method: string, params: object = {}): Promise<Answer> {
    if (this.isDead) return Promise.reject(new Ended())
    const id = ++this.#sent
    const message = { jsonrpc: '2.0', id, method, params: { ...params, _meta: META } }
    this.#child.stdin?.write(`${JSON.stringify(message)}\n`)
    return new Promise((resolve, reject) => this.#pending.set(id, { resolve, reject }))
  }

  signal(name: NodeJS.Signals): void {
    this.#child.kill(name)
  }

  async stop(): Promise<void> {
    this.#child.stdin?.end()
    await this.ended
  }
}

/** What is known of a task because it was acknowledged. */
interface Known {
  readonly kind: string
  readonly answered: Set<string>
  cancelled: boolean
  end?: string
  endedAt?: number
}

describe.skipIf(!canStartRedis)('processes that share tasks', () => {
  let redis: RedisServer
  let folder = ''
  let ledger = ''
  let prefix = ''
  const started = new Set<ServerProcess>()
  beforeAll(async () => {
    redis = await RedisServer.start('--auto-aof-rewrite-percentage', '0')
  })
  afterAll(() => redis.stop())
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'ccmcp-task-processes-'))
    ledger = join(folder, 'ledger')
    prefix = newPrefix()
  })
  afterEach(async () => {
    for (const each of started) each.signal('SIGKILL')
    await Promise.all([...started].map(({ ended }) => ended))
    started.clear()
    rmSync(folder, { recursive: true, force: true })
  })
  /** `timeout` is that of commands; by default it is short. */
  const start = (plan: object = {}, lease = LEASE, url = redis.url, timeout?: number) => {
    const args = [url, prefix, lease, ledger, JSON.stringify(plan), timeout ?? []]
    const made = new ServerProcess(args.flat().map(String))
    started.add(made)
    return made
  }
  const noted = () =>
    existsSync(ledger) ? readFileSync(ledger, 'utf8').split('\n').filter(Boolean) : []

  it(
    'lose nothing that was acknowledged when they are killed at any point',
    async () => {
      const problems: string[] = []
      const known = new Map<string, Known>()
      const killed = new Map<string, number>()
      let kills = 0
      let created = 0
      /** For each task that had not ended when its process was killed, how long it took until it had. */
      const interrupted: (() => number)[] = []
      const plans = targets()
      const alive: (ServerProcess | undefined)[] = [undefined, undefined, undefined]

      /** Any process may answer; one that is killed does not. */
      const ask = async (method: string, params: object): Promise<Answer> => {
        for (;;) {
          const running = alive.filter((each) => each !== undefined && !each.isDead)
          const chosen = running[Math.floor(Math.random() * running.length)]
          try {
            if (chosen === undefined) throw new Ended()
            const answer = await chosen.request(method, params)
            // A busy machine may exceed the short time limit of Redis.
            if (answer.error?.message.includes('store of tasks has failed') !== true) return answer
          } catch (error) {
            if (!(error instanceof Ended)) throw error
          }
          await pause(20)
        }
      }

      /** Compares a task with what is known of it, and continues it until it has ended. */
      const follow = async (taskId: string, task: Known) => {
        for (;;) {
          const { result, error } = await ask('tasks/get', { taskId })
          if (result === undefined)
            return void problems.push(`a task that was acknowledged is gone: ${error?.message}`)
          const status = result.status ?? ''
          const end = JSON.stringify([status, result.result?.content ?? result.error])
          if (task.end !== undefined && task.end !== end) problems.push(`${task.end} is now ${end}`)
          if (task.cancelled && status !== 'cancelled')
            problems.push(`a cancelled task is ${status}`)
          if (TERMINAL.has(status)) {
            task.endedAt ??= performance.now()
            return void (task.end = end)
          }
          for (const key of Object.keys(result.inputRequests ?? {})) {
            if (task.answered.has(key)) problems.push('an answer that was acknowledged is lost')
            const inputResponses = { [key]: { action: 'accept', content: { name: 'Ada' } } }
            const answer = await ask('tasks/update', { taskId, inputResponses })
            if (answer.error === undefined) task.answered.add(key)
            else problems.push(`an answer was refused: ${answer.error.message}`)
          }
          if (task.kind === 'endless') {
            const answer = await ask('tasks/cancel', { taskId })
            if (answer.error !== undefined) problems.push(`tasks/cancel: ${answer.error.message}`)
            // It may have failed before, because its process was killed.
            const after = await ask('tasks/get', { taskId })
            task.cancelled = after.result?.status === 'cancelled'
          }
          await pause(5)
        }
      }

      /** Processes one after the other, each until it is killed or has created enough. */
      const lane = async (index: number) => {
        while (kills < KILLS && problems.length < 20) {
          const plan = plans.next().value
          const current = start(plan)
          alive[index] = current
          const following: Promise<void>[] = []
          const own: Known[] = []
          for (let each = 0; each < 12 && !current.isDead; each++) {
            const kind = ['ask', 'retried', 'endless', 'retried'][created++ % 4] ?? 'ask'
            try {
              const call = { name: kind, arguments: {} }
              const { result, error } = await current.request('tools/call', call)
              if (error?.message.includes('no room') === true) problems.push(error.message)
              if (result?.taskId === undefined) continue
              const task: Known = { kind, answered: new Set(), cancelled: false }
              known.set(result.taskId, task)
              own.push(task)
              following.push(follow(result.taskId, task))
            } catch (error) {
              if (!(error instanceof Ended)) throw error
            }
            await pause(5)
          }
          // The others of this process may be needed to reach the call in which it is killed.
          await Promise.race([current.ended, Promise.all(following)])
          if (!current.isDead) await current.stop()
          else {
            kills++
            const died = performance.now()
            for (const task of own)
              if (task.end === undefined) interrupted.push(() => (task.endedAt ?? died) - died)
            const what = `${plan.kill} ${plan.phase}`
            killed.set(what, (killed.get(what) ?? 0) + 1)
          }
          started.delete(current)
          tails.push(...following)
        }
      }
      const tails: Promise<void>[] = []
      await Promise.all([lane(0), lane(1), lane(2)])
      // The last one is not killed: every task has its one end.
      alive[0] = start()
      await Promise.all(tails)
      for (const [taskId, task] of known) await follow(taskId, task)
      await alive[0].stop()

      const stored = auditTasks(redis.executed(), prefix, problems)
      problems.push(...ledgerProblems(noted()))
      const ends = [...known.values()].map(({ end = '["none"]' }) => end.slice(2, 5))
      expect(problems).toEqual([])
      expect(stored.size).toBeGreaterThanOrEqual(known.size)
      expect(kills).toBeGreaterThanOrEqual(KILLS)
      expect(ends).toContain('com')
      expect(ends).not.toContain('non')
      if (KILLS <= 20) return
      const times = interrupted.map((time) => Math.round(time())).toSorted((one, two) => one - two)
      const [half, most] = [0.5, 0.99].map((part) => times[Math.floor(part * times.length)])
      process.stdout.write(
        `${kills} kills: ${[...killed].map((each) => each.join(' ')).join(', ')}; ${known.size} acknowledged tasks; ${times.length} were interrupted, and had ended after ${half} ms (p50), ${most} ms (p99) with a lease of ${LEASE} ms\n`,
      )
    },
    120_000 + KILLS * 10_000,
  )

  it('end when they are closed, also without Redis', async () => {
    const own = await RedisServer.start()
    try {
      const process = start({ exit: false }, 60_000, own.url, 20_000)
      const { result } = await process.request('tools/call', { name: 'endless', arguments: {} })
      expect(result?.taskId).toBeDefined()
      await own.kill()
      await process.stop()
    } finally {
      await own.stop()
    }
  }, 60_000)

  it('take over from one that is paused, which can write nothing when it continues', async () => {
    const [a, b] = [start({}, 600, redis.url, 20_000), start({}, 600, redis.url, 20_000)]
    const { result } = await a.request('tools/call', { name: 'tick', arguments: {} })
    const taskId = result?.taskId ?? ''
    const began = (attempt: number) =>
      noted().filter((line) => line.startsWith('began') && line.endsWith(` ${attempt}`))
    await until(() => expect(began(1)).toHaveLength(1))
    a.signal('SIGSTOP')
    await until(() => expect(began(2)).toEqual([`began ${b.pid} 2`]))
    a.signal('SIGCONT')
    await until(() => expect(noted()).toContain(`aborted ${a.pid} 1`))
    const steps = () => {
      const problems: string[] = []
      const [task] = auditTasks(redis.executed(), prefix, problems).values()
      expect(problems).toEqual([])
      return [...((task as { steps?: Set<string> } | undefined)?.steps ?? [])]
    }
    const count = steps().length
    await until(() => expect(steps().length).toBeGreaterThan(count + 5))
    // From the moment of the take-over on, there are none of the first run.
    const runs = steps().map((step) => Number(step.split('.')[0]))
    expect(runs.toSorted((one, other) => one - other)).toEqual(runs)
    expect(runs.at(-1)).toBeGreaterThan(1)
    await b.request('tasks/cancel', { taskId })
    await until(() =>
      expect(noted().some((line) => line.startsWith(`aborted ${b.pid}`))).toBe(true),
    )
  }, 120_000)
})

interface Plan {
  kill: string
  at: number
  phase: string
}

/** Kills in every method of the store, before the command is sent, when it is sent and after the reply. */
function* targets(): Generator<Plan, never> {
  for (let round = 0; ; round++)
    for (const [kill, most] of [
      ['change', 40],
      ['create', 8],
      ['claim', 12],
      ['change', 12],
      ['get', 60],
    ] as const)
      for (const [index, phase] of ['before', 'sent', 'after'].entries())
        yield { kill, at: 1 + ((7 * round + 5 * index) % most), phase }
}
