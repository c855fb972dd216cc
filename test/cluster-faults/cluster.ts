import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { RedisServer, newPrefix } from '../redis/redis-server.js'
import { TcpProxy } from '../redis/tcp-proxy.js'
import type { Random } from './random.js'

/* Processes that share a Redis server, each behind a network of its own that can fail. */

export const LEASE = 300
/** Milliseconds by which a clock is wrong. */
const HOUR = 3_600_000

/** What must not stay when the harness ends early. */
export const running = new Set<{ destroy(): void }>()

/** A call of a store in which a process is killed. */
export interface Plan {
  readonly kill: string
  readonly at: number
  readonly phase: string
}

export class ServerProcess {
  readonly proxy: TcpProxy
  readonly #child: ChildProcess
  readonly exited: Promise<NodeJS.Signals | null>
  url = ''
  /** The end of what it has written to stderr. */
  output = ''
  isPaused = false
  /** That it is shutting down: it refuses new requests. */
  isEnding = false

  constructor(child: ChildProcess, proxy: TcpProxy) {
    this.#child = child
    this.proxy = proxy
    this.exited = new Promise((resolve) => child.once('exit', (_, signal) => resolve(signal)))
    child.stderr?.on('data', (chunk: Buffer) => {
      this.output = (this.output + chunk.toString()).slice(-4000)
    })
  }

  get isAlive(): boolean {
    return this.#child.exitCode === null && this.#child.signalCode === null
  }

  get isServing(): boolean {
    return this.isAlive && !this.isPaused && !this.isEnding
  }

  send(plan: Plan): void {
    this.#child.send(plan, () => {})
  }

  pause(): void {
    this.isPaused = true
    this.#child.kill('SIGSTOP')
  }

  resume(): void {
    this.#child.kill('SIGCONT')
    this.isPaused = false
  }

  signal(name: NodeJS.Signals): void {
    this.#child.kill(name)
  }

  /** Resolves with the signal that has ended it. */
  async end(signal: NodeJS.Signals): Promise<NodeJS.Signals | null> {
    this.isEnding = true
    if (this.isAlive) this.#child.kill(signal)
    const ended = await this.exited
    await this.proxy.stop()
    return ended
  }
}

export class Cluster {
  readonly redis: RedisServer
  readonly prefix = newPrefix()
  readonly processes: ServerProcess[] = []
  readonly ledgerFile: string
  /** What processes have written to stderr because they have failed. */
  readonly crashes: string[] = []
  readonly #program: string
  readonly #folder = mkdtempSync(join(tmpdir(), 'ccmcp-cluster-'))

  private constructor(program: string, redis: RedisServer) {
    this.#program = program
    this.redis = redis
    this.ledgerFile = join(this.#folder, 'ledger')
  }

  /** `program` is the server that each process runs; `options` are those of Redis. */
  static async start(program: string, size: number, ...options: string[]): Promise<Cluster> {
    const redis = await RedisServer.start('--auto-aof-rewrite-percentage', '0', ...options)
    const cluster = new Cluster(program, redis)
    running.add(cluster)
    try {
      await Promise.all(Array.from({ length: size }, () => cluster.add()))
    } catch (error) {
      await cluster.stop()
      throw error
    }
    return cluster
  }

  /** Starts one more process. `hours` is by how much its clock is wrong. */
  async add(hours = 0): Promise<ServerProcess> {
    const proxy = await TcpProxy.start(this.redis.port)
    const options = [proxy.url, this.prefix, LEASE, this.ledgerFile, hours * HOUR].map(String)
    const child = spawn(process.execPath, [this.#program, ...options], {
      stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
    })
    const started = new ServerProcess(child, proxy)
    this.processes.push(started)
    child.once('close', (code, signal) => {
      if (signal !== 'SIGKILL' && code !== 0)
        this.crashes.push(`exit code ${code}: ${started.output}`)
    })
    started.url = await new Promise<string>((resolve, reject) => {
      child.stdout?.once('data', (line: Buffer) => resolve(line.toString().trim()))
      child.once('close', () => reject(new Error(`a process has not started: ${started.output}`)))
    })
    return started
  }

  /** The processes that can be asked. */
  get serving(): ServerProcess[] {
    return this.processes.filter((each) => each.url !== '' && each.isServing)
  }

  any(random: Random): ServerProcess | undefined {
    return random.pick(this.serving)
  }

  /**
   * Ends a process. Resolves with the signal that has ended it; undefined if it was removed meanwhile, since several
   * faults at the same time may have the same victim.
   */
  async remove(
    one: ServerProcess,
    signal: NodeJS.Signals,
  ): Promise<NodeJS.Signals | null | undefined> {
    const ended = await one.end(signal)
    const index = this.processes.indexOf(one)
    if (index === -1) return undefined
    this.processes.splice(index, 1)
    return ended
  }

  /** Ends everything at once, for a process that ends. */
  destroy(): void {
    for (const each of this.processes) each.signal('SIGKILL')
    this.redis.destroy()
    rmSync(this.#folder, { recursive: true, force: true })
  }

  async stop(): Promise<void> {
    await Promise.all(this.processes.splice(0).map((each) => each.end('SIGKILL')))
    await this.redis.stop()
    rmSync(this.#folder, { recursive: true, force: true })
    running.delete(this)
  }
}
