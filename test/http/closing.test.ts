import { once } from 'node:events'
import { type AddressInfo, createServer as createNetServer } from 'node:net'
import { describe, expect, it } from 'vitest'
import { extension } from '../../src/extensions.js'
import { listen, nodeHandler } from '../../src/http.js'
import { createServer } from '../../src/index.js'
import { POST, begin, described, message } from './caller.js'
import { onNode } from './embedding.js'
import { servedOverHttp } from './served.js'

describe('a request whose body is complete only after close was called', () => {
  const REQUESTS = {
    'a stateless request': described('tools/call', { name: 'echo', arguments: { text: 'x' } }),
    initialize: {
      headers: POST,
      body: message(
        'initialize',
        {
          protocolVersion: '2025-11-25',
          capabilities: {},
          clientInfo: { name: 'test', version: '1' },
        },
        1,
      ),
    },
  }

  it.each(Object.entries(REQUESTS))('gets 503: %s', async (_, { headers, body }) => {
    const { server } = servedOverHttp()
    let served = 0
    server.use((_call, next) => {
      served++
      return next()
    })
    const mcp = nodeHandler(server, { logLevel: 'error' })
    let arrived = () => {}
    const arrival = new Promise<void>((resolve) => (arrived = resolve))
    const listener: Parameters<typeof onNode>[0] = (request, response) => {
      mcp(request, response)
      arrived()
    }
    await onNode(listener, async (origin) => {
      const { request, response } = begin(origin, { headers })
      const text = body.toString()
      request.write(text.slice(0, 30))
      await arrival
      const closed = mcp.close(10_000)
      request.end(text.slice(30))
      const stream = await response
      await stream.ended()
      expect([stream.status, served, mcp.sessions]).toEqual([503, 0, 0])
      expect(stream.text).toContain('shutting down')
      await closed
    })
  })
})

describe('extensions of a server', () => {
  function extended() {
    const events: string[] = []
    const server = createServer({
      name: 'extended',
      version: '1',
      extensions: [
        extension({
          id: 'com.example/x',
          revisions: ['2026-07-28'],
          start: () => void events.push('start'),
          stop: () => void events.push('stop'),
        }),
      ],
    })
    return { server, events }
  }

  it('are stopped where the port is in use', async () => {
    const { server, events } = extended()
    const other = createNetServer()
    await once(other.listen(0, '127.0.0.1'), 'listening')
    const { port } = other.address() as AddressInfo
    await expect(listen(server, { port })).rejects.toMatchObject({ code: 'EADDRINUSE' })
    expect(events).toEqual(['start', 'stop'])
    other.close()
  })

  it.each([
    ['a certificate', { tls: { cert: 'x', key: 'x' } }, ['start', 'stop']],
    ['a host', { hosts: ['https://x/'] }, []],
    ['an origin', { origins: ['x'] }, []],
  ] as const)('are not left started by %s that is invalid', async (_, options, expected) => {
    const { server, events } = extended()
    await expect(listen(server, { port: 0, ...options })).rejects.toThrow()
    expect(events).toEqual(expected)
  })
})
