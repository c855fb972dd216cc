// The processes of bench/redis.mjs: Redis, servers and workers. All listen on loopback.
import { spawn } from 'node:child_process'
import { accessSync, constants, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { createClient } from 'redis'

const path = (name) => fileURLToPath(new URL(name, import.meta.url))
const MODULE = path('servers/redis.mjs')

function isExecutable(file) {
  try {
    accessSync(file, constants.X_OK)
    return true
  } catch {
    return false
  }
}

/** The path of redis-server or valkey-server, or undefined if none is installed. */
export function findRedis() {
  if (process.env.REDIS_SERVER) return process.env.REDIS_SERVER
  const folders = (process.env.PATH ?? '').split(delimiter)
  const files = ['redis-server', 'valkey-server'].flatMap((name) =>
    folders.map((folder) => join(folder, name)),
  )
  return files.find(isExecutable)
}

function freePort() {
  return new Promise((resolve) => {
    const server = createServer().listen(0, '127.0.0.1', () => {
      const { port } = server.address()
      server.close(() => resolve(port))
    })
  })
}

/** Resolves with the output of a process once it contains a text. */
function outputWith(text, child, stream) {
  return new Promise((resolve, reject) => {
    let output = ''
    stream.on('data', (chunk) => {
      output += chunk
      if (output.includes(text)) resolve(output)
    })
    child.once('error', reject)
    child.once('exit', () => reject(new Error(`A process has ended: ${output}`)))
  })
}

async function end(child, signal) {
  if (child.exitCode !== null || child.signalCode !== null) return
  const exited = new Promise((resolve) => child.once('exit', resolve))
  child.kill(signal)
  await exited
}

/** A Redis that stores everything on the disk. */
export class Redis {
  #child
  #folder
  #client

  async open(appendfsync) {
    const port = await freePort()
    this.url = `redis://127.0.0.1:${port}`
    this.#folder = mkdtempSync(join(tmpdir(), 'ccmcp-bench-'))
    const place = ['--port', String(port), '--bind', '127.0.0.1', '--dir', this.#folder]
    const durable = ['--appendonly', 'yes', '--appendfsync', appendfsync, '--save', '']
    this.#child = spawn(findRedis(), [...place, ...durable], { stdio: ['ignore', 'pipe', 2] })
    await outputWith('Ready to accept connections', this.#child, this.#child.stdout)
    this.#client = createClient({ url: this.url })
    await this.#client.connect()
    return this
  }

  keys() {
    return this.#client.dbSize()
  }

  /** Memory in use, in bytes. */
  async memory() {
    return Number(/used_memory:(\d+)/.exec(await this.#client.info('memory'))[1])
  }

  /** Deletes all keys. */
  clear() {
    return this.#client.flushAll()
  }

  async close() {
    this.#client?.destroy()
    await end(this.#child, 'SIGKILL')
    rmSync(this.#folder, { recursive: true, force: true })
  }
}

class NodeProcess {
  child

  start(program, options) {
    const env = { ...process.env, BENCH: JSON.stringify(options) }
    delete env.NODE_EXTRA_CA_CERTS
    this.child = spawn(process.execPath, program, { stdio: ['ignore', 'pipe', 'pipe'], env })
  }

  /** CPU time so far, in seconds. */
  cpu() {
    const stat = readFileSync(`/proc/${this.child.pid}/stat`, 'utf8')
    const fields = stat.split(') ')[1].split(' ')
    return (Number(fields[11]) + Number(fields[12])) / 100
  }

  close() {
    return end(this.child, 'SIGTERM')
  }
}

/** A server over HTTP. */
export class Server extends NodeProcess {
  async open(options) {
    this.start([path('servers/http-redis.mjs')], options)
    this.child.stderr.pipe(process.stderr)
    this.port = Number(await outputWith('\n', this.child, this.child.stdout))
    return this
  }
}

/** Runs tasks: `ccmcp worker`. */
export class Worker extends NodeProcess {
  async open(options, concurrency) {
    const command = ['worker', MODULE, '--concurrency', String(concurrency)]
    this.start([path('../dist/cli.js'), ...command, '--log-level', 'error'], options)
    await outputWith('running the tasks', this.child, this.child.stderr)
    return this
  }
}
