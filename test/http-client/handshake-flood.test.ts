import type { ServerResponse } from 'node:http'
import { describe, expect, it } from 'vitest'
import { connect, http } from '../../src/client.js'
import { event, json, peerTo, result, scripted, stream } from './scripted.js'

/* A server that sends many requests before its response to `initialize`. */

const PINGS = 2000
const pings = Array.from({ length: PINGS }, (_, id) =>
  event({ jsonrpc: '2.0', id: `p${id}`, method: 'ping' }),
).join('')
const OPENED = {
  protocolVersion: '2025-11-25',
  capabilities: {},
  serverInfo: { name: 'x', version: '1' },
}

/** Counts the responses to pings; without `answers`, it accepts none and does not respond. */
async function flooding(answers: boolean) {
  const open = new Set<ServerResponse>()
  const counts = { most: 0, responses: 0 }
  const { url } = await scripted(({ method, message }, response) => {
    if (method === 'GET') return void response.writeHead(405).end()
    if (message.method === 'server/discover') return json(response, 404, {})
    if (message.method === 'initialize')
      return stream(response, answers ? `${pings}${event(result(message.id, OPENED))}` : pings)
    if (message.method !== undefined) return void response.writeHead(202).end()
    open.add(response)
    counts.most = Math.max(counts.most, open.size)
    counts.responses++
    response.on('close', () => open.delete(response))
    if (answers) setImmediate(() => response.writeHead(202).end())
  })
  return { url, counts, open }
}

describe('pings before the response to initialize', () => {
  it('are answered by at most 16 requests at a time', async () => {
    const { url, counts } = await flooding(true)
    const client = await connect(http(url))
    await client.close()
    expect(counts.most).toBeGreaterThan(1)
    expect(counts.most).toBeLessThanOrEqual(16)
    // All of them but those that waited at the end.
    expect(counts.responses).toBeGreaterThan(PINGS - 100)
  })

  it('of a server that accepts no response leave nothing open after the timeout of connect', async () => {
    const { url, counts, open } = await flooding(false)
    await expect(connect(http(url), { timeout: 300 })).rejects.toThrow(/initialize/)
    expect(counts.most).toBeLessThanOrEqual(16)
    await expect.poll(() => open.size, { timeout: 60_000 }).toBe(0)
  })

  it('do not let notifications of the client overtake the handshake', async () => {
    const { url } = await flooding(true)
    const { peer } = await peerTo(url, { open: false })
    for (let count = 0; count < 100; count++) peer.notify('notifications/early')
    // More notifications wait than responses may: reading goes on.
    expect(await peer.request('initialize', {})).toEqual(OPENED)
  })
})
