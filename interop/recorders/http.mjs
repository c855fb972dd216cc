// Records HTTP: forwards connections and keeps their bytes, and reads them as requests and responses afterwards.
import { once } from 'node:events'
import { connect, createServer } from 'node:net'

/** Listens on a port of this machine in front of another. */
export class HttpRecorder {
  #server = createServer({ allowHalfOpen: true }, (client) => this.#forward(client))
  #connections = []
  #target

  constructor(target) {
    this.#target = target
  }

  async listen() {
    this.#server.listen(0, '127.0.0.1')
    await once(this.#server, 'listening')
    return this.#server.address().port
  }

  close() {
    this.#server.close()
    for (const { client, server } of this.#connections) {
      client.destroy()
      server.destroy()
    }
  }

  #forward(client) {
    const server = connect({ port: this.#target, host: '127.0.0.1', allowHalfOpen: true })
    const connection = { client, server, in: [], out: [] }
    this.#connections.push(connection)
    // What one side has sent is recorded even if the other side is already gone.
    const pass = (from, to, pieces) => {
      from.on('data', (bytes) => {
        pieces.push(bytes)
        if (to.writable && !to.write(bytes)) from.pause()
      })
      to.on('drain', () => from.resume())
      to.on('close', () => from.resume())
      from.on('error', () => {})
      for (const event of ['end', 'close']) from.on(event, () => to.end())
    }
    pass(client, server, connection.in)
    pass(server, client, connection.out)
  }

  /** All exchanges: heads as pairs, bodies without transfer coding. */
  exchanges() {
    return this.#connections.flatMap((connection) => {
      const requests = messagesOf(Buffer.concat(connection.in), () => false)
      const responses = messagesOf(
        Buffer.concat(connection.out),
        (index) => requests[index]?.line.startsWith('HEAD ') ?? false,
      ).filter(({ line }) => !/^HTTP\/1\.1 1\d\d/.test(line))
      return requests.map((request, index) => ({ request, response: responses[index] }))
    })
  }
}

/** The requests or responses of one direction of a connection. */
function messagesOf(bytes, hasNoBody) {
  const messages = []
  for (let at = 0; at < bytes.length;) {
    const end = bytes.indexOf('\r\n\r\n', at)
    if (end === -1) break
    const [line, ...lines] = bytes.toString('latin1', at, end).split('\r\n')
    const headers = lines.map((each) => {
      const colon = each.indexOf(':')
      return [each.slice(0, colon), each.slice(colon + 1).trim()]
    })
    const { body, next } = hasNoBody(messages.length)
      ? { body: Buffer.alloc(0), next: end + 4 }
      : bodyOf(bytes, end + 4, line, headers)
    messages.push({ line, headers, body })
    at = next
  }
  return messages
}

function bodyOf(bytes, start, line, headers) {
  const header = (name) => headers.find(([each]) => each.toLowerCase() === name)?.[1]
  if (/chunked/i.test(header('transfer-encoding') ?? '')) return chunkedBody(bytes, start)
  const length = header('content-length')
  const isResponse = line.startsWith('HTTP/')
  const isEmpty = !isResponse || /^HTTP\/1\.1 (?:1\d\d|204|304)/.test(line)
  let size = isEmpty ? 0 : bytes.length - start
  if (length !== undefined) size = Number(length)
  return { body: bytes.subarray(start, start + size), next: start + size }
}

function chunkedBody(bytes, start) {
  const pieces = []
  let at = start
  for (;;) {
    const end = bytes.indexOf('\r\n', at)
    if (end === -1) return { body: Buffer.concat(pieces), next: bytes.length }
    const size = Number.parseInt(bytes.toString('latin1', at, end), 16)
    if (size === 0) return { body: Buffer.concat(pieces), next: bytes.indexOf('\r\n', end + 2) + 2 }
    pieces.push(bytes.subarray(end + 2, end + 2 + size))
    at = end + 2 + size + 2
  }
}
