// A server of the official SDK with a tool that reports progress, logs and fails.
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js'
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js'
import { z } from 'zod'

const server = new McpServer({ name: 'sdk', version: '1.0.0' }, { capabilities: { logging: {} } })
server.registerTool(
  'work',
  { description: 'Works.', inputSchema: { fail: z.boolean() } },
  async ({ fail }, { _meta, sendNotification }) => {
    const { progressToken } = _meta ?? {}
    if (progressToken !== undefined)
      await sendNotification({
        method: 'notifications/progress',
        params: { progressToken, progress: 1, total: 2 },
      })
    await server.server.sendLoggingMessage({ level: 'info', data: 'working' })
    if (fail) throw new Error('failed')
    return { content: [{ type: 'text', text: 'done' }] }
  },
)
server.registerPrompt('hi', { description: 'Greets.' }, () => ({
  messages: [{ role: 'user', content: { type: 'text', text: 'Hi' } }],
}))
await server.connect(new StdioServerTransport())
