// The official SDK 2.x: stateless and with handshake. The argument delays its start, in milliseconds.
import { setTimeout as sleep } from 'node:timers/promises'
import { McpServer } from '@modelcontextprotocol/server'
import { serveStdio } from '@modelcontextprotocol/server/stdio'
import { z } from 'zod'

const text = (text) => ({ content: [{ type: 'text', text }] })

function create() {
  const server = new McpServer({ name: 'sdk-2', version: '1.0.0' })
  server.registerTool('echo', { inputSchema: z.object({ message: z.string() }) }, ({ message }) =>
    text(message),
  )
  server.registerTool(
    'sum',
    {
      inputSchema: z.object({ a: z.number(), b: z.number() }),
      outputSchema: z.object({ sum: z.number() }),
    },
    ({ a, b }) => ({ ...text(String(a + b)), structuredContent: { sum: a + b } }),
  )
  server.registerTool('fail', {}, () => ({ ...text('As planned.'), isError: true }))
  server.registerTool('wait', {}, async ({ mcpReq }) => {
    console.error('waiting')
    await new Promise((resolve) => mcpReq.signal.addEventListener('abort', resolve))
    console.error('cancelled')
    return text('')
  })
  server.registerTool('work', {}, async ({ mcpReq }) => {
    for (let progress = 1; progress <= 3; progress++) {
      const params = {
        progressToken: mcpReq._meta?.progressToken,
        progress,
        total: 3,
        message: `step ${progress}`,
      }
      await mcpReq.notify({ method: 'notifications/progress', params })
    }
    return text('done')
  })
  return server
}

await sleep(Number(process.argv[2] ?? 0))
serveStdio(create)
