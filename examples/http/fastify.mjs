// MCP in a Fastify application.
import Fastify from 'fastify'
import { createServer, tool } from 'ccmcp'
import { nodeHandler } from 'ccmcp/http'

const hello = tool({
  name: 'hello',
  run: (_, call) => `Hello, reader of ${call.http?.headers['accept-language'] ?? 'any language'}`,
})
const mcp = nodeHandler(createServer({ name: 'greeter', version: '1.0.0', tools: [hello] }))

const app = Fastify()
app.register(async (scope) => {
  // Disable body parsing in this scope, so that the handler reads the raw body.
  scope.removeAllContentTypeParsers()
  scope.addContentTypeParser('*', (_request, _payload, done) => done(null))
  scope.all('/mcp', (request, reply) => {
    reply.hijack()
    mcp(request.raw, reply.raw)
  })
})
app.get('/', () => 'The application itself')
app.addHook('preClose', () => mcp.close())

console.log(
  `${await app.listen({ port: Number(process.env.PORT ?? 3000), host: '127.0.0.1' })}/mcp`,
)

process.once('SIGTERM', () => app.close())
