import { createServer } from 'node:http'
import {
  localhostHostValidation,
  localhostOriginValidation,
  toNodeHandler,
} from '@modelcontextprotocol/node'
import { McpServer, createMcpHandler } from '@modelcontextprotocol/server'
import { z } from 'zod'

const inputSchema = z.object({ message: z.string() })
const handler = createMcpHandler(
  () => {
    const server = new McpServer({ name: 'bench', version: '1.0.0' })
    server.registerTool(
      'echo',
      { description: 'Return the message.', inputSchema },
      ({ message }) => ({
        content: [{ type: 'text', text: message }],
      }),
    )
    return server
  },
  { maxSubscriptions: 1_000_000 },
)
const [host, origin, serve] = [
  localhostHostValidation(),
  localhostOriginValidation(),
  toNodeHandler(handler),
]
const server = createServer((request, response) => {
  if (host(request, response) && origin(request, response)) void serve(request, response)
})
server.listen(0, '127.0.0.1', () => console.log(server.address().port))
