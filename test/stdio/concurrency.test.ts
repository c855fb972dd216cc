import { PassThrough } from 'node:stream'
import { expect, it, vi } from 'vitest'
import { type Client, connect, memory } from '../../src/client.js'
import { listen } from '../../src/http.js'
import { createServer, tool } from '../../src/index.js'
import { type ServeOptions, serve } from '../../src/stdio.js'
import { InitializedSession, message } from '../http/caller.js'
import { HANDSHAKE } from './child.js'

/* How many handlers of one client run at the same time. */

const COUNT = 3000
const until = (condition: () => unknown) => vi.waitFor(condition, { timeout: 60_000, interval: 5 })

/** A server whose handlers wait for `open`, and how many have begun. */
function waiting(more: { concurrency?: number } = {}) {
  let begun = 0
  let open = () => {}
  const gate = new Promise<void>((resolve) => (open = resolve))
  const run = async () => (begun++, await gate, 'done')
  const server = createServer({
    name: 'waiting',
    version: '1',
    tools: [tool({ name: 'wait', run, ...more })],
  })
  return { server, open: () => open(), begun: () => begun }
}
const calls = (count: number) =>
  Array.from({ length: count }, (_, id) => message('tools/call', { name: 'wait' }, id + 10))

/** Sends calls over streams, and a ping, whose response comes once they were all received. */
async function serving(
  server: ReturnType<typeof waiting>['server'],
  options: Partial<ServeOptions> = {},
) {
  const wire = { input: new PassThrough(), output: new PassThrough() }
  let text = ''
  wire.output.on('data', (chunk: Buffer) => (text += chunk.toString()))
  const ended = serve(server, { ...wire, ...options })
  const lines = [...HANDSHAKE, ...calls(COUNT), message('ping', {}, 'last')]
  wire.input.write(`${lines.join('\n')}\n`)
  await until(() => text.includes('"last"'))
  return async () => {
    wire.input.end()
    await ended
    return text.split('"done"').length - 1
  }
}

it('is 1000 over stdio; others are queued', async () => {
  const { server, open, begun } = waiting()
  const end = await serving(server)
  await until(() => expect(begun()).toBe(1000))
  open()
  expect(await end()).toBe(COUNT)
})

it('is that of "concurrency" over stdio; others are queued', async () => {
  const { server, open, begun } = waiting()
  const end = await serving(server, { concurrency: 3 })
  expect(begun()).toBe(3)
  open()
  expect(await end()).toBe(COUNT)
})

it('is that of "limits.concurrency" in a session over HTTP; others are queued', async () => {
  const { server, open, begun } = waiting()
  await using listening = await listen(server, { port: 0, limits: { concurrency: 3 } })
  const client = await InitializedSession.open(listening.url, '2025-03-26')
  const batch = client.post(`[${calls(5).join()}]`)
  await until(() => begun() > 0)
  await client.post(message('ping', {}, 'last'))
  expect(begun()).toBe(3)
  open()
  expect((await batch).text.split('"done"').length - 1).toBe(5)
})

it('does not make a tool with "concurrency" refuse calls of a local client', async () => {
  const { server, open, begun } = waiting({ concurrency: 1 })
  await using client: Client = await connect(memory(server))
  const results = Promise.all(Array.from({ length: COUNT }, () => client.callTool('wait')))
  await until(() => begun() > 0)
  open()
  expect((await results).filter(({ isError }) => isError === true)).toEqual([])
})
