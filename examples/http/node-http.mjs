// MCP in a node:http server; other paths are served by other code.
import { createServer as createHttpServer } from 'node:http'
import { createServer, tool } from 'ccmcp'
import { nodeHandler } from 'ccmcp/http'

const hello = tool({
  name: 'hello',
  run: (_, call) => `Hello, reader of ${call.http?.headers['accept-language'] ?? 'any language'}`,
})
const mcp = nodeHandler(createServer({ name: 'greeter', version: '1.0.0', tools: [hello] }), {
  path: '/mcp',
})

const http = createHttpServer((req, res) => {
  mcp(req, res, () =>
    res.writeHead(404, { 'Content-Type': 'text/plain' }).end('There is only /mcp here'),
  )
})
http.listen(Number(process.env.PORT ?? 3000), '127.0.0.1', () =>
  console.log(`http://127.0.0.1:${http.address().port}/mcp`),
)

process.once('SIGTERM', async () => {
  http.close() // stops accepting connections
  await mcp.close() // ends sessions and streams, and waits for calls in flight
  http.closeIdleConnections()
})
