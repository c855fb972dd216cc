import { describe, expect, it } from 'vitest'
import { type ResourceChange, connect, stdio } from '../../src/client.js'

/* Our client and a server of the official SDK 1.x, over stdio. */

const sdk = (path: string) =>
  JSON.stringify(import.meta.resolve(`@modelcontextprotocol/sdk/${path}`))
const SERVER = `
import { McpServer } from ${sdk('server/mcp.js')}
import { StdioServerTransport } from ${sdk('server/stdio.js')}
import { SubscribeRequestSchema, UnsubscribeRequestSchema } from ${sdk('types.js')}
import * as z from ${JSON.stringify(import.meta.resolve('zod'))}
const server = new McpServer(
  { name: 'sdk-1', version: '1.0.0' },
  { capabilities: { logging: {}, resources: { subscribe: true } } },
)
const subscribed = new Set()
server.server.setRequestHandler(SubscribeRequestSchema, ({ params }) => (subscribed.add(params.uri), {}))
server.server.setRequestHandler(UnsubscribeRequestSchema, ({ params }) => (subscribed.delete(params.uri), {}))
server.registerResource('room', 'sensor://room', {}, () => ({ contents: [{ uri: 'sensor://room', text: '20' }] }))
const output = { uris: z.array(z.string()) }
server.registerTool('update', { outputSchema: output }, async () => {
  for (const uri of subscribed) await server.server.sendResourceUpdated({ uri })
  server.sendToolListChanged()
  const structuredContent = { uris: [...subscribed] }
  return { content: [{ type: 'text', text: JSON.stringify(structuredContent) }], structuredContent }
})
server.registerTool('exit', {}, () => process.exit(3))
await server.connect(new StdioServerTransport())
`
const target = stdio(process.execPath, ['--input-type=module', '-e', SERVER])

/** A listener, and a promise of the next change that it hears. */
function hearing() {
  const waiting: ((change: ResourceChange) => void)[] = []
  const next = () => new Promise<ResourceChange>((resolve) => waiting.push(resolve))
  const listener = (change: ResourceChange) => {
    for (const resolve of waiting.splice(0)) resolve(change)
  }
  return { next, listener }
}

describe('a server of SDK 1.x', () => {
  it('is subscribed to, validated, and connected to again with its subscriptions', async () => {
    await using client = await connect(target, {
      reconnect: { delay: () => 0 },
      validateResults: true,
    })
    const { next, listener } = hearing()
    const subscription = await client.subscribe('sensor://room', listener)
    const lists = new Promise((resolve) => client.on('notifications/tools/list_changed', resolve))
    await client.watch('tools', () => {})
    const first = next()
    const updated = await client.callTool('update')
    expect(updated.structuredContent).toEqual({ uris: ['sensor://room'] })
    expect(await first).toEqual({ uri: 'sensor://room' })
    await lists

    const missed = next()
    await expect(client.callTool('exit')).rejects.toMatchObject({ executed: 'maybe' })
    expect(await missed).toEqual({ uri: 'sensor://room', missed: true })
    const second = next()
    await client.callTool('update')
    expect(await second).toEqual({ uri: 'sensor://room' })

    await subscription.unsubscribe()
    expect((await client.callTool('update')).structuredContent).toEqual({ uris: [] })
  })
})
