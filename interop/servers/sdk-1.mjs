// The official SDK 1.x, over stdio; with the argument "http" over Streamable HTTP, with "sse" over HTTP+SSE.
import { randomUUID } from 'node:crypto'
import { createServer } from 'node:http'
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js'
import { SSEServerTransport } from '@modelcontextprotocol/sdk/server/sse.js'
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js'
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js'
import {
  SubscribeRequestSchema,
  UnsubscribeRequestSchema,
} from '@modelcontextprotocol/sdk/types.js'
import { z } from 'zod'

const text = (text) => ({ content: [{ type: 'text', text }] })

function create() {
  const server = new McpServer(
    { name: 'sdk-1', version: '1.0.0' },
    { capabilities: { resources: { subscribe: true } } },
  )
  server.registerTool('echo', { inputSchema: { message: z.string() } }, ({ message }) =>
    text(message),
  )
  server.registerTool(
    'sum',
    { inputSchema: { a: z.number(), b: z.number() }, outputSchema: { sum: z.number() } },
    ({ a, b }) => ({
      ...text(String(a + b)),
      structuredContent: { sum: a + b },
    }),
  )
  server.registerTool('fail', {}, () => ({ ...text('As planned.'), isError: true }))
  server.registerTool('wait', {}, async ({ signal }) => {
    console.error('waiting')
    await new Promise((resolve) => signal.addEventListener('abort', resolve))
    console.error('cancelled')
    return text('')
  })
  server.registerTool('work', {}, async ({ _meta, sendNotification }) => {
    for (let progress = 1; progress <= 3; progress++) {
      const params = {
        progressToken: _meta?.progressToken,
        progress,
        total: 3,
        message: `step ${progress}`,
      }
      await sendNotification({ method: 'notifications/progress', params })
    }
    return text('done')
  })
  server.registerTool('ask', {}, async () => {
    const { action, content } = await server.server.elicitInput({
      message: 'Who?',
      requestedSchema: {
        type: 'object',
        properties: { name: { type: 'string' } },
        required: ['name'],
      },
    })
    return text([action, content?.name].join(' '))
  })
  server.registerTool('touch', {}, async () => {
    await server.server.sendResourceUpdated({ uri: 'note://1' })
    return text('touched')
  })
  server.registerResource('note', 'note://1', {}, ({ href: uri }) => ({
    contents: [{ uri, text: 'a note' }],
  }))
  server.registerPrompt('greet', { argsSchema: { name: z.string() } }, ({ name }) => ({
    messages: [{ role: 'user', content: { type: 'text', text: `Hello ${name}` } }],
  }))
  server.server.setRequestHandler(SubscribeRequestSchema, () => ({}))
  server.server.setRequestHandler(UnsubscribeRequestSchema, () => ({}))
  return server
}

const transports = new Map()

async function streamable(request, response) {
  const known = transports.get(request.headers['mcp-session-id'])
  if (known !== undefined) return await known.handleRequest(request, response)
  const transport = new StreamableHTTPServerTransport({
    sessionIdGenerator: randomUUID,
    onsessioninitialized: (id) => transports.set(id, transport),
    onsessionclosed: (id) => transports.delete(id),
  })
  await create().connect(transport)
  await transport.handleRequest(request, response)
}

async function sse(request, response) {
  const { pathname, searchParams } = new URL(request.url, 'http://localhost')
  if (pathname === '/messages')
    return await transports.get(searchParams.get('sessionId')).handlePostMessage(request, response)
  if (request.method !== 'GET') return response.writeHead(405).end()
  const transport = new SSEServerTransport('/messages', response)
  transports.set(transport.sessionId, transport)
  await create().connect(transport)
}

const [, , kind] = process.argv
if (kind === undefined) await create().connect(new StdioServerTransport())
else {
  const listening = createServer(kind === 'sse' ? sse : streamable)
  listening.listen(0, '127.0.0.1', () =>
    console.error(`serving http://127.0.0.1:${listening.address().port}/mcp`),
  )
  process.stdin.resume().on('end', () => process.exit())
}
