import { type AddressInfo, type Socket, createServer } from 'node:net'
import { Redis } from 'ioredis'
import { createClient } from 'redis'
import { afterEach, describe, expect, it } from 'vitest'
import { openLink } from '../../src/stores/redis/link.js'

/* Connections of other packages. No Redis is needed: the server accepts, and says nothing. */

const stops: (() => void)[] = []
afterEach(() => {
  for (const stop of stops.splice(0)) stop()
})

async function silentServer() {
  const accepted: Socket[] = []
  const waiting: ((socket: Socket) => void)[] = []
  const server = createServer((socket) => {
    accepted.push(socket)
    socket.on('error', () => {})
    socket.resume()
    waiting.shift()?.(socket)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  stops.push(() => {
    for (const socket of accepted) socket.destroy()
    server.close()
  })
  const { port } = server.address() as AddressInfo // it listens on a port
  const connected = () => new Promise<Socket>((resolve) => waiting.push(resolve))
  return { port, connected }
}

describe('a connection that is destroyed while it is being opened', () => {
  it.each([
    ['redis', (port: number) => createClient({ url: `redis://127.0.0.1:${port}` })],
    ['ioredis', (port: number) => new Redis(port, '127.0.0.1', { lazyConnect: true })],
  ])('is closed (%s)', async (_, clientOf) => {
    const { port, connected } = await silentServer()
    const connecting = connected()
    const link = openLink(clientOf(port))
    link.ready.catch(() => {})
    link.destroy()
    // ioredis may not even connect.
    const socket = await Promise.race([
      connecting,
      link.ready.then(
        () => undefined,
        () => undefined,
      ),
    ])
    if (socket === undefined) return
    if (!socket.closed) await new Promise((resolve) => socket.once('close', resolve))
    expect(socket.closed).toBe(true)
  })
})
