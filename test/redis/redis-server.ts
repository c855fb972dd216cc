import { type ChildProcess, spawn } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createClient } from 'redis'
import { freePort } from '../../scripts/free-port.mjs'
import { findProgram } from '../programs.js'

/* Redis servers of a test's own, and keys of a test's own on a server that is given. */

const program = findProgram('redis')
const given = process.env['REDIS_URL']

/** In memory where that exists: Redis waits for the disk with each write, and others may use it too. */
const base = existsSync('/dev/shm') ? '/dev/shm' : tmpdir()

/** Whether tests with Redis can run at all. */
export const hasRedis = program !== undefined || given !== undefined
/** Whether tests can start and stop servers. */
export const canStartRedis = program !== undefined

/** A server on a port of this machine, which loses nothing. */
export class RedisServer {
  readonly port: number
  readonly #folder: string
  readonly #arguments: readonly string[]
  #process: ChildProcess | undefined

  private constructor(port: number, folder: string, more: readonly string[]) {
    this.port = port
    this.#folder = folder
    this.#arguments = more
  }

  static async start(...more: string[]): Promise<RedisServer> {
    const folder = mkdtempSync(join(base, 'ccmcp-redis-'))
    const server = new RedisServer(await freePort(), folder, more)
    await server.restart()
    return server
  }

  get url(): string {
    return `redis://127.0.0.1:${this.port}`
  }

  /** Starts it again with what it has stored. */
  async restart(): Promise<void> {
    const durable = ['--appendonly', 'yes', '--appendfsync', 'always', '--save', '']
    const place = ['--port', String(this.port), '--bind', '127.0.0.1', '--dir', this.#folder]
    const started = spawn(program ?? '', [...place, ...durable, ...this.#arguments], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    this.#process = started
    await new Promise<void>((resolve, reject) => {
      let output = ''
      started.stdout.on('data', (chunk: Buffer) => {
        output += chunk.toString()
        if (output.includes('Ready to accept connections')) resolve()
      })
      started.on('exit', () => reject(new Error(`redis-server has ended: ${output}`)))
      started.on('error', reject)
    })
  }

  /** The commands that it has executed, as it has written them to its append-only file. */
  executed(): Buffer {
    const folder = join(this.#folder, 'appendonlydir')
    const files = readdirSync(folder).filter((name) => name.endsWith('.incr.aof'))
    return Buffer.concat(files.toSorted().map((name) => readFileSync(join(folder, name))))
  }

  signal(name: NodeJS.Signals): void {
    this.#process?.kill(name)
  }

  /** Ends the process; what it has stored remains. */
  async kill(name: NodeJS.Signals = 'SIGKILL'): Promise<void> {
    const ending = this.#process
    if (ending === undefined || ending.exitCode !== null || ending.signalCode !== null) return
    const ended = new Promise((resolve) => ending.once('exit', resolve))
    ending.kill(name)
    await ended
  }

  /** Ends it at once, for a process that ends. */
  destroy(): void {
    this.signal('SIGKILL')
    rmSync(this.#folder, { recursive: true, force: true })
  }

  async stop(): Promise<void> {
    await this.kill()
    rmSync(this.#folder, { recursive: true, force: true })
  }
}

/** Sends commands to a server. */
export async function commanding<Result>(
  url: string,
  use: (command: (...parts: string[]) => Promise<unknown>) => Promise<Result>,
): Promise<Result> {
  const client = createClient({ url })
  client.on('error', () => {})
  await client.connect()
  try {
    return await use((...parts) => client.sendCommand(parts))
  } finally {
    client.destroy()
  }
}

/** The server that tests share: `REDIS_URL`, or one that is started. */
export async function sharedServer(): Promise<{ url: string; stop(): Promise<void> }> {
  if (given !== undefined) return { url: given, stop: async () => {} }
  const server = await RedisServer.start()
  return { url: server.url, stop: () => server.stop() }
}

let count = 0
/** A prefix that no other test uses. */
export function newPrefix(): string {
  return `test-${process.pid}-${Date.now()}-${count++}`
}

/** Moves the slot of a key to the next of three servers, after `prepare` was called with the URL of its server. */
export async function moveSlot(
  urls: readonly string[],
  key: string,
  prepare: (from: string) => Promise<unknown> = async () => {},
): Promise<{ slot: string; to: string }> {
  const run = (url: string, ...parts: string[]) => commanding(url, (command) => command(...parts))
  const slot = String(await run(urls[0] ?? '', 'CLUSTER', 'KEYSLOT', key))
  const index = BOUNDS.findIndex((bound) => Number(slot) < bound) - 1
  const [from = '', next = ''] = [urls[index], urls[(index + 1) % 3]]
  const id = async (url: string) => String(await run(url, 'CLUSTER', 'MYID'))
  const [oldId, newId] = [await id(from), await id(next)]
  await prepare(from)
  // A node that was importing the slot gets a new epoch, so that no older message moves it back.
  await run(next, 'CLUSTER', 'SETSLOT', slot, 'IMPORTING', oldId)
  for (const url of [next, ...urls]) await run(url, 'CLUSTER', 'SETSLOT', slot, 'NODE', newId)
  return { slot, to: next }
}

/** The first slots of three servers, and the end. */
const BOUNDS = [0, 5461, 10923, 16384]

/** A cluster of three servers, each with a third of the slots. */
export async function startCluster(): Promise<RedisServer[]> {
  const options = ['--cluster-enabled', 'yes', '--cluster-node-timeout', '5000']
  const servers = await Promise.all([1, 2, 3].map(() => RedisServer.start(...options)))
  for (const [index, { url }] of servers.entries())
    await commanding(url, async (command) => {
      const [from = 0, to = 0] = [BOUNDS[index], BOUNDS[index + 1]]
      await command('CLUSTER', 'ADDSLOTSRANGE', String(from), String(to - 1))
      for (const { port } of servers) await command('CLUSTER', 'MEET', '127.0.0.1', String(port))
    })
  for (const { url } of servers)
    await commanding(url, async (command) => {
      for (let info = ''; !info.includes('cluster_state:ok') || !info.includes('known_nodes:3');) {
        await new Promise((resolve) => setTimeout(resolve, 10))
        info = String(await command('CLUSTER', 'INFO'))
      }
    })
  return servers
}
