// Puts load on one stdio server. Requests are prebuilt and responses are counted
// by newlines, not parsed, so that the load generator is not measured.
import { spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'

const NEWLINE = 10
const INITIALIZE =
  '{"jsonrpc":"2.0","id":"i","method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"bench","version":"1"}}}\n'
const INITIALIZED = '{"jsonrpc":"2.0","method":"notifications/initialized"}\n'

const call = (id, message, meta = '') =>
  `{"jsonrpc":"2.0","id":${id},"method":"tools/call","params":{${meta}"name":"echo","arguments":{"message":"${message}"}}}\n`
/** The `_meta` of a stateless request, whose client has declared tasks. */
const STATELESS =
  '"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"bench","version":"1"},"io.modelcontextprotocol/clientCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}},'

export class Load {
  #child
  #seen = 0
  #bytes = 0
  #wanted = Infinity
  #reached = () => {}
  #id = 0

  constructor(file, ...args) {
    const env = { ...process.env }
    // On Node 20 this adds 50 ms to every start.
    delete env.NODE_EXTRA_CA_CERTS
    this.started = performance.now()
    this.#child = spawn(process.execPath, [file, ...args], {
      stdio: ['pipe', 'pipe', 'ignore'],
      env,
    })
    this.#child.stdin.on('error', () => {})
    this.#child.stdout.on('data', (chunk) => {
      this.#bytes += chunk.length
      for (let at = chunk.indexOf(NEWLINE); at !== -1; at = chunk.indexOf(NEWLINE, at + 1))
        this.#seen++
      if (this.#seen >= this.#wanted) this.#reached()
    })
    this.exited = new Promise((resolve) => this.#child.on('exit', resolve))
  }

  get pid() {
    return this.#child.pid
  }

  /** Writes and waits for a number of responses; undefined on timeout. */
  async #send(bytes, answers, seconds = 60) {
    const target = this.#seen + answers
    let timer
    const came = new Promise((resolve) => {
      this.#wanted = target
      this.#reached = () => resolve(true)
      timer = setTimeout(() => resolve(false), seconds * 1000)
      void this.exited.then(() => resolve(false))
    })
    const began = performance.now()
    this.#child.stdin.write(bytes)
    const ok = await came
    clearTimeout(timer)
    this.#wanted = Infinity
    return ok ? performance.now() - began : undefined
  }

  /** Milliseconds from spawning to the first response, and to the response to the first call. */
  async open() {
    await this.#send(INITIALIZE, 1)
    const first = performance.now() - this.started
    await this.#send(INITIALIZED + call(++this.#id, 'first'), 1)
    return { first, firstCall: performance.now() - this.started }
  }

  /** Pipelined calls: calls per second, and the server's CPU time per call in microseconds. */
  async pipelined(count, { stateless = false } = {}) {
    const meta = stateless ? STATELESS : ''
    const bytes = Buffer.from(
      Array.from({ length: count }, (_, i) => call(++this.#id, `hello number ${i}`, meta)).join(''),
    )
    const before = this.#cpu()
    const spent = await this.#send(bytes, count)
    if (spent === undefined) return undefined
    return { perSecond: (count / spent) * 1000, cpu: ((this.#cpu() - before) * 1000) / count }
  }

  /** Sequential calls: their latencies in milliseconds, sorted. */
  async pingPong(count) {
    const times = []
    for (let i = 0; i < count; i++) times.push(await this.#send(call(++this.#id, 'hi'), 1))
    return times.sort((one, other) => one - other)
  }

  /** Calls with a fixed number in flight. */
  async inFlight(count, width) {
    const messages = Array.from({ length: count }, (_, i) => call(++this.#id, `hello number ${i}`))
    const first = this.#seen
    await new Promise((resolve) => {
      let sent = 0
      const fill = () => {
        const until = Math.min(count, this.#seen - first + width)
        if (sent < until) this.#child.stdin.write(messages.slice(sent, until).join(''))
        sent = until
        this.#wanted = this.#seen + 1
        if (this.#seen - first >= count) resolve()
      }
      this.#reached = fill
      void this.exited.then(resolve)
      fill()
    })
    this.#wanted = Infinity
  }

  /** Round-trip time of a message of that many bytes, in milliseconds. */
  async large(bytes) {
    const message = Buffer.from(call(++this.#id, 'x'.repeat(bytes)))
    const before = this.#bytes
    const spent = await this.#send(message, 1, 30)
    return spent === undefined || this.#bytes - before < bytes ? undefined : spent
  }

  /** Current or peak memory, in MB. */
  memory(peak) {
    const status = readFileSync(`/proc/${this.#child.pid}/status`, 'utf8')
    return Number((peak ? /VmHWM:\s+(\d+)/ : /VmRSS:\s+(\d+)/).exec(status)?.[1]) / 1024
  }

  /** CPU time in milliseconds. */
  #cpu() {
    const fields = readFileSync(`/proc/${this.#child.pid}/stat`, 'utf8').split(') ')[1].split(' ')
    return (Number(fields[11]) + Number(fields[12])) * 10
  }

  async close() {
    this.#child.kill('SIGKILL')
    await this.exited
  }
}
