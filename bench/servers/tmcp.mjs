import { ZodJsonSchemaAdapter } from '@tmcp/adapter-zod'
import { StdioTransport } from '@tmcp/transport-stdio'
import { McpServer } from 'tmcp'
import { z } from 'zod'

const server = new McpServer(
  { name: 'bench', version: '1.0.0', description: 'A server' },
  { adapter: new ZodJsonSchemaAdapter(), capabilities: { tools: {} } },
)
const schema = z.object({ message: z.string() })
server.tool({ name: 'echo', description: 'Return the message.', schema }, ({ message }) => ({
  content: [{ type: 'text', text: message }],
}))
new StdioTransport(server).listen()
