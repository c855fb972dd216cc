// The Mastra client. It probes in one process and works with another.
import { MCPClient } from '@mastra/mcp'

const client = new MCPClient({ servers: { ccmcp: { command: process.argv[2], args: [] } } })
const tools = await client.listTools()
const { content } = await tools.ccmcp_echo.execute({ message: 'Grüße 👋' }, {})
process.stdout.write(
  JSON.stringify({
    names: Object.keys(tools).map((name) => name.replace(/^ccmcp_/, '')),
    text: content[0].text,
  }),
)
await client.disconnect()
