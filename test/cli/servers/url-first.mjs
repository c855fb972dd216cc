// A server of the official SDK whose tools refuse calls (−32042) until the user has opened URLs.
import { createServer } from 'node:http'
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js'
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js'
import { UrlElicitationRequiredError } from '@modelcontextprotocol/sdk/types.js'

const server = new McpServer({ name: 'url-first', version: '1.0.0' })
const opened = new Set()

/** The pages that the user must open. Only /notified is reported to the client. */
const pages = createServer(async (request, response) => {
  opened.add(request.url)
  if (request.url === '/notified') {
    await server.server.createElicitationCompletionNotifier('unknown')()
    await server.server.createElicitationCompletionNotifier('/notified')()
  }
  response.end()
})
await new Promise((resolve) => pages.listen(0, '127.0.0.1', resolve))
pages.unref()

const elicitation = (path) => ({
  mode: 'url',
  message: `Open ${path}`,
  url: `http://127.0.0.1:${pages.address().port}${path}`,
  elicitationId: path,
})
let calls = 0
const registerTool = (name, paths) =>
  server.registerTool(name, {}, () => {
    calls++
    const missing = paths.filter((path) => !opened.has(path))
    if (missing.length > 0)
      throw new UrlElicitationRequiredError(missing.map(elicitation), `refused call ${calls}`)
    return { content: [{ type: 'text', text: `executed call ${calls}` }] }
  })
registerTool('connect', ['/notified', '/silent'])
registerTool('never', ['/never'])
await server.connect(new StdioServerTransport())
