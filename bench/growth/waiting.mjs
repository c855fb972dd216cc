// A server over stdio whose tool takes 100 ms: node waiting.mjs ccmcp|sdk
const wait = () => new Promise((resolve) => setTimeout(resolve, 100, 'ok'))
if (process.argv[2] === 'ccmcp') {
  const { createServer, serveStdio, tool } = await import('../../dist/core.js')
  const slow = tool({ name: 'slow', run: wait })
  await serveStdio(createServer({ name: 'bench', version: '1', tools: [slow] }))
} else {
  const { McpServer } = await import('@modelcontextprotocol/server')
  const { serveStdio } = await import('@modelcontextprotocol/server/stdio')
  serveStdio(() => {
    const server = new McpServer({ name: 'bench', version: '1' })
    server.registerTool('slow', {}, async () => ({
      content: [{ type: 'text', text: await wait() }],
    }))
    return server
  })
}
