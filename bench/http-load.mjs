// Puts load on an HTTP server from this process. Requests are prebuilt and
// responses are not parsed, so that the load generator is not measured.
import { spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { connect } from 'node:net'
import { createInterface } from 'node:readline'

const META =
  '"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}'
export const request = (port, method, name, params, headers = []) => {
  const body = `{"jsonrpc":"2.0","id":1,"method":"${method}","params":{${params}}}`
  const named = name === undefined ? [] : [`Mcp-Name: ${name}`]
  const head = [
    'POST /mcp HTTP/1.1',
    `Host: 127.0.0.1:${port}`,
    'Content-Type: application/json',
    'Accept: application/json, text/event-stream',
    `Content-Length: ${Buffer.byteLength(body)}`,
    ...(headers.length > 0
      ? headers
      : ['MCP-Protocol-Version: 2026-07-28', `Mcp-Method: ${method}`, ...named]),
  ]
  return Buffer.from(`${head.join('\r\n')}\r\n\r\n${body}`)
}

/** One connection; sends each request after the previous response. */
export class Line {
  #socket
  #waiting = Buffer.alloc(0)
  #later = []
  #missing = 0
  #answered = () => {}

  constructor(port) {
    this.#socket = connect(port, '127.0.0.1')
    this.#socket.setNoDelay(true)
    this.#socket.on('data', (chunk) => this.#receive(chunk))
  }

  ask(bytes) {
    return new Promise((resolve, reject) => {
      this.#answered = resolve
      this.#socket.once('error', reject)
      this.#socket.write(bytes, () => this.#socket.off('error', reject))
    })
  }

  end() {
    this.#socket.destroy()
  }

  #receive(chunk) {
    // Of a large response only the beginning is looked at until it is complete.
    this.#later.push(chunk)
    this.#missing -= chunk.length
    if (this.#missing > 0) return
    this.#waiting = Buffer.concat([this.#waiting, ...this.#later.splice(0)])
    const end = this.#waiting.indexOf('\r\n\r\n')
    if (end === -1) return
    const head = this.#waiting.latin1Slice(0, end)
    const length = /content-length: (\d+)/i.exec(head)?.[1]
    const whole = length === undefined ? this.#chunked(end + 4) : end + 4 + Number(length)
    if (whole === undefined) return
    this.#missing = whole - this.#waiting.length
    if (this.#missing > 0) return
    this.#missing = 0
    const answer = this.#waiting
    this.#waiting = answer.subarray(whole)
    this.#answered({ head, body: answer.subarray(end + 4, whole) })
  }

  #chunked(start) {
    const end = this.#waiting.indexOf('0\r\n\r\n', start)
    return end === -1 ? undefined : end + 5
  }
}

/** Calls to a port, whatever listens there. */
export class HttpLines {
  #port

  constructor(port) {
    this.#port = port
  }

  /** Calls over several connections: throughput and latency. */
  async calls(count, lines) {
    const bytes = this.#call('hello')
    const all = [...Array(lines).keys()].map(() => new Line(this.#port))
    const times = []
    let left = count
    const began = performance.now()
    await Promise.all(
      all.map(async (line) => {
        while (left-- > 0) {
          const start = performance.now()
          await line.ask(bytes)
          times.push(performance.now() - start)
        }
      }),
    )
    const seconds = (performance.now() - began) / 1000
    for (const line of all) line.end()
    times.sort((one, other) => one - other)
    return {
      perSecond: count / seconds,
      p50: times[Math.floor(count * 0.5)],
      p99: times[Math.floor(count * 0.99)],
    }
  }

  /** Round-trip time of a message of that many bytes, in milliseconds. */
  async large(size) {
    const line = new Line(this.#port)
    const bytes = this.#call('x'.repeat(size))
    const began = performance.now()
    const { body } = await line.ask(bytes)
    line.end()
    if (body.length < size) throw new Error(`Only ${body.length} bytes came back`)
    return performance.now() - began
  }

  #call(message) {
    return request(
      this.#port,
      'tools/call',
      'echo',
      `"name":"echo","arguments":{"message":"${message}"},${META}`,
    )
  }
}

export class HttpLoad {
  #child
  #port

  async open(file) {
    const env = { ...process.env }
    delete env.NODE_EXTRA_CA_CERTS
    this.#child = spawn(process.execPath, ['--expose-gc', file], {
      stdio: ['ignore', 'pipe', 'inherit'],
      env,
    })
    this.#port = await new Promise((resolve) =>
      createInterface({ input: this.#child.stdout }).once('line', (line) => resolve(Number(line))),
    )
  }

  /** Stateless calls over several connections: throughput, latency and CPU time of the server. */
  async calls(count, lines, legacy) {
    const headers = legacy ? ['MCP-Protocol-Version: 2025-11-25'] : []
    const bytes = request(
      this.#port,
      'tools/call',
      'echo',
      `"name":"echo","arguments":{"message":"hello"},${legacy ? '"x":1' : META}`,
      headers,
    )
    const all = [...Array(lines).keys()].map(() => new Line(this.#port))
    const times = []
    let left = count
    const [began, cpu] = [performance.now(), this.#cpu()]
    const answers = await Promise.all(
      all.map(async (line) => {
        let last
        while (left-- > 0) {
          const start = performance.now()
          last = await line.ask(bytes)
          times.push(performance.now() - start)
        }
        return last
      }),
    )
    const seconds = (performance.now() - began) / 1000
    const spent = this.#cpu() - cpu
    for (const line of all) line.end()
    const sample = String(answers.find(Boolean)?.body)
    if (!sample.includes('"hello"')) throw new Error(`Unexpected response: ${sample}`)
    times.sort((one, other) => one - other)
    return {
      perSecond: count / seconds,
      p50: times[Math.floor(count * 0.5)],
      p99: times[Math.floor(count * 0.99)],
      cpu: (spent / count) * 1e6,
    }
  }

  /** Initialize handshakes per second. */
  async sessions(count, lines) {
    const hello =
      '"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"bench","version":"1"}'
    const opening = request(this.#port, 'initialize', undefined, hello, ['X: y'])
    const all = [...Array(lines).keys()].map(() => new Line(this.#port))
    let left = count
    const began = performance.now()
    await Promise.all(
      all.map(async (line) => {
        while (left-- > 0) {
          const { head } = await line.ask(opening)
          const session = /mcp-session-id: (\S+)/i.exec(head)?.[1]
          const body = '{"jsonrpc":"2.0","method":"notifications/initialized"}'
          await line.ask(
            Buffer.from(
              `POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:${this.#port}\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\nMcp-Session-Id: ${session}\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
            ),
          )
        }
      }),
    )
    for (const line of all) line.end()
    return count / ((performance.now() - began) / 1000)
  }

  /** Kilobytes of server memory per idle stream. */
  async streams(count) {
    const bytes = request(
      this.#port,
      'subscriptions/listen',
      undefined,
      `"notifications":{"toolsListChanged":true},${META}`,
    )
    const before = this.memory(false)
    const sockets = []
    for (let opened = 0; opened < count; opened += 100) {
      await Promise.all(
        [...Array(100).keys()].map(
          () =>
            new Promise((resolve, reject) => {
              const socket = connect(this.#port, '127.0.0.1', () => socket.write(bytes))
              socket.once('data', resolve).once('error', reject)
              sockets.push(socket)
            }),
        ),
      )
    }
    await new Promise((resolve) => setTimeout(resolve, 1000))
    const cost = ((this.memory(false) - before) * 1024) / count
    for (const socket of sockets) socket.destroy()
    return cost
  }

  /** Current or peak memory of the server, in MB. */
  memory(peak) {
    const status = readFileSync(`/proc/${this.#child.pid}/status`, 'utf8')
    return Number(new RegExp(`${peak ? 'VmHWM' : 'VmRSS'}:\\s+(\\d+)`).exec(status)?.[1]) / 1024
  }

  close() {
    const ended = new Promise((resolve) => this.#child.once('exit', resolve))
    this.#child.kill('SIGKILL')
    return ended
  }

  /** CPU time so far, in seconds. */
  #cpu() {
    const fields = readFileSync(`/proc/${this.#child.pid}/stat`, 'utf8').split(') ')[1].split(' ')
    return (Number(fields[11]) + Number(fields[12])) / 100
  }
}
