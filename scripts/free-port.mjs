import { randomInt } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:net'

/**
 * A port for a server that cannot choose one itself, or that is to be started again on the same port. It is below the
 * ports that systems give to connections and to `listen(0)`, since any process could get one of those before it is used;
 * so is the port of a Redis cluster's bus, 10000 higher.
 *
 * @returns {Promise<number>}
 */
export async function freePort() {
  const port = randomInt(10_000, 22_000)
  const server = createServer().listen(port, '127.0.0.1')
  try {
    await once(server, 'listening')
  } catch (error) {
    if (error.code === 'EADDRINUSE') return freePort()
    throw error
  }
  server.close()
  await once(server, 'close')
  return port
}
