import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js'
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js'
import { z } from 'zod'

const server = new McpServer({ name: 'bench', version: '1.0.0' })
const inputSchema = { message: z.string() }
server.registerTool('echo', { description: 'Return the message.', inputSchema }, ({ message }) => ({
  content: [{ type: 'text', text: message }],
}))
await server.connect(new StdioServerTransport())
