// FastMCP, on top of the official SDK 1.x.
import { FastMCP, UserError } from 'fastmcp'
import { z } from 'zod'

const server = new FastMCP({ name: 'fastmcp', version: '1.0.0' })
server.addTool({
  name: 'echo',
  parameters: z.object({ message: z.string() }),
  execute: async ({ message }) => message,
})
server.addTool({
  name: 'fail',
  execute: async () => {
    throw new UserError('As planned.')
  },
})
server.addTool({
  name: 'wait',
  async execute(_, { signal }) {
    console.error('waiting')
    await new Promise((resolve) => signal.addEventListener('abort', resolve))
    console.error('cancelled')
    return ''
  },
})
server.addTool({
  name: 'work',
  async execute(_, { reportProgress }) {
    for (let progress = 1; progress <= 3; progress++) await reportProgress({ progress, total: 3 })
    return 'done'
  },
})
await server.start({ transportType: 'stdio' })
