import { McpServer } from '@modelcontextprotocol/server'
import { serveStdio } from '@modelcontextprotocol/server/stdio'
import { z } from 'zod'

serveStdio(() => {
  const server = new McpServer({ name: 'bench', version: '1.0.0' })
  const inputSchema = z.object({ message: z.string() })
  server.registerTool(
    'echo',
    { description: 'Return the message.', inputSchema },
    ({ message }) => ({
      content: [{ type: 'text', text: message }],
    }),
  )
  return server
})
