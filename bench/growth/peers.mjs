// The other side of what is measured: JSON-RPC over a channel in memory, and over a fetch handler.
export const HANDSHAKE = '2025-11-25'
const INFO = { name: 'bench', version: '1' }
export const STATELESS = {
  'io.modelcontextprotocol/protocolVersion': '2026-07-28',
  'io.modelcontextprotocol/clientInfo': INFO,
  'io.modelcontextprotocol/clientCapabilities': {
    extensions: { 'io.modelcontextprotocol/tasks': {} },
  },
}
export const INITIALIZE = { protocolVersion: HANDSHAKE, capabilities: {}, clientInfo: INFO }

/** Requests and their responses; `send` takes an object, `receive` what came. */
class Peer {
  #pending = new Map()
  #last = 0
  #acknowledged = () => {}

  constructor(send) {
    this.send = send
  }

  request(method, params = {}) {
    const id = ++this.#last
    return new Promise((resolve, reject) => {
      this.#pending.set(id, { resolve, reject })
      this.send({ jsonrpc: '2.0', id, method, params })
    })
  }

  /** Opens a stream of changes; resolves at its first notification, which is the acknowledgement. */
  listen(notifications) {
    const params = { _meta: STATELESS, notifications }
    return new Promise((resolve, reject) => {
      this.#acknowledged = resolve
      this.request('subscriptions/listen', params).catch(reject)
    })
  }

  receive({ id, method, result, error }) {
    if (method !== undefined) return this.#acknowledged()
    const waiting = this.#pending.get(id)
    this.#pending.delete(id)
    if (error === undefined) waiting?.resolve(result)
    else waiting?.reject(new Error(error.message))
  }

  async initialize() {
    await this.request('initialize', INITIALIZE)
    this.send({ jsonrpc: '2.0', method: 'notifications/initialized' })
    return this
  }

  /** All pages of a list. */
  async list(method) {
    let cursor
    do {
      const params = cursor === undefined ? {} : { cursor }
      ;({ nextCursor: cursor } = await this.request(method, params))
    } while (cursor !== undefined)
  }
}

/** A peer of a ccmcp server, over a channel that carries text. */
export function peerOf(channel) {
  const peer = new Peer((message) => channel.send(JSON.stringify(message)))
  channel.receive({
    frame: (frame) => peer.receive(JSON.parse(frame)),
    malformed() {},
    closed() {},
  })
  return peer
}

/** A peer of a server of the SDK, whose transport in memory carries objects. */
export async function peerOfSdk(server, InMemoryTransport) {
  const [own, other] = InMemoryTransport.createLinkedPair()
  const peer = new Peer((message) => void own.send(message))
  Object.assign(own, { onmessage: (message) => peer.receive(message) })
  await server.connect(other)
  await own.start()
  return peer
}

/** Posts to a fetch handler. */
export function post(handler, message, headers = {}) {
  const request = new Request('http://localhost/mcp', {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      host: 'localhost',
      ...headers,
    },
    body: JSON.stringify({ jsonrpc: '2.0', ...message }),
  })
  return handler(request)
}

/** Opens a stream of changes of one resource; `heard` is called with each chunk after the acknowledgement. */
export async function openStream(handler, id, uri, heard) {
  const params = { _meta: STATELESS, notifications: { resourceSubscriptions: [uri] } }
  const response = await post(
    handler,
    { id, method: 'subscriptions/listen', params },
    { 'mcp-protocol-version': '2026-07-28', 'mcp-method': 'subscriptions/listen' },
  )
  const reader = response.body.getReader()
  const decoder = new TextDecoder()
  let text = ''
  const acknowledgement = 'notifications/subscriptions/acknowledged'
  while (!text.includes(acknowledgement)) {
    const { done, value } = await reader.read()
    if (done) throw new Error(`The stream was not opened: ${response.status} ${text}`)
    text += decoder.decode(value)
  }
  const read = async () => {
    for (let { done, value } = await reader.read(); !done; { done, value } = await reader.read())
      heard(decoder.decode(value))
  }
  read().catch(() => {})
}
