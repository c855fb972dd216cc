import { once } from 'node:events'
import { connect } from 'node:net'
import { withServer } from './measure.mjs'

const MIB = 1024 * 1024

/** A connection with the head of a POST. */
async function post(url, header) {
  const socket = connect(Number(new URL(url).port), '127.0.0.1')
  socket.on('error', () => {})
  await once(socket, 'connect')
  socket.write(
    `POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n${header}\r\n\r\n`,
  )
  return socket
}

async function write(socket, text) {
  if (!socket.write(text)) await once(socket, 'drain')
}

/** Sends bodies that are never complete, until the limit of all is reached. */
function bodies(size, limit) {
  return () =>
    withServer({ http: { limits: { incompleteBodyBytes: limit } } }, async ({ url, measure }) => {
      await post(url, 'Content-Length: 10')
      const before = await measure()
      const count = Math.floor(limit / size)
      for (let i = 0; i < count; i++) {
        const socket = await post(url, `Content-Length: ${size}`)
        for (let sent = 0; sent < size - 1; sent += 65_536)
          await write(socket, 'x'.repeat(Math.min(65_536, size - 1 - sent)))
      }
      return { count, charged: count * size, held: (await measure()) - before }
    })
}

/** Sends one body in chunks of one byte. */
async function chunks() {
  const count = 4 * MIB - 1
  return withServer({ http: {} }, async ({ url, measure }) => {
    await post(url, 'Content-Length: 10')
    const before = await measure()
    const socket = await post(url, 'Transfer-Encoding: chunked')
    for (let i = 0; i < count; i += 10_000)
      await write(socket, '1\r\nx\r\n'.repeat(Math.min(10_000, count - i)))
    return { count, charged: 4 * MIB, held: (await measure()) - before }
  })
}

export const rows = {
  'body of 4 MiB': bodies(4 * MIB, 64 * MIB),
  'body of 64 KiB': bodies(MIB / 16, 16 * MIB),
  'chunk of one byte': chunks,
}
