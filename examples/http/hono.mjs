// MCP in a Hono application, here on Node; httpHandler runs wherever Hono does.
import { serve } from '@hono/node-server'
import { Hono } from 'hono'
import { createServer, tool } from 'ccmcp'
import { httpHandler } from 'ccmcp/http'

const hello = tool({
  name: 'hello',
  run: (_, call) => `Hello, reader of ${call.http?.headers['accept-language'] ?? 'any language'}`,
})
const mcp = httpHandler(createServer({ name: 'greeter', version: '1.0.0', tools: [hello] }))

const app = new Hono()
app.all('/mcp', (context) => mcp(context.req.raw))
app.get('/', (context) => context.text('The application itself'))

const http = serve(
  { fetch: app.fetch, port: Number(process.env.PORT ?? 3000), hostname: '127.0.0.1' },
  ({ port }) => console.log(`http://127.0.0.1:${port}/mcp`),
)

process.once('SIGTERM', async () => {
  http.close()
  await mcp.close()
  http.closeIdleConnections()
})
