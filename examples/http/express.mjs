// MCP in an Express application (version 4 or 5).
import express from 'express'
import { createServer, tool } from 'ccmcp'
import { nodeHandler } from 'ccmcp/http'

const hello = tool({
  name: 'hello',
  run: (_, call) => `Hello, reader of ${call.http?.headers['accept-language'] ?? 'any language'}`,
})
const mcp = nodeHandler(createServer({ name: 'greeter', version: '1.0.0', tools: [hello] }))

const app = express()
// Before express.json(), so that the handler reads the raw body and responds to parse errors as MCP requires.
app.all('/mcp', mcp)
app.use(express.json())
app.get('/', (_, res) => res.send('The application itself'))

const http = app.listen(Number(process.env.PORT ?? 3000), '127.0.0.1', () =>
  console.log(`http://127.0.0.1:${http.address().port}/mcp`),
)

process.once('SIGTERM', async () => {
  http.close()
  await mcp.close()
  http.closeIdleConnections()
})
