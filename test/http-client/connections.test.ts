import { describe, expect, it } from 'vitest'
import { connect, http } from '../../src/client.js'
import { nodeFetch } from '../../src/transports/http/client/node-fetch.js'
import { EVENTS, type RawRespond, events, ok, rawServer, response } from './raw-server.js'

/* The connections of a client, to a server that never closes one. */

const details = {
  protocolVersion: '2025-11-25',
  capabilities: {},
  serverInfo: { name: 'x', version: '1' },
}
const discovered = { ...details, supportedVersions: ['2026-07-28'], resultType: 'complete' }
const answer = (id: unknown, result: object) => ok(JSON.stringify({ jsonrpc: '2.0', id, result }))

const streamable: RawRespond = ({ method, message }, socket) => {
  if (method === 'GET') return void socket.write(events(':\n\n'))
  if (message.method === 'server/discover') return void socket.write(answer(message.id, discovered))
  if (message.id === undefined) return void socket.write(response(202, []))
  socket.write(answer(message.id, message.method === 'initialize' ? details : {}))
}

const revisions = ['2025-11-25', '2026-07-28']

describe('close of a client', () => {
  it.each(revisions)('closes its connections, in %s', async (revision) => {
    const server = await rawServer(streamable)
    const target = http(server.url)
    for (let count = 0; count < 5; count++) {
      const client = await connect(target, { revision })
      await Promise.all([client.request('ping', {}), client.request('ping', {})].map(settled))
      await client.close()
    }
    await expect.poll(server.open, { timeout: 60_000 }).toBe(0)
  })

  it('leaves those of another client of the same target open', async () => {
    const server = await rawServer(streamable)
    const target = http(server.url)
    const [one, other] = [await connect(target), await connect(target)]
    await one.close()
    await expect.poll(server.open, { timeout: 60_000 }).toBe(1)
    await other.close()
    await expect.poll(server.open, { timeout: 60_000 }).toBe(0)
  })

  it('closes those of a connection that failed', async () => {
    const server = await rawServer((_, socket) => void socket.write(response(500, [], 'no')))
    await expect(connect(http(server.url))).rejects.toThrow('HTTP 500')
    await expect.poll(server.open, { timeout: 60_000 }).toBe(0)
  })

  it('closes those of HTTP+SSE', async () => {
    let stream: Parameters<RawRespond>[1] | undefined
    const server = await rawServer(({ method, headers, message }, socket) => {
      if (method === 'GET') {
        stream = socket
        const endpoint = Buffer.from('event: endpoint\ndata: /post\n\n')
        return void socket.write(
          Buffer.concat([Buffer.from(`HTTP/1.1 200 OK\r\n${EVENTS}\r\n\r\n`), endpoint]),
        )
      }
      if (!headers.includes(' /post ')) return void socket.write(response(405, []))
      socket.write(response(202, []))
      if (message.id === undefined) return
      const result = { ...details, protocolVersion: '2024-11-05' }
      stream?.write(`data: ${JSON.stringify({ jsonrpc: '2.0', id: message.id, result })}\n\n`)
    })
    const client = await connect(http(server.url))
    expect(client.revision).toBe('2024-11-05')
    await client.close()
    await expect.poll(server.open, { timeout: 60_000 }).toBe(0)
  })
})

it('a request to an authorization server keeps no connection', async () => {
  const server = await rawServer((_, socket) => void socket.write(ok('{}')))
  expect(await (await nodeFetch({})(server.url)).json()).toEqual({})
  await expect.poll(server.open, { timeout: 60_000 }).toBe(0)
})

/** A result that the revision does not allow is no matter here. */
const settled = (request: Promise<unknown>) => request.catch(() => {})
