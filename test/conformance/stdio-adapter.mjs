// An HTTP proxy to the fixture over stdio, since the suite supports HTTP only.
// Messages are forwarded unchanged, so that the stdio server is tested. Stateless
// requests share one process, and their ids are made unique; each client with an
// initialize handshake gets its own process. Prints its URL, and exits at the end
// of stdin.
import { spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { createServer } from 'node:http'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'

const SUBSCRIPTION = 'io.modelcontextprotocol/subscriptionId'
const STATUS = {
  '-32700': 400,
  '-32600': 400,
  '-32020': 400,
  '-32021': 400,
  '-32022': 400,
  '-32601': 404,
}

/** A stdio server and the pending HTTP responses. */
class Child {
  constructor() {
    this.answers = new Map()
    this.sent = 0
    this.process = spawn(process.execPath, [fileURLToPath(new URL('stdio.mjs', import.meta.url))], {
      stdio: ['pipe', 'pipe', 'inherit'],
    })
    createInterface({ input: this.process.stdout }).on('line', (line) =>
      this.receive(JSON.parse(line)),
    )
  }

  send(message) {
    this.process.stdin.write(`${JSON.stringify(message)}\n`)
  }

  /** Sends a request; its response and related messages go to `answer`. */
  request(message, answer, unique) {
    const id = unique ? `adapter-${++this.sent}` : message.id
    this.answers.set(id, { ...answer, id: message.id, token: message.params?._meta?.progressToken })
    this.send({ ...message, id })
    return id
  }

  receive(message) {
    if (message.method !== undefined) return this.told(message)
    const answer = this.answers.get(message.id)
    this.answers.delete(message.id)
    const meta = message.result?._meta
    if (meta !== undefined && SUBSCRIPTION in meta) meta[SUBSCRIPTION] = answer?.id
    answer?.end({ ...message, id: answer.id })
  }

  told(message) {
    const { progressToken: token, _meta: meta } = message.params ?? {}
    const subscription = meta?.[SUBSCRIPTION]
    const waiting = [...this.answers.values()]
    const answer =
      this.answers.get(subscription) ??
      waiting.find((each) => token !== undefined && each.token === token) ??
      waiting.at(-1)
    if (this.answers.has(subscription)) meta[SUBSCRIPTION] = answer.id
    answer?.tell(message)
  }

  /** Drops a pending response. */
  cancel(id) {
    if (!this.answers.delete(id)) return
    this.send({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: id } })
  }
}

const sessions = new Map()
let shared

/** Responds with JSON, or with an event stream if there are messages before the response. */
function answerOf(response, headers) {
  let streaming = false
  const event = (message) => response.write(`data: ${JSON.stringify(message)}\n\n`)
  return {
    tell(message) {
      if (!streaming) response.writeHead(200, { ...headers, 'Content-Type': 'text/event-stream' })
      streaming = true
      event(message)
    },
    end(message) {
      if (streaming) {
        event(message)
        return response.end()
      }
      const status =
        message.error === undefined || headers['Mcp-Session-Id'] !== undefined
          ? 200
          : (STATUS[message.error.code] ?? 200)
      response.writeHead(status, { ...headers, 'Content-Type': 'application/json' })
      response.end(JSON.stringify(message))
    },
  }
}

function post(request, response, message) {
  const modern =
    request.headers['mcp-protocol-version'] === '2026-07-28' || message.params?._meta !== undefined
  const known = sessions.get(request.headers['mcp-session-id'])
  if (known === undefined && message.method !== 'initialize') shared ??= new Child()
  let child = known ?? shared
  const headers = {}
  if (
    message.method === 'initialize' &&
    known === undefined &&
    !('io.modelcontextprotocol/protocolVersion' in (message.params?._meta ?? {}))
  ) {
    headers['Mcp-Session-Id'] = randomUUID()
    child = new Child()
    sessions.set(headers['Mcp-Session-Id'], child)
  }
  child ??= shared ??= new Child()
  if (message.id === undefined || message.method === undefined) {
    child.send(message)
    return response.writeHead(202).end()
  }
  // Errors about the request metadata also have an HTTP status.
  const answer = answerOf(response, headers)
  const isEnvelope =
    modern && message.params?._meta?.['io.modelcontextprotocol/clientCapabilities'] === undefined
  const end = answer.end
  if (
    isEnvelope ||
    message.params?._meta?.['io.modelcontextprotocol/protocolVersion'] === undefined
  ) {
    answer.end = (given) => {
      if (known !== undefined || given.error?.code !== -32602) return end(given)
      response.writeHead(400, { 'Content-Type': 'application/json' })
      response.end(JSON.stringify(given))
    }
  }
  const id = child.request(message, answer, known === undefined)
  response.on('close', () => child.cancel(id))
}

const server = createServer((request, response) => {
  if (request.method === 'DELETE') {
    const id = request.headers['mcp-session-id']
    sessions.get(id)?.process.stdin.end()
    sessions.delete(id)
    return response.writeHead(204).end()
  }
  if (request.method !== 'POST') return response.writeHead(405).end()
  const chunks = []
  request
    .on('data', (chunk) => chunks.push(chunk))
    .on('end', () => post(request, response, JSON.parse(Buffer.concat(chunks).toString())))
})
server.listen(0, '127.0.0.1', () =>
  process.stdout.write(`http://127.0.0.1:${server.address().port}/mcp\n`),
)

process.stdin.resume().on('end', () => {
  for (const child of [...sessions.values(), ...(shared === undefined ? [] : [shared])])
    child.process.stdin.end()
  server.close()
  server.closeAllConnections()
})
