import { FastMCP } from 'fastmcp'
import { z } from 'zod'

const server = new FastMCP({ name: 'bench', version: '1.0.0' })
server.addTool({
  name: 'echo',
  description: 'Return the message.',
  parameters: z.object({ message: z.string() }),
  execute: async ({ message }) => message,
})
await server.start({ transportType: 'stdio' })
