// Stateless, as in its documentation: a server and a transport per request.
import { createServer } from 'node:http'
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js'
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js'
import { z } from 'zod'

const http = createServer(async (request, response) => {
  const server = new McpServer({ name: 'bench', version: '1.0.0' })
  server.registerTool(
    'echo',
    { description: 'Return the message.', inputSchema: { message: z.string() } },
    ({ message }) => ({
      content: [{ type: 'text', text: message }],
    }),
  )
  const transport = new StreamableHTTPServerTransport({
    sessionIdGenerator: undefined,
    enableJsonResponse: true,
  })
  response.on('close', () => void server.close())
  await server.connect(transport)
  await transport.handleRequest(request, response)
})
http.listen(0, '127.0.0.1', () => console.log(http.address().port))
