import { fork } from 'node:child_process'
import { once } from 'node:events'
import { Agent, request } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'

/** The bytes of the heap and of buffers outside it. */
export async function heldBytes() {
  // What closed connections hold is freed in several turns.
  for (let i = 0; i < 5; i++) {
    globalThis.gc()
    await sleep(20)
  }
  const { heapUsed, external } = process.memoryUsage()
  return heapUsed + external
}

/** Starts a server in a process of its own, with `options`, and ends it after `use`. */
export async function withServer(options, use) {
  const script = fileURLToPath(new URL('server.mjs', import.meta.url))
  const child = fork(script, [JSON.stringify(options)], {
    execArgv: ['--expose-gc'],
    stdio: ['pipe', 'pipe', 'inherit', 'ipc'],
  })
  const next = async () => (await once(child, 'message'))[0]
  try {
    const { url } = await next()
    const measure = async () => {
      child.send('measure')
      return (await next()).held
    }
    return await use({ url, measure, input: child.stdin, output: child.stdout })
  } finally {
    child.kill('SIGKILL')
  }
}

const POST = {
  'content-type': 'application/json',
  accept: 'application/json, text/event-stream',
}
const NEWEST = '2025-11-25'

/** A client that sends over connections which it closes before memory is measured. */
export class Client {
  #url
  #agent = new Agent({ keepAlive: true, maxSockets: 20 })

  constructor(url) {
    this.#url = url
  }

  /** Resolves with the response after its end, or of a stream after its head, which stays open. */
  send(method, headers, body) {
    return new Promise((resolve, reject) => {
      const isStream = method === 'GET' || /"(?:subscriptions\/listen|wait)"/.test(body)
      const agent = isStream ? false : this.#agent
      const sent = request(this.#url, { method, headers, agent }, (response) => {
        const { statusCode: status } = response
        let text = ''
        response.on('data', (chunk) => (text += chunk))
        response.on('error', () => {})
        const done = () => resolve({ status, headers: response.headers, text })
        if (isStream && status === 200) response.once('data', done)
        else response.on('end', done)
      })
      sent.on('error', reject)
      sent.end(body)
    })
  }

  post(message, session) {
    const headers = session === undefined ? POST : { ...POST, 'mcp-session-id': session }
    return this.send('POST', headers, JSON.stringify({ jsonrpc: '2.0', ...message }))
  }

  /** A request without a session. */
  postStateless(method, params, id = 1) {
    const version = '2026-07-28'
    const _meta = {
      'io.modelcontextprotocol/protocolVersion': version,
      'io.modelcontextprotocol/clientCapabilities': {},
    }
    const named = params.name === undefined ? {} : { 'mcp-name': params.name }
    const headers = { ...POST, ...named, 'mcp-protocol-version': version, 'mcp-method': method }
    const message = { jsonrpc: '2.0', id, method, params: { ...params, _meta } }
    return this.send('POST', headers, JSON.stringify(message))
  }

  /** Opens a session; undefined if it was refused. */
  async initialize(clientInfo = { name: 'client', version: '1.0.0' }) {
    const params = { protocolVersion: NEWEST, capabilities: {}, clientInfo }
    const { status, headers } = await this.post({ id: 0, method: 'initialize', params })
    if (status !== 200) return undefined
    const session = headers['mcp-session-id']
    await this.post({ method: 'notifications/initialized' }, session)
    return session
  }

  listen(session) {
    return this.send('GET', { accept: 'text/event-stream', 'mcp-session-id': session })
  }

  /** Ends the connections of requests that are complete. */
  close() {
    this.#agent.destroy()
  }
}

/** Repeats what resolves with whether it was accepted, several at a time, until one is refused; how many were accepted. */
export async function fill(attempt, { most = Infinity, parallel = 20 } = {}) {
  let started = 0
  let accepted = 0
  let isFull = false
  const work = async () => {
    while (!isFull && started < most) {
      const each = started++
      if (await attempt(each)) accepted++
      else isFull = true
    }
  }
  await Promise.all(Array.from({ length: parallel }, work))
  return accepted
}
