import { fileURLToPath } from 'node:url'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js'
import { afterEach, describe, expect, it } from 'vitest'

/* The official SDK 1.x client drives our stdio server, as a child process. */

const server = fileURLToPath(new URL('server.mjs', import.meta.url))
const open: Client[] = []

async function connect(): Promise<{ client: Client; stderr: () => string }> {
  const transport = new StdioClientTransport({
    command: process.execPath,
    args: [server],
    stderr: 'pipe',
  })
  let log = ''
  transport.stderr?.on('data', (chunk: Buffer) => (log += chunk.toString()))
  const client = new Client({ name: 'sdk-1', version: '1.0.0' })
  await client.connect(transport)
  open.push(client)
  return { client, stderr: () => log }
}

afterEach(async () => {
  await Promise.all(open.splice(0).map((client) => client.close()))
})

describe('SDK 1.x client', () => {
  it('connects and lists tools', async () => {
    const { client } = await connect()
    expect(client.getServerVersion()).toEqual({
      name: 'interop',
      version: '1.0.0',
      title: 'Interop',
    })
    expect(client.getServerCapabilities()).toEqual({ logging: {}, tools: { listChanged: true } })
    const { tools } = await client.listTools()
    expect(tools.map(({ name }) => name)).toEqual(['echo', 'sum', 'fail', 'wait', 'work'])
    expect(tools[1]).toMatchObject({ outputSchema: { type: 'object', required: ['sum'] } })
  })

  it('calls tools', async () => {
    const { client } = await connect()
    expect(await client.callTool({ name: 'echo', arguments: { message: 'Grüße 👋' } })).toEqual({
      content: [{ type: 'text', text: 'Grüße 👋' }],
      isError: false,
    })
    await client.listTools() // from here on the client checks structured results itself
    expect(await client.callTool({ name: 'sum', arguments: { a: 2, b: 3 } })).toMatchObject({
      structuredContent: { sum: 5 },
    })
    expect(
      await Promise.all(
        Array.from({ length: 200 }, (_, a) =>
          client.callTool({ name: 'sum', arguments: { a, b: 1 } }),
        ),
      ),
    ).toHaveLength(200)
    await client.ping()
  })

  it('receives errors', async () => {
    const { client, stderr } = await connect()
    expect(await client.callTool({ name: 'fail' })).toEqual({
      content: [{ type: 'text', text: 'As planned.' }],
      isError: true,
    })
    expect(await client.callTool({ name: 'echo', arguments: { message: 5 } })).toEqual({
      content: [
        { type: 'text', text: 'Invalid arguments for echo: message must be a string, not 5' },
      ],
      isError: true,
    })
    await expect(client.callTool({ name: 'nope' })).rejects.toMatchObject({
      code: -32602,
      message: expect.stringContaining('Unknown tool: nope') as unknown,
    })
    await expect(client.listPrompts()).rejects.toThrow()
    expect(stderr()).toBe('')
  })

  it('cancels a call', async () => {
    const { client, stderr } = await connect()
    const controller = new AbortController()
    const pending = client.callTool({ name: 'wait' }, undefined, { signal: controller.signal })
    // The tool writes to stderr when it starts and when its signal fires.
    await expect.poll(stderr).toContain('waiting')
    controller.abort('enough')
    await expect(pending).rejects.toThrow('enough')
    await expect.poll(stderr).toContain('cancelled: enough')
    expect(
      await client.callTool({ name: 'echo', arguments: { message: 'still here' } }),
    ).toMatchObject({
      content: [{ text: 'still here' }],
    })
  })

  it('receives progress', async () => {
    const { client } = await connect()
    const seen: unknown[] = []
    await client.callTool({ name: 'work', arguments: { waits: true } }, undefined, {
      onprogress(progress) {
        seen.push(progress)
        void client.callTool({ name: 'echo', arguments: { message: 'go on' } })
      },
    })
    expect(seen).toEqual([
      { progress: 1, total: 3, message: 'step 1' },
      { progress: 2, total: 3, message: 'step 2' },
      { progress: 3, total: 3, message: 'step 3' },
    ])
  })
})
