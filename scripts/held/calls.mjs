import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { withServer } from './measure.mjs'

/** The running handlers of a connection, after which calls are queued, and the most requests in progress, with a ping. */
const RUNNING = 256
const MOST = 9999

/**
 * Sends calls over stdio whose handlers do not end. With a low limit of their memory, it shows how many of them fit; then
 * so many as there may be are sent, of which all but the running ones are queued.
 */
function queuedCalls(argumentsOf) {
  const line = (id) => {
    const params = { name: 'wait', arguments: argumentsOf(id) }
    return `${JSON.stringify({ jsonrpc: '2.0', id, method: 'tools/call', params })}\n`
  }
  /** Sends calls until one is refused or there are `most`; how many were accepted. */
  const sendCalls = async ({ input, lines }, from, most) => {
    let refused = false
    lines.on('line', (text) => (refused ||= text.includes('"error"')))
    for (let id = from; id < from + most; id += 100) {
      const batch = Array.from({ length: Math.min(100, from + most - id) }, (_, i) => line(id + i))
      const read = once(lines, 'line')
      // Responses come in order: with that to a ping, all calls before it were read.
      input.write(`${batch.join('')}{"jsonrpc":"2.0","id":"ping ${id}","method":"ping"}\n`)
      await read
      if (refused) return id - from
    }
    return most
  }
  const start = (maxPending, use) =>
    withServer({ stdio: { maxPending } }, async (server) => {
      const lines = createInterface(server.output)
      const read = once(lines, 'line')
      const params = {
        protocolVersion: '2025-11-25',
        capabilities: {},
        clientInfo: { name: 'client', version: '1.0.0' },
      }
      server.input.write(
        `${JSON.stringify({ jsonrpc: '2.0', id: 'first', method: 'initialize', params })}\n`,
      )
      await read
      server.input.write('{"jsonrpc":"2.0","method":"notifications/initialized"}\n')
      return await use({ ...server, lines })
    })
  return async () => {
    const limit = 4 * 1024 * 1024
    const fitting = await start(limit, (server) => sendCalls(server, 1, MOST))
    return start(1e12, async (server) => {
      await sendCalls(server, 1, RUNNING)
      const before = await server.measure()
      const count = await sendCalls(server, RUNNING + 1, MOST - RUNNING)
      const held = (await server.measure()) - before
      return { count, charged: Math.round((count * limit) / fitting), held }
    })
  }
}

/** Members with names that no other call has. */
const members = (id) =>
  Object.fromEntries(Array.from({ length: 50 }, (_, i) => [`key ${id} ${i}`, i + 0.5]))

export const rows = {
  'queued call': queuedCalls(() => ({})),
  'queued call of 450 characters': queuedCalls((id) => ({ text: `${id}`.padEnd(360, 'x') })),
  'queued call of 2000 characters': queuedCalls((id) => ({ text: `${id}`.padEnd(1900, 'x') })),
  'queued call of 50 members': queuedCalls(members),
  'queued call of 150 empty objects': queuedCalls(() => ({
    list: Array.from({ length: 150 }, () => ({})),
  })),
}
