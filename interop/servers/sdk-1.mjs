// The official SDK 1.x.
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js'
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js'
import { z } from 'zod'

const text = (text) => ({ content: [{ type: 'text', text }] })
const server = new McpServer({ name: 'sdk-1', version: '1.0.0' })
server.registerTool('echo', { inputSchema: { message: z.string() } }, ({ message }) =>
  text(message),
)
server.registerTool(
  'sum',
  { inputSchema: { a: z.number(), b: z.number() }, outputSchema: { sum: z.number() } },
  ({ a, b }) => ({
    ...text(String(a + b)),
    structuredContent: { sum: a + b },
  }),
)
server.registerTool('fail', {}, () => ({ ...text('As planned.'), isError: true }))
server.registerTool('wait', {}, async ({ signal }) => {
  console.error('waiting')
  await new Promise((resolve) => signal.addEventListener('abort', resolve))
  console.error('cancelled')
  return text('')
})
server.registerTool('work', {}, async ({ _meta, sendNotification }) => {
  for (let progress = 1; progress <= 3; progress++) {
    const params = {
      progressToken: _meta?.progressToken,
      progress,
      total: 3,
      message: `step ${progress}`,
    }
    await sendNotification({ method: 'notifications/progress', params })
  }
  return text('done')
})
await server.connect(new StdioServerTransport())
