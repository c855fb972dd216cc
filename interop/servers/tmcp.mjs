// tmcp, an independent implementation. Over stdio it does not pass cancellation to tools.
import { setTimeout as sleep } from 'node:timers/promises'
import { ZodJsonSchemaAdapter } from '@tmcp/adapter-zod'
import { StdioTransport } from '@tmcp/transport-stdio'
import { McpServer } from 'tmcp'
import { z } from 'zod'

const text = (text) => ({ content: [{ type: 'text', text }] })
const server = new McpServer(
  { name: 'tmcp', version: '1.0.0', description: 'A server' },
  { adapter: new ZodJsonSchemaAdapter(), capabilities: { tools: {} } },
)
server.tool(
  { name: 'echo', description: 'Echo', schema: z.object({ message: z.string() }) },
  ({ message }) => text(message),
)
server.tool(
  {
    name: 'sum',
    description: 'Add',
    schema: z.object({ a: z.number(), b: z.number() }),
    outputSchema: z.object({ sum: z.number() }),
  },
  ({ a, b }) => ({ ...text(String(a + b)), structuredContent: { sum: a + b } }),
)
server.tool({ name: 'fail', description: 'Fail' }, () => ({
  ...text('As planned.'),
  isError: true,
}))
server.tool({ name: 'wait', description: 'Wait' }, async () => {
  console.error('waiting')
  await sleep(300)
  return text('late')
})
server.tool({ name: 'work', description: 'Work' }, () => {
  for (let progress = 1; progress <= 3; progress++) server.progress(progress, 3, `step ${progress}`)
  return text('done')
})
new StdioTransport(server).listen()
