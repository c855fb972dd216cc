import { expect, it, vi } from 'vitest'
import { createServer, tool } from '../../src/index.js'
import { checkServer } from '../../src/server/context.js'
import { ServerSession } from '../../src/server/session.js'
import { memoryChannels } from '../../src/transports/memory.js'

it('a session that ends while initialize is pending leaves no listeners behind', async () => {
  const server = createServer({
    name: 'x',
    version: '1',
    tools: [tool({ name: 't', run: () => 'x' })],
  })
  let resume = () => {}
  server.use(async (_call, next) => {
    await new Promise<void>((resolve) => (resume = resolve))
    return await next()
  })
  const internal = checkServer(server)
  let listeners = 0
  const listen = internal.changes.listen.bind(internal.changes)
  vi.spyOn(internal.changes, 'listen').mockImplementation((listener) => {
    listeners++
    const stop = listen(listener)
    return () => {
      listeners--
      stop()
    }
  })
  const [client, other] = memoryChannels()
  let closed = false
  void new ServerSession(internal, other, { remote: false, closed: () => (closed = true) })
  client.receive({ frame() {}, malformed() {}, closed() {} })
  client.send(
    '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}',
  )
  client.send('{"jsonrpc":"2.0","method":"notifications/initialized"}')
  await client.close()
  await vi.waitFor(() => expect(closed).toBe(true), 60_000)
  resume()
  await new Promise((resolve) => setImmediate(resolve))
  expect(listeners).toBe(0)
})
