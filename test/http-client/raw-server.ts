import { type AddressInfo, type Socket, createServer } from 'node:net'
import { closing } from './scripted.js'

/* A server of which a test writes every byte. */

export interface RawRequest {
  readonly method: string
  readonly headers: string
  readonly message: { id?: number | string; method?: string }
}

export type RawRespond = (request: RawRequest, socket: Socket) => void

export async function rawServer(
  respond: RawRespond,
): Promise<{ url: string; received: RawRequest[]; open(): number }> {
  const received: RawRequest[] = []
  const sockets = new Set<Socket>()
  const server = createServer((socket) => {
    let input = ''
    sockets.add(socket)
    socket.on('close', () => sockets.delete(socket))
    socket.on('error', () => {})
    socket.setEncoding('latin1').on('data', (text: string) => {
      input += text
      for (let request = next(); request !== undefined; request = next()) {
        received.push(request)
        respond(request, socket)
      }
    })
    const next = (): RawRequest | undefined => {
      const end = input.indexOf('\r\n\r\n')
      if (end === -1) return undefined
      const headers = input.slice(0, end)
      const length = Number(/^content-length: *(\d+)/im.exec(headers)?.[1] ?? 0)
      if (input.length < end + 4 + length) return undefined
      const body = input.slice(end + 4, end + 4 + length)
      input = input.slice(end + 4 + length)
      const message = (body === '' ? {} : JSON.parse(body)) as RawRequest['message']
      return { method: headers.slice(0, headers.indexOf(' ')), headers, message }
    }
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  closing.push(() => {
    for (const socket of sockets) socket.destroy()
    return new Promise((resolve) => server.close(resolve))
  })
  const { port } = server.address() as AddressInfo
  return { url: `http://127.0.0.1:${port}/mcp`, received, open: () => sockets.size }
}

/** A whole HTTP response; its length is that of the body unless the headers say otherwise. */
export function response(
  status: number | string,
  headers: readonly string[],
  body: string | Uint8Array = '',
): Buffer {
  const bytes = Buffer.from(body)
  const framed = headers.some((each) => /^(?:content-length|transfer-encoding):/i.test(each))
  const all = framed ? headers : [...headers, `Content-Length: ${bytes.length}`]
  return Buffer.concat([
    Buffer.from(`HTTP/1.1 ${status} X\r\n${all.map((each) => `${each}\r\n`).join('')}\r\n`),
    bytes,
  ])
}

export const JSON_BODY = 'Content-Type: application/json'
export const EVENTS = 'Content-Type: text/event-stream'
export const CHUNKED = 'Transfer-Encoding: chunked'

export const ok = (body: string | Uint8Array) => response(200, [JSON_BODY], body)

/** A stream that ends with the connection. */
export const events = (body: string | Uint8Array, ...headers: string[]) =>
  response(200, [EVENTS, CHUNKED, ...headers], chunk(body))

export function chunk(body: string | Uint8Array): Buffer {
  const bytes = Buffer.from(body)
  return Buffer.concat([
    Buffer.from(`${bytes.length.toString(16)}\r\n`),
    bytes,
    Buffer.from('\r\n'),
  ])
}
export const LAST_CHUNK = '0\r\n\r\n'

/** Writes for as long as somebody reads; at most 64 MiB. */
export function endless(socket: Socket, piece: Buffer): void {
  let left = Math.ceil((64 * 1024 * 1024) / piece.length)
  const write = () => {
    while (left-- > 0 && !socket.destroyed) if (!socket.write(piece)) return
  }
  socket.on('drain', write)
  write()
}
