// The official SDK 2.x: stateless and with handshake. The argument delays its start, in milliseconds; with "http" it
// serves Streamable HTTP.
import { createServer } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { toNodeHandler } from '@modelcontextprotocol/node'
import {
  McpServer,
  acceptedContent,
  createMcpHandler,
  inputRequired,
} from '@modelcontextprotocol/server'
import { serveStdio } from '@modelcontextprotocol/server/stdio'
import { z } from 'zod'

const text = (text) => ({ content: [{ type: 'text', text }] })

function create() {
  const server = new McpServer(
    { name: 'sdk-2', version: '1.0.0' },
    { capabilities: { resources: { subscribe: true } } },
  )
  server.registerTool('echo', { inputSchema: z.object({ message: z.string() }) }, ({ message }) =>
    text(message),
  )
  server.registerTool(
    'sum',
    {
      inputSchema: z.object({ a: z.number(), b: z.number() }),
      outputSchema: z.object({ sum: z.number() }),
    },
    ({ a, b }) => ({ ...text(String(a + b)), structuredContent: { sum: a + b } }),
  )
  server.registerTool('fail', {}, () => ({ ...text('As planned.'), isError: true }))
  server.registerTool('wait', {}, async ({ mcpReq }) => {
    console.error('waiting')
    await new Promise((resolve) => mcpReq.signal.addEventListener('abort', resolve))
    console.error('cancelled')
    return text('')
  })
  server.registerTool('work', {}, async ({ mcpReq }) => {
    for (let progress = 1; progress <= 3; progress++) {
      const params = {
        progressToken: mcpReq._meta?.progressToken,
        progress,
        total: 3,
        message: `step ${progress}`,
      }
      await mcpReq.notify({ method: 'notifications/progress', params })
    }
    return text('done')
  })
  server.registerTool('ask', {}, ({ mcpReq }) => {
    const schema = z.object({ name: z.string() })
    const answer = acceptedContent(mcpReq.inputResponses, 'who', schema)
    if (answer !== undefined) return text(`accept ${answer.name}`)
    const who = inputRequired.elicit({ message: 'Who?', requestedSchema: schema })
    return inputRequired({ inputRequests: { who } })
  })
  server.registerTool('touch', {}, () => {
    notify?.resourceUpdated('note://1')
    return text('touched')
  })
  server.registerResource('note', 'note://1', {}, ({ href: uri }) => ({
    contents: [{ uri, text: 'a note' }],
  }))
  server.registerPrompt('greet', { argsSchema: z.object({ name: z.string() }) }, ({ name }) => ({
    messages: [{ role: 'user', content: { type: 'text', text: `Hello ${name}` } }],
  }))
  return server
}

const [, , argument = '0'] = process.argv
let notify
if (argument === 'http') {
  const handler = createMcpHandler(create)
  notify = handler.notify
  const listening = createServer(toNodeHandler(handler))
  listening.listen(0, '127.0.0.1', () =>
    console.error(`serving http://127.0.0.1:${listening.address().port}/mcp`),
  )
  process.stdin.resume().on('end', () => process.exit())
} else {
  await sleep(Number(argument))
  serveStdio(create)
}
