import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { withServer } from './measure.mjs'

/** The calls that are sent before the first measurement, and the most requests in progress, with a ping. */
const FIRST = 256
const MOST = 9999

/**
 * Sends calls over stdio whose handlers do not end. With a low limit of their memory, it shows how many of them fit; then
 * so many as there may be are sent. With `concurrency`, those beyond it are queued.
 */
function callsOf(argumentsOf, concurrency) {
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
    withServer({ stdio: { maxPending, concurrency } }, async (server) => {
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
      await sendCalls(server, 1, FIRST)
      const before = await server.measure()
      const count = await sendCalls(server, FIRST + 1, MOST - FIRST)
      const held = (await server.measure()) - before
      return { count, charged: Math.round((count * limit) / fitting), held }
    })
  }
}

/** Members with names that no other call has. */
const members = (id) =>
  Object.fromEntries(Array.from({ length: 50 }, (_, i) => [`key ${id} ${i}`, i + 0.5]))

const KINDS = {
  call: () => ({}),
  'call of 450 characters': (id) => ({ text: `${id}`.padEnd(360, 'x') }),
  'call of 2000 characters': (id) => ({ text: `${id}`.padEnd(1900, 'x') }),
  'call of 50 members': members,
  'call of 150 empty objects': () => ({ list: Array.from({ length: 150 }, () => ({})) }),
}

export const rows = Object.fromEntries(
  Object.entries(KINDS).flatMap(([name, argumentsOf]) => [
    [`queued ${name}`, callsOf(argumentsOf, FIRST)],
    [`running ${name}`, callsOf(argumentsOf)],
  ]),
)
